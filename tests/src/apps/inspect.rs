// SPDX-License-Identifier: GPL-2.0
//! Looking in: the system's own tools, run on a node by `ring3 exec` beside its programs.

use super::topology::{Pair, Place, Topology};
use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, Group, until};
use crate::node::{Node, SHORT, ring3};
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::process::Stdio;
use std::time::Duration;

/// A node with a link, its name; the pair keeps both up.
fn node_of(place: &Place) -> Result<&Node, String> {
    match place {
        Place::Node(node) => Ok(node),
        Place::Host => Err("not a node".into()),
    }
}

fn inspected(
    name: &'static str,
    tool: &'static str,
    check: fn(&Pair, &Node) -> Result<(), String>,
) -> Trial {
    trial(format!("inspect_{name}"), move || -> Checked {
        if let Some(why) = missing(&[tool])? {
            return Ok(Verdict::Ignored(why));
        }
        let pair = Pair::new(Topology::Link)?;
        check(&pair, node_of(&pair.server)?)?;
        Ok(Verdict::Passed)
    })
}

pub fn trials() -> Vec<Trial> {
    vec![
        inspected("ip", "ip", ip),
        inspected("ip_change", "ip", ip_change),
        inspected("ss", "ss", ss),
        inspected("owners_ss", "ss", owners_ss),
        inspected("owners_lsof", "lsof", owners_lsof),
        inspected("owners_netstat", "netstat", owners_netstat),
        inspected("owners_fuser", "fuser", owners_fuser),
        inspected("tcpdump", "tcpdump", tcpdump),
        inspected("nft", "nft", nft),
        inspected("tc", "tc", tc),
        inspected("sysctl", "sysctl", sysctl),
        inspected("machine", "sysctl", machine),
        inspected("proc", "cat", proc_files),
        inspected("log", "cat", log),
    ]
}

/// The text contains all of the words.
fn holds(text: &str, words: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| !text.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("no '{word}' in:\n{text}")),
    }
}

fn ping(pair: &Pair) -> Result<String, String> {
    pair.client
        .must(&["ping", "-c", "3", "-i", "0.1", &pair.server4], SHORT)
}

fn ip(pair: &Pair, node: &Node) -> Result<(), String> {
    ping(pair)?;
    let address = node.output(&["ip", "addr"])?;
    holds(
        &address,
        &[
            "lo:",
            "127.0.0.1/8",
            &pair.interface,
            &pair.server4,
            &pair.server6,
        ],
    )?;
    holds(
        &node.output(&["ip", "link"])?,
        &["LOOPBACK,UP", &pair.interface, "LOWER_UP"],
    )?;
    holds(
        &node.output(&["ip", "route"])?,
        &["dev", &pair.interface, "scope link"],
    )?;
    let neighbours = node.output(&["ip", "neigh"])?;
    holds(&neighbours, &[&pair.interface, "lladdr"])?;
    holds(
        &node.output(&["ip", "-s", "link", "show", &pair.interface])?,
        &["RX:", "TX:"],
    )?;
    holds(&node.output(&["ip", "-j", "addr"])?, &["\"ifname\":\"lo\""])
}

fn ip_change(pair: &Pair, node: &Node) -> Result<(), String> {
    let interface = pair.interface.as_str();
    node.output(&["ip", "addr", "add", "192.0.2.1/24", "dev", interface])?;
    node.output(&["ip", "route", "add", "198.51.100.0/24", "via", "192.0.2.9"])?;
    holds(
        &node.output(&["ip", "route", "get", "198.51.100.7"])?,
        &["via 192.0.2.9", interface],
    )?;
    node.output(&["ip", "link", "set", interface, "mtu", "1400"])?;
    holds(
        &node.output(&["ip", "link", "show", interface])?,
        &["mtu 1400"],
    )?;
    ping(pair)?;
    node.output(&["ip", "link", "set", interface, "down"])?;
    let lost = pair.client.run(
        &["ping", "-c", "2", "-i", "0.1", "-W", "1", &pair.server4],
        SHORT,
    )?;
    ensure(!lost.ok(), || {
        format!("ping went through a link that is down: {}", lost.report())
    })?;
    node.output(&["ip", "link", "set", interface, "up"])?;
    node.output(&[
        "ip",
        "addr",
        "replace",
        &format!("{}/24", pair.server4),
        "dev",
        interface,
    ])?;
    ping(pair)?;
    Ok(())
}

