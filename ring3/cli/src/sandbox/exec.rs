// SPDX-License-Identifier: GPL-2.0
//! `ring3 exec` of a sandboxed node: what is typed outside is started by the keeper within (ring3_node's enter.rs).
//!
//! ```text
//! caller -> keeper    the number of a signal, each
//! keeper -> caller    'S' and the status; 'F' and why it did not start
//! ```
//!
//! The program has a session of its own: its terminal, if it has one, is not its controlling one. When the caller ends, the
//! program is killed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::{Child, Command};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{recv, send, MsgFlags};
use ring3_node::outside::Entry;
use ring3_node::{Door, Folder};
use rustix::process::{pidfd_open, pidfd_send_signal, PidfdFlags};

use crate::error::{Failure, Result};
use crate::leaf;
use crate::program::Program;
use crate::signals::{shell_status, Watch};

const STATUS: u8 = b'S';
const FAILED: u8 = b'F';
/// A failure's words are shorter.
const MESSAGE_MAX: usize = 4096;
/// Arguments and environment: what Linux takes at most (a quarter of the usual stack limit, 8 MiB).
const WORDS_MAX: u64 = 2 << 20;

/// In the sandbox of node `name`: the program's status.
pub fn enter(name: &str, command: &[OsString]) -> Result<u8> {
    let fail = |what: &'static str| move |why: nix::Error| Failure::host(what)(why.into());
    // Mistakes are reported before anything is asked for.
    Program::find(command)?;
    let (ours, theirs) = super::pair()?;
    let copy = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned();
    let standard = || -> std::io::Result<[OwnedFd; 3]> {
        let (input, output) = (copy(&std::io::stdin())?, copy(&std::io::stdout())?);
        Ok([input, output, copy(&std::io::stderr())?])
    };
    let entry = Entry {
        standard: standard().map_err(Failure::host("copy a descriptor"))?,
        words: Words::of_caller(command).write()?,
        talk: theirs,
    };
    let watch = Watch::start()?;
    entry.send(&Folder::open()?, name)?;
    drop(entry);
    let pass_on = |signal: Signal| {
        // It may have ended; its status comes next.
        let _ = send(ours.as_raw_fd(), &[signal as u8], MsgFlags::MSG_NOSIGNAL);
    };
    watch.wait_readable(ours.as_fd(), pass_on)?;
    let mut message = [0; MESSAGE_MAX];
    let len = recv(ours.as_raw_fd(), &mut message, MsgFlags::empty());
    match message[..len.map_err(fail("hear from the sandbox"))?] {
        [STATUS, status] => Ok(status),
        [FAILED, ref words @ ..] => {
            // Whoever has taken the keeper over is not to speak to the terminal.
            let words = String::from_utf8_lossy(words).replace(char::is_control, "?");
            Err(Failure::Child(words))
        }
        _ => Err(Failure::SandboxOver {
            name: name.to_owned(),
        }),
    }
}

/// What is to be started, and where.
#[derive(Debug, PartialEq, Eq)]
struct Words {
    folder: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

impl Words {
    fn of_caller(command: &[OsString]) -> Words {
        Words {
            folder: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            args: command.to_vec(),
            env: std::env::vars_os().collect(),
        }
    }

    /// Strings that each end with a NUL: the folder, how many arguments, these, the environment.
    fn write(&self) -> Result<File> {
        let mut bytes = Vec::new();
        let mut put = |text: &OsStr| {
            bytes.extend(text.as_bytes());
            bytes.push(0);
        };
        put(self.folder.as_os_str());
        put(OsStr::new(&self.args.len().to_string()));
        self.args.iter().for_each(|text| put(text));
        for (name, value) in &self.env {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            put(&pair);
        }
        let file = memfd_create(c"ring3-exec", MFdFlags::MFD_CLOEXEC);
        let file = file.map_err(|why| Failure::host("make a file in memory")(why.into()))?;
        let mut file = File::from(file);
        file.write_all(&bytes)
            .map_err(Failure::host("write a command down"))?;
        Ok(file)
    }

