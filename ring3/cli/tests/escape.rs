// SPDX-License-Identifier: GPL-2.0
//! Host calls without end from within a sandbox: `hammer.c` has taken its node over and fuzzes numbers and arguments. Only what the list lets
//! through may come to anything, and what lies outside stays as it is. RING3_ESCAPE_CALLS=100000000 is the long form, which
//! `tools/test-long escape` runs. Needs `make image gate`.

mod place;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

use place::Place;
use ring3_sandbox::list::{
    Check, Checked, ALLOWED, BEHALF, CHECKED, OWN, REFUSED, UNSUPPORTED, WITHOUT,
};

/// Which a program outside may read, write, move and start.
const FILES: [&str; 9] = [
    "secret", "secret2", "secret3", "secret4", "secret5", "secret6", "spare", "spare2", "script",
];
/// Their calls take a word of the stack.
const OPTIONS: [&str; 5] = [
    "-static",
    "-O2",
    "-w",
    "-fno-stack-protector",
    "-mno-red-zone",
];
const CALLS: u64 = 300_000;
/// At most so many sandboxes come to their last act, after which nobody else can use their link.
const RUNS: u64 = 8;
/// Links of the gateway, which with the neighbour's and the one that leads out has as many as a node may have.
const LINKS: u32 = 14;
/// A sandbox that has stopped itself, or its keeper, says nothing any more.
const SILENCE: Duration = Duration::from_secs(20);
/// Sandboxes one after another that come to nothing: then something else is wrong.
const VAIN_MAX: u32 = 8;

/// The list in the words of hammer.c.
fn list() -> String {
    let mut text = String::new();
    let unsupported = UNSUPPORTED.call.nr;
    // What the warden makes of these is seen at the files.
    let asked = BEHALF.iter().map(|it| &it.call).chain([&OWN]);
    for call in ALLOWED.iter().chain(asked) {
        if call.nr != unsupported {
            text += &format!("{} pass\n", call.nr);
        }
    }
    for refused in REFUSED {
        text += &format!("{} {}\n", refused.call.nr, libc::EPERM);
    }
    for it in WITHOUT {
        text += &format!("{} {}\n", it.call.nr, libc::EOPNOTSUPP);
    }
    for checked in CHECKED {
        text += &conditions(checked.call.nr, libc::ENOSYS, &alternatives(checked));
    }
    // What it names is refused: all but this passes.
    let [[Check::IsNot(index, value)]] = UNSUPPORTED.when else {
        panic!("another condition than one that is not");
    };
    let holes = vec![format!("={index}:{value}")];
    text + &conditions(unsupported, libc::EOPNOTSUPP, &holes)
}

fn alternatives(checked: &Checked) -> Vec<String> {
    let word = |check: &Check| match *check {
        Check::Is(index, value) => format!("={index}:{value}"),
        Check::IsNot(index, value) => format!("!{index}:{value}"),
        Check::Clear(index, bits) => format!("&{index}:{bits}"),
        Check::Bits(index, libc::S_IFMT, value) => format!("~{index}:{value}"),
        Check::Bits(..) => unreachable!("of modes only"),
        Check::Null(index) => format!("0{index}:0"),
        Check::Among(..) => unreachable!("it stands alone"),
    };
    let all = checked.when.iter().flat_map(|all| match all {
        [Check::Among(index, words)] => words
            .iter()
            .map(|(_, value)| format!("={index}:{value}"))
            .collect(),
        all => vec![all.iter().map(word).collect::<Vec<_>>().join(" ")],
    });
    all.collect()
}

fn conditions(nr: i64, errno: i32, alternatives: &[String]) -> String {
    format!("{nr} if {errno} {}\n", alternatives.join(" | "))
}

