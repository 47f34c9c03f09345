// SPDX-License-Identifier: GPL-2.0
//! A host that is short of something: docs/faults.md has the outcomes.

use super::{Checked, Verdict, ensure, helper, trial};
use crate::exec::{self, Outcome, until};
use crate::node::{self, Node, SHORT};
use crate::paths;
use crate::scratch::{self, Scratch};
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("shortage_runtime_folder".into(), runtime_folder),
        trial("shortage_capture".into(), capture),
        trial("shortage_descriptors".into(), || {
            limited("-n", &["4", "8", "12", "16", "20", "28"])
        }),
        trial("shortage_soft_descriptors".into(), soft_descriptors),
        trial("shortage_address_space".into(), || {
            limited("-v", &["20000", "500000", "4000000"])
        }),
        trial("shortage_node_memory".into(), node_memory),
        trial("shortage_idle_memory".into(), idle_memory),
        trial("shortage_memory_group".into(), memory_group),
        trial("shortage_memory_back".into(), memory_back),
    ]
}

/// `ring3` has ended with an error of its own, which says what was short. Where it was short in
/// several processes at a time (the node's, the program's), each may say so, in a line.
fn refused(outcome: &Outcome, words: &[&str]) -> Result<(), String> {
    let said = outcome.stderr.trim_end();
    let good = outcome.end == exec::End::Exit(125)
        && said.lines().count() <= 3
        && said.lines().all(|line| {
            line.starts_with("ring3: ") && words.iter().any(|word| line.contains(word))
        });
    ensure(good, || outcome.report())
}

/// A shell script with a small tmpfs of its own on $1, which nobody else sees.
fn on_small_disk(folder: &Scratch, options: &str, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c"])
        .arg(format!(
            "mount -t tmpfs -o mode=700,{options} none \"$1\" && ring3=$2 && {script}"
        ))
        .arg("sh")
        .arg(folder.path())
        .arg(paths::ring3());
    command
}

/// What a bash script says that starts a program with `$1 exec $2 -- PROGRAM`.
fn script_says(node: &Node, script: &str, expected: &str) -> Result<(), String> {
    let mut command = Command::new("bash");
    command
        .args(["-c", script, "bash"])
        .arg(paths::ring3())
        .arg(&node.name);
    let outcome = exec::run(&mut command, SHORT)?;
    ensure(outcome.ok() && outcome.stdout == expected, || {
        outcome.report()
    })
}

/// A small soft limit below a larger hard one, as some services have it: the program runs, and the limit is its own. So are
/// the descriptors that it has inherited above its limit, or where the gate's would be.
fn soft_descriptors() -> Checked {
    soft_of_all()?;
    let node = Node::up(&[])?;
    let inherits = "exec 20< <(echo 20) 40< <(echo 40); ulimit -Sn 16 && exec \"$1\" exec \"$2\" -- bash -c \
        'ulimit -Sn; cat <&20; cat <&40; ip -br addr show lo | grep -c 127.0.0.1'";
    script_says(&node, inherits, "16\n20\n40\n1\n")?;
    let at_the_top = "exec 970< <(echo 970); ulimit -n 1024 && exec \"$1\" exec \"$2\" -- bash -c \
        'cat <&970; ulimit -Hn'";
    script_says(&node, at_the_top, "970\n1024\n")?;
    for few in [4, 5, 7, 8] {
        let script = format!("ulimit -Sn {few} && exec \"$1\" exec \"$2\" -- /bin/echo {few}");
        script_says(&node, &script, &format!("{few}\n"))?;
    }
    Ok(Verdict::Passed)
}

/// The limit is also that of the command, and of the keeper.
fn soft_of_all() -> Result<(), String> {
    let program = "ulimit -Sn; exec 3</dev/null 63</dev/null && echo all; ip -br addr show lo | grep -c 127.0.0.1";
    let mut command = Command::new("bash");
    command
        .args([
            "-c",
            "ulimit -Sn 64 && exec \"$1\" run -- bash -c \"$2\"",
            "bash",
        ])
        .arg(paths::ring3())
        .arg(program);
    let outcome = exec::run(&mut command, SHORT)?;
    ensure(outcome.ok() && outcome.stdout == "64\nall\n1\n", || {
        outcome.report()
    })
}

fn needs_root() -> Option<Verdict> {
    let root = rustix::process::geteuid().is_root();
    (!root).then(|| Verdict::Ignored("a disk of one's own needs root".into()))
}

