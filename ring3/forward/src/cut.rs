// SPDX-License-Identifier: GPL-2.0
//! The call that can be left from outside. Unsafe leaf.
//!
//! `ring3_forward_call` calls the handler, and leaves the stack pointer of the call in [`CALL`]. While it is there, the
//! agent is in the handler. A signal's frame has the agent's registers: to leave the handler, [`on_signal`] sets two of them,
//! so that the agent goes on behind the call with the stack and the registers of before. On a node the gate delivers
//! signals only where the agent is in the program, never within the node's kernel: a handler that makes a call of the node
//! is left at the end of that call.
//!
//! There is one agent in a process, so these words are the process's.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{compiler_fence, AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Shared by the agent, its signal handler, and the watchdog.
#[repr(C)]
pub struct Call {
    /// The agent's stack pointer while it is in the handler, else 0. Written by the agent.
    stack: AtomicU64,
    /// Number of the call. Written by the agent before the call.
    number: AtomicU64,
    /// The call that is to be left. Written by the watchdog.
    doomed: AtomicU64,
    /// The signal that the handler died of, or 0.
    fault: AtomicU32,
}

pub static CALL: Call = Call {
    stack: AtomicU64::new(0),
    number: AtomicU64::new(0),
    doomed: AtomicU64::new(0),
    fault: AtomicU32::new(0),
};

/// The agent's thread id; 0: it does not run yet.
static AGENT: AtomicI32 = AtomicI32::new(0);

/// Ends the agent's waits and its calls. Ignored by default, and used by hardly any program.
const SIGNAL: i32 = libc::SIGURG;
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

pub type Packet = unsafe extern "C" fn(*mut c_void, *mut c_void) -> u64;

/// In two registers, as the C ABI has it.
#[repr(C)]
struct Came {
    verdict: u64,
    was_cut: u64,
}

// rdi: function, rsi: its first argument, rdx: its second, rcx: &CALL. Callee-saved registers are on the stack below the
// pointer that CALL has, so that a call that is left can restore them. MXCSR and the x87 control word are callee-saved, too.
std::arch::global_asm!(
    ".text",
    ".global ring3_forward_call",
    ".hidden ring3_forward_call",
    ".type ring3_forward_call, @function",
    "ring3_forward_call:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov rbx, rcx",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov [rbx + {stack}], rsp",
    "call rax",
    "xor edx, edx",
    "2:",
    "mov qword ptr [rbx + {stack}], 0",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".global ring3_forward_left",
    ".hidden ring3_forward_left",
    "ring3_forward_left:",
    "cld",
    "ldmxcsr [rsp]",
    "fldcw [rsp + 4]",
    "xor eax, eax",
    "mov edx, 1",
    "jmp 2b",
    ".size ring3_forward_call, . - ring3_forward_call",
    stack = const offset_of!(Call, stack),
);

extern "C" {
    fn ring3_forward_call(
        function: Packet,
        first: *mut c_void,
        second: *mut c_void,
        call: *const Call,
    ) -> Came;
    /// No function: a place in the one above.
    fn ring3_forward_left();
}

/// Which call it is, and how long it has been watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    pub number: u64,
    pub is_in: bool,
}

pub fn now() -> Now {
    Now {
        number: CALL.number.load(Ordering::Acquire),
        is_in: CALL.stack.load(Ordering::Acquire) != 0,
    }
}

/// The next call has a number of its own from here on.
pub fn begin_call() {
    let number = CALL.number.load(Ordering::Relaxed);
    CALL.number.store(number + 1, Ordering::Release);
    // The lines below are not done before: see the watchdog's sleep.
    compiler_fence(Ordering::SeqCst);
}

/// Calls the handler, after [`begin_call`]; `None`: the call was left.
///
/// # Safety
/// `packet` may be called with these two, and nothing that it leaves undone when it is cut off is used afterwards.
pub unsafe fn call(packet: Packet, state: *mut c_void, what: *mut c_void) -> Option<u64> {
    // SAFETY: the caller's promise; CALL lives for ever.
    let came = unsafe { ring3_forward_call(packet, state, what, &raw const CALL) };
    (came.was_cut == 0).then_some(came.verdict)
}

/// The calling thread is the agent.
pub fn begin() {
    // SAFETY: no preconditions.
    AGENT.store(unsafe { libc::gettid() }, Ordering::Release);
}

/// Call `number` is to be left. To be repeated while it goes on.
pub fn leave(number: u64) {
    CALL.doomed.store(number, Ordering::Release);
    nudge();
}

/// Whether the watchdog wanted this call left.
pub fn is_doomed(number: u64) -> bool {
    CALL.doomed.load(Ordering::Acquire) == number
}

/// The signal that the handler has faulted by.
pub fn fault() -> Option<u32> {
    Some(CALL.fault.load(Ordering::Acquire)).filter(|signal| *signal != 0)
}

/// Wakes the agent from a wait.
pub fn nudge() {
    let agent = AGENT.load(Ordering::Acquire);
    if agent != 0 {
        // SAFETY: a thread of this process, or none any more, which is an error that changes nothing.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), agent, SIGNAL) };
    }
}

pub fn install() -> Result<()> {
    for signal in FAULTS.iter().chain(&[SIGNAL]) {
        // SAFETY: all zeroes is a sigaction; the handler has the type that SA_SIGINFO wants, and does what a handler may.
        let done = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            // A handler that has used up its stack leaves no room there. Rust gives each thread an alternate one.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(*signal, &action, std::ptr::null_mut())
        };
        if done != 0 {
            return Err(Error::host("install a signal handler")(
                std::io::Error::last_os_error(),
            ));
        }
    }
    Ok(())
}

/// Only stores, and at most one call that gives a signal its default.
extern "C" fn on_signal(signal: i32, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the host gives a handler with SA_SIGINFO the interrupted context, which is ours to change.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    // SAFETY: no preconditions.
    let is_agent = unsafe { libc::gettid() } == AGENT.load(Ordering::Acquire);
    let stack = if is_agent {
        CALL.stack.load(Ordering::Acquire)
    } else {
        0
    };
    let is_fault = signal != SIGNAL;
    if stack == 0 && is_fault {
        // Not the handler's: it comes again when this returns, and ends the process.
        // SAFETY: no handler is involved.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    let number = CALL.number.load(Ordering::Acquire);
    if stack == 0 || !(is_fault || CALL.doomed.load(Ordering::Acquire) == number) {
        return;
    }
    if is_fault {
        CALL.fault.store(signal as u32, Ordering::Release);
    }
    let registers = &mut context.uc_mcontext.gregs;
    registers[libc::REG_RIP as usize] = ring3_forward_left as *const () as i64;
    registers[libc::REG_RSP as usize] = stack as i64;
    registers[libc::REG_RBX as usize] = &raw const CALL as i64;
}
