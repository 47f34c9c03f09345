// SPDX-License-Identifier: GPL-2.0
//! The keeper's threads: they wait on the host for the node.
//!
//! | thread | waits for | then |
//! | --- | --- | --- |
//! | `ring3-keep` | the next timer and the links' doorbells, in the image's KEEP | drives |
//! | `ring3-keep-N` | the same for vCPU N, but for the links | drives that |
//! | `ring3-ports` | readiness of the ports' descriptors | raises their interrupts and drives |
//! | `ring3-procs` | a change of procs[] | tells `ring3-deaths` |
//! | `ring3-deaths` | deaths of the node's processes | marks and judges them, see procs.rs |
//! | `ring3-control` | the control socket | see node/answer.rs |
//! | `ring3-link` | the far end of a link that is not there yet | gives it the link's memory, see ports/handover.rs |
//! | `ring3-pcap` | packets of one interface's capture | writes them, see pcap.rs |
//!
//! Each blocks all signals, sleeps with the smallest timer slack and has an alternate stack for
//! faults. Each ends when it is told to; [`Driver::end`] waits for that up to a limit: a thread
//! that is stuck in a broken node must not keep its process alive.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ring3_abi::{ring3_irq_port, RING3_UP};
use rustix::event::{epoll, eventfd, EventfdFlags};

use crate::error::{Error, Result};
use crate::fault;
use crate::image::Thread;
use crate::ports::Port;
use crate::region::Region;
use crate::sys;

/// Enough for the image's 4 KiB, netlink buffers and a log call.
const STACK_BYTES: usize = 256 << 10;
/// How long a thread may take to end.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// How often to look whether it has: at first, and at last.
const END_TURN: Duration = Duration::from_micros(20);
const END_TURN_MAX: Duration = Duration::from_micros(500);
/// How often `ring3-keep` checks whether boot has begun.
const BOOT_TURN: Duration = Duration::from_micros(100);
/// How long `ring3-procs` delays the report of a change. If programs are started one after another,
/// most live for a shorter time and end in an orderly way: `ring3-deaths` need not learn of them,
/// and has no pidfd whose readiness would wake it before the parent. The death of a killed one is
/// noticed this much later.
const PROCS_PAUSE: Duration = Duration::from_millis(10);
/// `ring3-procs` checks its stop flag at least this often.
const PROCS_TURN: Duration = Duration::from_secs(60);

/// A thread of the keeper.
#[derive(Debug)]
pub(crate) struct Driver {
    name: String,
    thread: JoinHandle<()>,
}

impl Driver {
    /// Starts a thread that runs `body`. Signals must be blocked already; it inherits that.
    pub fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<Driver> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(|| {
                fault::prepare_thread();
                sys::exact_timers();
                sys::short_turns();
                body();
            })
            .map_err(Error::io(format!("start thread {name}")))?;
        Ok(Driver {
            name: name.to_owned(),
            thread,
        })
    }

    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the thread, which has been told to end. False: it has not ended in time.
    pub fn end(self) -> bool {
        let start = Instant::now();
        let mut turn = END_TURN;
        while !self.thread.is_finished() {
            if start.elapsed() > END_PATIENCE {
                log::warn!("thread {} does not end", self.name);
                return false;
            }
            std::thread::sleep(turn);
            turn = END_TURN_MAX.min(turn * 2);
        }
        let _ = self.thread.join();
        true
    }
}

/// Starts KEEP. It must run during boot, since it serves the timers of the boot. It enters the
/// image once boot owns the vCPU, since by then the image has relocated itself. It returns when the
/// node is down or poisoned, and rings `bell`.
pub(crate) fn keep(region: &Arc<Region>, bell: Arc<OwnedFd>) -> Result<Driver> {
    keep_vcpu(region, 0, move || ring(&bell))
}

/// KEEP of the other vCPUs. They end when the first does.
pub(crate) fn keep_others(region: &Arc<Region>, cpus: u32) -> Result<Vec<Driver>> {
    (1..cpus as usize)
        .map(|n| keep_vcpu(region, n, || ()))
        .collect()
}

fn keep_vcpu(
    region: &Arc<Region>,
    n: usize,
    over: impl FnOnce() + Send + 'static,
) -> Result<Driver> {
    // driver_thread[1] is PortWatch's.
    let (block, name) = match n {
        0 => (0, "ring3-keep".to_owned()),
        n => (1 + n, format!("ring3-keep-{n}")),
    };
    let mut thread = Thread::driver(region, block);
    Driver::start(&name, move || {
        let region = thread.region().clone();
        while !boot_has_begun(region.vcpu_was_held(), region.state()) {
            std::thread::sleep(BOOT_TURN);
        }
        if let Err(why) = thread.keep(n) {
            log::error!("the node's timers stop: {why}");
        }
        over();
    })
}

