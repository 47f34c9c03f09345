// SPDX-License-Identifier: GPL-2.0
//! A model checker for a handful of threads that share a handful of words.
//!
//! All interleavings are tried, on the memory that x86 has: a store waits in its CPU's buffer
//! and is seen by others later, in order; a locked instruction, a fence and a system call wait until
//! the buffer is empty. A futex sleeps only while its word has the value that was named. A thread may
//! be killed between any two steps, where the model says so; what it stored still arrives.
//!
//! A sleep with a time limit ends by itself only if a store went over what somebody else had written
//! meanwhile, so that a limit does not hide other wake-ups that are lost.
//!
//! A signal waits until its thread goes back to user mode. That is at the end of a system call or trap, and
//! when an interrupt has come: until then the thread may make more steps. Of a kind one
//! waits, a second is dropped. Who waits in the host wakes up for it.
//!
//! A program is a function that makes one step: it looks at its program counter, touches the shared
//! words at most once, and says where it goes on. Registers are its own.
//!
//! Two things are wrong: what a step says is wrong, and a state from which no end that the model
//! accepts can be reached any more, be it that all sleep, that some spin for ever, or that something is lost.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// Shared words of a model, its threads at most, and registers of a thread.
pub const WORDS: usize = 12;
const THREADS: usize = 4;
const REGISTERS: usize = 7;
/// Beside the signals that wait: they come before the thread's next step.
const DUE: u8 = 0x80;
/// More states than that, and the model is too large to be of use.
const STATES_MAX: usize = 4_000_000;

/// A store on its way. `over`: what its thread saw there before, where that matters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Store {
    word: u8,
    value: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Sleep {
    /// A bit for each word it sleeps on.
    words: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Thread {
    pc: u8,
    registers: [u8; REGISTERS],
    /// Oldest first.
    buffer: [Option<Store>; 3],
    asleep: Option<Sleep>,
    /// Signals that wait for it, one bit each; the lowest comes first.
    signals: u8,
    dead: bool,
    done: bool,
}

impl Thread {
    fn sleeps_on(&self, word: usize) -> bool {
        self.asleep
            .is_some_and(|sleep| sleep.words & 1 << word != 0)
    }
}

/// Words and threads at one instant. Values are bytes: a model needs no more.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    words: [u8; WORDS],
    threads: [Thread; THREADS],
}

impl State {
    pub fn word(&self, word: usize) -> u8 {
        self.words[word]
    }

    pub fn is_dead(&self, thread: usize) -> bool {
        self.threads[thread].dead
    }
}

/// What a program's step may do.
pub struct Cpu<'a> {
    state: &'a mut State,
    me: usize,
    pick: usize,
    picks: usize,
    signal: Option<u8>,
    waits: bool,
    wrong: Option<&'static str>,
}

