// SPDX-License-Identifier: GPL-2.0
//! The vCPU word and the words of threads: kernel/arch/ring3/vcpu/lock.c, wait.c and x86_64/entry.S, step
//! by step, under the same names.
//!
//! What is served is a bit in `pending`: whoever drives takes it. In some models it is the packet
//! that ends another thread's call. Who comes to serve it (DRIVE) looks for as long as a store takes
//! to arrive, and so does who waits for the vCPU before it sleeps: the way out of a call is a plain store. The kernel itself is a ghost: who is in it, and nobody else may be.

mod drive;
mod freeze;
mod hand;
mod wait;

use crate::check::{Cpu, Model, Program, State, WORDS};
use crate::lock;
use drive::{acquire_and_drive, leave, start};
use freeze::freeze;
use hand::{from_dead, hand};
use wait::{poll, wait};

const OWNER: usize = 0;
const DRIVER: usize = 1;
const PENDING: usize = 2;
/// The word of the thread that waits or is handed the vCPU.
const WORD: usize = 3;
/// Ghosts: who is in the kernel; whether the waiter's call is done (odd: it is); whether the node is
/// poisoned; whether the vCPU is being handed over.
const INSIDE: usize = 4;
const SERVED: usize = 5;
const POISONED: usize = 6;
const HANDING: usize = 7;

/// cpu->waiters_for_wakes, of the protocol that Plant::Shared has.
const FOR_WAKES: usize = 8;

use crate::lock::{
    RING3_OWNER_OWES as OWES, RING3_OWNER_POLLING as POLLING, RING3_OWNER_TID as TID,
    RING3_OWNER_WAITERS as WAITERS,
};

/// Bits of PENDING: what is to be served, and RING3_IRQ_SLEEPER.
const WORK: u8 = 1;
const ASKED: u8 = 2;

use crate::lock::{
    RING3_WORD_BATON as BATON, RING3_WORD_DONE as DONE, RING3_WORD_HANDED as HANDED,
    RING3_WORD_OFFERED as OFFERED, RING3_WORD_QUEUED as QUEUED, RING3_WORD_SIGNAL as SIGNAL,
    RING3_WORD_SLEEPING as SLEEPING,
};

/// A fault to plant, so that it is seen that its absence is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    Nothing,
    /// release() does not look at WAITERS.
    NoWake,
    /// Whoever releases does not look at `pending` afterwards.
    NoSecondLook,
    /// A poller does not notice that it was taken over.
    BlindPoller,
    /// host_wait() sleeps without SLEEPING in its word.
    SilentSleep,
    /// HANDOVER says BATON without having offered it first.
    BareBaton,
    /// A thread sleeps on the vCPU word while its own word may be written.
    Unqueued,
    /// A thread that was woken to take the vCPU and need not does not wake another.
    Keeps,
    /// ring3_take_from_dead() frees the vCPU of one who died in kernel code.
    Careless,
    /// Who waits for the vCPU does not say so in `pending`.
    Silent,
    /// Who waits for the vCPU sleeps at once, while a store may be on its way.
    NoDrain,
    /// Who has let go takes back what another was asked.
    AnyTaker,
    /// Who serves `pending` does not tell who lets go next that somebody waits.
    Forgets,
    /// DRIVE looks once whether the vCPU is free.
    OneLook,
    /// BATON is taken for the vCPU, whoever's it is.
    AnyBaton,
    /// ring3_take_from_dead() does not look again whether the dead one has the vCPU still.
    Hasty,
    /// A put-off wake-up is no reason to leave the fast path.
    Unowed,
    /// A put-off wake-up sets WAITERS, and who releases wakes nobody for it but a sleeper that has asked; kill.c does not.
    Shared,
    /// kill.c's waiter does not say in `pending` that it waits.
    SilentKiller,
    /// kill.c's waiter sleeps at once, while a store may be on its way.
    HastyKiller,
}

/// Registers: what was loaded, the thread's own WAITERS flag, why it drives, what ends its wait for the vCPU.
const O: usize = 0;
const W: usize = 1;
const WHY: usize = 2;
const BITS: usize = 3;
/// Somebody else's call was ended by what was taken from `pending`.
const TAKEN: usize = 4;
/// A wake-up of WORD was put off.
const OWED: usize = 5;
/// Outside: 1 while it copies, 2 from then on.
const COPIES: usize = 6;

