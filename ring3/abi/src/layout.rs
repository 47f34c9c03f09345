// SPDX-License-Identifier: GPL-2.0
//! Sizes and offsets of every structure of the contract, asserted when this crate compiles.
//!
//! The C field name stands left of `=`, where it lies in the Rust structure right of it
//! (they differ where Rust needs a wrapper for an alignment, or another name).

use core::mem::{offset_of, size_of};

use crate::*;

/// A structure as C names it: name, size, and its fields' names and offsets.
pub struct Struct {
    pub name: &'static str,
    pub size: usize,
    pub fields: &'static [(&'static str, usize)],
}

macro_rules! layout {
    ($($ty:ident: $size:literal { $($c:ident = $($rust:ident).+ @ $offset:literal,)* })*) => {
        $(const _: () = {
            assert!(size_of::<$ty>() == $size, concat!("size of ", stringify!($ty)));
            $(assert!(
                offset_of!($ty, $($rust).+) == $offset,
                concat!("offset of ", stringify!($ty), ".", stringify!($c)),
            );)*
        };)*

        /// The same table for the test that asks a C compiler.
        pub const LAYOUT: &[Struct] = &[
            $(Struct {
                name: stringify!($ty),
                size: $size,
                fields: &[$((stringify!($c), $offset),)*],
            },)*
        ];
    };
}

layout! {
    ring3_fdmap: 16384 {
        node = node @ 0,
        proxy = proxy @ 8192,
    }
    ring3_proc: 128 {
        state = state @ 0,
        pid = pid @ 4,
        threads = threads @ 8,
        creator = creator @ 12,
        port_fd = port_fd @ 16,
        reserved = reserved @ 80,
    }
    ring3_siginfo: 16 {
        signo = signo @ 0,
        code = code @ 4,
        fd = fd @ 8,
        band = band @ 12,
    }
    ring3_thread: 840 {
        self = self_ @ 0,
        host_sp = host_sp @ 8,
        region = region @ 16,
        task = task @ 24,
        tid = tid @ 32,
        inside = inside @ 36,
        sigpending = sigpending @ 40,
        nsig = nsig @ 44,
        proc = proc @ 48,
        fdmap = fdmap @ 56,
        word = word @ 64,
        flags = flags @ 68,
        ret = ret @ 72,
        nr = nr @ 80,
        args = args @ 88,
        image_private = image_private @ 136,
        sigq = sigq @ 200,
        gate = gate @ 328,
    }
    ring3_vcpu: 56 {
        owner = owner @ 0,
        irq_enabled = irq_enabled @ 4,
        driver = driver @ 8,
        deadline = deadline @ 16,
        polled = polled @ 24,
        pad = pad @ 28,
        reserved = reserved @ 32,
    }
    ring3_port_config: 56 {
        index = index @ 0,
        kind = kind @ 4,
        flags = flags @ 8,
        mtu = mtu @ 12,
        side = side @ 16,
        mac = mac @ 20,
        pad = pad @ 26,
        window = window @ 32,
        name = name @ 40,
    }
    ring3_cpuid_answer: 32 {
        state = state @ 0,
        leaf = leaf @ 4,
        subleaf = subleaf @ 8,
        regs = regs @ 16,
    }
    ring3_cpuid_file: 256 {
        key = key @ 0,
        sites = sites @ 8,
        site = site @ 16,
    }
    ring3_cpuid: 17472 {
        use = use_ @ 0,
        answers = answers @ 64,
        files = files @ 1088,
    }
    ring3_region: 285056 {
        magic = magic @ 0,
        abi = abi @ 8,
        flavour = flavour @ 12,
        image_size = image_size @ 16,
        text_start = text_start @ 24,
        text_end = text_end @ 32,
        boot = boot @ 40,
        enter = enter @ 48,
        fixup = fixup @ 56,
        version = version @ 64,
        base = base @ 160,
        size = size @ 168,
        tsc_khz = tsc_khz @ 176,
        boot_tsc = boot_tsc @ 184,
        boot_monotonic_ns = boot_monotonic_ns @ 192,
        boot_realtime_ns = boot_realtime_ns @ 200,
        seed = seed @ 208,
        node_name = node_name @ 272,
        cmdline = cmdline @ 336,
        keeper_pid = keeper_pid @ 848,
        spin_ns = spin_ns @ 852,
        state = state @ 856,
        pending = pending @ 860,
        kick = kick @ 864,
        procs_gen = procs_gen @ 868,
        poison = poison @ 872,
        vcpu = vcpu @ 1024,
        init_thread = tail.init_thread @ 1088,
        driver_thread = tail.driver_thread @ 1928,
        init_proc = tail.init_proc @ 5288,
        procs = tail.procs @ 5416,
        cpuid = tail.cpuid @ 267584,
    }
    ring3_record: 32 {
        len = len @ 0,
        vnet_hdr = vnet_hdr @ 4,
        pad = pad @ 16,
    }
    ring3_ring: 128 {
        head = head @ 0,
        tail = tail @ 64,
    }
    ring3_side: 64 {
        doorbell = doorbell @ 0,
        armed = armed @ 4,
        waiting = waiting @ 8,
        up = up @ 12,
        pid = pid @ 16,
        cpu = cpu @ 20,
    }
    ring3_link: 448 {
        magic = magic @ 0,
        abi = abi @ 8,
        ring_bytes = ring_bytes @ 12,
        ring = ring @ 64,
        side = side @ 320,
    }
    ring3_ticket: 8 {
        key = key @ 0,
    }
    ring3_join_request: 16 {
        magic = magic @ 0,
        abi = abi @ 8,
        pid = pid @ 12,
    }
    ring3_join_port: 8 {
        index = index @ 0,
        kind = kind @ 4,
    }
    ring3_join_reply: 416 {
        magic = magic @ 0,
        abi = abi @ 8,
        status = status @ 12,
        message = message @ 16,
        base = base @ 176,
        size = size @ 184,
        text_start = text_start @ 192,
        text_end = text_end @ 200,
        thread = thread @ 208,
        node = node @ 216,
        nports = nports @ 280,
        pad = pad @ 284,
        ports = ports @ 288,
    }
}
