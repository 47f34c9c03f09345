// SPDX-License-Identifier: GPL-2.0
//! `include/ring3.h`.

use core::sync::atomic::AtomicU32;

use crate::cpuid::ring3_cpuid;

pub const RING3_MAGIC: u64 = 0x3367_006e_6967_6572;
pub const RING3_ABI: u32 = 5;

pub const RING3_GATE_BASE: u64 = 0x29f0_0000_0000;
pub const RING3_SPACE_BASE: u64 = 0x2a00_0000_0000;
pub const RING3_SLOT_SIZE: u64 = 0x0001_0000_0000;
pub const RING3_SLOTS: u64 = 4096;
pub const RING3_SPACE_END: u64 = RING3_SPACE_BASE + RING3_SLOTS * RING3_SLOT_SIZE;

pub const RING3_REGION_MAX: u64 = 0x8000_0000;
pub const RING3_ALIAS_OFFSET: u64 = 0x8000_0000;
pub const RING3_LINK_OFFSET: u64 = 0xc000_0000;
pub const RING3_LINK_STRIDE: u64 = 0x0100_0000;
pub const RING3_PORTS_MAX: usize = 16;

/* enum ring3_state */
pub const RING3_LOADED: u32 = 0;
pub const RING3_BOOTING: u32 = 1;
pub const RING3_UP: u32 = 2;
pub const RING3_POISONED: u32 = 3;
pub const RING3_DOWN: u32 = 4;

pub const RING3_IRQ_TIMER: u32 = 1 << 0;
pub const RING3_IRQ_WORK: u32 = 1 << 1;
#[must_use]
pub const fn ring3_irq_port(n: u32) -> u32 {
    1 << (8 + n)
}

pub const RING3_WORD_DONE: u32 = 1 << 0;
pub const RING3_WORD_BATON: u32 = 1 << 1;
pub const RING3_WORD_SIGNAL: u32 = 1 << 2;
pub const RING3_WORD_OFFERED: u32 = 1 << 3;

pub const RING3_OWNER_WAITERS: u32 = 0x8000_0000;
pub const RING3_OWNER_POLLING: u32 = 0x4000_0000;
pub const RING3_OWNER_TID: u32 = 0x3fff_ffff;

pub const RING3_NR_BASE: u64 = 0x1000;
pub const RING3_NR_DRIVE: u64 = 0x1000;
pub const RING3_NR_KEEP: u64 = 0x1001;
pub const RING3_NR_SPAWN: u64 = 0x1002;
pub const RING3_NR_CLONE: u64 = 0x1003;
pub const RING3_NR_EXIT: u64 = 0x1004;
pub const RING3_NR_EXIT_GROUP: u64 = 0x1005;
pub const RING3_NR_EXEC: u64 = 0x1006;
pub const RING3_NR_REAP: u64 = 0x1007;
pub const RING3_NR_FD_MOVE: u64 = 0x1008;
pub const RING3_NR_PROXY: u64 = 0x1009;
pub const RING3_NR_PROXY_SET: u64 = 0x100a;
pub const RING3_NR_PROXY_CLEAR: u64 = 0x100b;
pub const RING3_NR_PORT_ADD: u64 = 0x100c;
pub const RING3_NR_PORT_DEL: u64 = 0x100d;
pub const RING3_NR_LOG_READ: u64 = 0x100e;
pub const RING3_NR_MMAP: u64 = 0x100f;
pub const RING3_NR_AT: u64 = 0x1010;
pub const RING3_NR_MMAP_PAGE: u64 = 0x1011;
pub const RING3_NR_MUNMAP: u64 = 0x1012;
pub const RING3_NR_MAX: u64 = 0x1013;

pub const RING3_FDS_MAX: usize = 65536;

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct ring3_fdmap {
    pub node: [u64; RING3_FDS_MAX / 64],
    pub proxy: [u64; RING3_FDS_MAX / 64],
}

/* include/ring3_stat.h: the order of the counts in `init_proc.reserved` */
pub const RING3_STAT_DIRECT: usize = 0;
pub const RING3_STAT_STRAIGHT: usize = 1;
pub const RING3_STAT_ENTERED: usize = 2;
pub const RING3_STAT_TRAPPED: usize = 3;
pub const RING3_STAT_PASSED: usize = 4;
pub const RING3_STAT_COUNTS: usize = 5;