fn tid(cpu: &Cpu) -> u8 {
    cpu.me() as u8 + 1
}

/// Who waits on WORD: the thread with this index.
const WAITER: usize = 0;
const WAITER_TID: u8 = WAITER as u8 + 1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Makes a call.
    Caller,
    /// Raises an interrupt, and drives if nobody does.
    Raiser,
    /// Is in a call; then as a Raiser.
    Server,
    /// Makes a call that ends when the interrupt is served; polls, sleeps.
    Poller,
    /// Has a call in other hands: its task needs its memory.
    Owner,
    /// The same, and once more.
    Twice,
    /// Makes a call and hands the vCPU to the Owner's thread, if that is still wanted.
    Hander,
    /// A signal for the thread that waits.
    Signaller,
    /// A Raiser that puts its wake-ups off until it releases: wake_later().
    Ower,
    /// As a Raiser, and in the middle of its call it makes a long copy without the vCPU. vcpu/outside.c
    Outside,
    /// Sends a SIGKILL: keeps all out of the kernel meanwhile. gate/signal/kill.c
    Freezer,
}

mod pc {
    pub const START: u8 = 0;
    pub const ACQUIRE: u8 = 1;
    pub const ACQUIRE_TAKE: u8 = 2;
    pub const ACQUIRE_WORD: u8 = 3;
    pub const ACQUIRE_LOOK: u8 = 4;
    pub const ACQUIRE_FLAG: u8 = 5;
    pub const ACQUIRE_QUEUE: u8 = 6;
    pub const ACQUIRE_SLEEP: u8 = 7;
    pub const ACQUIRE_UNQUEUE: u8 = 8;
    pub const ACQUIRED: u8 = 9;
    pub const ACQUIRED_LOOK: u8 = 10;
    pub const GIVE_BACK: u8 = 11;
    pub const COPY: u8 = 12;
    pub const DRIVE: u8 = 13;
    pub const SERVE: u8 = 14;
    pub const SERVE_TAKE: u8 = 15;
    pub const NOTIFY: u8 = 16;
    pub const NOTIFY_WAKE: u8 = 17;
    pub const NOTIFY_QUEUED: u8 = 18;
    pub const ACQUIRE_PASS: u8 = 19;
    pub const LEAVE: u8 = 20;
    pub const LEAVE_STORE: u8 = 21;
    pub const RELEASE: u8 = 22;
    pub const RELEASE_WAKE: u8 = 23;
    pub const LOOK_AGAIN: u8 = 24;
    pub const TRY: u8 = 25;
    pub const TRY_TAKE: u8 = 26;
    pub const LEFT: u8 = 27;
    pub const WAIT: u8 = 30;
    pub const WAIT_BATON: u8 = 31;
    pub const WAIT_DONE: u8 = 32;
    pub const WAIT_FLAG: u8 = 33;
    pub const WAIT_SLEEP: u8 = 34;
    pub const WAIT_AWAKE: u8 = 35;
    pub const WAIT_OFFER: u8 = 36;
    pub const WAIT_ACCEPT: u8 = 37;
    pub const WAIT_SIGNAL: u8 = 38;
    pub const WAIT_HANDED: u8 = 39;
    pub const WAIT_STALE: u8 = 29;
    pub const POLL: u8 = 40;
    pub const POLL_MARK: u8 = 41;
    pub const POLL_WAKE: u8 = 42;
    pub const POLL_LOOK: u8 = 43;
    pub const POLL_PENDING: u8 = 44;
    pub const UNPOLL: u8 = 45;
    pub const UNPOLL_TAKE: u8 = 46;
    pub const IDLE: u8 = 47;
    pub const IDLE_RELEASE: u8 = 48;
    pub const IDLE_WAKE: u8 = 49;
    pub const IDLE_LOOK: u8 = 50;
    pub const IDLE_TRY: u8 = 51;
    pub const IDLE_TAKE: u8 = 52;
    pub const IDLE_AGAIN: u8 = 53;
    pub const IDLE_FORGET: u8 = 54;
    pub const HAND: u8 = 60;
    pub const HAND_OFFER: u8 = 61;
    pub const HAND_LOOK: u8 = 62;
    pub const HAND_OWNER: u8 = 63;
    pub const HAND_BATON: u8 = 64;
    pub const HAND_BATON_SET: u8 = 65;
    pub const HAND_WAKE: u8 = 66;
    pub const HAND_QUEUED: u8 = 67;
    pub const DEAD: u8 = 70;
    pub const DEAD_DRIVER: u8 = 71;
    pub const DEAD_BATON: u8 = 72;
    pub const DEAD_ASK: u8 = 73;
    pub const DEAD_FREE: u8 = 74;
    pub const DEAD_WAKE: u8 = 75;
    pub const DEAD_AGAIN: u8 = 76;
    pub const SIGNALLED: u8 = 80;
    pub const ACQUIRE_ASK: u8 = 81;
    pub const ACQUIRE_DRAIN: u8 = 82;
    pub const SERVE_WAITERS: u8 = 83;
    pub const GIVE_WAY: u8 = 28;
    pub const GIVE_WAY_CLEAR: u8 = 84;
    pub const GIVE_WAY_RELEASE: u8 = 85;
    pub const GIVE_WAY_WAKE: u8 = 86;
    pub const RELEASE_ASKED: u8 = 87;
    pub const RELEASE_OWED: u8 = 88;
    pub const OWE: u8 = 89;
    pub const FREEZE: u8 = 90;
    pub const FREEZE_SAY: u8 = 91;
    pub const FREEZE_ASK: u8 = 92;
    pub const FREEZE_DRAIN: u8 = 93;
    pub const FREEZE_SLEEP: u8 = 94;
    pub const FROZEN: u8 = 95;
    pub const THAW: u8 = 96;
    pub const THAW_WAKE: u8 = 97;
    pub const THAW_KICK: u8 = 98;
}

