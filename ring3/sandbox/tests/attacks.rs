// SPDX-License-Identifier: GPL-2.0
//! Attacks from a confined thread of this process: each makes the host's call itself, and is seen to succeed
//! without the wall first.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use ring3_sandbox::arguments::{Word, FCNTLS, IOCTLS, PRCTLS};
use ring3_sandbox::behalf::Reach;
use ring3_sandbox::list::{Call, ABSENT, ALLOWED, BEHALF, CHECKED, OWN, REFUSED, TABLE, WITHOUT};
use ring3_sandbox::{confine, enclose, notify, Error, Files};
use rustix::process::{getrlimit, kill_process, prlimit, Pid, Resource, Signal};
use rustix::thread::sched_setaffinity;

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
        scope.spawn(move || notify::serve(&questions, &reach).unwrap());
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

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
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

#[test]
fn the_hosts_network_is_not_there() {
    use rustix::net::{socket, AddressFamily as Family, SocketType as Kind};
    for (family, kind) in [
        (Family::INET, Kind::STREAM),
        (Family::INET6, Kind::DGRAM),
        (Family::NETLINK, Kind::RAW),
        (Family::UNIX, Kind::DGRAM),
    ] {
        fails_inside(libc::ENOSYS, || Ok(socket(family, kind, None)?));
    }
    let folder = tempfile::tempdir().unwrap();
    inside(folder.path(), || UnixStream::pair().map(drop)).unwrap();
    assert!(inside(folder.path(), || UnixDatagram::pair().is_err()));
}

#[test]
fn servers_outside_are_not_reached() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server");
    let _server = UnixListener::bind(&path).unwrap();
    fails_inside(libc::ECONNREFUSED, || UnixStream::connect(&path));
    let name = format!("ring3-attacks-{}", std::process::id());
    let name = SocketAddr::from_abstract_name(name).unwrap();
    let _server = UnixListener::bind_addr(&name).unwrap();
    fails_inside(libc::ECONNREFUSED, || UnixStream::connect_addr(&name));
}

/// Also where its socket lies in a folder that the sandbox may write to, whatever is done with its name.
#[test]
fn a_server_in_its_folder_is_not_reached() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let server = UnixListener::bind(at("server")).unwrap();
    let own = inside(folder.path(), || {
        let connect = |name: &str| errno(UnixStream::connect(at(name)).map(drop));
        assert_eq!(connect("server"), Some(libc::ECONNREFUSED));
        let listener = UnixListener::bind(at("own")).unwrap();
        std::os::unix::fs::symlink("server", at("link")).unwrap();
        fs::hard_link(at("server"), at("hard")).unwrap();
        for name in ["link", "hard"] {
            assert_eq!(connect(name), Some(libc::ECONNREFUSED));
        }
        assert_eq!(connect("own"), None);
        fs::rename(at("own"), at("moved")).unwrap();
        fs::rename(at("hard"), at("own")).unwrap();
        assert_eq!(connect("own"), Some(libc::ECONNREFUSED));
        assert_eq!(connect("moved"), None);
        fs::hard_link(at("moved"), at("hard")).unwrap();
        assert_eq!(connect("hard"), None);
        // No stage has a name that a path leads to, and none is bound where one is.
        let taken = UnixListener::bind(at("server"));
        assert_eq!(errno(taken), Some(libc::EADDRINUSE));
        listener.set_nonblocking(true).unwrap();
        listener.incoming().take_while(|it| it.is_ok()).count()
    });
    assert_eq!(own, 3);
    // Nobody is led to theirs either.
    let theirs = UnixStream::connect(at("moved"));
    assert_eq!(errno(theirs), Some(libc::ECONNREFUSED));
    server.set_nonblocking(true).unwrap();
    assert_eq!(errno(server.accept()), Some(libc::EWOULDBLOCK));
}

