// SPDX-License-Identifier: GPL-2.0
//! `ring3 sim`: scenarios, on ordinary nodes in real time, and a few in virtual time.

use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, Outcome};
use crate::node::ring3;
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sim_cmd_shadow".into(), shadow),
        trial("sim_cmd_states".into(), states),
        trial("sim_cmd_mistakes".into(), mistakes),
        trial("sim_cmd_options".into(), options),
        trial("sim_cmd_links".into(), links),
        trial("sim_cmd_faults".into(), faults),
        trial("sim_cmd_worlds".into(), worlds),
        trial("sim_cmd_diff".into(), diff),
        trial("sim_cmd_search".into(), search),
        trial("sim_cmd_virtual".into(), virtual_time),
        trial("sim_cmd_jitter".into(), jitter),
        trial("sim_cmd_example_dumbbell".into(), dumbbell),
        trial("sim_cmd_example_bufferbloat".into(), bufferbloat),
        trial("sim_cmd_example_lossy_wan".into(), lossy_wan),
        trial("sim_cmd_example_sentinel".into(), sentinel),
        trial("sim_cmd_example_etcd".into(), etcd),
    ]
}

/// Far more than a run takes on a busy machine: it is there to end one that hangs.
pub(super) const LIMIT: Duration = Duration::from_secs(300);

/// A scenario in a folder of its own.
pub(super) struct Simulation {
    scratch: Scratch,
    pub(super) outcome: Outcome,
}

impl Simulation {
    fn run(text: &str) -> Result<Simulation, String> {
        Simulation::run_with(text, &["--real-time"])
    }

    pub(super) fn run_with(text: &str, options: &[&str]) -> Result<Simulation, String> {
        let scratch = Scratch::new()?;
        let file = scratch.write("scenario.yaml", text)?;
        let mut command = ring3(["sim", "--json"]);
        command.args(options).arg(file).current_dir(scratch.path());
        let outcome = exec::run(&mut command, LIMIT)?;
        Ok(Simulation { scratch, outcome })
    }

    pub(super) fn data(&self, name: &str) -> PathBuf {
        self.scratch.file("shadow.data").join(name)
    }

    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        let path = self.data(name);
        std::fs::read_to_string(&path)
            .map_err(|why| format!("{}: {why}; {}", path.display(), self.outcome.report()))
    }

    pub(super) fn ended_well(&self) -> Result<(), String> {
        ensure(self.outcome.ok(), || self.outcome.report())
    }
}

/// A file as people write it for Shadow: aliases, two places with different ways, `server` by name.
const SHADOW: &str = r#"
general:
  stop_time: 4 s
  model_unblocked_syscall_latency: true
network:
  graph:
    type: gml
    inline: |
      graph [
        node [ id 0 host_bandwidth_down "100 Mbit" host_bandwidth_up "100 Mbit" ]
        node [ id 1 host_bandwidth_down "10 Mbit" host_bandwidth_up "10 Mbit" ]
        edge [ source 0 target 0 latency "5 ms" packet_loss 0.0 ]
        edge [ source 0 target 1 latency "40 ms" packet_loss 0.0 ]
        edge [ source 1 target 1 latency "5 ms" packet_loss 0.0 ]
      ]
host_option_defaults: {pcap_enabled: true}
hosts:
  server:
    network_node_id: 0
    processes:
    - {path: python3, args: -m http.server 80, expected_final_state: running}
  near: &client
    network_node_id: 0
    processes:
    - {path: curl, args: "-s -o /dev/null -w '%{time_connect} %{http_code}' server", start_time: 2 s}
  far:
    <<: *client
    network_node_id: 1
"#;

/// Seconds to connect and the status, as curl was asked for.
fn connected(simulation: &Simulation, host: &str) -> Result<f64, String> {
    let text = simulation.read(&format!("hosts/{host}/curl.1000.stdout"))?;
    match text.split_once(' ') {
        Some((time, "200")) => time.parse().map_err(|_| text),
        _ => Err(format!(
            "{host}: curl said `{text}`; {}",
            simulation.outcome.report()
        )),
    }
}