/// What a driver does when its poll gave up.
const GAVE_UP: u8 = 1;
/// It comes to serve, and looks while a store may be on its way.
const LOOKS: u8 = 2;

fn thread(role: Role, plant: Plant, mortals: bool) -> Program {
    Box::new(move |cpu| match cpu.pc() {
        pc::START => start(cpu, role),
        1..=19 | 81..=83 | pc::OWE => acquire_and_drive(cpu, role, plant, mortals),
        20..=28 | 84..=88 => leave(cpu, role, plant),
        90..=98 => freeze(cpu, plant),
        29..=39 => wait(cpu, plant, mortals),
        40..=59 => poll(cpu, plant),
        60..=69 => hand(cpu, plant),
        70..=79 => from_dead(cpu, plant),
        _ => {
            cpu.futex_wake(WORD, false);
            cpu.done();
        }
    })
}

/// The threads of a model, in order, and who of them may be killed.
pub fn model(roles: &[Role], mortal: &[usize], plant: Plant) -> Model {
    with_word(0, roles, mortal, !mortal.is_empty(), plant)
}

/// The first thread waits already, and has had a signal; the last one is in its call.
pub fn signalled(roles: &[Role], plant: Plant) -> Model {
    let mut model = with_word(SIGNAL, roles, &[], false, plant);
    model.words[OWNER] = roles.len() as u8;
    model
}

/// Threads may lose their CPU for longer than the longest sleep.
pub fn slow(roles: &[Role], plant: Plant) -> Model {
    with_word(0, roles, &[], true, plant)
}

fn with_word(word: u8, roles: &[Role], mortal: &[usize], mortals: bool, plant: Plant) -> Model {
    let mut words = [0; WORDS];
    words[WORD] = word;
    let programs = roles.iter().map(|&role| thread(role, plant, mortals));
    let hands = roles.contains(&Role::Hander);
    Model {
        words,
        programs: programs.collect(),
        mortal: mortal.to_vec(),
        timeouts: mortals,
        // Whose call nobody serves any more because its server died.
        servants: if mortals { vec![WAITER] } else { Vec::new() },
        accepts: Box::new(move |state| accepts(state, mortals, hands)),
    }
}

fn accepts(state: &State, mortals: bool, hands: bool) -> bool {
    if mortals && state.word(POISONED) != 0 {
        // Who hands the vCPU over is in no kernel code any more.
        return state.word(HANDING) == 0;
    }
    let owner = state.word(OWNER);
    // A dead one's is taken by whoever wants it next.
    let free = owner == 0 || state.is_dead(usize::from(owner & TID) - 1);
    let served = hands || state.word(PENDING) & WORK == 0;
    free && served
}