/// The file of an own socket is swapped with that of a server outside, while it is made and while it is connected to.
#[test]
fn a_race_for_a_server_is_lost_by_whoever_swaps() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let server = UnixListener::bind(at("server")).unwrap();
    fs::hard_link(at("server"), at("kept")).unwrap();
    let (done, refused) = inside(folder.path(), || {
        let over = std::sync::atomic::AtomicBool::new(false);
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(relaxed) {
                    let exchange = rustix::fs::RenameFlags::EXCHANGE;
                    let (here, own, server) = (rustix::fs::CWD, at("own"), at("server"));
                    // There may be none at the moment.
                    let _ = rustix::fs::renameat_with(here, &own, here, &server, exchange);
                }
            });
            let (mut done, mut refused) = (0, 0);
            for _ in 0..300 {
                let listener = UnixListener::bind(at("own"));
                for _ in 0..5 {
                    match errno(UnixStream::connect(at("own"))) {
                        None => done += 1,
                        Some(_) => refused += 1,
                    }
                }
                drop(listener);
                // Either may be the server's, and the other thread goes on.
                for name in ["own", "server"] {
                    let _ = fs::remove_file(at(name));
                }
                let _ = fs::hard_link(at("kept"), at("server"));
            }
            over.store(true, relaxed);
            (done, refused)
        })
    });
    assert!(done > 0 && refused > 0, "{done} and {refused}");
    server.set_nonblocking(true).unwrap();
    assert_eq!(errno(server.accept()), Some(libc::EWOULDBLOCK));
}

#[test]
fn processes_of_a_sandbox_reach_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        SocketAddr::from_pathname(folder.path().join("own")).unwrap(),
        SocketAddr::from_abstract_name("own").unwrap(),
    ];
    inside(folder.path(), || {
        for name in &names {
            let listener = UnixListener::bind_addr(name).unwrap();
            assert_eq!(errno(UnixListener::bind_addr(name)), Some(libc::EADDRINUSE));
            let mut one = UnixStream::connect_addr(name).unwrap();
            let mut other = listener.accept().unwrap().0;
            one.write_all(b"x").unwrap();
            let mut byte = [0];
            other.read_exact(&mut byte).unwrap();
            assert_eq!(&byte, b"x");
        }
        // An abstract name is free with its socket, a path is not.
        let again = names.iter().map(UnixListener::bind_addr).map(errno);
        assert_eq!(again.collect::<Vec<_>>(), [Some(libc::EADDRINUSE), None]);
        fs::remove_file(folder.path().join("own")).unwrap();
        UnixListener::bind_addr(&names[0]).unwrap();
        // A name is given once, and not to the other kinds of sockets.
        let pair = UnixStream::pair().unwrap();
        let again = rustix::net::connect(
            &pair.0,
            &rustix::net::SocketAddrUnix::new_abstract_name(b"own").unwrap(),
        );
        assert!(again.is_err());
        let not_unix = fs::File::open("/usr").unwrap();
        let again = rustix::net::bind(&not_unix, &rustix::net::SocketAddrUnix::new("x").unwrap());
        assert_eq!(again, Err(rustix::io::Errno::NOTSOCK));
    });
}

/// More names than the warden has room for at once.
#[test]
fn names_are_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own");
    inside(folder.path(), || {
        for _ in 0..700 {
            drop(UnixListener::bind(&path).unwrap());
            fs::remove_file(&path).unwrap();
        }
        let many = (0..600).map(|n| UnixListener::bind(folder.path().join(n.to_string())));
        let many: Vec<_> = many.collect();
        let full = many.iter().filter(|it| it.is_err()).count();
        assert_eq!(full, 600 - 512);
        drop(many);
        UnixListener::bind(&path).unwrap();
    });
}

/// The file of a socket goes while the socket is bound: what the warden has bound goes as well, or it would fill the runtime folder's disk.
#[test]
fn a_name_that_goes_at_once_leaves_nothing() {
    let (folder, wardens) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, stages) = (folder.path().join("own"), wardens.path().join("unix"));
    let lost = inside_with(folder.path(), &stages, || {
        let over = std::sync::atomic::AtomicBool::new(false);
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(relaxed) {
                    let _ = fs::remove_file(&path);
                }
            });
            let is_lost = |_: &i32| errno(UnixListener::bind(&path)) == Some(libc::ENOENT);
            let lost = (0..3000).filter(is_lost).count();
            over.store(true, relaxed);
            lost
        })
    });
    assert!(lost > 2, "the race did not take place");
    // The last one may still be known.
    assert!(fs::read_dir(&stages).unwrap().count() <= 1, "{lost} lost");
}

