// SPDX-License-Identifier: GPL-2.0
//! What the warden spends on a sandbox that asks without end.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::{inside, set_mode, WARDEN};

/// The limit is a quarter of a CPU, and a second that was saved up.
const SHARE: f64 = 0.25;
const SAVED_S: f64 = 1.0;
const FLOOD: Duration = Duration::from_secs(10);
const THREADS: usize = 4;

/// Seconds of processor time of this process's wardens, by thread. Other tests have some.
fn spent() -> HashMap<String, f64> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let of = |task: fs::DirEntry| {
        // It may have ended.
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let time = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let ns: f64 = time.split(' ').next()?.parse().ok()?;
        let id = task.file_name().into_string().ok()?;
        (name.trim() == WARDEN).then_some((id, ns / 1e9))
    };
    tasks.filter_map(of).collect()
}

/// A warden that spends more than it may on threads that do nothing but ask takes a CPU that no limit of the sandbox's counts.
#[test]
fn a_flood_of_questions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    let (asked, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let most = scope.spawn(|| {
            let mut most: f64 = 0.0;
            while !over.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                most = spent().into_values().fold(most, f64::max);
            }
            most
        });
        let start = Instant::now();
        inside(folder.path(), || {
            let ask = || {
                while start.elapsed() < FLOOD {
                    set_mode(&path, 0o600).unwrap();
                    asked.fetch_add(1, Relaxed);
                }
            };
            std::thread::scope(|askers| {
                (0..THREADS).for_each(|_| drop(askers.spawn(ask)));
            });
        });
        let passed = start.elapsed().as_secs_f64();
        over.store(true, Relaxed);
        let (most, asked) = (most.join().unwrap(), asked.load(Relaxed));
        // One more question, and what this machine takes to look.
        let limit = SAVED_S + SHARE * passed + 0.2;
        assert!(
            most <= limit,
            "{most} s of {passed} s for {asked} questions"
        );
        // Some 4,000 in a second where there is a CPU to spare.
        assert!(asked > 1000, "{asked} questions");
        eprintln!("{most} s of {passed} s for {asked} questions");
    });
}
