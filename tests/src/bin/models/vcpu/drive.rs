// SPDX-License-Identifier: GPL-2.0
//! Taking the vCPU, running kernel code, letting go: host_acquire(), entry.S, ring3_host_leave().

use super::*;

pub fn start(cpu: &mut Cpu, role: Role) {
    let tid = tid(cpu);
    match role {
        Role::Caller | Role::Poller | Role::Hander => {
            let got = cpu.swap_if(OWNER, 0, tid);
            cpu.go(if got { pc::DRIVE } else { pc::ACQUIRE });
        }
        Role::Server if cpu.load(OWNER) & TID == tid => cpu.go(pc::DRIVE),
        Role::Raiser | Role::Server | Role::Ower | Role::Outside => {
            cpu.set_bits(PENDING, WORK);
            cpu.set(WHY, LOOKS);
            cpu.go(pc::TRY);
        }
        Role::Owner | Role::Twice => cpu.go(pc::WAIT),
        Role::Freezer => cpu.go(pc::FREEZE),
        Role::Signaller => {
            if cpu.set_bits(WORD, SIGNAL) & SLEEPING != 0 {
                cpu.go(pc::SIGNALLED);
            } else {
                cpu.done();
            }
        }
    }
}

pub fn acquire_and_drive(cpu: &mut Cpu, role: Role, plant: Plant, mortals: bool) {
    let tid = tid(cpu);
    let bits = cpu.get(BITS);
    match cpu.pc() {
        pc::ACQUIRE => {
            let o = cpu.load(OWNER);
            cpu.set(O, o);
            let free = lock::r3_owner_is_free(o);
            cpu.go(if free {
                pc::ACQUIRE_TAKE
            } else {
                pc::ACQUIRE_WORD
            });
        }
        pc::ACQUIRE_TAKE => {
            let o = cpu.get(O);
            let got = cpu.swap_if(OWNER, o, lock::r3_owner_taken(o, tid, cpu.get(W)));
            cpu.go(match got {
                true if bits != 0 => pc::ACQUIRED,
                true => pc::DRIVE,
                false => pc::ACQUIRE,
            });
        }
        pc::ACQUIRE_WORD => {
            let stop = bits != 0 && cpu.load(WORD) & bits != 0;
            cpu.go(if stop {
                instead(cpu, plant)
            } else {
                pc::ACQUIRE_LOOK
            });
        }
        pc::ACQUIRE_LOOK => {
            let o = cpu.load(OWNER);
            cpu.set(O, o);
            if cpu.load(POISONED) != 0 {
                return cpu.done();
            }
            cpu.go(match o {
                o if lock::r3_owner_is_free(o) => pc::ACQUIRE,
                o if bits != 0 && lock::r3_owner_is(o, tid) && plant != Plant::Unqueued => {
                    instead(cpu, plant)
                }
                o if lock::r3_owner_waits(o) => pc::ACQUIRE_ASK,
                _ => pc::ACQUIRE_FLAG,
            });
        }
        pc::ACQUIRE_FLAG => {
            let o = cpu.get(O);
            let set = cpu.swap_if(OWNER, o, o | WAITERS);
            cpu.set(O, o | WAITERS);
            cpu.go(if set { pc::ACQUIRE_ASK } else { pc::ACQUIRE });
        }
        // announce()
        pc::ACQUIRE_ASK => {
            if plant != Plant::Silent {
                cpu.set_bits(PENDING, ASKED);
            }
            cpu.set(W, WAITERS);
            cpu.go(pc::ACQUIRE_DRAIN);
        }
        // DRAIN_TURNS are longer than a store needs to arrive.
        pc::ACQUIRE_DRAIN => {
            if cpu.load(OWNER) != cpu.get(O) {
                cpu.go(pc::ACQUIRE);
            } else if plant == Plant::NoDrain || !cpu.is_on_its_way(OWNER) {
                let queue = bits != 0 && plant != Plant::Unqueued;
                cpu.go(if queue {
                    pc::ACQUIRE_QUEUE
                } else {
                    pc::ACQUIRE_SLEEP
                });
            }
        }
        pc::ACQUIRE_QUEUE => {
            let stop = cpu.set_bits(WORD, QUEUED) & bits != 0;
            cpu.go(if stop {
                pc::ACQUIRE_UNQUEUE
            } else {
                pc::ACQUIRE_SLEEP
            });
        }
        pc::ACQUIRE_SLEEP => {
            let o = cpu.get(O);
            cpu.futex_wait(OWNER, o);
            cpu.go(match bits {
                0 if mortals => pc::DEAD,
                0 => pc::ACQUIRE,
                _ => pc::ACQUIRE_UNQUEUE,
            });
        }
        pc::ACQUIRE_UNQUEUE => {
            cpu.clear_bits(WORD, QUEUED);
            cpu.go(if mortals { pc::DEAD } else { pc::ACQUIRE });
        }
        pc::ACQUIRED => {
            cpu.clear_bits(WORD, SIGNAL | OFFERED);
            cpu.go(pc::ACQUIRED_LOOK);
        }
        pc::ACQUIRED_LOOK => {
            let done = cpu.load(WORD) & DONE != 0;
            cpu.go(if done { pc::GIVE_BACK } else { pc::DRIVE });
        }
        pc::GIVE_BACK => {
            cpu.clear_bits(WORD, DONE | OFFERED);
            cpu.go(pc::RELEASE);
        }
        pc::DRIVE => {
            let inside = cpu.load(INSIDE);
            cpu.require(inside == 0, "two threads in the kernel");
            // Nobody asks who drives unless somebody died.
            if mortals {
                cpu.store(DRIVER, tid);
            }
            cpu.ghost(INSIDE, tid);
            if cpu.get(COPIES) == 1 {
                cpu.set(COPIES, 2);
            }
            cpu.go(pc::SERVE);
        }
        pc::SERVE => {
            let pending = cpu.load(PENDING) != 0;
            let served = cpu.load(SERVED);
            let wanted = served.is_multiple_of(2);
            let gave_up = cpu.get(WHY) == GAVE_UP;
            cpu.set(WHY, 0);
            cpu.go(match role {
                _ if pending => pc::SERVE_TAKE,
                Role::Poller if wanted && gave_up => pc::IDLE,
                Role::Poller if wanted => pc::POLL,
                Role::Hander if wanted => pc::HAND,
                Role::Outside if cpu.get(COPIES) == 0 => pc::COPY,
                _ => pc::LEAVE,
            });
            if matches!(role, Role::Owner | Role::Twice) {
                cpu.ghost(SERVED, served | 1);
            }
        }
        // R3_PARK_COPY
        pc::COPY => {
            cpu.ghost(INSIDE, 0);
            cpu.set(COPIES, 1);
            cpu.go(pc::RELEASE);
        }
        pc::SERVE_TAKE => {
            let taken = cpu.swap(PENDING, 0);
            let end = taken & WORK != 0 && cpu.load(SERVED) == 0;
            if end {
                cpu.ghost(SERVED, 1);
            }
            let other = end && cpu.me() != WAITER;
            cpu.set(TAKEN, u8::from(other));
            cpu.go(match other {
                _ if taken & ASKED != 0 && plant != Plant::Forgets => pc::SERVE_WAITERS,
                true => pc::NOTIFY,
                false => pc::SERVE,
            });
        }
        // handle() in irq.c
        pc::SERVE_WAITERS => {
            cpu.set_bits(OWNER, WAITERS);
            cpu.ghost(FOR_WAKES, 0);
            let other = cpu.get(TAKEN) != 0;
            cpu.go(if other { pc::NOTIFY } else { pc::SERVE });
        }
        pc::NOTIFY => {
            let w = cpu.set_bits(WORD, DONE);
            cpu.go(match w {
                w if w & SLEEPING != 0 && role == Role::Ower => pc::OWE,
                w if w & SLEEPING != 0 => pc::NOTIFY_WAKE,
                w if w & QUEUED != 0 => pc::NOTIFY_QUEUED,
                _ => pc::SERVE,
            });
        }
        // wake_later()
        pc::OWE => {
            cpu.set(OWED, 1);
            match plant {
                Plant::Unowed => {}
                Plant::Shared if cpu.set_bits(OWNER, WAITERS) & WAITERS == 0 => {
                    cpu.ghost(FOR_WAKES, 1);
                }
                Plant::Shared => {}
                _ => {
                    cpu.set_bits(OWNER, OWES);
                }
            }
            cpu.go(pc::SERVE);
        }
        pc::NOTIFY_WAKE => {
            cpu.futex_wake(WORD, false);
            cpu.go(pc::SERVE);
        }
        pc::ACQUIRE_PASS => {
            cpu.futex_wake(OWNER, false);
            cpu.go(pc::WAIT);
        }
        _ => {
            cpu.futex_wake(OWNER, true);
            cpu.go(pc::SERVE);
        }
    }
}