fn shadow() -> Checked {
    if let Some(why) = missing(&["curl", "tc", "nft"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run(SHADOW)?;
    simulation.ended_well()?;
    let (near, far) = (
        connected(&simulation, "near")?,
        connected(&simulation, "far")?,
    );
    // Not before a round trip. How late depends on the machine.
    ensure((0.010..0.080).contains(&near), || {
        format!("near: {near} s to connect")
    })?;
    ensure((0.080..0.5).contains(&far), || {
        format!("far: {far} s to connect")
    })?;
    let pcap =
        std::fs::metadata(simulation.data("hosts/far/eth0.pcap")).map_err(|why| why.to_string())?;
    ensure(pcap.len() > 1000, || {
        format!("a capture of {} bytes", pcap.len())
    })?;
    let result = simulation.read("result.json")?;
    ensure(result.contains("\"state\": \"running\""), || result.clone())?;
    ensure(simulation.outcome.stdout.trim() == result.trim(), || {
        "--json is not result.json".into()
    })?;
    let samples = simulation.read("interfaces.csv")?;
    ensure(
        samples.lines().any(|line| line.contains(",server,eth0,")),
        || samples.clone(),
    )?;
    Ok(Verdict::Passed)
}

fn states() -> Checked {
    let simulation = Simulation::run(
        r#"
general: {stop_time: 2 s, heartbeat_interval: null}
network: {graph: {type: 1_gbit_switch}}
hosts:
  a:
    network_node_id: 0
    processes:
    - {path: sh, args: -c 'exit 3', expected_final_state: {exited: 3}}
    - {path: sleep, args: 9, shutdown_time: 1 s, expected_final_state: {signaled: SIGTERM}}
    - {path: sleep, args: 9, expected_final_state: running}
    - {path: sh, args: "-c 'exit 4'"}
    - {path: sleep, args: 9}
"#,
    )?;
    let Outcome { stdout, .. } = &simulation.outcome;
    let count = |words: &str| stdout.matches(words).count();
    ensure(
        simulation.outcome.end == exec::End::Exit(1)
            && count("\"ok\": true") == 3
            && count("\"ok\": false") == 3,
        || simulation.outcome.report(),
    )?;
    ensure(stdout.contains("signaled: SIGTERM"), || stdout.clone())?;
    Ok(Verdict::Passed)
}

fn mistakes() -> Checked {
    let simulation =
        Simulation::run("general:\n  stop_time: 2 s\nhosts:\n  a:\n    processs: []\n")?;
    let said = &simulation.outcome.stderr;
    ensure(
        simulation.outcome.end == exec::End::Exit(2)
            && said.contains(
                "scenario.yaml:5:5: hosts.a: unknown key `processs`: is `processes` meant?",
            ),
        || simulation.outcome.report(),
    )?;
    ensure(!simulation.data("").exists(), || "a folder was made".into())?;
    Ok(Verdict::Passed)
}

/// `ring3 sim WORDS -` with the file as its standard input.
fn sim_of_stdin(scratch: &Scratch, words: &[&str]) -> Result<Outcome, String> {
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" sim \"$@\" - <scenario.yaml"])
        .arg(paths::ring3())
        .args(words)
        .current_dir(scratch.path());
    exec::run(&mut command, LIMIT)
}

