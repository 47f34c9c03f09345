// SPDX-License-Identifier: GPL-2.0
//! One program of a node is killed, stopped or kept short by the host, again and again. Its neighbours
//! on the node are served all the time: the node is never poisoned, nobody hangs, no byte is wrong.
//!
//! 30 kills of each program, 1,000 with `--long`; `--seed N` repeats the choices (not the instants).

use super::storm::{Participant, Rng, STANDSTILL};
use super::{Checked, Verdict, ensure, helper, missing, path_of, trial};
use crate::exec::{self, Group, until};
use crate::node::{self, Node, SHORT};
use crate::scratch::{self, Scratch};
use crate::{Options, paths};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const KILLS: u32 = 30;
const KILLS_LONG: u32 = 1000;
/// A client that is served says so every 20 ms; on a busy machine it may not run for a while.
const PATIENCE: Duration = Duration::from_secs(5);
/// A round trip beside a program that is stopped takes no longer.
const LATE_MS: f64 = 10.0;
/// Of the memory cgroup of one program.
const MEMORY: u64 = 60 << 20;

const SERVER: &str = "10.231.5.1";
const CLIENT: &str = "10.231.5.2";

/// The tests that fail until a death, a stop or a limit in kernel code is survived, and why.
const NOT_YET: &str = "a node does not survive this at every instant yet; --long runs it";

type Check = fn(Options) -> Checked;

pub fn trials(options: Options) -> Vec<Trial> {
    let all: [(&str, bool, Check); 9] = [
        ("neighbours_kill_nginx", true, |o| kills(&NGINX, o)),
        ("neighbours_kill_redis", true, |o| kills(&REDIS, o)),
        ("neighbours_kill_iperf3", true, |o| kills(&IPERF3, o)),
        ("neighbours_stop", false, stops),
        ("neighbours_address_space", true, address_space),
        ("neighbours_processor", true, |o| limited("processor", o)),
        ("neighbours_parent", true, |o| limited("parent", o)),
        ("neighbours_file_size", true, |o| limited("file-size", o)),
        ("neighbours_memory", false, memory),
    ];
    let each = |(name, is_held, check): (&str, bool, Check)| {
        trial(name.into(), move || match is_held || options.long {
            true => check(options),
            false => Ok(Verdict::Ignored(NOT_YET.into())),
        })
    };
    all.into_iter().map(each).collect()
}

/// Those of a node to whom nothing may happen.
struct Neighbours {
    all: Vec<Participant>,
    node: Node,
}

impl Neighbours {
    /// On a node with a link of this name.
    fn start(link: &str, rng: &mut Rng) -> Result<Neighbours, String> {
        let node = Node::up(&[format!("link:{link},addr={SERVER}/24")])?;
        let seed = rng.below(1_000_000).to_string();
        let all = vec![
            Participant::start(&node, &["watch"])?,
            Participant::start(&node, &["serve", "7400"])?,
            Participant::start(&node, &["talk", "127.0.0.1", "7400", &seed])?,
        ];
        let mut neighbours = Neighbours { all, node };
        neighbours.are_served()?;
        Ok(neighbours)
    }

    /// Each gets on, or has at least done so lately, and has seen no wrong byte.
    fn are_served(&mut self) -> Result<(), String> {
        let before = self.all[0].ticks();
        let start = Instant::now();
        let moved = until(PATIENCE, || {
            let all_move = self.all[0].ticks() >= before + 2
                && self.all.iter().all(|it| it.still() < STANDSTILL);
            all_move || self.all[0].ended().is_some()
        });
        for it in &mut self.all {
            let words = it.words();
            let end = it.ended();
            ensure(end.is_none() && words.is_empty(), || {
                format!("'{}' ended: {end:?} {words:?}", it.name())
            })?;
            ensure(it.still() < STANDSTILL, || {
                format!("'{}' stands still", it.name())
            })?;
        }
        ensure(moved, || {
            format!("nobody is served any more, {:?} long", start.elapsed())
        })
    }

