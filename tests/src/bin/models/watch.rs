// SPDX-License-Identifier: GPL-2.0
//! Who sleeps in an idle node waits for peers itself: ring3_watch() in kernel/arch/ring3/vcpu/idle.c, beside
//! KEEP or without it. A peer sends packets; a thread waits for all of them; another makes a call meanwhile
//! and may finish the first one's, or serve what is pending.
//!
//! The vCPU is a word that is 0 or its holder: how it is handed over and waited for is vcpu.rs.

use crate::check::{Cpu, Model, Program, WORDS};

const HEAD: usize = 0;
const TAIL: usize = 1;
const ARMED: usize = 2;
const BELL: usize = 3;
const OWNER: usize = 4;
const PENDING: usize = 5;
/// The doorbell as somebody looked at it last.
const RUNG: usize = 7;
/// R3_EXIT_POLL: the link is not armed, and is looked at nevertheless.
const POLLED: usize = 8;
/// The waiter's: 1 when its task was called, for the packets are there.
const WORD: usize = 6;

/// How many there are to be; the model does not change it.
const PACKETS: usize = 9;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    Nothing,
    /// Who is woken by a ring while another drives does not say so in `pending`.
    Dropped,
    /// The doorbell's value is read after the ring was looked at.
    LateBell,
    /// It does not say that the link is not armed any more.
    Unarmed,
    /// Between arming and sleeping nobody looks.
    NoLook,
    /// The doorbell is not among what is slept on.
    WordOnly,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Its call ends with the last packet. It drives at first.
    Waiter,
    /// A program that makes one call.
    Caller,
    Keep,
}

/// Bits of PENDING.
const PORT: u8 = 1;
const WORK: u8 = 2;

/// Registers: the doorbell as read before everything else, what was read last; the thread's call is over;
/// what there is to do; who had the vCPU.
const SEEN_BELL: usize = 0;
const SEEN: usize = 1;
const HOME: usize = 2;
const SOME: usize = 3;
const OWNED: usize = 4;

mod pc {
    pub const START: u8 = 0;
    pub const DRIVE: u8 = 1;
    pub const LATER: u8 = 2;
    pub const TAKE: u8 = 3;
    pub const CALL: u8 = 4;
    pub const CALL_WAKE: u8 = 5;
    pub const SETTLE: u8 = 6;
    pub const ARM: u8 = 7;
    pub const ARM_FENCE: u8 = 8;
    pub const READY: u8 = 9;
    pub const READY_RUNG: u8 = 10;
    pub const READY_STORE: u8 = 11;
    pub const READY_HEAD: u8 = 12;
    pub const READY_TAIL: u8 = 13;
    pub const PENDING: u8 = 14;
    pub const RELEASE: u8 = 15;
    pub const LOOK_AGAIN: u8 = 16;
    pub const TRY: u8 = 17;
    pub const TICK: u8 = 18;
    pub const WATCH: u8 = 20;
    pub const WATCH_BELL: u8 = 21;
    pub const WATCH_OWNER: u8 = 22;
    pub const WATCH_POLLED: u8 = 23;
    pub const WATCH_ARMED: u8 = 24;
    pub const WATCH_LOOK: u8 = 25;
    pub const WATCH_TAKE: u8 = 26;
    pub const WATCH_LATE: u8 = 27;
    pub const WATCH_SLEEP: u8 = 28;
}

/// In SOME while the vCPU is the thread's: it is about to be let go.
const HELD: u8 = 0x80;

fn peer(cpu: &mut Cpu) {
    match cpu.pc() {
        0 => {
            let head = cpu.load(HEAD);
            if head == cpu.load(PACKETS) {
                return cpu.done();
            }
            cpu.store(HEAD, head + 1);
            cpu.go(1);
        }
        // link_take_flag(armed), link_ring_doorbell()
        1 => {
            cpu.fence();
            cpu.go(2);
        }
        2 => {
            let armed = cpu.load(ARMED) != 0;
            cpu.go(if armed { 3 } else { 0 });
        }
        3 => {
            let taken = cpu.swap(ARMED, 0) != 0;
            cpu.go(if taken { 4 } else { 0 });
        }
        4 => {
            cpu.locked(BELL, |bell| bell + 1);
            cpu.go(5);
        }
        _ => {
            cpu.futex_wake(BELL, true);
            cpu.go(0);
        }
    }
}

