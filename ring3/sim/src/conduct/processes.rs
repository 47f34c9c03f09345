// SPDX-License-Identifier: GPL-2.0
//! The conductor's processes: how they are started, signalled, and waited for.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::Conductor;
use crate::error::{Error, Result};
use crate::spawn;
use crate::words::{nanos, say, End, Word};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

/// How often, and how long apart, to look whether all processes have ended in the end.
const END_LOOKS: u32 = 500;
const END_TURN: Duration = Duration::from_millis(2);

impl Conductor {
    /// The name of the simulated host on which a process runs.
    pub(super) fn host_of(&self, pid: Pid) -> Option<String> {
        let world = spawn::world_of(pid)?;
        let (host, _) = self.worlds.iter().find(|(_, all)| all.contains(&world))?;
        Some(self.plan.hosts[*host].name.clone())
    }

    /// Captures first, which have a turn yet to write what they have; then everything.
    pub(super) fn end_all(&mut self) {
        if !self.captures.is_empty() {
            std::thread::sleep(END_TURN);
        }
        for (host, pid) in std::mem::take(&mut self.captures) {
            let _ = kill(pid, Signal::SIGKILL);
            if let Ok(WaitStatus::Exited(..)) = waitpid(pid, None) {
                self.capture_failed(&host);
            }
        }
        let worlds: BTreeSet<PathBuf> = self.worlds.values().flatten().cloned().collect();
        // One that is being forked is seen at the next look. What is left then dies with pid 1.
        for _ in 0..END_LOOKS {
            for pid in spawn::processes_in(&worlds) {
                let _ = kill(pid, Signal::SIGKILL);
            }
            loop {
                match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                    Ok(WaitStatus::StillAlive) => break,
                    Err(nix::Error::ECHILD) => return,
                    _ => {}
                }
            }
            std::thread::sleep(END_TURN);
        }
    }

    pub(super) fn reap(&mut self) -> Result<()> {
        loop {
            let end = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, status)) => (pid, End::Exited(status)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, End::Signaled(signal as i32)),
                Ok(WaitStatus::StillAlive) | Err(nix::Error::ECHILD) => return Ok(()),
                Ok(_) | Err(nix::Error::EINTR) => continue,
                Err(why) => return Err(Error::host("wait for a process")(why)),
            };
            self.ended(end.0, end.1);
        }
    }

    fn capture_failed(&self, host: &str) {
        say(&Word::Failed {
            at: nanos(self.now()),
            what: spawn::capture_log(&self.data, host),
        });
    }

    pub(super) fn ended(&mut self, pid: Pid, end: End) {
        if let Some(i) = self.captures.iter().position(|(_, other)| *other == pid) {
            let (host, _) = self.captures.swap_remove(i);
            return self.capture_failed(&host);
        }
        let Some(process) = self.running.remove(&pid.as_raw()) else {
            return;
        };
        let host = self.plan.processes[process].host;
        if let Some(list) = self.started.get_mut(&host) {
            // What a crash ends is started again with its host, and nothing else.
            if end != End::Signaled(Signal::SIGKILL as i32) {
                list.retain(|other| *other != process);
            }
        }
        say(&Word::Ended {
            at: nanos(self.now()),
            process,
            end,
        });
    }

    pub(super) fn start(&mut self, process: usize) -> Result<()> {
        let plan = &self.plan.processes[process];
        let host = plan.host;
        let name = self.plan.hosts[host].name.clone();
        let again = *self
            .starts
            .entry(process)
            .and_modify(|n| *n += 1)
            .or_insert(0);
        let pid = self.inside(&name, |this| {
            spawn::program(
                &this.data,
                &this.plan.hosts[host],
                &this.plan.processes[process],
                again,
            )
        })?;
        self.worlds
            .entry(host)
            .or_default()
            .extend(spawn::world_of(pid));
        self.running.insert(pid.as_raw(), process);
        self.started.entry(host).or_default().push(process);
        say(&Word::Started {
            at: nanos(self.now()),
            process,
            pid: pid.as_raw(),
        });
        Ok(())
    }

    pub(super) fn signal(&self, process: usize, signal: i32) {
        for (pid, _) in self
            .running
            .iter()
            .filter(|(_, running)| **running == process)
        {
            // It may end just now.
            let _ = Signal::try_from(signal).and_then(|signal| kill(Pid::from_raw(*pid), signal));
        }
    }

    /// All that was started on the host, by us or by what we have started.
    pub(super) fn signal_host(&self, host: usize, signal: i32) {
        let Some(worlds) = self.worlds.get(&host) else {
            return;
        };
        for pid in spawn::processes_in(worlds) {
            let _ = Signal::try_from(signal).and_then(|signal| kill(pid, signal));
        }
    }
}
