// SPDX-License-Identifier: GPL-2.0
//! One test on one side: how it is started, how it ends, and what it leaves behind.

use crate::exec::{End, Group};
use crate::paths;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// As kselftest has it (ksft_skip).
const SKIP: i32 = 4;
/// Many have a dozen namespaces with their conntrack tables.
const MEM: &str = "1G";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    Fail,
    Skip,
    Timeout,
    /// Its program did not compile here.
    Unbuilt,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Skip => "skip",
            Verdict::Timeout => "timeout",
            Verdict::Unbuilt => "unbuilt",
        })
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Side {
    pub result: Verdict,
    pub seconds: f64,
}

impl Side {
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// A line of build/kselftest/list: COLLECTION:TEST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    pub collection: String,
    pub name: String,
}

impl Test {
    pub fn parse(line: &str) -> Option<Test> {
        let (collection, name) = line.split_once(':')?;
        Some(Test {
            collection: collection.to_owned(),
            name: name.to_owned(),
        })
    }

    pub fn built(&self, at: &Path) -> bool {
        at.join("run")
            .join(&self.collection)
            .join(&self.name)
            .exists()
    }

    pub fn log(&self, at: &Path, side: &str) -> PathBuf {
        let folder = self.collection.replace('/', "-");
        at.join("logs")
            .join(format!("{folder}-{}.{side}", self.name))
    }

    /// In the folder of its collection, as kselftest's own runner has it. A machine with other work
    /// is slow: some tests are more tolerant then.
    fn script(&self, at: &Path) -> String {
        let run = at.join("run").join(&self.collection);
        let interpreter = match self.name.ends_with(".pkt") {
            true => "./ksft_runner.sh ",
            false => "",
        };
        format!(
            "export KSFT_MACHINE_SLOW=yes PATH=\"$PATH:{}\"; cd {} && exec {interpreter}./{}",
            at.join("bin").display(),
            run.display(),
            self.name
        )
    }

    pub fn on_host(&self, at: &Path) -> Command {
        let mut command = Command::new("unshare");
        command.args(["-nm", "sh", "-c"]).arg(format!(
            "mount -t tmpfs run /run && mount -t sysfs sys /sys && ip link set lo up && {}",
            self.script(at)
        ));
        command
    }

    /// A node has no mounts of its own: what a program on it mounts, it mounts on the host.
    pub fn on_node(&self, at: &Path) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["-m", "--"])
            .arg(paths::ring3())
            .args(["run", "--mem", MEM, "--", "sh", "-c"])
            .arg(self.script(at));
        command
    }
}

impl std::fmt::Display for Test {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}:{}", self.collection, self.name))
    }
}

/// A script whose every case was skipped may end with 0 all the same. It says so, and nothing else.
fn says_skipped(log: &str) -> bool {
    let good = |line: &str| {
        ["[ OK", "[OK", "PASS", "ok ", "Ok", "success", "passed"]
            .iter()
            .any(|word| line.contains(word))
    };
    let skip =
        |line: &str| line.starts_with("SKIP") || line.contains("[SKIP]") || line.contains("# SKIP");
    log.lines().any(skip) && !log.lines().any(|line| good(line) && !skip(line))
}

/// A script that ends with 0 whatever failed, since the machine is said to be slow.
fn hides_errors(log: &str) -> bool {
    log.contains("Ignoring errors due to slow environment")
}

pub fn run(command: &mut Command, log: &Path, limit: Duration) -> Result<Side, String> {
    let told = |e: std::io::Error| format!("{}: {e}", log.display());
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder).map_err(told)?;
    }
    let out = File::create(log).map_err(told)?;
    command
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(told)?)
        .stderr(out);
    let start = Instant::now();
    let mut group = Group::spawn(command)?;
    let end = group.wait(limit);
    if end.is_none() {
        group.kill();
    }
    drop(group);
    let seconds = start.elapsed().as_secs_f64();
    reap_strays();
    remove_leavings();
    let result = match end {
        None => Verdict::Timeout,
        Some(End::Exit(0)) => {
            let text = std::fs::read(log).map_err(told)?;
            let text = String::from_utf8_lossy(&text);
            if hides_errors(&text) {
                Verdict::Fail
            } else if says_skipped(&text) {
                Verdict::Skip
            } else {
                Verdict::Pass
            }
        }
        Some(End::Exit(SKIP)) => Verdict::Skip,
        Some(_) => Verdict::Fail,
    };
    Ok(Side { result, seconds })
}

/// Children of ours that we did not start.
fn strays() -> Vec<rustix::process::Pid> {
    let own = std::process::id();
    let text =
        std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?))
        .collect()
}

fn reap_strays() {
    use rustix::process::{Signal, WaitOptions, kill_process, waitpid};
    // A stray's children are ours next; ten rounds are more than any test has generations.
    for _ in 0..10 {
        let left = strays();
        if left.is_empty() {
            return;
        }
        for pid in left {
            // It may be gone already, which is as good.
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// The host has one tracefs, whoever mounts it: the tracers that a killed test made there stay. So do
/// the groups that ip-vrf(8) makes for networks with the tests' names, on either side.
fn remove_leavings() {
    let script = "mount -t tracefs tracefs /sys/kernel/tracing; \
                  rmdir /sys/kernel/tracing/instances/ksft-*; \
                  cd \"$(awk '$3 == \"cgroup2\" {print $2; exit}' /proc/mounts)\" && \
                  rmdir *-??????-ns/vrf/* *-??????-ns/vrf *-??????-ns";
    // Most tests leave none, and some hosts have no tracefs.
    let _ = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a test mounts is gone with it on either side, and so is its tracer.
    #[test]
    fn leaves_nothing() {
        use std::os::unix::fs::PermissionsExt;
        if !rustix::process::geteuid().is_root() {
            println!("mounting needs root");
            return;
        }
        let at = std::env::temp_dir().join(format!("kselftest-{}", std::process::id()));
        let test = Test::parse("net:mounts").unwrap();
        let folder = at.join("run/net");
        std::fs::create_dir_all(&folder).unwrap();
        let script = folder.join("mounts");
        std::fs::write(
            &script,
            "#!/bin/sh\n\
             mkdir here && mount -t tmpfs none here && touch here/file || exit 1\n\
             mkdir -p trace && mount -t tracefs none trace && mkdir trace/instances/ksft-unit-test\n\
             sleep 60\n",
        )
        .unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        for mut command in [test.on_host(&at), test.on_node(&at)] {
            let side = run(&mut command, &at.join("log"), Duration::from_secs(3)).unwrap();
            assert_eq!(side.result, Verdict::Timeout);
            assert!(!folder.join("here/file").exists(), "the mount is there");
            assert!(!Path::new("/sys/kernel/tracing/instances/ksft-unit-test").exists());
            std::fs::remove_dir(folder.join("here")).unwrap();
        }
        std::fs::remove_dir_all(&at).unwrap();
    }

    #[test]
    fn skipped() {
        assert!(says_skipped("Error: no device\nSKIP: iproute2 too old\n"));
        assert!(says_skipped("1..1\nok 1 # SKIP no TCP-AO\n"));
        assert!(says_skipped("TEST: a   [SKIP]\n"));
        assert!(!says_skipped("TEST: a   [ OK ]\nSKIP: b\n"));
        assert!(!says_skipped("ok 1 a\nok 2 # SKIP b\n"));
        assert!(!says_skipped("nothing\n"));
    }
}
