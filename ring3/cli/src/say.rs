// SPDX-License-Identifier: GPL-2.0
//! Words for people, and text that was asked for. A complaint need not be taken: a disk may be full, a reader gone, and
//! neither is a reason to end a node. So it can't fail or panic, as `eprintln!` and `println!` do; those
//! are forbidden in this crate (main.rs). What a command was asked to print is its purpose: if that can't be
//! written, the command has failed.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::error::{Failure, Result};

/// One line on standard error, said as ring3.
pub fn complain(words: impl Display) {
    // One write: lines of several threads and of the program do not mix.
    let line = format!("ring3: {words}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Complaints that threads are about to write, or wait to write.
static ASIDE: AtomicUsize = AtomicUsize::new(0);
/// How long [`finish`] waits for a reader of them, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_millis(2);

/// The same once `act` is done: standard error may be a full pipe or a stopped terminal, on which a write waits for ever.
pub fn complain_after(act: impl FnOnce(), words: impl Display) {
    ASIDE.fetch_add(1, SeqCst);
    act();
    complain(words);
    ASIDE.fetch_sub(1, SeqCst);
}

/// The same for a thread that has to go on whether the complaint is read or not.
pub fn complain_aside(words: &'static str) {
    let thread = std::thread::Builder::new();
    // A host that has no more threads for this user has no complaint.
    let _ = thread.spawn(move || complain_after(|| {}, words));
}

/// Before this process ends: gives threads the time to complain, if somebody reads.
pub fn finish() {
    let start = Instant::now();
    while ASIDE.load(SeqCst) != 0 && start.elapsed() < PATIENCE {
        std::thread::sleep(TURN);
    }
}

/// Text on standard output. A reader that has gone has read what it wanted.
pub fn print(text: impl AsRef<[u8]>) -> Result<()> {
    print_on(text).map(|_| ())
}

/// The same; tells whether somebody still reads, for a command that would print without end.
pub fn print_on(text: impl AsRef<[u8]>) -> Result<bool> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => done
            .map(|()| true)
            .map_err(Failure::host("write to standard output")),
    }
}
