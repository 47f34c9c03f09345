// SPDX-License-Identifier: GPL-2.0
//! What the command was started with: a standard error that takes nothing, signals that are
//! ignored, a terminal that goes away. Needs `make image gate`.

mod place;

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::socket::{
    connect, send, socket, AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr,
};

use place::{finish, Place};

fn full() -> Stdio {
    let full = File::options().write(true).open("/dev/full");
    full.expect("/dev/full").into()
}

/// Says something to a node's socket that no gate would: its keeper warns of it.
fn talk_nonsense(place: &Place, node: &str) {
    let path = place.dir.path().join(format!("ring3/nodes/{node}/join"));
    let socket = socket(
        AddressFamily::Unix,
        SockType::SeqPacket,
        SockFlag::empty(),
        None,
    )
    .expect("a socket");
    let address = UnixAddr::new(&path).expect("an address");
    connect(socket.as_raw_fd(), &address).expect("the node listens");
    send(socket.as_raw_fd(), b"?", MsgFlags::empty()).expect("send");
    // Its answer: by then it has read.
    let mut answer = [0; 8];
    let _ = nix::sys::socket::recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty());
}

/// A warning that cannot be written used to end the node's thread, and the program with it.
#[test]
fn nobody_takes_a_warning() {
    let place = Place::new();
    let mut child = place
        .command(&["run", "-n", "a", "--", "sh", "-c", "echo; read x; exit 7"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(full())
        .spawn()
        .expect("it starts");
    let mut byte = [0];
    let stdout = child.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut byte).expect("the program is there");
    talk_nonsense(&place, "a");
    talk_nonsense(&place, "a");
    drop(child.stdin.take());
    assert_eq!(finish(child).status.code(), Some(7));
}

/// A second `up` of the name removed the file, and what the keeper had to say went nowhere.
#[test]
fn the_log_of_a_node_whose_name_somebody_wants() {
    let place = Place::new();
    let log = place.dir.path().join("ring3/a.log");
    place.ok(&["up", "a"]);
    place.fails(&["up", "a"], 1, "is running already");
    talk_nonsense(&place, "a");
    place::eventually("the log has a line", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("a wrong length"))
    });
    // One that ends well leaves nothing, whatever it said, nor does one that could not be.
    place.ok(&["down", "a"]);
    place.ok(&["up", "b"]);
    place.fails(&["up", "b"], 1, "is running already");
    place.fails(&["up", "c", "-s", "net.nosuch=1"], 1, "cannot set sysctl");
    place.ok(&["down", "b"]);
    place::eventually("no log is left", || place.left().is_empty());
}

#[test]
fn nobody_takes_an_error() {
    let place = Place::new();
    for (args, status) in [
        (&["run", "--", "nosuchprogram"][..], 127),
        (&["exec", "nosuchnode", "--", "true"], 125),
        (&["down", "nosuchnode"], 1),
        (&["kunit", "--from", "/dev/null"], 1),
        (&["completion", "bash"], 1),
    ] {
        let output = place
            .command(args)
            .stdout(full())
            .stderr(full())
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(status), "{args:?}");
    }
}

/// `ring3 ARGS` with these signals ignored, as a parent may leave them to it.
fn ignoring(place: &Place, signals: &str, args: &[&str]) -> Command {
    let option = format!("--ignore-signal={signals}");
    let mut command = place::behind(&place.command(args), "/usr/bin/env", &[&option]);
    command.stdin(Stdio::null());
    command
}

