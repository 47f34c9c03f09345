// SPDX-License-Identifier: GPL-2.0
//! How a thread brings the others of its process out of the image before the host ends them: gate/signal/stop.c,
//! who enters the image (go_inside() in call.c, entry.S), on_fault() in signal.c and gate_child_start()
//! in thread.c.
//!
//! Ghosts say who is in kernel code, and whether EXIT_GROUP has given back what the other threads'
//! blocks point to (their fdmap): a look there is a fault. That a thread does not come out for a second
//! (LIMIT_NS) is no part of this: time is as long as it takes.
//!
//! A vfork child has the words of its parent, and outlives it. It has nobody to stop, so it leaves them alone.

use crate::check::{Cpu, Model, Program, State, WORDS};

/// gate_stopper and stop_process.
const STOPPER: usize = 0;
const PROC: usize = 1;
/// What a thread inside waits for: nothing that comes.
const NEVER: usize = 2;
/// Ghosts: a bit for each thread that is in kernel code; the blocks are bare.
const KERNEL: usize = 3;
const GONE: usize = 4;
/// The tid in the block of the thread that is new.
const TID: usize = 5;
/// One for each thread that may be stopped: thread->inside, tcb->parked.
const INSIDE: usize = 6;
const PARKED: usize = 9;
const STOPPABLE: usize = 3;

/// Of these all but SYS and KILL are SIGBUS. Traps come before what others send.
const SYS: u8 = 1;
const FAULT: u8 = 2;
const MARK: u8 = 4;
const KILL: u8 = 8;

/// The process that is stopped, and a vfork child, which has its memory.
const PROCESS: u8 = 1;
const CHILD: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    Nothing,
    /// Who enters the image does not look at gate_stopper.
    NoLook,
    /// stop_others() without its membarrier.
    NoFence,
    /// Who enters looks, and sets thread->inside then.
    LookFirst,
    /// Marks are SIGSYS, 2 ms are as good as quiet, and who enters does not look: what there was once.
    SysMark,
    /// A new thread does not look after it has set its tid, nor does who enters.
    NewBlind,
    /// stop_undo() wakes nobody.
    SilentUndo,
    /// quiet() sends no second mark.
    MarkedOnce,
    /// A fault in the gate is a bug of the gate's, whoever ends the process.
    BlindFault,
    /// Who has no other threads takes gate_stopper all the same, to give it back at once.
    TakenAlone,
    /// stop_undo() gives gate_stopper back, whoever has it.
    AnyUndo,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// exit_group.
    Exits,
    /// execve, which fails or does not.
    Execs,
    /// execve fails, then exit_group.
    Retries,
    /// Calls into the image from rewritten sites.
    Caller,
    /// The same by dispatched calls.
    Trapper,
    /// Makes calls that copy the program's memory, which may fault.
    Copier,
    /// Waits inside. The image's memory may fault there, which the gate puts right.
    Waiter,
    /// Has just been made.
    New,
    /// A vfork child's execve, which fails or does not.
    Vforked,
    /// Another process, which sends the second thread a SIGBUS.
    Killer,
}

impl Role {
    /// Is it of the process that is stopped?
    fn stoppable(self) -> bool {
        self.process() == PROCESS
    }

    fn process(self) -> u8 {
        match self {
            Role::Vforked | Role::Killer => CHILD,
            _ => PROCESS,
        }
    }
}

/// Registers: gate_stopper as stop_park() saw it, where that returns to, what only the thread itself looks at.
const S: usize = 0;
const BACK: usize = 1;
const FLAGS: usize = 2;
/// tcb->stop, thread->sigpending; stop_others() has seen a thread inside; execve has failed.
const STOP: u8 = 1;
const SIGPENDING: u8 = 2;
const BUSY: u8 = 4;
const FAILED: u8 = 8;