/// A scenario by standard input, and Shadow's options in the place of the file's keys.
fn options() -> Checked {
    let scratch = Scratch::new()?;
    let read = |name: &str| {
        std::fs::read_to_string(scratch.file(name)).map_err(|why| format!("{name}: {why}"))
    };
    let folder = scratch.file("template/hosts/a");
    std::fs::create_dir_all(folder).map_err(|why| why.to_string())?;
    scratch.write("template/hosts/a/given", "by the template\n")?;
    scratch.write(
        "scenario.yaml",
        "general: {stop_time: 1 h, heartbeat_interval: null}\n\
         network: {graph: {type: 1_gbit_switch}}\n\
         hosts: {a: {network_node_id: 0, processes: [{path: cat, args: given}]}}\n",
    )?;
    let mut words = vec!["--json", "--real-time", "--stop-time", "1 s"];
    words.extend(["-e", "template", "-p", "1", "-d", "out"]);
    words.push("--use-memory-manager=false");
    let outcome = sim_of_stdin(&scratch, &words)?;
    ensure(outcome.ok(), || outcome.report())?;
    ensure(outcome.stderr.contains("use_memory_manager"), || {
        outcome.report()
    })?;
    let text = read("out/hosts/a/cat.1000.stdout")?;
    ensure(text == "by the template\n", || text.clone())?;
    let config = read("out/processed-config.yaml")?;
    ensure(config.contains("\"stop_time\": \"1 s\""), || config.clone())?;
    let outcome = sim_of_stdin(&scratch, &["--stop-time", "soon"])?;
    ensure(
        outcome.end == exec::End::Exit(2) && outcome.stderr.contains("--stop-time"),
        || outcome.report(),
    )?;
    Ok(Verdict::Passed)
}