/// Who ignores SIGCHLD has children that nobody can wait for.
#[test]
fn ignored_sigchld() {
    let place = Place::new();
    let run = |args: &[&str]| finish(place::spawn(&mut ignoring(&place, "CHLD", args)));
    let output = run(&["run", "--", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let output = run(&["up", "a"]);
    assert!(output.status.success(), "{output:?}");
    place.ok(&["down", "a"]);
    let output = run(&["doctor", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("No child process"), "{text}");
    assert_eq!(text, place.ok(&["doctor", "--json"]));
    place.is_empty();
}

/// What was ignored is ignored by the program too, as without ring3.
#[test]
fn the_program_has_the_dispositions_that_we_were_given() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    let look = ["grep", "^SigIgn", "/proc/self/status"];
    for (name, signal) in [("CHLD", Signal::SIGCHLD), ("PIPE", Signal::SIGPIPE)] {
        for verb in [&["run", "--"][..], &["exec", "a", "--"]] {
            let args = [verb, &look[..]].concat();
            let output = finish(place::spawn(&mut ignoring(&place, name, &args)));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let set = text.split_whitespace().last().expect("a set");
            let set = u64::from_str_radix(set, 16).expect("a number");
            assert_ne!(set & 1 << (signal as u32 - 1), 0, "{name} {args:?}: {text}");
        }
    }
}

/// Runs the command as the leader of a session with a terminal, `do` with it once it said something, and
/// returns the command's status: the program's own, or 128 and the signal that ended it.
fn on_a_terminal(place: &Place, action: &str, args: &[&str]) -> Option<i32> {
    const SCRIPT: &str = "
import os, pty, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(sys.argv[2], sys.argv[2:])
os.read(fd, 1)
if sys.argv[1] == 'hang up':
    os.close(fd)
else:
    os.write(fd, sys.argv[1].encode())
for _ in range(1000):
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        code = os.waitstatus_to_exitcode(status)
        sys.exit(code if code >= 0 else 128 - code)
    time.sleep(0.01)
os.kill(pid, signal.SIGKILL)
sys.exit(99)
";
    let mut command = place::behind(&place.command(args), "python3", &["-c", SCRIPT, action]);
    finish(place::spawn(&mut command)).status.code()
}

/// SIGHUP of a terminal goes to the leader of its session only: to us, not to the program.
#[test]
fn the_terminal_hangs_up() {
    let place = Place::new();
    let script = ["run", "--", "sh", "-c", "echo; exec sleep 1000"];
    assert_eq!(on_a_terminal(&place, "hang up", &script), Some(129));
    // What is typed has reached the program already: once is enough.
    let script = "trap 'n=${n}x' INT; echo; sleep 0.3; echo; [ \"$n\" = x ] && exit 5";
    let run = ["run", "--", "sh", "-c", script];
    assert_eq!(on_a_terminal(&place, "\x03", &run), Some(5));
    place.is_empty();
}

/// What is sent or typed while the node starts ends that; the program never was.
#[test]
fn a_start_can_be_ended() {
    let place = Place::new();
    let run = ["run", "-n", "a", "--port", "passt", "--", "echo", "it ran"];
    let there = place.dir.path().join("bin/there");
    for number in [Signal::SIGINT, Signal::SIGTERM] {
        let _ = std::fs::remove_file(&there);
        let command = place::with_silent_passt(&place, &run);
        let child = place::spawn(&mut place::with_usual_signals(&command));
        place::eventually("passt is there", || there.exists());
        let start = Instant::now();
        place::signal(&child, number);
        let output = finish(child);
        assert_eq!(
            output.status.code(),
            Some(128 + number as i32),
            "{output:?}"
        );
        assert!(
            output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "it waited for passt"
        );
    }
    // Who ignores a signal is not ended by it.
    let _ = std::fs::remove_file(&there);
    let command = place::with_silent_passt(&place, &run);
    let mut ignoring = place::behind(&command, "/usr/bin/env", &["--ignore-signal=HUP"]);
    let mut child = place::spawn(&mut ignoring);
    place::eventually("passt is there", || there.exists());
    place::signal(&child, Signal::SIGHUP);
    std::thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().expect("wait").is_none());
    place::signal(&child, Signal::SIGTERM);
    assert_eq!(finish(child).status.code(), Some(143));
}

/// passt is told to end by signals, like any program, but not by what is typed for ours.
#[test]
fn passt_has_no_signal_blocked() {
    let place = Place::new();
    let command = place::with_silent_passt(&place, &["run", "--port", "passt", "--", "true"]);
    let said = place.dir.path().join("said");
    // No shell: Debian's begins with clearing its mask.
    let script = format!(
        "#!/usr/bin/python3\nimport os, re\n\
         status = open('/proc/self/status').read()\n\
         open('{}', 'w').write(\
         f'{{re.search(\"SigBlk.*\", status).group()}}, leads {{os.getpgrp() == os.getpid()}}')\n",
        said.display()
    );
    place::program(&place.dir.path().join("bin/passt"), &script);
    let mut command = command;
    place::expect_failure(
        &finish(place::spawn(&mut command)),
        125,
        "passt did not start",
    );
    let said = std::fs::read_to_string(said).expect("it ran");
    assert_eq!(said.trim(), "SigBlk:\t0000000000000000, leads True");
}

/// A pipe without a reader would have to be waited for.
#[test]
fn a_capture_into_a_pipe_and_into_anothers_file() {
    let place = Place::new();
    let pipe = place.dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let port = format!("link:z,pcap={}", pipe.display());
    let words = "is a pipe that nobody reads";
    place.fails(&["run", "--port", &port, "--", "true"], 125, words);
    let reader = File::options().read(true).write(true).open(&pipe);
    let mut reader = reader.expect("the pipe");
    place.ok(&["run", "--port", &port, "--", "true"]);
    let mut magic = [0; 4];
    reader.read_exact(&mut magic).expect("a header");
    assert_eq!(u32::from_ne_bytes(magic), 0xa1b2_3c4d);

    let file = place.dir.path().join("file");
    let port = |name: &str| format!("link:{name},pcap={}", file.display());
    place.ok(&["up", "a", "--port", &port("x")]);
    let words = "another capture writes to it";
    place.fails(&["up", "b", "--port", &port("y")], 1, words);
    let words = "two ports have pcap=";
    place.fails(
        &["up", "b", "--port", &port("y"), "--port", &port("z")],
        2,
        words,
    );
    place.ok(&["down", "a"]);
    place.ok(&["run", "--port", &port("x"), "--", "true"]);
}

/// The keeper needs a descriptor for each process of its node; the program's limit is its own.
#[test]
fn the_limit_of_descriptors() {
    let place = Place::new();
    let script = "ulimit -n; grep 'open files' /proc/$PPID/limits";
    let command = place.command(&["run", "--", "sh", "-c", script]);
    let mut limited = place::behind(&command, "prlimit", &["--nofile=500:1000"]);
    let output = finish(place::spawn(&mut limited));
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<_> = text.split_whitespace().collect();
    assert_eq!(
        words,
        ["500", "Max", "open", "files", "1000", "1000", "files"]
    );
}

/// What a command was asked to print can't be written: it has failed.
#[test]
fn nobody_takes_the_output() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["stat", "a"],
        &["stat", "a", "--json"],
        &["completion", "bash"],
        &["man"],
    ] {
        let output = place.command(args).stdout(full()).output();
        let output = output.expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
        assert!(error.contains("cannot write to standard output"), "{error}");
    }
    // A reader that has seen enough is no failure.
    let script = format!("{} man | head -1", env!("CARGO_BIN_EXE_ring3"));
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
    place.ok(&["down", "a"]);
}