mod pc {
    pub const START: u8 = 0;
    pub const NEW_TID: u8 = 1;
    pub const NEW_FENCE: u8 = 2;
    pub const NEW_LOOK: u8 = 3;
    pub const NEW_NUMBERED: u8 = 4;
    pub const PROGRAM: u8 = 5;
    pub const STRAIGHT: u8 = 10;
    pub const STRAIGHT_INSIDE: u8 = 11;
    pub const STRAIGHT_LOOK: u8 = 12;
    pub const STOPPING: u8 = 13;
    pub const CALL: u8 = 14;
    pub const COPY: u8 = 15;
    pub const GO_INSIDE: u8 = 16;
    pub const GO_LOOK: u8 = 17;
    pub const ENTERING: u8 = 18;
    pub const ENTERING_NOT: u8 = 19;
    pub const ENTER: u8 = 20;
    pub const IMAGE: u8 = 21;
    pub const IMAGE_LOOK: u8 = 22;
    pub const IMAGE_WAIT: u8 = 23;
    pub const LEAVE: u8 = 24;
    pub const LEFT: u8 = 25;
    pub const EXIT_WORK: u8 = 26;
    pub const BARE: u8 = 27;
    pub const BARE_PROC: u8 = 28;
    pub const PARK: u8 = 30;
    pub const PARK_LOOK: u8 = 31;
    pub const PARK_PROC: u8 = 32;
    pub const PARK_SAY: u8 = 33;
    pub const PARK_WAIT: u8 = 34;
    pub const PARK_END: u8 = 35;
    pub const STOP_TAKE: u8 = 40;
    pub const STOP_PROC: u8 = 41;
    pub const STOP_ENDS: u8 = 42;
    pub const STOP_WAKE: u8 = 43;
    pub const STOP_KILLS: u8 = 44;
    pub const STOP_NOBODY: u8 = 45;
    pub const STOP_UNDO: u8 = 46;
    pub const STOP_FREE: u8 = 47;
    pub const STOP_FORGET: u8 = 48;
    /// And one for each thread.
    pub const MARK_TID: u8 = 50;
    pub const MARK_SEND: u8 = 54;
    pub const FENCE: u8 = 58;
    pub const QUIET: u8 = 62;
    pub const QUIET_INSIDE: u8 = 66;
    pub const MARK_AGAIN: u8 = 70;
    pub const QUIET_LAST: u8 = 74;
}

fn tid(cpu: &Cpu) -> u8 {
    cpu.me() as u8 + 1
}

fn set_flags(cpu: &mut Cpu, flags: u8) {
    cpu.set(FLAGS, cpu.get(FLAGS) | flags);
}

fn has_flag(cpu: &Cpu, flag: u8) -> bool {
    cpu.get(FLAGS) & flag != 0
}

fn clear_flags(cpu: &mut Cpu, flags: u8) {
    cpu.set(FLAGS, cpu.get(FLAGS) & !flags);
}

/// on_sigsys(), on_fault(), on_signal()
fn handler(cpu: &mut Cpu, signal: u8) {
    let at = cpu.pc();
    match signal {
        SYS => cpu.go(pc::CALL),
        // One that comes in stop_park() has a stop_park() of its own. The other would look again, too.
        MARK if (pc::PARK..=pc::PARK_END).contains(&at) => cpu.go(pc::PARK),
        MARK if cpu.load(INSIDE + cpu.me()) == 0 => call_park(cpu, at),
        MARK => set_flags(cpu, STOP | SIGPENDING),
        KILL if at != pc::PROGRAM => set_flags(cpu, SIGPENDING),
        // A fault's instruction is tried again, and goes well this time.
        _ => {}
    }
}

/// What the thread's block points to: its fdmap.
fn look_at_block(cpu: &mut Cpu, next: u8) {
    let bare = cpu.load(GONE) != 0;
    cpu.go(if bare { pc::BARE } else { next });
}

