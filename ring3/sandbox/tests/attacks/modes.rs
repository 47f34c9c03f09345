// SPDX-License-Identifier: GPL-2.0
//! Modes, owners and other attributes of files: the warden sets them.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::{errno, fails_inside, inside, raw, set_mode};

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn modes_stay() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    let path = secret.path();
    fails_inside(libc::EPERM, || set_mode(path, 0o600));
    // By a descriptor that was passed on, and by its name in /proc.
    fails_inside(libc::EPERM, || {
        secret
            .as_file()
            .set_permissions(fs::Permissions::from_mode(0o600))
    });
    let fd = secret.as_raw_fd();
    fails_inside(libc::EPERM, || {
        set_mode(format!("/proc/self/fd/{fd}"), 0o600)
    });
    let by_number = format!("/proc/{}/fd/{fd}", std::process::id());
    fails_inside(libc::ELOOP, || set_mode(&by_number, 0o600));
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let own = || std::os::unix::fs::chown(path, Some(user.as_raw()), Some(group.as_raw()));
    fails_inside(libc::EPERM, own);
    let times = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
    fails_inside(libc::EPERM, || secret.as_file().set_times(times));
}

/// From a folder that may be written to, by links and `..`.
#[test]
fn no_way_leads_from_a_folder_to_the_modes_of_others() {
    let outer = tempfile::tempdir().unwrap();
    let secret = outer.path().join("secret");
    fs::write(&secret, "x").unwrap();
    set_mode(&secret, 0o640).unwrap();
    let folder = outer.path().join("given");
    fs::create_dir(&folder).unwrap();
    let link = folder.join("link");
    let ways = [
        link.clone(),
        folder.join("../secret"),
        folder.join("below/../../secret"),
        folder.join("up/secret"),
        folder.clone(),
    ];
    inside(&folder, || {
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        std::os::unix::fs::symlink("..", folder.join("up")).unwrap();
        fs::create_dir(folder.join("below")).unwrap();
        for way in &ways {
            assert_eq!(
                errno(set_mode(way, 0o777)),
                Some(libc::EPERM),
                "{}",
                way.display()
            );
        }
        assert!(fs::hard_link(&secret, folder.join("hard")).is_err());
        // There is nothing at null, and no end of a path.
        assert_eq!(raw_chmod(std::ptr::null()), Some(libc::EFAULT));
        let endless = vec![b'x'; 5000];
        assert_eq!(raw_chmod(endless.as_ptr()), Some(libc::ENAMETOOLONG));
    });
    assert_eq!(mode_of(&secret), 0o640);
    // What is used outside, of the same.
    for way in &ways {
        set_mode(way, 0o711).unwrap();
    }
    assert_eq!(mode_of(&secret), 0o711);
}

#[allow(unsafe_code)]
fn raw_chmod(path: *const u8) -> Option<i32> {
    // SAFETY: the call only reads, up to a NUL, and takes any address.
    let done = unsafe { libc::syscall(libc::SYS_chmod, path, 0o777) };
    errno(if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    })
}

/// A folder is swapped for a link that leads out, and back, as fast as can be, while its file's mode is set.
#[test]
fn a_race_for_a_mode_is_lost_by_whoever_swaps() {
    let outer = tempfile::tempdir().unwrap();
    let (outside, folder) = (outer.path().join("outside"), outer.path().join("given"));
    for place in [&outside, &folder, &folder.join("a")] {
        fs::create_dir(place).unwrap();
        fs::write(place.join("file"), "x").unwrap();
        set_mode(place.join("file"), 0o640).unwrap();
    }
    let (done, refused) = inside(&folder, || {
        let (a, b) = (folder.join("a"), folder.join("b"));
        std::os::unix::fs::symlink("../outside", &b).unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(relaxed) {
                    let exchange = rustix::fs::RenameFlags::EXCHANGE;
                    rustix::fs::renameat_with(rustix::fs::CWD, &a, rustix::fs::CWD, &b, exchange)
                        .unwrap();
                }
            });
            let (mut done, mut refused) = (0, 0);
            for _ in 0..5000 {
                match errno(set_mode(a.join("file"), 0o777)) {
                    None => done += 1,
                    Some(_) => refused += 1,
                }
            }
            over.store(true, relaxed);
            (done, refused)
        })
    });
    assert_eq!(mode_of(&outside.join("file")), 0o640);
    assert!(
        done > 100 && refused > 100,
        "{done} and {refused}: the race did not take place"
    );
}

/// A new file's mode has no set-user-ID either. It would stay when root, outside, fills the file: `... | tee log`.
#[test]
fn no_file_is_made_set_user_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = std::ffi::CString::new(folder.path().join("file").to_str().unwrap()).unwrap();
    let place = std::ffi::CString::new(folder.path().to_str().unwrap()).unwrap();
    let (path, place) = (path.as_ptr() as u64, place.as_ptr() as u64);
    let (here, fifo) = (libc::AT_FDCWD as u64, u64::from(libc::S_IFIFO));
    let made = (libc::O_CREAT | libc::O_RDWR) as u64;
    let unnamed = (libc::O_TMPFILE | libc::O_RDWR) as u64;
    let ways = |mode: u64| {
        [
            (libc::SYS_open, [path, made, mode, 0]),
            (libc::SYS_open, [place, unnamed, mode, 0]),
            (libc::SYS_openat, [here, path, made, mode]),
            (libc::SYS_openat, [here, place, unnamed, mode]),
            (libc::SYS_creat, [path, mode, 0, 0]),
            (libc::SYS_mknod, [path, fifo | mode, 0, 0]),
            (libc::SYS_mknodat, [here, path, fifo | mode, 0]),
        ]
    };
    let make = |(call, args): (libc::c_long, [u64; 4])| {
        let made = raw(call, args);
        let _ = fs::remove_file(folder.path().join("file"));
        made
    };
    for bits in [0o4000, 0o2000, 0o6000] {
        for way in ways(0o700 | bits) {
            assert_eq!(make(way), None, "{way:?} outside");
            let got = inside(folder.path(), || make(way));
            assert_eq!(got, Some(libc::ENOSYS), "{way:?} inside");
        }
    }
    inside(folder.path(), || {
        for way in ways(0o1700) {
            assert_eq!(make(way), None, "{way:?}");
        }
        // Without a new file there is no mode: the argument is whatever lies in the register.
        fs::write(folder.path().join("file"), "x").unwrap();
        let read = raw(libc::SYS_open, [path, libc::O_RDONLY as u64, u64::MAX, 0]);
        assert_eq!(read, None);
        let how = [made, 0o4700, 0];
        let args = [here, path, how.as_ptr() as u64, 24];
        assert_eq!(raw(libc::SYS_openat2, args), Some(libc::ENOSYS));
    });
}

