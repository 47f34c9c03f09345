// SPDX-License-Identifier: GPL-2.0
//! Models of what threads agree on by shared words alone, each tried in all interleavings
//! (check.rs): who may run kernel code, who sleeps and who wakes whom. What is written here follows the
//! C code step by step and under its names; who changes one changes the other.
//!
//! Each model has to hold, and has to fail once a fault is planted in it.

mod check;
mod deadline;
mod link;
mod vcpu;

use check::{Fault, Model, check};
use std::process::ExitCode;
use vcpu::Role::{Caller, Hander, Owner, Passer, Poller, Raiser, Signaller, Twice};

/// Name, model, whether it holds.
type Case = (&'static str, Model, bool);

fn cases() -> Vec<Case> {
    use deadline::Plant as D;
    use link::Plant as L;
    use vcpu::Plant as V;
    let vcpu = vcpu::model;
    vec![
        (
            "vcpu: calls and an interrupt",
            vcpu(&[Caller, Caller, Raiser], &[], V::Nothing),
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
            vcpu::signalled(&[Owner, Raiser, Caller, Passer], V::Nothing),
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
            "link: three records, room for one",
            link::model(L::Nothing),
            true,
        ),
        (
            "deadline: nearer and nearer",
            deadline::model(D::Nothing),
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
            vcpu::signalled(&[Owner, Raiser, Caller, Passer], V::Keeps),
            false,
        ),
        (
            "planted: the dead are forgiven",
            vcpu(&[Caller, Caller, Caller], &[1], V::Careless),
            false,
        ),
        (
            "planted: no limit to a sleep",
            vcpu(&[Caller, Caller, Raiser], &[], V::Patient),
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
    ]
}

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    let mut failed = 0;
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
