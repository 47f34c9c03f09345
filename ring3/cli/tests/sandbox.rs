// SPDX-License-Identifier: GPL-2.0
//! A sandbox as its attacker finds it: `attacker.c` takes the node's kernel over and makes the host's calls itself.
//! Each attack is first seen to succeed outside. Needs `make image gate`.

mod place;

use std::collections::HashMap;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use place::{finish, spawn, Place};
use ring3_sandbox::list::{ALLOWED, BEHALF, CHECKED, OWN, WITHOUT};

/// Built once for each test: the C compiler takes a tenth of a second.
fn attacker(place: &Place) -> PathBuf {
    place::compiled(place, "attacker", &["-static", "-O1", "-w"])
}

/// What the attacker is to leave alone.
struct Targets {
    secret: PathBuf,
    folder: PathBuf,
    name: String,
    victim: Child,
    _servers: [UnixListener; 2],
}

impl Targets {
    fn new(place: &Place) -> Targets {
        let folder = place.dir.path().join("outside");
        fs::create_dir(&folder).unwrap();
        let secret = folder.join("secret");
        for file in ["secret", "spare", "spare2"] {
            fs::write(folder.join(file), "secret").unwrap();
        }
        // Tests run side by side.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ring3-attacked-{}-{count}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let sleep = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn();
        Targets {
            _servers: [
                UnixListener::bind(folder.join("server")).unwrap(),
                UnixListener::bind_addr(&address).unwrap(),
            ],
            secret,
            folder,
            name,
            victim: sleep.expect("sleep"),
        }
    }

    fn args(&self) -> Vec<String> {
        vec![
            self.secret.display().to_string(),
            self.folder.display().to_string(),
            self.name.clone(),
            self.victim.id().to_string(),
        ]
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn results(output: std::process::Output) -> HashMap<String, i64> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.split_once(' ').expect("a word and a number"))
        .map(|(word, number)| (word.to_owned(), number.parse().unwrap()))
        .collect()
}

/// As the first act of a program inside: its own node is its own.
fn attack(
    place: &Place,
    program: &Path,
    targets: &Targets,
    what: &[String],
) -> HashMap<String, i64> {
    let program = program.display().to_string();
    let mut args: Vec<String> = ["run", "--sandbox", "--", &program, "--take-over"]
        .map(str::to_owned)
        .to_vec();
    args.extend(targets.args());
    args.extend_from_slice(what);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    results(place.run(&args))
}

const ATTACKS: [&str; 43] = [
    "read",
    "write",
    "truncate",
    "create",
    "mkdir",
    "symlink",
    "rename",
    "unlink",
    "list",
    "chmod",
    "utimes",
    "listxattr",
    "watch",
    "proc",
    "proc-victim",
    "ptmx",
    "shm",
    "inet",
    "inet6-udp",
    "netlink",
    "unix-datagram",
    "unix-connect",
    "abstract-connect",
    "abstract-bind",
    "signal",
    "trace",
    "peek",
    "take-fd",
    "limit",
    "affinity",
    "priority",
    "user-namespace",
    "key",
    "shared-memory",
    "io-uring",
    "lease",
    "privileges",
    // Of neighbours: attacker.c has the references.
    "bubblewrap-tiocsti",
    "flatpak-tioclinux",
    "docker-handle",
    "core-pattern",
    "setns",
    "gvisor-shmctl",
];

/// The program has rewritten its gate and its node's kernel. The host refuses each all the same.
#[test]
fn a_taken_node_is_a_wall() {
    let place = Place::new();
    let program = attacker(&place);
    let what: Vec<String> = ATTACKS.map(str::to_owned).to_vec();
    let inside = {
        let targets = Targets::new(&place);
        let mut all = what.clone();
        all.push("direct".into());
        all.push("signals".into());
        all.push("capabilities".into());
        let inside = attack(&place, &program, &targets, &all);
        assert_eq!(fs::read(&targets.secret).unwrap(), b"secret");
        assert!(!targets.folder.join("new").exists());
        assert!(targets.folder.join("spare").exists() && targets.folder.join("spare2").exists());
        fs::remove_dir_all(&targets.folder).unwrap();
        inside
    };
    assert_eq!(inside["direct"], 0, "its calls have to be the host's");
    assert_eq!(inside["capabilities"], -i64::from(libc::EPERM));
    // The keeper and its undertaker, which are in the domain with it.
    assert!(inside["signals"] <= 2, "{}", inside["signals"]);

    let targets = Targets::new(&place);
    let mut command = Command::new(&program);
    command
        .args(targets.args())
        .args(&what)
        .stdout(Stdio::piped());
    let outside = results(finish(spawn(&mut command)));
    for attack in &what {
        assert_eq!(outside[attack], 0, "{attack} has to succeed outside");
        assert!(inside[attack] < 0, "{attack} succeeds inside");
    }
}

