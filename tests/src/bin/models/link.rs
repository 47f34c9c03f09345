// SPDX-License-Identifier: GPL-2.0
//! A link's sleeping and waking: kernel/drivers/net/ring3/link_ring.h and link.c, and what KEEP does
//! of it (irq.c). A ring of one record; a producer that has several, and a consumer that takes them. Each
//! sleeps on its doorbell when there is nothing to do for it.

use crate::check::{Cpu, Model, WORDS};

const HEAD: usize = 0;
const TAIL: usize = 1;
const ARMED: usize = 2;
const WAITING: usize = 3;
const CONSUMER_BELL: usize = 4;
const PRODUCER_BELL: usize = 5;

const RECORDS: u8 = 3;
const ROOM: u8 = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    Nothing,
    /// link_set_flag() without its barrier, at either end.
    ArmWithoutBarrier,
    WaitWithoutBarrier,
    /// link_take_flag() without its barrier, at either end.
    RingWithoutBarrier,
    RoomWithoutBarrier,
    /// The doorbell's value is read after the ring was looked at.
    LateBell,
    /// Who has looked for room goes to sleep and does not say that it waits.
    NotSaid,
}

/// Registers: position, the doorbell as last read, as last looked into.
const AT: usize = 0;
const BELL: usize = 1;
const RUNG: usize = 2;

fn producer(cpu: &mut Cpu, plant: Plant) {
    let at = cpu.get(AT);
    match cpu.pc() {
        // link_tx_room(), link_xmit()
        0 if at == RECORDS => cpu.done(),
        0 => {
            let room = at - cpu.load(TAIL) < ROOM;
            cpu.go(if room { 1 } else { 9 });
        }
        1 => {
            cpu.store(HEAD, at + 1);
            cpu.set(AT, at + 1);
            cpu.go(2);
        }
        // link_take_flag(armed), link_ring_doorbell()
        2 => {
            if plant != Plant::RingWithoutBarrier {
                cpu.fence();
            }
            cpu.go(3);
        }
        3 => {
            let armed = cpu.load(ARMED) != 0;
            cpu.go(if armed { 4 } else { 0 });
        }
        4 => {
            let taken = cpu.swap(ARMED, 0) != 0;
            cpu.go(if taken { 5 } else { 0 });
        }
        5 => {
            cpu.locked(CONSUMER_BELL, |bell| bell + 1);
            cpu.go(6);
        }
        6 => {
            cpu.futex_wake(CONSUMER_BELL, true);
            cpu.go(0);
        }
        // link_tx_wait() of an unarmed link: has_room() sees it, or ring3_poll_arm() says that it is waited for
        9 => {
            let room = at - cpu.load(TAIL) < ROOM;
            cpu.go(match room {
                true => 1,
                false if plant == Plant::NotSaid => 14,
                false => 10,
            });
        }
        // link_set_flag(waiting), then look again
        10 => {
            cpu.store(WAITING, 1);
            cpu.go(11);
        }
        11 => {
            if plant != Plant::WaitWithoutBarrier {
                cpu.fence();
            }
            cpu.go(12);
        }
        12 => {
            let room = at - cpu.load(TAIL) < ROOM;
            cpu.go(if room { 13 } else { 14 });
        }
        13 => {
            cpu.store(WAITING, 0);
            cpu.go(1);
        }
        // KEEP: rung since it looked last?
        14 => {
            let bell = cpu.load(PRODUCER_BELL);
            cpu.set(BELL, bell);
            if bell != cpu.get(RUNG) {
                cpu.set(RUNG, bell);
                cpu.go(0);
            } else {
                cpu.go(15);
            }
        }
        _ => {
            cpu.futex_wait(PRODUCER_BELL, cpu.get(BELL));
            cpu.go(14);
        }
    }
}

fn consumer(cpu: &mut Cpu, plant: Plant) {
    let at = cpu.get(AT);
    match cpu.pc() {
        // ring3_host_keep(): ring3_poll_doorbells(), ring3_poll_arm()
        0 => {
            if plant != Plant::LateBell {
                cpu.set(BELL, cpu.load(CONSUMER_BELL));
            }
            cpu.go(1);
        }
        1 => {
            cpu.store(ARMED, 1);
            cpu.go(2);
        }
        2 => {
            if plant != Plant::ArmWithoutBarrier {
                cpu.fence();
            }
            cpu.go(3);
        }
        3 => {
            let some = cpu.load(HEAD) != at;
            cpu.go(match some {
                true => 4,
                false if plant == Plant::LateBell => 9,
                false => 10,
            });
        }
        // link_rx_publish(), link_take_waiting(), link_ring_doorbell()
        4 => {
            cpu.store(TAIL, at + 1);
            cpu.set(AT, at + 1);
            cpu.go(5);
        }
        5 => {
            if plant != Plant::RoomWithoutBarrier {
                cpu.fence();
            }
            cpu.go(6);
        }
        6 => {
            let waiting = cpu.load(WAITING) != 0;
            cpu.go(if waiting { 7 } else { 11 });
        }
        7 => {
            let taken = cpu.swap(WAITING, 0) != 0;
            cpu.go(if taken { 8 } else { 11 });
        }
        8 => {
            cpu.locked(PRODUCER_BELL, |bell| bell + 1);
            cpu.go(12);
        }
        9 => {
            cpu.set(BELL, cpu.load(CONSUMER_BELL));
            cpu.go(10);
        }
        10 => {
            cpu.futex_wait(CONSUMER_BELL, cpu.get(BELL));
            cpu.go(0);
        }
        11 if at == RECORDS => cpu.done(),
        11 => cpu.go(3),
        _ => {
            cpu.futex_wake(PRODUCER_BELL, true);
            cpu.go(11);
        }
    }
}

pub fn model(plant: Plant) -> Model {
    Model {
        words: [0; WORDS],
        programs: vec![
            Box::new(move |cpu: &mut Cpu| producer(cpu, plant)),
            Box::new(move |cpu: &mut Cpu| consumer(cpu, plant)),
        ],
        mortal: Vec::new(),
        timeouts: false,
        servants: Vec::new(),
        accepts: Box::new(|state| state.word(HEAD) == RECORDS && state.word(TAIL) == RECORDS),
    }
}
