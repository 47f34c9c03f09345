// SPDX-License-Identifier: GPL-2.0
//! What simulated links do to packets, in virtual time: rate, delay, losses, each with random numbers of its own.

use super::sim_cmd::Simulation;
use super::{Checked, Verdict, ensure, missing, trial};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sim_links_rate".into(), rate),
        trial("sim_links_harm".into(), harm),
        trial("sim_links_apart".into(), apart),
        trial("sim_links_down".into(), down),
        trial("sim_links_trace".into(), trace),
    ]
}

/// `say HOST COUNT GAP_US`: numbered datagrams of 958 bytes, which are frames of 1,000. `hear`: the number of each, and its
/// time in us since the simulation's start.
const TALK: &str = r#"
x-say: &say |
  import socket, sys, time
  host, count, gap = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
  out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  out.connect((host, 9))
  for i in range(count):
      out.send(b"%08d" % i + bytes(950))
      if gap: time.sleep(gap / 1e6)
x-hear: &hear |
  import socket, time
  start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
  into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  into.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)
  into.bind(("", 9))
  into.settimeout(8)
  try:
      while True:
          data = into.recv(2000)
          print(int(data[:8]), (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - start) // 1000)
  except TimeoutError: pass
"#;

/// Pairs of hosts `sN` and `dN`; what `sN` says, and the properties of its link.
fn talk(pairs: &[(&str, &str)], rest: &str) -> Result<Simulation, String> {
    talk_and_end(pairs, "{exited: 0}", rest)
}

fn talk_and_end(pairs: &[(&str, &str)], state: &str, rest: &str) -> Result<Simulation, String> {
    let mut text = format!("general: {{stop_time: 20 s}}\n{TALK}hosts:\n");
    let mut links = String::from("links:\n");
    for (i, (says, wire)) in pairs.iter().enumerate() {
        text.push_str(&format!(
            "  s{i}: {{processes: [{{path: python3, args: [-c, *say, d{i}, {says}], start_time: 1 s, expected_final_state: {state}}}]}}\n  \
             d{i}: {{processes: [{{path: python3, args: [-u, -c, *hear], expected_final_state: {state}}}]}}\n"
        ));
        links.push_str(&format!("- {{between: [s{i}, d{i}], {wire}}}\n"));
    }
    let simulation = Simulation::run_with(&(text + &links + rest), &[])?;
    simulation.ended_well()?;
    Ok(simulation)
}

/// What a host has heard: number and microsecond of each datagram.
fn heard(simulation: &Simulation, host: &str) -> Result<Vec<(u64, u64)>, String> {
    let text = simulation.read(&format!("hosts/{host}/python3.1000.stdout"))?;
    text.lines()
        .map(|line| {
            let (number, time) = line.split_once(' ')?;
            Some((number.parse().ok()?, time.parse().ok()?))
        })
        .collect::<Option<_>>()
        .ok_or(text)
}

/// A thousand frames of 1,000 bytes at once take 8 s at 1 Mbit/s, back to back; what waits is in the queue, which drops none.
fn rate() -> Checked {
    if let Some(why) = missing(&["python3", "ip", "tc"])? {
        return Ok(Verdict::Ignored(why));
    }
    let wire = "rate: 1 Mbit, delay: 20 ms, queue: \"fq_codel interval 100s target 100s\"";
    let simulation = talk(&[("'1000', '0'", wire)], "")?;
    let all = heard(&simulation, "d0")?;
    ensure(all.len() == 1000, || format!("{} of 1000", all.len()))?;
    let gaps = all.windows(2).map(|two| two[1].1 - two[0].1);
    let wrong: Vec<u64> = gaps.filter(|gap| !(7_990..=8_010).contains(gap)).collect();
    ensure(wrong.is_empty(), || format!("gaps in us: {wrong:?}"))?;
    let queues = simulation.read("queues.csv")?;
    let waits = |line: &&str| {
        let row: Vec<&str> = line.split(',').collect();
        row[1] == "s0" && row[3] == "fq_codel" && row[8].parse::<u32>().is_ok_and(|n| n > 40)
    };
    ensure(queues.lines().any(|line| waits(&line)), || queues.clone())?;
    Ok(Verdict::Passed)
}

/// Shares of loss, duplicates, corruption and reordering are those that were asked for.
fn harm() -> Checked {
    if let Some(why) = missing(&["python3", "ip"])? {
        return Ok(Verdict::Ignored(why));
    }
    let says = "'4000', '1000'";
    let simulation = talk(
        &[
            (says, "loss: 25 %"),
            (says, "duplicate: 25 %"),
            (says, "corrupt: 25 %"),
            (says, "delay: 10 ms, reorder: 25 %"),
            (says, "delay: 10 ms, jitter: 5 ms"),
        ],
        "",
    )?;
    // Five standard deviations of a share of a quarter among 4,000.
    let is_quarter = |count: usize| (863..=1137).contains(&count);
    let numbers = |host: &str| -> Result<Vec<u64>, String> {
        Ok(heard(&simulation, host)?.iter().map(|one| one.0).collect())
    };
    let lost = 4000 - numbers("d0")?.len();
    ensure(is_quarter(lost), || format!("{lost} lost"))?;
    let twice = numbers("d1")?.len() - 4000;
    ensure(is_quarter(twice), || format!("{twice} twice"))?;
    // A bit of the packet is wrong: a checksum, or the address of the frame.
    let broken = 4000 - numbers("d2")?.len();
    ensure(is_quarter(broken), || format!("{broken} broken"))?;
    let overtakes = |list: Vec<u64>| {
        let mut most = 0;
        let mut late = 0;
        for number in list {
            late += usize::from(number < most);
            most = most.max(number);
        }
        late
    };
    let late = overtakes(numbers("d3")?);
    ensure(late > 2000, || format!("{late} overtaken of 3000"))?;
    let late = overtakes(numbers("d4")?);
    ensure(late > 1000, || format!("{late} overtaken by jitter"))?;
    let mut delays: Vec<u64> = heard(&simulation, "d4")?
        .iter()
        .map(|(number, time)| time - number * 1000)
        .collect();
    delays.sort_unstable();
    // Of a normal distribution 68 % are within a standard deviation; each turn of the sender takes some us more than 1 ms.
    let within = delays[delays.len() * 84 / 100] - delays[delays.len() * 16 / 100];
    ensure((9_000..=160_000).contains(&within), || {
        format!("{within} us")
    })?;
    Ok(Verdict::Passed)
}

/// What is lost on one link does not depend on what another carries.
fn apart() -> Checked {
    if let Some(why) = missing(&["python3", "ip"])? {
        return Ok(Verdict::Ignored(why));
    }
    let lossy = "loss: 30 %, delay: 3 ms";
    let says = "'500', '1000'";
    let alone = talk(&[(says, lossy), ("'1', '0'", "loss: 0")], "")?;
    let beside = talk(
        &[(says, lossy), ("'3000', '77'", "loss: 50 %, jitter: 1 ms")],
        "",
    )?;
    let first: Vec<u64> = heard(&alone, "d0")?.iter().map(|one| one.0).collect();
    let second: Vec<u64> = heard(&beside, "d0")?.iter().map(|one| one.0).collect();
    ensure((280..=420).contains(&first.len()), || {
        format!("{} came", first.len())
    })?;
    ensure(first == second, || format!("{first:?}\n{second:?}"))?;
    let other = heard(&beside, "d1")?.len();
    ensure((1300..=1700).contains(&other), || format!("{other} came"))?;
    Ok(Verdict::Passed)
}

/// A cable that is pulled loses what is on it; programs see no carrier.
fn down() -> Checked {
    if let Some(why) = missing(&["python3", "ip", "sh"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = talk(
        &[("'200', '10000'", "delay: 100 ms")],
        "events:\n- {at: 1500 ms, down: s0-d0}\n- {at: 2000 ms, up: s0-d0}\n\
         - {at: 1700 ms, run: [sh, -c, 'cat /sys/class/net/eth0/carrier >during'], on: s0}\n\
         - {at: 2500 ms, run: [sh, -c, 'cat /sys/class/net/eth0/carrier >after'], on: d0}\n",
    )?;
    let (during, after) = (
        simulation.read("hosts/s0/during")?,
        simulation.read("hosts/d0/after")?,
    );
    ensure((during.trim(), after.trim()) == ("0", "1"), || {
        format!("carrier {during} and then {after}")
    })?;
    // 50 a second: those of the last 100 ms before it and of the 500 ms in between are gone.
    let lost = 200 - heard(&simulation, "d0")?.len();
    ensure((45..=65).contains(&lost), || format!("{lost} lost"))?;
    Ok(Verdict::Passed)
}

/// A link follows a table, and a trace of milliseconds.
fn trace() -> Checked {
    if let Some(why) = missing(&["python3", "ip", "tc"])? {
        return Ok(Verdict::Ignored(why));
    }
    let scratch = crate::scratch::Scratch::new()?;
    let table = scratch.write("table", "time,rate\n0,8 Mbit\n3 s,800 kbit\n")?;
    // 100 packets of 1,504 bytes in the first second of two, at equal distances, and then none.
    let times: String = (1..=100).map(|n| format!("{}\n", 10 * n)).collect();
    let milliseconds = scratch.write("ms", &(times + "2000\n"))?;
    let wire =
        |path: &std::path::Path| format!("rate: 1 Gbit, limit: 10 MB, trace: {}", path.display());
    let simulation = talk_and_end(
        &[
            ("'50000', '0'", &wire(&table)),
            ("'50000', '0'", &wire(&milliseconds)),
        ],
        "running",
        "",
    )?;
    // How many come from one second of the simulation to another. The receiver began at 0.
    let between = |host: &str, from: u64, to: u64| -> Result<usize, String> {
        let all = heard(&simulation, host)?;
        let range = from * 100_000..to * 100_000;
        Ok(all.iter().filter(|(_, time)| range.contains(time)).count())
    };
    for (host, from, to, want) in [
        ("d0", 15, 25, 1000),
        ("d0", 35, 45, 100),
        ("d1", 21, 29, 120),
        ("d1", 32, 39, 0),
        ("d1", 41, 49, 120),
    ] {
        let came = between(host, from, to)?;
        let most = want * 12 / 10 + 2;
        ensure((want * 8 / 10..=most).contains(&came), || {
            format!(
                "{host}: {came} frames from {from} to {to} tenths of a second, {want} were expected"
            )
        })?;
    }
    Ok(Verdict::Passed)
}