    /// The vCPU's owner and the connections of the programs, for the report of a failure.
    fn state(&self, far: &Node) -> String {
        let mut said = String::new();
        for node in [&self.node, far] {
            let name = &node.name;
            let words: [&[&str]; 3] = [
                &["stat", name],
                &["exec", name, "--", "ss", "-tnoimp"],
                &[
                    "exec",
                    name,
                    "--",
                    "cat",
                    "/proc/net/softnet_stat",
                    "/proc/net/dev",
                ],
            ];
            for argv in words {
                match exec::run(&mut node::ring3(argv), SHORT) {
                    Ok(outcome) => {
                        said += &format!("{argv:?}:\n{}{}\n", outcome.stdout, outcome.stderr)
                    }
                    Err(why) => said += &format!("{argv:?}: {why}\n"),
                }
            }
        }
        said
    }

    fn poison(&self) -> Result<(), String> {
        let stat = exec::run(&mut node::ring3(["stat", &self.node.name, "--json"]), SHORT)?;
        let value: serde_json::Value =
            serde_json::from_str(&stat.stdout).map_err(|e| format!("{e}: {}", stat.report()))?;
        ensure(value["poison"].as_str().is_none(), || {
            format!("the node is poisoned: {}", value["poison"])
        })
    }
}

fn seed(options: Options) -> Rng {
    Rng(options.seed.unwrap_or(u64::from(std::process::id())))
}

/// Programs of which some are killed.
struct Load {
    name: &'static str,
    programs: &'static [&'static str],
    /// Its servers' commands, in `folder`, and what asks them; on the neighbours' node.
    argv: fn(&Path) -> Result<Vec<Vec<String>>, String>,
    /// The check of its bytes, as check.py has it; none: the neighbours check.
    check: &'static [&'static str],
    /// Which of the programs may be killed; none: the first one's children.
    victims: &'static [usize],
}

const NGINX: Load = Load {
    name: "nginx workers",
    programs: &["nginx", "wrk", "python3"],
    argv: nginx,
    check: &["http", SERVER, "7410", "large"],
    victims: &[],
};

const REDIS: Load = Load {
    name: "redis clients",
    programs: &["redis-server", "redis-benchmark", "python3"],
    argv: redis,
    check: &["redis", SERVER, "7411", "1"],
    victims: &[1, 2],
};

const IPERF3: Load = Load {
    name: "iperf3",
    programs: &["iperf3"],
    argv: iperf3,
    check: &[],
    victims: &[0, 1],
};

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn nginx(folder: &Path) -> Result<Vec<Vec<String>>, String> {
    let path = folder.display();
    let user = match rustix::process::geteuid().is_root() {
        true => "user root;",
        false => "",
    };
    let config = format!(
        "daemon off; worker_processes 2; {user} pid {path}/pid; error_log {path}/log;\n\
         events {{ worker_connections 512; }}\n\
         http {{ access_log off; sendfile on; keepalive_requests 1000000;\n\
         client_body_temp_path {path}; proxy_temp_path {path}; fastcgi_temp_path {path};\n\
         uwsgi_temp_path {path}; scgi_temp_path {path};\n\
         server {{ listen 7410; root {path}; }} }}\n"
    );
    std::fs::write(folder.join("conf"), config).map_err(|e| e.to_string())?;
    Ok(vec![
        words(&format!("nginx -p {path} -c {path}/conf -e {path}/log")),
        words("wrk -t 1 -c 16 -d 3600s http://127.0.0.1:7410/large"),
    ])
}

fn redis(folder: &Path) -> Result<Vec<Vec<String>>, String> {
    let dir = folder.display();
    let client = "redis-benchmark -p 7411 -l -q -c 5 -P 2 -d 1000 -r 1000 -t set,get";
    Ok(vec![
        words(&format!(
            "redis-server --port 7411 --bind 0.0.0.0 --protected-mode no --appendonly no --dir {dir}"
        )),
        words(client),
        words(client),
    ])
}

fn iperf3(_folder: &Path) -> Result<Vec<Vec<String>>, String> {
    Ok(vec![
        words("iperf3 -s -p 7412"),
        words("iperf3 -c 127.0.0.1 -p 7412 -P 2 -t 3600"),
    ])
}

