// SPDX-License-Identifier: GPL-2.0
//! How sandboxes start, are entered and end: also where nobody answers within. Needs `make image gate`.

mod place;

use std::fs;
use std::process::{Child, Command};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use place::{finish, spawn, Place};

/// The number of a process's only child.
fn child_of(parent: i32) -> i32 {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut children = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        (fields.next()?.parse() == Ok(parent)).then_some(pid)
    });
    children.next().expect("a child")
}

/// The keeper of a sandbox that is up.
fn keeper(place: &Place, name: &str) -> Pid {
    let warden = place.stat(name)["pid"].as_i64().unwrap() as i32;
    Pid::from_raw(child_of(child_of(warden)))
}

fn holds_signals_back(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let blocked = u64::from_str_radix(blocked.unwrap().trim(), 16).unwrap();
    blocked & 1 << (Signal::SIGTERM as i32 - 1) != 0
}

/// A keeper that is stopped, or its programs' by now, answers nobody: a signal ends the wait for it, and a limit does. It has
/// nothing of the caller's, so that the readers of the caller's output see its end, too.
#[test]
fn a_sandbox_that_does_not_answer() {
    let place = Place::new();
    place.ok(&["up", "--sandbox", "a"]);
    let keeper = keeper(&place, "a");
    kill(keeper, Signal::SIGSTOP).unwrap();
    let wait = ["wait", "a", "tcp", "9", "--timeout", "0"];
    let waits = spawn(&mut place.command(&wait));
    let child = spawn(&mut place.command(&["exec", "a", "--", "true"]));
    place::eventually("it holds signals back", || holds_signals_back(&child));
    place::signal(&child, Signal::SIGTERM);
    place::expect_failure(&finish(child), 143, "does not answer");
    place::expect_failure(&finish(waits), 1, "does not answer");
    kill(keeper, Signal::SIGCONT).unwrap();
    place.ok(&["exec", "a", "--", "true"]);
    place.ok(&["down", "a"]);
    place.is_empty();
}

/// The same once the program runs: signals go in, and the second that nobody hears ends the caller.
#[test]
fn a_sandbox_that_does_not_answer_any_more() {
    let place = Place::new();
    place.ok(&["up", "--sandbox", "a"]);
    let keeper = keeper(&place, "a");
    let script = "trap '' TERM; echo begun; while :; do sleep 0.01; done";
    let mut child = place::started(&place, &["exec", "a", "--", "sh", "-c", script]);
    kill(keeper, Signal::SIGSTOP).unwrap();
    place::eventually("the caller has ended", || {
        let is_over = child.try_wait().expect("wait").is_some();
        if !is_over {
            place::signal(&child, Signal::SIGTERM);
        }
        is_over
    });
    // Until then the program has the caller's output.
    kill(keeper, Signal::SIGCONT).unwrap();
    place::expect_failure(&finish(child), 143, "does not answer");
    place::eventually("the program ends with its caller", || {
        place.stat("a")["procs"].as_array().unwrap().is_empty()
    });
    place.ok(&["down", "a"]);
    place.is_empty();
}

/// Its programs have all the processes that they may have, so nothing more can be started: who asks is told so.
#[test]
fn a_sandbox_without_processes_left() {
    const FORKS: &str = "
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
            os._exit(0)
    except OSError:
        time.sleep(0.01)
";
    let place = Place::new();
    let ordinary = |args: &[&str]| -> Command { place.ordinary(args) };
    let ok = |args: &[&str]| {
        let output = finish(spawn(&mut ordinary(args)));
        assert!(output.status.success(), "{args:?}: {output:?}");
    };
    let up = ["up", "--sandbox", "--pids", "8", "a", "--"];
    ok(&[&up[..], &["/usr/bin/python3", "-c", FORKS]].concat());
    let mut last = None;
    place::eventually("no process is left", || {
        let output = finish(spawn(&mut ordinary(&["exec", "a", "--", "true"])));
        let is_over = !output.status.success();
        last = Some(output);
        is_over
    });
    place::expect_failure(&last.unwrap(), 125, "cannot");
    ok(&["down", "a"]);
    place.is_empty();
}

/// A node that stays leaves the folder that its program was named in.
#[test]
fn a_program_of_this_folder_is_found() {
    let place = Place::new();
    let folder = place.programs.path().join("here");
    let said = folder.join("said");
    let script = format!("#!/bin/sh\necho >{}\nexec sleep 1000\n", said.display());
    place::program(&folder.join("prog"), &script);
    let given = folder.display().to_string();
    for more in [&[][..], &["--sandbox", "--rw", &given]] {
        let args = [&["up", "a"], more, &["--", "./prog"]].concat();
        let output = finish(spawn(place.command(&args).current_dir(&folder)));
        assert!(output.status.success(), "{output:?}");
        place::eventually("the program runs", || said.exists());
        place.ok(&["down", "a"]);
        fs::remove_file(&said).unwrap();
    }
}

