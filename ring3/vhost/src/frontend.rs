// SPDX-License-Identifier: GPL-2.0
//! One virtual machine's connection: what its frontend says, and the kicks of its guest.
//!
//! vhost parses the messages, vhost-user-backend keeps the queues' state. Its own handler of messages is not used: it ends the
//! connection where a queue is enabled before the features are agreed on, as QEMU does, and its worker ends in silence at a
//! kick that can't be read.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags};
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use vhost::vhost_user::message::*;
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use vhost::VhostUserMemoryRegionBase;
use vhost_user_backend::{VringMutex, VringT};
use virtio_bindings::bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;
use vm_memory::{GuestAddress, GuestAddressSpace, GuestMemoryMmap, GuestRegionMmap};

use crate::features::OFFERED;
use crate::lanes::{Guest, Lanes, QUEUES, RX, TX};

/// Descriptors of a queue. QEMU's largest.
const QUEUE_MAX: u16 = 1024;
/// Pieces of the guest's memory, those that come later among them: what vhost in the kernel takes.
const REGIONS_MAX: usize = 509;

/// Hears of changes of the guest's state, in words.
pub type Hears = dyn Fn(&str) + Send + Sync;
pub const CONNECTED: &str = "a virtual machine whose driver is not up";

/// What the connection's threads share.
pub struct Device {
    lanes: Arc<Lanes>,
    guest: Guest,
    hears: Arc<Hears>,
    queues: [VringMutex; QUEUES],
    kicks: Mutex<[Option<Arc<File>>; QUEUES]>,
    /// The worker is to look at the queues and their kicks anew.
    changed: OwnedFd,
    is_over: AtomicBool,
}

impl Device {
    pub fn new(lanes: Arc<Lanes>, hears: Arc<Hears>) -> io::Result<Arc<Device>> {
        let guest = Guest::new(GuestMemoryMmap::new());
        let queue = || VringMutex::new(guest.clone(), QUEUE_MAX).map_err(io::Error::other);
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Arc::new(Device {
            lanes,
            hears,
            queues: [queue()?, queue()?],
            guest,
            kicks: Mutex::default(),
            changed: eventfd(0, flags)?,
            is_over: AtomicBool::new(false),
        }))
    }

    fn kicks(&self) -> MutexGuard<'_, [Option<Arc<File>>; QUEUES]> {
        self.kicks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_worker(&self) {
        let _ = rustix::io::write(&self.changed, &1u64.to_ne_bytes());
    }

    /// Enables both queues.
    pub fn enable(&self) {
        self.queues.iter().for_each(|queue| queue.set_enabled(true));
        self.tell_worker();
    }

    /// Ends the worker, and gives back the queues.
    pub fn end(&self, worker: std::thread::JoinHandle<()>) {
        self.is_over.store(true, Ordering::Release);
        self.tell_worker();
        let _ = worker.join();
        for number in 0..QUEUES {
            self.detach(number);
        }
    }

    /// The queue may be on: then it is used from here on.
    fn look_at(&self, number: usize) {
        if self.lanes.attach(number, &self.queues[number], &self.guest) {
            let (head, words) = (&self.lanes.says.head, self.lanes.agreed().words());
            log::info!("{head}the guest's driver is up, {words}");
            (self.hears)(&format!("a virtual machine, {words}"));
            self.lanes.memory.come_up();
        }
        match number {
            TX => self.lanes.send(),
            RX => self.lanes.memory.ring_self(),
            _ => {}
        }
    }

    fn detach(&self, number: usize) {
        if self.lanes.detach(number) {
            self.lanes.memory.go_down();
            let (head, sum) = (&self.lanes.says.head, self.lanes.says.sum());
            log::info!("{head}the guest's driver is down{sum}");
            (self.hears)(CONNECTED);
        }
        // What waits for the guest is dropped.
        self.lanes.memory.ring_self();
    }

    /// The worker: hears kicks until the connection is over.
    pub fn work(&self) {
        loop {
            let kicks = self.kicks().clone();
            let mut fds = vec![PollFd::new(&self.changed, PollFlags::IN)];
            let mut numbers = Vec::with_capacity(QUEUES);
            for (number, kick) in kicks.iter().enumerate() {
                if let Some(kick) = kick {
                    numbers.push(number);
                    fds.push(PollFd::from_borrowed_fd(kick.as_fd(), PollFlags::IN));
                }
            }
            if poll(&mut fds, None).is_err() {
                continue;
            }
            let heard: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            drop(fds);
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            if heard[0] {
                let _ = rustix::io::read(&self.changed, &mut [0; 8]);
                (0..QUEUES).for_each(|number| self.look_at(number));
                continue;
            }
            for (number, _) in numbers.iter().zip(&heard[1..]).filter(|it| *it.1) {
                self.hear(*number, kicks[*number].as_ref());
            }
        }
    }

    fn hear(&self, number: usize, kick: Option<&Arc<File>>) {
        let Some(kick) = kick else { return };
        match rustix::io::read(kick, &mut [0; 8]) {
            Ok(8) => self.look_at(number),
            // Somebody was faster.
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            // No eventfd, or one of the far side's making: it would be readable for ever.
            Ok(_) | Err(_) => {
                let current = &mut self.kicks()[number];
                if current.as_ref().is_some_and(|it| Arc::ptr_eq(it, kick)) {
                    *current = None;
                }
            }
        }
    }
}