fn ss(pair: &Pair, node: &Node) -> Result<(), String> {
    let _server = pair.server.start(&["iperf3", "-s", "-1", "-p", "5300"])?;
    pair.wait_for_port(5300)?;
    let _client = pair
        .client
        .start(&["iperf3", "-c", &pair.server4, "-p", "5300", "-t", "4"])?;
    let mut text = String::new();
    let seen = exec::until(Duration::from_secs(4), || {
        text = node.output(&["ss", "-tin"]).unwrap_or_default();
        text.matches("ESTAB").count() >= 2
    });
    ensure(seen, || format!("no established connections in:\n{text}"))?;
    holds(&text, &["rtt:", "cwnd:", ":5300"])?;
    holds(&node.output(&["ss", "-s"])?, &["TCP:"])?;
    holds(&node.output(&["ss", "-lnt"])?, &["LISTEN"]).or(Ok(()))
}

/// A process of the node that holds a socket with a child of its, and a tool's view of who that is.
/// The test is passed the port, both pids and the tool's output (both streams).
fn owner(
    node: &Node,
    tool: &[&str],
    check: fn(&str, [&str; 2], &str) -> Result<(), String>,
) -> Result<(), String> {
    let script = "import socket, sys, os\n\
                  s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n\
                  child = os.fork()\n\
                  if child: print(os.getpid(), s.getsockname()[1], child, flush=True)\n\
                  sys.stdin.read()";
    let mut command = node.command(["python3", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut group = exec::Group::spawn(&mut command)?;
    let out = group.child().stdout.take().ok_or("no pipe")?;
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line)
        .map_err(|e| e.to_string())?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [pid, port, child] = words[..] else {
        return Err(format!("the program said '{line}'"));
    };
    let argv: Vec<&str> = tool
        .iter()
        .map(|word| if *word == "PORT" { port } else { *word })
        .collect();
    let outcome = node.exec(&argv)?;
    check(
        port,
        [pid, child],
        &format!("{}\n{}", outcome.stdout, outcome.stderr),
    )
    .map_err(|why| format!("{why}\n{}", outcome.report()))
}

fn owners_ss(_: &Pair, node: &Node) -> Result<(), String> {
    owner(node, &["ss", "-tlnp"], |port, [pid, child], text| {
        let line = text
            .lines()
            .find(|line| line.contains(&format!(":{port} ")))
            .ok_or("no such socket")?;
        holds(
            line,
            &[
                "LISTEN",
                &format!("(\"python3\",pid={pid},fd=3)"),
                &format!("(\"python3\",pid={child},fd=3)"),
            ],
        )
    })
}

fn owners_lsof(_: &Pair, node: &Node) -> Result<(), String> {
    owner(node, &["lsof", "-nPi"], |port, pids, text| {
        for pid in pids {
            let listens = text
                .lines()
                .filter(|line| line.contains(&format!("TCP 127.0.0.1:{port} (LISTEN)")))
                .any(|line| line.split_whitespace().take(2).eq(["python3", pid]));
            ensure(listens, || format!("not process {pid}"))?;
        }
        Ok(())
    })
}

fn owners_netstat(_: &Pair, node: &Node) -> Result<(), String> {
    owner(node, &["netstat", "-tlnp"], |port, pids, text| {
        let line = text
            .lines()
            .find(|line| line.contains(&format!(":{port} ")))
            .ok_or("no such socket")?;
        ensure(
            pids.iter()
                .any(|pid| line.contains(&format!(" {pid}/python3"))),
            || format!("neither of {pids:?}"),
        )
    })
}

fn owners_fuser(_: &Pair, node: &Node) -> Result<(), String> {
    owner(node, &["fuser", "-n", "tcp", "PORT"], |_, pids, text| {
        for pid in pids {
            ensure(text.split_whitespace().any(|word| word == pid), || {
                format!("not process {pid}")
            })?;
        }
        Ok(())
    })
}

fn tcpdump(pair: &Pair, node: &Node) -> Result<(), String> {
    let mut command = node.command([
        "tcpdump",
        "-i",
        &pair.interface,
        "-nn",
        "-c",
        "4",
        "-l",
        "--immediate-mode",
        "icmp",
    ]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut group = exec::Group::spawn(&mut command)?;
    std::thread::sleep(Duration::from_millis(1000));
    ping(pair)?;
    let end = group.wait(Duration::from_secs(10));
    let mut text = String::new();
    if let Some(mut out) = group.child().stdout.take() {
        drop(group);
        let _ = std::io::Read::read_to_string(&mut out, &mut text);
    }
    ensure(end == Some(exec::End::Exit(0)), || {
        format!("tcpdump: {end:?}\n{text}")
    })?;
    holds(
        &text,
        &["ICMP echo request", "ICMP echo reply", &pair.server4],
    )
}

/// `nft monitor` names the program that changes something.
fn nft_monitor(node: &Node) -> Result<(), String> {
    let folder = Scratch::in_memory()?;
    let said = folder.file("said");
    let file = std::fs::File::create(&said).map_err(|e| e.to_string())?;
    let mut command = ring3(["exec", &node.name, "--", "nft", "monitor"]);
    command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null());
    let _monitor = Group::spawn(&mut command)?;
    let mut count = 0;
    // It says nothing when it begins to listen.
    let heard = until(SHORT, || {
        count += 1;
        let _ = node.output(&["nft", "add", "table", "inet", &format!("m{count}")]);
        std::fs::read_to_string(&said).is_ok_and(|text| text.contains("add table"))
    });
    let named = || std::fs::read_to_string(&said).is_ok_and(|text| text.contains("(nft)"));
    ensure(heard && until(SHORT, named), || {
        std::fs::read_to_string(&said).unwrap_or_default()
    })
}

/// The node's flows are in its /proc/net/nf_conntrack.
fn conntrack(node: &Node) -> Result<(), String> {
    let rules = "add table inet c; add chain inet c in { type filter hook input priority 0 ; }; \
                 add rule inet c in ct state new accept";
    node.output(&["nft", rules])?;
    node.output(&["ping", "-c", "1", "127.0.0.1"])?;
    let flows = node.output(&["cat", "/proc/net/nf_conntrack"])?;
    ensure(
        flows.contains("icmp") && flows.contains("src=127.0.0.1"),
        || flows.clone(),
    )
}

fn nft(pair: &Pair, node: &Node) -> Result<(), String> {
    nft_monitor(node)?;
    conntrack(node)?;
    node.output(&["nft", "flush", "ruleset"])?;
    node.output(&["nft", "add", "table", "inet", "t"])?;
    node.output(&[
        "nft",
        "add",
        "chain",
        "inet",
        "t",
        "in",
        "{ type filter hook input priority 0 ; }",
    ])?;
    node.output(&[
        "nft",
        "add",
        "rule",
        "inet",
        "t",
        "in",
        "icmp",
        "type",
        "echo-request",
        "counter",
        "drop",
    ])?;
    holds(
        &node.output(&["nft", "list", "ruleset"])?,
        &["table inet t", "echo-request", "drop"],
    )?;
    let lost = pair.client.run(
        &["ping", "-c", "2", "-i", "0.1", "-W", "1", &pair.server4],
        SHORT,
    )?;
    ensure(!lost.ok(), || "ping went through the filter".into())?;
    holds(&node.output(&["nft", "list", "ruleset"])?, &["packets 2"])?;
    node.output(&["nft", "flush", "ruleset"])?;
    ping(pair)?;
    Ok(())
}

fn tc(pair: &Pair, node: &Node) -> Result<(), String> {
    let interface = pair.interface.as_str();
    node.output(&[
        "tc", "qdisc", "replace", "dev", interface, "root", "netem", "delay", "30ms",
    ])?;
    holds(
        &node.output(&["tc", "qdisc", "show", "dev", interface])?,
        &["netem", "delay 30ms"],
    )?;
    let text = ping(pair)?;
    let minimum: f64 = text
        .lines()
        .find_map(|line| line.split(" = ").nth(1)?.split('/').next()?.parse().ok())
        .ok_or_else(|| format!("no round-trip times in:\n{text}"))?;
    ensure(minimum >= 25.0, || format!("delayed by {minimum} ms only"))?;
    for kind in ["fq", "fq_codel", "cake", "pfifo"] {
        node.output(&["tc", "qdisc", "replace", "dev", interface, "root", kind])?;
        holds(
            &node.output(&["tc", "-s", "qdisc", "show", "dev", interface])?,
            &[kind, "Sent"],
        )?;
    }
    ping(pair)?;
    Ok(())
}

fn sysctl(_: &Pair, node: &Node) -> Result<(), String> {
    node.output(&["sysctl", "net.ipv4.tcp_congestion_control=bbr"])?;
    let text = node.output(&["sysctl", "-n", "net.ipv4.tcp_congestion_control"])?;
    ensure(text.trim() == "bbr", || format!("now {text}"))?;
    node.output(&[
        "sysctl",
        "-w",
        "net.ipv4.ip_forward=1",
        "net.core.somaxconn=77",
    ])?;
    let text = node.output(&["sysctl", "-n", "net.ipv4.ip_forward", "net.core.somaxconn"])?;
    ensure(text == "1\n77\n", || format!("now {text}"))?;
    let all = node.output(&["sysctl", "net.ipv4"])?;
    ensure(all.lines().count() > 80, || {
        format!("only {} lines", all.lines().count())
    })
}

/// Settings that are not the network's are the whole machine's: they can be read, and a write (of the old value) fails.
fn machine(_: &Pair, node: &Node) -> Result<(), String> {
    let script = "
        refused() { sh -c \"$1\" 2>&1 | grep -q 'a setting of the whole machine' && echo refused || echo \"written: $1\"; }
        export old=$(cat /proc/sys/kernel/threads-max) swappiness=$(cat /proc/sys/vm/swappiness)
        [ -n \"$old\" ] && echo read
        refused 'sysctl -w kernel.threads-max=$old'
        refused 'echo $old > /proc/sys/kernel/threads-max'
        refused 'cd /proc/sys/kernel; echo $old > threads-max'
        refused 'cd /proc/self; echo $old > ../sys/kernel/threads-max'
        refused 'echo $old 1<> /proc/sys/kernel/threads-max'
        [ -e /proc/sysrq-trigger ] && refused 'echo h > /proc/sysrq-trigger' || echo refused
        refused 'echo $swappiness > /proc/sys/vm/swappiness'
        refused 'echo > /sys/kernel/uevent_seqnum; echo add > /sys/class/mem/null/uevent'
        echo 100 > /proc/self/oom_score_adj && echo this process
        sysctl -w net.ipv4.ip_default_ttl=77 && cat /proc/sys/net/ipv4/ip_default_ttl
        hostname=$(cat /proc/sys/kernel/hostname); echo $hostname > /proc/sys/kernel/hostname && echo namespace";
    if !rustix::process::geteuid().is_root() {
        return Ok(()); // the host refuses it
    }
    let text = node.output(&["sh", "-c", script])?;
    let want = "read\n".to_owned()
        + &"refused\n".repeat(8)
        + "this process\nnet.ipv4.ip_default_ttl = 77\n77\nnamespace\n";
    ensure(text == want, || format!("{text}instead of\n{want}"))
}

fn proc_files(pair: &Pair, node: &Node) -> Result<(), String> {
    ping(pair)?;
    let text = node.output(&["cat", "/proc/net/snmp"])?;
    holds(&text, &["Ip:", "Icmp:", "Tcp:", "Udp:"])?;
    holds(
        &node.output(&["cat", "/proc/net/dev"])?,
        &["lo:", &pair.interface],
    )?;
    let names = node.output(&["ls", "/sys/class/net"])?;
    holds(&names, &["lo", &pair.interface])?;
    let file = format!("/sys/class/net/{}/operstate", pair.interface);
    holds(&node.output(&["cat", &file])?, &["up"])
}

fn log(_: &Pair, node: &Node) -> Result<(), String> {
    let outcome = exec::run(&mut crate::node::ring3(["log", &node.name]), SHORT)?;
    ensure(
        outcome.ok() && outcome.stdout.contains("Linux version"),
        || outcome.report(),
    )?;
    let outcome = exec::run(&mut crate::node::ring3(["ls", "--json"]), SHORT)?;
    ensure(outcome.ok() && outcome.stdout.contains(&node.name), || {
        outcome.report()
    })
}
