// SPDX-License-Identifier: GPL-2.0
//! What a sandbox may take of the host: each limit by a program that takes all it gets. Needs `make image gate`.

mod place;

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

use place::{spawn, Place};

/// A second of CPU time, on a machine that has none to spare.
const LONG: Duration = Duration::from_secs(100);

/// Takes, in a way that $1 says, until the host refuses; says how much it has got, and the error.
const TAKES: &str = "
import errno, mmap, os, sys
MIB = 1 << 20
what, got, kept = sys.argv[1], 0, []
try:
    while got < 1 << 20:
        if what == 'shared':
            kept.append(mmap.mmap(-1, 16 * MIB, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
        elif what == 'private':
            kept.append(mmap.mmap(-1, 16 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        elif what == 'files':
            kept.append(os.open('/dev/null', os.O_RDONLY))
        else:
            if not kept:
                path = os.path.join(os.environ['TMPDIR'], 'file')
                kept.append(os.memfd_create('x') if what == 'memfd' else os.open(path, os.O_RDWR | os.O_CREAT))
            os.write(kept[0], bytes(MIB))
        got += 1
except OSError as error:
    print(what, got, errno.errorcode[error.errno])
";

fn take(place: &Place, limits: &[&str], what: &str) -> (u32, String) {
    let first = ["run", "--sandbox", "--mem", "64M"];
    let program = ["--", "/usr/bin/python3", "-c", TAKES, what];
    let said = place.ok(&[&first[..], limits, &program].concat());
    let mut words = said.split_whitespace();
    assert_eq!(words.next(), Some(what), "{said}");
    let got = words.next().unwrap().parse().unwrap();
    (got, words.next().unwrap().to_owned())
}

/// Shared memory, which no other limit of the host's counts, is counted as a process's own is.
#[test]
fn a_process_that_fills_its_memory() {
    let place = Place::new();
    for what in ["shared", "private"] {
        // Python has some 20 MiB before it begins.
        let (got, why) = take(&place, &["--proc-mem", "256M"], what);
        assert!((8..=19).contains(&got), "{what}: {got} times 16 MiB");
        assert_eq!(why, "ENOMEM");
    }
}

#[test]
fn a_process_that_opens_without_end() {
    let place = Place::new();
    let (got, why) = take(&place, &["--files", "1024"], "files");
    assert!((16..=1021).contains(&got), "{got} files");
    assert_eq!(why, "EMFILE");
}

#[test]
fn a_file_that_grows_without_end() {
    let place = Place::new();
    for what in ["memfd", "disk"] {
        let limits = ["--tmp", "--file-size", "8M"];
        assert_eq!(take(&place, &limits, what), (8, "EFBIG".to_owned()));
    }
}

/// A program that does not ask for the error is ended by the signal, and somebody says what that is for.
#[test]
fn a_file_that_grows_ends_a_program() {
    let place = Place::new();
    let write = "head -c 3M /dev/zero >$TMPDIR/x";
    let limits = ["run", "--sandbox", "--tmp", "--file-size", "1M"];
    let line = [&limits[..], &["--", "sh", "-c", write]].concat();
    let output = finish_late(&mut place.command(&line));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 25), "{error}");
    let words = "a file would have grown beyond 1M (--file-size)";
    assert!(error.contains(words), "{error}");
    place.is_empty();
}

fn finish_late(command: &mut Command) -> Output {
    let child = spawn(command);
    let start = std::time::Instant::now();
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    let (give, take) = std::sync::mpsc::channel();
    std::thread::spawn(move || give.send(child.wait_with_output().unwrap()));
    take.recv_timeout(LONG).unwrap_or_else(|_| {
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        panic!("still running after {:?}", start.elapsed())
    })
}

/// The loop ends; another sandbox has nothing of it.
#[test]
fn a_process_that_loops() {
    let place = Place::new();
    place.ok(&["up", "--sandbox", "b"]);
    let limit = ["run", "--sandbox", "--cpu-time", "1", "--", "sh", "-c"];
    for (script, status, words) in [
        (
            "while :; do :; done",
            128 + 24,
            "it has used 1 s of CPU time (--cpu-time)",
        ),
        ("trap '' XCPU; while :; do :; done", 128 + 9, ""),
    ] {
        let output = finish_late(&mut place.command(&[&limit[..], &[script]].concat()));
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(words), "{error}");
    }
    place.ok(&["exec", "b", "--", "true"]);
    place.ok(&["down", "b"]);
    place.is_empty();
}

/// The limit is of each program. The node that stays lives on, and so does its keeper.
#[test]
fn cpu_time_is_the_programs() {
    let place = Place::new();
    let limits = "ulimit -St; ulimit -Ht";
    place.ok(&[
        "up",
        "--sandbox",
        "--cpu-time",
        "7",
        "a",
        "--",
        "sleep",
        "1000",
    ]);
    let exec = ["exec", "a", "--", "sh", "-c", limits];
    assert_eq!(place.ok(&exec), "7\n8\n");
    let program = place.stat("a")["procs"][0]["pid"].as_i64().unwrap();
    let limit = |pid: i64| -> String {
        let all = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = all.lines().find_map(|it| it.strip_prefix("Max cpu time"));
        line.unwrap().split_whitespace().next().unwrap().to_owned()
    };
    let stat = fs::read_to_string(format!("/proc/{program}/stat")).unwrap();
    let keeper = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1);
    assert_eq!(limit(program), "7");
    let ours = limit(i64::from(std::process::id()));
    assert_eq!(limit(keeper.unwrap().parse().unwrap()), ours);
    place.ok(&["down", "a"]);
    // One of the caller's that is lower holds.
    let run = [
        "run",
        "--sandbox",
        "--cpu-time",
        "7",
        "--",
        "sh",
        "-c",
        limits,
    ];
    let lower = ["-c", "ulimit -t 5; exec \"$0\" \"$@\""];
    let mut command = place::behind(&place.command(&run), "sh", &lower);
    let output = place::finish(spawn(&mut command));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "5\n5\n",
        "{output:?}"
    );
    place.is_empty();
}

