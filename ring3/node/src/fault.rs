// SPDX-License-Identifier: GPL-2.0
//! Faults in kernel code. Unsafe leaf.
//!
//! Linux touches memory that may be invalid, and relies on its exception table to continue
//! elsewhere. Here the host's SIGSEGV and SIGBUS are the trap: a handler asks the image's `fixup`
//! for the address to continue at. Faults outside of the image go to the previous handler (the Rust
//! runtime's, which reports stack overflows).
//!
//! The handler runs on the thread's alternate stack: region stacks have no room for a signal
//! frame. [`prepare_thread`] makes sure that there is one.
#![allow(unsafe_code)]

use std::mem::{transmute, zeroed};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::region::Region;

/// Nodes in one process.
const REGIONS_MAX: usize = 64;
/// More than any CPU's signal frame with all vector state (11 KiB with AMX), plus a handler.
const STACK_BYTES: usize = 64 << 10;

/// One region's text, for a handler that must not take locks. `start` is written last and cleared
/// first.
struct Slot {
    start: AtomicU64,
    end: AtomicU64,
    fixup: AtomicU64,
}

static SLOTS: [Slot; REGIONS_MAX] = [const {
    Slot {
        start: AtomicU64::new(0),
        end: AtomicU64::new(0),
        fixup: AtomicU64::new(0),
    }
}; REGIONS_MAX];

/// The previous handlers of SIGSEGV and SIGBUS.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// Faults in a region's text are fixed up while this lives.
#[derive(Debug)]
pub(crate) struct Guard(usize);

/// Starts to catch faults in `region`'s text.
pub(crate) fn guard(region: &Region) -> Result<Guard> {
    BEFORE.get_or_init(install);
    let text = region.text();
    for (index, slot) in SLOTS.iter().enumerate() {
        // 1 marks a slot that is being filled: no code is at that address.
        let taken = slot
            .start
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_ok() {
            slot.end.store(region.base() + text.end, Ordering::Relaxed);
            slot.fixup.store(region.fixup_address(), Ordering::Relaxed);
            slot.start
                .store(region.base() + text.start, Ordering::Release);
            return Ok(Guard(index));
        }
    }
    Err(Error::TooManyNodes { max: REGIONS_MAX })
}

impl Drop for Guard {
    fn drop(&mut self) {
        let slot = &SLOTS[self.0];
        slot.end.store(0, Ordering::Release);
        slot.start.store(0, Ordering::Release);
    }
}

/// Gives the calling thread an alternate signal stack if it has none.
pub(crate) fn prepare_thread() {
    // SAFETY: sigaltstack reads and writes the one stack_t it is given. The stack itself is
    // never freed, as the thread may run on it until its very end; keeper threads are few.
    unsafe {
        let mut now: libc::stack_t = zeroed();
        libc::sigaltstack(std::ptr::null(), &mut now);
        if now.ss_flags & libc::SS_DISABLE == 0 {
            return;
        }
        let stack = libc::stack_t {
            ss_sp: Vec::<u8>::with_capacity(STACK_BYTES)
                .leak()
                .as_mut_ptr()
                .cast(),
            ss_flags: 0,
            ss_size: STACK_BYTES,
        };
        libc::sigaltstack(&stack, std::ptr::null_mut());
    }
}

fn install() -> [libc::sigaction; 2] {
    // SAFETY: sigaction is plain data; the handler has the signature that SA_SIGINFO asks for
    // and does only what a signal handler may.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigfillset(&mut action.sa_mask);
        let mut trap = action;
        trap.sa_sigaction = on_trap as *const () as usize;
        libc::sigaction(libc::SIGTRAP, &trap, std::ptr::null_mut());
        [libc::SIGSEGV, libc::SIGBUS].map(|signal| {
            let mut before: libc::sigaction = zeroed();
            libc::sigaction(signal, &action, &mut before);
            before
        })
    }
}

/// A breakpoint in kernel code: TURN_TRAP of kernel/arch/ring3/turn/turn.h.
const TRAP: u64 = 1 << 63;

/// Breakpoints of `ring3 sim --gdb`; the image waits there for the debugger.
extern "C" fn on_trap(
    signal: libc::c_int,
    _info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the host passes a ucontext_t to a handler with SA_SIGINFO.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let rip = registers[libc::REG_RIP as usize] as u64;
    for slot in &SLOTS {
        if slot.start.load(Ordering::Acquire) <= 1 {
            continue;
        }
        let fixup = slot.fixup.load(Ordering::Relaxed);
        // SAFETY: as in on_fault(). With TRAP it takes the registers too, which gregs has in the order of struct sigcontext.
        let fixup = unsafe { transmute::<u64, extern "C" fn(u64, *mut i64) -> u64>(fixup) };
        if fixup(rip | TRAP, registers.as_mut_ptr()) != 0 {
            return;
        }
    }
    // SAFETY: what would have happened without this handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the host passes a ucontext_t to a handler with SA_SIGINFO.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let rip = registers[libc::REG_RIP as usize] as u64;
    for slot in &SLOTS {
        let start = slot.start.load(Ordering::Acquire);
        if start <= 1 || !(start..slot.end.load(Ordering::Acquire)).contains(&rip) {
            continue;
        }
        let fixup = slot.fixup.load(Ordering::Relaxed);
        // SAFETY: the image's header says that this is `u64 fixup(u64 rip)` in the C
        // convention, safe in a signal handler.
        let fixup = unsafe { transmute::<u64, extern "C" fn(u64) -> u64>(fixup) };
        let target = fixup(rip);
        if target != 0 {
            registers[libc::REG_RIP as usize] = target as i64;
            return;
        }
    }
    // SAFETY: BEFORE holds what sigaction returned; a handler found there is called as it
    // would have been.
    unsafe { pass_on(signal, info, context) };
}

/// Does what the previous handler would have done.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE
        .get()
        .map(|both| &both[usize::from(signal == libc::SIGBUS)]);
    // SAFETY: see above; the default action is restored and the faulting instruction, which
    // runs again, dies of it.
    unsafe {
        match before {
            Some(old) if old.sa_sigaction > libc::SIG_IGN => {
                if old.sa_flags & libc::SA_SIGINFO != 0 {
                    let handler = transmute::<
                        usize,
                        extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void),
                    >(old.sa_sigaction);
                    handler(signal, info, context);
                } else {
                    transmute::<usize, extern "C" fn(libc::c_int)>(old.sa_sigaction)(signal);
                }
            }
            _ => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