/// Where a piece of the guest's memory lies in the frontend's process.
#[derive(Debug, Clone, Copy)]
struct Place {
    frontend: u64,
    size: u64,
    guest: u64,
}

/// The messages of one connection.
pub struct Handler {
    device: Arc<Device>,
    features: u64,
    places: Vec<Place>,
}

fn other(why: impl std::fmt::Display) -> Error {
    Error::ReqHandlerError(io::Error::other(why.to_string()))
}

/// A read or a write that waits would hold up both queues, for this virtual machine and all that follow.
fn set_nonblocking(file: Option<&File>) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let flags = fcntl_getfl(file).map_err(other)?;
    fcntl_setfl(file, flags | OFlags::NONBLOCK).map_err(other)
}

fn unknown<T>(what: &'static str) -> Result<T> {
    Err(Error::InvalidOperation(what))
}

impl Handler {
    pub fn new(device: Arc<Device>) -> Handler {
        Handler {
            device,
            features: 0,
            places: Vec::new(),
        }
    }

    fn queue(&self, number: u32) -> Result<&VringMutex> {
        let queue = self.device.queues.get(number as usize);
        queue.ok_or(Error::InvalidParam)
    }

    fn to_guest(&self, at: u64) -> Result<u64> {
        let mut places = self.places.iter();
        let place = places.find(|it| at.checked_sub(it.frontend).is_some_and(|off| off < it.size));
        let place = place.ok_or(Error::InvalidParam)?;
        (at - place.frontend)
            .checked_add(place.guest)
            .ok_or(Error::InvalidParam)
    }

    /// Whether queues are on without being told.
    fn needs_no_enabling(&self) -> bool {
        self.features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() == 0
    }

    /// A queue starts with its kick.
    fn start(&mut self, number: u32) -> Result<()> {
        let is_kicked = self.device.kicks()[number as usize].is_some();
        if is_kicked {
            self.queue(number)?.set_queue_ready(true);
        }
        self.device.tell_worker();
        Ok(())
    }

    fn replace(&self, mem: GuestMemoryMmap) -> Result<()> {
        let lock = self.device.guest.lock();
        lock.map_err(|_| other("a lock is poisoned"))?.replace(mem);
        Ok(())
    }
}

