// SPDX-License-Identifier: GPL-2.0
//! A kill storm: SIGKILL at random instants of random participants, under checksummed traffic.
//!
//! Two nodes and a link. On each of them servers, talkers (to the own and to the other node), a
//! program that forks and execs without end, a watcher that is never killed, and a killer, which
//! kills from within the node. After each kill both watchers must get on, or the node whose
//! participant died must be poisoned: then everything on it has to end, and the other node to go on.
//! No participant may stand still, and none may see a byte that was not sent. Only a SIGKILL from outside
//! the node may poison it.
//!
//! 60 kills, 1,000 with `--long`; `--seed N` repeats the choices (not the instants).

use super::{Checked, Verdict, ensure, helper, trial};
use crate::Options;
use crate::exec::{End, Group, until};
use crate::node::Node;
use crate::{paths, scratch};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KILLS: u32 = 60;
const KILLS_LONG: u32 = 1000;
const PORT: &str = "7300";
/// What goes on says so every 20 ms; on a busy machine it may be kept from running.
const PATIENCE: Duration = Duration::from_secs(10);
/// A talker whose peer is gone gives up after two seconds and says so.
pub(super) const STANDSTILL: Duration = Duration::from_secs(20);
/// Everybody on a poisoned node has to have ended after this long.
const END: Duration = Duration::from_secs(5);
/// A holder of a vCPU that is dead is found by then (HOLDER_NS, ACQUIRE_TIMEOUT_NS of the image).
const FOUND: Duration = Duration::from_millis(400);
/// How a participant may kill another.
const INSIDE: [&str; 6] = ["kill", "tgkill", "tkill", "sigqueue", "pidfd", "group"];

pub fn trials(options: Options) -> Vec<Trial> {
    vec![trial("storm".into(), move || storm(options))]
}

/// What a participant has said.
#[derive(Default)]
pub(super) struct Said {
    ticks: AtomicU64,
    last: Mutex<Option<Instant>>,
    words: Mutex<Vec<String>>,
}

pub(super) struct Participant {
    role: Vec<String>,
    pub(super) group: Group,
    said: Arc<Said>,
    started: Instant,
    ended: Option<End>,
}

impl Participant {
    pub(super) fn start(node: &Node, role: &[&str]) -> Result<Participant, String> {
        let program = helper("storm")?;
        Participant::spawn(node.command([program.as_os_str()]), role)
    }

    /// `command` starts the program, on whatever side.
    pub(super) fn spawn(mut command: Command, role: &[&str]) -> Result<Participant, String> {
        command
            .args(role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut group = Group::spawn(&mut command)?;
        let out = group.child().stdout.take().ok_or("no pipe")?;
        let said = Arc::new(Said::default());
        let ours = said.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                *ours.last.lock().unwrap() = Some(Instant::now());
                if line == "." || line == "done" {
                    ours.ticks.fetch_add(1, Ordering::SeqCst);
                } else {
                    ours.words.lock().unwrap().push(line);
                }
            }
        });
        Ok(Participant {
            role: role.iter().map(|word| (*word).to_owned()).collect(),
            group,
            said,
            started: Instant::now(),
            ended: None,
        })
    }

    /// What it does, for messages.
    pub(super) fn name(&self) -> String {
        self.role.join(" ")
    }

    pub(super) fn ticks(&self) -> u64 {
        self.said.ticks.load(Ordering::SeqCst)
    }

    fn pid(&mut self) -> Result<Pid, String> {
        Pid::from_raw(self.group.child().id() as i32).ok_or_else(|| "pid 0".into())
    }

    pub(super) fn ended(&mut self) -> Option<End> {
        if self.ended.is_none() {
            self.ended = self.group.wait(Duration::ZERO);
        }
        self.ended
    }

    pub(super) fn words(&self) -> Vec<String> {
        self.said.words.lock().unwrap().clone()
    }

    pub(super) fn still(&self) -> Duration {
        let last = *self.said.last.lock().unwrap();
        last.unwrap_or(self.started).elapsed()
    }

    /// Is this how it may end if nobody killed it and its node was poisoned?
    fn ended_by_poison(&self) -> bool {
        // 125: it was about to join. SIGTERM: the keeper's, which may come before the program's next call.
        matches!(self.ended, Some(End::Exit(5 | 125..=127) | End::Signal(15)))
    }

    fn says_poisoned(&self) -> bool {
        self.ended == Some(End::Signal(15)) || self.words().iter().any(|word| word == "poisoned")
    }
}