/// No room for a link's file or for the node's folder is an error that names the file; a node
/// that needs neither comes up though the disk is full.
fn runtime_folder() -> Checked {
    if let Some(verdict) = needs_root() {
        return Ok(verdict);
    }
    let folder = Scratch::in_memory()?;
    let link = scratch::unique("r3");
    let run = |options: &str, script: &str| {
        let mut command = on_small_disk(&folder, options, script);
        exec::run(command.env("XDG_RUNTIME_DIR", folder.path()), SHORT)
    };
    let full = "dd if=/dev/zero of=$1/fill bs=4k 2>/dev/null";
    let script = format!("{full}; $ring3 run --port link:{link},addr=10.9.9.1/24 -- true");
    refused(&run("size=1m", &script)?, &["No space left on device"])?;
    refused(
        &run("nr_inodes=3", "$ring3 run -- true")?,
        &["No space left on device"],
    )?;
    let script = format!("{full}; $ring3 run -- cat /proc/net/dev");
    let outcome = run("size=1m", &script)?;
    ensure(outcome.ok() && outcome.stdout.contains("lo:"), || {
        outcome.report()
    })?;
    Ok(Verdict::Passed)
}

/// The disk of a capture is full: it ends with a line in the keeper's log, packets go on.
fn capture() -> Checked {
    if let Some(verdict) = needs_root() {
        return Ok(verdict);
    }
    let folder = Scratch::in_memory()?;
    let runtime = Scratch::in_memory()?;
    let (link, a, b) = (
        scratch::unique("r3"),
        scratch::unique("t"),
        scratch::unique("t"),
    );
    let script = format!(
        "$ring3 up {a} --port link:{link},addr=10.9.8.1/24,pcap=$1/full.pcap &&
         $ring3 up {b} --port link:{link},addr=10.9.8.2/24 &&
         $ring3 exec {b} -- ping -q -f -c 600 -s 1000 10.9.8.1 | grep ' 0% packet loss' &&
         $ring3 exec {b} -- ping -q -c 1 10.9.8.1 >/dev/null && wc -c <$1/full.pcap;
         status=$?; cat \"$XDG_RUNTIME_DIR\"/ring3/{a}.log
         $ring3 down {a} && $ring3 down {b} && exit $status"
    );
    let mut command = on_small_disk(&folder, "size=256k", &script);
    let outcome = exec::run(command.env("XDG_RUNTIME_DIR", runtime.path()), 2 * SHORT)?;
    let said = "cannot write the capture";
    let good = outcome.stdout.contains("\n262144\n") && outcome.stdout.contains(said);
    ensure(outcome.ok() && good, || outcome.report())?;
    Ok(Verdict::Passed)
}

/// Below a limit of the shell's, each a little above the last, a node comes up or says why not.
fn limited(limit: &str, values: &[&str]) -> Checked {
    for value in values {
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                "ulimit \"$1\" \"$2\" && exec \"$3\" run -- true",
                "sh",
            ])
            .args([limit, value])
            .arg(paths::ring3());
        let outcome = exec::run(&mut command, SHORT)?;
        refused(
            &outcome,
            &[
                "Too many open files",
                "the limit of open files is",
                "Cannot allocate memory",
            ],
        )?;
    }
    Ok(Verdict::Passed)
}

/// A program takes all memory that its node has: it gets ENOMEM or ENOBUFS, others are served as
/// soon as it gives some back, and nothing is lost for good.
fn node_memory() -> Checked {
    let node = Node::up(&[])?;
    let hog = helper("hog")?;
    let free = || -> Result<u64, String> {
        let text = node.output(&["cat", "/proc/net/sockstat"])?;
        let used = text
            .lines()
            .find_map(|line| line.strip_prefix("sockets: used "));
        used.and_then(|n| n.trim().parse().ok()).ok_or(text.clone())
    };
    let before = free()?;
    for _ in 0..2 {
        let outcome = exec::run(&mut node.command([&hog]), Duration::from_secs(60))?;
        ensure(outcome.ok() && outcome.stdout.ends_with("again\n"), || {
            outcome.report()
        })?;
        let gone = until(Duration::from_secs(5), || {
            free().is_ok_and(|now| now <= before)
        });
        ensure(gone, || {
            format!("sockets: {before} before, {:?} after", free())
        })?;
    }
    let log = exec::run(&mut node::ring3(["log", &node.name]), SHORT)?;
    ensure(
        !log.stdout.contains("BUG") && !log.stdout.contains("Oops"),
        || log.report(),
    )?;
    Ok(Verdict::Passed)
}

