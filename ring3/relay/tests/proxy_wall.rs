// SPDX-License-Identifier: GPL-2.0
//! What an attacker's code can do inside of a proxy's relay that serves. Each attack is seen to succeed before the wall.
#![allow(unsafe_code)]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::sync::OnceLock;

use ring3_relay::proxy::wall::Needs;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{socket, AddressFamily, SendAncillaryBuffer, SendFlags, SocketType};
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

/// What the attacks use, made before the wall: a listener, sockets that are not connected, a folder, another process.
struct Before {
    listener: TcpListener,
    unconnected: OwnedFd,
    fresh: OwnedFd,
    /// A flow's: connected, to another than the attack's.
    datagrams: UdpSocket,
    anybody: UdpSocket,
    folder: OwnedFd,
    parent: Pid,
    core: Rlimit,
}

fn before() -> &'static Before {
    static BEFORE: OnceLock<Before> = OnceLock::new();
    BEFORE.get_or_init(|| Before {
        listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        fresh: socket(AddressFamily::INET, SocketType::STREAM, None).unwrap(),
        unconnected: socket(AddressFamily::INET, SocketType::STREAM, None).unwrap(),
        datagrams: {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect("127.0.0.1:9").unwrap();
            socket
        },
        anybody: UdpSocket::bind("127.0.0.1:0").unwrap(),
        folder: rustix::fs::open("/", OFlags::DIRECTORY, Mode::empty()).unwrap(),
        parent: rustix::process::getppid().unwrap(),
        core: rustix::process::getrlimit(Resource::Core),
    })
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

/// Raw calls: the attacker brings code of its own.
fn raw(nr: libc::c_long, args: [libc::c_long; 4]) -> io::Result<()> {
    // SAFETY: the calls below are given no address but of static text, or none.
    match unsafe { libc::syscall(nr, args[0], args[1], args[2], args[3]) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
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
    ("make a thread", || {
        std::thread::Builder::new().spawn(|| ()).map(drop)
    }),
    ("make code", || map(libc::PROT_READ | libc::PROT_EXEC)),
    ("a stream to anybody", || {
        TcpStream::connect(before().listener.local_addr()?).map(drop)
    }),
    ("connect a socket that is there", || {
        let to = before().listener.local_addr()?;
        Ok(rustix::net::connect(&before().unconnected, &to)?)
    }),
    ("connect by sending", || {
        let to = before().listener.local_addr()?;
        let flags = SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);
        match rustix::net::sendto(&before().fresh, b"x", flags, &to) {
            // A host whose net.ipv4.tcp_fastopen does not allow it to anybody.
            Ok(_) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }),
    ("a datagram to anybody", || {
        let flags = SendFlags::empty();
        let to = before().anybody.local_addr()?;
        Ok(rustix::net::sendto(&before().datagrams, b"x", flags, &to).map(drop)?)
    }),
    ("a message to anybody", || {
        let to = before().anybody.local_addr()?;
        let (parts, flags) = ([io::IoSlice::new(b"x")], SendFlags::empty());
        let (socket, mut none) = (&before().datagrams, SendAncillaryBuffer::default());
        Ok(rustix::net::sendmsg_addr(socket, &to, &parts, &mut none, flags).map(drop)?)
    }),
    ("accept", || before().listener.accept().map(drop)),
    ("listen", || TcpListener::bind("127.0.0.1:0").map(drop)),
    ("datagrams", || UdpSocket::bind("127.0.0.1:0").map(drop)),
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
        raw(libc::SYS_pidfd_open, [own.into(), 0, 0, 0])
    }),
    ("anonymous files", || {
        raw(
            libc::SYS_memfd_create,
            [c"x".as_ptr() as libc::c_long, 0, 0, 0],
        )
    }),
    ("namespaces", || raw(libc::SYS_unshare, [0; 4])),
    ("another folder", || std::env::set_current_dir("/")),
];

#[test]
#[ignore = "attacks_fail runs it"]
fn inside() {
    // What the relay was given before: a socket to a target, and one end of its pair.
    let mut given = TcpStream::connect(before().listener.local_addr().unwrap()).unwrap();
    let (mut served, _) = before().listener.accept().unwrap();
    for (name, attack) in ATTACKS {
        // A connection that waits, for the attack that accepts.
        let waits = TcpStream::connect(before().listener.local_addr().unwrap());
        attack().unwrap_or_else(|why| panic!("{name} has to succeed outside: {why}"));
        drop(waits);
    }
    let (node, messages) = (false, false);
    ring3_relay::proxy::wall::raise(Needs { node, messages }).unwrap();
    for (name, attack) in ATTACKS {
        let why = attack().err().and_then(|why| why.raw_os_error());
        assert_eq!(why, Some(libc::EPERM), "{name}");
    }
    // What a relay needs is there: sockets that it has.
    let flags = rustix::net::SendFlags::NOSIGNAL;
    rustix::net::send(&given, b"hello", flags).unwrap();
    let mut words = [0; 5];
    rustix::net::recv(&served, &mut words[..], rustix::net::RecvFlags::empty()).unwrap();
    assert_eq!(&words, b"hello");
    served
        .write_all(b"x")
        .and_then(|()| given.read_exact(&mut words[..1]))
        .unwrap();
    assert!(given.as_raw_fd() >= 0);
    map(libc::PROT_READ | libc::PROT_WRITE).unwrap();
}