fn links() -> Checked {
    if let Some(why) = missing(&["ping", "tc"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run(
        r#"
general: {stop_time: 3 s}
sim: {ipv6: true, sample: 100 ms}
topology:
  type: dumbbell
  left: [a]
  right: [b]
  access: {rate: 1 Gbit, delay: 1 ms}
  bottleneck: {rate: 10 Mbit, delay: 20 ms, queue: fq_codel}
hosts:
  a:
    sysctls: {net.ipv4.tcp_congestion_control: bbr}
    processes:
    - {path: ping, args: -4 -c 3 -i 0.2 b}
    - {path: ping, args: -6 -c 3 -i 0.2 b}
    - {path: sysctl, args: -n net.ipv4.tcp_congestion_control}
events:
- {at: 1.5 s, run: "tc -s qdisc show dev eth1", on: r1}
"#,
    )?;
    simulation.ended_well()?;
    for number in [1000, 1001] {
        let text = simulation.read(&format!("hosts/a/ping.{number}.stdout"))?;
        // 44 ms and the serialization of 98 bytes.
        let least = text
            .split("mdev = ")
            .nth(1)
            .and_then(|rest| rest.split('/').next()?.parse::<f64>().ok());
        ensure(least.is_some_and(|ms| (44.0..60.0).contains(&ms)), || {
            text.clone()
        })?;
        ensure(text.contains("ttl=62"), || text.clone())?;
    }
    ensure(
        simulation.read("hosts/a/sysctl.1002.stdout")?.trim() == "bbr",
        || "no sysctl".into(),
    )?;
    let queues = simulation.read("hosts/r1/tc.1000.stdout")?;
    ensure(
        queues.contains("tbf") && queues.contains("fq_codel"),
        || queues.clone(),
    )?;
    Ok(Verdict::Passed)
}

/// A partition, a link that goes down, a crash: what was reachable is not, and is again.
fn faults() -> Checked {
    if let Some(why) = missing(&["ping", "nft", "ss"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run(
        r#"
general: {stop_time: 8 s}
hosts:
  a:
    processes:
    - {path: ping, args: -c 1 -W 1 b, start_time: 0.5 s}
    - {path: ping, args: -c 1 -W 1 b, start_time: 1.5 s, expected_final_state: {exited: 1}}
    - {path: ping, args: -c 1 -W 1 b, start_time: 3 s}
    - {path: ping, args: -c 1 -W 1 b, start_time: 3.7 s, expected_final_state: {exited: 1}}
    - {path: ping, args: -c 1 -W 1 b, start_time: 5.2 s}
  b:
    processes:
    - {path: sh, args: "-c 'echo started; env -i sleep 99 & wait'", expected_final_state: running}
links:
- {between: [a, b], name: ab, delay: 1 ms}
events:
- {at: 1 s, partition: [[a], [b]]}
- {at: 2.8 s, heal: true}
- {at: 3.5 s, down: ab}
- {at: 5 s, up: ab}
- {at: 6 s, crash: b}
- {at: 6.5 s, run: "sh -c 'pgrep -x sleep | wc -l'", on: a}
- {at: 7 s, restart: b}
"#,
    )?;
    simulation.ended_well()?;
    let survivors = simulation.read("hosts/a/sh.1005.stdout")?;
    ensure(survivors.trim() == "0", || {
        format!("{survivors} processes outlived the crash")
    })?;
    let again = simulation.read("hosts/b/sh.1000.1.stdout")?;
    ensure(again == "started\n", || again.clone())?;
    Ok(Verdict::Passed)
}

/// What a program sees of the machine is its host's.
fn worlds() -> Checked {
    let simulation = Simulation::run(
        r#"
general: {stop_time: 3 s, heartbeat_interval: null}
network: {graph: {type: 1_gbit_switch}}
hosts:
  one: &host
    network_node_id: 0
    files: {/etc/motd: "of one host\n"}
    processes:
    - path: sh
      args:
      - -c
      - "hostname; cat /etc/hostname; env | sort | grep -v ^HOME; getent hosts two; pwd | sed s,.*/,,; ls /tmp; touch /tmp/mark; ls /sys/class/net; cat /etc/motd"
      environment: {MINE: "1"}
      start_time: 1 s
  two: *host
"#,
    )?;
    simulation.ended_well()?;
    for name in ["one", "two"] {
        let text = simulation.read(&format!("hosts/{name}/sh.1000.stdout"))?;
        let lines: Vec<&str> = text.lines().collect();
        ensure(lines.starts_with(&[name, name]), || text.clone())?;
        ensure(lines.contains(&"MINE=1") && !text.contains("CARGO"), || {
            text.clone()
        })?;
        ensure(text.contains("11.0.0.2") && lines.contains(&"eth0"), || {
            text.clone()
        })?;
        ensure(!lines.contains(&"mark"), || {
            format!("/tmp of {name} is another's: {text}")
        })?;
    }
    Ok(Verdict::Passed)
}

/// Two runs in real time differ; a run does not differ from itself.
fn diff() -> Checked {
    let text = r#"
general: {stop_time: 1 s, heartbeat_interval: null}
network: {graph: {type: 1_gbit_switch}}
hosts:
  a: {network_node_id: 0, processes: [{path: sh, args: "-c 'date +%N'"}]}
"#;
    let (a, b) = (Simulation::run(text)?, Simulation::run(text)?);
    a.ended_well()?;
    b.ended_well()?;
    let compare = |x: &Simulation, y: &Simulation| {
        let mut command = ring3(["sim", "diff"]);
        command.args([x.data(""), y.data("")]);
        exec::run(&mut command, LIMIT)
    };
    let same = compare(&a, &a)?;
    ensure(same.ok() && same.stdout.contains("all equal"), || {
        same.report()
    })?;
    let other = compare(&a, &b)?;
    ensure(
        other.end == exec::End::Exit(1) && other.stdout.contains("hosts/a/sh.1000.stdout, line 1"),
        || other.report(),
    )?;
    Ok(Verdict::Passed)
}

/// In virtual time 100 s with a server and clients take a few, and a second run is the same in all files.
fn virtual_time() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let text = r#"
general: {stop_time: 100 s, heartbeat_interval: 10 s}
network: {graph: {type: 1_gbit_switch}}
hosts:
  server:
    network_node_id: 0
    processes: [{path: python3, args: -m http.server 80, expected_final_state: running}]
  client:
    network_node_id: 0
    processes:
    - {path: python3, args: ["-c", "@"], start_time: 2 s}
    - {path: sleep, args: "50", start_time: 3 s}
    - {path: python3, args: ["-c", "@"], start_time: 90 s}
"#;
    let ask = "import time, urllib.request; print(urllib.request.urlopen('http://server/').read(), time.time())";
    let text = &text.replace('@', ask);
    let start = Instant::now();
    let a = Simulation::run_with(text, &[])?;
    let took = start.elapsed();
    a.ended_well()?;
    ensure(took < Duration::from_secs(50), || {
        format!("100 s of virtual time took {took:?}")
    })?;
    let page = a.read("hosts/client/python3.1000.stdout")?;
    ensure(page.contains("<html"), || page.clone())?;
    let b = Simulation::run_with(text, &[])?;
    let mut command = ring3(["sim", "diff"]);
    command.args([a.data(""), b.data("")]);
    let same = exec::run(&mut command, LIMIT)?;
    ensure(same.ok() && same.stdout.contains("all equal"), || {
        same.report()
    })?;
    Ok(Verdict::Passed)
}

/// One host must be up at one instant: seeds that crash it then fail, and one fault is enough.
fn search() -> Checked {
    let scratch = Scratch::new()?;
    let file = scratch.write(
        "s.yaml",
        r#"
general: {stop_time: 2 s, heartbeat_interval: null}
network: {graph: {type: 1_gbit_switch}}
hosts:
  a: {network_node_id: 0, processes: [{path: sleep, args: 1.3}]}
"#,
    )?;
    let search = |seeds: &str, faults: &str, folder: &str, more: &[&str]| {
        let mut command = ring3([
            "sim",
            "--real-time",
            "--json",
            "--jobs",
            "2",
            "--seeds",
            seeds,
        ]);
        command
            .args(["--faults", faults, "--data-directory"])
            .arg(scratch.file(folder));
        command.args(more).arg(&file);
        exec::run(&mut command, LIMIT)
    };
    // A program that was killed has not exited with 0; one that stood still has.
    let found = search("1..2", "crash", "crash", &["--minimize"])?;
    ensure(
        found.end == exec::End::Exit(1)
            && found.stdout.matches("\"ok\": false").count() == 2
            && found.stdout.matches("is down").count() == 2,
        || found.report(),
    )?;
    // The list that is left fails on its own.
    let mut again = ring3(["sim", "--real-time", "--seed", "1", "--faults-file"]);
    again
        .arg(scratch.file("crash/seed-1.faults.json"))
        .arg("--data-directory");
    again.arg(scratch.file("again")).arg(&file);
    let again = exec::run(&mut again, LIMIT)?;
    ensure(
        again.end == exec::End::Exit(1)
            && again.stderr.contains("sleep.1000 was to be `exited: 0`"),
        || again.report(),
    )?;
    let none = search("1..2", "slow", "slow", &[])?;
    ensure(none.ok() && !scratch.file("slow/seed-1").exists(), || {
        none.report()
    })?;
    let judged = search(
        "1",
        "slow",
        "judged",
        &["--judge", "sh -c 'echo no; exit 1'"],
    )?;
    ensure(
        judged.end == exec::End::Exit(1) && judged.stdout.contains("sh (exit status: 1): no"),
        || judged.report(),
    )?;
    Ok(Verdict::Passed)
}

/// Threads of the second run sleep for up to so long now and then: real time, which must not matter.
const JITTER_US: &str = "60";

/// Twice: as it is, and with jitter and another environment. All files are equal.
pub(super) fn twice(scratch: &Scratch, file: &Path, options: &[&str]) -> Result<Outcome, String> {
    let run = |jitter: bool| {
        let mut command = ring3(["sim", "--json", "--data-directory"]);
        command
            .arg(scratch.file("shadow.data"))
            .args(options)
            .arg(file);
        if jitter {
            command
                .env("RING3_SIM_JITTER", JITTER_US)
                .env("TERM", "dumb")
                .env("SOMETHING_ELSE", "x".repeat(1000));
        }
        exec::run(&mut command, LIMIT)
    };
    let first = run(false)?;
    ensure(first.ok(), || first.report())?;
    std::fs::rename(scratch.file("shadow.data"), scratch.file("first"))
        .map_err(|why| why.to_string())?;
    let outcome = run(true)?;
    let mut command = ring3(["sim", "diff"]);
    command.args([scratch.file("first"), scratch.file("shadow.data")]);
    let same = exec::run(&mut command, LIMIT)?;
    ensure(same.ok() && same.stdout.contains("all equal"), || {
        format!("{}: {}", file.display(), same.report())
    })?;
    Ok(outcome)
}

/// An example of examples/sim in virtual time, twice. Its results are below a scratch folder.
pub(super) fn example(name: &str) -> Result<Simulation, String> {
    let scratch = Scratch::new()?;
    let file = paths::root()
        .join("examples/sim")
        .join(format!("{name}.yaml"));
    let outcome = twice(&scratch, &file, &[])?;
    let simulation = Simulation { scratch, outcome };
    simulation.ended_well()?;
    Ok(simulation)
}

/// Whatever may come at the host's time: ends of children, signals to a process with threads, timers, a program that
/// crashes, one that kills itself, many starts at the same time. With each call as a line, so that a failure names the first.
const THREADS: &str = r#"
import os, queue, random, signal, subprocess, threading, time, urllib.request
done = queue.Queue(); lock = threading.Lock(); out = []
def ask(i):
    for k in range(5):
        time.sleep(random.random() / 10)
        page = urllib.request.urlopen('http://server/').read()
        with lock: out.append((i, k, time.monotonic_ns(), len(page)))
        done.put(i)
threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
[x.start() for x in threads]; [done.get() for i in range(30)]; [x.join() for x in threads]
[print(*o) for o in out]
def heard(s, frame): print('signal', s, time.monotonic_ns())
[signal.signal(s, heard) for s in (signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD)]
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
threads = [threading.Thread(target=lambda: [time.sleep(0.01) for _ in range(50)]) for _ in range(3)]
[x.start() for x in threads]
for i in range(10): os.kill(os.getpid(), signal.SIGUSR1); time.sleep(0.013)
[x.join() for x in threads]
signal.setitimer(signal.ITIMER_REAL, 0)
p = subprocess.Popen(['python3', '-c', 'import ctypes, time; time.sleep(0.2); ctypes.string_at(0)'])
print(p.wait(), time.monotonic_ns())
many = [subprocess.Popen(['sh', '-c', 'sleep 0.%d; kill -9 $$' % i]) for i in range(1, 6)]
print([x.wait() for x in many], time.monotonic_ns(), os.getppid(), os.urandom(4).hex())
"#;

fn jitter() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let scratch = Scratch::new()?;
    let program = THREADS.replace('\n', "\n        ");
    let file = scratch.write(
        "scenario.yaml",
        format!(
            r#"
general: {{stop_time: 8 s, heartbeat_interval: 1 s}}
network: {{graph: {{type: 1_gbit_switch}}}}
hosts:
  server:
    network_node_id: 0
    processes: [{{path: python3, args: -m http.server 80, expected_final_state: running}}]
  one: &client
    network_node_id: 0
    processes:
    - path: python3
      args:
      - -c
      - |{program}
      start_time: 2 s
  two: *client
"#
        ),
    )?;
    let outcome = twice(&scratch, &file, &["--trace"])?;
    ensure(outcome.ok(), || outcome.report())?;
    let calls = std::fs::read_to_string(scratch.file("shadow.data/calls.trace"))
        .map_err(|why| why.to_string())?;
    ensure(
        calls.lines().count() > 1000 && calls.contains(" futex "),
        || format!("{} lines of calls", calls.lines().count()),
    )?;
    Ok(Verdict::Passed)
}

/// Two flows share what there is, and no more: 10 Mbit/s.
fn dumbbell() -> Checked {
    if let Some(why) = missing(&["iperf3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = example("dumbbell")?;
    let mut sum = 0.0;
    for sink in ["sink1", "sink2"] {
        let text = simulation.read(&format!("hosts/{sink}/iperf3.1000.stdout"))?;
        let line = text
            .lines()
            .find(|line| line.ends_with("receiver"))
            .unwrap_or_default();
        let rate = line
            .split_whitespace()
            .rev()
            .nth(2)
            .and_then(|word| word.parse::<f64>().ok());
        ensure(rate.is_some_and(|rate| rate > 0.5), || text.clone())?;
        sum += rate.unwrap_or(0.0);
    }
    ensure((7.0..10.2).contains(&sum), || {
        format!("{sum} Mbit/s in all")
    })?;
    let tcp = simulation.read("tcp.csv")?;
    ensure(tcp.contains(",bbr,") && tcp.contains(",cubic,"), || {
        "both controls are to be seen".into()
    })?;
    Ok(Verdict::Passed)
}

/// Behind a plain queue a ping takes several times as long as behind those that are made against it.
fn bufferbloat() -> Checked {
    if let Some(why) = missing(&["iperf3", "ping"])? {
        return Ok(Verdict::Ignored(why));
    }
    let average = |queue: &str| -> Result<f64, String> {
        let simulation = example(&format!("bufferbloat-{queue}"))?;
        let text = simulation.read("hosts/home/ping.1001.stdout")?;
        let numbers = text.split("mdev = ").nth(1).ok_or(text.clone())?;
        numbers
            .split('/')
            .nth(1)
            .and_then(|word| word.parse().ok())
            .ok_or(text)
    };
    let (fifo, fq_codel, cake) = (average("fifo")?, average("fq_codel")?, average("cake")?);
    ensure(
        fifo > 100.0 && fifo > 3.0 * fq_codel && fifo > 3.0 * cake,
        || format!("ping: {fifo} ms behind fifo, {fq_codel} behind fq_codel, {cake} behind cake"),
    )?;
    Ok(Verdict::Passed)
}

fn lossy_wan() -> Checked {
    if let Some(why) = missing(&["nginx", "curl", "nft"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = example("lossy-wan")?;
    let time = |host: &str| -> Result<f64, String> {
        let text = simulation.read(&format!("hosts/{host}/curl.1000.stdout"))?;
        ensure(text.starts_with("200 35149 bytes in "), || text.clone())?;
        text.split_whitespace()
            .rev()
            .nth(1)
            .and_then(|word| word.parse().ok())
            .ok_or(text)
    };
    // Two round trips at least: 60 ms and 420 ms.
    let (city, island) = (time("city1")?, time("island1")?);
    ensure(
        city > 0.06 && island > 0.42 && time("neighbour")? < city,
        || format!("city {city} s, island {island} s"),
    )?;
    Ok(Verdict::Passed)
}

/// Another primary is elected, and the write to the old one is lost, though it was acknowledged.
fn sentinel() -> Checked {
    if let Some(why) = missing(&["redis-server", "redis-cli"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = example("sentinel")?;
    let said = |number: u32| simulation.read(&format!("hosts/client/redis-cli.{number}.stdout"));
    ensure(said(1000)? == "OK\n" && said(1001)? == "OK\n", || {
        "a write was not acknowledged".into()
    })?;
    let primary = said(1002)?;
    ensure(
        primary.starts_with("11.1.0.2\n") || primary.starts_with("11.1.0.3\n"),
        || primary.clone(),
    )?;
    ensure(said(1003)? == "1\n" && said(1004)? == "\n", || {
        format!("{:?}, {:?}", said(1003), said(1004))
    })?;
    Ok(Verdict::Passed)
}

/// Three of five nodes go on without the others, two do not, and all agree afterwards.
fn etcd() -> Checked {
    if let Some(why) = missing(&["etcd", "etcdctl", "nft"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = example("etcd")?;
    let said = |number: u32| simulation.read(&format!("hosts/client/etcdctl.{number}.stdout"));
    ensure(said(1000)? == "OK\n" && said(1001)? == "OK\n", || {
        "a write was not acknowledged".into()
    })?;
    ensure(
        said(1002)?.is_empty() && said(1003)? == "during\n3\n",
        || format!("{:?}, {:?}", said(1002), said(1003)),
    )?;
    Ok(Verdict::Passed)
}
