// SPDX-License-Identifier: GPL-2.0
//! `ring3 sim --gdb`: a debugger sees the simulation's kernel as one program, whichever process runs it.
//!
//! A thread of the keeper's process speaks gdb's remote protocol on a unix socket. Breakpoints are written into the text, which all
//! processes share; a thread that comes to one stops in kernel/arch/ring3/turn/debug.c, and leaves its registers there.
//! It has the turn, so nobody else runs, and time stands still until gdb lets it go on. gdb itself steps over
//! breakpoints: it takes them out, makes one step and puts them in again.
//!
//! Memory is that of the stopped thread: what lies in the region is read here, the rest in its process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::data::Data;
use crate::error::{Error, Result};

/// As turn/debug.c has them.
const SYMBOL: &str = "turn_debug";
const OFF: u32 = 0;
const RUNS: u32 = 1;
const STOPPED: u32 = 3;
const AT_PID: u64 = 4;
const AT_STEPS: u64 = 12;
const AT_REGS: u64 = 16;
const REGS: usize = 18;
const RIP: usize = 16;

/// Both sides look so often.
const TURN: Duration = Duration::from_micros(100);
/// SIGTRAP and SIGINT, as gdb's protocol has them.
const TRAP: u8 = 5;
const INTERRUPT: u8 = 2;
/// Ctrl-C in gdb.
const BREAK: u8 = 3;
const INT3: u8 = 0xcc;
/// Where all threads come by sooner or later: the turn of a program, and the clock when all wait.
const HALTS: [&str; 2] = ["turn_go_home", "turn_idle"];
/// What runs while a thread is stopped: a breakpoint there would stop itself.
const SPARED: [&str; 3] = ["ring3_fixup", "turn_trap", "turn_host_syscall"];
/// gdb's order of the general registers of x86-64, as places in struct sigcontext; the segments and vector registers are not known.
const ORDER: [usize; 18] = [13, 11, 14, 12, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17];
/// Of the last of them, the flags, as all segments after it.
const SHORT: usize = 17;
const SEGMENTS: usize = 6;
/// A packet of gdb's.
const PACKET_MAX: usize = 16 << 10;

/// What gdb is told of the simulation's kernel.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where the node's memory lies in each process.
    pub memory: Range<u64>,
    /// How much further up its text can be written.
    pub alias: u64,
    pub image: PathBuf,
}

/// Names in the data folder.
pub const SOCKET: &str = "gdb.sock";
pub const SCRIPT: &str = "gdb.init";
/// The number of each host's network namespace, a line each, beside the rest of what made the network.
pub const HOSTS: &str = "hosts";

/// Commands for gdb that name hosts.
const COMMANDS: &str = include_str!("gdb.py");

/// Beside an image of a clone, the same with lines of its source.
const UNSTRIPPED: &str = "../build/kernel-sim/vmlinux";

/// `sun_path` of a unix socket holds this many bytes, its NUL included.
const SUN_PATH: usize = 108;

/// Before anything is made: whether the socket can be where gdb is to find it.
pub fn check(data: &Data) -> Result<()> {
    let socket = data.path(SOCKET);
    let len = socket.as_os_str().len();
    match len < SUN_PATH {
        true => Ok(()),
        false => Err(said(format!(
            "{} is too long for a socket ({len} bytes, {} may be): name a shorter folder by --data-directory",
            socket.display(),
            SUN_PATH - 1
        ))),
    }
}

/// A word of a command of gdb's.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// What gdb is to read: symbols, commands, and where the simulation listens.
pub fn script(target: &Target, data: &Data) -> String {
    let whole = target.image.parent().map(|folder| folder.join(UNSTRIPPED));
    let symbols = whole
        .filter(|path| path.is_file())
        .unwrap_or_else(|| target.image.clone());
    format!(
        "set pagination off\nset confirm off\nset architecture i386:x86-64\nsymbol-file -o {:#x} {}\npython\n{COMMANDS}\nHOSTS_FILE = {:?}\nend\ntarget remote {}\n",
        target.memory.start,
        quoted(&symbols),
        data.network(HOSTS),
        // Not quoted: gdb takes all of the line.
        data.path(SOCKET).display(),
    )
}

