// SPDX-License-Identifier: GPL-2.0
//! What an attacker's code can do inside of a gateway that serves. Each attack is seen to succeed before the wall.
#![allow(unsafe_code)]

use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::sync::OnceLock;

use rustix::net::{socket, AddressFamily, SocketType};
use rustix::process::{
    getppid, getrlimit, kill_process, prlimit, test_kill_process, Pid, Resource, Rlimit, Signal,
};

/// The wall holds for all threads of a process, so the attacks have one of their own.
#[test]
fn attacks_fail() {
    let exe = std::env::current_exe().unwrap();
    let output = Command::new(exe)
        .args([
            "--ignored",
            "--exact",
            "inside",
            "--nocapture",
            "--test-threads=1",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{output:?}");
    assert!(said.contains("1 passed"), "{said}");
}

fn map(protection: libc::c_int) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping where the kernel finds room, which nobody uses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
    match at {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The parent and its limit, which are asked for before the wall.
fn before() -> (Pid, Rlimit) {
    static BEFORE: OnceLock<(Pid, Rlimit)> = OnceLock::new();
    let ask = || (getppid().unwrap(), getrlimit(Resource::Core));
    *BEFORE.get_or_init(ask)
}

type Attack = (&'static str, fn() -> io::Result<()>);

const ATTACKS: &[Attack] = &[
    ("read a file", || std::fs::read("/etc/passwd").map(drop)),
    ("read its own memory", || {
        std::fs::read("/proc/self/maps").map(drop)
    }),
    ("write a file", || std::fs::write("/dev/null", "x")),
    ("run a program", || {
        Command::new("/bin/true").status().map(drop)
    }),
    ("make a thread", || {
        std::thread::Builder::new().spawn(|| ()).map(drop)
    }),
    ("make code", || map(libc::PROT_READ | libc::PROT_EXEC)),
    ("unix stream", || UnixStream::pair().map(drop)),
    ("unix datagrams", || UnixDatagram::unbound().map(drop)),
    ("netlink", || {
        Ok(socket(AddressFamily::NETLINK, SocketType::RAW, None).map(drop)?)
    }),
    ("listen", || TcpListener::bind("127.0.0.1:0").map(drop)),
    ("receive", || UdpSocket::bind("127.0.0.1:0").map(drop)),
    // SIGCONT does nothing to one that runs.
    ("signal", || Ok(kill_process(before().0, Signal::CONT)?)),
    ("limits of others", || {
        let (parent, core) = before();
        Ok(prlimit(Some(parent), Resource::Core, core).map(drop)?)
    }),
];

#[test]
#[ignore = "attacks_fail runs it"]
fn inside() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    for (name, attack) in ATTACKS {
        attack().unwrap_or_else(|why| panic!("{name} has to succeed outside: {why}"));
    }
    ring3_relay::wall::raise().unwrap();
    for (name, attack) in ATTACKS {
        let why = attack().err().and_then(|why| why.raw_os_error());
        assert_eq!(why, Some(libc::EPERM), "{name}");
    }
    // What a gateway needs is there.
    TcpStream::connect(address).unwrap();
    server.accept().unwrap();
    map(libc::PROT_READ | libc::PROT_WRITE).unwrap();
    test_kill_process(before().0).unwrap();
}
