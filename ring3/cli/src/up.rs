// SPDX-License-Identifier: GPL-2.0
//! `ring3 up`: a node that stays.
//!
//! The node's process is detached before it has a second thread, and reports through a
//! pipe: `+` when programs may join, `-` and a message when it could not be, nothing when
//! it died. What it has to say later goes to a file in the runtime folder. What it does then is in supervise.rs.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use ring3_config::names::WaitFor;
use ring3_config::{NodeConfig, Restart, Switch};
use ring3_node::client::Client;
use ring3_node::Folder;

use crate::args::SandboxArgs;
use crate::error::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::leaf::{self, Side};
use crate::program::Program;
use crate::supervise::Job;
use crate::{args, names, node_args, nodes, ports, sandbox, say};

/// A start that takes longer than this says that it goes on.
const SILENCE_MS: u16 = 2000;

const READY: u8 = b'+';
const FAILED: u8 = b'-';

pub fn up(args: &args::Up) -> Result<()> {
    let mut config = node_args::node(&args.node, args.name.as_deref(), "")?;
    for text in &args.wait {
        config.waits.push(text.parse()?);
    }
    if !args.command.is_empty() {
        config.programs.push(absolute(&args.command)?);
    }
    if let Some(word) = &args.restart {
        config.restart = word.parse()?;
    }
    if args.switch {
        config.switch = Some(Switch::Stays);
    }
    if let Some(path) = &args.layout {
        config.layout =
            serde_json::from_str(&node_args::text(path)?).map_err(|why| Failure::Layout {
                path: path.clone(),
                why,
            })?;
    }
    config.check()?;
    let bounds = args.sandbox.beside(config.sandbox.clone());
    if bounds.sandbox {
        return up_sandboxed(args, bounds, config);
    }
    if args.foreground {
        ports::need_switches(&config, &Interrupt::hold_back()?)?;
        return match Job::new(config, true)?.carry_out(None) {
            0 => Ok(()),
            _ => Err(Failure::Said),
        };
    }
    let interrupt = Interrupt::hold_back()?;
    let node = start(&config, &interrupt)?;
    if let Err(failure) = wait(&config, &interrupt) {
        if matches!(failure, Failure::Interrupted { .. }) {
            // That it was interrupted is what matters.
            let _ = node.down();
        }
        return Err(failure);
    }
    match args.json {
        true => nodes::print_json(&node.status()?),
        false => Ok(()),
    }
}

/// A node that stays leaves this folder: a program that was found in it is found later.
fn absolute(command: &[OsString]) -> Result<Vec<OsString>> {
    let mut command = command.to_vec();
    // Else PATH says where it is.
    if command[0].as_bytes().contains(&b'/') {
        let path = std::path::absolute(&command[0]);
        let fail = Failure::host(format!("find {}", command[0].to_string_lossy()));
        command[0] = path.map_err(fail)?.into();
    }
    Ok(command)
}

fn can_be_sandbox(config: &NodeConfig) -> Result<()> {
    match config.restart != Restart::No || config.switch.is_some() {
        true => Err(Failure::NotInSandbox),
        false => Ok(()),
    }
}

/// The same in a sandbox, or as a gateway for others.
fn up_sandboxed(args: &args::Up, mut bounds: SandboxArgs, config: NodeConfig) -> Result<()> {
    can_be_sandbox(&config)?;
    let name = config.name.clone();
    bounds.make_absolute()?;
    let node = config.clone();
    let serve = sandbox::served(&args.serve)?;
    // Mistakes are reported before anything is made for it.
    let mut programs = config.programs.iter();
    programs.try_for_each(|command| Program::find(command).map(drop))?;
    let life = move |caller| sandbox::stay(&bounds, &serve, node, caller);
    if args.foreground {
        ports::need_switches(&config, &Interrupt::hold_back()?)?;
        return match life(None) {
            0 => Ok(()),
            _ => Err(Failure::Said),
        };
    }
    let interrupt = Interrupt::hold_back()?;
    ports::need_switches(&config, &interrupt)?;
    let node = start_life(&name, &interrupt, life)?;
    if let Err(failure) = wait(&config, &interrupt) {
        let _ = node.down();
        return Err(failure);
    }
    match args.json {
        true => nodes::print_json(&node.status()?),
        false => Ok(()),
    }
}

