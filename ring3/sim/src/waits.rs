// SPDX-License-Identifier: GPL-2.0
//! Do the programs of a simulation wait for each other, and for nothing else?
//!
//! The node's kernel tells of each thread whether it waits, and whether a timer ends that
//! (kernel/arch/ring3/turn/waits.c). It cannot tell which of its other timers lead to a packet. So a wait of all is a
//! deadlock for sure when it has lasted longer than [`QUIET`].

use std::time::Duration;

/// Longer than TCP sends to a peer that is gone, until the program hears of it: tcp_retries2 (15) times TCP_RTO_MAX (120 s).
pub const QUIET: Duration = Duration::from_secs(2000);
/// The same where a connection has SO_KEEPALIVE: tcp_keepalive_time (7,200 s), and tcp_keepalive_probes (9) times
/// tcp_keepalive_intvl (75 s), and an eighth more: how late timers of low resolution are at most.
pub const KEPT: Duration = Duration::from_secs(9000);
/// In the node's /proc; ordinary nodes do not have it.
pub const FILE: &str = "/proc/ring3_waits";

/// A thread that waits until another thread or a packet ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    pub pid: i32,
    /// A timer ends its wait.
    pub timed: bool,
    /// Virtual time of its last turn, in nanoseconds since the node's start.
    pub since: u64,
    pub call: String,
}

/// PID TID STATE SINCE CALL. None: a timer, or a thread that does not wait.
fn waiter(line: &str) -> Option<Waiter> {
    let words: Vec<&str> = line.splitn(5, ' ').collect();
    let [pid, _, state, since, call] = words[..] else {
        return None;
    };
    Some(Waiter {
        pid: pid.parse().ok()?,
        timed: match state {
            "timed" => true,
            "waits" => false,
            _ => return None,
        },
        since: since.parse().ok()?,
        call: call.to_owned(),
    })
}

/// All threads of programs but those of `others`, if each of them waits, and no timer of theirs is armed.
pub fn all_wait(text: &str, others: &[i32]) -> Option<Vec<Waiter>> {
    let of_others = |line: &str| {
        let pid = line.split(' ').next().and_then(|word| word.parse().ok());
        pid.is_some_and(|pid| others.contains(&pid))
    };
    let waiters = text
        .lines()
        .filter(|line| !of_others(line))
        .map(|line| waiter(line).filter(|waiter| !waiter.timed))
        .collect::<Option<Vec<Waiter>>>()?;
    (!waiters.is_empty()).then_some(waiters)
}

/// The threads of `those` that wait, however.
pub fn of(text: &str, those: &[i32]) -> Vec<Waiter> {
    text.lines()
        .filter_map(waiter)
        .filter(|waiter| those.contains(&waiter.pid))
        .collect()
}

/// When the last of them had a turn.
pub fn since(waiters: &[Waiter]) -> u64 {
    waiters.iter().map(|waiter| waiter.since).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_wait() {
        let text = "900 900 runs 7 ppoll\n1001 1001 waits 5 futex\n1002 1003 waits 6 a wait for the host\n";
        let waiters = all_wait(text, &[900]).unwrap();
        assert_eq!(waiters.len(), 2);
        assert_eq!(since(&waiters), 6);
        assert_eq!(waiters[1].call, "a wait for the host");
        assert_eq!(all_wait(text, &[]), None);
        assert_eq!(all_wait(text, &[900, 1001, 1002]), None);
        let text = format!("{text}1004 1004 timed 8 ppoll\n");
        let those: Vec<bool> = of(&text, &[900, 1004]).iter().map(|w| w.timed).collect();
        assert_eq!(those, [true]);
    }

    #[test]
    fn a_timer_ends_it() {
        for line in ["1004 1004 timed 6 futex\n", "timer timerfd_tmrproc\n"] {
            let text = format!("1001 1001 waits 5 futex\n{line}");
            assert_eq!(all_wait(&text, &[]), None);
        }
    }
}