/// A server that puts itself into the background ends with its node at once. That is said.
#[test]
fn a_program_that_goes_to_the_background() {
    let place = Place::new();
    let run = |script| place.run(&["run", "--", "sh", "-c", script]);
    let output = run("(sleep 0.02; exec setsid sleep 30) & exit 0");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("sh has gone to the background"), "{error}");
    // What a script leaves by the way is not a server.
    for script in ["sleep 30 & exit 0", "setsid true; exit 0"] {
        let output = run(script);
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

/// The memory of a node is a file to the host.
#[test]
fn the_limit_of_files() {
    let place = Place::new();
    let command = place.command(&["up", "a"]);
    let output = finish(place::spawn(&mut place::behind(
        &command,
        "prlimit",
        &["--fsize=100000"],
    )));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{error}");
    assert!(
        error.contains("`ulimit -f`") && !error.contains("ulimit -v"),
        "{error}"
    );
}

/// All of the host's programs would lose what they send each other.
#[test]
fn xdp_on_the_hosts_loopback() {
    let words = "`lo` is the host's own loopback";
    Place::new().fails(&["up", "a", "--port", "xdp:lo"], 1, words);
}

/// A small stack for a program: the command overflowed its own stack, before it had said a word.
#[test]
fn a_small_stack_is_the_programs() {
    let place = Place::new();
    let inner = place.command(&["run", "--", "sh", "-c", "ulimit -s"]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -s 64; exec \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = finish(child.spawn().expect("it starts"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "64\n");
}