/// The children of a process.
fn children(parent: u32) -> Vec<Pid> {
    let file = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

struct Running {
    argv: Vec<Vec<String>>,
    groups: Vec<Group>,
}

impl Running {
    fn spawn(node: &Node, argv: &[String]) -> Result<Group, String> {
        let program = path_of(&argv[0]).ok_or(format!("no {}", argv[0]))?;
        let argv = std::iter::once(&program).chain(&argv[1..]);
        node::background(&mut node.command(argv))
    }

    fn start(node: &Node, argv: Vec<Vec<String>>) -> Result<Running, String> {
        let mut groups = Vec::new();
        for words in &argv {
            groups.push(Running::spawn(node, words)?);
            // The first is a server, and the others find it.
            std::thread::sleep(Duration::from_millis(300));
        }
        Ok(Running { argv, groups })
    }

    /// Starts again what has ended.
    fn revive(&mut self, node: &Node) -> Result<(), String> {
        for (group, words) in self.groups.iter_mut().zip(&self.argv) {
            if group.wait(Duration::ZERO).is_some() {
                *group = Running::spawn(node, words)?;
            }
        }
        Ok(())
    }

    fn victim(&mut self, load: &Load, rng: &mut Rng) -> Result<Pid, String> {
        let mut all = Vec::new();
        if load.victims.is_empty() {
            let parent = self.groups[0].child().id();
            until(PATIENCE, || {
                all = children(parent);
                all.len() >= 2
            });
        }
        for &n in load.victims {
            all.extend(Pid::from_raw(self.groups[n].child().id() as i32));
        }
        ensure(!all.is_empty(), || "nobody is there to be killed".into())?;
        Ok(all[rng.below(all.len() as u64) as usize])
    }

    /// A process that was killed is gone: nothing may hold it.
    fn is_gone(&mut self, victim: Pid) -> bool {
        until(PATIENCE, || {
            self.groups.iter_mut().for_each(|group| {
                group.wait(Duration::ZERO);
            });
            !Path::new(&format!("/proc/{}", victim.as_raw_nonzero())).exists()
        })
    }
}

/// Of a process that should be gone, and of its parent, which has to wait for it.
fn state_of(victim: Pid) -> String {
    let read = |pid: &str, file: &str| {
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
    };
    let pid = victim.as_raw_nonzero().to_string();
    let status = read(&pid, "status");
    let field = |status: &str, name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.unwrap_or_default().replace('\t', " ")
    };
    let parent = field(&status, "PPid:").replace("PPid: ", "");
    let theirs = read(&parent, "status");
    let of = |status: &str| {
        [
            "Name:", "State:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigCgt:", "Threads:",
        ]
        .map(|name| field(status, name))
        .join(", ")
    };
    format!(
        "process {pid}: {}; its parent {parent}: {}, call {}",
        of(&status),
        of(&theirs),
        read(&parent, "syscall").trim()
    )
}

