// SPDX-License-Identifier: GPL-2.0
//! What the far side of a link finds in the memory that it shares: packets that were sent, as they were
//! sent, and nothing else.

use super::ensure;
use super::scenario::{LIMIT, Scenario};
use super::topology::{Pair, Place, Topology};
use crate::exec::{self, Group};
use crate::node;
use crate::paths;
use crate::scratch::Scratch;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

pub const SCENARIOS: &[Scenario] = &[SECRETS, SEALED];

const SEALED: Scenario = Scenario {
    name: "sealed",
    programs: &["python3", "ping"],
    what: "a program that opens its node's memory and the link's again can't make them smaller",
    topologies: &[Topology::Link],
    needs_root: None,
    run: sealed,
};

const SECRETS: Scenario = Scenario {
    name: "secrets",
    programs: &["python3", "nft", "tc", "ip"],
    what: "sendfile() of a file that kernel TLS or IPsec encrypts, or that nft or tc drops or takes elsewhere: \
           the far side of the link does not see its text in the memory that both share",
    topologies: &[Topology::Link],
    needs_root: None,
    run: secrets,
};

/// `(name, how, the file is in sight, what is done before sendfile())`; IF is the interface, PORT the server's.
const CASES: [(&str, &str, bool, &str); 8] = [
    // The search finds what is there to find.
    ("plain", "plain", true, ""),
    ("ktls", "tls", false, ""),
    (
        "nft",
        "plain",
        false,
        "nft 'table inet t { chain o { type filter hook output priority 0; tcp sport PORT meta length > 100 drop; }; }'",
    ),
    (
        "nft-postrouting",
        "plain",
        false,
        "nft 'table inet t { chain p { type filter hook postrouting priority 0; \
         tcp sport PORT meta length > 100 drop; }; }'",
    ),
    (
        "tc-drop",
        "plain",
        false,
        "tc qdisc add dev IF clsact; tc filter add dev IF egress prio 1 matchall action drop",
    ),
    (
        "tc-mirred",
        "plain",
        false,
        "tc qdisc add dev IF clsact; ip link add d0 type dummy; ip link set d0 up; \
         tc filter add dev IF egress prio 1 matchall action mirred egress redirect dev d0",
    ),
    ("queued", "queued", false, ""),
    ("ipsec", "plain", false, ""),
];

/// The text that a file of 1 MiB ends with. The rest of it may be sent.
const TAIL: usize = 64 << 10;

fn secrets(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    let mut wrong = Vec::new();
    for (n, (name, how, in_sight, shield)) in CASES.into_iter().enumerate() {
        let secret = format!("ring3 keeps this to itself: {name} {}", std::process::id());
        let size = if how == "queued" { 1 << 20 } else { 2 * TAIL };
        let mut text = vec![b'.'; size - TAIL];
        text.extend(secret.bytes().cycle().take(TAIL));
        let file = folder.write(name, text)?.to_string_lossy().into_owned();
        let port = pair.port(n as u16).to_string();
        let shield = shield.replace("IF", &pair.interface).replace("PORT", &port);
        if name == "ipsec" {
            ipsec(pair)?;
        }
        let found = send(pair, &file, &port, how, &shield)
            .and_then(|_ends| look(pair, secret.as_bytes()))
            .map_err(|why| format!("{name}: {why}"))?;
        let clean = format!(
            "nft flush ruleset; tc qdisc del dev {} clsact 2>/dev/null || :",
            pair.interface
        );
        pair.server.must(&["sh", "-c", &clean], LIMIT)?;
        match (found, in_sight) {
            (true, false) => wrong.push(format!("{name}: the far side finds the file's text")),
            (false, true) => wrong.push(format!("{name}: the text that was sent is not there")),
            _ => {}
        }
    }
    ensure(wrong.is_empty(), || {
        format!("in the link's memory: {}", wrong.join("; "))
    })
}