/// As gunicorn's workers tell that they live. A descriptor to read is not enough, nor one of a file that has a name elsewhere.
#[test]
fn modes_of_files_without_a_name_are_the_programs() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = outside.path().join("secret");
    fs::write(&secret, "x").unwrap();
    let read_only = fs::File::open(&secret).unwrap();
    let named = fs::File::options().write(true).open(&secret).unwrap();
    let mode =
        |file: &fs::File, mode| errno(file.set_permissions(fs::Permissions::from_mode(mode)));
    inside(folder.path(), || {
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(mode(&file, 0o601), None);
        assert_eq!(
            file.metadata().unwrap().permissions().mode() & 0o7777,
            0o601
        );
        let now = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
        assert_eq!(errno(file.set_times(now)), None);
        for opens in [0o4601, 0o666, 0o620] {
            assert_eq!(mode(&file, opens), Some(libc::EPERM));
        }
        assert_eq!(mode(&named, 0o601), Some(libc::EPERM));
    });
    fs::remove_file(&secret).unwrap();
    inside(folder.path(), || {
        assert_eq!(mode(&read_only, 0o601), Some(libc::EPERM));
    });
}

/// One descriptor is now a file without a name that may only be read, now one to write to.
#[test]
fn a_race_for_a_file_without_a_name_is_lost_by_whoever_swaps() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = outside.path().join("secret");
    fs::write(&secret, "x").unwrap();
    set_mode(&secret, 0o640).unwrap();
    let read_only = fs::File::open(&secret).unwrap();
    fs::remove_file(&secret).unwrap();
    let done = inside(folder.path(), || {
        let path = folder.path().join("file");
        let own = fs::File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let mut swapped = std::os::fd::OwnedFd::from(own.try_clone().unwrap());
        let fd = swapped.as_raw_fd();
        let over = std::sync::atomic::AtomicBool::new(false);
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(relaxed) {
                    rustix::io::dup2(&read_only, &mut swapped).unwrap();
                    rustix::io::dup2(&own, &mut swapped).unwrap();
                }
            });
            let change = |_: &i32| raw(libc::SYS_fchmod, [fd as u64, 0o600, 0, 0]).is_none();
            let done = (0..5000).filter(change).count();
            over.store(true, relaxed);
            done
        })
    });
    assert!(
        done > 0 && done < 5000,
        "{done}: the race did not take place"
    );
    let mode = read_only.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
}

/// What a program may write is its own, attributes included.
#[test]
fn attributes_of_what_may_be_written_are_the_programs() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 5000);
    inside(folder.path(), || {
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        set_mode(&file, 0o751).unwrap();
        assert_eq!(mode_of(&file), 0o751);
        set_mode(&link, 0o444).unwrap();
        assert_eq!(mode_of(&file), 0o444);
        let open = fs::File::open(&file).unwrap();
        open.set_permissions(fs::Permissions::from_mode(0o640))
            .unwrap();
        assert_eq!(mode_of(&file), 0o640);
        set_mode(format!("/proc/self/fd/{}", open.as_raw_fd()), 0o604).unwrap();
        assert_eq!(mode_of(&file), 0o604);
        open.set_times(fs::FileTimes::new().set_modified(old))
            .unwrap();
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), old);
        let stat = fs::metadata(&file).unwrap();
        std::os::unix::fs::chown(&file, Some(stat.uid()), Some(stat.gid())).unwrap();
        let other = errno(std::os::unix::fs::chown(&file, Some(stat.uid() + 1), None));
        assert_eq!(other, Some(libc::EPERM));
        // Nobody else gets this user's rights by it.
        for mode in [0o4755, 0o2755] {
            assert_eq!(errno(set_mode(&file, mode)), Some(libc::EPERM));
        }
        assert_eq!(
            errno(set_mode(folder.path().join("none"), 0o600)),
            Some(libc::ENOENT)
        );
        rustix::fs::mknodat(
            rustix::fs::CWD,
            folder.path().join("fifo"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        for kind in [
            rustix::fs::FileType::Socket,
            rustix::fs::FileType::CharacterDevice,
        ] {
            let made = rustix::fs::mknodat(
                rustix::fs::CWD,
                folder.path().join("node"),
                kind,
                0o600.into(),
                0,
            );
            assert_eq!(made, Err(rustix::io::Errno::NOSYS));
        }
    });
    fails_inside(libc::EACCES, || {
        let fifo = std::env::temp_dir().join(format!("ring3-attack-fifo-{}", std::process::id()));
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        );
        let _ = fs::remove_file(&fifo);
        Ok(made?)
    });
}