impl Cpu<'_> {
    pub fn me(&self) -> usize {
        self.me
    }

    pub fn pc(&self) -> u8 {
        self.state.threads[self.me].pc
    }

    pub fn go(&mut self, pc: u8) {
        self.state.threads[self.me].pc = pc;
    }

    pub fn done(&mut self) {
        self.state.threads[self.me].done = true;
    }

    pub fn get(&self, register: usize) -> u8 {
        self.state.threads[self.me].registers[register]
    }

    pub fn set(&mut self, register: usize, value: u8) {
        self.state.threads[self.me].registers[register] = value;
    }

    /// A load sees the thread's own stores that are on their way.
    pub fn load(&self, word: usize) -> u8 {
        let own = self.state.threads[self.me].buffer.iter().rev();
        own.flatten()
            .find(|store| usize::from(store.word) == word)
            .map_or(self.state.words[word], |store| store.value)
    }

    pub fn store(&mut self, word: usize, value: u8) {
        let buffer = &mut self.state.threads[self.me].buffer;
        let word = word as u8;
        match buffer.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(Store { word, value }),
            None => self.waits = true,
        }
    }

    /// Somebody's store there has not arrived yet. Who looks often enough sees it arrive.
    pub fn is_on_its_way(&self, word: usize) -> bool {
        let mut stores = self.state.threads.iter().flat_map(|t| t.buffer).flatten();
        stores.any(|store| usize::from(store.word) == word)
    }

    pub fn fence(&mut self) {
        self.waits |= self.state.threads[self.me].buffer[0].is_some();
    }

    /// A locked instruction: what was there before.
    pub fn locked(&mut self, word: usize, change: impl Fn(u8) -> u8) -> u8 {
        self.fence();
        let old = self.state.words[word];
        self.state.words[word] = change(old);
        old
    }

    pub fn swap(&mut self, word: usize, value: u8) -> u8 {
        self.locked(word, |_| value)
    }

    pub fn set_bits(&mut self, word: usize, bits: u8) -> u8 {
        self.locked(word, |old| old | bits)
    }

    pub fn clear_bits(&mut self, word: usize, bits: u8) -> u8 {
        self.locked(word, |old| old & !bits)
    }

    pub fn swap_if(&mut self, word: usize, old: u8, new: u8) -> bool {
        self.locked(word, |now| if now == old { new } else { now }) == old
    }

    pub fn futex_wait(&mut self, word: usize, value: u8) {
        self.sleep(&[(word, value)]);
    }

    /// futex_waitv(): until one of them has not the value that was named.
    pub fn futex_wait_any(&mut self, words: &[(usize, u8)]) {
        self.sleep(words);
    }

    fn sleep(&mut self, words: &[(usize, u8)]) {
        self.fence();
        let own = &mut self.state.threads[self.me].signals;
        if *own != 0 {
            *own |= DUE;
        } else if words
            .iter()
            .all(|&(word, value)| self.state.words[word] == value)
        {
            self.state.threads[self.me].asleep = Some(Sleep {
                words: words.iter().fold(0, |bits, (word, _)| bits | 1 << word),
            });
        }
    }

    /// Wakes one of those who sleep there, any of them, or all.
    pub fn futex_wake(&mut self, word: usize, all: bool) {
        self.fence();
        let sleepers: Vec<usize> = (0..THREADS)
            .filter(|&t| self.state.threads[t].sleeps_on(word) && !self.state.threads[t].dead)
            .collect();
        if all {
            for t in sleepers {
                self.state.threads[t].asleep = None;
            }
        } else if !sleepers.is_empty() {
            let t = sleepers[self.choose(sleepers.len())];
            self.state.threads[t].asleep = None;
        }
    }

    /// The signal whose handler starts with this step.
    pub fn signal(&self) -> Option<u8> {
        self.signal
    }

    /// A trap of the thread's own: its signal comes next, whenever the thread has a CPU for that.
    pub fn trap(&mut self, signal: u8) {
        self.state.threads[self.me].signals |= signal | DUE;
    }

    /// A signal for another, unless one of its kind waits already.
    pub fn send(&mut self, thread: usize, signal: u8, kind: u8) {
        self.fence();
        let to = &mut self.state.threads[thread];
        if to.signals & kind != 0 || to.done || to.dead {
            return;
        }
        to.signals |= signal;
        if to.asleep.take().is_some() {
            to.signals |= DUE;
        }
    }

    /// Another's CPU is interrupted, or it has none: what it stored is there, and its signals come next.
    pub fn interrupt(&mut self, thread: usize) {
        self.fence();
        let other = &mut self.state.threads[thread];
        self.waits |= other.buffer[0].is_some();
        if other.signals != 0 {
            other.signals |= DUE;
        }
    }

    /// Ends another, wherever it is.
    pub fn kill(&mut self, thread: usize) {
        let other = &mut self.state.threads[thread];
        other.dead = !other.done;
        other.asleep = None;
        other.signals = 0;
    }

    /// One of `n` ways to go on; all are tried. Once a step.
    pub fn choose(&mut self, n: usize) -> usize {
        self.picks = n;
        self.pick
    }

    pub fn is_dead(&self, thread: usize) -> bool {
        self.state.threads[thread].dead
    }

    /// A word that only the model has: who is where. No part of the memory under test.
    pub fn ghost(&mut self, word: usize, value: u8) {
        self.state.words[word] = value;
    }

    pub fn require(&mut self, holds: bool, else_wrong: &'static str) {
        if !holds {
            self.wrong = Some(else_wrong);
        }
    }
}

