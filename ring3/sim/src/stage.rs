// SPDX-License-Identifier: GPL-2.0
//! The processes between `ring3 sim` and the programs of a simulation:
//!
//! ```text
//! ring3 sim              reads the scenario, shows progress, judges
//!   └ enter              has namespaces of the host of its own made
//!       └ keep (pid 1)   keeps the node
//!           └ conduct    on the node: carries out the plan (conduct.rs)
//!               ├ capture, for each host whose packets are (capture.rs)
//!               └ the programs
//! ```
//!
//! Each dies with the one above it, and with pid 1 dies whatever is left.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::personality::{self, Persona};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{getegid, geteuid};
use ring3_config::NodeConfig;
use ring3_node::{raise_descriptor_limit, Folder, NodeHandle};

use crate::data::{read_plan, Data};
use crate::error::{Error, Result};
use crate::gdb;
use crate::plan::Plan;
use crate::words::{say, Word};

/// RING3_ENV_NODE of include/ring3.abi.
const ENV_NODE: &str = "RING3_NODE";
/// Threads sleep for up to so many microseconds of real time now and then: kernel/arch/ring3/turn/jitter.c.
const ENV_JITTER: &str = "RING3_SIM_JITTER";
/// In the data folder, written by kernel/arch/ring3/turn/trace.c.
pub const TRACE: &str = "calls.trace";
/// A gibibyte for the node's kernel, and for each host beyond a hundred what a study measured twice over.
const NODE_BYTES: u64 = 1 << 30;
const HOST_BYTES: u64 = 1 << 20;
const GRAIN: u64 = 16 << 20;
/// More than the stop time: before it a wait of all programs is no deadlock.
const STALL_SECONDS: u64 = 1000;

/// The number in the simulation's PID namespace: above those of the keeper's threads, below those of programs.
const CONDUCTOR_PID: u32 = 900;
const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

/// How a simulation is started; the stages get it as arguments.
#[derive(Debug, Clone)]
pub struct Setup {
    pub plan: PathBuf,
    pub gate: PathBuf,
    /// The kernel image; None: an ordinary node's, whose time is real.
    pub image: Option<PathBuf>,
    pub node: String,
    /// The caller's runtime folder: within a user namespace it would be taken for root's.
    pub runtime: PathBuf,
    /// Whose packets are captured, for the stage that does it.
    pub host: Option<String>,
}

/// Of a thread that computes for long, as kernel/arch/ring3/turn/patience.c says it.
const COMPUTES: &str = "computes without a call";

/// The arguments of a stage, for `ring3 sim-stage`.
pub fn args(stage: &str, setup: &Setup) -> Vec<std::ffi::OsString> {
    let mut words = vec!["sim-stage".into(), stage.into()];
    words.push(setup.plan.clone().into());
    words.push(setup.gate.clone().into());
    words.push(setup.node.clone().into());
    words.push(setup.runtime.clone().into());
    words.extend(setup.image.clone().map(Into::into));
    if let Some(host) = &setup.host {
        words.extend(["--host".into(), host.into()]);
    }
    words
}

/// This very program, also where its file was replaced.
const SELF: &str = "/proc/self/exe";

/// The first stage, as the child of a command that reads what it says.
pub fn first(setup: &Setup) -> Command {
    let mut command = Command::new(SELF);
    command
        .arg0_name()
        .args(args("enter", setup))
        .stdin(Stdio::null());
    command
}

trait Named {
    fn arg0_name(&mut self) -> &mut Self;
}

impl Named for Command {
    fn arg0_name(&mut self) -> &mut Command {
        use std::os::unix::process::CommandExt;
        self.arg0("ring3")
    }
}

/// Runs a stage to its end; the exit status of this process.
pub fn run(stage: &str, setup: &Setup) -> Result<u8> {
    set_pdeathsig(Signal::SIGKILL).map_err(Error::host("die with the command"))?;
    match stage {
        "enter" => enter(setup),
        "keep" => keep(setup),
        "conduct" => crate::conduct::conduct(setup).map(|()| 0),
        "capture" => {
            let host = setup.host.as_deref().unwrap_or_default();
            crate::capture::capture(&read_plan(&setup.plan)?, host).map(|()| 0)
        }
        other => Err(Error::Said(format!(
            "no stage of a simulation is called {other}"
        ))),
    }
}

fn enter(setup: &Setup) -> Result<u8> {
    let (uid, gid) = (geteuid(), getegid());
    let mut flags = CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWUTS;
    if !uid.is_root() {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    unshare(flags).map_err(|why| {
        Error::Said(format!(
            "cannot make namespaces of the host: {why}; run as root, or let users make them (sysctl kernel.unprivileged_userns_clone=1)"
        ))
    })?;
    if !uid.is_root() {
        let map = |name: &str, text: String| {
            std::fs::write(format!("/proc/self/{name}"), text)
                .map_err(Error::host(format!("write {name}")))
        };
        map("setgroups", "deny".into())?;
        map("uid_map", format!("0 {uid} 1"))?;
        map("gid_map", format!("0 {gid} 1"))?;
    }
    // Where the host puts stacks and mappings is random otherwise, and programs hash by addresses. All of the
    // simulation's processes inherit this.
    personality::get()
        .and_then(|now| personality::set(now | Persona::ADDR_NO_RANDOMIZE))
        .map_err(Error::host("turn off random addresses"))?;
    let status = Command::new(SELF)
        .arg0_name()
        .args(args("keep", setup))
        .status()
        .map_err(Error::host("start the keeper"))?;
    Ok(code(status))
}

fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128 + signal as u8,
        (None, None) => 1,
    }
}

