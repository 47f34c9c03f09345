// SPDX-License-Identifier: GPL-2.0
//! KEEP sleeps until the next timer's deadline, and a driver may set a nearer one meanwhile: set_next_event()
//! in clock/clock.c, ring3_host_keep() in vcpu/keep.c. KEEP must not go on sleeping for one that is later.

use crate::check::{Cpu, Model, WORDS};

const DEADLINE: usize = 0;
const UNTIL: usize = 1;
const KICK: usize = 2;

/// Deadlines: what there is at first, and the nearer ones that are set one after the other.
const FIRST: u8 = 9;
const NEARER: [u8; 2] = [5, 3];
/// For which KEEP slept before: it is over.
const PAST: u8 = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    Nothing,
    /// set_next_event() without its barrier.
    NoBarrier,
    /// KEEP does not look at the deadline again once it has said for which it sleeps.
    NoSecondLook,
    /// KEEP reads the kick word after the deadline.
    LateKick,
}

/// Registers: how many were set; what KEEP read.
const COUNT: usize = 0;
const SEEN_KICK: usize = 1;
const SEEN: usize = 2;

fn driver(cpu: &mut Cpu, plant: Plant) {
    let count = usize::from(cpu.get(COUNT));
    match cpu.pc() {
        0 if count == NEARER.len() => cpu.done(),
        0 => {
            cpu.store(DEADLINE, NEARER[count]);
            cpu.go(1);
        }
        1 => {
            if plant != Plant::NoBarrier {
                cpu.fence();
            }
            cpu.go(2);
        }
        2 => {
            let kick = NEARER[count] < cpu.load(UNTIL);
            cpu.set(COUNT, count as u8 + 1);
            cpu.go(if kick { 3 } else { 0 });
        }
        3 => {
            cpu.locked(KICK, |kick| kick + 1);
            cpu.go(4);
        }
        _ => {
            cpu.futex_wake(KICK, true);
            cpu.go(0);
        }
    }
}

fn keep(cpu: &mut Cpu, plant: Plant) {
    let late = plant == Plant::LateKick;
    match cpu.pc() {
        0 => {
            if !late {
                cpu.set(SEEN_KICK, cpu.load(KICK));
            }
            cpu.go(1);
        }
        1 => {
            cpu.set(SEEN, cpu.load(DEADLINE));
            cpu.go(2);
        }
        2 => {
            cpu.swap(UNTIL, cpu.get(SEEN));
            cpu.go(match plant {
                Plant::NoSecondLook => 5,
                _ => 3,
            });
        }
        3 => {
            let nearer = cpu.load(DEADLINE) < cpu.get(SEEN);
            cpu.go(match nearer {
                true => 0,
                false if late => 4,
                false => 5,
            });
        }
        4 => {
            cpu.set(SEEN_KICK, cpu.load(KICK));
            cpu.go(5);
        }
        _ => {
            cpu.futex_wait(KICK, cpu.get(SEEN_KICK));
            cpu.go(0);
        }
    }
}

pub fn model(plant: Plant) -> Model {
    let mut words = [0; WORDS];
    words[DEADLINE] = FIRST;
    words[UNTIL] = PAST;
    Model {
        words,
        programs: vec![
            Box::new(move |cpu: &mut Cpu| driver(cpu, plant)),
            Box::new(move |cpu: &mut Cpu| keep(cpu, plant)),
        ],
        mortal: Vec::new(),
        timeouts: false,
        servants: vec![1],
        accepts: Box::new(|state| state.word(UNTIL) <= state.word(DEADLINE)),
    }
}