/// What the host has given a node, in bytes.
fn resident(node: &Node) -> Result<u64, String> {
    let stat = exec::run(&mut node::ring3(["stat", &node.name, "--json"]), SHORT)?;
    let stat: serde_json::Value = serde_json::from_str(&stat.stdout).map_err(|e| e.to_string())?;
    stat["mem"]["resident"]
        .as_u64()
        .ok_or_else(|| format!("ring3 stat: no mem.resident in {stat}"))
}

/// The memory that a node may take costs the host nothing before it does.
fn idle_memory() -> Checked {
    let resident = |mem: &str| resident(&Node::up_with(["--mem", mem])?);
    let (small, large) = (resident("128M")?, resident("1G")?);
    // Struct pages of the difference are 12 MiB, its page block flags and hash tables some KiB.
    ensure(large < small + (4 << 20), || {
        format!("resident: {small} bytes of 128 MiB, {large} of 1 GiB")
    })?;
    Ok(Verdict::Passed)
}

const MIB: u64 = 1 << 20;

/// A control group that may have so many bytes; its folder goes with it.
struct Group(PathBuf);

impl Group {
    /// None, and why: the host does not let us make one.
    fn new(bytes: u64) -> Result<Group, String> {
        let name = scratch::unique("ring3");
        let one = Group(["/sys/fs/cgroup/memory", &name].iter().collect());
        let two = Group(["/sys/fs/cgroup", &name].iter().collect());
        for (group, limit) in [(one, "memory.limit_in_bytes"), (two, "memory.max")] {
            if group.0.parent().is_some_and(Path::is_dir) && std::fs::create_dir(&group.0).is_ok() {
                let set = std::fs::write(group.0.join(limit), bytes.to_string());
                return set
                    .map(|()| group)
                    .map_err(|e| format!("{limit} of a control group: {e}"));
            }
        }
        Err("no control group can be made here".into())
    }

    fn number(&self, names: [&str; 2]) -> Result<u64, String> {
        let text = names
            .iter()
            .find_map(|name| std::fs::read_to_string(self.0.join(name)).ok());
        let text = text.ok_or_else(|| format!("none of {names:?} in {}", self.0.display()))?;
        text.trim().parse().map_err(|_| text)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = until(SHORT, || std::fs::remove_dir(&self.0).is_ok());
    }
}

/// A program in a small memory group takes all that its node has. What the node needs for that is
/// charged to the keeper: the program lives, and so does the node.
fn memory_group() -> Checked {
    let group = match Group::new(60 * MIB) {
        Ok(group) => group,
        Err(why) => return Ok(Verdict::Ignored(why)),
    };
    let node = Node::up_with(["--mem", "256M"])?;
    let hog = helper("hog")?;
    let before = resident(&node)?;
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "echo $$ >$1/cgroup.procs && exec $2 exec $3 -- $4 1000",
            "sh",
        ])
        .arg(&group.0)
        .arg(paths::ring3())
        .arg(&node.name)
        .arg(&hog);
    let outcome = exec::run(&mut command, Duration::from_secs(60))?;
    ensure(outcome.ok() && outcome.stdout.ends_with("again\n"), || {
        outcome.report()
    })?;
    let (most, grown) = (
        group.number(["memory.max_usage_in_bytes", "memory.peak"])?,
        resident(&node)? - before,
    );
    println!("the node grew by {grown} bytes, the program's group had {most} at most");
    ensure(grown > 100 * MIB && most < 40 * MIB, || {
        format!("the node grew by {grown} bytes, the program's group had {most} at most")
    })?;
    node.output(&["cat", "/proc/net/tcp"])?;
    Ok(Verdict::Passed)
}

/// What a node has needed at its peak the host has again within a minute.
fn memory_back() -> Checked {
    let node = Node::up_with(["--mem", "256M"])?;
    let hog = helper("hog")?;
    let before = resident(&node)?;
    let mut program = node::background(&mut node.command([hog.as_os_str(), "1000".as_ref()]))?;
    let grew = until(SHORT, || {
        resident(&node).is_ok_and(|now| now > before + 100 * MIB)
    });
    ensure(grew, || "the node does not grow".into())?;
    ensure(program.wait(SHORT) == Some(exec::End::Exit(0)), || {
        "the program fails".into()
    })?;
    let back = until(Duration::from_secs(60), || {
        resident(&node).is_ok_and(|now| now < before + 12 * MIB)
    });
    ensure(back, || {
        format!(
            "resident: {before} bytes before, {:?} after",
            resident(&node)
        )
    })?;
    // What is asked for again is there.
    let outcome = exec::run(&mut node.command([&hog]), Duration::from_secs(60))?;
    ensure(outcome.ok() && outcome.stdout.ends_with("again\n"), || {
        outcome.report()
    })?;
    Ok(Verdict::Passed)
}
