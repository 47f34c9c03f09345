// SPDX-License-Identifier: GPL-2.0
//! Starting a program on a simulated host. The caller is in the host's network namespace already.
//!
//! What the program sees of the machine is fixed: its environment, the host's name, /etc/hosts with the names of all
//! hosts and no other way to names, a /tmp and a home of its own.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Result as IoResult};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::mount::{mount, umount2, MntFlags, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::resource::{getrlimit, setrlimit, Resource, RLIM_INFINITY};
use nix::sys::stat::{umask, Mode};
use nix::unistd::{chdir, sethostname, setsid, Pid};

use crate::capture::LISTENING;
use crate::data::Data;
use crate::error::{Error, Result};
use crate::leaf;
use crate::plan::{HostPlan, ProcessPlan};
use crate::stage::{self, Setup};

/// The PATH of programs and of the simulator's own tools.
pub const SEARCH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// For libraries that choose code by the processor: what an x86-64-v2 has not. The gate hides the same from `cpuid`, but not on
/// every machine (gate/sim/sim_cpu.c).
const CPU: [(&str, &str); 2] = [
    (
        "GLIBC_TUNABLES",
        "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4,-AVX512F,-AVX512CD,-AVX512BW,-AVX512DQ,-AVX512VL,-BMI1,-BMI2,-LZCNT,-MOVBE,-ERMS,-FSRM,-RTM",
    ),
    // rdrand, AVX, FMA, F16C; nothing of leaf 7.
    ("OPENSSL_ia32cap", "~0x7000100000000000:0"),
];

/// Soft and hard limits, as systemd gives them to services; lower where the caller's are.
const LIMITS: [(Resource, u64, u64); 3] = [
    (Resource::RLIMIT_STACK, 8 << 20, RLIM_INFINITY),
    (Resource::RLIMIT_NOFILE, 1024, 524_288),
    (Resource::RLIMIT_CORE, 0, RLIM_INFINITY),
];

/// Files of a host over those of the machine: what, and over which path.
struct Over {
    source: PathBuf,
    target: PathBuf,
}

pub fn program(data: &Data, host: &HostPlan, process: &ProcessPlan, again: u32) -> Result<Pid> {
    let home = data.host(&host.name);
    let label = match again {
        0 => process.label.clone(),
        n => format!("{}.{n}", process.label),
    };
    let open = |kind: &str| {
        let path = home.join(format!("{label}.{kind}"));
        File::create(&path).map_err(Error::host(format!("write {}", path.display())))
    };
    let mut command = Command::new(&process.program);
    command
        .args(&process.args)
        .env_clear()
        .env("PATH", SEARCH)
        .env("HOME", &home)
        .env("LANG", "C.UTF-8")
        .env("TZ", "UTC0")
        .env("USER", "root")
        .env("LOGNAME", "root")
        .env("HOSTNAME", &host.name)
        .envs(CPU)
        .envs(process.environment.iter().map(|(key, value)| (key, value)))
        .stdin(Stdio::null())
        .stdout(open("stdout")?)
        .stderr(open("stderr")?);
    use std::os::unix::process::CommandExt;
    command.arg0(&process.name);
    let world = World::of(data, host);
    leaf::in_child(&mut command, move || world.enter());
    let child = command.spawn().map_err(Error::host(format!(
        "start {} on {}",
        process.program.display(),
        host.name
    )))?;
    // Waited for by pid: the conductor waits for all its children at once.
    Ok(Pid::from_raw(child.id() as i32))
}

/// What is done in the child before it becomes the program.
struct World {
    name: String,
    home: PathBuf,
    over: Vec<Over>,
    /// The host's own /tmp, and what has to be seen in it.
    tmp: PathBuf,
    keep: Vec<(PathBuf, PathBuf)>,
}

impl World {
    fn of(data: &Data, host: &HostPlan) -> World {
        let mut over: Vec<Over> = data
            .etc(&host.name)
            .into_iter()
            .map(|(source, target)| Over { source, target })
            .collect();
        for (target, _) in &host.files {
            over.push(Over {
                source: data.file(&host.name, target),
                target: target.clone(),
            });
        }
        World {
            name: host.name.clone(),
            home: data.host(&host.name),
            over,
            tmp: data.tmp(&host.name),
            keep: data.kept(&host.name),
        }
    }

    fn enter(&self) -> IoResult<()> {
        setsid()?;
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)?;
        let none = None::<&Path>;
        mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)?;
        sethostname(&self.name)?;
        // The network's /sys, as `ip netns exec` has it.
        let _ = umount2("/sys", MntFlags::MNT_DETACH);
        let _ = mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none);
        for over in &self.over {
            // What the machine has not, the host does not need to hide.
            if over.target.exists() {
                bind(&over.source, &over.target)?;
            }
        }
        for (source, target) in &self.keep {
            bind(source, target)?;
        }
        bind(&self.tmp, Path::new("/tmp"))?;
        chdir(&self.home)?;
        own_limits()
    }
}

/// What programs inherit, whoever has started the simulation: addresses of mappings depend on the stack's limit.
fn own_limits() -> std::io::Result<()> {
    umask(Mode::from_bits_truncate(0o022));
    for (resource, soft, hard) in LIMITS {
        let (_, most) = getrlimit(resource)?;
        setrlimit(resource, soft.min(most), hard.min(most))?;
    }
    Ok(())
}

fn bind(source: &Path, target: &Path) -> IoResult<()> {
    let none = None::<&Path>;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    Ok(mount(Some(source), target, none, flags, none)?)
}

/// Captures the packets of the host whose network namespace we are in; that has begun when this returns.
pub fn capture(setup: &Setup, data: &Data, host: &str) -> Result<Pid> {
    let setup = Setup {
        host: Some(host.to_owned()),
        ..setup.clone()
    };
    let exe = std::env::current_exe().map_err(Error::host("find where ring3 is"))?;
    let log = capture_file(data, host);
    let log_file = File::create(&log).map_err(Error::host(format!("write {}", log.display())))?;
    let mut child = Command::new(exe)
        .args(stage::args("capture", &setup))
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log_file)
        .spawn()
        .map_err(Error::host("start a capture"))?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out)
            .read_line(&mut line)
            .map_err(Error::host("hear from a capture"))?;
    }
    match line.trim() {
        LISTENING => Ok(Pid::from_raw(child.id() as i32)),
        _ => Err(Error::Said(capture_log(data, host))),
    }
}

fn capture_file(data: &Data, host: &str) -> PathBuf {
    data.network(&format!("{host}.capture"))
}

/// What a capture that has failed said.
pub fn capture_log(data: &Data, host: &str) -> String {
    let words = std::fs::read_to_string(capture_file(data, host)).unwrap_or_default();
    match words.trim() {
        "" => format!("the capture of {host} ended without a word"),
        words => format!(
            "the capture of {host}: {}",
            words.trim_start_matches("ring3: ")
        ),
    }
}

/// The UTS namespace of a process: each that is started gets one of its own, and what it starts shares that. An
/// environment would not do as a mark, since programs that set their title write over it.
pub fn world_of(pid: Pid) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/uts")).ok()
}

/// All processes in these UTS namespaces.
pub fn processes_in(worlds: &BTreeSet<PathBuf>) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut pids: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| world_of(Pid::from_raw(*pid)).is_some_and(|world| worlds.contains(&world)))
        .collect();
    pids.sort_unstable();
    pids.into_iter().map(Pid::from_raw).collect()
}
