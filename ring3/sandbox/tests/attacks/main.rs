// SPDX-License-Identifier: GPL-2.0
//! Attacks from a confined thread of this process: each makes the host's call itself, and is seen to succeed
//! without the wall first.

mod files;
mod floods;
mod list;
mod modes;
mod processes;
mod sockets;
mod watches;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ring3_sandbox::behalf::Reach;
use ring3_sandbox::{confine, enclose, notify, Files};

/// The thread that answers.
const WARDEN: &str = "warden";

/// Does it in a thread that is confined, with this folder to write to and a warden for it.
fn inside<T: Send>(write: &Path, attack: impl FnOnce() -> T + Send) -> T {
    let wardens = tempfile::tempdir().unwrap();
    inside_with(write, &wardens.path().join("unix"), attack)
}

/// The same. `stages`: where the warden binds sockets.
fn inside_with<T: Send>(write: &Path, stages: &Path, attack: impl FnOnce() -> T + Send) -> T {
    let files = Files {
        read: vec!["/usr".into()],
        write: vec![write.to_owned()],
    };
    let place = fs::File::open(write).unwrap().into();
    let reach = Reach::new(vec![place]).with_sockets(stages.to_owned());
    std::thread::scope(|scope| {
        let (hand, take) = std::sync::mpsc::channel();
        let body = move || {
            // As the reaper does, above the keeper.
            enclose().unwrap();
            hand.send(confine(&files).unwrap()).unwrap();
            drop(hand);
            attack()
        };
        let confined = scope.spawn(body);
        let questions = take.recv().unwrap();
        let warden = std::thread::Builder::new().name(WARDEN.into());
        let serve = move || notify::serve(&questions, &reach).unwrap();
        warden.spawn_scoped(scope, serve).unwrap();
        confined.join().unwrap()
    })
}

fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

/// The same attack succeeds outside and fails inside with this error.
fn fails_inside<T>(errno_wanted: i32, attack: impl Fn() -> io::Result<T> + Sync) {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(errno(attack()), None, "it has to succeed outside");
    let got = inside(folder.path(), || errno(attack()));
    assert_eq!(got, Some(errno_wanted));
}

fn set_mode(path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// The error, if there is one.
#[allow(unsafe_code)]
fn raw(call: libc::c_long, [a, b, c, d]: [u64; 4]) -> Option<i32> {
    // SAFETY: calls that read a path or a structure of the caller's, and write no memory. What they open stays open.
    let done = unsafe { libc::syscall(call, a, b, c, d) };
    errno(if done < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    })
}
