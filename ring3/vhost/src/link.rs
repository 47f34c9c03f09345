// SPDX-License-Identifier: GPL-2.0
//! The device's end of a link: kernel/drivers/net/ring3/link_ring.h, whose theory of operation counts here, in Rust.
//!
//! Each end keeps its own position in private memory and only ever stores it to the shared words. The node's position is
//! loaded once for each look and checked against the ring's size; a record's length is loaded once and checked against what was
//! published. A position that makes no sense breaks the end for good.

use std::fs::File;
use std::mem::{offset_of, size_of};
use std::sync::atomic::{fence, AtomicI32, AtomicU32, Ordering};
use std::sync::Arc;

use ring3_abi::*;
use rustix::thread::futex;
use vm_memory::{FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

use crate::error::{Error, Result};

/// Bytes; records start on cache lines. LINK_ALIGN of link_ring.h.
const ALIGN: u32 = 64;
/// Bytes: a 64 KiB segment, its Ethernet header and two VLAN tags, rounded up. LINK_FRAME_MAX.
pub const FRAME_MAX: u32 = 65536 + ALIGN;
/// Records that may lie in the ring for the node. LINK_DEPTH of link.c, which says why.
const DEPTH: usize = 128;
const RECORD: u32 = size_of::<ring3_record>() as u32;
/// Bytes of a virtio_net_hdr with a count of buffers.
pub const HEADER: usize = 12;
pub type Header = [u8; HEADER];

/// The node's side, and the device's.
pub const NODE: usize = 0;
pub const DEVICE: usize = 1;

/// The far side's word makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// All of a link's memory.
#[derive(Debug)]
pub struct Memory(MmapRegion);

const fn ring(side: usize) -> usize {
    offset_of!(ring3_link, ring) + side * size_of::<ring3_ring>()
}

const fn side(side: usize) -> usize {
    offset_of!(ring3_link, side) + side * size_of::<ring3_side>()
}

const fn record_bytes(len: u32) -> u32 {
    (len + RECORD + ALIGN - 1) & !(ALIGN - 1)
}

impl Memory {
    pub fn map(file: &File) -> Result<Arc<Memory>> {
        let file = file.try_clone().map_err(Error::io("copy a descriptor"))?;
        let map = MmapRegion::from_file(FileOffset::new(file, 0), RING3_LINK_BYTES as usize);
        let map = map.map_err(|why| Error::Map(why.to_string()))?;
        Ok(Arc::new(Memory(map)))
    }

    /// A word of the link's head, which is as long as the mapping at least.
    fn word(&self, at: usize) -> &AtomicU32 {
        match self.0.get_atomic_ref(at) {
            Ok(word) => word,
            Err(_) => unreachable!("offset {at} lies in a link's head"),
        }
    }

    /// `bytes` of a ring's data at a place that was judged to have so many.
    fn data(&self, side: usize, at: u32, bytes: u32) -> VolatileSlice<'_> {
        let start = RING3_LINK_HEAD as usize + side * RING3_RING_BYTES as usize;
        match self.0.get_slice(start + at as usize, bytes as usize) {
            Ok(slice) => slice,
            Err(_) => unreachable!("{bytes} bytes at {at} lie in a ring"),
        }
    }

    /// The device's interface is up: the node's gets its carrier.
    pub fn come_up(&self) {
        let pid = offset_of!(ring3_side, pid);
        let own = self.0.get_atomic_ref::<AtomicI32>(side(DEVICE) + pid);
        if let Ok(word) = own {
            word.store(std::process::id() as i32, Ordering::Release);
        }
        // Another value each time, so that a quick down and up is not missed.
        let value = getrandom::u32().unwrap_or(1) | 1;
        self.word(side(DEVICE) + offset_of!(ring3_side, up))
            .store(value, Ordering::Release);
        self.ring_node();
    }

    pub fn go_down(&self) {
        self.word(side(DEVICE) + offset_of!(ring3_side, up))
            .store(0, Ordering::Release);
        self.ring_node();
    }

    fn bell(&self, of: usize) -> &AtomicU32 {
        self.word(side(of) + offset_of!(ring3_side, doorbell))
    }

    fn armed(&self, of: usize) -> &AtomicU32 {
        self.word(side(of) + offset_of!(ring3_side, armed))
    }

    fn waiting(&self, of: usize) -> &AtomicU32 {
        self.word(side(of) + offset_of!(ring3_side, waiting))
    }

    fn ring_node(&self) {
        ring_bell(self.bell(NODE));
    }

    /// Wakes the device's own thread that waits for the link.
    pub fn ring_self(&self) {
        ring_bell(self.bell(DEVICE));
    }

    /// What to give to wait(): taken before the last look at what is waited for.
    pub fn bell_now(&self) -> u32 {
        self.bell(DEVICE).load(Ordering::Acquire)
    }

    /// Asks for the bell, or no more. Then what is waited for has to be looked at once more.
    pub fn arm(&self, is_asleep: bool) {
        self.armed(DEVICE)
            .store(u32::from(is_asleep), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Sleeps until the bell has been rung since bell_now().
    pub fn wait(&self, bell: u32) {
        // A signal or a bell that was rung: the caller looks.
        let _ = futex::wait(self.bell(DEVICE), futex::Flags::empty(), bell, None);
    }
}

/// The futex is shared by processes: no private one.
fn ring_bell(bell: &AtomicU32) {
    bell.fetch_add(1, Ordering::SeqCst);
    // All sleepers, as ring3_host_wake(): one may be frozen, or die before it looks.
    let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
}

/// A waker's look at a sleeper's flag, after publishing: true if it was there and is ours to wake.
fn take_flag(flag: &AtomicU32) -> bool {
    fence(Ordering::SeqCst);
    flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::SeqCst) != 0
}

/// Is `a` behind `b`, on positions that wrap?
fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Sends to the node.
#[derive(Debug)]
pub struct Producer {
    memory: Arc<Memory>,
    /// Its end's side, and the other.
    own: usize,
    far: usize,
    head: u32,
    /// The node's, as last seen.
    tail: u32,
    published: u32,
    records: usize,
    /// Where the last records ended, by their number.
    ends: [u32; DEPTH],
    is_broken: bool,
}

impl Producer {
    /// The device's.
    pub fn new(memory: Arc<Memory>) -> Producer {
        Producer::of(memory, DEVICE)
    }

    /// Goes on from the position in its own word, since the far side may be at work already.
    pub(crate) fn of(memory: Arc<Memory>, own: usize) -> Producer {
        let word = memory.word(ring(own) + offset_of!(ring3_ring, head));
        let head = (word.load(Ordering::Relaxed).wrapping_add(ALIGN - 1)) & !(ALIGN - 1);
        word.store(head, Ordering::Release);
        Producer {
            memory,
            own,
            far: 1 - own,
            head,
            tail: head.wrapping_sub(RING3_RING_BYTES),
            published: head,
            records: 0,
            ends: [head; DEPTH],
            is_broken: false,
        }
    }

    fn follow(&mut self) -> std::result::Result<(), Broken> {
        let word = self
            .memory
            .word(ring(self.own) + offset_of!(ring3_ring, tail));
        let tail = word.load(Ordering::Acquire);
        if self.head.wrapping_sub(tail) > RING3_RING_BYTES {
            self.is_broken = true;
            return Err(Broken);
        }
        self.tail = tail;
        Ok(())
    }

    /// Is there room for any frame, and has the node not too many to take?
    pub fn is_ready(&mut self) -> std::result::Result<bool, Broken> {
        if self.is_broken {
            return Err(Broken);
        }
        if self.is_ready_now() {
            return Ok(true);
        }
        self.follow()?;
        Ok(self.is_ready_now())
    }

    fn is_ready_now(&self) -> bool {
        let need = record_bytes(FRAME_MAX);
        let contiguous = RING3_RING_BYTES - (self.head & (RING3_RING_BYTES - 1));
        let cost = if need <= contiguous {
            need
        } else {
            contiguous + need
        };
        let oldest = self.ends[self.records % DEPTH];
        RING3_RING_BYTES - self.head.wrapping_sub(self.tail) >= cost && !is_after(oldest, self.tail)
    }

    /// Puts a frame into the ring, where is_ready() found room: `fill` writes its bytes.
    pub fn put(&mut self, header: &Header, len: u32, fill: impl FnOnce(VolatileSlice<'_>)) {
        debug_assert!(len <= FRAME_MAX);
        let need = record_bytes(len);
        let mut at = self.head & (RING3_RING_BYTES - 1);
        if need > RING3_RING_BYTES - at {
            let skip = self.memory.data(self.own, at, 4);
            skip.copy_from(&RING3_RECORD_SKIP.to_le_bytes());
            self.head = self.head.wrapping_add(RING3_RING_BYTES - at);
            at = 0;
        }
        let record = self.memory.data(self.own, at, RECORD);
        let mut head = [0; RECORD as usize];
        head[..4].copy_from_slice(&len.to_le_bytes());
        head[4..4 + HEADER].copy_from_slice(header);
        record.copy_from(&head);
        fill(self.memory.data(self.own, at + RECORD, len));
        self.head = self.head.wrapping_add(need);
        self.ends[self.records % DEPTH] = self.head;
        self.records += 1;
    }

    /// Lets the node see what was put, and wakes it where it sleeps.
    pub fn publish(&mut self) {
        if self.published == self.head {
            return;
        }
        self.published = self.head;
        self.memory
            .word(ring(self.own) + offset_of!(ring3_ring, head))
            .store(self.head, Ordering::Release);
        if take_flag(self.memory.armed(self.far)) {
            ring_bell(self.memory.bell(self.far));
        }
    }

    /// Asks the node to ring when half of what lies there has been taken. After that is_ready() has to be asked once more.
    pub fn ask_for_room(&mut self) {
        let half = self.head.wrapping_sub(RING3_RING_BYTES / 2);
        // The record that leaves half of the depth behind it.
        let mark = self.ends[(self.records + DEPTH / 2) % DEPTH];
        let mut at = if is_after(mark, half) { mark } else { half };
        if !is_after(at, self.tail) {
            at = self.tail.wrapping_add(ALIGN);
        }
        // Bit 0 says that it waits: never 0.
        self.memory
            .waiting(self.own)
            .store(at | 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub fn ask_no_more(&self) {
        self.memory.waiting(self.own).store(0, Ordering::Relaxed);
    }
}

/// Takes from the node.
#[derive(Debug)]
pub struct Consumer {
    memory: Arc<Memory>,
    far: usize,
    /// The node's, as last seen.
    head: u32,
    tail: u32,
    published: u32,
    is_broken: bool,
}

/// A record that was published: its header, copied once, and its bytes, which the node may change.
#[derive(Debug)]
pub struct Record<'a> {
    pub header: Header,
    pub frame: VolatileSlice<'a>,
    /// To be given to consume().
    pub taken: Taken,
}

/// Bytes of a record with its head, and the position behind it.
#[derive(Debug, Clone, Copy)]
pub struct Taken(u32);

impl Consumer {
    /// The device's.
    pub fn new(memory: Arc<Memory>) -> Consumer {
        Consumer::from(memory, NODE)
    }

    /// What was sent before it came was for whoever had this side before.
    pub(crate) fn from(memory: Arc<Memory>, far: usize) -> Consumer {
        let head = memory
            .word(ring(far) + offset_of!(ring3_ring, head))
            .load(Ordering::Acquire);
        let head = head & !(ALIGN - 1);
        memory
            .word(ring(far) + offset_of!(ring3_ring, tail))
            .store(head, Ordering::Release);
        Consumer {
            memory,
            far,
            head,
            tail: head,
            published: head,
            is_broken: false,
        }
    }

    /// Whether there is something to take, or nonsense to be found.
    pub fn has_more(&self) -> bool {
        let word = self
            .memory
            .word(ring(self.far) + offset_of!(ring3_ring, head));
        word.load(Ordering::Acquire) != self.tail && !self.is_broken
    }

    /// Follows the node's position; how many bytes are there.
    fn available(&mut self) -> Option<u32> {
        let mut bytes = self.head.wrapping_sub(self.tail);
        if bytes == 0 {
            let word = self
                .memory
                .word(ring(self.far) + offset_of!(ring3_ring, head));
            self.head = word.load(Ordering::Acquire);
            bytes = self.head.wrapping_sub(self.tail);
            if bytes > RING3_RING_BYTES || bytes & (ALIGN - 1) != 0 {
                return None;
            }
        }
        Some(bytes)
    }

    /// The next record, if one is published.
    pub fn peek(&mut self) -> std::result::Result<Option<Record<'_>>, Broken> {
        if self.is_broken {
            return Err(Broken);
        }
        let found = self.find();
        self.is_broken = found.is_err();
        let Some((at, len)) = found? else {
            return Ok(None);
        };
        let mut header = [0; HEADER];
        self.memory
            .data(self.far, at + 4, HEADER as u32)
            .copy_to(&mut header);
        Ok(Some(Record {
            header,
            frame: self.memory.data(self.far, at + RECORD, len),
            taken: Taken(record_bytes(len)),
        }))
    }

    /// Place and length of the next record.
    fn find(&mut self) -> std::result::Result<Option<(u32, u32)>, Broken> {
        // The second turn is after a skip.
        for _ in 0..2 {
            let bytes = self.available().ok_or(Broken)?;
            if bytes == 0 {
                return Ok(None);
            }
            let at = self.tail & (RING3_RING_BYTES - 1);
            let contiguous = RING3_RING_BYTES - at;
            let mut len = [0; 4];
            self.memory.data(self.far, at, 4).copy_to(&mut len);
            let len = u32::from_le_bytes(len);
            if len == RING3_RECORD_SKIP {
                if at == 0 || contiguous > bytes {
                    return Err(Broken);
                }
                self.tail = self.tail.wrapping_add(contiguous);
                continue;
            }
            if len > FRAME_MAX {
                return Err(Broken);
            }
            let need = record_bytes(len);
            if need > bytes || need > contiguous {
                return Err(Broken);
            }
            return Ok(Some((at, len)));
        }
        Err(Broken)
    }

    pub fn consume(&mut self, taken: Taken) {
        self.tail = self.tail.wrapping_add(taken.0);
    }

    /// Bytes taken that the node does not know of yet.
    pub fn unpublished(&self) -> u32 {
        self.tail.wrapping_sub(self.published)
    }

    /// Gives room back, and rings where the node waits for it and has so much now.
    pub fn publish(&mut self) {
        self.published = self.tail;
        self.memory
            .word(ring(self.far) + offset_of!(ring3_ring, tail))
            .store(self.tail, Ordering::Release);
        fence(Ordering::SeqCst);
        let waiting = self.memory.waiting(self.far);
        let at = waiting.load(Ordering::Relaxed);
        let has_come = at != 0 && !is_after(at & !1, self.published);
        if has_come && waiting.swap(0, Ordering::SeqCst) != 0 {
            ring_bell(self.memory.bell(self.far));
        }
    }
}
