// SPDX-License-Identifier: GPL-2.0
//! The host's listener of a process on the node: each connection has a thread.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::error::{Failure, Result};
use crate::say;

/// Connections at the same time; more wait in the listener's queue.
const CLIENTS_MAX: usize = 512;
/// Pause before the next accept after an error, most likely for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The function of a connection's thread.
pub trait Attend: Fn(TcpStream) -> std::io::Result<()> + Clone + Send + 'static {}
impl<F: Fn(TcpStream) -> std::io::Result<()> + Clone + Send + 'static> Attend for F {}

pub fn serve(listener: &TcpListener, node: &str, attend: impl Attend) -> Result<u8> {
    let seats = std::sync::Arc::new(());
    loop {
        if std::sync::Arc::strong_count(&seats) > CLIENTS_MAX {
            std::thread::sleep(PAUSE);
            continue;
        }
        let client = match listener.accept() {
            Ok((client, _)) => client,
            Err(why) if why.raw_os_error() == Some(libc::EMFILE) => {
                std::thread::sleep(PAUSE);
                continue;
            }
            Err(why) if why.kind() == std::io::ErrorKind::ConnectionAborted => continue,
            Err(why) => return Err(Failure::host("accept a connection")(why)),
        };
        let (seat, attend) = (seats.clone(), attend.clone());
        let started = std::thread::Builder::new().spawn(move || {
            // A client that says nonsense or goes away is its own affair.
            let _ = attend(client);
            drop(seat);
        });
        if let Err(why) = started {
            say::complain(format_args!(
                "node `{node}`: a connection was dropped: {why}"
            ));
        }
    }
}