/// The lock of its log, by which others see whether they may remove it, is not its programs' to take.
#[test]
fn the_log_is_locked_outside() {
    use nix::fcntl::{Flock, FlockArg};
    let place = Place::new();
    let lock = "import fcntl\nprint('begun', flush=True)\nfcntl.flock(1, fcntl.LOCK_UN)\n\
        print('unlocked', flush=True)\nfcntl.flock(1, fcntl.LOCK_EX)";
    place.ok(&["up", "--sandbox", "a", "--", "/usr/bin/python3", "-c", lock]);
    let log = place.dir.path().join("ring3/a.log");
    let has_said = || fs::read_to_string(&log).is_ok_and(|it| it.contains("unlocked"));
    place::eventually("it has tried", has_said);
    let open = || fs::File::open(&log).unwrap();
    let exclusive = Flock::lock(open(), FlockArg::LockExclusiveNonblock);
    assert!(exclusive.is_err(), "its programs have let go of the lock");
    // Another start waits for nobody.
    place.fails(&["up", "--sandbox", "a"], 1, "a");
    place.ok(&["down", "a"]);
}

#[test]
fn a_service_manager_hears_of_it() {
    let place = Place::new();
    let manager = place.dir.path().join("manager");
    let socket = std::os::unix::net::UnixDatagram::bind(&manager).unwrap();
    socket.set_read_timeout(Some(place::PATIENCE)).unwrap();
    let mut command = place.command(&["up", "--sandbox", "--foreground", "a"]);
    let child = spawn(command.env("NOTIFY_SOCKET", &manager));
    let mut said = [0; 64];
    let len = socket.recv(&mut said).expect("a word");
    assert_eq!(&said[..len], b"READY=1\n");
    place::signal(&child, Signal::SIGTERM);
    assert_eq!(finish(child).status.code(), Some(0));
    place.is_empty();
}

/// A file that says that a node is a sandbox is never started as anything else.
#[test]
fn a_file_of_a_sandbox() {
    let place = Place::new();
    let folder = place.dir.path().join("of");
    fs::create_dir_all(folder.join("work")).unwrap();
    let secret = folder.join("secret");
    fs::write(&secret, "secret").unwrap();
    let sandbox = "rw = ['work']\ntmp = true\nfiles = 1024\n";
    let file = folder.join("node.toml").display().to_string();
    fs::write(&file, format!("name = 'a'\n[sandbox]\n{sandbox}")).unwrap();
    let all = folder.join("all.toml").display().to_string();
    fs::write(&all, format!("[node.a]\n[node.a.sandbox]\n{sandbox}")).unwrap();
    let script = format!(
        "cat {0}/secret 2>/dev/null; echo x >{0}/work/x && cat {0}/work/x && test -d $TMPDIR && ulimit -Hn",
        folder.display()
    );
    let program = ["--", "sh", "-c", &script];
    assert_eq!(
        place.ok(&[&["run", "-f", &file][..], &program].concat()),
        "x\n1024\n"
    );
    for up in [["up", "-f", &file], ["compose", "up", &all]] {
        place.ok(&up);
        assert_eq!(
            place.ok(&[&["exec", "a"][..], &program].concat()),
            "x\n1024\n"
        );
        place.ok(&["down", "a"]);
    }
    fs::write(&file, "name = 'a'\n[sandbox]\nfiles = 3\n").unwrap();
    place.fails(&["run", "-f", &file, "--", "true"], 2, "1024");
    place.is_empty();
}

/// Nothing is wrong with a child in the background that executes a program while its node ends with the first one.
#[test]
fn children_that_execute_at_the_end_hear_why() {
    let place = Place::new();
    let script = "for i in 1 2 3; do (while :; do env true; done) & done; sleep 0.3";
    for way in [&["run", "--sandbox"][..], &["run"]] {
        for _ in 0..3 {
            let line = [way, &["--", "sh", "-c", script]].concat();
            let output = place::finish(place::spawn(&mut place.command(&line)));
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(!error.contains("is not up"), "{error}");
        }
    }
    place.is_empty();
}

/// The warden has a descriptor for each unix socket with a name. Its programs can't have all of its descriptors, and none of theirs is
/// forgotten for want of one.
#[test]
fn a_warden_of_few_descriptors() {
    const BINDS: &str = "
import errno, os, socket, time
os.chdir(os.environ['TMPDIR'])
kept = []
try:
    while len(kept) < 1000:
        kept.append(socket.socket(socket.AF_UNIX))
        kept[-1].bind(str(len(kept)))
        kept[-1].listen()
except OSError as error:
    kept.pop()
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(len(kept) - 1))
    print(len(kept), errno.errorcode[error.errno], flush=True)
    time.sleep(1000)
";
    let place = Place::new();
    let limit = ["-c", "ulimit -n 160; exec \"$0\" \"$@\""];
    let run = ["run", "--sandbox", "--tmp", "-n", "a", "--"];
    let args = [&run[..], &["/usr/bin/python3", "-c", BINDS]].concat();
    let mut command = place::behind(&place.command(&args), "sh", &limit);
    let mut child = spawn(&mut command);
    let mut said = String::new();
    let output = child.stdout.as_mut().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut said).unwrap();
    assert_eq!(said, "80 ENOBUFS\n");
    place.ok(&["exec", "a", "--", "true"]);
    place.ok(&["down", "a"]);
    assert_eq!(finish(child).status.code(), Some(143));
    place.is_empty();
}