    fn read(file: &mut File) -> Option<Words> {
        let mut bytes = Vec::new();
        file.rewind().ok()?;
        file.take(WORDS_MAX).read_to_end(&mut bytes).ok()?;
        let bytes = bytes.strip_suffix(&[0])?;
        let mut texts = bytes
            .split(|&byte| byte == 0)
            .map(|text| OsString::from_vec(text.to_vec()));
        let folder = texts.next()?.into();
        let count = texts.next()?.to_str()?.parse().ok()?;
        let args: Vec<OsString> = texts.by_ref().take(count).collect();
        let env = texts.filter_map(|pair| {
            let at = pair
                .as_bytes()
                .iter()
                .skip(1)
                .position(|&byte| byte == b'=')?
                + 1;
            let (name, value) = pair.as_bytes().split_at(at);
            Some((
                OsStr::from_bytes(name).to_owned(),
                OsStr::from_bytes(&value[1..]).to_owned(),
            ))
        });
        let env = env.collect();
        (!args.is_empty()).then_some(Words { folder, args, env })
    }
}

/// What a keeper starts programs with.
pub struct Host {
    /// Any: its gate is the others', too.
    pub program: Program,
    pub door: Door,
    pub mask: SigSet,
    pub descriptors: (u64, u64),
    /// What TMPDIR is within, if the sandbox has such a folder.
    pub tmp: Option<PathBuf>,
}

/// Starts what comes over `warden`, in threads, as long as this process lives.
pub fn serve(host: Host, warden: OwnedFd) {
    let host = std::sync::Arc::new(host);
    std::thread::spawn(move || {
        while let Some(entry) = Entry::receive(&warden) {
            let host = host.clone();
            // The program dies with the thread that starts it.
            std::thread::spawn(move || host.keep(entry));
        }
    });
}

impl Host {
    fn keep(&self, mut entry: Entry) {
        let talk = &entry.talk.as_raw_fd();
        let say = |message: &[u8]| {
            let _ = send(*talk, message, MsgFlags::MSG_NOSIGNAL);
        };
        let words = Words::read(&mut entry.words);
        let child = words.map(|words| self.start(words, &entry.standard));
        match child {
            Some(Ok(child)) => {
                // Its ends are the program's alone: a pipe's reader sees the end with it.
                let [input, output, error] = entry.standard;
                drop((input, output, error));
                say(&[STATUS, accompany(child, &entry.talk)]);
            }
            Some(Err(why)) => say(&[&[FAILED], why.to_string().as_bytes()].concat()),
            None => say(&[&[FAILED], &b"its words did not come through"[..]].concat()),
        }
    }

    fn start(&self, words: Words, standard: &[OwnedFd; 3]) -> Result<Child> {
        let (ours, theirs) = super::pair()?;
        let program = self.program.beside(words.args);
        let dress = |command: &mut Command| -> std::io::Result<()> {
            let [input, output, error] = standard;
            command.stdin(input.try_clone()?);
            command.stdout(output.try_clone()?);
            command.stderr(error.try_clone()?);
            command.current_dir(&words.folder);
            command.env_clear().envs(words.env);
            if let Some(tmp) = &self.tmp {
                command.env("TMPDIR", tmp);
            }
            leaf::own_session(command);
            Ok(())
        };
        let child = program.spawn_within(&theirs, self.mask, self.descriptors, dress)?;
        drop(theirs);
        self.door.admit(ours, child.id() as i32);
        Ok(child)
    }
}

/// Until it has ended: its status as a shell has it.
fn accompany(mut child: Child, talk: &OwnedFd) -> u8 {
    let pid = rustix::process::Pid::from_raw(child.id() as i32);
    let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return child.wait().map_or(255, shell_status);
    };
    let mut is_heard = true;
    loop {
        let mut fds = [
            PollFd::new(process.as_fd(), PollFlags::POLLIN),
            PollFd::new(talk.as_fd(), PollFlags::POLLIN),
        ];
        let count = if is_heard { 2 } else { 1 };
        if poll(&mut fds[..count], PollTimeout::NONE).is_err() {
            continue;
        }
        if fds[0].any() == Some(true) {
            return child.wait().map_or(255, shell_status);
        }
        let mut signal = [0];
        let got = recv(talk.as_raw_fd(), &mut signal, MsgFlags::MSG_DONTWAIT);
        let signal = match got {
            Ok(1) => rustix::process::Signal::from_named_raw(signal[0].into()),
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => None,
            // The caller has ended, and the program with it.
            _ => {
                is_heard = false;
                Some(rustix::process::Signal::KILL)
            }
        };
        if let Some(signal) = signal {
            let _ = pidfd_send_signal(&process, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_through() {
        let words = Words {
            folder: "/a b".into(),
            args: vec!["x".into(), OsString::new(), "y\nz".into()],
            env: vec![
                ("A".into(), "1=2".into()),
                ("B".into(), OsString::from_vec(vec![0xff])),
            ],
        };
        let mut file = words.write().unwrap();
        assert_eq!(Words::read(&mut file), Some(words));
        let mut empty = Words::of_caller(&[]).write().unwrap();
        assert_eq!(Words::read(&mut empty), None);
    }
}