pub type Program = Box<dyn Fn(&mut Cpu)>;

pub struct Model {
    pub words: [u8; WORDS],
    pub programs: Vec<Program>,
    /// Which of them may be killed, one of them in one run.
    pub mortal: Vec<usize>,
    /// Sleeps have a time limit: who sleeps may wake up by itself.
    pub timeouts: bool,
    /// Who waits for the next thing to do, and may do so at the end.
    pub servants: Vec<usize>,
    /// Is this an end one can live with? Asked when all are done, or dead, or rest.
    pub accepts: Box<dyn Fn(&State) -> bool>,
}

/// What was found wrong, and the steps to it.
pub struct Fault {
    pub what: String,
    pub trace: Vec<String>,
}

/// Tries everything; the number of states there are.
pub fn check(model: &Model) -> Result<usize, Fault> {
    // A thread that the model has not has nothing to do.
    let threads = std::array::from_fn(|i| Thread {
        done: i >= model.programs.len(),
        ..Thread::default()
    });
    let first = State {
        words: model.words,
        threads,
    };
    let mut search = Search::default();
    search.add(first, None);
    let mut at = 0;
    while at < search.states.len() {
        if search.states.len() > STATES_MAX {
            return Err(search.fault("the model is too large", at));
        }
        let state = search.states[at];
        let next = successors(model, &state).map_err(|(what, by)| {
            let mut fault = search.fault(what, at);
            fault.trace.push(by.to_string());
            fault
        })?;
        let mut threads = state.threads.iter().enumerate();
        let rests = |i: usize, t: &Thread| t.asleep.is_some() && model.servants.contains(&i);
        let over = threads.all(|(i, t)| t.buffer[0].is_none() && (t.done || t.dead || rests(i, t)));
        if over && (model.accepts)(&state) {
            search.ends.push(at);
        }
        for (state, by) in next {
            search.add(state, Some((at, by)));
        }
        at += 1;
    }
    match search.stuck() {
        Some(at) => Err(search.fault("no good end can be reached from here", at)),
        None => Ok(search.states.len()),
    }
}

/// What leads from one state to the next.
#[derive(Clone, Copy)]
enum Event {
    Step { thread: usize, pc: u8 },
    Arrives { thread: usize, word: u8, value: u8 },
    Killed { thread: usize, pc: u8 },
    TimeOut { thread: usize, pc: u8 },
    Signal { thread: usize, pc: u8, signal: u8 },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Step { thread, pc } => write!(f, "{thread}: step {pc}"),
            Event::Arrives {
                thread,
                word,
                value,
            } => write!(f, "{thread}: word {word} = {value} arrives"),
            Event::Killed { thread, pc } => write!(f, "{thread}: killed at {pc}"),
            Event::TimeOut { thread, pc } => write!(f, "{thread}: time-out at {pc}"),
            Event::Signal { thread, pc, signal } => write!(f, "{thread}: signal {signal} at {pc}"),
        }
    }
}

/// The standard library's hash withstands people who choose the keys; nobody does here.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// States in the order in which they were found, so that traces are the shortest.
#[derive(Default)]
struct Search {
    states: Vec<State>,
    known: HashMap<State, u32, BuildHasherDefault<Mix>>,
    from: Vec<Option<(usize, Event)>>,
    /// All that lead somewhere: (from, to).
    edges: Vec<(u32, u32)>,
    ends: Vec<usize>,
}

impl Search {
    fn add(&mut self, state: State, from: Option<(usize, Event)>) {
        let new = self.states.len() as u32;
        let at = *self.known.entry(state).or_insert(new);
        if at == new {
            self.states.push(state);
            self.from.push(from);
        }
        if let Some((before, _)) = from {
            self.edges.push((before as u32, at));
        }
    }

