// SPDX-License-Identifier: GPL-2.0
//! What an attacker's code can do inside of a gateway that serves. Each attack is seen to succeed before the wall.
#![allow(unsafe_code)]

use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
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

/// A file of a page, which is made before the wall.
fn memory() -> &'static OwnedFd {
    static MEMORY: OnceLock<OwnedFd> = OnceLock::new();
    MEMORY.get_or_init(|| {
        let file = rustix::fs::memfd_create("wall", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        file
    })
}

fn map_file(file: &OwnedFd, protection: libc::c_int, flags: libc::c_int) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let fd = file.as_raw_fd();
    // SAFETY: a new mapping where the kernel finds room, which nobody uses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, fd, 0) };
    match at {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Of shared memory that is mapped: with an old length of 0, mremap() makes one more.
fn second_mapping() -> io::Result<()> {
    static SHARED: OnceLock<usize> = OnceLock::new();
    let at = *SHARED.get_or_init(|| {
        let (flags, prot) = (libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::PROT_READ);
        // SAFETY: a new mapping where the kernel finds room, which nobody uses.
        unsafe { libc::mmap(std::ptr::null_mut(), 4096, prot, flags, -1, 0) as usize }
    });
    let at = at as *mut libc::c_void;
    // SAFETY: the mapping stays as it is; the new one is nobody's.
    match unsafe { libc::mremap(at, 0, 4096, libc::MREMAP_MAYMOVE) } {
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
    ("another protocol", || {
        Ok(rustix::net::socket(
            AddressFamily::INET,
            SocketType::DGRAM,
            Some(rustix::net::ipproto::UDPLITE),
        )
        .map(drop)?)
    }),
    ("an option that no stream needs", || {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        Ok(rustix::net::sockopt::set_ip_ttl(&socket, 1)?)
    }),
    ("a file's memory", || {
        let flags = libc::MAP_SHARED;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        map_file(memory(), protection, flags)
    }),
    ("a second mapping", second_mapping),
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

/// The fence of files holds for what starts behind it, so this has a process of its own, too.
#[test]
fn no_file_behind_the_fence() {
    let exe = std::env::current_exe().unwrap();
    let args = [
        "--ignored",
        "--exact",
        "fenced",
        "--nocapture",
        "--test-threads=1",
    ];
    let output = Command::new(exe).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{output:?}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "no_file_behind_the_fence runs it"]
fn fenced() {
    // Its list of system modules may name what a container's filter refuses: the call itself is asked for its version.
    const VERSION: libc::c_ulong = 1;
    // SAFETY: with this flag the call takes no memory and makes nothing.
    let version = unsafe {
        let none = std::ptr::null::<u8>();
        libc::syscall(libc::SYS_landlock_create_ruleset, none, 0usize, VERSION)
    };
    std::fs::read("/etc/passwd").unwrap();
    TcpListener::bind("127.0.0.1:0").unwrap();
    if !ring3_sandbox::fence().unwrap() {
        assert!(version < 1, "Landlock's version is {version}");
        return;
    }
    for path in ["/etc/passwd", "/proc/self/maps", "/dev/null"] {
        let why = std::fs::File::open(path).unwrap_err();
        assert_eq!(why.raw_os_error(), Some(libc::EACCES), "{path}");
    }
    TcpStream::connect("127.0.0.1:1").unwrap_err();
}
