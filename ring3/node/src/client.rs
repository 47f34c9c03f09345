// SPDX-License-Identifier: GPL-2.0
//! Talking to nodes that run, for the `ring3` command.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::control::{read_line, write_line, Reply, Request, PATIENCE};
use rustix::net::sockopt::socket_peercred;

pub use crate::control::{Calls, Log, Memory, Port, Proc, State, Status};
use crate::error::{Error, Result};
use crate::runtime::Folder;

/// How long a list waits for one node.
const LIST_PATIENCE: Duration = Duration::from_secs(2);
/// How long `down` waits for the node's process to clean up.
const DOWN_PATIENCE: Duration = Duration::from_secs(10);

/// One of this user's nodes.
#[derive(Debug)]
pub struct Client {
    folder: Folder,
    name: String,
}

/// This user's nodes: what each says of itself, or why it does not answer. They are asked at
/// the same time.
pub fn list() -> Result<Vec<(String, Result<Status>)>> {
    let folder = Folder::open()?;
    let names = folder.nodes()?;
    let ask = |name: &str| {
        let node = Client::find(folder.clone(), name)?;
        match node.ask_within(&Request::Status, LIST_PATIENCE)? {
            Reply::Status(status) => Ok(*status),
            other => Err(node.unexpected(other)),
        }
    };
    let statuses: Vec<Result<Status>> = std::thread::scope(|scope| {
        let threads: Vec<_> = names
            .iter()
            .map(|name| scope.spawn(move || ask(name)))
            .collect();
        threads
            .into_iter()
            .zip(&names)
            .map(|(thread, name)| {
                thread.join().unwrap_or_else(|_| {
                    Err(Error::NoAnswer {
                        name: name.clone(),
                        why: "asking it failed".into(),
                    })
                })
            })
            .collect()
    });
    // One that went down just now is not one of them.
    Ok(names
        .into_iter()
        .zip(statuses)
        .filter(|(_, status)| !matches!(status, Err(Error::NoSuchNode { .. })))
        .collect())
}

impl Client {
    /// The node called `name`, or [`Error::NoSuchNode`].
    pub fn open(name: &str) -> Result<Client> {
        Client::find(Folder::open()?, name)
    }

    /// The same in a runtime folder that is known already.
    pub fn find(folder: Folder, name: &str) -> Result<Client> {
        if !folder.is_running(name) {
            return Err(Error::NoSuchNode {
                name: name.to_owned(),
            });
        }
        Ok(Client {
            folder,
            name: name.to_owned(),
        })
    }

    /// What to put into the environment variable `RING3_NODE` for a program to join.
    pub fn join_path(&self) -> PathBuf {
        self.folder.join_path(&self.name)
    }

    pub fn status(&self) -> Result<Status> {
        match self.ask(&Request::Status)? {
            Reply::Status(status) => Ok(*status),
            other => Err(self.unexpected(other)),
        }
    }

    /// Kernel log from record `from` on (0: all that there is).
    pub fn log(&self, from: u64) -> Result<Log> {
        match self.ask(&Request::Log { from })? {
            Reply::Log(log) => Ok(log),
            other => Err(self.unexpected(other)),
        }
    }

    /// Takes the node down and returns when nothing of it is left.
    pub fn down(&self) -> Result<()> {
        match self.ask(&Request::Down)? {
            Reply::Ok => {}
            other => return Err(self.unexpected(other)),
        }
        let start = Instant::now();
        while self.folder.is_running(&self.name) {
            if start.elapsed() > DOWN_PATIENCE {
                return Err(self.no_answer("it was told to go down and has not"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn ask(&self, request: &Request) -> Result<Reply> {
        self.ask_within(request, PATIENCE)
    }

    fn ask_within(&self, request: &Request, patience: Duration) -> Result<Reply> {
        let stream = UnixStream::connect(self.folder.control_path(&self.name))
            .map_err(|error| self.no_answer(&error.to_string()))?;
        let exchange = || {
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            write_line(&stream, request)?;
            read_line(&stream)
        };
        exchange().map_err(|error: std::io::Error| match error.kind() {
            std::io::ErrorKind::WouldBlock => self.no_answer(&late(&stream, patience)),
            _ => self.no_answer(&error.to_string()),
        })
    }

    fn unexpected(&self, reply: Reply) -> Error {
        let why = match reply {
            Reply::Error(why) => why,
            _ => "it answered another question: is it of another ring3 version?".to_owned(),
        };
        Error::Refused {
            name: self.name.clone(),
            why,
        }
    }

    fn no_answer(&self, why: &str) -> Error {
        Error::NoAnswer {
            name: self.name.clone(),
            why: why.to_owned(),
        }
    }
}

/// Why there is no answer in time, and how to be rid of the node all the same.
fn late(stream: &UnixStream, patience: Duration) -> String {
    let seconds = patience.as_secs();
    match socket_peercred(stream) {
        Ok(peer) => format!(
            "nothing within {seconds} s; is it stopped? `kill {}` ends the node",
            peer.pid.as_raw_nonzero()
        ),
        Err(_) => format!("nothing within {seconds} s"),
    }
}