    /// The first state from which no end can be reached.
    fn stuck(&self) -> Option<usize> {
        // Edges by where they lead: those to state n are before[first[n]..first[n + 1]].
        let mut first = vec![0u32; self.states.len() + 1];
        for (_, to) in &self.edges {
            first[*to as usize + 1] += 1;
        }
        for n in 1..first.len() {
            first[n] += first[n - 1];
        }
        let mut before = vec![0; self.edges.len()];
        let mut next = first.clone();
        for (from, to) in &self.edges {
            let slot = &mut next[*to as usize];
            before[*slot as usize] = *from as usize;
            *slot += 1;
        }
        let mut can_end = vec![false; self.states.len()];
        let mut todo = self.ends.clone();
        while let Some(at) = todo.pop() {
            if !std::mem::replace(&mut can_end[at], true) {
                todo.extend(&before[first[at] as usize..first[at + 1] as usize]);
            }
        }
        can_end.iter().position(|can| !can)
    }

    fn fault(&self, what: &str, mut at: usize) -> Fault {
        let mut trace = Vec::new();
        while let Some((before, by)) = self.from[at] {
            trace.push(format!("{by}  -> {:?}", self.states[at].words));
            at = before;
        }
        trace.reverse();
        Fault {
            what: what.to_string(),
            trace,
        }
    }
}

type Next = (State, Event);

/// The oldest of a thread's stores is seen by all.
fn arrive(state: &State, thread: usize, store: Store) -> Next {
    let Store { word, value } = store;
    let mut state = *state;
    state.words[usize::from(word)] = value;
    let buffer = &mut state.threads[thread].buffer;
    buffer.rotate_left(1);
    *buffer.last_mut().expect("it has slots") = None;
    let event = Event::Arrives {
        thread,
        word,
        value,
    };
    (state, event)
}

/// All that can happen next; an error is what a step itself says is wrong.
fn successors(model: &Model, state: &State) -> Result<Vec<Next>, (&'static str, Event)> {
    let mut next = Vec::new();
    let nobody_died = !state.threads.iter().any(|t| t.dead);
    for (me, thread) in state.threads.iter().enumerate() {
        if let Some(store) = thread.buffer[0] {
            next.push(arrive(state, me, store));
        }
        if thread.done || thread.dead {
            continue;
        }
        // It is seen to be dead when its CPU has finished what it had begun.
        if nobody_died && model.mortal.contains(&me) && thread.buffer[0].is_none() {
            let mut state = *state;
            state.threads[me].dead = true;
            next.push((
                state,
                Event::Killed {
                    thread: me,
                    pc: thread.pc,
                },
            ));
        }
        if thread.asleep.is_some() {
            if model.timeouts {
                let mut state = *state;
                state.threads[me].asleep = None;
                next.push((
                    state,
                    Event::TimeOut {
                        thread: me,
                        pc: thread.pc,
                    },
                ));
            }
            continue;
        }
        // The host has taken locks until then.
        if thread.signals != 0 && thread.buffer[0].is_none() {
            let first = thread.signals & thread.signals.wrapping_neg();
            let mut before = *state;
            let own = &mut before.threads[me].signals;
            *own &= !first;
            if *own == DUE {
                *own = 0;
            }
            step(model, &before, me, Some(first), &mut next)?;
        }
        if thread.signals & DUE == 0 {
            step(model, state, me, None, &mut next)?;
        }
    }
    Ok(next)
}

/// A thread's next step, or the first of a handler, in all the ways that there are.
fn step(
    model: &Model,
    state: &State,
    me: usize,
    signal: Option<u8>,
    next: &mut Vec<Next>,
) -> Result<(), (&'static str, Event)> {
    let pc = state.threads[me].pc;
    let by = match signal {
        Some(signal) => Event::Signal {
            thread: me,
            pc,
            signal,
        },
        None => Event::Step { thread: me, pc },
    };
    let mut pick = 0;
    loop {
        let mut after = *state;
        let mut cpu = Cpu {
            state: &mut after,
            me,
            pick,
            picks: 1,
            signal,
            waits: false,
            wrong: None,
        };
        model.programs[me](&mut cpu);
        let (waits, wrong, picks) = (cpu.waits, cpu.wrong, cpu.picks);
        if !waits {
            if let Some(what) = wrong {
                return Err((what, by));
            }
            next.push((after, by));
        }
        pick += 1;
        if pick >= picks {
            return Ok(());
        }
    }
}