/// Files whose names are gone fill a disk, too. The sandbox ends before that is full; the disk is a small one that nobody else sees.
#[test]
fn a_disk_that_fills_up() {
    const FILLS: &str = "
import os, time
while True:
    time.sleep(0.02)
    path = os.path.join(os.environ['TMPDIR'], 'x')
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.unlink(path)
    try:
        for n in range(8):
            os.write(fd, bytes(1 << 20))
    except OSError:
        print('full', flush=True)
";
    let place = Place::new();
    if !mounts(&place) {
        return;
    }
    let run = |size: &str| {
        let limit = ["run", "--sandbox", "--tmp", "--min-free", size];
        let program = ["--", "/usr/bin/python3", "-c", FILLS];
        on_a_disk(&place, "size=512M", &[&limit[..], &program].concat())
    };
    let output = run("256M");
    place::expect_failure(&output, 143, "--min-free");
    // Neither was it full, nor has anything been left there.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    place::expect_failure(&run("1G"), 125, "--min-free");
    place.is_empty();
}

/// Empty files take inodes, of which a file system has a number.
#[test]
fn a_disk_that_fills_up_with_files() {
    const FILLS: &str = "
import itertools, os, time
for n in itertools.count():
    try:
        os.close(os.open(os.path.join(os.environ['TMPDIR'], str(n)), os.O_WRONLY | os.O_CREAT))
    except OSError:
        print('full', flush=True)
        time.sleep(1000)
    if n % 100 == 0:
        time.sleep(0.02)
";
    let place = Place::new();
    if !mounts(&place) {
        return;
    }
    let run = ["run", "--sandbox", "--tmp", "--min-free", "1M", "--"];
    let args = [&run[..], &["/usr/bin/python3", "-c", FILLS]].concat();
    let output = on_a_disk(&place, "size=512M,nr_inodes=8000", &args);
    place::expect_failure(&output, 143, "inodes");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    place.is_empty();
}

