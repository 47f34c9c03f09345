// SPDX-License-Identifier: GPL-2.0
//! Models of what threads agree on by shared words alone, each tried in all interleavings
//! (check.rs): who may run kernel code, who sleeps and who wakes whom, who stops whom. What is written
//! here follows the C code step by step and under its names; who changes one changes the other. What a step makes of
//! an owner word or a thread's word is not written here: it is generated from include/ring3_lock.h (lock.rs).
//!
//! Each model has to hold, and has to fail once a fault is planted in it.

mod check;
mod deadline;
mod link;
mod lock;
mod steps;
mod stop;
mod vcpu;
mod watch;

use check::{Fault, Model, check};
use std::process::ExitCode;
use stop::Role::{
    Caller as Calls, Copier, Execs, Exits, Killer, New, Retries, Trapper, Vforked, Waiter,
};
use vcpu::Role::{
    Caller, Freezer, Hander, Outside, Ower, Owner, Poller, Raiser, Server, Signaller, Twice,
};

/// The one check that is no model.
const STEPS: &str = "steps: on every word";

/// Name, model, whether it holds.
type Case = (&'static str, Model, bool);

fn cases() -> Vec<Case> {
    use deadline::Plant as D;
    use link::Plant as L;
    use stop::Plant as S;
    use vcpu::Plant as V;
    use watch::Plant as W;
    let (stop, vcpu) = (stop::model, vcpu::model);
    vec![
        (
            "vcpu: calls and an interrupt",
            vcpu(&[Caller, Caller, Raiser], &[], V::Nothing),
            true,
        ),
        (
            "vcpu: a long copy without it",
            vcpu(&[Outside, Raiser, Caller], &[], V::Nothing),
            true,
        ),
        (
            "vcpu: a long copy, and a poller",
            vcpu(&[Poller, Outside, Caller], &[], V::Nothing),
            true,
        ),
        (
            "vcpu: a poller is taken over",
            vcpu(&[Poller, Raiser, Caller], &[], V::Nothing),
            true,
        ),
        (
            "vcpu: a signal for who waits",
            vcpu(&[Poller, Raiser, Caller, Signaller], &[], V::Nothing),
            true,
        ),
        (
            "vcpu: a signal while served",
            vcpu::signalled(&[Owner, Caller, Server], V::Nothing),
            true,
        ),
        (
            "vcpu: handed over",
            vcpu(&[Owner, Hander, Signaller], &[], V::Nothing),
            true,
        ),
        (
            "vcpu: handed over, others call",
            vcpu(&[Owner, Hander, Signaller, Caller], &[], V::Nothing),
            true,
        ),
        (
            "vcpu: a caller dies",
            vcpu(&[Caller, Caller, Caller], &[1], V::Nothing),
            true,
        ),
        (
            "vcpu: who hands over dies",
            vcpu(&[Owner, Hander, Caller], &[1], V::Nothing),
            true,
        ),
        (
            "vcpu: who is handed it dies",
            vcpu(&[Owner, Hander, Caller], &[0], V::Nothing),
            true,
        ),
        (
            "vcpu: who hands over is late",
            vcpu::slow(&[Twice, Hander, Hander], V::Nothing),
            true,
        ),
        (
            "vcpu: a wake-up is put off",
            vcpu(&[Poller, Ower, Caller], &[], V::Nothing),
            true,
        ),
        (
            "vcpu: a wake-up is put off, another kills",
            vcpu(&[Poller, Ower, Freezer], &[], V::Nothing),
            true,
        ),
        (
            "vcpu: two call, another kills",
            vcpu(&[Caller, Freezer, Caller], &[], V::Nothing),
            true,
        ),
        (
            "link: three records, room for one",
            link::model(L::Nothing),
            true,
        ),
        (
            "watch: packets, another calls, KEEP is away",
            watch::model(false, W::Nothing),
            true,
        ),
        (
            "watch: packets, KEEP is there too",
            watch::model(true, W::Nothing),
            true,
        ),
        (
            "deadline: nearer and nearer",
            deadline::model(D::Nothing),
            true,
        ),
        (
            "stop: exit_group, another calls",
            stop(&[Exits, Calls], S::Nothing),
            true,
        ),
        (
            "stop: exit_group, another is in a trap",
            stop(&[Exits, Trapper], S::Nothing),
            true,
        ),
        (
            "stop: exit_group, another waits",
            stop(&[Exits, Waiter], S::Nothing),
            true,
        ),
        (
            "stop: exit_group, another is made",
            stop(&[Exits, New], S::Nothing),
            true,
        ),
        (
            "stop: exit_group, copies fault",
            stop(&[Exits, Copier], S::Nothing),
            true,
        ),
        (
            "stop: exit_group, who calls gets a SIGBUS",
            stop(&[Exits, Calls, Killer], S::Nothing),
            true,
        ),
        (
            "stop: exit_group, who waits gets a SIGBUS",
            stop(&[Exits, Waiter, Killer], S::Nothing),
            true,
        ),
        (
            "stop: exit_group, one calls and one waits",
            stop(&[Exits, Calls, Waiter], S::Nothing),
            true,
        ),
        (
            "stop: exit_group by two at once",
            stop(&[Exits, Exits, Calls], S::Nothing),
            true,
        ),
        (
            "stop: execve, another calls",
            stop(&[Execs, Calls], S::Nothing),
            true,
        ),
        (
            "stop: execve, another waits",
            stop(&[Execs, Waiter], S::Nothing),
            true,
        ),
        (
            "stop: execve, another is made",
            stop(&[Execs, New], S::Nothing),
            true,
        ),
        (
            "stop: execve and exit_group at once",
            stop(&[Execs, Exits, Waiter], S::Nothing),
            true,
        ),
        (
            "stop: a failed execve, exit_group, another calls",
            stop(&[Retries, Calls], S::Nothing),
            true,
        ),
        (
            "stop: a failed execve, exit_group, another is in a trap",
            stop(&[Retries, Trapper], S::Nothing),
            true,
        ),
        (
            "stop: a failed execve, exit_group, another waits",
            stop(&[Retries, Waiter], S::Nothing),
            true,
        ),
        (
            "stop: a failed execve, exit_group, another is made",
            stop(&[Retries, New], S::Nothing),
            true,
        ),
        (
            "stop: exit_group, and a vfork child",
            stop(&[Exits, Calls, Vforked], S::Nothing),
            true,
        ),
        (
            "stop: execve, and a vfork child",
            stop(&[Execs, Waiter, Vforked], S::Nothing),
            true,
        ),
        (
            "planted: nobody is woken",
            vcpu(&[Caller, Caller, Raiser], &[], V::NoWake),
            false,
        ),
        (
            "planted: no second look",
            vcpu(&[Caller, Caller, Raiser], &[], V::NoSecondLook),
            false,
        ),
        (
            "planted: a blind poller",
            vcpu(&[Poller, Raiser, Caller], &[], V::BlindPoller),
            false,
        ),
        (
            "planted: a silent sleep",
            vcpu(&[Poller, Raiser, Caller], &[], V::SilentSleep),
            false,
        ),
        (
            "planted: a bare baton",
            vcpu(&[Owner, Hander, Caller], &[1], V::BareBaton),
            false,
        ),
        (
            "planted: asleep where nobody looks",
            vcpu(&[Owner, Hander, Signaller, Caller], &[], V::Unqueued),
            false,
        ),
        (
            "planted: a wake-up kept",
            vcpu::signalled(&[Owner, Caller, Server], V::Keeps),
            false,
        ),
        (
            "planted: the dead are forgiven",
            vcpu(&[Caller, Caller, Caller], &[1], V::Careless),
            false,
        ),
        (
            "planted: who waits does not say so",
            vcpu(&[Caller, Caller, Raiser], &[], V::Silent),
            false,
        ),
        (
            "planted: asleep before a store arrived",
            vcpu(&[Caller, Caller, Raiser], &[], V::NoDrain),
            false,
        ),
        (
            "planted: another's request taken back",
            vcpu(&[Caller, Caller, Raiser], &[], V::AnyTaker),
            false,
        ),
        (
            "planted: who waits is forgotten",
            vcpu(&[Caller, Caller, Caller], &[], V::Forgets),
            false,
        ),
        (
            "planted: one look at who lets go",
            vcpu(&[Caller, Caller, Raiser], &[], V::OneLook),
            false,
        ),
        (
            "planted: any baton",
            vcpu::slow(&[Twice, Hander, Hander], V::AnyBaton),
            false,
        ),
        (
            "planted: an old look at the dead",
            vcpu(&[Caller, Caller, Caller], &[1], V::Hasty),
            false,
        ),
        (
            "planted: a put-off wake-up forgotten",
            vcpu(&[Poller, Ower, Caller], &[], V::Unowed),
            false,
        ),
        (
            "planted: WAITERS stands for put-off wake-ups, another kills",
            vcpu(&[Poller, Ower, Freezer], &[], V::Shared),
            false,
        ),
        (
            "planted: who kills does not say that it waits",
            vcpu(&[Caller, Freezer, Caller], &[], V::SilentKiller),
            false,
        ),
        (
            "planted: who kills is asleep before a store arrived",
            vcpu(&[Caller, Freezer, Caller], &[], V::HastyKiller),
            false,
        ),
        (
            "planted: armed without a barrier",
            link::model(L::ArmWithoutBarrier),
            false,
        ),
        (
            "planted: waiting without a barrier",
            link::model(L::WaitWithoutBarrier),
            false,
        ),
        (
            "planted: rung without a barrier",
            link::model(L::RingWithoutBarrier),
            false,
        ),
        (
            "planted: room without a barrier",
            link::model(L::RoomWithoutBarrier),
            false,
        ),
        (
            "planted: a doorbell read late",
            link::model(L::LateBell),
            false,
        ),
        (
            "planted: who looked for room sleeps without a word",
            link::model(L::NotSaid),
            false,
        ),
        (
            "planted: a ring while another drives is dropped",
            watch::model(false, W::Dropped),
            false,
        ),
        (
            "planted: nobody arms what was rung while another drove",
            watch::model(false, W::Unarmed),
            false,
        ),
        (
            "planted: a doorbell read after the look at the ring",
            watch::model(false, W::LateBell),
            false,
        ),
        (
            "planted: nobody looks at what came while armed",
            watch::model(false, W::NoLook),
            false,
        ),
        (
            "planted: who watches goes to sleep for its own word alone",
            watch::model(false, W::WordOnly),
            false,
        ),
        (
            "planted: a deadline without a barrier",
            deadline::model(D::NoBarrier),
            false,
        ),
        (
            "planted: a deadline not looked at again",
            deadline::model(D::NoSecondLook),
            false,
        ),
        (
            "planted: a kick read late",
            deadline::model(D::LateKick),
            false,
        ),
        (
            "planted: no look at who stops the others",
            stop(&[Exits, Copier], S::NoLook),
            false,
        ),
        (
            "planted: stopped without membarrier",
            stop(&[Exits, Calls], S::NoFence),
            false,
        ),
        (
            "planted: a look, then inside",
            stop(&[Exits, Calls, Killer], S::LookFirst),
            false,
        ),
        (
            "planted: a mark that a call takes the place of",
            stop(&[Exits, Trapper], S::SysMark),
            false,
        ),
        (
            "planted: a new thread that does not look",
            stop(&[Exits, New], S::NewBlind),
            false,
        ),
        (
            "planted: an execve that failed in silence",
            stop(&[Execs, Calls], S::SilentUndo),
            false,
        ),
        (
            "planted: marked once",
            stop(&[Exits, Waiter], S::MarkedOnce),
            false,
        ),
        (
            "planted: a fault where nothing is any more",
            stop(&[Exits, Calls, Killer], S::BlindFault),
            false,
        ),
        (
            "planted: parked for a vfork child",
            stop(&[Vforked, Calls], S::TakenAlone),
            false,
        ),
        (
            "planted: a vfork child waits for the dead",
            stop(&[Exits, Copier, Vforked], S::TakenAlone),
            false,
        ),
        (
            "planted: undone by a vfork child",
            stop(&[Execs, Calls, Vforked], S::AnyUndo),
            false,
        ),
    ]
}

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    let mut failed = 0;
    if STEPS.contains(&word) {
        match steps::check() {
            Ok(()) => println!("ok models::{STEPS}"),
            Err(why) => {
                failed += 1;
                println!("FAIL models::{STEPS}: {why}");
            }
        }
    }
    for (name, model, holds) in cases() {
        if !name.contains(&word) {
            continue;
        }
        match (check(&model), holds) {
            (Ok(states), true) => println!("ok models::{name}, {states} states"),
            (Err(Fault { what, trace }), false) => {
                println!("ok models::{name}: {what}, after {} steps", trace.len());
            }
            (Ok(states), false) => {
                failed += 1;
                println!("FAIL models::{name}: not found in {states} states");
            }
            (Err(Fault { what, trace }), true) => {
                failed += 1;
                println!("FAIL models::{name}: {what}");
                for step in trace {
                    println!("    {step}");
                }
            }
        }
    }
    ExitCode::from(u8::from(failed > 0))
}