/// Starts a node in a process of its own, and returns when programs may join.
pub fn start(config: &NodeConfig, interrupt: &Interrupt) -> Result<Client> {
    ports::need_switches(config, interrupt)?;
    if config.sandbox.is_some() {
        can_be_sandbox(config)?;
        let mut bounds = SandboxArgs::default().beside(config.sandbox.clone());
        bounds.make_absolute()?;
        let node = config.clone();
        let life = move |caller| sandbox::stay(&bounds, &[], node, caller);
        return start_life(&config.name, interrupt, life);
    }
    let job = Job::new(config.clone(), false)?;
    start_life(&config.name, interrupt, move |caller| job.carry_out(caller))
}

/// The same for what is done in that process, to which its result is the status.
fn start_life(
    name: &str,
    interrupt: &Interrupt,
    life: impl FnOnce(Option<Caller>) -> i32,
) -> Result<Client> {
    let log = Folder::open()?.log_path(name);
    let (reader, writer) = std::io::pipe().map_err(Failure::host("make a pipe"))?;
    match leaf::detach().map_err(|e| Failure::host("start a process")(e.into()))? {
        Side::Detached => {
            drop(reader);
            interrupt.let_go();
            keep(life, writer, &log)
        }
        Side::Caller => {
            drop(writer);
            if let Err(failure) = wait_ready(&reader, name, &log, interrupt) {
                // It may have come up just when that was interrupted.
                if matches!(failure, Failure::Interrupted { .. }) && has_said_ready(&reader) {
                    let _ = Client::open(name).map(|node| node.down());
                }
                return Err(failure);
            }
        }
    }
    Ok(Client::open(name)?)
}

/// Returns when what a new node is to be waited for is there.
pub fn wait(config: &NodeConfig, interrupt: &Interrupt) -> Result<()> {
    if names::has_neighbours(config) {
        names::introduce(&config.name);
    }
    let mut waits = config.waits.iter();
    waits.try_for_each(|it| wait_for(&config.name, it, interrupt))?;
    interrupt.check()
}

/// By `ring3 wait`, which becomes a process of the node; it says itself what it has to say.
pub fn wait_for(name: &str, wait: &WaitFor, interrupt: &Interrupt) -> Result<()> {
    let exe = std::env::current_exe().map_err(Failure::host("start ring3 wait"))?;
    let protocol = if wait.is_tcp { "tcp" } else { "udp" };
    let mut command = Command::new(exe);
    command.args(["wait", name, protocol, &wait.port.to_string()]);
    let status = interrupt.run(&mut command)?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Said),
    }
}

/// The node's process, from start to end.
fn keep(life: impl FnOnce(Option<Caller>) -> i32, writer: PipeWriter, log: &Path) -> ! {
    leaf::close_all_but(&[writer.as_fd()]);
    let status = match leave(log) {
        Ok(file) => {
            let status = life(Some(Caller(writer)));
            remove_unless_needed(file, log, status);
            status
        }
        Err(failure) => {
            Caller(writer).failed(&failure);
            1
        }
    };
    std::process::exit(status)
}

/// The process that waits for the node to come up.
pub struct Caller(PipeWriter);

impl Caller {
    /// Broken when the caller has gone: then nobody wants the node.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// False: the caller has gone.
    pub fn ready(self) -> bool {
        self.say(READY, "").is_ok()
    }

    /// If the caller is not there to hear it any more, so be it.
    pub fn failed(self, failure: &Failure) {
        let _ = self.say(FAILED, &failure.to_string());
    }

    fn say(mut self, byte: u8, text: &str) -> std::io::Result<()> {
        self.0.write_all(&[byte])?;
        self.0.write_all(text.as_bytes())
    }
}

