// SPDX-License-Identifier: GPL-2.0
//! Running a command with a time limit; a hang is a result like any other.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Signal(i32),
    /// Killed by us, since it did not end in time.
    Timeout,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Exit(code) => write!(f, "exit {code}"),
            End::Signal(signal) => write!(f, "signal {signal}"),
            End::Timeout => write!(f, "timeout"),
        }
    }
}

/// What a command left behind.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub end: End,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Outcome {
    pub fn ok(&self) -> bool {
        self.end == End::Exit(0)
    }

    /// Everything a person needs to see when this was not what the test wanted.
    pub fn report(&self) -> String {
        format!(
            "{} after {:.1} s\n--- stdout\n{}--- stderr\n{}",
            self.end,
            self.took.as_secs_f64(),
            tail(&self.stdout, 40),
            tail(&self.stderr, 40)
        )
    }
}

/// The last `lines` lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    for line in &all[all.len().saturating_sub(lines)..] {
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// How many times as long everything may take: `RING3_TEST_PATIENCE`, where a test's limits are not meant
/// for the image (tests/debug: a kernel that checks itself).
pub fn patience(limit: Duration) -> Duration {
    static FACTOR: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let factor = FACTOR.get_or_init(|| match std::env::var("RING3_TEST_PATIENCE") {
        Ok(text) => text.parse().unwrap_or_else(|_| {
            eprintln!("tests: RING3_TEST_PATIENCE={text} is not a number");
            std::process::exit(2)
        }),
        Err(_) => 1,
    });
    limit * *factor
}

/// A child in a process group of its own, which dies with this value.
pub struct Group {
    child: Child,
    done: bool,
}

impl Group {
    pub fn spawn(command: &mut Command) -> Result<Group, String> {
        let child = command
            .process_group(0)
            .spawn()
            .map_err(|e| format!("cannot start {:?}: {e}", command.get_program()))?;
        Ok(Group { child, done: false })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            // It may be gone already, which is as good.
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }

    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Waits for the first process of the group; None if the limit passed.
    pub fn wait(&mut self, limit: Duration) -> Option<End> {
        let limit = patience(limit);
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.done = true;
                    return Some(match status.code() {
                        Some(code) => End::Exit(code),
                        None => End::Signal(status.signal().unwrap_or(0)),
                    });
                }
                Ok(None) if start.elapsed() < limit => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                _ => return None,
            }
        }
    }

    pub fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        let _ = self.child.wait();
        self.done = true;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.done {
            self.terminate();
            if self.wait(Duration::from_secs(2)).is_none() {
                self.kill();
            }
        }
        // Whatever the first process left in its group.
        self.signal(rustix::process::Signal::KILL);
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// Runs a command to its end, or kills its process group after `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Result<Outcome, String> {
    let start = Instant::now();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut group = Group::spawn(command)?;
    let stdout = group.child().stdout.take().map(collect);
    let stderr = group.child().stderr.take().map(collect);
    let end = match group.wait(limit) {
        Some(end) => end,
        None => {
            group.kill();
            End::Timeout
        }
    };
    // A stray grandchild may hold the pipes open: end the group first.
    drop(group);
    let text = |handle: Option<JoinHandle<Vec<u8>>>| {
        let bytes = handle.and_then(|h| h.join().ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(Outcome {
        end,
        stdout: text(stdout),
        stderr: text(stderr),
        took: start.elapsed(),
    })
}

/// Polls until `check` holds; false if it did not within `limit`. Of a turn no more counts than LATE: a runner that stood
/// still (a frozen cgroup, a suspended machine) has waited for nothing, since what it waits for mostly stood still as well.
pub fn until(limit: Duration, mut check: impl FnMut() -> bool) -> bool {
    const LATE: Duration = Duration::from_millis(500);
    let limit = patience(limit);
    let mut waited = Duration::ZERO;
    let mut before = Instant::now();
    loop {
        if check() {
            return true;
        }
        if waited > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
        let now = Instant::now();
        waited += (now - before).min(LATE);
        before = now;
    }
}