/// One node with what runs there.
struct Side {
    node: Node,
    watch: Participant,
    killer: Participant,
    others: Vec<Participant>,
}

impl Side {
    fn start(link: &str, number: usize, rng: &mut Rng) -> Result<Side, String> {
        let address = |n: usize| format!("10.231.1.{}", n + 1);
        let node = Node::up(&[format!("link:{link},addr={}/24", address(number))])?;
        let far = address(1 - number);
        let mut seed = || rng.below(1_000_000).to_string();
        let roles = [
            vec!["serve".into(), PORT.into()],
            vec!["serve".into(), PORT.into()],
            vec!["talk".into(), "127.0.0.1".into(), PORT.into(), seed()],
            vec!["talk".into(), far.clone(), PORT.into(), seed()],
            vec!["talk".into(), far, PORT.into(), seed()],
            vec!["fork".into(), "127.0.0.1".into(), PORT.into(), seed()],
        ];
        let mut others = Vec::new();
        for role in &roles {
            let role: Vec<&str> = role.iter().map(String::as_str).collect();
            others.push(Participant::start(&node, &role)?);
        }
        Ok(Side {
            watch: Participant::start(&node, &["watch"])?,
            killer: Participant::start(&node, &["kill"])?,
            others,
            node,
        })
    }

    /// Every process of its participants but the watcher and the killer: those of their groups.
    fn victims(&mut self) -> Result<Vec<(Pid, Pid)>, String> {
        let mut groups = Vec::new();
        for participant in &mut self.others {
            groups.push(participant.pid()?);
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc")
            .map_err(|e| e.to_string())?
            .flatten()
        {
            let Some(pid) = entry.file_name().to_str().and_then(|name| {
                let raw: i32 = name.parse().ok()?;
                Pid::from_raw(raw)
            }) else {
                continue;
            };
            // It may be gone by now, or a zombie.
            if let Some(group) = group_of(pid)
                && groups.contains(&group)
            {
                found.push((pid, group));
            }
        }
        Ok(found)
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Participant> {
        self.others
            .iter_mut()
            .chain([&mut self.watch, &mut self.killer])
    }

    /// Starts again whoever was killed.
    fn revive(&mut self) -> Result<(), String> {
        let node = &self.node;
        for participant in self.others.iter_mut().chain([&mut self.killer]) {
            if participant.ended().is_some() {
                let role: Vec<&str> = participant.role.iter().map(String::as_str).collect();
                *participant = Participant::start(node, &role)?;
            }
        }
        Ok(())
    }
}

/// The process group of a process that lives.
fn group_of(pid: Pid) -> Option<Pid> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // After the name, which may hold anything: state, parent, group.
    let mut fields = stat.rsplit(')').next()?.split_ascii_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    // One that is being reaped has none: -1.
    let group: i32 = fields.nth(1)?.parse().ok()?;
    Pid::from_raw(group.max(0))
}

pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[derive(Default, Clone, Copy)]
struct Tally {
    serving: u32,
    poisoned: u32,
    hung: u32,
    corrupted: u32,
}

/// What came of a kill.
enum After {
    Serving,
    Poisoned,
    Hung(String),
    Corrupted(String),
}

struct Storm {
    rng: Rng,
    link: String,
    sides: [Side; 2],
    tally: BTreeMap<&'static str, Tally>,
    findings: Vec<String>,
}

impl Storm {
    fn new(seed: u64) -> Result<Storm, String> {
        let mut rng = Rng(seed);
        let link = scratch::unique("ks");
        let sides = [
            Side::start(&link, 0, &mut rng)?,
            Side::start(&link, 1, &mut rng)?,
        ];
        Ok(Storm {
            rng,
            link,
            sides,
            tally: BTreeMap::new(),
            findings: Vec::new(),
        })
    }

