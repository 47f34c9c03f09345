// SPDX-License-Identifier: GPL-2.0
//! Corrupt frames on a TAP: counted and dropped, and the node works on. Checksums are looked at.
//! Packets of forked children leave the node.

use super::topology::{Pair, Place, Topology};
use super::{Checked, Verdict, ensure, helper, trial};
use crate::exec;
use libtest_mimic::Trial;
use std::process::Command;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("frames_tap".into(), tap),
        trial("checksums_tap".into(), checksums),
        trial("children_tap".into(), children),
    ]
}

fn tap() -> Checked {
    if let Some(why) = Topology::TapServer.obstacle() {
        return Ok(Verdict::Ignored(why));
    }
    let limit = Duration::from_secs(30);
    let pair = Pair::new(Topology::TapServer)?;
    let interface = pair.interface.as_str();
    pair.client
        .must(&["ip", "link", "set", interface, "mtu", "9000"], limit)?;
    let sysfs = |name: &str| format!("/sys/class/net/{interface}/{name}");
    let mac = pair.server.must(&["cat", &sysfs("address")], limit)?;
    let received = |what: &str| -> Result<u64, String> {
        let text = pair
            .server
            .must(&["cat", &sysfs(&format!("statistics/rx_{what}"))], limit)?;
        text.trim()
            .parse()
            .map_err(|_| format!("rx_{what}: {text}"))
    };
    let total = || -> Result<u64, String> {
        Ok(received("packets")? + received("errors")? + received("dropped")?)
    };
    let before = total()?;
    let mut command = Command::new(helper("frames")?);
    command.args([interface, mac.trim()]);
    let outcome = exec::run(&mut command, limit)?;
    ensure(outcome.ok(), || outcome.report())?;
    let sent: u64 = outcome
        .stdout
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| outcome.report())?;
    ensure(sent > 2000, || outcome.report())?;
    // The node is alive, and each frame is somewhere in its counters (the TAP's own queue
    // may have dropped some before it).
    pair.client.must(
        &["ping", "-c", "3", "-i", "0.1", "-W", "2", &pair.server4],
        limit,
    )?;
    let seen = total()? - before;
    let lost = std::fs::read_to_string(sysfs("statistics/tx_dropped"))
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok())
        .unwrap_or(0);
    ensure(seen + lost >= sent, || {
        format!("{sent} frames sent, {lost} dropped by the TAP, only {seen} counted")
    })?;
    Ok(Verdict::Passed)
}

fn checksums() -> Checked {
    if let Some(why) = Topology::TapServer.obstacle() {
        return Ok(Verdict::Ignored(why));
    }
    let limit = Duration::from_secs(30);
    let pair = Pair::new(Topology::TapServer)?;
    let interface = pair.interface.as_str();
    let address = format!("/sys/class/net/{interface}/address");
    let mac = pair.server.must(&["cat", &address], limit)?;
    // So that nobody waits for a neighbour's answer.
    pair.client
        .must(&["ping", "-c", "1", "-W", "5", &pair.server4], limit)?;
    let mut command = Command::new(helper("checksum")?);
    command.args([interface, mac.trim(), &pair.server4]);
    let outcome = exec::run(&mut command, limit)?;
    ensure(outcome.stdout == "of 16: right 16, wrong 0\n", || {
        outcome.report()
    })?;
    Ok(Verdict::Passed)
}

/// A child has its parent's ways to the host: what it sends itself is not dropped.
fn children() -> Checked {
    if let Some(why) = Topology::TapClient.obstacle() {
        return Ok(Verdict::Ignored(why));
    }
    let limit = Duration::from_secs(30);
    let pair = Pair::new(Topology::TapClient)?;
    let counter = |place: &Place, name: &str| -> Result<u64, String> {
        let file = format!("/sys/class/net/{}/statistics/{name}", pair.interface);
        let text = place.must(&["cat", &file], limit)?;
        text.trim().parse().map_err(|_| format!("{name}: {text}"))
    };
    pair.client
        .must(&["ping", "-c", "1", "-W", "5", &pair.server4], limit)?;
    let before = counter(&pair.server, "rx_packets")?;
    let program = helper("children")?;
    pair.client
        .must(&[&program.to_string_lossy(), &pair.server4, "400"], limit)?;
    let dropped = counter(&pair.client, "tx_dropped")?;
    let came = counter(&pair.server, "rx_packets")? - before;
    ensure(dropped == 0 && came >= 400, || {
        format!("of 400 datagrams {came} came, {dropped} were dropped on the node")
    })?;
    Ok(Verdict::Passed)
}
