// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the node's epoll and the host's as one wait
//!
//! The relay sleeps in the node's set. A proxy file there stands for the host's set. The helper thread waits
//! until that is readable, once (EPOLLONESHOT), and then makes the proxy readable:
//!
//! ```text
//! helper   wait for the door (host)   -> proxy_set (node)
//! relay    wait (node) sees the proxy -> proxy_clear, look at the host's set until it is empty, arm the door
//! ```
//!
//! An event that comes after the last look finds the door armed, or is found by arming it. As long as there is something
//! to do, the relay looks at both sets itself, and the door is not armed: the helper's wake-up and its turn on the vCPU cost
//! more than a look.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use ring3_node::task::{Event, Fd, Task};
use ring3_node::Errno;
use rustix::event::epoll;

use crate::error::{Error, Result};
use crate::tuning::EVENTS;

/// Its number in the node's table: the first, which is free then.
const PROXY: Fd = 0;
/// The proxy's data; no entry has generation 0.
const NEWS: u64 = u64::MAX >> 32;

/// Whose set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct News {
    pub data: u64,
    /// EPOLL* bits.
    pub events: u32,
}

#[derive(Debug)]
pub struct Feed {
    node: Fd,
    host: OwnedFd,
    door: Arc<OwnedFd>,
    /// The helper waits for the host's set; else the relay has to look.
    is_armed: bool,
    events: Vec<Event>,
}

/// What each member is watched for.
pub const EDGES: u32 = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;

impl Feed {
    /// Makes the sets and starts the helper.
    pub fn start(task: &mut Task) -> Result<Feed> {
        let on_host = || Error::host("watch the host's sockets");
        let on_node = || Error::node("watch its sockets");
        task.proxy(PROXY).map_err(on_node())?;
        let node = task.epoll().map_err(on_node())?;
        let readable = libc::EPOLLIN as u32;
        task.epoll_add(node, PROXY, readable, NEWS)
            .map_err(on_node())?;
        let host = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(on_host())?;
        let door = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).map_err(on_host())?);
        let once = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        epoll::add(&door, &host, epoll::EventData::new_u64(0), once).map_err(on_host())?;
        let mut helper = task.helper().map_err(Error::node("make a thread"))?;
        let watched = door.clone();
        std::thread::Builder::new()
            .name("ring3-feed".into())
            .spawn(move || {
                ring3_node::inside::prepare_thread();
                feed(&mut helper, &watched);
            })
            .map_err(Error::host("start a thread"))?;
        Ok(Feed {
            node,
            host,
            door,
            is_armed: true,
            events: vec![Event { events: 0, u64: 0 }; EVENTS],
        })
    }

    pub fn add_node(&self, task: &mut Task, fd: Fd, data: u64) -> Result<(), Errno> {
        task.epoll_add(self.node, fd, EDGES, data)
    }

    /// Number `fd` of the node's table stands for another set from now on: it reports `data`, as long as it is set.
    pub fn stand_for(&self, task: &mut Task, fd: Fd, data: u64) -> Result<(), Errno> {
        task.proxy(fd)?;
        task.epoll_add(self.node, fd, libc::EPOLLIN as u32, data)
    }

    pub fn add_host(&self, fd: impl AsFd, data: u64) -> Result<(), Errno> {
        let flags = epoll::EventFlags::from_bits_retain(EDGES);
        epoll::add(&self.host, fd, epoll::EventData::new_u64(data), flags)?;
        Ok(())
    }

    /// Waits for at most `timeout_ms` (-1: for ever) and puts what came into `news`.
    pub fn wait(&mut self, task: &mut Task, timeout_ms: i32, news: &mut Vec<News>) -> Result<()> {
        news.clear();
        if !self.is_armed {
            self.look_at_node(task, 0, news)?;
            self.look_at_host(news)?;
            if !news.is_empty() || timeout_ms == 0 {
                return Ok(());
            }
            let once = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
            epoll::modify(&self.door, &self.host, epoll::EventData::new_u64(0), once)
                .map_err(Error::host("watch the host's sockets"))?;
            self.is_armed = true;
        }
        if self.look_at_node(task, timeout_ms, news)? {
            task.proxy_clear(PROXY)
                .map_err(Error::node("watch the host's sockets"))?;
            self.is_armed = false;
            self.look_at_host(news)?;
        }
        Ok(())
    }

    /// True: the helper has seen something.
    fn look_at_node(
        &mut self,
        task: &mut Task,
        timeout_ms: i32,
        news: &mut Vec<News>,
    ) -> Result<bool> {
        let count = match task.epoll_wait(self.node, &mut self.events, timeout_ms) {
            Ok(count) => count,
            Err(Errno(libc::EINTR)) => 0,
            Err(why) => return Err(Error::node("wait for its sockets")(why)),
        };
        let mut is_host = false;
        for event in &self.events[..count.min(EVENTS)] {
            match event.u64 {
                NEWS => is_host = true,
                data => news.push(News {
                    data,
                    events: event.events,
                }),
            }
        }
        Ok(is_host)
    }

    /// All that the host has to say.
    fn look_at_host(&mut self, news: &mut Vec<News>) -> Result<()> {
        let fail = || Error::host("watch the host's sockets");
        loop {
            let mut space = [const { MaybeUninit::uninit() }; EVENTS];
            let now = rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let events = match epoll::wait(&self.host, &mut space[..], Some(&now)) {
                Ok((events, _)) => events,
                Err(rustix::io::Errno::INTR) => continue,
                Err(why) => return Err(fail()(why)),
            };
            news.extend(events.iter().map(|event| {
                let flags = event.flags;
                News {
                    data: event.data.u64(),
                    events: flags.bits(),
                }
            }));
            if events.len() < EVENTS {
                return Ok(());
            }
        }
    }
}

/// Until the node is over.
fn feed(task: &mut Task, door: &OwnedFd) {
    let mut events = Vec::with_capacity(1);
    loop {
        events.clear();
        match epoll::wait(door, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) if task.proxy_set(PROXY).is_ok() => {}
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}
