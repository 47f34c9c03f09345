// SPDX-License-Identifier: GPL-2.0
//! `ring3 exec` of a sandboxed node: what is typed outside is started by the keeper within (ring3_node's enter.rs).
//!
//! ```text
//! keeper -> caller    'R': it listens
//! caller -> keeper    one message: standard input, output and error, and the words (descriptors)
//! keeper -> caller    'B': it has begun; or 'F' and why not
//! caller -> keeper    the number of a signal, each
//! keeper -> caller    'H': it has heard that; at last 'S' and the status
//! ```
//!
//! The keeper may be stopped, and its programs may have taken it over. So the caller waits for no word of it for ever but
//! the last, and gives it nothing before the first. A signal ends the caller before the program has begun, and later
//! where the keeper does not hear it.
//!
//! The program has a session of its own: its terminal, if it has one, is not its controlling one. When the caller ends, the
//! program is killed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{
    recv, recvmsg, send, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags,
};
use ring3_node::{outside, Door, Folder};
use rustix::process::{pidfd_open, pidfd_send_signal, PidfdFlags};

use super::environment::Environment;
use super::limits::OfProgram;
use super::words::Words;
use crate::error::{Failure, Result};
use crate::leaf;
use crate::program::Program;
use crate::signals::{shell_status, Event, Watch, ENDING};

const LISTENS: u8 = b'R';
const BEGUN: u8 = b'B';
const HEARD: u8 = b'H';
const STATUS: u8 = b'S';
const FAILED: u8 = b'F';
/// A failure's words are shorter.
const MESSAGE_MAX: usize = 4096;
/// In which a keeper starts a program, which takes it milliseconds, on a machine that is very busy.
const START_MAX: Duration = Duration::from_secs(30);
/// What a program that has a limit of its own is granted beyond that.
const GRACE: Duration = Duration::from_secs(10);
/// In which a keeper hears a signal; and how long the caller waits before a second one may end it.
const HEARD_MAX: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_secs(1);

/// In the sandbox of node `name`: the program's status. With a limit the program ends by itself in that time.
pub fn enter(name: &str, command: &[OsString], limit: Option<Duration>) -> Result<u8> {
    // Mistakes are reported before anything is asked for.
    Program::find(command)?;
    let words = Words::of_caller(command).write()?;
    let (talk, theirs) = super::pair()?;
    outside::ask(&Folder::open()?, name, &theirs)?;
    drop(theirs);
    let limit = limit.map(|limit| limit.saturating_add(GRACE));
    let caller = Caller {
        name,
        talk,
        words,
        limit,
        has_begun: false,
        deadline: Instant::now().checked_add(limit.unwrap_or(START_MAX)),
        unheard: None,
    };
    caller.wait(&Watch::start()?)
}

/// Whoever waits for a program in a sandbox.
struct Caller<'a> {
    name: &'a str,
    talk: OwnedFd,
    words: File,
    limit: Option<Duration>,
    has_begun: bool,
    deadline: Option<Instant>,
    /// The first signal to end that the keeper has not heard yet, and when it was sent.
    unheard: Option<(Signal, Instant)>,
}

impl Caller<'_> {
    fn wait(mut self, watch: &Watch) -> Result<u8> {
        loop {
            let late = self.unheard.map(|(_, since)| since + HEARD_MAX);
            let deadline = self.deadline.into_iter().chain(late).min();
            match watch.next(self.talk.as_fd(), deadline)? {
                Event::Late => return Err(self.silent(self.unheard.map(|it| it.0))),
                Event::Signal(signal) => self.pass_on(signal)?,
                Event::Readable => {
                    if let Some(status) = self.hear()? {
                        return Ok(status);
                    }
                }
            }
        }
    }

    fn pass_on(&mut self, signal: Signal) -> Result<()> {
        let ends = ENDING.contains(&signal) && !leaf::is_ignored(signal);
        let waits = self.unheard.is_some_and(|it| it.1.elapsed() >= AGAIN);
        if ends && (!self.has_begun || waits) {
            return Err(self.silent(Some(signal)));
        }
        if self.has_begun {
            if ends {
                self.unheard.get_or_insert((signal, Instant::now()));
            }
            say(&self.talk, &[signal as u8]);
        }
        Ok(())
    }

    /// One message of the keeper's: the status, if it is that.
    fn hear(&mut self) -> Result<Option<u8>> {
        let mut message = [0; MESSAGE_MAX];
        let len = recv(self.talk.as_raw_fd(), &mut message, MsgFlags::empty());
        let len = len.or_else(|why| match why {
            // It has closed its end before it has read all.
            Errno::ECONNRESET => Ok(0),
            why => Err(Failure::host("hear from the sandbox")(why.into())),
        })?;
        match message[..len] {
            [LISTENS] if !self.has_begun => self.give()?,
            [BEGUN] if !self.has_begun => {
                self.has_begun = true;
                let after = |time| Instant::now().checked_add(time);
                self.deadline = self.limit.and_then(after);
            }
            [HEARD] => self.unheard = None,
            [STATUS, status] => return Ok(Some(status)),
            [FAILED, ref words @ ..] => {
                // Whoever has taken the keeper over is not to speak to the terminal.
                let words = String::from_utf8_lossy(words).replace(char::is_control, "?");
                return Err(Failure::Child(words));
            }
            _ => {
                let name = self.name.to_owned();
                return Err(Failure::SandboxOver { name });
            }
        }
        Ok(None)
    }

    fn give(&self) -> Result<()> {
        let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let fds = [input.as_raw_fd(), output.as_raw_fd(), error.as_raw_fd()];
        let fds = [&fds[..], &[self.words.as_raw_fd()]].concat();
        let rights = [ControlMessage::ScmRights(&fds)];
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        let talk = self.talk.as_raw_fd();
        let sent = sendmsg::<()>(talk, &[IoSlice::new(b"e")], &rights, flags, None);
        match sent {
            // It has ended, which is heard next.
            Ok(_) | Err(Errno::EPIPE) => Ok(()),
            Err(why) => Err(Failure::host("give a program to the sandbox")(why.into())),
        }
    }

    fn silent(&self, signal: Option<Signal>) -> Failure {
        Failure::SandboxSilent {
            name: self.name.to_owned(),
            signal: signal.map(|signal| signal as u8),
        }
    }
}