fn keep(setup: &Setup) -> Result<u8> {
    let plan = read_plan(&setup.plan)?;
    own_mounts()?;
    let mut config = NodeConfig::new(setup.node.clone());
    let bytes = NODE_BYTES.max(plan.hosts.len() as u64 * HOST_BYTES * 2);
    config.mem = bytes.next_multiple_of(GRAIN);
    config.image.clone_from(&setup.image);
    config.seed = plan.seed;
    if !plan.schedule.is_zero() {
        let most = plan.schedule.as_nanos();
        config.cmdline = format!("ring3_sim_order={},{most}", plan.seed);
    }
    if setup.image.is_some() {
        // Servers may wait until the stop time, at which the conductor wakes up; nobody comes from outside.
        let stall = plan.stop.as_secs().saturating_add(STALL_SECONDS);
        config.cmdline += &format!(" ring3_sim_deadlock=1 ring3_sim_stall={stall}");
    }
    if let (Some(_), Some(preemption)) = (&setup.image, plan.preemption) {
        let (after, sleep) = (preemption.after.as_nanos(), preemption.sleep.as_nanos());
        config.cmdline += &format!(" ring3_sim_preempt={after},{sleep}");
    }
    if plan.gdb {
        // Whoever is at a breakpoint has all the time there is.
        config.cmdline += " ring3_sim_patience=0";
    }
    if setup.image.is_some() {
        config.cmdline += &observed(&plan);
    }
    config.grace = std::time::Duration::ZERO;
    config.check().map_err(Error::host("make the node"))?;
    raise_descriptor_limit();
    let node = NodeHandle::start_in(config, &Folder::at(setup.runtime.clone())?)?;
    if plan.gdb {
        debugged(setup, &plan, &node)?;
    }
    // The gate is asked for a file: /proc/self/exe would be itself.
    let exe = std::env::current_exe().map_err(Error::host("find where ring3 is"))?;
    // Programs see it as their parent. Where this cannot be said, it is the host's next number.
    let _ = std::fs::write(LAST_PID, (CONDUCTOR_PID - 1).to_string());
    let mut child = Command::new(&setup.gate)
        .arg("--")
        .arg(exe)
        .args(args("conduct", setup))
        .env(ENV_NODE, node.join_path())
        .spawn()
        .map_err(Error::host(format!("start {}", setup.gate.display())))?;
    let status = child
        .wait()
        .map_err(Error::host("wait for the conductor"))?;
    let poison = node.poison();
    let down = node.down();
    match poison {
        Some(why) => {
            let hint = match why.contains(COMPUTES) {
                true => {
                    "; `experimental: {native_preemption_enabled: true}` lets others run meanwhile"
                }
                false => "",
            };
            Err(Error::Said(format!(
                "the simulation's kernel has failed: {why}{hint}"
            )))
        }
        None => down.map(|()| code(status)).map_err(Error::Node),
    }
}

/// Waits until a debugger has said `continue`, and serves it from then on.
fn debugged(setup: &Setup, plan: &Plan, node: &NodeHandle) -> Result<()> {
    let data = Data::of(plan);
    let (memory, alias) = node.memory();
    let target = gdb::Target {
        memory,
        alias,
        image: setup.image.clone().unwrap_or_default(),
    };
    crate::data::write(&data.path(gdb::SCRIPT), &gdb::script(&target, &data))?;
    let mut stub = gdb::Stub::new(target, &data.path(gdb::SOCKET))?;
    say(&Word::Debugger);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut first = || {
            let _ = tell.send(());
        };
        if let Err(why) = stub.serve(&mut first) {
            log::error!("the debugger's side has failed: {why}");
        }
    });
    told.recv()
        .map_err(|_| Error::Said("the debugger's side has failed".into()))
}

/// The last words of the kernel's command line, which it takes off before it depends on them.
fn observed(plan: &crate::plan::Plan) -> String {
    let us = std::env::var(ENV_JITTER).unwrap_or_else(|_| "0".into());
    let trace = match plan.trace {
        true => format!(
            " ring3_sim_trace={}",
            crate::data::Data::of(plan).path(TRACE).display()
        ),
        false => String::new(),
    };
    format!(" ring3_sim_jitter={us}{trace}")
}

/// /proc of the new PID namespace, and shared memory that nobody has used before.
fn own_mounts() -> Result<()> {
    let none = None::<&Path>;
    mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)
        .map_err(Error::host("make mounts private"))?;
    mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none)
        .map_err(Error::host("mount /proc"))?;
    // Where there is none, programs do without.
    let _ = mount(
        Some("tmpfs"),
        "/dev/shm",
        Some("tmpfs"),
        MsFlags::empty(),
        none,
    );
    Ok(())
}