impl VhostUserBackendReqHandlerMut for Handler {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.reset_device()
    }

    fn reset_device(&mut self) -> Result<()> {
        for number in 0..QUEUES {
            self.device.queues[number].set_enabled(false);
            self.device.queues[number].set_queue_ready(false);
            self.device.detach(number);
        }
        self.features = 0;
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(OFFERED)
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !OFFERED != 0 {
            return Err(Error::InvalidParam);
        }
        self.features = features;
        self.device.lanes.agree(features);
        for queue in &self.device.queues {
            queue.set_queue_event_idx(features & (1 << VIRTIO_RING_F_EVENT_IDX) != 0);
            if self.needs_no_enabling() {
                queue.set_enabled(true);
            }
        }
        self.device.tell_worker();
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        postcopy: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        if postcopy.is_some() || regions.len() != files.len() {
            return Err(Error::InvalidParam);
        }
        let mut maps = Vec::new();
        let mut places = Vec::new();
        for (region, file) in regions.iter().zip(files) {
            let at = GuestAddress(region.guest_phys_addr);
            let map = GuestRegionMmap::new(region.mmap_region(file)?, at);
            maps.push(map.ok_or(Error::InvalidParam)?);
            places.push(Place {
                frontend: region.user_addr,
                size: region.memory_size,
                guest: region.guest_phys_addr,
            });
        }
        self.replace(GuestMemoryMmap::from_regions(maps).map_err(other)?)?;
        self.places = places;
        Ok(None)
    }

    fn set_vring_num(&mut self, number: u32, size: u32) -> Result<()> {
        let queue = self.queue(number)?;
        match u16::try_from(size) {
            Ok(size) if size <= QUEUE_MAX && size.is_power_of_two() => queue.set_queue_size(size),
            _ => return Err(Error::InvalidParam),
        }
        Ok(())
    }

    fn set_vring_addr(
        &mut self,
        number: u32,
        _flags: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let places = [descriptors, available, used].map(|at| self.to_guest(at));
        let [descriptors, available, used] = places;
        let queue = self.queue(number)?;
        queue
            .set_queue_info(descriptors?, available?, used?)
            .map_err(|_| Error::InvalidParam)?;
        // The guest's own, which a device goes on from.
        let next = queue.queue_used_idx().map_err(other)?;
        queue.set_queue_next_used(next);
        Ok(())
    }

    fn set_vring_base(&mut self, number: u32, base: u32) -> Result<()> {
        self.queue(number)?.set_queue_next_avail(base as u16);
        Ok(())
    }

    fn get_vring_base(&mut self, number: u32) -> Result<VhostUserVringState> {
        self.queue(number)?.set_queue_ready(false);
        // From here on no thread uses it.
        self.device.detach(number as usize);
        self.device.kicks()[number as usize] = None;
        self.device.tell_worker();
        let queue = self.queue(number)?;
        queue.set_call(None);
        Ok(VhostUserVringState::new(
            number,
            queue.queue_next_avail().into(),
        ))
    }

    fn set_vring_kick(&mut self, number: u8, file: Option<File>) -> Result<()> {
        self.queue(number.into())?;
        set_nonblocking(file.as_ref())?;
        self.device.kicks()[usize::from(number)] = file.map(Arc::new);
        self.start(number.into())
    }

    fn set_vring_call(&mut self, number: u8, file: Option<File>) -> Result<()> {
        let queue = self.queue(number.into())?;
        set_nonblocking(file.as_ref())?;
        queue.set_call(file);
        Ok(())
    }

    fn set_vring_err(&mut self, number: u8, file: Option<File>) -> Result<()> {
        self.queue(number.into())?.set_err(file);
        Ok(())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::REPLY_ACK | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(QUEUES as u64)
    }

    fn set_vring_enable(&mut self, number: u32, enable: bool) -> Result<()> {
        self.queue(number)?.set_enabled(enable);
        self.device.tell_worker();
        Ok(())
    }

    fn get_config(&mut self, _: u32, _: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        unknown("no configuration")
    }

    fn set_config(&mut self, _: u32, _: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        unknown("no configuration")
    }

    fn set_gpu_socket(&mut self, _: GpuBackend) -> Result<()> {
        unknown("no GPU")
    }

    fn get_shared_object(&mut self, _: VhostUserSharedMsg) -> Result<File> {
        unknown("no shared objects")
    }

    fn get_inflight_fd(&mut self, _: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        unknown("nothing is in flight")
    }

    fn set_inflight_fd(&mut self, _: &VhostUserInflight, _: File) -> Result<()> {
        unknown("nothing is in flight")
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(REGIONS_MAX as u64)
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        file: File,
        postcopy: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        if postcopy.is_some() || self.places.len() >= REGIONS_MAX {
            return Err(Error::InvalidParam);
        }
        let at = GuestAddress(region.guest_phys_addr);
        let map = GuestRegionMmap::new(region.mmap_region(file)?, at);
        let map = Arc::new(map.ok_or(Error::InvalidParam)?);
        let mem = self.device.guest.memory().insert_region(map);
        self.replace(mem.map_err(other)?)?;
        self.places.push(Place {
            frontend: region.user_addr,
            size: region.memory_size,
            guest: region.guest_phys_addr,
        });
        Ok(None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        let at = GuestAddress(region.guest_phys_addr);
        let mem = self.device.guest.memory();
        let (mem, _) = mem.remove_region(at, region.memory_size).map_err(other)?;
        self.replace(mem)?;
        self.places.retain(|it| it.guest != region.guest_phys_addr);
        Ok(())
    }

    fn set_device_state_fd(
        &mut self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        unknown("no state to transfer")
    }

    fn check_device_state(&mut self) -> Result<()> {
        unknown("no state to transfer")
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        unknown("no shared memory")
    }

    fn set_log_base(&mut self, _: &VhostUserLog, _: File) -> Result<()> {
        unknown("no log of writes")
    }
}