/// What comes from a caller.
struct Given {
    standard: [OwnedFd; 3],
    words: File,
}

impl Given {
    /// `Ok(None)`: the caller has ended. An error: this process has no descriptor left for one of them.
    fn receive(talk: &OwnedFd) -> nix::Result<Option<Given>> {
        let mut byte = [0];
        let mut space = nix::cmsg_space!([RawFd; 4]);
        let mut parts = [IoSliceMut::new(&mut byte)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let got = recvmsg::<()>(talk.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        if got.bytes == 0 {
            return Ok(None);
        }
        let rights = got.cmsgs()?.filter_map(|message| match message {
            ControlMessageOwned::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let fds: Vec<OwnedFd> = rights.flatten().map(leaf::own).collect();
        let [input, output, error, words]: [OwnedFd; 4] =
            fds.try_into().map_err(|_| Errno::EMFILE)?;
        Ok(Some(Given {
            standard: [input, output, error],
            words: words.into(),
        }))
    }
}

/// What a keeper starts programs with.
pub struct Host {
    /// Any: its gate is the others', too.
    pub program: Program,
    pub door: Door,
    pub mask: SigSet,
    pub descriptors: (u64, u64),
    pub limits: OfProgram,
    pub environment: Environment,
}

/// Starts what comes over `warden`, in threads, as long as this process lives.
pub fn serve(host: Host, warden: OwnedFd) -> Result<()> {
    let host = std::sync::Arc::new(host);
    let body = move || {
        while let Some(talk) = outside::next_talk(&warden) {
            let host = host.clone();
            let talk = std::sync::Arc::new(talk);
            let theirs = talk.clone();
            // The program dies with the thread that starts it.
            let body = move || host.keep(&theirs);
            // The sandbox has as many processes and threads as it is let have.
            if let Err(why) = std::thread::Builder::new().spawn(body) {
                fail(&talk, &Failure::host("start a thread in the sandbox")(why));
            }
        }
    };
    let thread = std::thread::Builder::new().spawn(body);
    let thread = thread.map_err(Failure::host("start a thread in the sandbox"));
    thread.map(drop)
}

/// The far end may have gone; one that does not read is no reason to wait.
fn say(talk: &OwnedFd, message: &[u8]) {
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let _ = send(talk.as_raw_fd(), message, flags);
}

fn fail(talk: &OwnedFd, why: &Failure) {
    say(talk, &[&[FAILED], why.to_string().as_bytes()].concat());
}

impl Host {
    fn keep(&self, talk: &OwnedFd) {
        say(talk, &[LISTENS]);
        match self.begin(talk) {
            Ok(Some(child)) => {
                say(talk, &[BEGUN]);
                say(talk, &[STATUS, accompany(child, talk)]);
            }
            Ok(None) => {}
            Err(why) => fail(talk, &why),
        }
    }

    /// What the caller gives is closed here: a pipe's reader sees the end with the program's.
    fn begin(&self, talk: &OwnedFd) -> Result<Option<Child>> {
        let take = |why: nix::Error| Failure::host("take over what the caller gives")(why.into());
        let Some(mut given) = Given::receive(talk).map_err(take)? else {
            return Ok(None);
        };
        let words = Words::read(&mut given.words).ok_or(Errno::EBADMSG);
        let words = words.map_err(take)?;
        self.start(words, &given.standard).map(Some)
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
            let value = |name: &str| {
                let mut all = words.env.iter();
                let found = all.find(|(key, _)| *key == name);
                found.map(|(_, value)| value.clone())
            };
            let changes = self.environment.changes(value);
            command.env_clear().envs(words.env);
            for (name, value) in changes {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            self.limits.give(command);
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
            Ok(1) => {
                say(talk, &[HEARD]);
                rustix::process::Signal::from_named_raw(signal[0].into())
            }
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