/// Its place in the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Symbol {
    at: u64,
    size: u64,
}

pub struct Stub {
    target: Target,
    listener: UnixListener,
    symbols: BTreeMap<String, Symbol>,
    own: File,
    breaks: BTreeMap<u64, u8>,
}

fn said(words: impl Into<String>) -> Error {
    Error::Said(words.into())
}

impl Stub {
    /// Listens at the socket; the simulation may be stopped from now on.
    pub fn new(target: Target, socket: &Path) -> Result<Stub> {
        let image = std::fs::read(&target.image)
            .map_err(Error::host(format!("read {}", target.image.display())))?;
        let wanted: Vec<&str> = HALTS.into_iter().chain(SPARED).chain([SYMBOL]).collect();
        let symbols = symbols(&image, &wanted)
            .filter(|found| found.len() == wanted.len())
            .ok_or_else(|| {
                said(format!(
                    "{} has no {SYMBOL}: build it anew (make sim)",
                    target.image.display()
                ))
            })?;
        let own = File::options()
            .read(true)
            .write(true)
            .open("/proc/self/mem")
            .map_err(Error::host("open /proc/self/mem"))?;
        let listener = UnixListener::bind(socket)
            .map_err(Error::host(format!("listen at {}", socket.display())))?;
        Ok(Stub {
            target,
            listener,
            symbols,
            own,
            breaks: BTreeMap::new(),
        })
    }

    /// Serves one debugger after the other. `first`: returns when the first one has said `continue`, or has gone.
    pub fn serve(&mut self, first: &mut dyn FnMut()) -> Result<()> {
        loop {
            let (stream, _) = self
                .listener
                .accept()
                .map_err(Error::host("wait for gdb"))?;
            self.set_state(RUNS)?;
            let mut session = Session {
                stub: &mut *self,
                stream,
                acknowledges: true,
            };
            let result = session.talk(first);
            self.detach()?;
            first();
            if let Err(why) = result {
                log::debug!("gdb: {why}");
            }
        }
    }

    fn detach(&mut self) -> Result<()> {
        for (at, old) in std::mem::take(&mut self.breaks) {
            self.poke(at, &[old])?;
        }
        let state = self.word(0)?;
        self.set_steps(0)?;
        self.set_state(OFF)?;
        log::debug!("gdb has gone, in state {state}");
        Ok(())
    }

    fn block(&self) -> u64 {
        self.target.memory.start + self.symbols[SYMBOL].at
    }

    fn word(&self, at: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.own
            .read_exact_at(&mut bytes, self.block() + at)
            .map_err(Error::host("read the debugger's block"))?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn put(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.own
            .write_all_at(bytes, self.block() + at)
            .map_err(Error::host("write the debugger's block"))
    }

    fn set_state(&self, state: u32) -> Result<()> {
        self.put(0, &state.to_le_bytes())
    }

    fn set_steps(&self, steps: u32) -> Result<()> {
        self.put(AT_STEPS, &steps.to_le_bytes())
    }

    fn is_stopped(&self) -> Result<bool> {
        Ok(self.word(0)? == STOPPED)
    }

    fn regs(&self) -> Result<[u64; REGS]> {
        let mut bytes = [0; 8 * REGS];
        self.own
            .read_exact_at(&mut bytes, self.block() + AT_REGS)
            .map_err(Error::host("read registers"))?;
        let mut regs = [0; REGS];
        for (reg, bytes) in regs.iter_mut().zip(bytes.chunks_exact(8)) {
            *reg = bytes
                .iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte));
        }
        Ok(regs)
    }

    fn set_reg(&self, which: usize, value: u64) -> Result<()> {
        self.put(AT_REGS + 8 * which as u64, &value.to_le_bytes())
    }

    fn is_region(&self, at: u64) -> bool {
        self.target.memory.contains(&at)
    }

    fn of_process(&self) -> Option<File> {
        let pid = self.word(AT_PID).ok()?;
        File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))
            .ok()
    }

    fn peek(&self, at: u64, bytes: &mut [u8]) -> bool {
        match self.is_region(at) {
            true => self.own.read_exact_at(bytes, at).is_ok(),
            false => self
                .of_process()
                .is_some_and(|file| file.read_exact_at(bytes, at).is_ok()),
        }
    }

    /// The text cannot be written where it is executed.
    fn poke(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let cannot = || Error::host(format!("write at {at:#x}"));
        match self.is_region(at) {
            true => self
                .own
                .write_all_at(bytes, at + self.target.alias)
                .or_else(|_| self.own.write_all_at(bytes, at))
                .map_err(cannot()),
            false => self
                .of_process()
                .ok_or_else(|| said("the process is gone"))?
                .write_all_at(bytes, at)
                .map_err(cannot()),
        }
    }

    fn is_spared(&self, at: u64) -> bool {
        SPARED.iter().any(|name| {
            let Symbol { at: start, size } = self.symbols[*name];
            let place = at.wrapping_sub(self.target.memory.start);
            (start..start + size).contains(&place)
        })
    }

    fn insert(&mut self, at: u64) -> bool {
        let mut old = [0];
        if self.breaks.contains_key(&at) {
            return true;
        }
        if !self.is_region(at)
            || self.is_spared(at)
            || !self.peek(at, &mut old)
            || self.poke(at, &[INT3]).is_err()
        {
            return false;
        }
        self.breaks.insert(at, old[0]);
        true
    }

    fn remove(&mut self, at: u64) -> bool {
        match self.breaks.remove(&at) {
            Some(old) => self.poke(at, &[old]).is_ok(),
            None => true,
        }
    }
}