/// Each number that the list does not let through.
#[test]
fn no_other_call_is_made() {
    const HIGHEST: i64 = 600;
    // uretprobe() and uprobe() pass every filter by the host's own rule: outside of a probe they end the caller (SIGILL).
    const PROBES: [i64; 2] = [335, 336];
    let place = Place::new();
    let program = attacker(&place);
    let targets = Targets::new(&place);
    let passes: Vec<i64> = ALLOWED
        .iter()
        .chain(CHECKED.iter().map(|it| &it.call))
        .chain(BEHALF.iter().map(|it| &it.call))
        .chain([&OWN])
        .map(|call| call.nr)
        .collect();
    let numbers: Vec<String> = (0..HIGHEST)
        .filter(|nr| !passes.contains(nr) && !PROBES.contains(nr))
        // The same with the bit of the 32-bit interface.
        .flat_map(|nr| [nr, nr | 0x4000_0000])
        .map(|nr| nr.to_string())
        .collect();
    let inside = attack(&place, &program, &targets, &numbers);
    assert_eq!(inside.len(), numbers.len());
    for (nr, result) in inside {
        let is_without = WITHOUT.iter().any(|it| it.call.nr.to_string() == nr);
        let refused = match is_without {
            true => vec![libc::EOPNOTSUPP],
            false => vec![libc::ENOSYS, libc::EPERM],
        };
        let is_refused = refused.iter().any(|errno| -i64::from(*errno) == result);
        assert!(is_refused, "call {nr} gives {result}");
    }
}

/// What a program leaves behind goes with its sandbox, whatever it does to stay.
#[test]
fn nothing_outlives_it() {
    let place = Place::new();
    let mark = format!("10{}", std::process::id());
    let script = format!("setsid -f sleep {mark}; (setsid sleep {mark} &) ; sleep 0.2");
    let output = place.run(&["run", "--sandbox", "--", "bash", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    let left = fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.starts_with(format!("sleep\0{mark}").as_bytes())
    });
    assert!(!left);
}

#[test]
fn its_files_are_those_it_was_given() {
    let place = Place::new();
    let folder = place.dir.path().join("given");
    fs::create_dir(&folder).unwrap();
    let given = folder.display().to_string();
    let script = format!("echo x >{given}/a && cat {given}/a && echo y >$TMPDIR/b && echo $TMPDIR");
    let inside = place.ok(&[
        "run",
        "--sandbox",
        "--rw",
        &given,
        "--tmp",
        "--",
        "bash",
        "-c",
        &script,
    ]);
    let mut lines = inside.lines();
    assert_eq!(lines.next(), Some("x"));
    assert!(!Path::new(lines.next().unwrap()).exists());
    // `ls -l` complained of each file: its attributes were said to be a call that the host has not got.
    let script = format!(
        "ls -l {given}/a 2>&1 >/dev/null; cat {given}/a && ! echo z 2>/dev/null >{given}/a"
    );
    assert_eq!(
        place.ok(&[
            "run",
            "--sandbox",
            "--ro",
            &given,
            "--",
            "bash",
            "-c",
            &script
        ]),
        "x\n"
    );
}