/// The program, and how it comes to image_call().
fn program(cpu: &mut Cpu, role: Role, plant: Plant) {
    let me = cpu.me();
    let no_look = matches!(plant, Plant::NoLook | Plant::SysMark | Plant::NewBlind);
    let look_first = plant == Plant::LookFirst;
    let either = |looks, sets| if look_first { looks } else { sets };
    let straight = either(pc::STRAIGHT_LOOK, pc::STRAIGHT_INSIDE);
    let go_inside = either(pc::GO_LOOK, pc::GO_INSIDE);
    // Where it goes once it is inside, and once it has looked.
    let look = |at| if look_first || no_look { pc::ENTER } else { at };
    let looked = |at| either(at, pc::ENTER);
    match cpu.pc() {
        pc::START => cpu.go(match role {
            Role::New => pc::NEW_TID,
            Role::Waiter => pc::CALL,
            _ => pc::PROGRAM,
        }),
        // gate_child_start()
        pc::NEW_TID => {
            cpu.store(TID, tid(cpu));
            cpu.go(pc::NEW_FENCE);
        }
        pc::NEW_FENCE => {
            cpu.fence();
            cpu.go(pc::NEW_LOOK);
        }
        pc::NEW_LOOK if plant == Plant::NewBlind => cpu.go(pc::GO_INSIDE),
        pc::NEW_LOOK => call_park(cpu, pc::GO_INSIDE),
        pc::NEW_NUMBERED => call_park(cpu, pc::PROGRAM),
        // It makes another call, or none any more.
        pc::PROGRAM => match cpu.choose(2) {
            0 => cpu.done(),
            _ => match role {
                Role::Caller | Role::New => cpu.go(pc::STRAIGHT),
                Role::Trapper => cpu.trap(SYS),
                _ => cpu.go(pc::CALL),
            },
        },
        // gate_entry
        pc::STRAIGHT => look_at_block(cpu, straight),
        pc::STRAIGHT_INSIDE => {
            cpu.store(INSIDE + me, 1);
            cpu.go(look(pc::STRAIGHT_LOOK));
        }
        pc::STRAIGHT_LOOK => {
            let stopping = cpu.load(STOPPER) != 0;
            cpu.go(match stopping {
                true => pc::STOPPING,
                false => looked(pc::STRAIGHT_INSIDE),
            });
        }
        pc::STOPPING => {
            cpu.store(INSIDE + me, 0);
            cpu.go(pc::CALL);
        }
        // gate_syscall(): a call has a handler, which looks whose a descriptor is
        pc::CALL => look_at_block(
            cpu,
            match role {
                Role::Copier => pc::COPY,
                _ => go_inside,
            },
        ),
        pc::COPY => {
            if cpu.choose(2) == 1 {
                cpu.trap(FAULT);
            }
            cpu.go(go_inside);
        }
        // go_inside(), stop_entering()
        pc::GO_INSIDE => {
            cpu.store(INSIDE + me, 1);
            cpu.go(look(pc::GO_LOOK));
        }
        pc::GO_LOOK | pc::ENTERING => {
            let at = cpu.pc();
            let ours = match at {
                pc::GO_LOOK => cpu.load(STOPPER) != 0,
                _ => cpu.load(PROC) == PROCESS,
            };
            cpu.go(match ours {
                true if at == pc::GO_LOOK => pc::ENTERING,
                true => pc::ENTERING_NOT,
                false => looked(pc::GO_INSIDE),
            });
        }
        pc::ENTERING_NOT => {
            cpu.store(INSIDE + me, 0);
            call_park(cpu, go_inside);
        }
        // on_fault() in the gate, where there is nothing any more: stop_ending()
        pc::BARE => {
            let s = cpu.load(STOPPER);
            let ending = s != 0 && plant != Plant::BlindFault;
            cpu.require(ending, "a fault in the gate");
            cpu.go(pc::BARE_PROC);
        }
        _ => {
            let ours = cpu.load(PROC) == PROCESS;
            cpu.require(ours, "a fault in the gate");
            call_park(cpu, pc::CALL);
        }
    }
}

/// In kernel code, and the way out.
fn image(cpu: &mut Cpu, role: Role) {
    let me = cpu.me();
    match cpu.pc() {
        pc::ENTER => {
            cpu.ghost(KERNEL, cpu.load(KERNEL) | 1 << me);
            cpu.go(if role == Role::Waiter {
                pc::IMAGE
            } else {
                pc::LEAVE
            });
        }
        pc::IMAGE => {
            if cpu.choose(2) == 1 {
                cpu.trap(FAULT);
            }
            cpu.go(pc::IMAGE_LOOK);
        }
        pc::IMAGE_LOOK => {
            let cut = has_flag(cpu, SIGPENDING);
            cpu.go(if cut { pc::LEAVE } else { pc::IMAGE_WAIT });
        }
        pc::IMAGE_WAIT => {
            // The handler has changed the word that is waited for.
            if !has_flag(cpu, SIGPENDING) {
                cpu.futex_wait(NEVER, 0);
            }
            cpu.go(pc::IMAGE_LOOK);
        }
        pc::LEAVE => {
            cpu.ghost(KERNEL, cpu.load(KERNEL) & !(1 << me));
            cpu.store(INSIDE + me, 0);
            cpu.go(pc::LEFT);
        }
        pc::LEFT => match has_flag(cpu, STOP) {
            true => call_park(cpu, pc::EXIT_WORK),
            false => cpu.go(pc::EXIT_WORK),
        },
        // gate_exit_work(): a call that was cut short for nothing is made again
        _ => {
            clear_flags(cpu, SIGPENDING);
            cpu.go(match role {
                Role::Waiter => pc::CALL,
                Role::New => pc::NEW_NUMBERED,
                _ => pc::PROGRAM,
            });
        }
    }
}