fn kills(load: &Load, options: Options) -> Checked {
    if let Some(why) = missing(load.programs)? {
        return Ok(Verdict::Ignored(why));
    }
    let mut rng = seed(options);
    let link = scratch::unique("nb");
    let mut neighbours = Neighbours::start(&link, &mut rng)?;
    let far = Node::up(&[format!("link:{link},addr={CLIENT}/24")])?;
    let folder = Scratch::in_memory()?;
    folder.noise("large", 300_000)?;
    let mut running = Running::start(&neighbours.node, (load.argv)(folder.path())?)?;
    if !load.check.is_empty() {
        let script = paths::root().join("tests/apps/check.py");
        let file = folder.file("large").to_string_lossy().into_owned();
        let role: Vec<&str> = load
            .check
            .iter()
            .map(|word| if *word == "large" { &file } else { *word })
            .collect();
        let command = far.command([Path::new("python3"), &script]);
        neighbours.all.push(Participant::spawn(command, &role)?);
        let checker = &neighbours.all[3];
        ensure(until(PATIENCE, || checker.ticks() > 0), || {
            format!("{} serves nobody: {:?}", load.name, checker.words())
        })?;
    }
    let all = if options.long { KILLS_LONG } else { KILLS };
    let start = Instant::now();
    for n in 1..=all {
        std::thread::sleep(Duration::from_micros(rng.below(50_000)));
        let outcome = (|| {
            let victim = running.victim(load, &mut rng)?;
            // It may have ended by itself.
            let _ = kill_process(victim, Signal::KILL);
            ensure(running.is_gone(victim), || {
                format!("who was killed does not go away: {}", state_of(victim))
            })?;
            neighbours.are_served()?;
            running.revive(&neighbours.node)
        })()
        .and_then(|()| match n % 50 == 0 || n == all {
            true => neighbours.poison(),
            false => Ok(()),
        });
        outcome.map_err(|why: String| {
            let poison = neighbours.poison().err().unwrap_or_default();
            let state = neighbours.state(&far);
            format!("{}: kill {n} of {all}: {why}; {poison}\n{state}", load.name)
        })?;
    }
    if let Some(checker) = neighbours.all.get(3) {
        // Its server is there, and it gets on in the end, too.
        let before = checker.ticks();
        ensure(until(PATIENCE, || checker.ticks() > before), || {
            format!("{} serves nobody in the end", load.name)
        })?;
    }
    println!(
        "{}: {all} kills in {:.1} s, all neighbours served",
        load.name,
        start.elapsed().as_secs_f64()
    );
    Ok(Verdict::Passed)
}

/// A busy program is stopped and goes on at random: round trips of its neighbours take no notice. What the host's own
/// kernel needs at the same time, on the same machine, is allowed besides.
fn stops(options: Options) -> Checked {
    let length = if options.long { 600 } else { 10 };
    let mut rng = seed(options);
    let link = scratch::unique("nb");
    let mut neighbours = Neighbours::start(&link, &mut rng)?;
    let trips = helper("trips")?;
    let argv = [length.to_string(), LATE_MS.to_string()];
    let limit = Duration::from_secs(length) + SHORT;
    let mut busy = node::background(&mut neighbours.node.command([helper("busy")?]))?;
    let pid = Pid::from_raw(busy.child().id() as i32).ok_or("pid 0")?;
    let asks = |mut command: Command| {
        command.args(&argv);
        std::thread::spawn(move || exec::run(&mut command, limit))
    };
    let threads = [
        asks(neighbours.node.command([&trips])),
        asks(Command::new(&trips)),
    ];
    let mut stopped = 0;
    while !threads[0].is_finished() {
        std::thread::sleep(Duration::from_micros(rng.below(30_000)));
        kill_process(pid, Signal::STOP).map_err(|e| format!("stop: {e}"))?;
        std::thread::sleep(Duration::from_millis(30 + rng.below(150)));
        kill_process(pid, Signal::CONT).map_err(|e| format!("go on: {e}"))?;
        stopped += 1;
    }
    let mut found = Vec::new();
    for thread in threads {
        let outcome = thread.join().map_err(|_| "a thread died")??;
        ensure(outcome.ok(), || outcome.report())?;
        let said: Vec<f64> = outcome
            .stdout
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        ensure(said.len() == 3, || outcome.report())?;
        found.push(said);
    }
    let longest = |side: usize| found[side][2] / 1e3;
    println!(
        "stopped {stopped} times; of {} round trips {} took over {LATE_MS} ms, the longest {:.1} ms; \
         on the host of {} {}, the longest {:.1} ms",
        found[0][0],
        found[0][1],
        longest(0),
        found[1][0],
        found[1][1],
        longest(1)
    );
    neighbours.are_served()?;
    neighbours.poison()?;
    ensure(longest(0) <= LATE_MS + longest(1), || {
        format!(
            "the longest round trip took {:.1} ms, {} of {} more than {LATE_MS} ms; on the host {:.1} ms",
            longest(0),
            found[0][1],
            found[0][0],
            longest(1)
        )
    })?;
    Ok(Verdict::Passed)
}

