// SPDX-License-Identifier: GPL-2.0
//! The configuration and the addresses of its targets. A reload reads them in a thread of its own: a file may be slow, and a
//! resolver may be dead, while connections come and go.

use std::collections::HashMap;
use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

use ring3_config::proxy::To;
use ring3_config::ProxyConfig;

use crate::error::{Error, Result};
use crate::scrape::bell;
use crate::targets::Place;
use crate::Source;

/// A configuration that can be taken over.
#[derive(Debug)]
pub struct Fresh {
    pub config: ProxyConfig,
    /// Where each target is.
    pub places: HashMap<To, Place>,
}

impl Fresh {
    /// Looks each name up. `others` are the nodes that the relay is on, besides.
    pub fn of(config: ProxyConfig, others: &[String]) -> Result<Fresh> {
        let mut places = HashMap::new();
        for target in config.listeners.iter().flat_map(|it| &it.targets) {
            if !places.contains_key(&target.to) {
                places.insert(target.to.clone(), place(&target.to, others)?);
            }
        }
        Ok(Fresh { config, places })
    }
}

fn place(to: &To, others: &[String]) -> Result<Place> {
    let nowhere = |why| Error::NoAddress {
        target: to.to_string(),
        why,
    };
    Ok(match to {
        To::Unix(path) => Place::Unix(path.clone()),
        To::Node { name, at } => match others.iter().position(|it| it == name) {
            Some(index) => Place::Node(index, *at),
            None => {
                return Err(Error::NeedsStart {
                    what: format!("target {to} is on a node that the relay has not joined"),
                })
            }
        },
        To::Host { host, port } => {
            let found = (host.as_str(), *port).to_socket_addrs().map_err(nowhere)?;
            let all: Vec<_> = found.collect();
            if all.is_empty() {
                return Err(nowhere(std::io::ErrorKind::NotFound.into()));
            }
            Place::Addresses(all)
        }
    })
}

/// Who waits for the outcome of a reload.
pub type Askers = Vec<UnixStream>;

/// The thread of a reload, at most one at a time.
#[derive(Debug)]
pub struct Reading {
    source: Source,
    others: Arc<[String]>,
    read: Receiver<Result<Fresh>>,
    reads: Sender<Result<Fresh>>,
    /// Readable once the thread has read.
    bell: Arc<OwnedFd>,
    is_on: bool,
    askers: Askers,
    /// Who has asked since it began: the file may be another by now. `None`: nobody.
    next: Option<Askers>,
}

impl AsFd for Reading {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Reading {
    pub fn new(source: Source, others: &[String]) -> Result<Reading> {
        let (reads, read) = channel();
        Ok(Reading {
            source,
            others: others.into(),
            read,
            reads,
            bell: Arc::new(bell()?),
            is_on: false,
            askers: Vec::new(),
            next: None,
        })
    }

    /// Reads, once the reading that is on has ended.
    pub fn ask(&mut self, asker: Option<UnixStream>) {
        if self.is_on {
            self.next.get_or_insert_default().extend(asker);
            return;
        }
        self.askers.extend(asker);
        self.begin();
    }

    fn begin(&mut self) {
        let (source, others) = (self.source.clone(), self.others.clone());
        let (reads, bell) = (self.reads.clone(), self.bell.clone());
        let run = move || {
            let read = source.read();
            let fresh = read.and_then(|config| Fresh::of(config, &others));
            // The proxy may have ended meanwhile.
            let _ = reads.send(fresh);
            let _ = rustix::io::write(&*bell, &1u64.to_ne_bytes());
        };
        let thread = std::thread::Builder::new().name("ring3-reload".into());
        self.is_on = true;
        if let Err(why) = thread.spawn(run) {
            let _ = self.reads.send(Err(Error::host("start a thread")(why)));
            let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
        }
    }

    /// What has been read, and who waits for the outcome.
    pub fn take(&mut self) -> Option<(Result<Fresh>, Askers)> {
        let _ = rustix::io::read(&*self.bell, &mut [0u8; 8]);
        let fresh = self.read.try_recv().ok()?;
        let askers = std::mem::take(&mut self.askers);
        self.is_on = false;
        if let Some(next) = self.next.take() {
            self.askers = next;
            self.begin();
        }
        Some((fresh, askers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_from_the_start() {
        let to: To = "node:db:5432".parse().unwrap();
        let others = ["cache".to_owned(), "db".to_owned()];
        let at = "127.0.0.1:5432".parse().unwrap();
        assert_eq!(place(&to, &others).unwrap(), Place::Node(1, at));
        assert!(place(&to, &[]).is_err());
    }

    /// One who asks while a file is read hears of the file as it is afterwards.
    #[test]
    fn each_asker_has_a_reading_that_began_after_it() {
        let words = ProxyConfig::from_words(
            "a",
            &["tcp:80".parse().unwrap()],
            &["127.0.0.1:1".parse().unwrap()],
        );
        let source = Source::Words(words.unwrap());
        let mut reading = Reading::new(source, &[]).unwrap();
        let asker = || Some(UnixStream::pair().unwrap().0);
        reading.ask(asker());
        reading.ask(asker());
        reading.ask(None);
        let mut heard = Vec::new();
        while heard.len() < 2 {
            let mut fds = [rustix::event::PollFd::new(
                &reading,
                rustix::event::PollFlags::IN,
            )];
            rustix::event::poll(&mut fds, None).unwrap();
            if let Some((fresh, askers)) = reading.take() {
                assert_eq!(fresh.unwrap().places.len(), 1);
                heard.push(askers.len());
            }
        }
        assert_eq!(heard, [1, 1]);
        assert!(!reading.is_on && reading.take().is_none());
    }
}