/// A call that waits for its listener keeps no other waiting.
#[test]
fn a_full_queue_holds_up_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own");
    inside(folder.path(), || {
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        std::thread::scope(|scope| {
            let callers = [0; 8].map(|_| scope.spawn(|| UnixStream::connect(&path).map(drop)));
            // Those that wait do so in the end; until then this shows nothing, and does not fail.
            std::thread::sleep(std::time::Duration::from_millis(200));
            assert!(!callers.iter().all(|it| it.is_finished()));
            fs::write(folder.path().join("file"), "x").unwrap();
            set_mode(folder.path().join("file"), 0o640).unwrap();
            for _ in 0..callers.len() {
                listener.accept().unwrap();
            }
            for caller in callers {
                caller.join().unwrap().unwrap();
            }
        });
    });
}

#[test]
fn only_own_files_are_watched() {
    use rustix::fs::inotify::{add_watch, init, CreateFlags, WatchFlags};
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let watch = |path: &Path| -> io::Result<()> {
        let watch = init(CreateFlags::NONBLOCK)?;
        add_watch(&watch, path, WatchFlags::CREATE)?;
        fs::write(path.join("new"), "x")?;
        let mut bytes = [0; 1024];
        match rustix::io::read(&watch, &mut bytes)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    };
    fails_inside(libc::EPERM, || watch(outside.path()));
    inside(folder.path(), || watch(folder.path()).unwrap());
}

/// Linux counts instances and watches by user: one sandbox does not use up those of all of the user's programs.
#[test]
fn others_can_still_watch_files() {
    use rustix::fs::inotify::{add_watch, init, CreateFlags, WatchFlags};
    use rustix::io::Errno;
    let of_user = |what: &str| -> usize {
        let text = fs::read_to_string(format!("/proc/sys/fs/inotify/{what}"));
        text.unwrap().trim().parse().unwrap()
    };
    let most = of_user("max_user_instances") / 8;
    let watches_most = of_user("max_user_watches") / 8 / most;
    let folder = tempfile::tempdir().unwrap();
    let file = |n: usize| folder.path().join(n.to_string());
    (0..watches_most + 2).for_each(|n| drop(fs::File::create(file(n)).unwrap()));
    inside(folder.path(), || {
        let fill = || {
            let mut all = Vec::new();
            let why = loop {
                match init(CreateFlags::NONBLOCK) {
                    Ok(instance) if all.len() < 1000 => all.push(instance),
                    Ok(_) => return (all, None),
                    Err(why) => break why,
                }
            };
            (all, Some(why))
        };
        let (all, why) = fill();
        assert_eq!((all.len(), why), (most, Some(Errno::MFILE)));
        // Copies count once, and what is closed everywhere does not.
        let copy = all[0].try_clone().unwrap();
        drop(all);
        let (all, why) = fill();
        assert_eq!((all.len(), why), (most - 1, Some(Errno::MFILE)));
        drop(copy);
        let watch = |n: usize| add_watch(&all[0], file(n), WatchFlags::OPEN);
        let first = watch(0).unwrap();
        (1..watches_most).for_each(|n| assert!(watch(n).is_ok()));
        assert_eq!(watch(watches_most), Err(Errno::NOSPC));
        // One that is there already can be changed, and one that goes makes room for another.
        assert_eq!(watch(0), Ok(first));
        rustix::fs::inotify::remove_watch(&all[0], first).unwrap();
        assert!(watch(watches_most).is_ok());
        assert_eq!(watch(watches_most + 1), Err(Errno::NOSPC));
    });
}

