// SPDX-License-Identifier: GPL-2.0
//! What an attacker's code can do inside of a device that serves. Each attack is seen to succeed before the wall.
#![allow(unsafe_code)]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};
use rustix::net::{socket, AddressFamily, SendFlags, SocketType};
use rustix::process::{kill_process, prlimit, Pid, Resource, Rlimit, Signal};

/// The wall holds for all threads of a process, so the attacks have one of their own.
#[test]
fn attacks_fail() {
    let exe = std::env::current_exe().unwrap();
    let args = [
        "--ignored",
        "--exact",
        "inside",
        "--nocapture",
        "--test-threads=1",
    ];
    let output = Command::new(exe).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{output:?}");
    assert!(said.contains("1 passed"), "{said}");
}

/// What the attacks use, made before the wall.
struct Before {
    tcp: TcpListener,
    unconnected: OwnedFd,
    datagrams: UdpSocket,
    anybody: UdpSocket,
    /// On which virtual machines come.
    guests: UnixListener,
    path: PathBuf,
    folder: OwnedFd,
    memory: OwnedFd,
    parent: Pid,
    core: Rlimit,
    /// A page of data.
    page: usize,
}

fn before() -> &'static Before {
    static BEFORE: OnceLock<Before> = OnceLock::new();
    BEFORE.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("ring3-vhost-wall-{}", std::process::id()));
        let memory = rustix::fs::memfd_create("wall", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&memory, 4096).unwrap();
        Before {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            unconnected: socket(AddressFamily::INET, SocketType::STREAM, None).unwrap(),
            datagrams: UdpSocket::bind("127.0.0.1:0").unwrap(),
            anybody: UdpSocket::bind("127.0.0.1:0").unwrap(),
            guests: UnixListener::bind(&path).unwrap(),
            path,
            folder: rustix::fs::open("/", OFlags::DIRECTORY, Mode::empty()).unwrap(),
            memory,
            parent: rustix::process::getppid().unwrap(),
            core: rustix::process::getrlimit(Resource::Core),
            page: map(libc::PROT_READ | libc::PROT_WRITE, None).unwrap(),
        }
    })
}

/// A new mapping, of this file if there is one.
fn map(protection: libc::c_int, file: Option<&OwnedFd>) -> io::Result<usize> {
    let (flags, fd) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping where the kernel finds room, which nobody uses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, fd, 0) };
    match at {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(at as usize),
    }
}

fn protect(protection: libc::c_int) -> io::Result<()> {
    // SAFETY: a page that nobody uses.
    match unsafe { libc::mprotect(before().page as *mut libc::c_void, 4096, protection) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Raw calls: the attacker brings code of its own.
fn raw(nr: libc::c_long, args: [libc::c_long; 4]) -> io::Result<libc::c_long> {
    // SAFETY: the calls below are given no address but of static text, or none.
    match unsafe { libc::syscall(nr, args[0], args[1], args[2], args[3]) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// A process, which ends at once.
fn process() -> io::Result<()> {
    let child = raw(libc::SYS_clone, [libc::SIGCHLD.into(), 0, 0, 0])?;
    if child == 0 {
        // SAFETY: the child does nothing else.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: no status is asked for.
    unsafe { libc::waitpid(child as i32, std::ptr::null_mut(), 0) };
    Ok(())
}

type Attack = (&'static str, fn() -> io::Result<()>);

const ATTACKS: &[Attack] = &[
    ("read a file", || std::fs::read("/etc/passwd").map(drop)),
    ("read a file by a folder that is open", || {
        let folder = &before().folder;
        Ok(rustix::fs::openat(folder, "etc/passwd", OFlags::RDONLY, Mode::empty()).map(drop)?)
    }),
    ("read its own memory", || {
        std::fs::read("/proc/self/maps").map(drop)
    }),
    ("write a file", || std::fs::write("/dev/null", "x")),
    ("what a file is", || {
        std::fs::metadata("/etc/passwd").map(drop)
    }),
    ("run a program", || {
        Command::new("/bin/true").status().map(drop)
    }),
    ("make a process", process),
    ("make code", || {
        map(libc::PROT_READ | libc::PROT_EXEC, None).map(drop)
    }),
    ("make code of memory that is shared", || {
        map(libc::PROT_READ | libc::PROT_EXEC, Some(&before().memory)).map(drop)
    }),
    ("make code of data", || {
        protect(libc::PROT_READ | libc::PROT_EXEC)?;
        protect(libc::PROT_READ | libc::PROT_WRITE)
    }),
    ("a stream to anybody", || {
        TcpStream::connect(before().tcp.local_addr()?).map(drop)
    }),
    ("connect a socket that is there", || {
        let to = before().tcp.local_addr()?;
        Ok(rustix::net::connect(&before().unconnected, &to)?)
    }),
    ("a datagram to anybody", || {
        let to = before().anybody.local_addr()?;
        Ok(rustix::net::sendto(&before().datagrams, b"x", SendFlags::empty(), &to).map(drop)?)
    }),
    ("listen", || TcpListener::bind("127.0.0.1:0").map(drop)),
    ("a unix stream to anybody", || {
        UnixStream::connect(&before().path).map(drop)
    }),
    ("unix stream", || UnixStream::pair().map(drop)),
    ("unix datagrams", || UnixDatagram::unbound().map(drop)),
    ("netlink", || {
        Ok(socket(AddressFamily::NETLINK, SocketType::RAW, None).map(drop)?)
    }),
    // SIGCONT does nothing to one that runs.
    ("signal", || {
        Ok(kill_process(before().parent, Signal::CONT)?)
    }),
    ("limits of others", || {
        let limit = prlimit(Some(before().parent), Resource::Core, before().core);
        Ok(limit.map(drop)?)
    }),
    ("another's descriptors", || {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        raw(libc::SYS_pidfd_open, [own.into(), 0, 0, 0]).map(drop)
    }),
    ("anonymous files", || {
        let name = c"x".as_ptr() as libc::c_long;
        raw(libc::SYS_memfd_create, [name, 0, 0, 0]).map(drop)
    }),
    ("namespaces", || raw(libc::SYS_unshare, [0; 4]).map(drop)),
    ("another folder", || std::env::set_current_dir("/")),
];

#[test]
#[ignore = "attacks_fail runs it"]
fn inside() {
    let path = before().path.clone();
    // The virtual machine that has connected before the wall, and one that waits.
    let mut guest = UnixStream::connect(&path).unwrap();
    let (mut served, _) = before().guests.accept().unwrap();
    let waits = UnixStream::connect(&path).unwrap();
    for (name, attack) in ATTACKS {
        attack().unwrap_or_else(|why| panic!("{name} has to succeed outside: {why}"));
    }
    std::fs::remove_file(&path).unwrap();
    ring3_vhost::wall::raise().unwrap();
    for (name, attack) in ATTACKS {
        let why = attack().err().and_then(|why| why.raw_os_error());
        assert_eq!(why, Some(libc::EPERM), "{name}");
    }
    // What a device needs is there: messages, machines that come, threads, memory, eventfds.
    guest.write_all(b"hello").unwrap();
    let mut words = [0; 5];
    served.read_exact(&mut words).unwrap();
    assert_eq!(&words, b"hello");
    before().guests.accept().unwrap();
    drop(waits);
    std::thread::spawn(|| ()).join().unwrap();
    map(libc::PROT_READ | libc::PROT_WRITE, Some(&before().memory)).unwrap();
    raw(libc::SYS_eventfd2, [0, 0, 0, 0]).unwrap();
}
