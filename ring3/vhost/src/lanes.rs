// SPDX-License-Identifier: GPL-2.0
//! The two directions between guest and node.
//!
//! Each has a lock, which the thread takes that moves frames. That is the queues' worker for what the guest sends, woken by the
//! guest's kick; and the link's thread for what the node sends, woken by the link's doorbell. Either may find the other side
//! without room. Then it asks for a wake-up, looks once more, and leaves:
//!
//! | without room | is asked | who goes on |
//! | --- | --- | --- |
//! | the link's ring | the node, by `waiting` | the link's thread |
//! | the guest's queue | the guest, by its kick | the link's thread, whose doorbell the worker rings |
//!
//! The guest gets its frames at once where it has a queue that is not enabled: they are dropped, as by a cable that is out.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vhost_user_backend::{VringMutex, VringState, VringT};
use virtio_queue::{Error as QueueError, Queue, QueueOwnedT, QueueT};
use vm_memory::{
    GuestAddress, GuestAddressSpace, GuestMemoryAtomic, GuestMemoryBackend, GuestMemoryMmap,
    VolatileSlice,
};

use crate::chain::{self, Fault};
use crate::features::Agreed;
use crate::link::{self, Consumer, Header, Memory, Producer, FRAME_MAX, HEADER};
use crate::offload;
use crate::says::Says;
use crate::used::{give_back, BadRing, Used};

pub type Guest = GuestMemoryAtomic<GuestMemoryMmap>;

/// The guest's queues, by number.
pub const RX: usize = 0;
pub const TX: usize = 1;
pub const QUEUES: usize = 2;

/// The shortest frame: an Ethernet header.
const FRAME_MIN: usize = 14;
/// Frames and bytes after which the far side is told what there is. Chosen: a far side that has begun works beside this one.
const BATCH_FRAMES: usize = 32;
const BATCH_BYTES: usize = 128 << 10;
/// Batches after which a queue's lock is given up for a moment: the frontend may want to stop the queue.
const BATCHES: usize = 4;

#[derive(Debug)]
pub struct Lanes {
    pub memory: Arc<Memory>,
    tx: Mutex<TxLane>,
    rx: Mutex<RxLane>,
    /// The link has no room for what the guest sends.
    is_stalled: AtomicBool,
    /// Queues that are attached, by number; written under both locks.
    attached: [AtomicBool; QUEUES],
    agreed: AtomicU64,
    pub says: Says,
}

struct TxLane {
    producer: Producer,
    queue: Option<Attached>,
}

struct RxLane {
    consumer: Consumer,
    queue: Option<Attached>,
    /// Of frames that the guest does not take as they are.
    scratch: offload::Scratch,
}

impl std::fmt::Debug for TxLane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.producer.fmt(f)
    }
}

impl std::fmt::Debug for RxLane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.consumer.fmt(f)
    }
}

#[derive(Clone)]
struct Attached {
    vring: VringMutex,
    guest: Guest,
    /// Its rings made no sense: nothing is done until it is set up anew.
    is_bad: bool,
}

/// How a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batch {
    /// Nothing is left.
    Done,
    /// More is there.
    More,
    /// The far side has no room.
    NoRoom,
    /// The guest's buffers up to this index are too few for the next frame.
    Short(u16),
    /// The queue is stopped, or disabled.
    Off,
}

/// Why there is none.
#[derive(Debug)]
enum Trouble {
    Ring,
    Link,
}

impl From<BadRing> for Trouble {
    fn from(_: BadRing) -> Trouble {
        Trouble::Ring
    }
}

impl From<link::Broken> for Trouble {
    fn from(_: link::Broken) -> Trouble {
        Trouble::Link
    }
}