/// A caller that is killed while it waits for room in a listener's queue takes nobody else's place.
#[test]
fn a_caller_that_has_gone_waits_no_more() {
    const CALLERS: &str = "
import socket, sys, threading
def call():
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
for n in range(80):
    threading.Thread(target=call, daemon=True).start()
threading.Event().wait(1)
";
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    inside(folder.path(), || {
        let full = UnixListener::bind(at("full")).unwrap();
        rustix::net::listen(&full, 0).unwrap();
        let _one = UnixStream::connect(at("full")).unwrap();
        let status = Command::new("/usr/bin/timeout")
            .args(["-s", "KILL", "10", "/usr/bin/python3", "-c", CALLERS])
            .arg(at("full"))
            .stderr(fs::File::create(at("errors")).unwrap())
            .status();
        assert!(status.unwrap().success());
        let other = UnixListener::bind(at("other")).unwrap();
        rustix::net::listen(&other, 0).unwrap();
        let _two = UnixStream::connect(at("other")).unwrap();
        let start = std::time::Instant::now();
        let is_soon = || start.elapsed() < std::time::Duration::from_secs(10);
        let wait = || loop {
            match errno(UnixStream::connect(at("other")).map(drop)) {
                Some(libc::EAGAIN) if is_soon() => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                done => return done,
            }
        };
        let third = std::thread::scope(|scope| {
            let waits = scope.spawn(wait);
            std::thread::sleep(std::time::Duration::from_millis(300));
            other.accept().unwrap();
            waits.join().unwrap()
        });
        assert_eq!(third, None);
    });
}

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

#[test]
fn a_path_that_is_not_there_is_an_error() {
    let files = Files {
        read: vec!["/no/such/path".into()],
        ..Files::default()
    };
    assert!(matches!(confine(&files), Err(Error::NoPath(_))));
}

/// What list.rs says of a call is what calls.tbl says of it, number included.
#[test]
fn lists_are_those_of_the_table() {
    let refused = |list: &'static [ring3_sandbox::list::Refused]| list.iter().map(|it| it.call);
    let asked = std::iter::once(OWN).chain(refused(BEHALF));
    let lists: [(&str, Vec<Call>); 6] = [
        ("pass", ALLOWED.to_vec()),
        ("some", CHECKED.iter().map(|it| it.call).collect()),
        ("refuse", refused(REFUSED).collect()),
        ("absent", refused(ABSENT).collect()),
        ("without", refused(WITHOUT).collect()),
        ("warden", asked.collect()),
    ];
    for (word, calls) in lists {
        let sorted = |calls: &mut dyn Iterator<Item = Call>| {
            let mut calls: Vec<_> = calls.map(|call| (call.nr, call.name)).collect();
            calls.sort_unstable();
            calls
        };
        let of_table = TABLE.iter().filter(|(_, it)| *it == word);
        assert_eq!(
            sorted(&mut calls.into_iter()),
            sorted(&mut of_table.map(|(call, _)| *call)),
            "{word}"
        );
    }
}

fn names() -> Vec<&'static str> {
    let allowed = ALLOWED.iter().map(|call| call.name);
    let checked = CHECKED.iter().map(|checked| checked.call.name);
    let refused = REFUSED
        .iter()
        .chain(ABSENT)
        .chain(WITHOUT)
        .chain(BEHALF)
        .map(|refused| refused.call.name);
    let asked = [OWN.name];
    allowed.chain(checked).chain(refused).chain(asked).collect()
}