/// `turns` times programs that a limit meets, two at a time.
fn short_of(
    turns: u32,
    mut commands: impl FnMut(&Node) -> Result<Vec<Command>, String>,
    options: Options,
) -> Checked {
    let mut rng = seed(options);
    let link = scratch::unique("nb");
    let mut neighbours = Neighbours::start(&link, &mut rng)?;
    for turn in 1..=turns {
        let mut running = Vec::new();
        for mut command in commands(&neighbours.node)? {
            running.push(node::background(&mut command)?);
        }
        let mut ended = true;
        for group in &mut running {
            ended &= group.wait(SHORT).is_some();
            // Its children, too: dropping the group would kill them.
            let id = Pid::from_raw(group.child().id() as i32).ok_or("pid 0")?;
            ended &= until(SHORT, || test_kill_process_group(id).is_err());
        }
        let poison = || neighbours.poison().err().unwrap_or_default();
        ensure(ended, || {
            format!("turn {turn}: who met its limit goes on; {}", poison())
        })?;
        drop(running);
        let outcome = neighbours.are_served();
        outcome.and_then(|()| neighbours.poison()).map_err(|why| {
            let poison = neighbours.poison().err().unwrap_or_default();
            format!("turn {turn} of {turns}: {why}; {poison}")
        })?;
    }
    Ok(Verdict::Passed)
}

/// A program of limited.c, in some of its modes.
fn limited(mode: &'static str, options: Options) -> Checked {
    let program = helper("limited")?;
    let turns = match mode {
        "processor" => 3,
        _ => 8,
    };
    let turns = if options.long { 20 * turns } else { turns };
    let mut rng = seed(options);
    let commands = move |node: &Node| {
        let mut both = Vec::new();
        for _ in 0..2 {
            let mut command = node.command([&program]);
            command.arg(mode);
            if mode == "parent" {
                command.arg((3 + rng.below(40)).to_string());
            }
            both.push(command);
        }
        Ok(both)
    };
    short_of(turns, commands, options)
}

/// Programs without address space to spare are innocent of what their neighbour turns on. It is turned on for the first time on a
/// node that is new.
fn address_space(options: Options) -> Checked {
    let program = helper("limited")?;
    for _ in 0..if options.long { 60 } else { 5 } {
        let program = program.clone();
        let commands = move |node: &Node| {
            let mut modes = ["address-space"; 5];
            modes[4] = "toggle";
            let command = |mode: &&str| node.command([program.as_os_str(), mode.as_ref()]);
            Ok(modes.iter().map(command).collect())
        };
        short_of(1, commands, options)?;
    }
    Ok(Verdict::Passed)
}

/// A memory cgroup, by v1's or v2's files; gone when this is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make(bytes: u64) -> Result<Cgroup, String> {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (root, file) = match v1.join("cgroup.procs").exists() {
            true => (v1, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        // With v1 there is no such file; with v2 it may be on already.
        let _ = std::fs::write(root.join("cgroup.subtree_control"), "+memory");
        let folder = root.join(scratch::unique("r3t"));
        let why = |e: std::io::Error| format!("{}: {e}", folder.display());
        std::fs::create_dir(&folder).map_err(why)?;
        let made = Cgroup(folder.clone());
        std::fs::write(folder.join(file), bytes.to_string()).map_err(why)?;
        Ok(made)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its processes may need a moment to be gone.
        until(SHORT, || std::fs::remove_dir(&self.0).is_ok());
    }
}

/// A program in a small memory cgroup takes all the socket memory it gets: it may be killed for that, nobody else.
fn memory(options: Options) -> Checked {
    let cgroup = match Cgroup::make(MEMORY) {
        Ok(cgroup) => cgroup,
        Err(why) => return Ok(Verdict::Ignored(format!("no memory cgroup: {why}"))),
    };
    let program = helper("limited")?;
    let procs = cgroup.0.join("cgroup.procs");
    let commands = |node: &Node| {
        let inside = node.command([program.as_os_str(), "memory".as_ref()]);
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo 0 >\"$0\" && exec \"$@\""])
            .arg(&procs)
            .arg(inside.get_program())
            .args(inside.get_args());
        Ok(vec![command])
    };
    short_of(if options.long { 60 } else { 5 }, commands, options)
}