struct Session<'a> {
    stub: &'a mut Stub,
    stream: UnixStream,
    acknowledges: bool,
}

type Io<T> = std::io::Result<T>;

fn broken(why: Error) -> std::io::Error {
    std::io::Error::other(why.to_string())
}

impl Session<'_> {
    fn talk(&mut self, first: &mut dyn FnMut()) -> Io<()> {
        while let Some(packet) = self.packet()? {
            let answer = match self.answer(&packet, first)? {
                Some(answer) => answer,
                None => return Ok(()),
            };
            self.send(&answer)?;
        }
        Ok(())
    }

    fn byte(&mut self) -> Io<Option<u8>> {
        let mut one = [0];
        Ok((self.stream.read(&mut one)? == 1).then_some(one[0]))
    }

    /// The next one, between its `$` and `#`; None: gdb has gone.
    fn packet(&mut self) -> Io<Option<Vec<u8>>> {
        loop {
            match self.byte()? {
                None => return Ok(None),
                Some(b'$') => break,
                Some(_) => {}
            }
        }
        let mut packet = Vec::new();
        while packet.len() < PACKET_MAX {
            match self.byte()? {
                None => return Ok(None),
                Some(b'#') => break,
                Some(byte) => packet.push(byte),
            }
        }
        // The sum of what came over a local socket is right.
        for _ in 0..2 {
            self.byte()?;
        }
        if self.acknowledges {
            self.stream.write_all(b"+")?;
        }
        Ok(Some(packet))
    }

    fn send(&mut self, answer: &str) -> Io<()> {
        let sum = answer.bytes().fold(0u8, u8::wrapping_add);
        self.stream
            .write_all(format!("${answer}#{sum:02x}").as_bytes())
    }

    /// None: the session is over.
    fn answer(&mut self, packet: &[u8], first: &mut dyn FnMut()) -> Io<Option<String>> {
        let text = String::from_utf8_lossy(packet).into_owned();
        let (kind, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
        let ok = |yes: bool| String::from(if yes { "OK" } else { "E01" });
        Ok(Some(match kind {
            "?" => format!("S{TRAP:02x}"),
            "g" => self.registers().map_err(broken)?,
            "G" => ok(self.set_registers(rest)),
            "p" => self.register(rest).map_err(broken)?,
            "P" => ok(self.set_register(rest)),
            "m" => self.read(rest),
            "M" => ok(self.write(rest)),
            "Z" | "z" => match rest
                .strip_prefix("0,")
                .and_then(|rest| hex(rest.split(',').next()?))
            {
                Some(at) if kind == "Z" => ok(self.stub.insert(at)),
                Some(at) => ok(self.stub.remove(at)),
                None => String::new(),
            },
            "c" | "s" => {
                first();
                match self.go_on(kind == "s")? {
                    Some(signal) => format!("S{signal:02x}"),
                    None => return Ok(None),
                }
            }
            "D" => {
                self.send("OK")?;
                return Ok(None);
            }
            "k" => return Ok(None),
            "q" => self.query(rest),
            "Q" if rest == "StartNoAckMode" => {
                self.send("OK")?;
                self.acknowledges = false;
                return self.after(first);
            }
            "H" => "OK".into(),
            _ => String::new(),
        }))
    }

    /// The answer to the packet after this one.
    fn after(&mut self, first: &mut dyn FnMut()) -> Io<Option<String>> {
        match self.packet()? {
            Some(packet) => self.answer(&packet, first),
            None => Ok(None),
        }
    }

    fn query(&self, rest: &str) -> String {
        match rest.split(':').next().unwrap_or_default() {
            "Supported" => format!("PacketSize={PACKET_MAX:x};QStartNoAckMode+"),
            "Attached" => "1".into(),
            "C" => "QC1".into(),
            "fThreadInfo" => "m1".into(),
            "sThreadInfo" => "l".into(),
            _ => String::new(),
        }
    }

    fn registers(&self) -> Result<String> {
        let regs = self.stub.regs()?;
        let mut text = String::new();
        for (number, place) in ORDER.iter().enumerate() {
            let bytes = regs[*place].to_le_bytes();
            let size = if number >= SHORT { 4 } else { 8 };
            bytes[..size]
                .iter()
                .for_each(|byte| text += &format!("{byte:02x}"));
        }
        text += &"x".repeat(8 * SEGMENTS);
        Ok(text)
    }

    fn register(&self, rest: &str) -> Result<String> {
        let Some(number) = hex(rest).map(|number| number as usize) else {
            return Ok("E01".into());
        };
        let Some(place) = ORDER.get(number) else {
            return Ok("xxxxxxxx".into());
        };
        let bytes = self.stub.regs()?[*place].to_le_bytes();
        let size = if number >= SHORT { 4 } else { 8 };
        Ok(bytes[..size]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }

    fn set_registers(&self, rest: &str) -> bool {
        ORDER.iter().enumerate().take(SHORT).all(|(number, place)| {
            let value = rest.get(16 * number..16 * number + 16).and_then(little);
            value.is_some_and(|value| self.stub.set_reg(*place, value).is_ok())
        })
    }

    fn set_register(&self, rest: &str) -> bool {
        let Some((number, value)) = rest.split_once('=') else {
            return false;
        };
        let place = hex(number).and_then(|number| ORDER.get(number as usize));
        match (place, little(value)) {
            (Some(place), Some(value)) => self.stub.set_reg(*place, value).is_ok(),
            _ => false,
        }
    }

    fn read(&self, rest: &str) -> String {
        let Some((at, size)) = rest
            .split_once(',')
            .and_then(|(at, size)| Some((hex(at)?, hex(size)?)))
        else {
            return "E01".into();
        };
        let mut bytes = vec![0; (size as usize).min(PACKET_MAX / 2)];
        if !self.stub.peek(at, &mut bytes) {
            return "E14".into();
        }
        // What gdb has not written is not there.
        for (place, byte) in bytes.iter_mut().enumerate() {
            if let Some(old) = self.stub.breaks.get(&(at + place as u64)) {
                *byte = *old;
            }
        }
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn write(&self, rest: &str) -> bool {
        let parts = rest
            .split_once(':')
            .and_then(|(head, data)| Some((hex(head.split(',').next()?)?, data)));
        let Some((at, data)) = parts else {
            return false;
        };
        let bytes: Option<Vec<u8>> = (0..data.len() / 2)
            .map(|i| u8::from_str_radix(data.get(2 * i..2 * i + 2)?, 16).ok())
            .collect();
        bytes.is_some_and(|bytes| self.stub.poke(at, &bytes).is_ok())
    }

    /// Until a thread stops; None: gdb has gone.
    fn go_on(&mut self, steps: bool) -> Io<Option<u8>> {
        self.stub.set_steps(steps.into()).map_err(broken)?;
        if self.stub.is_stopped().map_err(broken)? {
            self.stub.set_state(RUNS).map_err(broken)?;
        }
        let mut halts = Vec::new();
        self.stream.set_nonblocking(true)?;
        let end = loop {
            if self.stub.is_stopped().map_err(broken)? {
                break Some(if halts.is_empty() { TRAP } else { INTERRUPT });
            }
            match self.byte() {
                Ok(None) => break None,
                Ok(Some(BREAK)) if halts.is_empty() => {
                    for name in HALTS {
                        let at = self.stub.target.memory.start + self.stub.symbols[name].at;
                        if !self.stub.breaks.contains_key(&at) && self.stub.insert(at) {
                            halts.push(at);
                        }
                    }
                }
                Ok(Some(_)) => {}
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {
                    std::thread::sleep(TURN)
                }
                Err(why) => return Err(why),
            }
        };
        self.stream.set_nonblocking(false)?;
        for at in halts {
            self.stub.remove(at);
        }
        if end.is_some() {
            self.step_back().map_err(broken)?;
        }
        Ok(end)
    }

    /// A breakpoint's thread is behind its byte, and gdb wants it before.
    fn step_back(&self) -> Result<()> {
        let rip = self.stub.regs()?[RIP];
        let mut byte = [0];
        if self.stub.word(AT_STEPS)? == 0 && self.stub.peek(rip - 1, &mut byte) {
            self.stub.set_reg(RIP, rip - 1)?;
        }
        Ok(())
    }
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Of bytes from the lowest on.
fn little(text: &str) -> Option<u64> {
    let bytes: Option<Vec<u64>> = (0..text.len() / 2)
        .map(|i| u64::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok())
        .collect();
    Some(bytes?.iter().rev().fold(0, |all, byte| all << 8 | byte))
}

/// Symbols in an ELF file of 64 bits, as elf(5) has it; None: it is no such file.
fn symbols(file: &[u8], wanted: &[&str]) -> Option<BTreeMap<String, Symbol>> {
    const SYMTAB: u64 = 2;
    let word = |at: usize, size: usize| -> Option<u64> {
        let bytes = file.get(at..at.checked_add(size)?)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte)),
        )
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count) = (
        word(40, 8)? as usize,
        word(58, 2)? as usize,
        word(60, 2)? as usize,
    );
    let section =
        |number: usize, at: usize, size_of: usize| word(table + number * size + at, size_of);
    let mut found = BTreeMap::new();
    for number in (0..count).filter(|number| section(*number, 4, 4) == Some(SYMTAB)) {
        let (from, bytes) = (
            section(number, 24, 8)? as usize,
            section(number, 32, 8)? as usize,
        );
        let names = section(section(number, 40, 4)? as usize, 24, 8)? as usize;
        for at in (from..from.checked_add(bytes)?).step_by(24) {
            let name = file.get(names + word(at, 4)? as usize..)?;
            let end = name.iter().position(|byte| *byte == 0)?;
            let name = std::str::from_utf8(&name[..end]).unwrap_or_default();
            if wanted.contains(&name) {
                let (at, size) = (word(at + 8, 8)?, word(at + 16, 8)?);
                found.insert(name.to_owned(), Symbol { at, size });
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{hex, little, quoted, symbols};

    #[test]
    fn words_for_gdb() {
        assert_eq!(quoted(Path::new("/a b/c")), r#""/a b/c""#);
        assert_eq!(quoted(Path::new(r#"/a"b\c"#)), r#""/a\"b\\c""#);
    }

    #[test]
    fn numbers() {
        assert_eq!(hex("ff10"), Some(0xff10));
        assert_eq!(little("10ff000000000000"), Some(0xff10));
        assert_eq!(hex("x"), None);
        assert_eq!(little("zz"), None);
    }

    #[test]
    fn symbols_of_a_program() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let found = symbols(&own, &["main", "no such symbol"]).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["main"]);
        assert!(symbols(b"#!/bin/sh", &["main"]).is_none());
        assert!(symbols(&own[..own.len() / 2], &["main"]).is_none_or(|found| found.is_empty()));
    }
}
