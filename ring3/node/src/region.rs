// SPDX-License-Identifier: GPL-2.0
//! The region: making it, and the words of it that the keeper reads and writes. Unsafe leaf.
//!
//! load.rs says how it comes about and where its parts lie.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use ring3_abi::*;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

use crate::clock::{self, Sample};
use crate::elf::{c_string, Image};
use crate::error::{Errno, Error, Result};
use crate::load::{self, Slots};
use crate::sys::futex_wake;
use crate::xsk::RINGS;

/// How often to wait for the reason of a node that has just been poisoned.
const POISON_TRIES: usize = 10;
const POISON_TURN: Duration = Duration::from_micros(200);

/// The values that the keeper writes into a fresh region.
#[derive(Debug)]
pub(crate) struct Params<'a> {
    pub name: &'a str,
    pub size: u64,
    pub cmdline: &'a str,
    pub spin_ns: u32,
    pub grace: Duration,
    pub host_cpuid: bool,
    /// In virtual time, the seed of everything random.
    pub seed: u64,
}

/// The start of time in a simulation: 2000-01-01, midnight UTC.
pub const SIM_EPOCH: Duration = Duration::from_secs(946_684_800);

/// splitmix64: the seed's 64 bits, spread over the bytes that the kernel's pool takes.
fn spread(mut seed: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    for word in bytes.chunks_exact_mut(8) {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = seed;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(x ^ (x >> 31)).to_ne_bytes());
    }
    bytes
}

/// A node's memory, mapped into this process.
#[derive(Debug)]
pub(crate) struct Region {
    base: u64,
    size: u64,
    memory: OwnedFd,
    inode: u64,
    text: Range<u64>,
    boot: u64,
    enter: u64,
    fixup: u64,
    /// Address of the adopter's thread block, or 0.
    adopter: AtomicU64,
    /// Its process. Programs can write region->tracer.
    adopter_pid: AtomicI32,
    pub version: String,
    pub image: PathBuf,
    /// Holds the slot's lock.
    _slots: Slots,
}

/// One live entry of procs[].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcEntry {
    pub index: usize,
    pub state: u32,
    pub pid: i32,
    pub threads: u32,
}

impl Region {
    /// Loads the image into a new region and prepares it for boot.
    /// `locks`: the file of [`Folder::slots`], if this process can have it.
    pub fn create(image: &Image, params: &Params<'_>, locks: Option<File>) -> Result<Region> {
        let first = Sample::now();
        // With less than twice the image's size, there is too little memory to run.
        if params.size < image.size * 2 {
            return Err(Error::MemoryTooSmall {
                size: params.size,
                image: image.size,
            });
        }
        let memory = load::make_memory(params.name, params.size)?;
        load::copy_image(image, &memory)?;
        let slots = match image.is_sim() {
            true => Slots::Fixed,
            false => Slots::Any(locks),
        };
        let base = load::map(&memory, params.size, &image.text, &slots)?;
        let inode = rustix::fs::fstat(&memory)
            .map_err(Error::host("look at the node's memory"))?
            .st_ino;
        let region = Region {
            base,
            size: params.size,
            memory,
            inode,
            text: image.text.clone(),
            boot: image.boot,
            enter: image.enter,
            fixup: image.fixup,
            adopter: AtomicU64::new(0),
            adopter_pid: AtomicI32::new(0),
            version: image.version.clone(),
            image: image.path.clone(),
            _slots: slots,
        };
        region.fill(params, first)?;
        if image.is_sim() {
            region.make_virtual(params.seed);
        }
        Ok(region)
    }

