// SPDX-License-Identifier: GPL-2.0
//! What each step has to make of an owner word or a thread's word, on every word that there can be.
//!
//! The models try how steps interleave. A flag that a step drops may be one that they have twice, or have no thread
//! for; here none goes unseen.

use crate::lock::*;

/// A word's parts: its owner, whether it polls, whether others wait.
fn parts(o: u8) -> (u8, bool, bool) {
    let polls = o & RING3_OWNER_POLLING != 0;
    (o & RING3_OWNER_TID, polls, o & RING3_OWNER_WAITERS != 0)
}

/// `w` is `was` but for some bits, of which it has `set`.
fn changed(w: u8, was: u8, bits: u8, set: u8) -> bool {
    w & !bits == was & !bits && w & bits == set
}

/// The first step that is wrong, and for which word.
pub fn check() -> Result<(), String> {
    let wrong = |step: &str, word: u8| Err(format!("{step} of {word:#04x}"));
    let owners = || (0..=u8::MAX).filter(|o| *o == 0 || o & RING3_OWNER_TID != 0);
    for o in owners() {
        let (owner, polls, waits) = parts(o);
        if r3_owner_is_free(o) != (o == 0 || polls) {
            return wrong("r3_owner_is_free", o);
        }
        if r3_owner_waits(o) != waits {
            return wrong("r3_owner_waits", o);
        }
        if parts(r3_owner_driving(o)) != (owner, false, waits) {
            return wrong("r3_owner_driving", o);
        }
        for tid in 1..=RING3_OWNER_TID {
            if r3_owner_is(o, tid) != (owner == tid && !polls) {
                return wrong("r3_owner_is", o);
            }
            if r3_owner_polls(o, tid) != (owner == tid && polls) {
                return wrong("r3_owner_polls", o);
            }
            for waiters in [0, RING3_OWNER_WAITERS] {
                let taken = parts(r3_owner_taken(o, tid, waiters));
                if taken != (tid, false, waits || waiters != 0) {
                    return wrong("r3_owner_taken", o);
                }
            }
        }
        for was in owners() {
            let (owner_was, polled, _) = parts(was);
            if r3_owner_same(o, was) != (owner == owner_was && polls == polled) {
                return wrong("r3_owner_same", o);
            }
        }
    }
    let (baton, offered) = (RING3_WORD_BATON, RING3_WORD_OFFERED);
    for w in 0..=u8::MAX {
        if !changed(r3_word_handed(w), w, baton | offered, baton) {
            return wrong("r3_word_handed", w);
        }
        if !changed(r3_word_stale(w), w, baton | offered, offered) {
            return wrong("r3_word_stale", w);
        }
        if !changed(r3_word_accepted(w), w, offered | RING3_WORD_COME, 0) {
            return wrong("r3_word_accepted", w);
        }
    }
    Ok(())
}