/// Memory that is cut off is a SIGBUS for all who have it mapped: both nodes' programs.
fn sealed(pair: &Pair) -> Result<(), String> {
    let script = paths::root().join("tests/apps/cut.py");
    let seen = pair
        .client
        .must(&["python3", &script.to_string_lossy()], LIMIT)?;
    // The region, the link, and the two spare pieces of memory that a later port may be made of. A sandbox gets no port later.
    let pieces = if paths::in_sandboxes() { 2 } else { 4 };
    ensure(seen == format!("{pieces}\n"), || {
        format!("what was cut, and how many were tried: {seen}")
    })?;
    let ping = ["ping", "-c", "1", "-W", "5", &pair.server4];
    pair.client.must(&ping, LIMIT).map(drop)
}

/// Both ends, at work until dropped; the server has handed the file over.
fn send(
    pair: &Pair,
    file: &str,
    port: &str,
    how: &str,
    shield: &str,
) -> Result<[Group; 2], String> {
    let script = paths::root().join("tests/apps/secret.py");
    let script = script.to_string_lossy();
    let mut argv = vec!["python3", &*script, "serve", file, port, how];
    if !shield.is_empty() {
        argv.push(shield);
    }
    let mut command = pair.server.command(&argv);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = Group::spawn(&mut command)?;
    let output = server.child().stdout.take().ok_or("no output")?;
    pair.wait_for_port(port.parse().map_err(|_| "no port")?)?;
    let client = pair
        .client
        .start(&["python3", &script, "ask", &pair.server4, port, how])?;
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .map_err(|e| e.to_string())?;
    ensure(line == "sent\n", || "the server did not send".into())?;
    Ok([server, client])
}

/// TCP between the two nodes is encrypted from here on.
fn ipsec(pair: &Pair) -> Result<(), String> {
    let (server, client) = (&pair.server4, &pair.client4);
    for (place, own, far) in [
        (&pair.server, server, client),
        (&pair.client, client, server),
    ] {
        let mut script = String::new();
        for (from, to, spi) in [(server, client, 1), (client, server, 2)] {
            let direction = if from == own { "out" } else { "in" };
            script += &format!(
                "ip xfrm state add src {from} dst {to} proto esp spi {spi} mode transport \
                 aead 'rfc4106(gcm(aes))' 0x0123456789012345678901234567890123456789 128\n\
                 ip xfrm policy add src {from} dst {to} proto tcp dir {direction} \
                 tmpl src {from} dst {to} proto esp mode transport\n"
            );
        }
        place
            .must(&["sh", "-ec", &script], LIMIT)
            .map_err(|why| format!("ipsec with {far}: {why}"))?;
    }
    Ok(())
}

/// Whether the far side finds `text` in the link's memory, as one that maps it can at any time.
fn look(pair: &Pair, text: &[u8]) -> Result<bool, String> {
    let folder = format!("/proc/{}/fd", keeper(&pair.client)?);
    let mut seen = 0;
    for entry in fs::read_dir(&folder)
        .map_err(|e| format!("{folder}: {e}"))?
        .flatten()
    {
        let path = entry.path();
        let target = fs::read_link(&path).unwrap_or_default();
        if !target.to_string_lossy().contains("memfd:ring3-link:") {
            continue;
        }
        let mut memory = Vec::new();
        File::open(&path)
            .and_then(|mut file| file.read_to_end(&mut memory))
            .map_err(|e| format!("{}: {e}", target.display()))?;
        seen += memory.len();
        if memory.windows(text.len()).any(|part| part == text) {
            return Ok(true);
        }
    }
    ensure(seen > 1 << 20, || {
        "the link's memory is not to be seen".into()
    })?;
    Ok(false)
}

/// The process that a node is kept by.
fn keeper(place: &Place) -> Result<u64, String> {
    let Place::Node(node) = place else {
        return Err("no node".into());
    };
    let outcome = exec::run(&mut node::ring3(["stat", &node.name, "--json"]), LIMIT)?;
    let stat: serde_json::Value =
        serde_json::from_str(&outcome.stdout).map_err(|e| e.to_string())?;
    stat["pid"]
        .as_u64()
        .ok_or_else(|| "ring3 stat: no pid".into())
}