fn call_park(cpu: &mut Cpu, back: u8) {
    cpu.set(BACK, back);
    cpu.go(pc::PARK);
}

/// stop_park()
fn park(cpu: &mut Cpu, process: u8) {
    let me = cpu.me();
    match cpu.pc() {
        pc::PARK => {
            clear_flags(cpu, STOP);
            cpu.go(pc::PARK_LOOK);
        }
        pc::PARK_LOOK => {
            cpu.set(S, cpu.load(STOPPER));
            let other = cpu.get(S) != 0 && cpu.get(S) != tid(cpu);
            cpu.go(if other { pc::PARK_PROC } else { pc::PARK_END });
        }
        pc::PARK_PROC => {
            let ours = cpu.load(PROC) == process;
            cpu.go(if ours { pc::PARK_SAY } else { pc::PARK_END });
        }
        pc::PARK_SAY => {
            cpu.store(PARKED + me, 1);
            cpu.go(pc::PARK_WAIT);
        }
        pc::PARK_WAIT => {
            cpu.futex_wait(STOPPER, cpu.get(S));
            cpu.go(pc::PARK_LOOK);
        }
        _ => {
            cpu.store(PARKED + me, 0);
            cpu.set(S, 0);
            cpu.go(cpu.get(BACK));
            cpu.set(BACK, 0);
        }
    }
}

/// send() in stop.c
fn mark(cpu: &mut Cpu, thread: usize, plant: Plant) {
    let kind = match plant {
        Plant::SysMark => SYS | MARK,
        _ => FAULT | KILL | MARK,
    };
    cpu.send(thread, MARK, kind);
}

/// stop_others(), what it is done for, and stop_undo().
fn stopper(cpu: &mut Cpu, roles: &[Role], plant: Plant) {
    let me = cpu.me();
    let alone = others(roles, me).next().is_none();
    match cpu.pc() {
        // Only it could make another thread.
        pc::START if alone && plant != Plant::TakenAlone => cpu.go(pc::STOP_ENDS),
        pc::START | pc::STOP_TAKE => match cpu.swap_if(STOPPER, 0, tid(cpu)) {
            true => cpu.go(pc::STOP_PROC),
            false => call_park(cpu, pc::STOP_TAKE),
        },
        pc::STOP_PROC => {
            cpu.store(PROC, roles[me].process());
            if alone {
                return cpu.go(pc::STOP_NOBODY);
            }
            each(cpu, roles, pc::MARK_TID, 0, pc::STOP_ENDS);
        }
        pc::STOP_NOBODY => {
            cpu.store(STOPPER, 0);
            cpu.go(pc::STOP_ENDS);
        }
        pc::STOP_ENDS => {
            let fails = match roles[me] {
                Role::Execs | Role::Vforked => cpu.choose(2) == 1,
                Role::Retries => !has_flag(cpu, FAILED),
                _ => false,
            };
            if fails {
                return cpu.go(pc::STOP_UNDO);
            }
            // EXIT_GROUP; an execve has nothing of the kind.
            if !matches!(roles[me], Role::Execs | Role::Vforked) {
                cpu.ghost(GONE, 1);
            }
            cpu.go(pc::STOP_KILLS);
        }
        pc::STOP_UNDO => {
            let mine = cpu.load(STOPPER) == tid(cpu);
            match mine || plant == Plant::AnyUndo {
                true => cpu.go(pc::STOP_FORGET),
                false => cpu.done(),
            }
        }
        pc::STOP_FORGET => {
            cpu.store(PROC, 0);
            cpu.go(pc::STOP_FREE);
        }
        pc::STOP_FREE => {
            cpu.store(STOPPER, 0);
            cpu.go(pc::STOP_WAKE);
        }
        pc::STOP_WAKE => {
            if plant != Plant::SilentUndo {
                cpu.futex_wake(STOPPER, true);
            }
            match roles[me] {
                Role::Retries => {
                    set_flags(cpu, FAILED);
                    cpu.go(pc::STOP_TAKE);
                }
                _ => cpu.done(),
            }
        }
        pc::STOP_KILLS => {
            let ended: Vec<usize> = others(roles, me).collect();
            let nobody = ended.is_empty() || cpu.load(KERNEL) == 0;
            cpu.require(nobody, "killed in kernel code");
            for n in ended {
                cpu.kill(n);
            }
            cpu.done();
        }
        at => {
            let n = usize::from((at - pc::MARK_TID) % 4);
            stop_one(cpu, roles, plant, n);
        }
    }
}

