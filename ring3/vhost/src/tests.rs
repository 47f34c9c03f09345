// SPDX-License-Identifier: GPL-2.0
//! A guest and a node, played by this process: vhost's frontend and queues written by hand on one side, the other end of a
//! link's rings on the other. Between them the device as it serves, but for its wall.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use vhost::vhost_user::Frontend;
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use virtio_bindings::bindings::virtio_net::*;
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, VolatileSlice,
};
use vmm_sys_util::eventfd::EventFd;

use crate::features::OFFERED;
use crate::lanes::{Lanes, RX, TX};
use crate::link::{Consumer, Header, Memory, Producer, DEVICE, HEADER, NODE};
use crate::says::Says;

/// Descriptors of each queue.
const SIZE: u16 = 64;
const MEMORY: usize = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// Flags of descriptors.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

fn memfd(bytes: u64) -> std::fs::File {
    let fd = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
    let file = std::fs::File::from(fd);
    file.set_len(bytes).unwrap();
    file
}

/// Waits until `what` is so.
fn until(words: &str, mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < PATIENCE, "{words}: not within 20 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The device, and the node's end of its link.
struct Bed {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
    lanes: Arc<Lanes>,
    producer: Producer,
    consumer: Consumer,
    state: Arc<Mutex<String>>,
}

impl Bed {
    fn new() -> Bed {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vm.sock");
        let memory = Memory::map(&memfd(ring3_abi::RING3_LINK_BYTES.into())).unwrap();
        let lanes = Arc::new(Lanes::new(memory.clone(), Says::new("test", &path)));
        let listener = UnixListener::bind(&path).unwrap();
        let state = Arc::new(Mutex::new(String::new()));
        let heard = state.clone();
        let hears = Arc::new(move |words: &str| words.clone_into(&mut heard.lock().unwrap()));
        crate::serve_all(&lanes, listener, hears).unwrap();
        Bed {
            _dir: dir,
            path,
            lanes,
            producer: Producer::of(memory.clone(), NODE),
            consumer: Consumer::from(memory, DEVICE),
            state,
        }
    }

    fn guest(&self, features: u64) -> Guest {
        let guest = Guest::connect(&self.path, features);
        until("the device has the queues", || self.is("64 KiB"));
        guest
    }

    fn is(&self, words: &str) -> bool {
        self.state.lock().unwrap().contains(words)
    }

    /// What the node gets next.
    fn next(&mut self) -> (Header, Vec<u8>) {
        let mut got = None;
        until("a frame for the node", || {
            if let Some(record) = self.consumer.peek().unwrap() {
                let mut frame = vec![0; record.frame.len()];
                record.frame.copy_to(&mut frame);
                got = Some((record.header, frame));
                let taken = record.taken;
                self.consumer.consume(taken);
                self.consumer.publish();
            }
            got.is_some()
        });
        got.unwrap()
    }

    fn send(&mut self, header: &Header, frame: &[u8]) {
        until("room in the link", || self.producer.is_ready().unwrap());
        let mut frame = frame.to_vec();
        let len = frame.len() as u32;
        self.producer.put(header, len, |to| {
            VolatileSlice::from(&mut frame[..]).copy_to_volatile_slice(to);
        });
        self.producer.publish();
    }

    fn faults(&self) -> String {
        self.lanes.says.sum()
    }
}

struct Queue {
    kick: EventFd,
    call: EventFd,
    avail: u16,
    seen: u16,
}

/// A driver that writes whatever it is told to.
struct Guest {
    frontend: Frontend,
    mem: GuestMemoryMmap,
    queues: [Queue; 2],
}

fn desc(queue: usize) -> u64 {
    0x10000 * (queue as u64 + 1)
}

fn avail(queue: usize) -> u64 {
    desc(queue) + 0x4000
}

fn used(queue: usize) -> u64 {
    desc(queue) + 0x8000
}

/// Buffers lie here and above.
const BUFFERS: u64 = 0x100000;

impl Guest {
    fn connect(path: &std::path::Path, features: u64) -> Guest {
        let file = memfd(MEMORY as u64);
        let place = FileOffset::new(file.try_clone().unwrap(), 0);
        let ranges = [(GuestAddress(0), MEMORY, Some(place))];
        let mem = GuestMemoryMmap::from_ranges_with_files(ranges).unwrap();
        let frontend = Frontend::connect(path, 2).unwrap();
        let queue = || Queue {
            kick: EventFd::new(libc::EFD_NONBLOCK).unwrap(),
            call: EventFd::new(libc::EFD_NONBLOCK).unwrap(),
            avail: 0,
            seen: 0,
        };
        frontend.set_owner().unwrap();
        assert_eq!(frontend.get_features().unwrap() & features, features);
        frontend.set_features(features).unwrap();
        let at = mem.get_host_address(GuestAddress(0)).unwrap() as u64;
        let region = VhostUserMemoryRegionInfo {
            guest_phys_addr: 0,
            memory_size: MEMORY as u64,
            userspace_addr: at,
            mmap_offset: 0,
            mmap_handle: file.as_raw_fd(),
        };
        frontend.set_mem_table(&[region]).unwrap();
        let mut guest = Guest {
            frontend,
            mem,
            queues: [queue(), queue()],
        };
        for number in [RX, TX] {
            guest.start(number, at);
        }
        guest
    }

    fn start(&mut self, number: usize, at: u64) {
        let config = VringConfigData {
            queue_max_size: SIZE,
            queue_size: SIZE,
            flags: 0,
            desc_table_addr: at + desc(number),
            used_ring_addr: at + used(number),
            avail_ring_addr: at + avail(number),
            log_addr: None,
        };
        let queue = &self.queues[number];
        self.frontend.set_vring_num(number, SIZE).unwrap();
        self.frontend.set_vring_base(number, 0).unwrap();
        self.frontend.set_vring_addr(number, &config).unwrap();
        self.frontend.set_vring_call(number, &queue.call).unwrap();
        self.frontend.set_vring_kick(number, &queue.kick).unwrap();
    }

    fn write<T: vm_memory::ByteValued>(&self, at: u64, value: T) {
        self.mem.write_obj(value, GuestAddress(at)).unwrap();
    }

    /// Descriptor `index` of the table at `table`.
    fn describe(&self, table: u64, index: u16, (addr, len, flags, next): (u64, u32, u16, u16)) {
        let at = table + 16 * u64::from(index);
        self.write(at, addr);
        self.write(at + 8, len);
        self.write(at + 12, flags);
        self.write(at + 14, next);
    }

    /// Makes the chain that begins at `head` available.
    fn offer(&mut self, number: usize, head: u16) {
        let queue = &mut self.queues[number];
        let slot = avail(number) + 4 + 2 * u64::from(queue.avail % SIZE);
        queue.avail = queue.avail.wrapping_add(1);
        let index = queue.avail;
        self.write(slot, head);
        self.write(avail(number) + 2, index);
        self.queues[number].kick.write(1).unwrap();
    }

    /// Sends a frame out of one buffer.
    fn send(&mut self, header: &Header, frame: &[u8]) {
        let bytes = [&header[..], frame].concat();
        self.mem.write_slice(&bytes, GuestAddress(BUFFERS)).unwrap();
        self.describe(desc(TX), 0, (BUFFERS, bytes.len() as u32, 0, 0));
        self.offer(TX, 0);
        assert_eq!(self.given_back(TX), (0, 0));
    }

    /// Offers a buffer for each of `count` frames, of `len` bytes.
    fn make_room(&mut self, count: u16, len: u32) {
        for index in 0..count {
            let at = BUFFERS * 2 + u64::from(index) * u64::from(len);
            self.describe(desc(RX), index, (at, len, WRITE, 0));
            self.offer(RX, index);
        }
    }

    fn used_index(&self, number: usize) -> u16 {
        self.mem.read_obj(GuestAddress(used(number) + 2)).unwrap()
    }

    /// The next buffer that comes back: its head and length.
    fn given_back(&mut self, number: usize) -> (u32, u32) {
        let seen = self.queues[number].seen;
        until("a buffer comes back", || self.used_index(number) != seen);
        self.queues[number].seen = seen.wrapping_add(1);
        let at = used(number) + 4 + 8 * u64::from(seen % SIZE);
        let [head, len]: [u32; 2] = self.mem.read_obj(GuestAddress(at)).unwrap();
        (head, len)
    }

    fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.mem.read_slice(&mut bytes, GuestAddress(at)).unwrap();
        bytes
    }
}