    /// A region of another keeper's node, which lies at `base` in each of the node's processes.
    pub fn join(
        memory: OwnedFd,
        base: u64,
        size: u64,
        text: Range<u64>,
        name: &str,
    ) -> Result<Region> {
        let slots = RING3_SPACE_BASE..=RING3_SPACE_END - RING3_SLOT_SIZE;
        let is_sane = slots.contains(&base)
            && (base - RING3_SPACE_BASE).is_multiple_of(RING3_SLOT_SIZE)
            && text.start < text.end
            && text.end <= size
            && size <= RING3_REGION_MAX;
        if !is_sane {
            return Err(Error::NoAnswer {
                name: name.to_owned(),
                why: "it says that its memory is where none can be".into(),
            });
        }
        let stat = rustix::fs::fstat(&memory).map_err(Error::host("look at the node's memory"))?;
        load::map_at(&memory, size, &text, base, name)?;
        // SAFETY: the region is mapped, and starts with this struct. The words read here do not change once it is up.
        let head = unsafe { &*(base as *const ring3_region) };
        Ok(Region {
            base,
            size,
            inode: stat.st_ino,
            memory,
            text,
            boot: head.boot,
            enter: head.enter,
            fixup: head.fixup,
            adopter: AtomicU64::new(0),
            adopter_pid: AtomicI32::new(0),
            version: String::new(),
            image: PathBuf::new(),
            _slots: Slots::Any(None),
        })
    }

    /// Writes the keeper's group of struct ring3_region and the thread blocks of this process.
    fn fill(&self, params: &Params<'_>, first: Sample) -> Result<()> {
        let mut seed = [0; 64];
        getrandom::fill(&mut seed).map_err(|_| Error::Host {
            what: "get random bytes".into(),
            why: Errno(libc::EIO),
        })?;
        let (tsc_khz, sample) = clock::calibrate(first);
        // SAFETY: the region is mapped, larger than the struct (it holds the image, which
        // starts with it), and nobody else has it yet.
        let r = unsafe { &mut *(self.base as *mut ring3_region) };
        r.base = self.base;
        r.size = self.size;
        r.tsc_khz = tsc_khz;
        r.boot_tsc = sample.tsc;
        r.boot_monotonic_ns = sample.monotonic_ns;
        r.boot_realtime_ns = sample.realtime_ns;
        r.seed = seed;
        put_string(&mut r.node_name, params.name);
        put_string(&mut r.cmdline, params.cmdline);
        r.keeper_pid = std::process::id() as i32;
        r.spin_ns = params.spin_ns;
        r.grace_ms = params.grace.as_millis() as u32;
        if params.host_cpuid {
            r.cpuid.use_ = RING3_CPUID_HOST.into();
        }
        let proc = &raw const r.init_proc as u64;
        r.init_proc.state = RING3_PROC_LIVE.into();
        r.init_proc.pid = (std::process::id() as i32).into();
        for fd in &r.init_proc.port_fd {
            fd.store(-1, Ordering::Relaxed);
        }
        let drivers = r.driver_thread.iter_mut();
        for thread in drivers.chain([&mut r.init_thread]) {
            thread.self_ = thread as *const _ as u64;
            thread.region = self.base;
            thread.proc = proc;
            thread.fdmap = 0;
        }
        Ok(())
    }

    /// Time and randomness that do not come from the host.
    fn make_virtual(&self, seed: u64) {
        // SAFETY: as in fill(), which has just been there.
        let r = unsafe { &mut *(self.base as *mut ring3_region) };
        r.tsc_khz = 0;
        r.boot_tsc = 0;
        r.boot_monotonic_ns = 0;
        r.host_start_ns = r.boot_realtime_ns;
        r.boot_realtime_ns = SIM_EPOCH.as_nanos() as u64;
        r.seed = spread(seed);
    }

    pub fn at<T>(&self, offset: usize) -> *mut T {
        (self.base + offset as u64) as *mut T
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: every caller passes the offset of an AtomicU32 of struct ring3_region, which
        // stays mapped as long as self is.
        unsafe { &*self.at(offset) }
    }