/// Has the image relocated itself? A check that comes late finds the vCPU free again: while boot
/// waits for a timer or another vCPU, and so for KEEP, or when it is over.
fn boot_has_begun(vcpu_was_held: bool, state: u32) -> bool {
    vcpu_was_held || state >= RING3_UP
}

/// The epoll set of another thread, with a descriptor that ends it.
#[derive(Debug)]
pub(crate) struct PortWatch {
    driver: Driver,
    stop: Arc<OwnedFd>,
}

/// Token of the stop descriptor among port indices.
const STOP: u64 = u64::MAX;

impl PortWatch {
    /// Watches the ports that have descriptors; `None` if none has.
    pub fn start(region: &Arc<Region>, ports: &[Port]) -> Result<Option<PortWatch>> {
        if ports.iter().all(|port| port.event_fd().is_none()) {
            return Ok(None);
        }
        let fail = || Error::host("watch a node's ports");
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(fail())?;
        let stop = Arc::new(event_fd()?);
        let data = epoll::EventData::new_u64(STOP);
        epoll::add(&set, stop.as_fd(), data, epoll::EventFlags::IN).map_err(fail())?;
        for port in ports {
            if let Some(fd) = port.event_fd() {
                // Edge-triggered: the driver reads until there is nothing left, and writes until
                // there is no room.
                let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
                let data = epoll::EventData::new_u64(port.index as u64);
                epoll::add(&set, fd, data, flags).map_err(fail())?;
            }
        }
        let thread = Thread::driver(region, 1);
        let keep_open = stop.clone();
        let driver = Driver::start("ring3-ports", move || {
            watch_ports(&set, thread);
            drop(keep_open);
        })?;
        Ok(Some(PortWatch { driver, stop }))
    }

    pub fn end(self) -> bool {
        ring(&self.stop);
        self.driver.end()
    }
}

fn watch_ports(set: &OwnedFd, mut thread: Thread) {
    let mut events = Vec::with_capacity(ring3_abi::RING3_PORTS_MAX + 1);
    loop {
        events.clear();
        match epoll::wait(set, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(why) => {
                log::error!("the node's ports stop: {why}");
                return;
            }
        }
        let mut irqs = 0;
        for event in &events {
            match event.data.u64() {
                STOP => return,
                index => irqs |= ring3_irq_port(index as u32),
            }
        }
        thread.region().raise(irqs);
        // An error means that the node has ended; the service loop notices and stops this thread.
        let _ = thread.drive();
    }
}

/// Rings `bell` whenever procs[] changes.
#[derive(Debug)]
pub(crate) struct ProcsWatch {
    driver: Driver,
    stop: Arc<AtomicBool>,
    region: Arc<Region>,
}

impl ProcsWatch {
    pub fn start(region: &Arc<Region>, bell: Arc<OwnedFd>) -> Result<ProcsWatch> {
        let stop = Arc::new(AtomicBool::new(false));
        let driver = Driver::start("ring3-procs", {
            let (region, stop) = (region.clone(), stop.clone());
            move || {
                let mut seen = region.procs_gen().load(Ordering::Acquire);
                // The flag is read after the word: a thread that sets the flag changes the word
                // after that, and ends the pause.
                while !stop.load(Ordering::Acquire) {
                    sys::futex_wait(region.procs_gen(), seen, PROCS_TURN);
                    if region.procs_gen().load(Ordering::Acquire) != seen {
                        std::thread::park_timeout(PROCS_PAUSE);
                        seen = region.procs_gen().load(Ordering::Acquire);
                        ring(&bell);
                    }
                }
            }
        })?;
        Ok(ProcsWatch {
            driver,
            stop,
            region: region.clone(),
        })
    }

    pub fn end(self) -> bool {
        self.stop.store(true, Ordering::Release);
        self.region.poke_procs();
        self.driver.thread.thread().unpark();
        self.driver.end()
    }
}

/// An eventfd that wakes another thread.
pub(crate) fn event_fd() -> Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(Error::host("make an eventfd"))
}

pub(crate) fn ring(bell: &OwnedFd) {
    // It is full only after 2^64 rings without a read: then it is readable anyway.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// Empties it; false: it was not rung.
pub(crate) fn was_rung(bell: &OwnedFd) -> bool {
    rustix::io::read(bell, &mut [0; 8]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::boot_has_begun;
    use ring3_abi::*;

    /// KEEP got no CPU while its node booted, and never found the vCPU owned: the node had no
    /// timers.
    #[test]
    fn keep_may_come_after_boot() {
        for state in [RING3_LOADED, RING3_BOOTING] {
            assert!(!boot_has_begun(false, state));
            assert!(boot_has_begun(true, state));
        }
        for state in [RING3_UP, RING3_POISONED, RING3_DOWN] {
            assert!(boot_has_begun(false, state));
        }
    }
}
