// SPDX-License-Identifier: GPL-2.0
//! A place for tests that start nodes: a runtime folder of its own, and patience.
// No file of tests needs all of it.
#![allow(dead_code)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use tempfile::TempDir;

/// No step of a test takes longer than this on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A runtime folder of its own; what still runs in it at the end is taken down.
pub struct Place {
    pub dir: TempDir,
    /// For what is executed: memory may be mounted noexec.
    pub programs: TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place {
            // In memory, so that links lie in it too and no other place's get in the way.
            dir: tempfile::tempdir_in("/dev/shm").expect("a folder"),
            programs: folder_for_all(),
        }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ring3"));
        command
            .env("XDG_RUNTIME_DIR", self.dir.path())
            .env("RING3_IMAGE", built("RING3_IMAGE", "ring3-up.image"))
            .env("RING3_GATE", built("RING3_GATE", "ring3-gate"))
            .env_remove("RING3_LOG")
            .stdin(Stdio::null())
            .args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        finish(spawn(&mut self.command(args)))
    }

    /// Runs it and expects success; returns standard output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs it and expects one line of error with these words.
    #[track_caller]
    pub fn fails(&self, args: &[&str], status: i32, words: &str) {
        expect_failure(&self.run(args), status, words);
    }

    /// As a user who may nothing: as root, by becoming one, to whom this folder belongs from then on. That user may be unable to reach
    /// the clone: what is built is copied.
    pub fn ordinary(&self, args: &[&str]) -> Command {
        // Another one for each process of tests: the host counts processes by user.
        let user = 61_000 + std::process::id() % 4000;
        let command = self.command(args);
        if !nix::unistd::geteuid().is_root() {
            return command;
        }
        std::os::unix::fs::chown(self.dir.path(), Some(user), Some(user)).expect("chown");
        let user = user.to_string();
        let copy = |from: PathBuf, name: &str| -> PathBuf {
            let to = self.programs.path().join(name);
            if !to.exists() {
                // By another process: one that a test starts meanwhile would have it open for writing, too.
                let copied = Command::new("cp").arg(from).arg(&to).status();
                assert!(copied.expect("cp").success());
            }
            to
        };
        let ring3 = copy(env!("CARGO_BIN_EXE_ring3").into(), "ring3-command");
        let image = copy(built("RING3_IMAGE", "ring3-up.image"), "image");
        let gate = copy(built("RING3_GATE", "ring3-gate"), "gate");
        let mut copied = Command::new(ring3);
        copied
            .env("XDG_RUNTIME_DIR", self.dir.path())
            .env("RING3_IMAGE", image)
            .env("RING3_GATE", gate)
            .env_remove("RING3_LOG")
            .args(args);
        let command = copied;
        let ids = ["--reuid", &user, "--regid", &user, "--clear-groups"];
        let rights = ["--bounding-set=-all", "--no-new-privs"];
        behind(&command, "setpriv", &[&ids[..], &rights].concat())
    }

    pub fn stat(&self, node: &str) -> serde_json::Value {
        serde_json::from_str(&self.ok(&["stat", node, "--json"])).expect("JSON")
    }

    /// Waits until no file of a node or a link is left: a node's process may outlive its
    /// name by a moment.
    #[track_caller]
    pub fn is_empty(&self) {
        eventually("nothing is left behind", || self.left().is_empty());
    }

    pub fn left(&self) -> Vec<PathBuf> {
        let root = self.dir.path().join("ring3");
        let list = |dir: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect()
        };
        let folders = ["nodes", "links"].map(|name| root.join(name));
        let mut left: Vec<_> = folders.iter().flat_map(|dir| list(dir)).collect();
        left.extend(
            list(&root)
                .into_iter()
                // Nodes lock bytes of it; nobody removes it, since another node may be about to.
                .filter(|path| !folders.contains(path) && *path != root.join("slots")),
        );
        left
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        use std::os::unix::fs::MetadataExt;
        let owner = self.dir.path().metadata().map(|it| it.uid());
        let ours = owner.is_ok_and(|it| it == nix::unistd::geteuid().as_raw());
        let words = ["down", "--all"];
        let mut command = match ours {
            true => self.command(&words),
            false => self.ordinary(&words),
        };
        let _ = command.output();
    }
}

/// Others may read what lies there.
fn folder_for_all() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    folder
}

/// Compiles one of the programs of this folder, into [`Place::programs`].
pub fn compiled(place: &Place, name: &str, options: &[&str]) -> PathBuf {
    let program = place.programs.path().join(name);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut compiler = Command::new("cc");
    compiler.args(options).arg("-o").arg(&program);
    compiler.arg("-I").arg(ring3_abi::HEADERS);
    let status = compiler.arg(folder.join(format!("{name}.c"))).status();
    assert!(status.expect("a C compiler").success());
    program
}

pub fn built(variable: &str, name: &str) -> PathBuf {
    let path = std::env::var_os(variable)
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../bin")
                .join(name)
        });
    assert!(path.is_file(), "{} is missing: run `make`", path.display());
    path
}

pub fn spawn(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// Waits for the end, but not for ever.
pub fn finish(mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().expect("wait").is_none() {
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!(
                "still running after {PATIENCE:?}: {:?}",
                child.wait_with_output()
            );
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("its output")
}

#[track_caller]
pub fn expect_failure(output: &Output, status: i32, words: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains(words), "{error}");
    assert_eq!(output.status.code(), Some(status), "{error}");
    assert_eq!(error.lines().count(), 1, "one line: {error}");
    assert!(error.starts_with("ring3: "), "{error}");
}

#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).expect("kill");
}

pub fn said_until_heard(mut child: Child, number: Signal) -> Output {
    eventually("the program heard the signal", || {
        let over = child.try_wait().expect("wait").is_some();
        if !over {
            signal(&child, number);
            std::thread::sleep(Duration::from_millis(50));
        }
        over
    });
    finish(child)
}

/// The same command with another program in front of it.
pub fn behind(ring3: &Command, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, value) in ring3.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .args(args)
        .arg(ring3.get_program())
        .args(ring3.get_args());
    command
}

/// The command with signals as usual: jobs in the background ignore SIGINT, those of nohup(1)
/// SIGHUP, and so would what they start.
pub fn with_usual_signals(ring3: &Command) -> Command {
    behind(ring3, "/usr/bin/env", &["--default-signal=HUP,INT,QUIT"])
}

/// A program on a node, once it has said something on standard output.
pub fn started(place: &Place, args: &[&str]) -> Child {
    use std::io::Read;
    let mut child = with_usual_signals(&place.command(args))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut byte = [0];
    let read = child.stdout.as_mut().expect("a pipe").read(&mut byte);
    assert_eq!(read.expect("a byte"), 1, "{:?}", child.wait_with_output());
    child
}

/// A passt that says nothing, once it is there.
pub fn with_silent_passt(place: &Place, args: &[&str]) -> Command {
    let bin = place.dir.path().join("bin");
    let there = bin.join("there");
    let script = format!(
        "#!/bin/sh\ntrap '' INT\n: >{}\nexec sleep 2\n",
        there.display()
    );
    program(&bin.join("passt"), &script);
    let mut command = place.command(args);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    folders.insert(0, bin);
    command.env("PATH", std::env::join_paths(folders).expect("a PATH"));
    command
}

pub fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("chmod");
}
