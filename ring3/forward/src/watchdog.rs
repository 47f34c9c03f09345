// SPDX-License-Identifier: GPL-2.0
//! The budget of a handler's call.
//!
//! The agent stores a number before each call, and no more: the watchdog, a thread, looks once a budget whether it still
//! sees the number that it saw before. Then it measures the time that the agent has used on the processor since, so that an
//! agent that other programs keep from running is not blamed. A call is cut off after one to two budgets.
//!
//! Where no call was made for a while, the watchdog sleeps until the agent wakes it. Before a call the agent stores the
//! number, and then looks whether the watchdog is to be woken. The watchdog says that it is, waits one more budget, and
//! looks at the number. No fence is needed: a store leaves its CPU's buffer in less than any budget. So an agent that did
//! not see the watchdog's word has a number that the watchdog sees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::cut;
use crate::handler::{About, Handler, Verdict};
use crate::leaf::{self, Clock};
use crate::numbers::{add, Numbers};
use crate::tuning::{ASLEEP, QUIET_TURNS};
use crate::{AfterCut, Order};

#[derive(Debug)]
pub struct Watchdog {
    budget: Duration,
    name: String,
    after: AfterCut,
    numbers: Arc<Numbers>,
    say: fn(String),
    /// It sleeps, or is about to: it wants to be woken.
    is_parked: AtomicBool,
    thread: OnceLock<Thread>,
    /// Of the agent.
    clock: OnceLock<Clock>,
    /// A call was left, or broke the rules: the agent calls no more.
    is_over: AtomicBool,
}

/// A call that goes on.
struct Suspect {
    used: Duration,
    since: Instant,
}