/// What is to stay as it is, of the same user.
struct Sentinels {
    folder: PathBuf,
    name: String,
    process: Child,
    servers: [UnixListener; 2],
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Sentinels {
    /// Of `user`, who is this process's or, as root, any.
    fn new(place: &Place, user: u32) -> Sentinels {
        // Tests run side by side.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = place.dir.path().join(format!("outside{count}"));
        fs::create_dir_all(folder.join("below")).unwrap();
        for file in FILES {
            fs::write(folder.join(file), "#!/bin/true\n").unwrap();
        }
        let program = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.join("script"), program).unwrap();
        let name = format!("ring3-sentinel-{}-{count}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let servers = [
            UnixListener::bind(folder.join("server")).unwrap(),
            UnixListener::bind_addr(&address).unwrap(),
        ];
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        servers
            .iter()
            .for_each(|it| it.set_nonblocking(true).unwrap());
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let own = ["", "below"].iter().chain(&FILES);
        for path in own.chain(&["server"]).map(|file| folder.join(file)) {
            chown(path, Some(user), Some(user)).unwrap();
        }
        let mut sleep = as_user(user, "sleep", &[]);
        let process = sleep.arg("100000").stdin(Stdio::null());
        let process = process.process_group(0).spawn();
        let sentinels = Sentinels {
            folder,
            name,
            process: process.expect("sleep"),
            servers,
            tcp,
            udp,
        };
        place::eventually("the sentinel sleeps", || {
            sentinels.of_process("status").contains("Name:\tsleep")
        });
        sentinels
    }

    fn of_process(&self, file: &str) -> String {
        let path = format!("/proc/{}/{file}", self.process.id());
        fs::read_to_string(path).unwrap()
    }

