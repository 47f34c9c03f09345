// SPDX-License-Identifier: GPL-2.0
//! Other nodes, for targets there. Each has a set of its own, and a helper thread that says in the first node's set when
//! there is something in it: as feed.rs does for the host's.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use ring3_node::joined::Joined;
use ring3_node::task::{Event, Fd, Task};
use ring3_node::Errno;

use crate::error::{Error, Result};
use crate::far::Far;
use crate::feed::{Feed, News, EDGES};
use crate::tuning::EVENTS;

/// Numbers of proxy files in the first node's table, above those that are taken when it begins.
const FIRST: Fd = 64;
/// Their data: generation 0, above the engine's own.
const DATA: u64 = 1024;
/// EPOLLIN, once.
const ONCE: u32 = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;

#[derive(Debug)]
struct Other {
    task: Rc<RefCell<Task>>,
    /// Its node has gone: what was on it ends, and nothing begins there.
    is_gone: bool,
    set: Fd,
    /// Has `set` as its one member.
    door: Fd,
}

#[derive(Debug)]
pub struct Others(Vec<Other>);

impl Others {
    /// `task` is of the first node.
    pub fn start(task: &mut Task, feed: &Feed, joined: &mut [Joined]) -> Result<Others> {
        let mut others = Vec::new();
        for (at, node) in joined.iter_mut().enumerate() {
            let own = node.task().ok_or(Error::Panicked)?;
            others.push(begin(task, feed, at, own)?);
        }
        Ok(Others(others))
    }

    /// Adds what others have to say. True: one of them has gone.
    pub fn look(&mut self, task: &mut Task, news: &mut Vec<News>) -> Result<bool> {
        if self.0.is_empty() {
            return Ok(false);
        }
        let last = DATA + self.0.len() as u64;
        let (mut called, mut any_gone) = (Vec::new(), false);
        news.retain(|it| {
            let is_other = (DATA..last).contains(&it.data);
            if is_other {
                called.push((it.data - DATA) as usize);
            }
            !is_other
        });
        for at in called {
            task.proxy_clear(FIRST + at as Fd)
                .map_err(Error::node("watch another node"))?;
            let is_new = !self.0[at].is_gone;
            if let (Err(why), true) = (self.0[at].look(news), is_new) {
                log::warn!(
                    "a node with targets has gone ({why}): start the proxy again once it is up"
                );
                self.0[at].is_gone = true;
                any_gone = true;
            }
        }
        Ok(any_gone)
    }

    /// Whether the node of this half is there no more.
    pub fn is_gone(&self, far: &Far) -> bool {
        let Far::Node(task, _) = far else {
            return false;
        };
        let mut gone = self.0.iter().filter(|it| it.is_gone);
        gone.any(|it| Rc::ptr_eq(&it.task, task))
    }

    /// A connection that begins on another node.
    pub fn connect(&self, at: usize, to: SocketAddr, data: u64) -> Result<Far, Errno> {
        let other = self.0.get(at).filter(|it| !it.is_gone);
        let other = other.ok_or(Errno(libc::ENETUNREACH))?;
        let mut task = other.task.borrow_mut();
        let domain = match to {
            SocketAddr::V4(_) => libc::AF_INET,
            SocketAddr::V6(_) => libc::AF_INET6,
        };
        let fd = task.socket(domain, libc::SOCK_STREAM, 0)?;
        let made = task
            .set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
            .and_then(|()| match task.connect(fd, to) {
                Err(Errno(libc::EINPROGRESS)) => Ok(()),
                made => made,
            })
            .and_then(|()| task.epoll_add(other.set, fd, EDGES, data));
        match made {
            Ok(()) => Ok(Far::Node(other.task.clone(), fd)),
            Err(why) => task.close(fd).and(Err(why)),
        }
    }
}

impl Other {
    /// All that it has to say; then the helper waits for more.
    fn look(&mut self, news: &mut Vec<News>) -> Result<(), Errno> {
        let mut task = self.task.borrow_mut();
        let mut events = vec![Event { events: 0, u64: 0 }; EVENTS];
        loop {
            let count = match task.epoll_wait(self.set, &mut events, 0) {
                Ok(count) => count.min(EVENTS),
                Err(Errno(libc::EINTR)) => continue,
                Err(why) => return Err(why),
            };
            news.extend(events[..count].iter().map(|event| News {
                data: event.u64,
                events: event.events,
            }));
            if count < EVENTS {
                break;
            }
        }
        task.epoll_modify(self.door, self.set, ONCE, 0)
    }
}

fn begin(first: &mut Task, feed: &Feed, at: usize, mut own: Task) -> Result<Other> {
    let fail = || Error::node("watch another node");
    let number = FIRST + at as Fd;
    feed.stand_for(first, number, DATA + at as u64)
        .map_err(fail())?;
    let set = own.epoll().map_err(fail())?;
    let door = own.epoll().map_err(fail())?;
    own.epoll_add(door, set, ONCE, 0).map_err(fail())?;
    let mut there = own.helper().map_err(fail())?;
    let mut here = first.helper().map_err(fail())?;
    std::thread::Builder::new()
        .name("ring3-other".into())
        .spawn(move || {
            ring3_node::inside::prepare_thread();
            let mut events = [Event { events: 0, u64: 0 }];
            loop {
                match there.epoll_wait(door, &mut events, -1) {
                    Ok(0) | Err(Errno(libc::EINTR)) => {}
                    Ok(_) if here.proxy_set(number).is_ok() => {}
                    Ok(_) => return,
                    Err(_) => {
                        // Its node has gone: this is the last word.
                        let _ = here.proxy_set(number);
                        return;
                    }
                }
            }
        })
        .map_err(Error::host("start a thread"))?;
    Ok(Other {
        task: Rc::new(RefCell::new(own)),
        is_gone: false,
        set,
        door,
    })
}
