// SPDX-License-Identifier: GPL-2.0
//! Files outside: contents, and what a folder of its own has in it.

use std::fs;

use ring3_sandbox::{confine, Error, Files};

use crate::{fails_inside, inside, raw};

#[test]
fn files_outside_are_neither_read_nor_written() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    fails_inside(libc::EACCES, || fs::read(secret.path()));
    fails_inside(libc::EACCES, || fs::write(secret.path(), "x"));
    fails_inside(libc::EACCES, || fs::read("/etc/passwd"));
    fails_inside(libc::EACCES, || fs::read_dir("/proc").map(drop));
}

#[test]
fn files_inside_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let read = inside(folder.path(), || {
        fs::write(&path, "x")?;
        fs::read_dir("/usr")?;
        fs::read_to_string(&path)
    });
    assert_eq!(read.unwrap(), "x");
}

#[test]
fn files_move_from_folder_to_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    inside(folder.path(), || {
        fs::create_dir(&a)?;
        fs::create_dir(&b)?;
        fs::write(a.join("file"), "x")?;
        fs::rename(a.join("file"), b.join("file"))?;
        fs::hard_link(b.join("file"), a.join("file"))
    })
    .unwrap();
    assert!(a.join("file").exists());
}

/// Flags 3 of `open()`: for neither reading nor writing, of which Landlock has nothing to say.
#[test]
fn no_file_is_opened_for_neither() {
    let folder = tempfile::tempdir().unwrap();
    let secret = tempfile::NamedTempFile::new().unwrap();
    let path = std::ffi::CString::new(secret.path().to_str().unwrap()).unwrap();
    let (path, here) = (path.as_ptr() as u64, libc::AT_FDCWD as u64);
    let neither = (libc::O_WRONLY | libc::O_RDWR) as u64;
    let made = neither | libc::O_CREAT as u64;
    for way in [
        (libc::SYS_open, [path, neither, 0, 0]),
        (libc::SYS_open, [path, made, 0o600, 0]),
        (libc::SYS_openat, [here, path, neither, 0]),
        (libc::SYS_openat, [here, path, made, 0o600]),
    ] {
        assert_eq!(raw(way.0, way.1), None, "{way:?} outside");
        let got = inside(folder.path(), || raw(way.0, way.1));
        assert_eq!(got, Some(libc::ENOSYS), "{way:?} inside");
    }
}

#[test]
fn a_path_that_is_not_there_is_an_error() {
    let files = Files {
        read: vec!["/no/such/path".into()],
        ..Files::default()
    };
    assert!(matches!(confine(&files), Err(Error::NoPath(_))));
}

/// Whoever is told that a disk can't give room in advance writes, which the warden sees in time.
#[test]
fn no_disk_is_filled_at_once() {
    use rustix::fs::{fallocate, FallocateFlags as Flags};
    let file = tempfile::tempfile().unwrap();
    for flags in [Flags::empty(), Flags::KEEP_SIZE] {
        fails_inside(libc::EOPNOTSUPP, || Ok(fallocate(&file, flags, 0, 8192)?));
    }
    let hole = Flags::PUNCH_HOLE | Flags::KEEP_SIZE;
    let folder = tempfile::tempdir().unwrap();
    inside(folder.path(), || fallocate(&file, hole, 0, 4096)).unwrap();
}
