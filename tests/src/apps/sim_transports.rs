// SPDX-License-Identifier: GPL-2.0
//! Examples of `ring3 sim` with other transports than TCP and UDP, and with routers that find their routes.

use super::sim_cmd::example;
use super::{Checked, Verdict, ensure, missing, trial};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sim_example_mptcp".into(), mptcp),
        trial("sim_example_sctp".into(), sctp),
        trial("sim_example_dccp".into(), dccp),
        trial("sim_example_ospf".into(), ospf),
    ]
}

/// A number before a word.
fn before(text: &str, word: &str) -> Result<f64, String> {
    text.split(word)
        .next()
        .and_then(|rest| rest.split_whitespace().last()?.parse().ok())
        .ok_or_else(|| format!("no number before `{word}`: {text}"))
}

/// All bytes arrive, over both ways before one fails, and over the other afterwards.
fn mptcp() -> Checked {
    if let Some(why) = missing(&["python3", "ip"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = example("mptcp")?;
    let text = simulation.read("hosts/server/python3.1002.stdout")?;
    let seconds = before(&text, " s\n")?;
    // 32 Mbit at 8 Mbit/s, of which a half is gone after two seconds.
    ensure(
        text.starts_with("4000000 bytes") && (5.5..9.0).contains(&seconds),
        || text.clone(),
    )?;
    let samples = simulation.read("interfaces.csv")?;
    // What the phone has sent by an interface until then.
    let sent = |interface: &str, until: f64| {
        samples
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>())
            .filter(|row| row[1] == "phone" && row[2] == interface)
            .filter(|row| row[0].parse::<f64>().is_ok_and(|at| at <= until))
            .filter_map(|row| row[6].parse::<u64>().ok())
            .max()
            .unwrap_or(0)
    };
    let (radio, mobile) = (sent("eth0", 3.0), sent("eth1", 3.0));
    ensure(radio > 500_000 && mobile > 200_000, || {
        format!("before the failure: {radio} and {mobile} bytes")
    })?;
    ensure(sent("eth1", 12.0) > mobile + 1_000_000, || {
        "nothing went over the other way afterwards".into()
    })?;
    Ok(Verdict::Passed)
}

/// No message is lost; the pause is that of the failover, not of a new association.
fn sctp() -> Checked {
    if let Some(why) = missing(&["python3", "ip"])? {
        return Ok(Verdict::Ignored(why));
    }
    let text = example("sctp")?.read("hosts/server/python3.1000.stdout")?;
    let pause = before(&text, " s\n")?;
    ensure(
        text.starts_with("80 messages") && (0.2..3.0).contains(&pause),
        || text.clone(),
    )?;
    Ok(Verdict::Passed)
}

fn dccp() -> Checked {
    if let Some(why) = missing(&["python3", "ip"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = example("dccp")?;
    let sent = simulation.read("hosts/source/python3.1000.stdout")?;
    let received = simulation.read("hosts/sink/python3.1000.stdout")?;
    let (sent, received) = (before(&sent, " Mbit/s")?, before(&received, " Mbit/s")?);
    // The link has 2 Mbit/s with headers.
    ensure(
        (1.2..2.0).contains(&received) && received > 0.9 * sent,
        || format!("{sent} Mbit/s sent, {received} received"),
    )?;
    Ok(Verdict::Passed)
}

/// Over four routers first, over fourteen after a link has failed.
fn ospf() -> Checked {
    if let Some(why) = missing(&["bird", "ping", "ip"])? {
        return Ok(Verdict::Ignored(why));
    }
    let text = example("ospf")?.read("hosts/r1/ping.1001.stdout")?;
    let ttl = |line: &str| line.contains("ttl=60") || line.contains("ttl=50");
    let answers: Vec<&str> = text.lines().filter(|line| ttl(line)).collect();
    let around = answers
        .iter()
        .position(|line| line.contains("ttl=50"))
        .ok_or_else(|| text.clone())?;
    ensure(
        (20..35).contains(&around)
            && answers.len() > 75
            && answers[around..].iter().all(|line| line.contains("ttl=50")),
        || text.clone(),
    )?;
    Ok(Verdict::Passed)
}
