// SPDX-License-Identifier: GPL-2.0
//! Waiting with the call in other hands, and idle: host_wait(), host_poll(), R3_PARK_SLEEP.

use super::*;

/// host_wait()
pub fn wait(cpu: &mut Cpu, plant: Plant, mortals: bool) {
    let tid = tid(cpu);
    match cpu.pc() {
        pc::WAIT => {
            let w = cpu.load(WORD);
            cpu.set(O, w);
            if cpu.load(POISONED) != 0 {
                return cpu.done();
            }
            cpu.set(BITS, 0);
            cpu.set(W, 0);
            if w & BATON != 0 {
                cpu.go(match plant {
                    Plant::AnyBaton => pc::WAIT_BATON,
                    _ => pc::WAIT_HANDED,
                });
            } else if w & DONE != 0 {
                cpu.go(pc::WAIT_DONE);
            } else if w & SIGNAL != 0 {
                cpu.go(pc::WAIT_SIGNAL);
            } else if w & OFFERED != 0 && cpu.choose(2) == 1 {
                cpu.go(pc::WAIT_OFFER);
            } else {
                cpu.go(pc::WAIT_FLAG);
            }
        }
        pc::WAIT_SIGNAL => {
            let handed = lock::r3_owner_is(cpu.load(OWNER), tid) && plant != Plant::Unqueued;
            if !handed {
                cpu.set(BITS, BATON | DONE);
                cpu.go(pc::ACQUIRE);
            } else if mortals && cpu.choose(2) == 1 {
                cpu.go(pc::WAIT_OFFER);
            } else {
                cpu.go(pc::WAIT_FLAG);
            }
        }
        pc::WAIT_HANDED => {
            let mine = lock::r3_owner_is(cpu.load(OWNER), tid);
            cpu.go(if mine { pc::WAIT_BATON } else { pc::WAIT_STALE });
        }
        pc::WAIT_STALE => {
            let w = cpu.get(O);
            cpu.swap_if(WORD, w, lock::r3_word_stale(w));
            cpu.go(pc::WAIT);
        }
        pc::WAIT_BATON => {
            cpu.clear_bits(WORD, BATON | OFFERED);
            cpu.ghost(HANDING, 0);
            cpu.go(pc::DRIVE);
        }
        pc::WAIT_DONE => {
            cpu.clear_bits(WORD, DONE | OFFERED);
            cpu.done();
        }
        pc::WAIT_FLAG => {
            let w = cpu.get(O);
            if plant == Plant::SilentSleep {
                return cpu.go(pc::WAIT_SLEEP);
            }
            let set = cpu.swap_if(WORD, w, w | SLEEPING);
            cpu.set(O, w | SLEEPING);
            cpu.go(if set { pc::WAIT_SLEEP } else { pc::WAIT });
        }
        pc::WAIT_SLEEP => {
            cpu.futex_wait(WORD, cpu.get(O));
            cpu.go(pc::WAIT_AWAKE);
        }
        pc::WAIT_AWAKE => {
            cpu.clear_bits(WORD, SLEEPING);
            cpu.go(pc::WAIT);
        }
        // After a wake-up or a time-out: who offered may have died before it could say more, or will find it taken.
        pc::WAIT_OFFER => {
            let w = cpu.get(O);
            let mine = w & OFFERED != 0 && lock::r3_owner_is(cpu.load(OWNER), tid);
            cpu.go(if mine { pc::WAIT_ACCEPT } else { pc::WAIT_FLAG });
        }
        _ => {
            let w = cpu.get(O);
            let accepted = cpu.swap_if(WORD, w, lock::r3_word_accepted(w));
            if accepted {
                cpu.ghost(HANDING, 0);
            }
            cpu.go(if accepted { pc::DRIVE } else { pc::WAIT });
        }
    }
}

/// host_poll(), then R3_PARK_SLEEP
pub fn poll(cpu: &mut Cpu, plant: Plant) {
    let tid = tid(cpu);
    match cpu.pc() {
        pc::POLL => {
            cpu.ghost(INSIDE, 0);
            cpu.go(pc::POLL_MARK);
        }
        pc::POLL_MARK => {
            let o = cpu.set_bits(OWNER, POLLING);
            cpu.set(O, o);
            cpu.require(o & TID == tid, "the vCPU of a driver was taken");
            cpu.go(if lock::r3_owner_waits(o) {
                pc::POLL_WAKE
            } else {
                pc::POLL_LOOK
            });
        }
        pc::POLL_WAKE => {
            cpu.futex_wake(OWNER, false);
            cpu.go(pc::POLL_LOOK);
        }
        pc::POLL_LOOK => {
            let o = cpu.load(OWNER);
            if !lock::r3_owner_polls(o, tid) && plant != Plant::BlindPoller {
                return cpu.go(pc::WAIT);
            }
            if cpu.choose(2) == 1 {
                cpu.set(WHY, GAVE_UP);
                cpu.go(pc::UNPOLL);
            } else {
                cpu.go(pc::POLL_PENDING);
            }
        }
        pc::POLL_PENDING => {
            let event = cpu.load(PENDING) != 0;
            cpu.go(if event { pc::UNPOLL } else { pc::POLL_LOOK });
        }
        pc::UNPOLL => {
            let o = cpu.load(OWNER);
            cpu.set(O, o);
            if !lock::r3_owner_polls(o, tid) && plant != Plant::BlindPoller {
                cpu.set(WHY, 0);
                return cpu.go(pc::WAIT);
            }
            cpu.go(pc::UNPOLL_TAKE);
        }
        pc::UNPOLL_TAKE => {
            let o = cpu.get(O);
            let taken = cpu.swap_if(OWNER, o, lock::r3_owner_driving(o));
            cpu.go(if taken { pc::DRIVE } else { pc::UNPOLL });
        }
        pc::IDLE => {
            cpu.ghost(INSIDE, 0);
            cpu.go(pc::IDLE_RELEASE);
        }
        pc::IDLE_RELEASE => {
            let wake = lock::r3_owner_waits(cpu.swap(OWNER, 0)) && plant != Plant::NoWake;
            cpu.go(if wake { pc::IDLE_WAKE } else { pc::IDLE_LOOK });
        }
        pc::IDLE_WAKE => {
            cpu.futex_wake(OWNER, false);
            cpu.go(pc::IDLE_LOOK);
        }
        pc::IDLE_LOOK => {
            let look = cpu.load(PENDING) != 0 && plant != Plant::NoSecondLook;
            cpu.go(if look { pc::IDLE_TRY } else { pc::WAIT });
        }
        pc::IDLE_TRY => {
            let o = cpu.load(OWNER);
            cpu.set(O, o);
            let free = lock::r3_owner_is_free(o);
            cpu.go(if free { pc::IDLE_TAKE } else { pc::WAIT });
        }
        pc::IDLE_TAKE => {
            let o = cpu.get(O);
            let taken = cpu.swap_if(OWNER, o, lock::r3_owner_taken(o, tid, 0));
            cpu.go(if taken { pc::IDLE_AGAIN } else { pc::WAIT });
        }
        // drive_again()
        pc::IDLE_AGAIN => {
            let forget = cpu.load(WORD) & (DONE | OFFERED) != 0;
            cpu.go(if forget { pc::IDLE_FORGET } else { pc::DRIVE });
        }
        _ => {
            cpu.clear_bits(WORD, DONE | OFFERED);
            cpu.go(pc::DRIVE);
        }
    }
}
