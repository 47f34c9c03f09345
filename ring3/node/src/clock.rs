// SPDX-License-Identifier: GPL-2.0
//! The TSC against the host's clocks. Unsafe leaf.
//!
//! A node reads time from the TSC, so its rate has to be right: an error of 10 ppm is a second a
//! day. One sample brackets the host's clock between two reads of the TSC and keeps the tightest of
//! several tries (within about 20 ns). Two samples at least 3 ms apart give the rate to a few ppm.
//! The first is taken before the image is copied, the second after it, so that the start does not
//! wait for them.
#![allow(unsafe_code)]

use std::time::Duration;

use rustix::time::{clock_gettime, ClockId};

/// Smallest distance of the two samples.
const BASELINE: Duration = Duration::from_millis(3);
const TRIES: usize = 16;

/// The TSC and the host's clocks at the same moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub tsc: u64,
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
}

impl Sample {
    pub fn now() -> Sample {
        (0..TRIES)
            .map(|_| {
                let before = tsc();
                let monotonic_ns = nanos(ClockId::Monotonic);
                let after = tsc();
                (after.wrapping_sub(before), before, monotonic_ns)
            })
            .min()
            .map(|(width, before, monotonic_ns)| Sample {
                tsc: before.wrapping_add(width / 2),
                monotonic_ns,
                realtime_ns: realtime_at(monotonic_ns),
            })
            .unwrap_or(Sample {
                tsc: 0,
                monotonic_ns: 0,
                realtime_ns: 0,
            })
    }
}

/// The rate of the TSC, and a sample to count from; the rate is 0 if the TSC cannot be trusted.
pub(crate) fn calibrate(first: Sample) -> (u64, Sample) {
    if !tsc_is_invariant() {
        return (0, Sample::now());
    }
    let age = nanos(ClockId::Monotonic).saturating_sub(first.monotonic_ns);
    if let Some(rest) = BASELINE.checked_sub(Duration::from_nanos(age)) {
        std::thread::sleep(rest);
    }
    let second = Sample::now();
    let cycles = u128::from(second.tsc.wrapping_sub(first.tsc));
    let ns = u128::from(second.monotonic_ns - first.monotonic_ns).max(1);
    // cycles per ms, rounded
    let khz = (cycles * 1_000_000 + ns / 2) / ns;
    (khz as u64, second)
}

/// The CPU says that it is invariant, and the host, which watches it, has not given it up.
pub fn tsc_is_invariant() -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let cpuinfo = read("/proc/cpuinfo");
    let flags = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    let has = |flag| flags.split_whitespace().any(|f| f == flag);
    // The paravirtual clocks are TSCs too, with an offset.
    let watched = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"];
    watched.contains(&source.trim()) && has("constant_tsc") && has("nonstop_tsc")
}

fn realtime_at(monotonic_ns: u64) -> u64 {
    let offset = i128::from(nanos(ClockId::Realtime)) - i128::from(nanos(ClockId::Monotonic));
    (i128::from(monotonic_ns) + offset) as u64
}

pub(crate) fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn tsc() -> u64 {
    // SAFETY: both instructions are part of every x86-64 CPU; the fence keeps the read
    // from moving ahead of what comes before it.
    unsafe {
        std::arch::x86_64::_mm_lfence();
        std::arch::x86_64::_rdtsc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_same_twice() {
        if !tsc_is_invariant() {
            return;
        }
        let (a, _) = calibrate(Sample::now());
        let (b, sample) = calibrate(Sample::now());
        // 200 ppm: the host may have taken the CPU away in the middle of a sample.
        assert!(a.abs_diff(b) * 5000 < a, "{a} kHz, then {b} kHz");
        assert!(sample.realtime_ns > sample.monotonic_ns);
    }
}