/// The host's kernel can be told to signal, to write a core file's reader its input, or to change what is passed on. Each
/// succeeds outside. (TIOCSPGRP and TIOCSWINSZ want a terminal; here they are refused before the host looks for one.) Standard input is
/// a terminal, which signals its foreground by O_ASYNC.
#[test]
fn the_host_is_not_told_to_act_on_others() {
    const TRIES: &str = "
import fcntl, os, resource, socket, struct, errno
def what(name, f):
    try: f(); print(name, 0)
    except (OSError, ValueError) as e: print(name, errno.EPERM if isinstance(e, ValueError) else e.errno)
a, b = socket.socketpair()
zero = struct.pack('i', 0)
what('owner', lambda: fcntl.fcntl(a, fcntl.F_SETOWN, 0))
what('signal', lambda: fcntl.fcntl(a, 10, 9))
what('owner_ioctl', lambda: fcntl.ioctl(a, 0x8901, zero))
what('async', lambda: fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC))
what('not_async', lambda: fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) & ~os.O_ASYNC))
what('async_ioctl', lambda: fcntl.ioctl(0, 0x5452, struct.pack('i', 1)))
what('core', lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
r, w = os.pipe()
what('foreground', lambda: fcntl.ioctl(r, 0x5410, zero))
what('size', lambda: fcntl.ioctl(r, 0x5414, b'........'))
";
    const BY_TERMINAL: &str = "import os, subprocess, sys; controller, terminal = os.openpty(); \
        sys.exit(subprocess.run(sys.argv[1:], stdin=terminal).returncode)";
    let by_terminal = |command: &Command| -> String {
        let command = &mut place::behind(command, "/usr/bin/python3", &["-c", BY_TERMINAL]);
        let output = finish(spawn(command));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let place = Place::new();
    let script = place.dir.path().join("tries.py");
    fs::write(&script, TRIES).unwrap();
    let script = script.display().to_string();
    let mut direct = Command::new("/usr/bin/python3");
    let outside = by_terminal(direct.arg(&script));
    let expected = "owner 0\nsignal 0\nowner_ioctl 0\nasync 0\nnot_async 0\nasync_ioctl 0\ncore 0\nforeground 25\nsize 25\n";
    assert_eq!(outside, expected);
    let args = [
        "run",
        "--sandbox",
        "--ro",
        &script,
        "--",
        "/usr/bin/python3",
        &script,
    ];
    let inside = by_terminal(&place.command(&args));
    let refused = "owner 38\nsignal 38\nowner_ioctl 38\nasync 38\nnot_async 0\nasync_ioctl 38\ncore 38\nforeground 38\nsize 38\n";
    assert_eq!(inside, refused);
    let limit = place.ok(&[
        "run",
        "--sandbox",
        "--",
        "/usr/bin/python3",
        "-c",
        "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))",
    ]);
    assert_eq!(limit, "(1, 1)\n");
}

#[test]
fn its_status_is_the_programs() {
    let place = Place::new();
    let status = |script: &str| {
        let output = place.run(&["run", "--sandbox", "--", "sh", "-c", script]);
        output.status.code()
    };
    assert_eq!(status("exit 7"), Some(7));
    assert_eq!(status("kill -TERM $$"), Some(143));
    place.fails(
        &[
            "run",
            "--sandbox",
            "--port",
            "link:x,pcap=/dev/null",
            "--",
            "true",
        ],
        125,
        "capture",
    );
    place.fails(
        &["run", "--sandbox", "--port", "packet:lo", "--", "true"],
        125,
        "all interfaces",
    );
    place.fails(
        &["run", "--sandbox", "--ro", "/no/such", "--", "true"],
        125,
        "/no/such",
    );
}

/// What one of examples/sandbox says.
fn example(name: &str) -> String {
    let place = Place::new();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sandbox");
    let script = scripts.join(name);
    let ours = place.command(&[]);
    let folder = Path::new(env!("CARGO_BIN_EXE_ring3")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.arg(script).env("PATH", path).env("HOME", "/root");
    command.envs(
        ours.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let output = finish(spawn(&mut command));
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_service_behind_somebody_s_rules() {
    let wanted = "outside: http://198.51.100.1/ answers\noutside: http://198.51.100.1:9090/ does not answer\n\
                  service: http://127.0.0.1:9090/ answers\nservice: http://198.51.100.10/ does not answer\n\
                  its try is in the gateway's log\n";
    assert_eq!(example("service.sh"), wanted);
}

/// Without an internet the index is not reached, which is why its line is not compared.
#[test]
fn an_agent_reaches_its_index_and_nothing_else() {
    let said = example("agent.sh");
    let (index, rest) = said.split_once('\n').unwrap();
    assert!(index.starts_with("the index:"), "{said}");
    let wanted = "another name:          no: [Errno -3] Temporary failure in name resolution\n\
                  an address:            no: [Errno 113] No route to host\n\
                  a tunnel over UDP:     no: [Errno 113] No route to host\n\
                  another's name server: no: [Errno 113] No route to host\n\
                  a raw socket:          no: timed out\n\
                  a name as a message:   no: REFUSED\n\
                  the host, directly:    no: ENOSYS\n\
                  refused: the name example.com\n\
                  refused: tcp to 1.1.1.1:443\n\
                  refused: udp to 1.1.1.1:443\n\
                  refused: udp to 1.1.1.1:53\n\
                  refused: an echo request to 1.1.1.1\n\
                  refused: the name c2VjcmV0.attacker.example\n";
    assert_eq!(rest, wanted);
}

#[test]
fn the_example_runs() {
    let wanted = "200\n200\nthe home folder is not there\nnor are the processes of others\n\
                  and none of them can be sent a signal\nresult\n";
    assert_eq!(example("run.sh"), wanted);
}

/// Attributes of files, FIFOs, a home folder, files of one's own in /proc: what these programs insist on.
#[test]
fn everyday_programs_work() {
    let place = Place::new();
    let given = tempfile::tempdir().unwrap();
    let script = r#"
set -e
cd "$1"
git init -q a
git -C a config user.name N
git -C a config user.email e@example.org
echo x >a/file
chmod +x a/file
git -C a add file
git -C a commit -qm first
git clone -q a b
git -C b log --format=%s
git -C b status --short
stat -c %a b/file
touch -d @1000000000 a/file
cp -p a/file copy
tar -cf a.tar a
mkdir c
tar -C c -xf a.tar
stat -c %Y copy c/a/file
/usr/bin/python3 -c 'import os; os.rename("copy", "c/moved"); os.link("c/moved", "linked")'
mkfifo fifo
python3 - <<'END'
import os, subprocess
subprocess.run(["true"], close_fds=True, check=True)
print(sorted(set(os.listdir("/proc/self/fd")) - {"0", "1", "2", "3"}) == [], os.listdir("/proc/self/task") == [str(os.getpid())])
print(open("/proc/self/comm").read().strip(), open(f"/proc/{os.getpid()}/task/{os.getpid()}/stat").read().split()[1])
END
case $HOME in /tmp/ring3-sandbox-*) ls "$HOME";; *) echo "HOME is $HOME";; esac
sleep 1000 &
"#;
    let folder = given.path().to_str().unwrap();
    let mut command = place.command(&[
        "run",
        "--sandbox",
        "--tmp",
        "--rw",
        folder,
        "--",
        "sh",
        "-c",
    ]);
    command.args([script, "sh", folder]).env("HOME", "/root");
    let output = finish(spawn(&mut command));
    let wanted = "first\n755\n1000000000\n1000000000\nTrue True\npython3 (python3)\n";
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        wanted,
        "{output:?}"
    );
    // What is left in the background ends with the sandbox, and that is no news.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

/// `ps` and what programs ask of the machine: the sandbox's own processes are there, and no other.
#[test]
fn processes_see_one_another() {
    let place = Place::new();
    let other = Command::new("sleep").arg("1000").spawn();
    let mut other = other.expect("sleep");
    let script = r#"
sleep 1001 & one=$!
ps -eo args= | grep -c '^sleep 100[01]$'
cat /proc/$one/comm
tr '\0' ' ' </proc/$one/cmdline; echo
grep -c ^State: /proc/$one/status
cat /proc/$1/comm 2>&1 | grep -o 'Permission denied'
cat /proc/1/environ 2>&1 | grep -o 'Permission denied'
for file in cpuinfo meminfo loadavg uptime stat sys/kernel/osrelease; do [ -s /proc/$file ] || head -c 1 /proc/$file >/dev/null || echo no $file; done
free >/dev/null && nproc >/dev/null && echo known
kill $one
"#;
    let number = other.id().to_string();
    let run = ["run", "--sandbox", "--", "sh", "-c", script, "sh", &number];
    let said = place.ok(&run);
    other.kill().unwrap();
    other.wait().unwrap();
    let wanted = "1\nsleep\nsleep 1001 \n1\nPermission denied\nPermission denied\nknown\n";
    assert_eq!(said, wanted);
    place.is_empty();
}

/// Semaphores, shared memory and named unix sockets are the sandbox's own, and go with it.
#[test]
fn processes_within_work_together() {
    let place = Place::new();
    let given = tempfile::tempdir().unwrap();
    let script = r#"
import asyncio, multiprocessing, os, socket, sys, threading
from multiprocessing import Lock, Pool, Queue, shared_memory
def twice(n): return 2 * n
def fill(queue, lock):
    with lock: queue.put(7)
os.chdir(sys.argv[1])
with Pool(2) as pool: print(pool.map(twice, range(3)))
queue, lock = Queue(), Lock()
child = multiprocessing.Process(target=fill, args=(queue, lock)); child.start()
print(queue.get(), child.join())
memory = shared_memory.SharedMemory("ring3-test", create=True, size=100)
with open("/dev/shm/ring3-test") as file: print(os.path.dirname(os.readlink(f"/proc/self/fd/{file.fileno()}")), file=sys.stderr)
print(os.listdir("/dev/shm"), os.stat("/dev/shm/ring3-test").st_size)
os.rename("/dev/shm/ring3-test", "/dev/shm/moved"); os.rename("/dev/shm/moved", "/dev/shm/ring3-test")
memory.close(); memory.unlink()
print(os.listdir("/dev/shm"))
for name in "named", sys.argv[1] + "/absolute", "\0abstract":
    server = socket.socket(socket.AF_UNIX); server.bind(name); server.listen()
    client = socket.socket(socket.AF_UNIX); client.connect(name)
    other, peer = server.accept()
    print(all(it in (name, name.encode()) for it in (server.getsockname(), client.getpeername(), other.getsockname())), repr(peer))
    client.send(b"x"); print(other.recv(1), oct(os.stat(name).st_mode) if name[0] != "\0" else "")
async def ask():
    async def serve(reader, writer): writer.write(await reader.readline()); writer.close()
    server = await asyncio.start_unix_server(serve, "asyncio")
    reader, writer = await asyncio.open_unix_connection("asyncio")
    writer.write(b"hello\n"); print(await reader.readline())
asyncio.run(ask())
"#;
    let folder = given.path().to_str().unwrap();
    let mut command = place.command(&[
        "run",
        "--sandbox",
        "--rw",
        folder,
        "--",
        "/usr/bin/python3",
        "-c",
    ]);
    let output = finish(spawn(command.args([script, folder])));
    let named = "True ''\nb'x' 0o140755\n";
    let wanted = format!(
        "[0, 2, 4]\n7 None\n['ring3-test'] 100\n[]\n{named}{named}True ''\nb'x' \nb'hello\\n'\n"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        wanted,
        "{output:?}"
    );
    assert!(output.status.success(), "{output:?}");
    place.is_empty();
    let memory = String::from_utf8(output.stderr).unwrap();
    assert!(memory.starts_with("/dev/shm/ring3-sandbox-"), "{memory}");
    let memory = PathBuf::from(memory.trim());
    place::eventually("its shared memory has gone", || !memory.exists());
}

#[test]
fn it_is_listed_and_taken_down() {
    let place = Place::new();
    let mut command = place.command(&["run", "--sandbox", "-n", "a", "--", "sleep", "1000"]);
    let child = spawn(&mut command);
    place::eventually("the program is listed", || {
        let output = place.run(&["stat", "a", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        status["procs"][0]["command"] == "sleep" && status["procs"].as_array().unwrap().len() == 1
    });
    place.fails(&["log", "a"], 1, "sandboxed");
    // The remedy is one that a sandbox takes.
    let capture = ["capture", "a", "lo", "-w", "/dev/null"];
    place.fails(&capture, 1, "start it with `--record FOLDER`");
    // A line says why something is not known; none is empty.
    let text = place.ok(&["stat", "a"]);
    assert!(
        text.contains("kernel     not asked: it is sandboxed"),
        "{text}"
    );
    assert!(
        !text.contains("0x0") && text.lines().all(|line| line.split_whitespace().count() > 1),
        "{text}"
    );
    assert!(!text.contains("0M of"), "{text}");
    place.ok(&["down", "a"]);
    assert_eq!(finish(child).status.code(), Some(143));
    place.is_empty();
}

/// Its network is what its ports lead to: here another node, which nobody confines.
#[test]
fn a_link_leads_out() {
    let place = Place::new();
    place.ok(&["up", "b", "--port", "link:ab,addr=10.9.0.2/24"]);
    let script = "ping -c 1 -W 5 10.9.0.2 >/dev/null && ip -br link | grep -c .";
    let port = "link:ab,addr=10.9.0.1/24";
    let args = [
        "run",
        "--sandbox",
        "-n",
        "a",
        "--port",
        port,
        "--",
        "sh",
        "-c",
        script,
    ];
    assert_eq!(place.ok(&args), "2\n");
    // The far end of the link is given back.
    place.ok(&[
        "run", "-n", "a", "--port", port, "--", "ping", "-c", "1", "-W", "5", "10.9.0.2",
    ]);
    place.ok(&["down", "b"]);
    place.is_empty();
}

/// What is started later is in the same sandbox: the same network, the same processes, the same wall.
#[test]
fn a_program_enters_a_sandbox() {
    let place = Place::new();
    let program = attacker(&place).display().to_string();
    let script =
        "/usr/bin/python3 -m http.server -d /usr/share/doc 80 2>/dev/null & exec sleep 1000";
    let mut args = vec!["run", "--sandbox", "--tmp", "--ro", &program, "-n", "a"];
    args.extend(["--", "sh", "-c", script]);
    let first = spawn(&mut place.command(&args));
    place.ok(&["wait", "a", "tcp", "80", "--timeout", "20"]);
    let enter = |args: &[&str]| {
        let all: Vec<&str> = ["exec", "a", "--"].iter().chain(args).copied().collect();
        place.run(&all)
    };
    let script = "curl -s -o /dev/null -w '%{http_code}\\n' http://127.0.0.1/; \
        echo x >$TMPDIR/x; cat $TMPDIR/x; exit 7";
    let output = enter(&["sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "200\nx\n");
    assert_eq!(
        enter(&["sh", "-c", "kill -TERM $$"]).status.code(),
        Some(143)
    );
    place.fails(&["exec", "a", "--", "/no/such"], 127, "/no/such");
    // Signals go in, and a caller's death.
    let sleep = ["exec", "a", "--", "sleep", "1001"];
    let child = spawn(&mut place.command(&sleep));
    let runs = |what: &str| {
        let status = place.stat("a");
        let count = status["procs"].as_array().unwrap().iter();
        count.filter(|it| it["command"] == what).count()
    };
    place::eventually("two sleep", || runs("sleep") == 2);
    let output = place::said_until_heard(child, nix::sys::signal::Signal::SIGTERM);
    assert_eq!(output.status.code(), Some(143));
    let mut child = spawn(&mut place.command(&sleep));
    place::eventually("two sleep again", || runs("sleep") == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    place::eventually("it ends with its caller", || runs("sleep") == 1);
    // It is behind the same wall.
    let targets = Targets::new(&place);
    let what: Vec<String> = ATTACKS.map(str::to_owned).to_vec();
    let mut args = vec![program.as_str(), "--take-over"];
    let words = targets.args();
    args.extend(words.iter().map(String::as_str));
    args.extend(what.iter().map(String::as_str));
    let output = enter(&args);
    place.ok(&["down", "a"]);
    assert_eq!(finish(first).status.code(), Some(143));
    place.is_empty();
    let inside = results(output);
    for attack in &what {
        assert!(inside[attack] < 0, "{attack} succeeds inside");
    }
}