/// What all who drive do, and then who watches.
fn thread(cpu: &mut Cpu, role: Role, plant: Plant) {
    match cpu.pc() {
        pc::START..=pc::CALL_WAKE => drive(cpu, role),
        pc::SETTLE..=pc::PENDING => look(cpu, plant),
        pc::RELEASE..=pc::TICK => let_go(cpu, role),
        _ => watch(cpu, role, plant),
    }
}

fn me(cpu: &Cpu) -> u8 {
    cpu.me() as u8 + 1
}

fn drive(cpu: &mut Cpu, role: Role) {
    match cpu.pc() {
        pc::START => match role {
            Role::Waiter => cpu.go(pc::DRIVE),
            Role::Keep => cpu.go(pc::WATCH),
            Role::Caller => {
                if cpu.swap_if(OWNER, 0, me(cpu)) {
                    cpu.go(pc::DRIVE);
                }
            }
        },
        pc::DRIVE => {
            let work = cpu.swap(PENDING, 0) & WORK != 0;
            cpu.go(if work { pc::LATER } else { pc::TAKE });
        }
        // ring3_poll_later()
        pc::LATER => {
            cpu.store(POLLED, 1);
            cpu.go(pc::TAKE);
        }
        // The receiver takes all there is; the last one ends the waiter's call.
        pc::TAKE => {
            let head = cpu.load(HEAD);
            let last = head == cpu.load(PACKETS);
            cpu.store(TAIL, head);
            cpu.set(HOME, u8::from(last));
            cpu.set(SOME, HELD);
            cpu.go(match (role, last) {
                (Role::Waiter, true) => pc::RELEASE,
                (Role::Caller | Role::Keep, true) => pc::CALL,
                (Role::Caller, false) if cpu.get(OWNED) == 0 => pc::RELEASE,
                (_, false) => pc::SETTLE,
            });
        }
        pc::CALL => {
            cpu.swap(WORD, 1);
            cpu.go(pc::CALL_WAKE);
        }
        _ => {
            cpu.futex_wake(WORD, true);
            cpu.go(pc::RELEASE);
        }
    }
}

/// ring3_settle() of an idle node, ring3_poll_arm(), ring3_poll_ready(); then to where it was asked for.
fn look(cpu: &mut Cpu, plant: Plant) {
    let held = cpu.get(SOME) & HELD != 0;
    let on = |none: u8| if held { pc::RELEASE } else { none };
    match cpu.pc() {
        pc::SETTLE => {
            cpu.store(POLLED, 0);
            cpu.go(pc::ARM);
        }
        pc::ARM => {
            cpu.store(ARMED, 1);
            cpu.go(pc::ARM_FENCE);
        }
        pc::ARM_FENCE => {
            cpu.fence();
            cpu.go(match plant {
                Plant::NoLook => on(pc::WATCH_LOOK),
                _ => pc::READY,
            });
        }
        pc::READY => {
            cpu.set(SEEN, cpu.load(BELL));
            cpu.go(pc::READY_RUNG);
        }
        pc::READY_RUNG => {
            let rung = cpu.load(RUNG) != cpu.get(SEEN);
            cpu.go(if rung {
                pc::READY_STORE
            } else {
                pc::READY_HEAD
            });
        }
        pc::READY_STORE => {
            cpu.store(RUNG, cpu.get(SEEN));
            cpu.set(SOME, cpu.get(SOME) | PORT);
            cpu.go(pc::READY_HEAD);
        }
        pc::READY_HEAD => {
            cpu.set(SEEN, cpu.load(HEAD));
            cpu.go(pc::READY_TAIL);
        }
        pc::READY_TAIL => {
            if cpu.load(TAIL) != cpu.get(SEEN) && plant != Plant::NoLook {
                cpu.set(SOME, cpu.get(SOME) | PORT);
            }
            let some = cpu.get(SOME) & !HELD != 0;
            cpu.go(match some {
                true if plant == Plant::Dropped && !held => pc::WATCH_TAKE,
                true => pc::PENDING,
                false => on(pc::WATCH_LOOK),
            });
        }
        _ => {
            cpu.set_bits(PENDING, cpu.get(SOME) & !HELD);
            cpu.go(on(pc::WATCH_LOOK));
        }
    }
}

