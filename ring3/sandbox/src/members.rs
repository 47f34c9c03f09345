// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: is a process one of the sandbox's?
//!
//! All that is left behind in a sandbox becomes its reaper's child, so the parents of each of its processes lead to the reaper, and those of nobody
//! else do. A process number may become another's at any moment. So each process on the way is held by a descriptor of its folder in /proc, which never becomes
//! another's. When the reaper is found, each of them is asked for its parent once more: a process that still has the same parent had it
//! all the time, so no number on the way has become another's in between.

use std::fs::File;
use std::io::{Read, Result};
use std::os::fd::OwnedFd;

use rustix::fs::{openat, Mode, OFlags, CWD};

use crate::behalf::error;

/// Processes above one another. More are taken to be none.
const DEPTH_MAX: usize = 256;

/// The folder in /proc of this process, if it is below that one.
pub(crate) fn descendant(process: u32, above: u32) -> Result<OwnedFd> {
    descendant_if(process, above, || {})
}

/// `between`: called before the second look.
fn descendant_if(process: u32, above: u32, between: impl FnOnce()) -> Result<OwnedFd> {
    let mut held: Vec<(OwnedFd, u32)> = Vec::new();
    let mut at = process;
    while held.len() < DEPTH_MAX {
        let folder = folder(at)?;
        let parent = parent(&folder)?;
        held.push((folder, parent));
        if parent == above {
            between();
            return still(held);
        }
        if parent <= 1 {
            break;
        }
        at = parent;
    }
    Err(error(libc::EACCES))
}

fn still(mut held: Vec<(OwnedFd, u32)>) -> Result<OwnedFd> {
    for (folder, was) in &held {
        if parent(folder)? != *was {
            return Err(error(libc::EACCES));
        }
    }
    let (folder, _) = held.swap_remove(0);
    Ok(folder)
}

fn folder(process: u32) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(
        CWD,
        format!("/proc/{process}"),
        flags,
        Mode::empty(),
    )?)
}

/// "PID (NAME) STATE PPID ...", where the program chooses the name.
fn parent(folder: &OwnedFd) -> Result<u32> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut text = Vec::new();
    File::from(openat(folder, "stat", flags, Mode::empty())?).read_to_end(&mut text)?;
    let close = text.iter().rposition(|&byte| byte == b')');
    let rest = close.and_then(|at| std::str::from_utf8(&text[at + 1..]).ok());
    let parent = rest.and_then(|it| it.split_ascii_whitespace().nth(1)?.parse().ok());
    parent.ok_or_else(|| error(libc::EACCES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn who_is_below() {
        let own = std::process::id();
        let script = "sleep 60 & echo $!; wait";
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", script]).stdout(Stdio::piped()).spawn();
        let mut shell = shell.unwrap();
        let mut said = String::new();
        let output = shell.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut said).unwrap();
        let sleep: u32 = said.trim().parse().unwrap();
        for process in [shell.id(), sleep] {
            assert!(descendant(process, own).is_ok());
        }
        assert!(descendant(sleep, shell.id()).is_ok());
        for (process, above) in [(own, own), (1, own), (shell.id(), sleep), (own, sleep)] {
            let is_none = descendant(process, above).map_err(|why| why.raw_os_error());
            assert_eq!(is_none.err(), Some(Some(libc::EACCES)), "{process} {above}");
        }
        let folder = descendant(sleep, own).unwrap();
        let number = sleep.to_string();
        // Its parent ends between the looks: it is another's child.
        let another = descendant_if(sleep, own, || {
            shell.kill().unwrap();
            shell.wait().unwrap();
        });
        assert!(another.is_err());
        Command::new("kill").arg(&number).status().unwrap();
        // Whoever reaps it may take a while.
        for _ in 0..1000 {
            if parent(&folder).is_err() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        // It has ended, and whoever gets its number is another.
        assert!(parent(&folder).is_err());
        assert!(descendant(sleep, own).is_err());
    }
}