/// The other threads of this process.
fn others(roles: &[Role], me: usize) -> impl Iterator<Item = usize> {
    let process = roles[me].process();
    (0..roles.len()).filter(move |&n| n != me && roles[n].stoppable() && process == PROCESS)
}

/// On to the first other thread from number `n` on, or past them.
fn each(cpu: &mut Cpu, roles: &[Role], first: u8, n: usize, after: u8) {
    let other = others(roles, cpu.me()).find(|&other| other >= n);
    cpu.go(other.map_or(after, |n| first + n as u8));
}

/// mark_all(), fence() and quiet(), for one of the others.
fn stop_one(cpu: &mut Cpu, roles: &[Role], plant: Plant, n: usize) {
    let after_marks = match plant {
        Plant::NoFence => pc::QUIET,
        _ => pc::FENCE,
    };
    match cpu.pc() - n as u8 {
        pc::MARK_TID => {
            let seen = roles[n] != Role::New || cpu.load(TID) != 0;
            match seen {
                true => cpu.go(pc::MARK_SEND + n as u8),
                false => each(cpu, roles, pc::MARK_TID, n + 1, after_marks),
            }
        }
        pc::MARK_SEND => {
            mark(cpu, n, plant);
            each(cpu, roles, pc::MARK_TID, n + 1, after_marks);
        }
        pc::FENCE => {
            cpu.interrupt(n);
            each(cpu, roles, pc::FENCE, n + 1, pc::QUIET);
        }
        pc::QUIET => {
            let parked = cpu.load(PARKED + n) != 0;
            match parked {
                true => look_on(cpu, roles, n),
                false => cpu.go(pc::QUIET_INSIDE + n as u8),
            }
        }
        pc::QUIET_INSIDE => {
            if cpu.load(INSIDE + n) == 0 {
                return look_on(cpu, roles, n);
            }
            set_flags(cpu, BUSY);
            // AGAIN_NS may be over.
            match cpu.choose(2) == 1 && plant != Plant::MarkedOnce {
                true => cpu.go(pc::MARK_AGAIN + n as u8),
                false => look_on(cpu, roles, n),
            }
        }
        _ => {
            mark(cpu, n, plant);
            look_on(cpu, roles, n);
        }
    }
}

/// quiet() goes on after thread `n`.
fn look_on(cpu: &mut Cpu, roles: &[Role], n: usize) {
    each(cpu, roles, pc::QUIET, n + 1, pc::QUIET_LAST);
    if cpu.pc() == pc::QUIET_LAST {
        let again = has_flag(cpu, BUSY);
        clear_flags(cpu, BUSY);
        match again {
            true => each(cpu, roles, pc::QUIET, 0, pc::STOP_ENDS),
            false => cpu.go(pc::STOP_ENDS),
        }
    }
}

fn thread(role: Role, roles: &[Role], plant: Plant) -> Program {
    let roles = roles.to_vec();
    assert!(
        roles.iter().skip(STOPPABLE).all(|role| !role.stoppable()),
        "words for {STOPPABLE}"
    );
    Box::new(move |cpu| {
        if let Some(signal) = cpu.signal() {
            return handler(cpu, signal);
        }
        match (cpu.pc(), role) {
            (pc::PARK..=pc::PARK_END, _) => park(cpu, role.process()),
            (pc::ENTER..=pc::EXIT_WORK, _) => image(cpu, role),
            (_, Role::Exits | Role::Execs | Role::Retries | Role::Vforked) => {
                stopper(cpu, &roles, plant)
            }
            (_, Role::Killer) => {
                cpu.send(1, KILL, FAULT | MARK | KILL);
                cpu.done();
            }
            _ => program(cpu, role, plant),
        }
    })
}

/// Nobody is parked who lives. Who waits inside may do so.
fn accepts(state: &State) -> bool {
    (0..STOPPABLE).all(|n| state.is_dead(n) || state.word(PARKED + n) == 0)
}

/// The threads of a model, in order.
pub fn model(roles: &[Role], plant: Plant) -> Model {
    let programs = roles.iter().map(|&role| thread(role, roles, plant));
    let mut words = [0; WORDS];
    if roles.contains(&Role::Vforked) {
        // The worst that can be left in stop_process.
        words[PROC] = PROCESS;
    }
    let waiters = (0..roles.len()).filter(|&n| roles[n] == Role::Waiter);
    Model {
        words,
        programs: programs.collect(),
        mortal: Vec::new(),
        timeouts: false,
        servants: waiters.collect(),
        accepts: Box::new(accepts),
    }
}