/// Other programs have their shared memory in /dev/shm: most of it can be used, all of it can't, whatever the user has said.
#[test]
fn shared_memory_is_left_to_others() {
    const FILLS: &str = "
import os, time
kept = []
while True:
    time.sleep(0.02)
    path = '/dev/shm/x'
    kept.append(os.open(path, os.O_WRONLY | os.O_CREAT))
    os.unlink(path)
    try:
        os.write(kept[-1], bytes(1 << 20))
    except OSError:
        print('full', flush=True)
        time.sleep(1000)
";
    let place = Place::new();
    if !mounts(&place) {
        return;
    }
    let run = ["run", "--sandbox", "--", "/usr/bin/python3", "-c", FILLS];
    let folder = tempfile::tempdir().unwrap();
    let mut command = place.command(&run);
    command.env("XDG_RUNTIME_DIR", folder.path());
    let script = "mount -t tmpfs -o size=64M none /dev/shm && \"$@\"; status=$?; ls -A /dev/shm; exit $status";
    let unshare = ["-m", "sh", "-c", script, "sh"];
    let output = finish_late(&mut place::behind(&command, "unshare", &unshare));
    place::expect_failure(&output, 143, "/dev/shm");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

/// Whether this user can mount a disk of their own.
fn mounts(place: &Place) -> bool {
    let disk = place.dir.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mut mount = Command::new("unshare");
    mount
        .args(["-m", "mount", "-t", "tmpfs", "none"])
        .arg(&disk);
    let is_done = place::finish(spawn(&mut mount)).status.success();
    if !is_done {
        eprintln!("not run: this user can't mount a disk of its own");
    }
    is_done
}

/// With temporary files on a small disk that nobody else sees. What is left there is said.
fn on_a_disk(place: &Place, options: &str, args: &[&str]) -> Output {
    finish_late(&mut disk_of(place, options, args))
}

fn disk_of(place: &Place, options: &str, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("TMPDIR", place.dir.path().join("disk"));
    let script = format!("mount -t tmpfs -o {options} none \"$TMPDIR\" && \"$@\"; status=$?; ls -A \"$TMPDIR\"; exit $status");
    let unshare = ["-m", "sh", "-c", &script, "sh"];
    place::behind(&command, "unshare", &unshare)
}

/// The host's kernel ends the sandbox, and not who looks after it, when memory runs out.
#[test]
fn memory_is_taken_from_it_first() {
    let place = Place::new();
    place.ok(&["up", "--sandbox", "a", "--", "sleep", "1000"]);
    let status = place.stat("a");
    let warden = status["pid"].as_i64().unwrap();
    let program = status["procs"][0]["pid"].as_i64().unwrap();
    let score = |pid: i64| -> i32 {
        let text = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        text.trim().parse().unwrap()
    };
    assert_eq!(score(program), 1000);
    assert_eq!(score(warden), score(i64::from(std::process::id())));
    place.ok(&["down", "a"]);
    place.is_empty();
}

/// A process that was stopped when it was asked finds nothing to do when it goes on but what is meant for it.
#[test]
fn a_limit_is_for_one_process() {
    const SETS: &str = "
import os, resource, signal, time
def child():
    pid = os.fork()
    if not pid:
        while True:
            time.sleep(1000)
    return pid
late, other = child(), child()
os.kill(late, signal.SIGSTOP)
os.waitpid(late, os.WUNTRACED)
try:
    resource.prlimit(late, resource.RLIMIT_NOFILE, (500, 500))
except OSError as error:
    print(error.errno)
resource.prlimit(other, resource.RLIMIT_FSIZE, (5555, 5555))
os.kill(late, signal.SIGCONT)
time.sleep(0.5)
for pid in (late, other):
    print(resource.prlimit(pid, resource.RLIMIT_FSIZE))
    os.kill(pid, signal.SIGKILL)
";
    let place = Place::new();
    let said = place.ok(&["run", "--sandbox", "--", "/usr/bin/python3", "-c", SETS]);
    assert_eq!(said, "1\n(-1, -1)\n(5555, 5555)\n");
}

/// A signal that comes before the warden has a question ends no call that does not wait on Linux, whether its handler restarts calls or not.
#[test]
fn a_signal_while_a_question_waits() {
    const CHANGES: &str = "
import ctypes, os, signal, tempfile, threading, time
file = tempfile.NamedTemporaryFile()
libc = ctypes.CDLL(None, use_errno=True)
def change():
    while True:
        os.chmod(file.name, 0o600)
# Others ask as well, so that a question waits.
for _ in range(4):
    threading.Thread(target=change, daemon=True).start()
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
end, bad, done = time.monotonic() + 4, set(), 0
while time.monotonic() < end:
    try:
        os.chmod(file.name, 0o600)
        os.listdir('/proc/self/fd')
        os.close(os.open('/proc/meminfo', os.O_RDONLY))
    except OSError as error:
        bad.add(('chmod', error.errno))
    fd = libc.inotify_init1(0)
    if fd < 0:
        bad.add(('inotify_init1', ctypes.get_errno()))
    else:
        os.close(fd)
    done += 1
signal.setitimer(signal.ITIMER_REAL, 0, 0)
print(sorted(bad) or done > 20, flush=True)
os._exit(0)
";
    let place = Place::new();
    let program = ["--", "/usr/bin/python3", "-c", CHANGES];
    let said = place.ok(&[&["run", "--sandbox", "--tmp"][..], &program].concat());
    assert_eq!(said, "True\n");
}

/// A process that has no descriptor left when it first asks where it is learns it when it has some.
#[test]
fn a_process_that_has_no_descriptor_left() {
    const FILLS: &str = "
import ctypes, multiprocessing.synchronize, os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
prctl, fds = ctypes.CDLL(None).prctl, []
try:
    while True:
        fds.append(os.dup(0))
except OSError:
    pass
try:
    multiprocessing.Lock()
except OSError as error:
    print(error.errno)
print(prctl(21))
for fd in fds:
    os.close(fd)
print(prctl(21), len(os.listdir('/proc')) > 0)
multiprocessing.Lock()
print('good')
";
    let place = Place::new();
    let said = place.ok(&["run", "--sandbox", "--", "/usr/bin/python3", "-c", FILLS]);
    assert_eq!(said, "24\n0\n0 True\ngood\n");
}

/// Fills the pipe that is its standard error, until a write to that waits.
const FILLS_STDERR: &str = "
import fcntl, os, time
flags = fcntl.fcntl(2, fcntl.F_GETFL)
fcntl.fcntl(2, fcntl.F_SETFL, flags | os.O_NONBLOCK)
for size in (4096, 1):
    try:
        while True:
            os.write(2, b'x' * size)
    except BlockingIOError:
        pass
fcntl.fcntl(2, fcntl.F_SETFL, flags)
";

/// Standard error is the program's, too: a pipe that it has filled keeps no complaint from being read, and no sandbox from being ended.
#[test]
fn a_disk_that_fills_up_while_nobody_reads() {
    const FILLS: &str = "
file = open(os.path.join(os.environ['TMPDIR'], 'x'), 'wb', 0)
try:
    while True:
        file.write(bytes(1 << 20))
        time.sleep(0.005)
except OSError:
    print('full', flush=True)
";
    let place = Place::new();
    if !mounts(&place) {
        return;
    }
    let run = ["run", "--sandbox", "--tmp", "--min-free", "128M", "--"];
    let fills = format!("{FILLS_STDERR}{FILLS}");
    let args = [&run[..], &["/usr/bin/python3", "-c", &fills]].concat();
    // Its output is read after its end.
    let output = place::finish(spawn(&mut disk_of(&place, "size=256M", &args)));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(output.status.code(), Some(143));
    place.is_empty();
}

/// The same of the words on a limit that has ended the program: the command ends with the status, and its folder is removed.
#[test]
fn a_limit_that_ends_a_program_while_nobody_reads() {
    let place = Place::new();
    let folder = tempfile::tempdir().unwrap();
    let grows = "open(os.path.join(os.environ['TMPDIR'], 'x'), 'wb').write(bytes(1 << 20))";
    for (limit, most, act, status) in [
        ("--cpu-time", "1", "while True: pass", 128 + 24),
        ("--file-size", "64K", grows, 128 + 25),
    ] {
        let fills = format!(
            "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n{FILLS_STDERR}{act}\n"
        );
        let args = ["run", "--sandbox", "--tmp", limit, most, "--"];
        let mut command = place.command(&[&args[..], &["/usr/bin/python3", "-c", &fills]].concat());
        command.env("TMPDIR", folder.path());
        let output = place::finish(spawn(&mut command));
        assert_eq!(output.status.code(), Some(status), "{limit}");
        let left = fs::read_dir(&folder).unwrap().count();
        assert_eq!(left, 0, "{limit}");
    }
}

/// With /dev/shm for these alone; `script` has the command as its arguments.
fn in_small_memory(place: &Place, script: &str, program: &str) -> Output {
    let run = ["run", "--sandbox", "--", "/usr/bin/python3", "-c", program];
    let folder = tempfile::tempdir().unwrap();
    let mut command = place.command(&run);
    command.env("XDG_RUNTIME_DIR", folder.path());
    let script = format!("mount -t tmpfs -o size=64M none /dev/shm && {script}");
    let unshare = ["-m", "sh", "-c", &script, "sh"];
    finish_late(&mut place::behind(&command, "unshare", &unshare))
}

/// The sandbox has a semaphore there. It is ended, too, when others take the rest, and nobody says that it was the sandbox.
#[test]
fn shared_memory_that_others_fill() {
    const ASKS: &str = "
import multiprocessing, time
lock = multiprocessing.Lock()
open('/dev/shm/asked', 'w').close()
time.sleep(1000)
";
    let place = Place::new();
    if !mounts(&place) {
        return;
    }
    let script = "{ \"$@\" & until ls /dev/shm/*/asked >/dev/null 2>&1; do sleep 0.1; done
        head -c 50M /dev/zero >/dev/shm/other; wait $!; }";
    let output = in_small_memory(&place, script, ASKS);
    place::expect_failure(&output, 143, "little of /dev/shm is left");
}