    fn turn(&mut self) -> Result<(), String> {
        std::thread::sleep(Duration::from_micros(self.rng.below(30_000)));
        let number = self.rng.below(2) as usize;
        let victims = self.sides[number].victims()?;
        if victims.is_empty() {
            return Err("nobody is left to be killed".into());
        }
        let (victim, group) = victims[self.rng.below(victims.len() as u64) as usize];
        let kind = match self.rng.below(20) {
            0..10 => "outside",
            10..17 => INSIDE[self.rng.below(INSIDE.len() as u64) as usize],
            _ => "the killer, killing",
        };
        match kind {
            // Gone meanwhile: a kill all the same, that hit nobody.
            "outside" => drop(kill_process(victim, Signal::KILL)),
            "the killer, killing" => {
                self.command("kill", victim)?;
                let delay = self.rng.below(400);
                let start = Instant::now();
                while start.elapsed() < Duration::from_micros(delay) {
                    std::hint::spin_loop();
                }
                let killer = self.sides[number].killer.pid()?;
                kill_process(killer, Signal::KILL).map_err(|e| format!("kill the killer: {e}"))?;
            }
            how => {
                let killer = &self.sides[number].killer;
                let before = killer.ticks();
                self.command(how, if how == "group" { group } else { victim })?;
                let killer = &mut self.sides[number].killer;
                until(PATIENCE, || {
                    killer.ticks() > before || killer.ended().is_some()
                });
            }
        }
        // With one vCPU nobody gets on before a dead holder is found; with several the others do.
        if std::env::var_os("RING3_CPUS").is_some() {
            std::thread::sleep(FOUND);
        }
        let after = self.judge()?;
        let tally = self.tally.entry(kind).or_default();
        match after {
            After::Serving => tally.serving += 1,
            After::Poisoned => {
                tally.poisoned += 1;
                // gate/signal/kill.c sends it while nobody is inside.
                if kind != "outside" {
                    self.findings.push(format!("{kind}: poisoned the node"));
                }
            }
            After::Hung(what) => {
                tally.hung += 1;
                self.findings.push(format!("{kind}: hung: {what}"));
            }
            After::Corrupted(what) => {
                tally.corrupted += 1;
                self.findings.push(format!("{kind}: {what}"));
            }
        }
        Ok(())
    }

    /// Writes to the killer of the victim's side.
    fn command(&mut self, how: &str, victim: Pid) -> Result<(), String> {
        for side in &mut self.sides {
            let ours = side.victims()?.iter().any(|(pid, _)| *pid == victim);
            let input = side.killer.group.child().stdin.as_mut();
            if let (true, Some(input)) = (ours, input) {
                // It is alive, or was killed by an earlier turn and is started again after this one.
                let _ = writeln!(input, "{how} {}", victim.as_raw_nonzero());
            }
        }
        Ok(())
    }

    fn judge(&mut self) -> Result<After, String> {
        let mut after = After::Serving;
        for number in 0..2 {
            let before = self.sides[number].watch.ticks();
            let watch = &mut self.sides[number].watch;
            let moved = until(PATIENCE, || {
                watch.ticks() >= before + 2 || watch.ended().is_some()
            });
            // The watcher may have its turns on another vCPU than that whose holder is dead, until that is found.
            if watch.ended().is_some() || self.somebody_says_poisoned(number) {
                after = self.bury(number, after)?;
                if matches!(after, After::Corrupted(_)) {
                    return Ok(after);
                }
                continue;
            }
            if !moved {
                after = After::Hung(format!("node {number} does not get on"));
                self.restart(number)?;
                continue;
            }
            let mut poisoned = false;
            for participant in self.sides[number].all() {
                let idle = participant.role[0] == "kill";
                if participant.ended().is_none() && !idle && participant.still() > STANDSTILL {
                    after = After::Hung(format!("{:?} stands still", participant.role));
                }
                if participant.ended().is_some_and(|end| end != End::Signal(9)) {
                    if participant.says_poisoned() {
                        poisoned = true; // since the look above
                        break;
                    }
                    let words = participant.words();
                    after = After::Hung(format!(
                        "{:?} ended by itself: {:?} {words:?}",
                        participant.role, participant.ended
                    ));
                }
            }
            if let Some(what) = self.corruption() {
                return Ok(After::Corrupted(what));
            }
            if poisoned {
                after = self.bury(number, after)?;
                continue;
            }
            self.sides[number].revive()?;
        }
        Ok(after)
    }

    fn somebody_says_poisoned(&mut self, number: usize) -> bool {
        self.sides[number]
            .all()
            .any(|participant| participant.ended().is_some() && participant.says_poisoned())
    }

