// SPDX-License-Identifier: GPL-2.0
//! Processes outside, and programs that are executed inside.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{getrlimit, kill_process, prlimit, Pid, Resource, Signal};
use rustix::thread::sched_setaffinity;

use crate::{fails_inside, inside};

#[test]
fn processes_outside_are_left_alone() {
    let mut sleep = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&sleep);
    fails_inside(libc::EPERM, || Ok(kill_process(pid, Signal::CONT)?));
    let cpus = rustix::thread::sched_getaffinity(None).unwrap();
    fails_inside(libc::ENOSYS, || Ok(sched_setaffinity(Some(pid), &cpus)?));
    let limit = getrlimit(Resource::Core);
    fails_inside(libc::ENOSYS, || {
        Ok(prlimit(Some(pid), Resource::Core, limit)?)
    });
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}

#[test]
fn the_wall_goes_with_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let secret = tempfile::NamedTempFile::new().unwrap();
    let reads = |path: &Path| {
        let status = Command::new("/usr/bin/cat")
            .arg(path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.map(|status| status.success())
    };
    assert!(reads(secret.path()).unwrap());
    assert!(!inside(folder.path(), || reads(secret.path()).unwrap_or(false)));
}
