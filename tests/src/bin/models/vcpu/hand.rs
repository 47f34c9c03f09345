// SPDX-License-Identifier: GPL-2.0
//! Handing the vCPU over, and taking it from the dead: R3_PARK_HANDOVER, ring3_take_from_dead().

use super::*;

/// R3_PARK_HANDOVER, for a thread whose own call is over.
pub fn hand(cpu: &mut Cpu, plant: Plant) {
    let tid = tid(cpu);
    match cpu.pc() {
        pc::HAND => {
            cpu.ghost(INSIDE, 0);
            cpu.store(DRIVER, WAITER_TID);
            cpu.go(match plant {
                Plant::BareBaton => pc::HAND_LOOK,
                _ => pc::HAND_OFFER,
            });
        }
        pc::HAND_OFFER => {
            cpu.set_bits(WORD, OFFERED);
            cpu.ghost(HANDING, 1);
            cpu.go(pc::HAND_LOOK);
        }
        pc::HAND_LOOK => {
            let o = cpu.load(OWNER);
            cpu.require(o & TID == tid, "the vCPU of a driver was taken");
            cpu.set(O, o);
            cpu.go(pc::HAND_OWNER);
        }
        pc::HAND_OWNER => {
            let o = cpu.get(O);
            let handed = cpu.swap_if(OWNER, o, lock::r3_owner_taken(o, WAITER_TID, 0));
            cpu.go(if handed {
                pc::HAND_BATON
            } else {
                pc::HAND_LOOK
            });
        }
        pc::HAND_BATON if plant == Plant::BareBaton => {
            let w = cpu.set_bits(WORD, BATON);
            say(cpu, w);
        }
        pc::HAND_BATON => {
            let w = cpu.load(WORD);
            cpu.set(O, w);
            match w & OFFERED {
                0 => cpu.done(),
                _ => cpu.go(pc::HAND_BATON_SET),
            }
        }
        pc::HAND_BATON_SET => {
            let w = cpu.get(O);
            match cpu.swap_if(WORD, w, lock::r3_word_handed(w)) {
                true => say(cpu, w),
                false => cpu.go(pc::HAND_BATON),
            }
        }
        pc::HAND_WAKE => {
            cpu.futex_wake(WORD, false);
            cpu.done();
        }
        _ => {
            cpu.futex_wake(OWNER, true);
            cpu.done();
        }
    }
}

/// ring3_thread_notify(), where the word was `w` before.
fn say(cpu: &mut Cpu, w: u8) {
    match w {
        w if w & SLEEPING != 0 => cpu.go(pc::HAND_WAKE),
        w if w & QUEUED != 0 => cpu.go(pc::HAND_QUEUED),
        _ => cpu.done(),
    }
}

/// ring3_take_from_dead()
pub fn from_dead(cpu: &mut Cpu, plant: Plant) {
    match cpu.pc() {
        pc::DEAD => {
            let o = cpu.load(OWNER);
            cpu.set(O, o);
            let held = !lock::r3_owner_is_free(o);
            cpu.go(if held { pc::DEAD_ASK } else { pc::ACQUIRE });
        }
        pc::DEAD_ASK => {
            let dead = cpu.is_dead(usize::from(cpu.get(O) & TID) - 1);
            cpu.go(match dead {
                true if plant == Plant::Hasty => pc::DEAD_DRIVER,
                true => pc::DEAD_AGAIN,
                false => pc::ACQUIRE,
            });
        }
        pc::DEAD_AGAIN => {
            let same = lock::r3_owner_same(cpu.load(OWNER), cpu.get(O));
            cpu.go(if same { pc::DEAD_DRIVER } else { pc::ACQUIRE });
        }
        pc::DEAD_DRIVER => {
            let drives = cpu.load(DRIVER) == cpu.get(O) & TID;
            cpu.go(match drives && plant != Plant::Careless {
                true => pc::DEAD_BATON,
                false => pc::DEAD_FREE,
            });
        }
        pc::DEAD_BATON => {
            let fresh = cpu.get(O) & TID == WAITER_TID && cpu.load(WORD) & HANDED != 0;
            if fresh {
                return cpu.go(pc::DEAD_FREE);
            }
            let still = cpu.load(OWNER) & TID == cpu.get(O) & TID;
            cpu.require(still, "poisoned for one who has not got the vCPU");
            cpu.ghost(POISONED, 1);
            cpu.done();
        }
        pc::DEAD_FREE => {
            let o = cpu.get(O);
            let wake = cpu.swap_if(OWNER, o, 0) && lock::r3_owner_waits(o);
            cpu.go(if wake { pc::DEAD_WAKE } else { pc::ACQUIRE });
        }
        _ => {
            cpu.futex_wake(OWNER, false);
            cpu.go(pc::ACQUIRE);
        }
    }
}