impl From<QueueError> for Trouble {
    fn from(_: QueueError) -> Trouble {
        Trouble::Ring
    }
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panics ends the process (lib.rs).
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lanes {
    pub fn new(memory: Arc<Memory>, says: Says) -> Lanes {
        Lanes {
            tx: Mutex::new(TxLane {
                producer: Producer::new(memory.clone()),
                queue: None,
            }),
            rx: Mutex::new(RxLane {
                consumer: Consumer::new(memory.clone()),
                queue: None,
                scratch: offload::Scratch::default(),
            }),
            memory,
            is_stalled: AtomicBool::new(false),
            attached: Default::default(),
            agreed: AtomicU64::new(0),
            says,
        }
    }

    /// What guest and device have agreed on.
    pub fn agree(&self, features: u64) {
        self.agreed.store(features, Ordering::Release);
    }

    pub fn agreed(&self) -> Agreed {
        Agreed(self.agreed.load(Ordering::Acquire))
    }

    /// A queue is started. True: now both are.
    pub fn attach(&self, number: usize, vring: &VringMutex, guest: &Guest) -> bool {
        // Each kick asks, and the link's thread may hold its lock for as long as the node sends.
        if self.attached[number].load(Ordering::Acquire) {
            return false;
        }
        let queue = Attached {
            vring: vring.clone(),
            guest: guest.clone(),
            is_bad: false,
        };
        let (mut tx, mut rx) = (locked(&self.tx), locked(&self.rx));
        let place = match number {
            TX => &mut tx.queue,
            _ => &mut rx.queue,
        };
        // The queue may have been stopped since its kick.
        if place.is_some() || !is_on(&vring.get_ref()) {
            return false;
        }
        let is_bad = !has_rings(vring.get_ref().get_queue(), guest.memory().deref());
        if is_bad {
            self.says.bad_ring(number);
        }
        let queue = Attached { is_bad, ..queue };
        *place = Some(queue);
        self.attached[number].store(true, Ordering::Release);
        tx.queue.is_some() && rx.queue.is_some()
    }

    /// A queue is stopped: nothing of it is used any more once this returns. True: both were started before.
    pub fn detach(&self, number: usize) -> bool {
        let (mut tx, mut rx) = (locked(&self.tx), locked(&self.rx));
        let both = tx.queue.is_some() && rx.queue.is_some();
        self.attached[number].store(false, Ordering::Release);
        match number {
            TX => tx.queue = None,
            _ => rx.queue = None,
        }
        both
    }

    /// Moves what the guest has sent.
    pub fn send(&self) {
        let mut lane = locked(&self.tx);
        let lane = &mut *lane;
        // Only what ends without room says it anew: a queue that is off, bad or gone waits for none.
        self.is_stalled.store(false, Ordering::Release);
        let Some(queue) = lane.queue.as_mut().filter(|queue| !queue.is_bad) else {
            return;
        };
        let mut segments = Vec::new();
        loop {
            match self.send_some(&mut lane.producer, queue, &mut segments) {
                Ok(Batch::More) => std::thread::yield_now(),
                Ok(Batch::Done | Batch::Off | Batch::NoRoom | Batch::Short(_)) => return,
                Err(trouble) => {
                    queue.is_bad = true;
                    return self.complain(TX, trouble);
                }
            }
        }
    }

    /// Batches under one lock of the queue.
    fn send_some(
        &self,
        producer: &mut Producer,
        queue: &mut Attached,
        used: &mut Vec<Used>,
    ) -> Result<Batch, Trouble> {
        let mut state = queue.vring.get_mut();
        if !is_on(&state) {
            return Ok(Batch::Off);
        }
        let guard = queue.guest.memory();
        let mem: &GuestMemoryMmap = guard.deref();
        for _ in 0..BATCHES {
            state.get_queue_mut().disable_notification(mem)?;
            used.clear();
            let end = self.send_batch(producer, &mut state, mem, used);
            // What was moved before a trouble counts.
            producer.publish();
            if give_back(state.get_queue_mut(), mem, used)? {
                signal(&state);
            }
            match end? {
                Batch::More => {}
                Batch::NoRoom => {
                    self.is_stalled.store(true, Ordering::Release);
                    producer.ask_for_room();
                    if !producer.is_ready()? {
                        return Ok(Batch::NoRoom);
                    }
                    producer.ask_no_more();
                    self.is_stalled.store(false, Ordering::Release);
                }
                end => {
                    self.is_stalled.store(false, Ordering::Release);
                    if !state.get_queue_mut().enable_notification(mem)? {
                        return Ok(end);
                    }
                }
            }
        }
        Ok(Batch::More)
    }

    fn send_batch(
        &self,
        producer: &mut Producer,
        state: &mut VringState<Guest>,
        mem: &GuestMemoryMmap,
        used: &mut Vec<Used>,
    ) -> Result<Batch, Trouble> {
        let agreed = self.agreed();
        let mut pieces = Vec::with_capacity(32);
        let mut bytes = 0;
        let queue = state.get_queue_mut();
        let mut chains = queue.iter(mem)?;
        while used.len() < BATCH_FRAMES && bytes < BATCH_BYTES {
            if !producer.is_ready()? {
                return Ok(Batch::NoRoom);
            }
            let Some(chain) = chains.next() else {
                return Ok(Batch::Done);
            };
            used.push((chain.head_index(), 0));
            pieces.clear();
            match frame(agreed, chain, mem, &mut pieces) {
                Ok((header, len)) => {
                    bytes += len;
                    producer.put(&header, len as u32, |to| {
                        // The ring has as many bytes as the pieces: len is their sum.
                        let mut at = 0;
                        for piece in &pieces {
                            if let Ok(to) = to.offset(at) {
                                piece.copy_to_volatile_slice(to);
                            }
                            at += piece.len();
                        }
                    });
                }
                Err(fault) => self.says.refuse(fault),
            }
        }
        Ok(Batch::More)
    }

    /// Whether the link's thread has something to do: what the node has sent, if the guest has room, or room for the guest's.
    pub fn has_work(&self, is_starved: bool) -> bool {
        if !is_starved && locked(&self.rx).consumer.has_more() {
            return true;
        }
        self.is_stalled.load(Ordering::Acquire) && locked(&self.tx).producer.is_ready() != Ok(false)
    }

    /// Whether what the guest sends waits for room that there is now: then it goes on.
    pub fn send_on(&self) {
        if self.is_stalled.load(Ordering::Acquire) {
            self.send();
        }
    }

    /// Moves what the node has sent. True: the guest has no room for the rest, and the worker rings when it has.
    pub fn receive(&self) -> bool {
        let mut lane = locked(&self.rx);
        let lane = &mut *lane;
        let mut used = Vec::with_capacity(BATCH_FRAMES);
        loop {
            let queue = lane.queue.as_mut().filter(|queue| !queue.is_bad);
            let end = match queue {
                Some(queue) => {
                    self.receive_some(&mut lane.consumer, queue, &mut lane.scratch, &mut used)
                }
                None => Ok(Batch::Off),
            };
            let end = match end {
                Ok(Batch::Off) => drop_all(&mut lane.consumer).map(|()| Batch::Done),
                end => end,
            };
            match end {
                Ok(Batch::More) => std::thread::yield_now(),
                Ok(end) => return end == Batch::NoRoom,
                Err(trouble) => {
                    if let Some(queue) = &mut lane.queue {
                        queue.is_bad = true;
                    }
                    self.complain(RX, trouble);
                }
            }
        }
    }

    fn receive_some(
        &self,
        consumer: &mut Consumer,
        queue: &mut Attached,
        scratch: &mut offload::Scratch,
        used: &mut Vec<Used>,
    ) -> Result<Batch, Trouble> {
        let mut state = queue.vring.get_mut();
        if !is_on(&state) {
            return Ok(Batch::Off);
        }
        let guard = queue.guest.memory();
        let mem: &GuestMemoryMmap = guard.deref();
        for _ in 0..BATCHES {
            state.get_queue_mut().disable_notification(mem)?;
            used.clear();
            let end = self.receive_batch(consumer, &mut state, mem, scratch, used);
            if give_back(state.get_queue_mut(), mem, used)? {
                signal(&state);
            }
            if consumer.unpublished() > 0 {
                consumer.publish();
            }
            match end? {
                Batch::More => {}
                Batch::Short(seen) => {
                    // Buffers that are there and too few are no news: only what comes behind them is, and is to be kicked for.
                    let queue = state.get_queue_mut();
                    let begun = queue.next_avail();
                    queue.set_next_avail(seen);
                    let more = queue.enable_notification(mem);
                    queue.set_next_avail(begun);
                    if !more? {
                        return Ok(Batch::NoRoom);
                    }
                }
                end => return Ok(end),
            }
        }
        Ok(Batch::More)
    }

    fn receive_batch(
        &self,
        consumer: &mut Consumer,
        state: &mut VringState<Guest>,
        mem: &GuestMemoryMmap,
        scratch: &mut offload::Scratch,
        used: &mut Vec<Used>,
    ) -> Result<Batch, Trouble> {
        let agreed = self.agreed();
        let queue = state.get_queue_mut();
        let mut bytes = 0;
        while used.len() < BATCH_FRAMES && bytes < BATCH_BYTES {
            // What is left of a frame that was cut.
            if let Some((header, frame)) = scratch.next() {
                let frame = VolatileSlice::from(frame);
                if let Given::NoRoom(seen) =
                    self.give(agreed, queue, mem, (&header, frame), used)?
                {
                    return Ok(Batch::Short(seen));
                }
                scratch.consume();
                continue;
            }
            let Some(record) = consumer.peek()? else {
                return Ok(Batch::Done);
            };
            let (taken, len) = (record.taken, record.frame.len());
            if len >= FRAME_MIN {
                if !agreed.takes(&record.header) {
                    scratch.take(&record.header, record.frame);
                } else {
                    let from = (&record.header, record.frame);
                    if let Given::NoRoom(seen) = self.give(agreed, queue, mem, from, used)? {
                        return Ok(Batch::Short(seen));
                    }
                }
            }
            bytes += len;
            consumer.consume(taken);
        }
        Ok(Batch::More)
    }

    /// Writes one frame into the guest's buffers.
    fn give(
        &self,
        agreed: Agreed,
        queue: &mut Queue,
        mem: &GuestMemoryMmap,
        (header, frame): (&Header, VolatileSlice<'_>),
        used: &mut Vec<Used>,
    ) -> Result<Given, Trouble> {
        let head = agreed.header_len();
        let need = head + frame.len();
        let (begun, before) = (queue.next_avail(), used.len());
        let mut pieces = Vec::with_capacity(32);
        let mut room = 0;
        // Chains of nonsense are given back first, so that a frame's buffers follow each other.
        let mut buffers: Vec<Used> = Vec::with_capacity(16);
        while room < need {
            let limit = need - room;
            let next = queue.iter(mem)?.next().map(|chain| {
                let number = chain.head_index();
                let first = pieces.len();
                let got = chain::pieces(chain, mem, true, limit, &mut pieces);
                let got = got.and_then(|len| match len {
                    0 => Err(Fault::Short),
                    len => Ok(len),
                });
                if got.is_err() {
                    pieces.truncate(first);
                }
                (number, got)
            });
            match next {
                Some((number, Ok(len))) => {
                    buffers.push((number, len as u32));
                    room += len;
                }
                Some((number, Err(fault))) => {
                    self.says.refuse(fault);
                    used.push((number, 0));
                    // More than there are, before one was given back: the guest adds to them while we look.
                    if used.len() - before > usize::from(queue.size()) {
                        return Err(Trouble::Ring);
                    }
                    // That was none of the frame's buffers, also where these can't be several.
                    continue;
                }
                None => {
                    let all = buffers.len() >= usize::from(queue.size());
                    let seen = queue.next_avail();
                    used.truncate(before);
                    queue.set_next_avail(begun);
                    return match all {
                        // The whole queue is too small for it.
                        true => Ok(self.too_large()),
                        false => Ok(Given::NoRoom(seen)),
                    };
                }
            }
            if room < need && !agreed.merges() {
                used.truncate(before);
                queue.set_next_avail(begun);
                return Ok(self.too_large());
            }
        }
        let mut header = agreed.to_guest(*header, buffers.len() as u16);
        let fits = chain::write(&pieces, 0, VolatileSlice::from(&mut header[..head]))
            .and_then(|()| chain::write(&pieces, head, frame));
        if fits.is_err() {
            unreachable!("{need} bytes fit into {room}");
        }
        used.extend(&buffers);
        Ok(Given::Done)
    }

    fn too_large(&self) -> Given {
        self.says.too_large();
        Given::Dropped
    }

    fn complain(&self, queue: usize, trouble: Trouble) {
        match trouble {
            Trouble::Ring => self.says.bad_ring(queue),
            // The node's kernel is the keeper's own: a device that starts anew is as good as any.
            Trouble::Link => {
                log::error!("{}the link's ring makes no sense", self.says.head);
                std::process::exit(1);
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Done,
    /// The index up to which there are buffers.
    NoRoom(u16),
    /// No buffer of the guest's can ever hold it.
    Dropped,
}

fn is_on(state: &VringState<Guest>) -> bool {
    state.is_enabled() && state.get_queue().ready()
}

/// Whether all of the rings lies in the guest's memory. virtio-queue takes an entry that can't be read for the end, while the
/// index says that there is more: that would be looked at for ever.
fn has_rings(queue: &Queue, mem: &GuestMemoryMmap) -> bool {
    let size = usize::from(queue.size());
    let rings = [
        (queue.desc_table(), 16 * size),
        (queue.avail_ring(), 6 + 2 * size),
        (queue.used_ring(), 6 + 8 * size),
    ];
    let mut rings = rings.into_iter();
    rings.all(|(at, len)| GuestMemoryBackend::check_range(mem, GuestAddress(at), len))
}

/// A guest that is gone hears nothing.
fn signal(state: &VringState<Guest>) {
    let _ = state.signal_used_queue();
}

fn drop_all(consumer: &mut Consumer) -> Result<(), Trouble> {
    while let Some(record) = consumer.peek()? {
        let taken = record.taken;
        consumer.consume(taken);
    }
    if consumer.unpublished() > 0 {
        consumer.publish();
    }
    Ok(())
}

/// A frame that the guest sends: its header, and its pieces with their length.
fn frame<'a>(
    agreed: Agreed,
    chain: virtio_queue::DescriptorChain<&'a GuestMemoryMmap>,
    mem: &'a GuestMemoryMmap,
    pieces: &mut Vec<VolatileSlice<'a>>,
) -> Result<(Header, usize), Fault> {
    let head = agreed.header_len();
    let bytes = chain::pieces(chain, mem, false, HEADER + FRAME_MAX as usize, pieces)?;
    if bytes < head + FRAME_MIN {
        return Err(Fault::Short);
    }
    let mut header = [0; HEADER];
    chain::take_front(pieces, &mut header[..head])?;
    let len = bytes - head;
    if len > FRAME_MAX as usize {
        return Err(Fault::Long);
    }
    Ok((agreed.judge(header)?, len))
}
