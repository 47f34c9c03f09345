// SPDX-License-Identifier: GPL-2.0
//! Words for people, and text that was asked for. A complaint need not be taken: a disk may be full, a reader gone, and
//! neither is a reason to end a node. So it can't fail or panic, as `eprintln!` and `println!` do; those
//! are forbidden in this crate (main.rs). What a command was asked to print is its purpose: if that can't be
//! written, the command has failed.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::error::{Failure, Result};

/// Whether no thread of this process may wait for a reader of what it complains of.
static GOES_ON: AtomicBool = AtomicBool::new(false);
/// Complaints that threads are about to write, or wait to write.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// So many at most: each has a thread. Chosen: more than a sandbox's end has.
const WAITING_MAX: usize = 16;
/// How long [`finish`] waits for a reader of them, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_millis(2);

/// One line on standard error, said as ring3.
pub fn complain(words: impl Display) {
    // One write: lines of several threads and of the program do not mix.
    let line = format!("ring3: {words}\n");
    let write = move || {
        let _ = std::io::stderr().write_all(line.as_bytes());
    };
    match GOES_ON.load(SeqCst) {
        true => aside(write),
        false => write(),
    }
}

/// From here on a complaint keeps nothing waiting: standard error may be a full pipe or a stopped terminal, on which a write waits for ever, and
/// whoever made it so may be whom this process has to end.
pub fn go_on() {
    GOES_ON.store(true, SeqCst);
}

fn aside(write: impl FnOnce() + Send + 'static) {
    // Before the thread is there: finish() may come first.
    if WAITING.fetch_add(1, SeqCst) >= WAITING_MAX {
        WAITING.fetch_sub(1, SeqCst);
        return;
    }
    let body = move || {
        write();
        WAITING.fetch_sub(1, SeqCst);
    };
    // A host that has no more threads for this user has no complaint.
    if std::thread::Builder::new().spawn(body).is_err() {
        WAITING.fetch_sub(1, SeqCst);
    }
}

/// Before this process ends: gives threads the time to complain, if somebody reads.
pub fn finish() {
    let start = Instant::now();
    while WAITING.load(SeqCst) != 0 && start.elapsed() < PATIENCE {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A complaint is waited for from the moment it is made, also when its thread has not begun.
    #[test]
    fn a_complaint_is_counted_before_its_thread_is_there() {
        let (read, wait) = std::sync::mpsc::channel::<()>();
        aside(move || {
            let _ = wait.recv();
        });
        let waiting = WAITING.load(SeqCst);
        drop(read);
        assert_eq!(waiting, 1);
        finish();
        assert_eq!(WAITING.load(SeqCst), 0);
    }
}