    /// All that a call of somebody else's could have changed.
    fn state(&self) -> Vec<String> {
        let mut state = Vec::new();
        let mut paths: Vec<_> = fs::read_dir(&self.folder).unwrap().flatten().collect();
        paths.sort_by_key(fs::DirEntry::file_name);
        let paths = paths.iter().map(fs::DirEntry::path);
        for path in paths.chain([self.folder.clone()]) {
            let it = path.symlink_metadata().unwrap();
            let text = fs::read(&path).unwrap_or_default();
            let times = (it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec());
            let who = (it.mode(), it.uid(), it.nlink(), it.ino());
            state.push(format!("{path:?} {who:?} {times:?} {text:?}"));
        }
        const KEPT: [&str; 8] = [
            "TracerPid",
            "Uid",
            "NSsid",
            "NSpgid",
            "SigPnd",
            "ShdPnd",
            "Cpus_allowed",
            "Threads",
        ];
        let status = self.of_process("status");
        let kept = |line: &&str| KEPT.iter().any(|word| line.starts_with(word));
        state.extend(status.lines().filter(kept).map(str::to_owned));
        let lives = ["State:\tR", "State:\tS"].map(|words| status.contains(words));
        state.push(format!("{}", lives.contains(&true)));
        state.push(self.of_process("limits"));
        state.push(self.of_process("oom_score_adj"));
        let stat = self.of_process("stat");
        // Priority and niceness.
        let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        state.push(fields.skip(15).take(2).collect::<Vec<_>>().join(" "));
        state.push(format!("{}", self.servers[0].accept().is_err()));
        state.push(format!("{}", self.servers[1].accept().is_err()));
        state.push(format!("{}", self.tcp.accept().is_err()));
        state.push(format!("{}", self.udp.recv(&mut [0]).is_err()));
        state
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The user of [`Place::ordinary`].
fn ordinary_user(place: &Place) -> u32 {
    let _ = place.ordinary(&[]);
    place.dir.path().metadata().unwrap().uid()
}

/// A program that is not ring3.
fn as_user(user: u32, program: &str, args: &[&str]) -> Command {
    let is_own = user == nix::unistd::geteuid().as_raw();
    let mut command = Command::new(if is_own { program } else { "setpriv" });
    if !is_own {
        let id = user.to_string();
        let ids = ["--reuid", &id, "--regid", &id, "--clear-groups"];
        command.args(ids).args(["--bounding-set=-all", program]);
    }
    command.args(args);
    command
}

fn ok(mut command: Command) {
    let output = place::finish(place::spawn(&mut command));
    assert!(output.status.success(), "{output:?}");
}

/// Another sandbox of the same user, behind the same gateway, which knows what its memory holds.
struct Neighbour {
    child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Neighbour {
    const HOLDS: &str = "
import hashlib, os, subprocess
held = bytearray(os.urandom(1 << 24))
before = hashlib.sha256(held).digest()
print('holds', flush=True)
input()
subprocess.run(['ping', '-c', '1', '-W', '15', '10.3.0.5'], check=True, stdout=subprocess.DEVNULL)
print('whole' if hashlib.sha256(held).digest() == before else 'changed', flush=True)
";

    fn start(place: &Place) -> Neighbour {
        let port = "link:b,addr=10.3.0.6/30,gw=10.3.0.5";
        let run = ["run", "--sandbox", "--port", port, "--"];
        let script = ["/usr/bin/python3", "-c", Neighbour::HOLDS];
        let mut command = place.ordinary(&[&run[..], &script].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut neighbour = Neighbour {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        assert_eq!(neighbour.says(), "holds");
        neighbour
    }

    fn says(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn end(mut self) -> String {
        self.input.write_all(b"\n").unwrap();
        let said = self.says();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

/// What one sandbox has come to.
#[derive(Debug, Default)]
struct Run {
    calls: u64,
    passed: u64,
    has_scribbled: bool,
    findings: Vec<String>,
    error: String,
}

impl Run {
    fn of(place: &Place, sentinels: &Sentinels, link: u32, seed: u64, calls: u64) -> Run {
        let folder = sentinels.folder.display().to_string();
        let secret = sentinels.folder.join("secret").display().to_string();
        let port = format!("link:a{link},addr=10.4.{link}.2/30,gw=10.4.{link}.1");
        let run = ["run", "--sandbox", "-n", "hammered", "--port", &port];
        let limits = ["--proc-mem", "512M", "--files", "1024", "--file-size", "1M"];
        let mut args = [&run[..], &limits, &["--tmp", "--cpu-time", "3600"]].concat();
        args.extend(["--pids", "256"]);
        let hammer = place.programs.path().join("hammer").display().to_string();
        let (seed, calls) = (seed.to_string(), calls.to_string());
        let pids = [
            std::process::id(),
            sentinels.process.id(),
            std::os::unix::process::parent_id(),
            1,
        ];
        let pids = pids.map(|pid| pid.to_string());
        args.extend([
            "--",
            &hammer,
            &seed,
            &calls,
            &folder,
            &secret,
            &sentinels.name,
        ]);
        args.extend(pids.iter().map(String::as_str));
        let list = place.programs.path().join("list");
        let mut command = place.ordinary(&args);
        command
            .stdin(fs::File::open(list).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let lines = lines(&mut child);
        let mut run = Run::default();
        run.hear(&lines);
        // What it has made of its keeper may not end by itself; its owner takes it down. Or it has ended meanwhile.
        let _ = place::finish(place::spawn(&mut place.ordinary(&["down", "hammered"])));
        let mut status = None;
        let error = child.stderr.take().unwrap();
        let error = std::thread::spawn(move || std::io::read_to_string(error).unwrap_or_default());
        place::eventually("the warden ends", || {
            status = child.try_wait().expect("wait");
            status.is_some()
        });
        let status = status.unwrap();
        run.error = error.join().unwrap();
        assert!(
            status.code().is_some(),
            "the warden died: {status}: {run:?}"
        );
        run
    }

    /// Until its end, or nothing is heard of it any more.
    fn hear(&mut self, lines: &Receiver<String>) {
        while let Ok(line) = lines.recv_timeout(SILENCE) {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["calls", calls, "passed", passed] => {
                    self.calls = calls.parse().unwrap_or(self.calls);
                    self.passed = passed.parse().unwrap_or(self.passed);
                }
                ["scribbled", count] => self.has_scribbled = *count != "0",
                ["over"] => return,
                _ => self.findings.push(line),
            }
        }
    }
}

fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in output.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

#[test]
fn only_what_is_listed_is_done() {
    let wanted = std::env::var("RING3_ESCAPE_CALLS").map(|it| it.parse().expect("a number"));
    let wanted = wanted.unwrap_or(CALLS);
    let place = Place::new();
    let mut gateway = vec!["up", "--sandbox", "gw"];
    let links = (0..LINKS).map(|link| format!("link:a{link},addr=10.4.{link}.1/30"));
    let links: Vec<String> = links.chain(["link:b,addr=10.3.0.5/30".into()]).collect();
    for serve in &links {
        gateway.extend(["--serve", serve]);
    }
    gateway.extend(["--port", "link:w,addr=198.51.100.1/24"]);
    ok(place.ordinary(&gateway));
    place::compiled(&place, "hammer", &OPTIONS);
    fs::write(place.programs.path().join("list"), list()).unwrap();
    let sentinels = Sentinels::new(&place, ordinary_user(&place));
    let before = sentinels.state();
    let neighbour = Neighbour::start(&place);

    let (mut calls, mut passed, mut scribbled, mut vain, mut link) = (0, 0, 0u32, 0u32, 0);
    let mut seed = u64::from(std::process::id()) << 20;
    while calls < wanted || scribbled == 0 {
        let most = wanted.saturating_sub(calls).min(wanted.div_ceil(RUNS));
        let run = Run::of(&place, &sentinels, link, seed, most.max(1));
        assert_eq!(run.findings, Vec::<String>::new(), "seed {seed}");
        assert_eq!(sentinels.state(), before, "seed {seed}");
        (calls, passed) = (calls + run.calls, passed + run.passed);
        scribbled += u32::from(run.has_scribbled);
        let is_vain = run.calls == 0;
        vain = if is_vain { vain + 1 } else { 0 };
        let words =
            format!("{calls} calls, {passed} of them let through, {scribbled} times scribbled");
        println!("seed {seed}: {words}: {}", run.error.trim());
        assert!(vain < VAIN_MAX, "the last sandboxes have come to nothing");
        link = (link + u32::from(run.has_scribbled || is_vain)) % LINKS;
        seed += 1;
    }
    assert!(passed > 0 && passed < calls);
    assert_eq!(neighbour.end(), "whole");
    // The gateway still serves, and hears its owner.
    ok(place.ordinary(&["stat", "gw"]));
    ok(place.ordinary(&["down", "gw"]));
}

/// What a way out comes to, and by which error a host says that it would have gone it.
type Ways = BTreeMap<String, (i32, i32)>;

fn ways(output: Output) -> Ways {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let ways = text.lines().map(|line| {
        let mut words = line.split(' ');
        let name = words.next().unwrap().to_owned();
        let mut number = || words.next().unwrap().parse().unwrap();
        (name, (number(), number()))
    });
    ways.collect()
}

fn is_gone((result, goes): (i32, i32)) -> bool {
    result == 0 || result == goes
}

/// `probes.c`: by the same user, outside first. A host may refuse its users some of them, and containers do; most it does not.
#[test]
fn each_way_out_is_shut() {
    const LEAST_WAYS: usize = 200;
    const LEAST_OUTSIDE: usize = 60;
    let mut kinds = vec![false];
    if nix::unistd::geteuid().is_root() {
        kinds.push(true);
    }
    for is_root in kinds {
        let place = Place::new();
        let probes = place::compiled(&place, "probes", &OPTIONS);
        let probes = probes.display().to_string();
        let user = if is_root { 0 } else { ordinary_user(&place) };
        let words = |sentinels: &Sentinels| {
            let (folder, name) = (sentinels.folder.display(), &sentinels.name);
            [
                folder.to_string(),
                name.clone(),
                sentinels.process.id().to_string(),
            ]
        };
        let sentinels = Sentinels::new(&place, user);
        let args = words(&sentinels);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = as_user(user, &probes, &args);
        let outside = ways(place::finish(place::spawn(
            command.stdin(Stdio::null()).process_group(0),
        )));
        drop(sentinels);

        let sentinels = Sentinels::new(&place, user);
        let before = sentinels.state();
        let given = place.dir.path().join(format!("given{user}"));
        fs::create_dir(&given).unwrap();
        chown(&given, Some(user), Some(user)).unwrap();
        let given = given.display().to_string();
        let run = ["run", "--sandbox", "--rw", &given, "--"];
        let args = words(&sentinels);
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.push(&given);
        let args = [&run[..], &[&probes, "--take-over"], &args].concat();
        let mut command = match is_root {
            true => place.command(&args),
            false => place.ordinary(&args),
        };
        let inside = ways(place::finish(place::spawn(command.stdin(Stdio::null()))));
        assert_eq!(sentinels.state(), before, "user {user}");
        assert!(inside.len() >= LEAST_WAYS, "{}", inside.len());
        assert!(outside.keys().eq(inside.keys()));
        let gone: Vec<_> = inside.iter().filter(|it| is_gone(*it.1)).collect();
        assert!(gone.is_empty(), "user {user}: {gone:?}");
        let shown = outside.values().filter(|it| is_gone(**it)).count();
        println!(
            "user {user}: {} ways, {shown} of them are seen to lead out where nothing confines",
            inside.len()
        );
        assert!(shown >= LEAST_OUTSIDE, "user {user}: {outside:?}");
        let refused = [libc::EPERM, libc::EACCES, libc::ENOSYS];
        let odd = outside.iter().filter(|(name, way)| {
            !name.starts_with('?') && !is_gone(**way) && !refused.contains(&way.0)
        });
        let odd: Vec<_> = odd.collect();
        assert!(odd.is_empty(), "outside, user {user}: {odd:?}");
    }
}