    pub fn base(&self) -> u64 {
        self.base
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn text(&self) -> Range<u64> {
        self.text.clone()
    }

    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// Calls of the node's programs, by way: `RING3_STAT_*`.
    pub fn counts(&self) -> [u64; RING3_STAT_COUNTS] {
        // SAFETY: a field of the mapped structure, of atomics only.
        let counts: &[AtomicU64; RING3_STAT_COUNTS] =
            unsafe { &*self.at(offset_of!(ring3_region, stat)) };
        std::array::from_fn(|i| counts[i].load(Ordering::Relaxed))
    }

    /// Waits that only their time limit ended: ring3_stat.h.
    pub fn late(&self) -> u64 {
        // SAFETY: a field of the mapped structure, an atomic.
        let late: &AtomicU64 = unsafe { &*self.at(offset_of!(ring3_region, late)) };
        late.load(Ordering::Relaxed)
    }

    /// For nodes on which many programs start: see `load::make_parts_huge`. Takes 10 ms of the processor and up to 10 MiB, and for
    /// nodes with more memory in use more.
    pub fn make_huge(&self) {
        let made = load::make_parts_huge(self.memory());
        log::info!("{made} huge pages for the node's memory");
    }

    /// Whether process `index` has not been sent its SIGTERM at the node's end; marks it as sent.
    pub fn is_first_to_end(&self, index: usize) -> bool {
        self.proc(index)
            .end
            .fetch_or(RING3_END_TERM, Ordering::AcqRel)
            & RING3_END_TERM
            == 0
    }

    /// The inode number of the region's file.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Bytes of host memory that the region uses.
    pub fn resident(&self) -> u64 {
        rustix::fs::fstat(&self.memory).map_or(0, |stat| stat.st_blocks as u64 * 512)
    }

    /// Addresses of the image's entry points: boot, enter, fixup.
    pub fn boot_address(&self) -> u64 {
        self.base + self.boot
    }

    pub fn enter_address(&self) -> u64 {
        self.base + self.enter
    }

    pub fn fixup_address(&self) -> u64 {
        self.base + self.fixup
    }

    /// Thread block of pid 1.
    pub fn init_thread(&self) -> u64 {
        self.base + offset_of!(ring3_region, init_thread) as u64
    }

    /// Thread blocks of the keeper's drivers, 0..4.
    pub fn driver_thread(&self, n: usize) -> u64 {
        assert!(n < 4);
        let first = offset_of!(ring3_region, driver_thread);
        self.base + (first + n * size_of::<ring3_thread>()) as u64
    }

    /// The adopter is process `pid`, and its thread block is at `address`.
    pub fn set_adopter(&self, pid: i32, address: u64) {
        let blocks = self.base..self.base + self.size - size_of::<ring3_thread>() as u64;
        assert!(blocks.contains(&address) && address.is_multiple_of(8));
        self.adopter_pid.store(pid, Ordering::Release);
        self.adopter.store(address, Ordering::Release);
    }

    /// The adopter's struct ring3_proc; `None`: it has never joined.
    fn adopter_proc(&self) -> Option<*const ring3_proc> {
        let address = self.adopter.load(Ordering::Acquire);
        if address == 0 {
            return None;
        }
        // SAFETY: a thread block in the mapped region (set_adopter), filled in by the image.
        let proc = unsafe { (&raw const (*(address as *const ring3_thread)).proc).read_volatile() };
        let procs = self.base..self.base + self.size - size_of::<ring3_proc>() as u64;
        (procs.contains(&proc) && proc.is_multiple_of(8)).then_some(proc as *const ring3_proc)
    }

    /// How the adopter works (RING3_ADOPTS_*) and what it has done so far, by RING3_ADOPTED and
    /// RING3_FREED; `None`: there is none.
    pub fn adopter(&self) -> Option<(u32, [u32; 2])> {
        // SAFETY: an aligned address inside the mapped region with room for the struct.
        let proc = unsafe { &*self.adopter_proc()? };
        if proc.state.load(Ordering::Acquire) != RING3_PROC_LIVE {
            return None;
        }
        let thread = self.adopter.load(Ordering::Acquire) as *const ring3_thread;
        let done = [RING3_ADOPTED, RING3_FREED]
            // SAFETY: words of the thread block that adopter_proc() has found, which the adopter writes.
            .map(|i| unsafe { (&raw const (*thread).gate[i]).read_volatile() } as u32);
        Some((proc.threads.load(Ordering::Acquire), done))
    }

    fn tracer(&self) -> &AtomicI32 {
        // SAFETY: an atomic of struct ring3_region, which stays mapped as long as self is.
        unsafe { &*self.at(offset_of!(ring3_region, tracer)) }
    }

    /// The node may get an adopter that works by ptrace().
    pub fn may_have_tracer(&self) {
        self.tracer().store(-1, Ordering::Release);
    }

    /// A debugger wants the place of the adopter's, for this process of the node's.
    pub fn want_place(&self, index: usize) {
        self.proc(index).place.fetch_add(1, Ordering::AcqRel);
    }

    /// The adopter traces no thread of the process.
    pub fn is_place_free(&self, index: usize) -> bool {
        self.tracer().load(Ordering::Acquire) <= 0
            || self.proc(index).place.load(Ordering::Acquire) & RING3_PLACE_FREE != 0
    }

    pub fn leave_place(&self, index: usize) {
        let less = |place: u32| match place & RING3_PLACE_WANTED {
            // The entry was reused meanwhile.
            0 => place,
            _ => place - 1,
        };
        let place = &self.proc(index).place;
        let _ = place.fetch_update(Ordering::AcqRel, Ordering::Acquire, |it| Some(less(it)));
    }

    /// The host lets the adopter not trace the process.
    pub fn is_refused(&self, index: usize) -> bool {
        self.proc(index).traced.load(Ordering::Acquire) == RING3_TRACED_REFUSED
    }

    /// The process that the adopter is, if it works by ptrace().
    pub fn tracer_pid(&self) -> Option<i32> {
        let traces = self.tracer().load(Ordering::Acquire) > 0;
        Some(self.adopter_pid.load(Ordering::Acquire)).filter(|&pid| traces && pid > 0)
    }

    pub fn adopter_is_gone(&self) {
        self.may_have_tracer();
        if let Some(proc) = self.adopter_proc() {
            // SAFETY: as in adopter().
            unsafe { &*proc }
                .state
                .store(RING3_PROC_FREE, Ordering::Release);
        }
    }

    /// The tids of owners of vCPUs that do not only poll.
    pub fn holders(&self) -> Vec<u32> {
        let owners = self.vcpus().map(|vcpu| vcpu.owner.load(Ordering::Acquire));
        owners
            .filter(|owner| *owner != 0 && owner & RING3_OWNER_POLLING == 0)
            .map(|owner| owner & RING3_OWNER_TID)
            .collect()
    }

    pub fn init_proc(&self) -> u64 {
        self.base + offset_of!(ring3_region, init_proc) as u64
    }

    pub fn state(&self) -> u32 {
        self.word(offset_of!(ring3_region, state))
            .load(Ordering::Acquire)
    }

    /// The image's boot is about to be called.
    pub fn set_booting(&self) {
        self.word(offset_of!(ring3_region, state))
            .store(RING3_BOOTING, Ordering::Release);
    }

    /// Whether the vCPU is owned, or has been: it keeps its last driver.
    pub fn vcpu_was_held(&self) -> bool {
        let driver = offset_of!(ring3_region, vcpu) + offset_of!(ring3_vcpu, driver);
        // Half of an address; that of a thread block in the region is never 0 in either.
        self.vcpu_owner().load(Ordering::Acquire) != 0
            || self.word(driver + 4).load(Ordering::Acquire) != 0
    }

    /// The reason, if the node is poisoned.
    pub fn poison(&self) -> Option<String> {
        if self.state() != RING3_POISONED {
            return None;
        }
        // The state is written first, so that only one thread writes the text: give it a moment.
        (0..POISON_TRIES)
            .find_map(|_| {
                // SAFETY: 128 bytes of the mapped struct, copied out.
                let bytes: [u8; 128] = unsafe {
                    self.at::<[u8; 128]>(offset_of!(ring3_region, poison))
                        .read_volatile()
                };
                // Any program of the node can write there.
                let why = c_string(&bytes).replace(char::is_control, "?");
                if why.is_empty() {
                    std::thread::sleep(POISON_TURN);
                }
                (!why.is_empty()).then_some(why)
            })
            .or_else(|| Some("it does not say why".into()))
    }

    /// Ends the node: KEEP returns, calls fail. A poisoned node stays poisoned.
    pub fn set_down(&self) {
        let state = self.word(offset_of!(ring3_region, state));
        let _ = state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            (now != RING3_POISONED).then_some(RING3_DOWN)
        });
        self.kick();
    }

    /// Wakes KEEP.
    pub fn kick(&self) {
        let kick = self.word(offset_of!(ring3_region, kick));
        kick.fetch_add(1, Ordering::AcqRel);
        futex_wake(kick);
    }

    /// Raises interrupts (RING3_IRQ_*).
    pub fn raise(&self, irqs: u32) {
        self.word(offset_of!(ring3_region, pending))
            .fetch_or(irqs, Ordering::AcqRel);
    }

    /// The futex word that changes whenever procs[] changes.
    pub fn procs_gen(&self) -> &AtomicU32 {
        self.word(offset_of!(ring3_region, procs_gen))
    }

    /// Wakes threads that sleep on `procs_gen`.
    pub fn poke_procs(&self) {
        self.procs_gen().fetch_add(1, Ordering::AcqRel);
        futex_wake(self.procs_gen());
    }

    fn proc(&self, index: usize) -> &ring3_proc {
        assert!(index < RING3_PROCS_MAX);
        let first = offset_of!(ring3_region, procs);
        // SAFETY: one entry of procs[], mapped as long as self is; those of its fields that
        // are read here are atomics.
        unsafe { &*self.at(first + index * size_of::<ring3_proc>()) }
    }

    /// The entries of procs[] in use.
    pub fn procs(&self) -> impl Iterator<Item = ProcEntry> + '_ {
        // An entry that comes into use meanwhile changes procs_gen, so the caller will look again.
        let used = self.word(offset_of!(ring3_region, procs_used));
        (0..(used.load(Ordering::Acquire) as usize).min(RING3_PROCS_MAX))
            .map(|index| self.proc_entry(index))
            .filter(|entry| entry.state != RING3_PROC_FREE)
    }

    /// As the image does for a new process.
    #[cfg(test)]
    pub fn set_proc(&self, index: usize, pid: i32) {
        let proc = self.proc(index);
        proc.pid.store(pid, Ordering::Release);
        proc.state.store(RING3_PROC_LIVE, Ordering::Release);
        self.word(offset_of!(ring3_region, procs_used))
            .fetch_max(index as u32 + 1, Ordering::AcqRel);
    }

    /// The start time of the entry's process, as /proc/PID/stat has it; 0: it has not been read.
    pub fn started(&self, index: usize) -> u64 {
        self.proc(index).started.load(Ordering::Acquire)
    }

    pub fn set_started(&self, index: usize, ticks: u64) {
        self.proc(index).started.store(ticks, Ordering::Release);
    }

    pub fn proc_entry(&self, index: usize) -> ProcEntry {
        let proc = self.proc(index);
        ProcEntry {
            index,
            state: proc.state.load(Ordering::Acquire),
            pid: proc.pid.load(Ordering::Acquire),
            threads: proc.threads.load(Ordering::Relaxed),
        }
    }

    /// Marks an entry dead if it is still process `pid`'s; false: it is not.
    pub fn mark_dead(&self, index: usize, pid: i32) -> bool {
        let proc = self.proc(index);
        let is_ours = || proc.pid.load(Ordering::Acquire) == pid;
        let state = &proc.state;
        let (live, dead) = (RING3_PROC_LIVE, RING3_PROC_DEAD);
        if !is_ours() {
            return false;
        }
        match state.compare_exchange(live, dead, Ordering::AcqRel, Ordering::Acquire) {
            // The entry was freed and reused in between.
            Ok(_) if !is_ours() => {
                state.store(live, Ordering::Release);
                false
            }
            Ok(_) => true,
            Err(now) => now == dead,
        }
    }

    /// The vCPU's owner word, RING3_OWNER_*.
    pub fn vcpu_owner(&self) -> &AtomicU32 {
        self.word(offset_of!(ring3_region, vcpu) + offset_of!(ring3_vcpu, owner))
    }

    /// Poisons the node for the reason `why`, as the image's own ring3_poison() does.
    pub fn set_poisoned(&self, why: &str) {
        let mut text = [0; 128];
        put_string(&mut text, why);
        let state = self.word(offset_of!(ring3_region, state));
        let is_first = state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            (now < RING3_POISONED).then_some(RING3_POISONED)
        });
        if is_first.is_err() {
            return;
        }
        // SAFETY: 128 bytes of the mapped struct that the first to poison writes.
        unsafe {
            self.at::<[u8; 128]>(offset_of!(ring3_region, poison))
                .write_volatile(text)
        };
        futex_wake(state);
        self.kick();
        futex_wake(self.vcpu_owner());
        // Other threads sleep on words of their own, and check the state from time to time.
        let init = offset_of!(ring3_region, init_thread);
        futex_wake(self.word(init + offset_of!(ring3_thread, word)));
    }

    pub fn proc_address(&self, index: usize) -> u64 {
        self.proc(index) as *const _ as u64
    }

    /// Tells the image which descriptor of this process port `port` has; `proc` is the address
    /// of one of this process's struct ring3_proc.
    pub fn set_port_fd(&self, proc: u64, port: usize, fd: i32) {
        let all = self.init_proc()..self.base + size_of::<ring3_region>() as u64;
        assert!(all.contains(&proc) && port < RING3_PORTS_MAX);
        // SAFETY: `proc` lies in the array that starts at init_proc and ends with the struct.
        let proc = unsafe { &*(proc as *const ring3_proc) };
        proc.port_fd[port].store(fd, Ordering::Release);
    }

    fn window(&self, port: usize) -> u64 {
        assert!(port < RING3_PORTS_MAX);
        self.base + RING3_LINK_OFFSET + port as u64 * RING3_LINK_STRIDE
    }

    /// Maps the rings of an AF_XDP socket into port `port`'s window and returns its address.
    pub fn map_xdp(&self, port: usize, socket: BorrowedFd<'_>) -> Result<u64> {
        let window = self.window(port);
        for ring in RINGS {
            // SAFETY: as in map_link(); the rings lie apart and within the window.
            unsafe {
                mmap(
                    (window + ring.at) as *mut c_void,
                    ring.bytes,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::SHARED | MapFlags::FIXED,
                    socket,
                    ring.offset,
                )
            }
            .map_err(Error::host("map the rings of an AF_XDP socket"))?;
        }
        Ok(window)
    }

    /// Removes from this process for good all means to change the kernel's text: its writable
    /// alias, and the descriptor of the memory, which is replaced by an eventfd. For a node that no
    /// program joins. From then on the kernel's jump labels write to a copy that is never executed:
    /// the branches stay as they are. So no feature that is off may be turned on any more; code
    /// that runs once (DO_ONCE) checks each time whether it has run.
    pub fn fix_text(&self) -> Result<()> {
        let alias = self.base + RING3_ALIAS_OFFSET + self.text.start;
        // SAFETY: the alias is a part of the slot that create() reserved. Kernel code alone knows it, and writes there only.
        unsafe {
            mmap(
                alias as *mut c_void,
                (self.text.end - self.text.start) as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
                &self.memory,
                self.text.start,
            )
        }
        .map_err(Error::host(
            "take away the writable alias of a kernel's text",
        ))?;
        // This process may not open any file.
        let nothing = crate::drivers::event_fd()?;
        crate::sys::replace(&self.memory, &nothing).map_err(|why| Error::Host {
            what: "close a node's memory".into(),
            why,
        })
    }

    /// Maps a link's memory into port `port`'s window and returns its address.
    pub fn map_link(&self, port: usize, link: BorrowedFd<'_>) -> Result<u64> {
        let window = self.window(port);
        // SAFETY: the window is part of the slot that create() reserved and is port's own.
        unsafe {
            mmap(
                window as *mut c_void,
                RING3_LINK_BYTES as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::FIXED,
                link,
                0,
            )
        }
        .map_err(Error::host("map a link's memory"))?;
        Ok(window)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the slot is ours since create(); handle.rs drops the region only after the
        // last thread that enters it has ended.
        let _ = unsafe { munmap(self.base as *mut c_void, RING3_SLOT_SIZE as usize) };
    }
}

/// Writes text with its NUL; what is too long is cut (the configuration checks lengths).
fn put_string(to: &mut [u8], text: &str) {
    let len = text.len().min(to.len() - 1);
    to[..len].copy_from_slice(&text.as_bytes()[..len]);
    to[len..].fill(0);
}
