// SPDX-License-Identifier: GPL-2.0
//! The program that is to run on a node, and the gate that runs it.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::SigSet;
use nix::unistd::{access, AccessFlags};
use ring3_abi::RING3_GATE_BASE;

use crate::error::{Failure, Result};
use crate::leaf;

/// RING3_ENV_NODE of include/ring3.abi.
const ENV_NODE: &str = "RING3_NODE";
/// Names another gate, for whoever works on one.
const ENV_GATE: &str = "RING3_GATE";

/// A program that was found, with its gate.
#[derive(Debug)]
pub struct Program {
    gate: PathBuf,
    args: Vec<OsString>,
}

impl Program {
    /// Finds the gate and looks whether the program can be executed at all, so that
    /// mistakes are reported before a node is made for them.
    pub fn find(command: &[OsString]) -> Result<Program> {
        check(&command[0])?;
        Ok(Program {
            gate: gate()?,
            args: command.to_vec(),
        })
    }

    fn command(&self, join: &Path) -> Command {
        let mut command = Command::new(&self.gate);
        command.args(&self.args).env(ENV_NODE, join);
        command
    }

    /// Starts it as a child that does not outlive this process, with this signal mask and these
    /// limits (soft and hard) of descriptors.
    pub fn spawn(&self, join: &Path, mask: SigSet, descriptors: (u64, u64)) -> Result<Child> {
        let mut command = self.command(join);
        leaf::prepare_child(&mut command, mask, descriptors);
        command.spawn().map_err(|why| self.cannot_start(why))
    }

    /// The same on a confined node, which it joins by this end of a pair. `dress` says what else it starts with.
    pub fn spawn_within(
        &self,
        end: &OwnedFd,
        mask: SigSet,
        descriptors: (u64, u64),
        dress: impl FnOnce(&mut Command) -> std::io::Result<()>,
    ) -> Result<Child> {
        let mut command = Command::new(&self.gate);
        command.args(&self.args);
        dress(&mut command).map_err(|why| self.cannot_start(why))?;
        command.env(ENV_NODE, ring3_node::outside::join_by(end));
        leaf::keep_open(&mut command, end);
        leaf::prepare_child(&mut command, mask, descriptors);
        command.spawn().map_err(|why| self.cannot_start(why))
    }

    /// None yet: what is started later is [`Program::beside`] it.
    pub fn none() -> Result<Program> {
        let (gate, args) = (gate()?, Vec::new());
        Ok(Program { gate, args })
    }

    /// Another one, with the same gate.
    pub fn beside(&self, args: Vec<OsString>) -> Program {
        let gate = self.gate.clone();
        Program { gate, args }
    }

    /// The gate's file.
    pub fn gate(&self) -> &Path {
        &self.gate
    }

    /// The program's file, as execvp(3) would find it.
    pub fn file(&self) -> Option<PathBuf> {
        let name = self.args.first()?;
        if name.as_bytes().contains(&b'/') {
            return Some(name.into());
        }
        let search = std::env::var_os("PATH")?;
        std::env::split_paths(&search)
            .map(|folder| folder.join(name))
            .find(|path| executable(path).is_ok())
    }

    /// Starts it as one of the node's own programs, which reads nothing and whose output is ours.
    pub fn spawn_listed(
        &self,
        join: &Path,
        mask: SigSet,
        descriptors: (u64, u64),
    ) -> Result<Child> {
        let mut command = self.command(join);
        leaf::prepare_listed(&mut command, mask, descriptors);
        command.stdin(Stdio::null());
        command.spawn().map_err(|why| self.cannot_start(why))
    }

    /// Its name.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        self.args[0].to_string_lossy()
    }

    /// Becomes it.
    pub fn exec(&self, join: &Path) -> Failure {
        self.exec_with(join, None)
    }

    /// The same with another standard input.
    pub fn exec_with(&self, join: &Path, input: Option<OwnedFd>) -> Failure {
        let mut command = self.command(join);
        if let Some(input) = input {
            command.stdin(input);
        }
        leaf::prepare_exec(&mut command);
        self.cannot_start(command.exec())
    }

    fn cannot_start(&self, why: std::io::Error) -> Failure {
        Failure::Host {
            what: format!("start {}", self.gate.display()),
            why: why.into(),
        }
    }
}

/// Where the gate is: beside the command, or where an installation puts it.
pub fn gate() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(ENV_GATE) {
        let path = PathBuf::from(path);
        return match path.is_file() {
            true => Ok(path),
            false => Err(Failure::GateMissing { looked: vec![path] }),
        };
    }
    let exe = std::env::current_exe().map_err(Failure::host("find where ring3 is"))?;
    let folder = exe.parent().unwrap_or(Path::new("/"));
    let looked = vec![
        folder.join("ring3-gate"),
        folder.join("../lib/ring3/ring3-gate"),
    ];
    match looked.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(Failure::GateMissing { looked }),
    }
}

/// A file of ring3's, looked for in the same places.
pub fn beside_command(name: &str) -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let folder = exe.parent()?;
    [folder.join(name), folder.join("../lib/ring3").join(name)]
        .into_iter()
        .find(|path| path.is_file())
}

/// Whether this process is on a node: its gate is mapped where each is. The variable alone may have
/// come from anywhere.
pub fn is_on_node() -> bool {
    let gate = format!("{RING3_GATE_BASE:x}-");
    std::env::var_os(ENV_NODE).is_some()
        && std::fs::read_to_string("/proc/self/maps")
            .is_ok_and(|maps| maps.lines().any(|line| line.starts_with(&gate)))
}

/// Would execvp(3) find and start this?
pub fn check(name: &OsStr) -> Result<()> {
    let command = name.to_string_lossy().into_owned();
    if name.as_bytes().contains(&b'/') {
        let path = Path::new(name);
        return match executable(path) {
            Ok(()) => Ok(()),
            Err(_) if !path.exists() => Err(Failure::FileNotFound { command }),
            Err(why) => Err(Failure::CommandNotExecutable { command, why }),
        };
    }
    let search = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut refused = None;
    for folder in std::env::split_paths(&search) {
        let path = folder.join(name);
        match executable(&path) {
            Ok(()) => return Ok(()),
            Err(why) if path.is_file() => refused = Some((path, why)),
            Err(_) => {}
        }
    }
    match refused {
        Some((path, why)) if !name.is_empty() => Err(Failure::CommandNotExecutable {
            command: path.display().to_string(),
            why,
        }),
        _ => Err(Failure::CommandNotFound { command }),
    }
}

fn executable(path: &Path) -> std::result::Result<(), String> {
    if path.is_dir() {
        return Err("is a folder".into());
    }
    access(path, AccessFlags::X_OK).map_err(|errno| errno.desc().to_lowercase())
}