impl Watchdog {
    pub fn new(order: &Order, numbers: Arc<Numbers>, say: fn(String)) -> Watchdog {
        let path = order.handler.as_ref();
        Watchdog {
            budget: order.budget,
            name: path.map_or(String::new(), |path| path.display().to_string()),
            after: order.after_cut,
            numbers,
            say,
            is_parked: AtomicBool::new(false),
            thread: OnceLock::new(),
            clock: OnceLock::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// By the agent, in each call.
    fn wake(&self) {
        if self.is_parked.load(Ordering::Relaxed) && self.is_parked.swap(false, Ordering::AcqRel) {
            if let Some(thread) = self.thread.get() {
                thread.unpark();
            }
        }
    }

    /// Until the handler was cut off, or for ever.
    pub fn watch(&self) {
        let _ = self.thread.set(std::thread::current());
        let (mut last, mut quiet) = (cut::now(), 0);
        let mut suspect: Option<Suspect> = None;
        loop {
            std::thread::sleep(self.budget);
            let now = cut::now();
            if self.is_over.load(Ordering::Acquire) {
                return self.report(now.number);
            }
            quiet = if now == last && !now.is_in {
                quiet + 1
            } else {
                0
            };
            if quiet > QUIET_TURNS {
                quiet = 0;
                self.is_parked.store(true, Ordering::Release);
                std::thread::sleep(self.budget);
                if cut::now() == now && !self.is_over.load(Ordering::Acquire) {
                    std::thread::park_timeout(crate::tuning::LOOK);
                }
                self.is_parked.store(false, Ordering::Release);
            }
            let goes_on = now.is_in && last.is_in && now.number == last.number;
            last = now;
            if !goes_on {
                suspect = None;
                continue;
            }
            let Some(used) = self.clock.get().and_then(Clock::used) else {
                continue;
            };
            let it = suspect.get_or_insert(Suspect {
                used,
                since: Instant::now(),
            });
            if used.saturating_sub(it.used) >= self.budget
                || it.since.elapsed() >= self.budget * ASLEEP
            {
                cut::leave(now.number);
            }
        }
    }

    fn report(&self, number: u64) {
        let why = match cut::fault() {
            Some(signal) => format!("faulted (signal {signal})"),
            None if cut::is_doomed(number) => format!("used up its budget of {:?}", self.budget),
            None => "left more bytes than it had room for".into(),
        };
        let what = match self.after {
            AfterCut::Drop => "what comes from now on is dropped (--after-cut pass would pass it)",
            AfterCut::Pass => "what comes from now on passes without it",
        };
        (self.say)(format!(
            "the handler {} {why} at packet {number}, and was cut off: {what}",
            self.name
        ));
        while !self.numbers.ends.load(Ordering::Acquire) {
            std::thread::park_timeout(crate::tuning::LOOK);
        }
    }
}

/// The agent's way to the handler.
#[derive(Debug)]
pub struct Caller<'a> {
    handler: Option<Handler>,
    dog: Arc<Watchdog>,
    after: AfterCut,
    /// There was a handler, and it was cut off.
    was_cut: bool,
    numbers: &'a Numbers,
}

impl Caller<'_> {
    /// On the agent's thread.
    pub fn new(
        handler: Option<Handler>,
        dog: Arc<Watchdog>,
        after: AfterCut,
        numbers: &Numbers,
    ) -> Caller<'_> {
        cut::begin();
        let _ = dog.clock.set(leaf::clock_of_this_thread());
        Caller {
            handler,
            dog,
            after,
            was_cut: false,
            numbers,
        }
    }

    /// What becomes of a packet: the targets that get it, and its length. `None`: it is lost with the handler.
    pub fn ask(&mut self, bytes: &mut [u8], len: usize, about: About<'_>) -> Option<(u64, usize)> {
        let Some(handler) = &mut self.handler else {
            return match (self.was_cut, self.after) {
                (true, AfterCut::Drop) => self.lost(),
                _ => Some((u64::MAX, len)),
            };
        };
        cut::begin_call();
        self.dog.wake();
        match handler.call(bytes, len, about) {
            Verdict::To { targets, len } => {
                if targets == 0 {
                    add(&self.numbers.dropped, 1);
                }
                Some((targets, len))
            }
            Verdict::Cut => {
                // What it has is as the call left it: neither called again, nor closed.
                self.handler = None;
                self.was_cut = true;
                self.dog.is_over.store(true, Ordering::Release);
                self.dog.wake();
                self.lost()
            }
        }
    }

    fn lost(&self) -> Option<(u64, usize)> {
        add(&self.numbers.cut, 1);
        None
    }

    pub fn end(self) {
        if let Some(handler) = self.handler {
            handler.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::Name;
    use std::ffi::c_void;

    extern "C" fn goes_on(_: *mut c_void, _: *mut c_void) -> u64 {
        loop {
            std::hint::spin_loop();
        }
    }

    /// Also the call that begins after the watchdog fell asleep, as within a batch of packets.
    #[test]
    fn a_call_is_cut_off_while_the_watchdog_sleeps() {
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let order = Order {
            is_stream: false,
            listen: any,
            targets: vec![any],
            handler: None,
            words: String::new(),
            budget: Duration::from_micros(100),
            after_cut: AfterCut::Drop,
            stats: None,
        };
        let numbers = Arc::new(Numbers::default());
        let dog = Arc::new(Watchdog::new(&order, numbers.clone(), |_| {}));
        cut::install().unwrap();
        let mut caller = Caller::new(
            Some(Handler::of(goes_on)),
            dog.clone(),
            AfterCut::Drop,
            &numbers,
        );
        let watched = dog.clone();
        let thread = std::thread::spawn(move || watched.watch());
        while !dog.is_parked.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(20));
        let (mut bytes, from, start) = ([0; 8], Name::none(), Instant::now());
        let about = About {
            stream: 0,
            is_back: false,
            from: &from,
        };
        assert_eq!(caller.ask(&mut bytes, 8, about), None);
        // By itself it wakes after LOOK, a second.
        let took = start.elapsed();
        assert!(took < Duration::from_millis(500), "{took:?}");
        numbers.ends.store(true, Ordering::Release);
        thread.thread().unpark();
        thread.join().unwrap();
    }
}