/// `ring3_proc.state`
pub const RING3_PROC_FREE: u32 = 0;
pub const RING3_PROC_LIVE: u32 = 1;
pub const RING3_PROC_DEAD: u32 = 2;

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct ring3_proc {
    pub state: AtomicU32,
    pub pid: core::sync::atomic::AtomicI32,
    pub threads: AtomicU32,
    pub creator: u32,
    pub port_fd: [core::sync::atomic::AtomicI32; RING3_PORTS_MAX],
    pub reserved: [u32; 12],
}

#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ring3_siginfo {
    pub signo: i32,
    pub code: i32,
    pub fd: i32,
    pub band: i32,
}
pub const RING3_SIGQ: usize = 8;

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct ring3_thread {
    pub self_: u64,
    pub host_sp: u64,
    pub region: u64,
    pub task: u64,
    pub tid: u32,
    pub inside: u32,
    pub sigpending: u32,
    pub nsig: u32,
    pub proc: u64,
    pub fdmap: u64,

    pub word: AtomicU32,
    pub flags: u32,
    pub ret: i64,
    pub nr: u64,
    pub args: [u64; 6],
    pub image_private: [u64; 8],

    pub sigq: [ring3_siginfo; RING3_SIGQ],
    pub gate: [u64; 64],
}

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct ring3_vcpu {
    pub owner: AtomicU32,
    pub irq_enabled: AtomicU32,
    pub driver: u64,
    pub deadline: u64,
    pub polled: u32,
    pub pad: AtomicU32,
    pub reserved: [u64; 3],
}

/// include/ring3_smp.h: what the words in reserve are where a node has several.
impl ring3_vcpu {
    /// `ring3_vcpu_next()`: the word with the address of the node's next vCPU.
    pub const NEXT: usize = core::mem::offset_of!(ring3_vcpu, reserved);

    /// `ring3_vcpu_pending()`
    pub fn pending(&self) -> &AtomicU32 {
        &self.pad
    }

    /// `ring3_vcpu_kick()`, of all but the first.
    pub fn kick(&self) -> &AtomicU32 {
        &self.irq_enabled
    }
}
/// How many a node can have.
pub const RING3_VCPUS_MAX: usize = 3;

/* enum ring3_port_kind */
pub const RING3_PORT_LINK: u32 = 1;
pub const RING3_PORT_TAP: u32 = 2;
pub const RING3_PORT_PASST: u32 = 3;
pub const RING3_PORT_PACKET: u32 = 4;
pub const RING3_PORT_XDP: u32 = 5;

pub const RING3_PORT_CSUM: u32 = 1 << 0;
pub const RING3_PORT_TSO: u32 = 1 << 1;
pub const RING3_PORT_USO: u32 = 1 << 2;

#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct ring3_port_config {
    pub index: u32,
    pub kind: u32,
    pub flags: u32,
    pub mtu: u32,
    pub side: u32,
    pub mac: [u8; 6],
    pub pad: [u8; 2],
    pub window: u64,
    pub name: [u8; 16],
}

pub const RING3_PROCS_MAX: usize = 2048;

/// `struct ring3_vcpu vcpu[1]` with the header's alignment of 64.
#[allow(non_camel_case_types)]
#[repr(C, align(64))]
pub struct ring3_vcpus(pub [ring3_vcpu; 1]);

/// `struct ring3_thread init_thread` with the header's alignment of 64. The attribute
/// aligns the field only, so `driver_thread[0]` follows without padding.
#[allow(non_camel_case_types)]
#[repr(C, align(64))]
pub struct ring3_region_tail {
    pub init_thread: ring3_thread,
    pub driver_thread: [ring3_thread; 4],
    pub init_proc: ring3_proc,
    pub procs: [ring3_proc; RING3_PROCS_MAX],
    pub cpuid: ring3_cpuid,
}

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct ring3_region {
    pub magic: u64,
    pub abi: u32,
    pub flavour: u32,
    pub image_size: u64,
    pub text_start: u64,
    pub text_end: u64,
    pub boot: u64,
    pub enter: u64,
    pub fixup: u64,
    pub version: [u8; 96],

    pub base: u64,
    pub size: u64,
    pub tsc_khz: u64,
    pub boot_tsc: u64,
    pub boot_monotonic_ns: u64,
    pub boot_realtime_ns: u64,
    pub seed: [u8; 64],
    pub node_name: [u8; 64],
    pub cmdline: [u8; 512],
    pub keeper_pid: i32,
    pub spin_ns: u32,

    pub state: AtomicU32,
    pub pending: AtomicU32,
    pub kick: AtomicU32,
    pub procs_gen: AtomicU32,
    pub poison: [u8; 128],
    pub vcpu: ring3_vcpus,
    /// `init_thread` to `procs` of the header, see [`ring3_region_tail`].
    pub tail: ring3_region_tail,
}
