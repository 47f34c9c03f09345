// SPDX-License-Identifier: GPL-2.0
//! A connection's half away from the node that clients are on: a socket of the host's, or of another node.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;
use rustix::net::{sockopt, RecvFlags, SendFlags, Shutdown};

#[derive(Debug)]
pub enum Far {
    Host(OwnedFd),
    Node(Rc<RefCell<Task>>, Fd),
}

impl From<OwnedFd> for Far {
    fn from(socket: OwnedFd) -> Far {
        Far::Host(socket)
    }
}

impl Far {
    /// `flags`: 0, or MSG_PEEK.
    pub fn recv(&self, data: &mut [u8], flags: i32) -> Result<usize, Errno> {
        match self {
            Far::Host(socket) => {
                let flags = RecvFlags::from_bits_retain(flags as u32) | RecvFlags::DONTWAIT;
                Ok(rustix::net::recv(socket, data, flags)?.0)
            }
            Far::Node(task, fd) => task.borrow_mut().recv_with(*fd, data, flags),
        }
    }

    pub fn send(&self, data: &[u8]) -> Result<usize, Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match self {
            Far::Host(socket) => Ok(rustix::net::send(socket, data, flags)?),
            Far::Node(task, fd) => task.borrow_mut().send(*fd, data),
        }
    }

    pub fn shut_down_writing(&self) -> Result<(), Errno> {
        match self {
            Far::Host(socket) => Ok(rustix::net::shutdown(socket, Shutdown::Write)?),
            Far::Node(task, fd) => task.borrow_mut().shut_down_writing(*fd),
        }
    }

    /// The error that waits, 0 if none does.
    pub fn take_error(&self) -> Result<i32, Errno> {
        match self {
            Far::Host(socket) => Ok(match sockopt::socket_error(socket)? {
                Ok(()) => 0,
                Err(why) => why.raw_os_error(),
            }),
            Far::Node(task, fd) => task.borrow_mut().take_error(*fd),
        }
    }

    /// Its end is a reset.
    pub fn reset_at_close(&self) {
        // Whatever fails here has gone already.
        match self {
            Far::Host(socket) => {
                let _ = sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO));
            }
            Far::Node(task, fd) => {
                let _ = task.borrow_mut().reset_at_close(*fd);
            }
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        if let Far::Node(task, fd) = self {
            let _ = task.borrow_mut().close(*fd);
        }
    }
}