/// Before it asks for what it has at /dev/shm, which is when the warden begins to look at that, it has nothing there: not by the path either.
#[test]
fn shared_memory_is_closed_until_it_is_asked_for() {
    const GUESSES: &str = "
import multiprocessing, os, sys
# By another name: for one in /dev/shm the gate would ask.
folder = sys.stdin.readline().strip().replace('/dev/', '/dev/./')
def make():
    try:
        open(os.path.join(folder, 'x'), 'w').close()
        return 'made'
    except OSError as error:
        return error.errno
print(make())
multiprocessing.Lock()
print(make())
";
    let place = Place::new();
    if !mounts(&place) {
        return;
    }
    let script =
        "{ until ls -d /dev/shm/ring3-sandbox-* 2>/dev/null; do sleep 0.1; done | \"$@\"; }";
    let output = in_small_memory(&place, script, GUESSES);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "13\nmade\n",
        "{output:?}"
    );
}

/// Ctrl-Z stops the warden, and not a program in a session of its own. The limit holds all the same.
#[test]
fn a_disk_that_fills_up_while_the_warden_is_stopped() {
    const FILLS: &str = "
import os, time
parent = os.open('/proc/self/stat', os.O_RDONLY)
if not os.fork():
    os.setsid()
    print(os.getpid(), flush=True)
    while b') T ' not in os.pread(parent, 4096, 0):
        time.sleep(0.01)
    try:
        with open(os.path.join(os.environ['TMPDIR'], 'x'), 'wb', 0) as file:
            while True:
                file.write(bytes(1 << 20))
                time.sleep(0.005)
    except OSError:
        print('full', flush=True)
while True:
    time.sleep(1000)
";
    let place = Place::new();
    if !mounts(&place) {
        return;
    }
    let run = ["run", "--sandbox", "--tmp", "--min-free", "128M", "--"];
    let args = [&run[..], &["/usr/bin/python3", "-c", FILLS]].concat();
    let mut child = spawn(disk_of(&place, "size=256M", &args).process_group(0));
    let mut first = [0; 16];
    let got = child.stdout.as_mut().unwrap().read(&mut first).unwrap();
    let pid: i32 = str::from_utf8(&first[..got])
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let group = nix::unistd::Pid::from_raw(child.id() as i32);
    let send = |signal| nix::sys::signal::killpg(group, signal).unwrap();
    send(nix::sys::signal::Signal::SIGTSTP);
    let start = std::time::Instant::now();
    let is_there = || std::path::Path::new(&format!("/proc/{pid}")).exists();
    while is_there() && start.elapsed() < place::PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let is_there = is_there();
    send(nix::sys::signal::Signal::SIGCONT);
    if is_there {
        send(nix::sys::signal::Signal::SIGTERM);
    }
    let output = place::finish(child);
    place::expect_failure(&output, 143, "--min-free");
    assert!(!is_there, "it has not been ended: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    place.is_empty();
}
