// SPDX-License-Identifier: GPL-2.0
//! The host's network, and unix sockets, to which the warden gives names.

use std::fs;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{errno, fails_inside, inside, inside_with, set_mode};

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
            // On CPUs that others use, it may take more turns until the race takes place.
            let end = Instant::now() + Duration::from_secs(60);
            let (mut turns, mut lost) = (0, 0);
            while turns < 3000 || (lost <= 2 && Instant::now() < end) {
                turns += 1;
                let bound = errno(UnixListener::bind(&path));
                lost += i32::from(bound == Some(libc::ENOENT));
            }
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
            std::thread::sleep(Duration::from_millis(200));
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
        let start = Instant::now();
        let is_soon = || start.elapsed() < Duration::from_secs(10);
        let wait = || loop {
            match errno(UnixStream::connect(at("other")).map(drop)) {
                Some(libc::EAGAIN) if is_soon() => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                done => return done,
            }
        };
        let third = std::thread::scope(|scope| {
            let waits = scope.spawn(wait);
            std::thread::sleep(Duration::from_millis(300));
            other.accept().unwrap();
            waits.join().unwrap()
        });
        assert_eq!(third, None);
    });
}