    /// A poisoned node: what came of the kill, if that was `after` by the other node. Another takes its place.
    fn bury(&mut self, number: usize, after: After) -> Result<After, String> {
        let after = match self.after_poison(number) {
            Err(what) => After::Hung(what),
            Ok(()) if matches!(after, After::Serving) => After::Poisoned,
            Ok(()) => after,
        };
        if let Some(what) = self.corruption() {
            return Ok(After::Corrupted(what));
        }
        self.restart(number)?;
        Ok(after)
    }

    /// Somebody has seen the node poisoned: so do all others.
    fn after_poison(&mut self, number: usize) -> Result<(), String> {
        let watch = &mut self.sides[number].watch;
        until(PATIENCE, || watch.ended().is_some());
        ensure(watch.ended_by_poison(), || {
            let words = watch.words();
            format!(
                "the watcher of a poisoned node: {:?} {words:?}",
                watch.ended
            )
        })?;
        self.everybody_ends(number)
    }

    /// The node is poisoned: nothing on it may go on waiting.
    fn everybody_ends(&mut self, number: usize) -> Result<(), String> {
        let start = Instant::now();
        for participant in self.sides[number].all() {
            while participant.ended().is_none() {
                if participant.role[0] == "kill" {
                    // It waits for us, not for the node.
                    participant.group.kill();
                    participant.ended = Some(End::Signal(9));
                }
                ensure(start.elapsed() < END, || {
                    format!("{:?} goes on, on a poisoned node", participant.role)
                })?;
                std::thread::sleep(Duration::from_millis(2));
            }
            ensure(
                participant.ended_by_poison() || participant.ended == Some(End::Signal(9)),
                || {
                    let words = participant.words();
                    format!("{:?} ended with {words:?}", participant.role)
                },
            )?;
        }
        Ok(())
    }

    fn corruption(&mut self) -> Option<String> {
        let mut all = self.sides.iter_mut().flat_map(Side::all);
        all.find_map(|participant| {
            let mut words = participant.words().into_iter();
            words.find(|word| word.starts_with("corrupt"))
        })
    }

    fn restart(&mut self, number: usize) -> Result<(), String> {
        let down = self.sides[number].node.down()?;
        ensure(down.ok(), || format!("down: {}", down.report()))?;
        self.sides[number] = Side::start(&self.link, number, &mut self.rng)?;
        let watch = &self.sides[number].watch;
        let up = until(PATIENCE, || watch.ticks() > 0);
        ensure(up, || "a new node does not serve".into())
    }

    fn table(&self) -> String {
        let mut out = format!(
            "{:22}{:>8}{:>10}{:>6}{:>11}\n",
            "killed by", "serving", "poisoned", "hung", "corrupted"
        );
        for (kind, t) in &self.tally {
            let _ = writeln!(
                out,
                "{kind:22}{:8}{:10}{:6}{:11}",
                t.serving, t.poisoned, t.hung, t.corrupted
            );
        }
        out
    }

    fn json(&self, seed: u64, took: Duration) -> String {
        let rows: Vec<String> = self
            .tally
            .iter()
            .map(|(kind, t)| {
                format!(
                    "    {{\"by\": \"{kind}\", \"serving\": {}, \"poisoned\": {}, \"hung\": {}, \"corrupted\": {}}}",
                    t.serving, t.poisoned, t.hung, t.corrupted
                )
            })
            .collect();
        format!(
            "{{\n  \"seed\": {seed},\n  \"seconds\": {:.1},\n  \"kills\": [\n{}\n  ]\n}}\n",
            took.as_secs_f64(),
            rows.join(",\n")
        )
    }
}

fn storm(options: Options) -> Checked {
    let seed = options.seed.unwrap_or(u64::from(std::process::id()));
    let kills = if options.long { KILLS_LONG } else { KILLS };
    let start = Instant::now();
    let mut storm = Storm::new(seed)?;
    for _ in 0..kills {
        if let Err(why) = storm.turn() {
            storm.findings.push(why);
            break;
        }
    }
    let file = paths::build().join("storm.json");
    std::fs::write(&file, storm.json(seed, start.elapsed()))
        .map_err(|e| format!("{}: {e}", file.display()))?;
    println!("storm of {kills} kills, seed {seed}\n{}", storm.table());
    ensure(storm.findings.is_empty(), || {
        format!("seed {seed}:\n{}", storm.findings.join("\n"))
    })?;
    Ok(Verdict::Passed)
}