#[test]
fn no_call_is_named_twice() {
    let mut names = names();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// The gate's own host calls are decided here, each of them.
#[test]
fn every_host_call_of_the_gate_is_named() {
    let gate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gate");
    let names = names();
    let mut found = 0;
    let mut folders = vec![gate];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry),
            }
        }
    }
    for entry in files {
        if !entry
            .path()
            .extension()
            .is_some_and(|it| it == "c" || it == "h")
        {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        for piece in text.split("host_syscall").skip(1) {
            let Some(call) = piece.get(1..).and_then(|it| it.strip_prefix("(__NR_")) else {
                continue;
            };
            let end = call.find([',', ')', ' ']).unwrap();
            found += 1;
            assert!(
                names.contains(&&call[..end]),
                "{}: {}",
                entry.path().display(),
                &call[..end]
            );
        }
    }
    assert!(
        found > 100,
        "only {found} host calls found: has the gate another way to make them?"
    );
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

/// Each number of these interfaces, on a file and on a terminal's and a socket's range: those named get through to the host, no
/// other does. Outside, the host says something else to all of them.
#[test]
fn no_other_command_or_option_is_taken() {
    const SWEPT: [(u32, u32); 10] = [
        (0, 0x100),
        (0x400, 0x500),
        (0x5400, 0x5500),
        (0x8900, 0x8a00),
        (0xb700, 0xb710),
        (0x4004_5400, 0x4004_5500),
        (0x8004_5400, 0x8004_5500),
        (0x4008_6600, 0x4008_6680),
        (0x8008_6600, 0x8008_6680),
        (0x5356_4d00, 0x5356_4e00),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "x").unwrap();
    let is_named = |words: &[Word], nr: u32| words.iter().any(|word| word.1 == nr);
    let swept = || SWEPT.iter().flat_map(|(from, to)| *from..*to);
    let wrong: Vec<String> = inside(folder.path(), || {
        let file = fs::File::open(&path).unwrap();
        let command = |nr: u32| absent(libc::SYS_ioctl, file.as_raw_fd() as u64, nr.into());
        let option = |nr: u32| absent(libc::SYS_prctl, nr.into(), u64::MAX);
        let commands = swept().chain(IOCTLS.iter().map(|word| word.1));
        let commands = commands.filter(|nr| command(*nr) == is_named(IOCTLS, *nr));
        let commands: Vec<_> = commands.map(|nr| format!("ioctl {nr:#x}")).collect();
        // With all flags, of which F_SETFL may not have O_ASYNC.
        let control = |nr: u32| absent(libc::SYS_fcntl, file.as_raw_fd() as u64, nr.into());
        let controls = swept().chain(FCNTLS.iter().map(|word| word.1));
        let controls = controls.filter(|nr| control(*nr) == is_named(FCNTLS, *nr));
        let controls = controls.map(|nr| format!("fcntl {nr:#x}"));
        // These would be carried out.
        let harmless = |nr: &u32| !is_named(PRCTLS, *nr);
        let options = swept().filter(harmless).filter(|nr| !option(*nr));
        let options = options.map(|nr| format!("prctl {nr:#x}"));
        commands
            .into_iter()
            .chain(controls)
            .chain(options)
            .collect()
    });
    assert_eq!(wrong, Vec::<String>::new());
}

/// Whether the host says that it has no such call, for these two arguments and none.
#[allow(unsafe_code)]
fn absent(call: libc::c_long, first: u64, second: u64) -> bool {
    // SAFETY: the second argument is a number, or an address that no memory has: nothing of this process is read or written.
    let done = unsafe { libc::syscall(call, first, second, u64::MAX, u64::MAX, u64::MAX) };
    done == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS)
}

/// The numbers are those of Linux's headers.
#[test]
fn commands_and_options_are_what_they_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = String::from(
        "#include <asm/ioctls.h>\n#include <asm/termbits.h>\n#include <linux/sockios.h>\n#include <linux/fs.h>\n\
         #include <linux/fiemap.h>\n#include <linux/nsfs.h>\n#include <linux/prctl.h>\n#include <linux/fcntl.h>\n\
         #if __has_include(<linux/eventpoll.h>)\n#include <linux/eventpoll.h>\n#endif\n",
    );
    // What older headers lack is not compared.
    for (name, nr) in IOCTLS.iter().chain(FCNTLS).chain(PRCTLS) {
        source += &format!(
            "#ifdef {name}\n_Static_assert((unsigned)({name}) == {nr:#x}u, \"{name}\");\n#endif\n"
        );
    }
    let file = folder.path().join("numbers.c");
    fs::write(&file, source).unwrap();
    let status = Command::new("cc")
        .args(["-fsyntax-only", "-x", "c"])
        .arg(&file)
        .status();
    assert!(status.expect("a C compiler").success());
}

/// `RING3_BLESS=1` writes the page.
#[test]
fn the_page_is_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/host-calls.md");
    let page = ring3_sandbox::list::page();
    if std::env::var_os("RING3_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let words = "run this test with RING3_BLESS=1 to write docs/host-calls.md anew";
    assert!(fs::read_to_string(&path).unwrap() == page, "{words}");
}
