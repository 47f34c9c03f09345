// SPDX-License-Identifier: GPL-2.0
//! Keeping all out of the kernel while a SIGKILL is sent: vcpu_take(), vcpu_sleep() and vcpu_give() in gate/signal/kill.c.

use super::*;

pub fn freeze(cpu: &mut Cpu, plant: Plant) {
    let tid = tid(cpu);
    match cpu.pc() {
        pc::FREEZE => {
            let waiters = cpu.get(W);
            let o = cpu.locked(OWNER, |o| if o == 0 { tid | waiters } else { o });
            cpu.set(O, o);
            cpu.go(match o {
                0 => pc::FROZEN,
                // Who polls wakes nobody, so it is looked at again.
                o if o & POLLING != 0 => pc::FREEZE,
                o if lock::r3_owner_waits(o) => pc::FREEZE_ASK,
                _ => pc::FREEZE_SAY,
            });
        }
        pc::FREEZE_SAY => {
            let o = cpu.get(O);
            let said = cpu.swap_if(OWNER, o, o | WAITERS);
            cpu.set(O, o | WAITERS);
            cpu.go(if said { pc::FREEZE_ASK } else { pc::FREEZE });
        }
        pc::FREEZE_ASK => {
            cpu.set(W, WAITERS);
            if !matches!(plant, Plant::SilentKiller | Plant::Shared) {
                cpu.set_bits(PENDING, ASKED);
            }
            cpu.go(pc::FREEZE_DRAIN);
        }
        // KILL_DRAIN_TURNS are longer than a store needs to arrive.
        pc::FREEZE_DRAIN => {
            if cpu.load(OWNER) != cpu.get(O) {
                cpu.go(pc::FREEZE);
            } else if plant == Plant::HastyKiller || !cpu.is_on_its_way(OWNER) {
                cpu.go(pc::FREEZE_SLEEP);
            }
        }
        pc::FREEZE_SLEEP => {
            let o = cpu.get(O);
            cpu.futex_wait(OWNER, o);
            cpu.go(pc::FREEZE);
        }
        pc::FROZEN => {
            let inside = cpu.load(INSIDE);
            cpu.require(inside == 0, "a SIGKILL while another is in the kernel");
            cpu.go(pc::THAW);
        }
        pc::THAW => {
            let wake = lock::r3_owner_waits(cpu.swap(OWNER, 0));
            cpu.go(if wake { pc::THAW_WAKE } else { pc::THAW_KICK });
        }
        pc::THAW_WAKE => {
            cpu.futex_wake(OWNER, false);
            cpu.go(pc::THAW_KICK);
        }
        // KEEP drives.
        _ => {
            let kick = cpu.load(PENDING) != 0;
            cpu.set(WHY, LOOKS);
            cpu.go(if kick { pc::TRY } else { pc::LEFT });
        }
    }
}