/// The thread need not acquire any more. If it slept, it may have been woken in another's place.
fn instead(cpu: &Cpu, plant: Plant) -> u8 {
    match cpu.get(W) {
        0 => pc::WAIT,
        _ if plant == Plant::Keeps => pc::WAIT,
        _ => pc::ACQUIRE_PASS,
    }
}

/// The vCPU was let go by vcpu_release(), and its sleeper woken.
fn released(cpu: &Cpu) -> u8 {
    match cpu.get(OWED) {
        // come_back()
        0 if cpu.get(COPIES) == 1 => pc::ACQUIRE,
        0 => pc::LOOK_AGAIN,
        _ => pc::RELEASE_OWED,
    }
}

/// The way out: .Lleave in entry.S, then ring3_host_leave().
pub fn leave(cpu: &mut Cpu, role: Role, plant: Plant) {
    let tid = tid(cpu);
    match cpu.pc() {
        pc::LEAVE => {
            cpu.ghost(INSIDE, 0);
            let mine = cpu.load(OWNER) == tid;
            cpu.go(if mine { pc::LEAVE_STORE } else { pc::RELEASE });
        }
        pc::LEAVE_STORE => {
            cpu.store(OWNER, 0);
            cpu.go(pc::LOOK_AGAIN);
        }
        pc::RELEASE => {
            let for_wakes = cpu.load(FOR_WAKES) != 0;
            let wake = lock::r3_owner_waits(cpu.swap(OWNER, 0)) && plant != Plant::NoWake;
            cpu.ghost(FOR_WAKES, 0);
            cpu.go(match wake {
                true if for_wakes => pc::RELEASE_ASKED,
                true => pc::RELEASE_WAKE,
                false => released(cpu),
            });
        }
        pc::RELEASE_ASKED => {
            let asked = cpu.load(PENDING) & ASKED != 0;
            cpu.go(match asked {
                true => pc::RELEASE_WAKE,
                false => released(cpu),
            });
        }
        pc::RELEASE_WAKE => {
            cpu.futex_wake(OWNER, false);
            cpu.go(released(cpu));
        }
        // vcpu_send_wakes()
        pc::RELEASE_OWED => {
            cpu.set(OWED, 0);
            cpu.futex_wake(WORD, false);
            cpu.go(pc::LOOK_AGAIN);
        }
        pc::LOOK_AGAIN => {
            let pending = match plant {
                Plant::NoSecondLook => 0,
                _ => cpu.load(PENDING),
            };
            cpu.go(match pending {
                0 => pc::LEFT,
                p if p & ASKED != 0 => pc::GIVE_WAY,
                _ => pc::TRY,
            });
        }
        // wake_sleeper()
        pc::GIVE_WAY if plant == Plant::AnyTaker => {
            cpu.clear_bits(PENDING, ASKED);
            cpu.go(pc::GIVE_WAY_WAKE);
        }
        pc::GIVE_WAY => {
            let taken = cpu.swap_if(OWNER, 0, tid | WAITERS);
            cpu.go(if taken { pc::GIVE_WAY_CLEAR } else { pc::TRY });
        }
        pc::GIVE_WAY_CLEAR => {
            cpu.clear_bits(PENDING, ASKED);
            cpu.go(pc::GIVE_WAY_RELEASE);
        }
        pc::GIVE_WAY_RELEASE => {
            cpu.swap(OWNER, 0);
            cpu.go(pc::GIVE_WAY_WAKE);
        }
        pc::GIVE_WAY_WAKE => {
            cpu.futex_wake(OWNER, false);
            cpu.go(pc::LOOK_AGAIN);
        }
        // SPIN_DRIVE turns are longer than a store needs to arrive.
        pc::TRY => {
            let o = cpu.load(OWNER);
            let looks = cpu.get(WHY) == LOOKS && plant != Plant::OneLook;
            cpu.set(O, o);
            if lock::r3_owner_is_free(o) {
                cpu.go(pc::TRY_TAKE);
            } else if !(looks && cpu.load(PENDING) != 0 && cpu.is_on_its_way(OWNER)) {
                cpu.go(pc::LEFT);
            }
        }
        pc::TRY_TAKE => {
            let o = cpu.get(O);
            let taken = cpu.swap_if(OWNER, o, lock::r3_owner_taken(o, tid, 0));
            cpu.go(match taken {
                true => pc::DRIVE,
                false if cpu.get(WHY) == LOOKS => pc::TRY,
                false => pc::LEFT,
            });
        }
        // At home; and in the next call.
        _ => {
            let raised = cpu.load(PENDING) & WORK != 0 || cpu.load(SERVED) != 0;
            if role == Role::Twice && cpu.load(SERVED) == 1 {
                cpu.ghost(SERVED, 2);
                cpu.go(pc::WAIT);
            } else if role == Role::Server && !raised {
                cpu.go(pc::START);
            } else {
                cpu.done();
            }
        }
    }
}
