// SPDX-License-Identifier: GPL-2.0
//! Bytes between two connections, both ways, until both ways have ended.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, TcpStream};

/// One read's worth: what a node's receive queue typically hands out at once.
const CHUNK: usize = 64 << 10;

/// Until the end of `from`, or until nobody takes what it says.
pub fn one_way(mut from: impl Read, mut to: impl Write) -> Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let len = match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(len) => len,
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(why) => return Err(why),
        };
        to.write_all(&chunk[..len])?;
        to.flush()?;
    }
}

/// Passes each end of file on, so that either side may end before the other.
pub fn both_ways(left: &TcpStream, right: &TcpStream) {
    std::thread::scope(|scope| {
        scope.spawn(|| half(left, right));
        half(right, left);
    });
}

fn half(from: &TcpStream, to: &TcpStream) {
    let done = match one_way(from, to) {
        Ok(()) => to.shutdown(Shutdown::Write),
        // The other way has no use any more either.
        Err(_) => to
            .shutdown(Shutdown::Both)
            .and(from.shutdown(Shutdown::Both)),
    };
    // The peer may have gone already.
    drop(done);
}
