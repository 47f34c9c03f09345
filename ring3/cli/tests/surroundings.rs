// SPDX-License-Identifier: GPL-2.0
//! What the command was started with: a standard error that takes nothing, signals that are
//! ignored, a terminal that goes away. Needs `make image gate`.

mod place;

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::process::Stdio;

use nix::sys::socket::{
    connect, send, socket, AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr,
};

use place::{finish, Place};

fn full() -> Stdio {
    let full = File::options().write(true).open("/dev/full");
    full.expect("/dev/full").into()
}

/// Says something to a node's socket that no gate would: its keeper warns of it.
fn talk_nonsense(place: &Place, node: &str) {
    let path = place.dir.path().join(format!("ring3/nodes/{node}/join"));
    let socket = socket(
        AddressFamily::Unix,
        SockType::SeqPacket,
        SockFlag::empty(),
        None,
    )
    .expect("a socket");
    let address = UnixAddr::new(&path).expect("an address");
    connect(socket.as_raw_fd(), &address).expect("the node listens");
    send(socket.as_raw_fd(), b"?", MsgFlags::empty()).expect("send");
    // Its answer: by then it has read.
    let mut answer = [0; 8];
    let _ = nix::sys::socket::recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty());
}

/// A warning that cannot be written used to end the node's thread, and the program with it.
#[test]
fn nobody_takes_a_warning() {
    let place = Place::new();
    let mut child = place
        .command(&["run", "-n", "a", "--", "sh", "-c", "echo; read x; exit 7"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(full())
        .spawn()
        .expect("it starts");
    let mut byte = [0];
    let stdout = child.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut byte).expect("the program is there");
    talk_nonsense(&place, "a");
    talk_nonsense(&place, "a");
    drop(child.stdin.take());
    assert_eq!(finish(child).status.code(), Some(7));
}

#[test]
fn nobody_takes_an_error() {
    let place = Place::new();
    for (args, status) in [
        (&["run", "--", "nosuchprogram"][..], 127),
        (&["exec", "nosuchnode", "--", "true"], 125),
        (&["down", "nosuchnode"], 1),
        (&["kunit", "--from", "/dev/null"], 1),
        (&["completion", "bash"], 0),
    ] {
        let output = place
            .command(args)
            .stdout(full())
            .stderr(full())
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(status), "{args:?}");
    }
}