fn frame(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

const PLAIN: Header = [0; HEADER];
/// All but the notification by positions, which this driver does not do, and the socket's protocol features.
fn features() -> u64 {
    OFFERED & !(1 << 29) & !(1 << 30)
}

/// A header as the node gets it.
fn counted(mut header: Header) -> Header {
    header[10] = 1;
    header
}

#[test]
fn frames_cross_both_ways_and_the_largest() {
    let mut bed = Bed::new();
    let mut guest = bed.guest(features());
    for len in [14, 60, 1514, 65535, 65600] {
        guest.send(&PLAIN, &frame(len));
        assert_eq!(bed.next(), (counted(PLAIN), frame(len)), "{len} bytes out");
    }
    guest.make_room(SIZE, 0x1000);
    for len in [14, 60, 1514, 65535] {
        bed.send(&PLAIN, &frame(len));
        let mut got = Vec::new();
        let mut buffers = 0;
        while got.len() < HEADER + len {
            let (head, bytes) = guest.given_back(RX);
            let at = BUFFERS * 2 + u64::from(head) * 0x1000;
            got.extend(guest.read(at, bytes as usize));
            buffers += 1;
        }
        assert_eq!(got[10..HEADER], [buffers, 0], "{len} bytes in");
        assert_eq!(got[HEADER..], frame(len));
    }
    assert_eq!(bed.faults(), "");
}

/// The header may lie in a descriptor of its own, or be cut in two; and a table may be elsewhere.
#[test]
fn chains_of_every_shape() {
    let mut bed = Bed::new();
    let mut guest = bed.guest(features());
    let bytes = [&PLAIN[..], &frame(100)].concat();
    guest
        .mem
        .write_slice(&bytes, GuestAddress(BUFFERS))
        .unwrap();
    for cuts in [&[12, 100][..], &[5, 7, 100], &[11, 2, 99], &[20, 0, 92]] {
        let mut at = BUFFERS;
        for (index, len) in cuts.iter().enumerate() {
            let flags = if index + 1 < cuts.len() { NEXT } else { 0 };
            let index = index as u16;
            guest.describe(desc(TX), index, (at, *len, flags, index + 1));
            guest.describe(0x80000, index, (at, *len, flags, index + 1));
            at += u64::from(*len);
        }
        guest.offer(TX, 0);
        assert_eq!(bed.next().1, frame(100), "{cuts:?}");
        let bytes = 16 * cuts.len() as u32;
        guest.describe(desc(TX), 9, (0x80000, bytes, INDIRECT, 0));
        guest.offer(TX, 9);
        assert_eq!(bed.next().1, frame(100), "{cuts:?}, indirect");
    }
    assert_eq!(bed.faults(), "");
}

/// What a guest may write into a table to harm the device. Each chain comes back, and the next good frame passes.
#[test]
fn nonsense_is_dropped_and_counted() {
    let mut bed = Bed::new();
    let mut guest = bed.guest(features());
    let far = MEMORY as u64;
    let table = 0x80000;
    // Loops inside of a table that is elsewhere.
    guest.describe(table, 0, (BUFFERS, 20, NEXT, 1));
    guest.describe(table, 1, (BUFFERS, 20, NEXT, 0));
    let chains: &[&[(u64, u32, u16, u16)]] = &[
        // A loop, of one and of two.
        &[(BUFFERS, 1, NEXT, 0)],
        &[(BUFFERS, 1, NEXT, 1), (BUFFERS, 1, NEXT, 0)],
        // An index that there is not.
        &[(BUFFERS, 100, NEXT, SIZE)],
        &[(BUFFERS, 100, NEXT, 0xffff)],
        // Outside of memory, at its end, and round the end of what there can be.
        &[(far, 100, 0, 0)],
        &[(far - 50, 100, 0, 0)],
        &[(u64::MAX - 50, 100, 0, 0)],
        // To be written instead of read.
        &[(BUFFERS, 100, WRITE, 0)],
        &[(BUFFERS, 50, NEXT, 1), (BUFFERS, 50, WRITE, 0)],
        // Too short for a header, and for a frame; none at all.
        &[(BUFFERS, 0, 0, 0)],
        &[(BUFFERS, 11, 0, 0)],
        &[(BUFFERS, 25, 0, 0)],
        // Too long: by one descriptor, and by many.
        &[(0, MEMORY as u32, 0, 0)],
        &[(BUFFERS, u32::MAX, 0, 0)],
        &[(BUFFERS, 60_000, NEXT, 1), (BUFFERS, 60_000, 0, 0)],
        // Tables: of odd size, of none, outside of memory, in a table, with a loop, of the largest size there is.
        &[(table, 15, INDIRECT, 0)],
        &[(table, 0, INDIRECT, 0)],
        &[(far, 32, INDIRECT, 0)],
        &[(desc(TX), 16, INDIRECT, 0)],
        &[(table, 32, INDIRECT, 0)],
        &[(table, 0xffff_fff0, INDIRECT, 0)],
    ];
    for (number, chain) in chains.iter().enumerate() {
        for (index, descriptor) in chain.iter().enumerate() {
            guest.describe(desc(TX), index as u16, *descriptor);
        }
        guest.offer(TX, 0);
        assert_eq!(guest.given_back(TX), (0, 0), "chain {number}");
        assert!(bed.faults().starts_with(" (1 bad chains"), "chain {number}");
        guest.send(&PLAIN, &frame(60));
        assert_eq!(bed.next().1, frame(60), "after chain {number}");
    }
}

/// Offload headers that were not agreed on, or that there are not.
#[test]
fn headers_are_judged() {
    let mut bed = Bed::new();
    let agreed = features() & !(1 << VIRTIO_NET_F_HOST_TSO6) & !(1 << VIRTIO_NET_F_HOST_ECN);
    let mut guest = bed.guest(agreed);
    let header = |flags: u8, gso: u8| [flags, gso, 0, 0, 100, 0, 34, 0, 16, 0, 0xff, 0xff];
    for (flags, gso) in [(1, 4), (1, 3), (1, 2), (1, 0x81), (0, 0x80), (1, 0x7f)] {
        guest.send(&header(flags, gso), &frame(200));
        let faults = bed.faults();
        assert!(faults.starts_with(" (1 bad"), "{flags} {gso}: {faults}");
    }
    // What the guest says of checksums that were found good is not believed.
    guest.send(&header(0xff, 1), &frame(200));
    let (got, _) = bed.next();
    assert_eq!(got, [1, 1, 0, 0, 100, 0, 34, 0, 16, 0, 1, 0]);
}

/// The available index jumps, and goes back: the queue is left alone, and works again once it is set up anew.
#[test]
fn a_ring_of_nonsense_is_left_alone_until_it_is_set_up_anew() {
    let mut bed = Bed::new();
    let mut guest = bed.guest(features());
    guest.send(&PLAIN, &frame(60));
    bed.next();
    guest.write(avail(TX) + 2, 0x8000u16);
    guest.queues[TX].kick.write(1).unwrap();
    let mut faults = String::new();
    until("the queue is given up", || {
        faults += &bed.faults();
        faults.contains("1 queues")
    });
    // The other one still works.
    guest.make_room(1, 0x1000);
    bed.send(&PLAIN, &frame(60));
    assert_eq!(guest.given_back(RX), (0, 72));
    // Nothing of it is used, and the device does not turn in circles.
    guest.queues[TX].kick.write(1).unwrap();
    drop(guest);
    until("the guest is gone", || bed.state.lock().unwrap().is_empty());
    let mut guest = bed.guest(features());
    guest.send(&PLAIN, &frame(60));
    assert_eq!(bed.next().1, frame(60));
}

/// Rings in the middle of which the guest's memory ends.
#[test]
fn rings_outside_of_memory() {
    let mut bed = Bed::new();
    let guest = bed.guest(features());
    drop(guest);
    until("the guest is gone", || bed.state.lock().unwrap().is_empty());
    let guest = bed.guest(features());
    let at = guest.mem.get_host_address(GuestAddress(0)).unwrap() as u64;
    guest.frontend.get_vring_base(TX).unwrap();
    let config = VringConfigData {
        queue_max_size: SIZE,
        queue_size: SIZE,
        flags: 0,
        desc_table_addr: at + MEMORY as u64 - 16,
        used_ring_addr: at + MEMORY as u64 - 4,
        avail_ring_addr: at + MEMORY as u64 - 8,
        log_addr: None,
    };
    let queue = &guest.queues[TX];
    guest.frontend.set_vring_base(TX, 0).unwrap();
    guest.frontend.set_vring_addr(TX, &config).unwrap();
    guest.frontend.set_vring_call(TX, &queue.call).unwrap();
    guest.frontend.set_vring_kick(TX, &queue.kick).unwrap();
    guest.write(MEMORY as u64 - 6, 1u16);
    guest.queues[TX].kick.write(1).unwrap();
    guest.queues[TX].kick.write(1).unwrap();
    drop(guest);
    until("the guest is gone", || bed.state.lock().unwrap().is_empty());
    let mut guest = bed.guest(features());
    guest.send(&PLAIN, &frame(60));
    assert_eq!(bed.next().1, frame(60));
}

/// A guest without room holds the node up, and loses nothing; one with buffers of nonsense gets its frames in the next.
#[test]
fn a_guest_without_buffers_gets_its_frames_later() {
    let mut bed = Bed::new();
    let mut guest = bed.guest(features());
    for number in 0..100u8 {
        bed.send(&PLAIN, &[number; 60]);
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(guest.used_index(RX), 0);
    // To be read, and outside: these come back empty.
    guest.describe(desc(RX), 0, (BUFFERS, 100, 0, 0));
    guest.offer(RX, 0);
    guest.describe(desc(RX), 1, (MEMORY as u64, 100, WRITE, 0));
    guest.offer(RX, 1);
    for number in 0..100u8 {
        guest.describe(desc(RX), 2, (BUFFERS, 200, WRITE, 0));
        guest.offer(RX, 2);
        let mut back = guest.given_back(RX);
        while back.1 == 0 {
            assert!(back.0 < 2);
            back = guest.given_back(RX);
        }
        assert_eq!(back, (2, 72));
        assert_eq!(guest.read(BUFFERS + 12, 60), [number; 60]);
    }
}

/// A node that takes nothing holds the guest up, and what it sent is there later.
#[test]
fn a_node_that_takes_nothing_holds_the_guest_up() {
    let mut bed = Bed::new();
    let mut guest = bed.guest(features());
    guest.describe(desc(TX), 0, (BUFFERS, 12 + 60, 0, 0));
    for _ in 0..SIZE * 3 {
        let index = guest.queues[TX].avail;
        if index.wrapping_sub(guest.used_index(TX)) >= SIZE {
            break;
        }
        guest.offer(TX, 0);
        std::thread::sleep(Duration::from_micros(200));
    }
    let sent = usize::from(guest.queues[TX].avail);
    assert!(sent > 150, "{sent}: the node's ring takes 128");
    for number in 0..sent {
        assert_eq!(bed.next().1.len(), 60, "frame {number}");
    }
    let all = guest.queues[TX].avail;
    until("all buffers are back", || guest.used_index(TX) == all);
}

/// The driver stops and starts again, as at a reboot; and virtual machines come and go.
#[test]
fn resets_and_reconnects() {
    let mut bed = Bed::new();
    for turn in 0..20 {
        let mut guest = bed.guest(features());
        guest.send(&PLAIN, &frame(60 + turn));
        assert_eq!(bed.next().1, frame(60 + turn));
        if turn % 2 == 0 {
            guest.frontend.get_vring_base(RX).unwrap();
            guest.frontend.get_vring_base(TX).unwrap();
            until("the driver is down", || bed.is("not up"));
            // What comes meanwhile is dropped.
            bed.send(&PLAIN, &frame(60));
            for number in [RX, TX] {
                let zeroes = vec![0; 0x8000 + 4 + 8 * usize::from(SIZE)];
                let at = GuestAddress(desc(number));
                guest.mem.write_slice(&zeroes, at).unwrap();
                guest.queues[number].avail = 0;
                guest.queues[number].seen = 0;
                let at = guest.mem.get_host_address(GuestAddress(0)).unwrap() as u64;
                guest.start(number, at);
            }
            until("the driver is up", || bed.is("64 KiB"));
            guest.send(&PLAIN, &frame(99));
            assert_eq!(bed.next().1, frame(99));
        }
        drop(guest);
        until("the guest is gone", || bed.state.lock().unwrap().is_empty());
    }
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut guest = bed.guest(features());
    guest.send(&PLAIN, &frame(60));
    bed.next();
    drop(guest);
    until("the guest is gone", || bed.state.lock().unwrap().is_empty());
    let now = std::fs::read_dir("/proc/self/fd").unwrap().count();
    // Other tests run beside this one, each with some descriptors; twenty leaks would be seen.
    assert!(now < fds + 300, "{fds} descriptors, then {now}");
}

/// A frontend of nonsense: its messages end its connection, and the next is served.
#[test]
fn a_frontend_of_nonsense() {
    use std::io::Write;
    let mut bed = Bed::new();
    for bytes in [
        &[0xff; 4096][..],
        &[0; 12],
        &[1, 0, 0, 0, 1, 0, 0, 0, 8],
        b"",
    ] {
        let mut socket = std::os::unix::net::UnixStream::connect(&bed.path).unwrap();
        let _ = socket.write_all(bytes);
    }
    let mut guest = bed.guest(features());
    guest.send(&PLAIN, &frame(60));
    assert_eq!(bed.next().1, frame(60));
}

/// QEMU 7.2 enables a queue before features are agreed on.
#[test]
fn a_queue_may_be_enabled_first() {
    use std::io::{Read, Write};
    let bed = Bed::new();
    let mut socket = std::os::unix::net::UnixStream::connect(&bed.path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut say = |request: u32, body: &[u8]| {
        let head = [request, 1, body.len() as u32];
        let head: Vec<u8> = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
        socket.write_all(&[&head, body].concat()).unwrap();
    };
    say(3, &[]);
    say(18, &[0, 0, 0, 0, 1, 0, 0, 0]);
    say(1, &[]);
    let mut answer = [0; 20];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(answer[12..], OFFERED.to_ne_bytes());
}

/// A guest that has agreed to nothing: a legacy header, no merged buffers, no segments and no checksums of its own.
#[test]
fn a_guest_that_agrees_to_nothing() {
    let mut bed = Bed::new();
    let mut guest = Guest::connect(&bed.path, 0);
    until("the device has the queues", || bed.is("without"));
    // Its header has no count: ten bytes.
    let bytes = [&[0; 10][..], &frame(60)].concat();
    guest
        .mem
        .write_slice(&bytes, GuestAddress(BUFFERS))
        .unwrap();
    guest.describe(desc(TX), 0, (BUFFERS, 70, 0, 0));
    guest.offer(TX, 0);
    assert_eq!(bed.next(), (counted(PLAIN), frame(60)));
    // A TCP segment of 4000 bytes comes as three.
    let mut segment = frame(14 + 20 + 20 + 4000);
    segment[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    segment[46] = 0x50;
    let header = [1, 1, 0, 0, 0xa8, 5, 34, 0, 16, 0, 1, 0];
    guest.make_room(4, 2000);
    bed.send(&header, &segment);
    for len in [1448, 1448, 1104] {
        assert_eq!(guest.given_back(RX).1, 10 + 54 + len);
    }
    // One that no buffer of it can hold is dropped.
    bed.send(&PLAIN, &frame(3000));
    bed.send(&PLAIN, &frame(60));
    assert_eq!(guest.given_back(RX).1, 70);
    assert!(bed.faults().contains("1 frames too large"));
}