/// Opens the log. Each node's process that writes to it holds a shared lock, its programs none: one that wants the name of a node that
/// is up has the same file as that, for a moment.
fn open_log(path: &Path) -> std::io::Result<Flock<File>> {
    loop {
        // A name that is taken must not empty the file of the node that has it: append.
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(path)?;
        let file = Flock::lock(file, FlockArg::LockShared).map_err(|(_, why)| why)?;
        // Its last holder may have removed it just before we locked it.
        if !is_current(&file, path) {
            continue;
        }
        // If it is nobody else's, it has what an earlier node of the name said.
        if file.relock(FlockArg::LockExclusiveNonblock).is_ok() {
            file.set_len(0)?;
        }
        file.relock(FlockArg::LockShared)?;
        // A lock is converted by letting go of it first (flock(2)): whoever removes the file may have had it in between.
        if is_current(&file, path) {
            return Ok(file);
        }
    }
}

/// Nobody asks what a node said that has ended well, nor for an empty file; unless it is another's too, or the path another
/// file's by now.
fn remove_unless_needed(file: Flock<File>, path: &Path, status: i32) {
    let alone = file.relock(FlockArg::LockExclusiveNonblock).is_ok();
    let empty = file.metadata().is_ok_and(|log| log.len() == 0);
    if alone && (empty || status == 0) && is_current(&file, path) {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether the path still leads to this file.
fn is_current(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(now)) => ours.ino() == now.ino() && ours.dev() == now.dev(),
        _ => false,
    }
}

/// Lets go of the caller's folder, terminal and pipes; the log is held until the end.
fn leave(log: &Path) -> Result<Flock<File>> {
    let open = || -> std::io::Result<Flock<File>> {
        let null = File::open("/dev/null")?;
        let log = open_log(log)?;
        nix::unistd::dup2_stdin(&null)?;
        // Opened once more: who has the standard descriptors can't take or drop the lock that this process holds.
        let path = format!("/proc/self/fd/{}", log.as_fd().as_raw_fd());
        let output = OpenOptions::new().append(true).open(path)?;
        nix::unistd::dup2_stdout(&output)?;
        nix::unistd::dup2_stderr(&output)?;
        std::env::set_current_dir("/")?;
        Ok(log)
    };
    open().map_err(Failure::host(format!("write {}", log.display())))
}

fn has_said_ready(mut reader: &PipeReader) -> bool {
    let mut fds = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
    let is_there = poll(&mut fds, PollTimeout::ZERO) == Ok(1);
    let mut first = [0];
    is_there && matches!(reader.read(&mut first), Ok(1)) && first[0] == READY
}

/// The caller: waits for the word. Where that is interrupted, the node finds nobody there to tell, and goes.
fn wait_ready(
    mut reader: &PipeReader,
    name: &str,
    log: &Path,
    interrupt: &Interrupt,
) -> Result<()> {
    if !interrupt.wait_for(reader.as_fd(), PollTimeout::from(SILENCE_MS))? {
        say::complain(format_args!(
            "node `{name}` takes its time to start; still waiting"
        ));
        interrupt.wait_for(reader.as_fd(), PollTimeout::NONE)?;
    }
    let mut first = [0];
    let failure = match reader.read(&mut first) {
        Ok(1) if first[0] == READY => return Ok(()),
        Ok(1) => {
            let mut text = String::new();
            reader
                .read_to_string(&mut text)
                .map_err(Failure::host(format!("hear from node `{name}`")))?;
            Failure::Child(text)
        }
        Ok(_) => Failure::Silent {
            name: name.to_owned(),
            log: log.to_owned(),
        },
        Err(why) => Failure::host(format!("hear from node `{name}`"))(why),
    };
    Err(failure)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::{is_current, open_log, remove_unless_needed};

    /// `ring3 down x; ring3 up x`, again and again: the new node's log is never a file that the one before has removed.
    #[test]
    fn a_log_in_use_is_at_its_path() {
        const TURNS: usize = 20_000;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    remove_unless_needed(open_log(&path).unwrap(), &path, 0);
                }
            });
            let lost = (0..TURNS)
                .filter(|_| !is_current(&open_log(&path).unwrap(), &path))
                .count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(lost, 0, "of {TURNS}");
        });
    }
}