/// release()
fn let_go(cpu: &mut Cpu, role: Role) {
    match cpu.pc() {
        pc::RELEASE => {
            cpu.swap(OWNER, 0);
            cpu.go(pc::LOOK_AGAIN);
        }
        pc::LOOK_AGAIN => {
            let again = cpu.load(PENDING) != 0;
            cpu.go(match again {
                true => pc::TRY,
                false if role == Role::Caller => pc::TICK,
                false => pc::WATCH,
            });
        }
        pc::TRY => {
            let taken = cpu.swap_if(OWNER, 0, me(cpu));
            cpu.go(match taken {
                true => pc::DRIVE,
                false if role == Role::Caller => pc::TICK,
                false => pc::WATCH,
            });
        }
        // Its program makes more calls, or KEEP's tick comes in its place: in the end the link is armed.
        _ => {
            if cpu.get(HOME) == 1 || cpu.load(POLLED) == 0 {
                return cpu.go(pc::WATCH);
            }
            cpu.set(OWNED, 1);
            cpu.go(pc::TRY);
        }
    }
}

/// ring3_watch(), and what KEEP does of it.
fn watch(cpu: &mut Cpu, role: Role, plant: Plant) {
    match cpu.pc() {
        pc::WATCH => {
            let over = match role {
                Role::Waiter => cpu.get(HOME) == 1 || cpu.load(WORD) == 1,
                Role::Caller => true,
                Role::Keep => false,
            };
            if over {
                return cpu.done();
            }
            cpu.set(SOME, 0);
            cpu.go(match plant {
                Plant::LateBell => pc::WATCH_OWNER,
                _ => pc::WATCH_BELL,
            });
        }
        pc::WATCH_BELL => {
            cpu.set(SEEN_BELL, cpu.load(BELL));
            cpu.go(pc::WATCH_OWNER);
        }
        pc::WATCH_OWNER => {
            cpu.set(OWNED, cpu.load(OWNER));
            cpu.go(pc::WATCH_POLLED);
        }
        pc::WATCH_POLLED => {
            let polled = cpu.load(POLLED) != 0;
            cpu.go(if polled { pc::READY } else { pc::WATCH_ARMED });
        }
        pc::WATCH_ARMED => {
            let armed = cpu.load(ARMED) != 0 || plant == Plant::Unarmed;
            let owned = cpu.get(OWNED) != 0;
            if !armed && owned {
                cpu.set(SOME, WORK);
            }
            cpu.go(if armed || owned { pc::READY } else { pc::ARM });
        }
        pc::WATCH_LOOK => {
            let pending = cpu.load(PENDING) != 0;
            cpu.go(match (pending, plant) {
                (true, _) => pc::WATCH_TAKE,
                (false, Plant::LateBell) => pc::WATCH_LATE,
                (false, _) => pc::WATCH_SLEEP,
            });
        }
        pc::WATCH_TAKE => {
            let taken = cpu.swap_if(OWNER, 0, me(cpu));
            cpu.go(if taken { pc::DRIVE } else { pc::WATCH_SLEEP });
        }
        pc::WATCH_LATE => {
            cpu.set(SEEN_BELL, cpu.load(BELL));
            cpu.go(pc::WATCH_SLEEP);
        }
        _ => {
            let bell = (BELL, cpu.get(SEEN_BELL));
            match (role, plant) {
                (Role::Waiter, Plant::WordOnly) => cpu.futex_wait(WORD, 0),
                (Role::Waiter, _) => cpu.futex_wait_any(&[(WORD, 0), bell]),
                _ => cpu.futex_wait_any(&[bell]),
            }
            cpu.go(pc::WATCH);
        }
    }
}

/// `keep`: beside the waiter there is KEEP, which sleeps on the doorbell too; else a caller.
pub fn model(keep: bool, plant: Plant) -> Model {
    let mut words = [0; WORDS];
    // The second thread has the vCPU at first.
    words[OWNER] = 2;
    // With KEEP one is enough for some hundred thousand states.
    words[PACKETS] = if keep { 1 } else { 2 };
    let mut programs: Vec<Program> = vec![Box::new(peer)];
    let roles = [Role::Waiter, if keep { Role::Keep } else { Role::Caller }];
    for role in roles {
        programs.push(Box::new(move |cpu: &mut Cpu| thread(cpu, role, plant)));
    }
    Model {
        words,
        programs,
        mortal: Vec::new(),
        timeouts: false,
        servants: if keep { vec![2] } else { Vec::new() },
        accepts: Box::new(|state| {
            state.word(TAIL) == state.word(PACKETS) && state.word(OWNER) == 0
        }),
    }
}
