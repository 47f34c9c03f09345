// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: how much processor time the warden spends on a sandbox's questions
//!
//! Its thread is outside of the sandbox, so no limit of the sandbox's counts it; a cgroup does that the whole `ring3` was started in. Threads
//! that do nothing but ask would have a CPU beyond their own limits. So the thread has an account of its own processor time: it fills at a
//! rate, up to [`SAVED`], and while it is overdrawn, the next question waits.

use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

/// Of one CPU, for long. Chosen: some 4,000 questions in a second, of 65 to 90 us each (`a_flood_of_questions`).
const SHARE: f64 = 0.25;
/// The time that the warden may save up: starts, and installations that set the modes of 10,000 files, do not wait. Chosen.
const SAVED: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Pace {
    account: Account,
    since: Instant,
    used: Duration,
}

impl Pace {
    /// For the calling thread.
    pub(crate) fn new() -> Pace {
        Pace {
            account: Account::default(),
            since: Instant::now(),
            used: own_time(),
        }
    }

    /// Waits until the account is not overdrawn any more.
    pub(crate) fn keep(&mut self) {
        let (now, used) = (Instant::now(), own_time());
        let spent = used.saturating_sub(self.used);
        let wait = self.account.spend(now - self.since, spent);
        (self.since, self.used) = (now, used);
        if let Some(wait) = wait {
            std::thread::sleep(wait);
        }
    }
}

/// Seconds of processor time.
#[derive(Debug)]
struct Account(f64);

impl Default for Account {
    fn default() -> Account {
        Account(SAVED.as_secs_f64())
    }
}

impl Account {
    /// So long to wait, if it is overdrawn.
    fn spend(&mut self, passed: Duration, spent: Duration) -> Option<Duration> {
        let full = self.0 + passed.as_secs_f64() * SHARE;
        self.0 = full.min(SAVED.as_secs_f64()) - spent.as_secs_f64();
        (self.0 < 0.0).then(|| Duration::from_secs_f64(-self.0 / SHARE))
    }
}

fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_share_and_what_was_saved() {
        const TURN: Duration = Duration::from_millis(1);
        let (mut account, mut passed, mut spent) =
            (Account::default(), Duration::ZERO, Duration::ZERO);
        // A thread that spends all of its time.
        for _ in 0..60_000 {
            spent += TURN;
            passed += TURN + account.spend(TURN, TURN).unwrap_or_default();
            // The thread has waited until its account was even.
            if account.0 < 0.0 {
                account.0 = 0.0;
            }
        }
        let most = SAVED.as_secs_f64() + SHARE * passed.as_secs_f64();
        assert!(
            spent.as_secs_f64() <= most + 0.01,
            "{spent:?} of {passed:?}"
        );
        assert!(
            spent.as_secs_f64() >= most - 0.01,
            "{spent:?} of {passed:?}"
        );
        // Idle times are saved up to a bound.
        account.spend(Duration::from_secs(3600), Duration::ZERO);
        assert_eq!(account.spend(Duration::ZERO, SAVED), None);
        let wait = account
            .spend(Duration::ZERO, Duration::from_millis(10))
            .unwrap();
        assert!(wait >= Duration::from_millis(39), "{wait:?}");
    }
}
