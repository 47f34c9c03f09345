// SPDX-License-Identifier: GPL-2.0
//! Ports that the topologies don't use: passt, and captures; signals for packets.

use super::topology::{Pair, Topology};
use super::{Checked, Verdict, ensure, helper, missing, trial};
use crate::exec::{self, Outcome};
use crate::node::{self, Node};
use crate::scratch::{self, Scratch};
use libtest_mimic::Trial;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("passt_curl".into(), passt_curl),
        trial("passt_sandbox".into(), passt_sandbox),
        trial("passt_sandbox_udp".into(), passt_sandbox_udp),
        trial("passt_names".into(), passt_names),
        trial("pcap_link".into(), pcap_link),
        trial("pcap_tap".into(), pcap_tap),
        trial("pcap_host".into(), pcap_host),
        trial("tap_sigio".into(), tap_sigio),
    ]
}

/// With loopback=yes the gateway that passt shows is the host's loopback: a server there can be reached. Else not.
fn passt_curl() -> Checked {
    for program in ["passt", "python3", "curl", "tcpdump"] {
        if let Some(why) = missing(&[program])? {
            return Ok(Verdict::Ignored(why));
        }
    }
    let folder = Scratch::new()?;
    let sent = folder.noise("large", 5 << 20)?;
    let got = folder.file("got");
    let script = "
        python3 -m http.server --bind 127.0.0.1 -d \"$2\" 8000 >/dev/null 2>&1 &
        trap \"kill $!\" EXIT
        curl -sS -f --retry 9 --retry-connrefused --retry-delay 1 -o /dev/null http://127.0.0.1:8000/large || exit 9
        ask='exec curl -sS -f -m 20 -o \"$0\" http://$(ip route | awk \"/^default/ { print \\$3 }\"):8000/large'
        \"$1\" run --port passt,loopback=yes,pcap=\"$4\" -- sh -c \"$ask\" \"$3\" || exit 8
        cmp \"$2/large\" \"$3\" || exit 7
        ! timeout 5 \"$1\" run --port passt -- sh -c \"$ask\" /dev/null 2>/dev/null";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(crate::paths::ring3());
    let file = folder.file("capture.pcap");
    command.arg(folder.path()).arg(&got).arg(&file);
    let mut command = node::in_fresh_network(node::DEFAULT_ROUTE, &command);
    let outcome = exec::run(&mut command, Duration::from_secs(60))?;
    ensure(outcome.ok(), || outcome.report())?;
    ensure(scratch::same(&sent, &got)?, || "other bytes arrived".into())?;
    let outcome = captured(&file, "tcp port 8000")?;
    let asks = |line: &&str| line.contains(".8000: Flags");
    let answers = |line: &&str| line.contains(".8000 > ");
    let lines = || outcome.stdout.lines();
    ensure(
        lines().any(|l| asks(&l)) && lines().any(|l| answers(&l)),
        || format!("pcap=: {}", lines().take(20).collect::<Vec<_>>().join("\n")),
    )?;
    Ok(Verdict::Passed)
}

/// A program that writes the loopback's address into its packets. Debian 12's passt connects to that on the host, so no
/// sandbox gets such a port. A node that is not confined has it: its programs have the host anyway.
fn passt_sandbox() -> Checked {
    for program in ["passt", "python3", "curl"] {
        if let Some(why) = missing(&[program])? {
            return Ok(Verdict::Ignored(why));
        }
    }
    let folder = Scratch::new()?;
    std::fs::write(folder.file("secret"), "a secret of the host\n").map_err(|e| e.to_string())?;
    let script = "
        python3 -m http.server --bind 127.0.0.1 -d \"$2\" 8000 >/dev/null 2>&1 &
        trap \"kill $!\" EXIT
        curl -sS -f --retry 9 --retry-connrefused --retry-delay 1 -o /dev/null http://127.0.0.1:8000/secret || exit 9
        try='ip addr flush dev lo
            sysctl -qw net.ipv4.conf.all.route_localnet=1 net.ipv4.conf.all.rp_filter=0 &&
            ip route replace 127.0.0.0/8 via 10.0.2.2 src 10.0.2.15 &&
            exec curl -sS -f -m 5 http://127.0.0.1:8000/secret'
        \"$1\" run --port passt -- sh -c \"$try\" >/dev/null 2>&1 && leads=yes
        said=$(\"$1\" run --sandbox --port passt -- sh -c \"$try\" 2>&1)
        status=$?
        echo \"leads: ${leads:-no}, status $status: $said\"
        case $said in *secret*) exit 8 ;; esac
        if [ \"$leads\" ]; then
            case $said in *\"can't have that\"*loopback*) ;; *) exit 7 ;; esac
            [ $status = 125 ] || exit 6
        else
            \"$1\" run --sandbox --port passt -- true || exit 5
        fi
        \"$1\" run --sandbox --port passt,loopback=yes -- true || exit 4";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(crate::paths::ring3())
        .arg(folder.path());
    let mut command = node::in_fresh_network(node::DEFAULT_ROUTE, &command);
    let outcome = exec::run(&mut command, Duration::from_secs(60))?;
    ensure(outcome.ok(), || outcome.report())?;
    Ok(Verdict::Passed)
}

/// A passt of 2024-03 to 2024-07 refuses TCP to the loopback, and not UDP. Here the host refuses TCP.
fn passt_sandbox_udp() -> Checked {
    for program in ["passt", "python3", "nft"] {
        if let Some(why) = missing(&[program])? {
            return Ok(Verdict::Ignored(why));
        }
    }
    let folder = Scratch::new()?;
    let script = "
        nft 'add table inet t; add chain inet t o { type filter hook output priority 0; }; add rule inet t o oifname lo meta l4proto tcp drop' || exit 9
        python3 -c 'import socket, sys
s = socket.socket(type=socket.SOCK_DGRAM); s.bind((\"127.0.0.1\", 5300)); open(sys.argv[2], \"w\")
while True: s.recv(99); open(sys.argv[1], \"w\").write(\"x\")' \"$2/heard\" \"$2/up\" &
        trap \"kill $!\" EXIT
        while [ ! -e \"$2/up\" ]; do sleep 0.1; done
        try='ip addr flush dev lo
            sysctl -qw net.ipv4.conf.all.route_localnet=1 net.ipv4.conf.all.rp_filter=0 &&
            ip route replace 127.0.0.0/8 via 10.0.2.2 src 10.0.2.15 &&
            for n in 1 2 3 4 5; do echo x >/dev/udp/127.0.0.1/5300; sleep 0.2; done'
        \"$1\" run --port passt -- bash -c \"$try\" >/dev/null 2>&1
        [ -s \"$2/heard\" ] && leads=yes && rm \"$2/heard\"
        said=$(\"$1\" run --sandbox --port passt -- bash -c \"$try\" 2>&1)
        status=$?
        echo \"leads: ${leads:-no}, status $status: $said\"
        [ -s \"$2/heard\" ] && exit 8
        [ \"$leads\" ] || exit 0
        case $said in *\"can't have that\"*loopback*) ;; *) exit 7 ;; esac";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(crate::paths::ring3())
        .arg(folder.path());
    let mut command = node::in_fresh_network(node::DEFAULT_ROUTE, &command);
    let outcome = exec::run(&mut command, Duration::from_secs(60))?;
    ensure(outcome.ok(), || outcome.report())?;
    Ok(Verdict::Passed)
}

/// A host whose resolver listens on 127.0.0.53 only, as systemd's does: names resolve on the node, by the servers that this one
/// asks. Without those the node's start says so, and --dns has the last word.
fn passt_names() -> Checked {
    for program in ["passt", "python3", "getent", "unshare"] {
        if let Some(why) = missing(&[program])? {
            return Ok(Verdict::Ignored(why));
        }
    }
    let folder = Scratch::new()?;
    let file = folder.file("resolv.conf");
    std::fs::write(&file, "nameserver 127.0.0.53\noptions edns0 timeout:2\n")
        .map_err(|e| e.to_string())?;
    // Both the local resolver and the one that it asks, which is an address of the host's.
    let resolver = "
import socket, threading
def serve(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 53))
    while True:
        query, peer = s.recvfrom(2000)
        end = query.index(b'\\0', 12) + 5
        record = b'\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4\\xc0\\0\\2\\x4d'
        is_a = query[end - 4:end] == b'\\0\\1\\0\\1'
        head = query[:2] + b'\\x81\\x80\\0\\1' + (b'\\0\\1' if is_a else b'\\0\\0') + b'\\0' * 4
        s.sendto(head + query[12:end] + (record if is_a else b''), peer)
threading.Thread(target=serve, args=('198.51.100.2',)).start()
serve('127.0.0.53')
";
    let script = "
        mount --bind \"$2\" /etc/resolv.conf && mount -t tmpfs none /run || exit 9
        python3 -c \"$3\" & trap \"kill $!\" EXIT
        for i in 1 2 3 4 5 6 7 8 9; do getent ahostsv4 a.example.org >/dev/null && break; sleep 0.2; done
        echo host: $(getent ahostsv4 a.example.org | head -1)
        echo hidden: $(\"$1\" run --port passt -- true 2>&1)
        mkdir -p /run/systemd/resolve
        printf 'nameserver 127.0.0.1\\nnameserver 198.51.100.2\\nsearch b.example\\n' >/run/systemd/resolve/resolv.conf
        ask='echo node: $(getent ahostsv4 a.example.org | head -1); cat /etc/resolv.conf'
        \"$1\" run --port passt -- sh -c \"$ask\" || exit 8
        echo link: $(\"$1\" run -- head -1 /etc/resolv.conf)
        echo dns: $(\"$1\" run --port passt --dns 192.0.2.1 -- cat /etc/resolv.conf)";
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(crate::paths::ring3())
        .arg(&file)
        .arg(resolver);
    let mut command = node::in_fresh_network(node::DEFAULT_ROUTE, &command);
    let outcome = exec::run(&mut command, Duration::from_secs(60))?;
    ensure(outcome.ok(), || outcome.report())?;
    let (hidden, others): (Vec<&str>, Vec<&str>) = outcome
        .stdout
        .lines()
        .partition(|line| line.starts_with("hidden:"));
    ensure(
        hidden.len() == 1 && hidden[0].contains("127.0.0.53") && hidden[0].contains("--dns"),
        || outcome.report(),
    )?;
    let wanted = [
        "host: 192.0.2.77 STREAM a.example.org",
        "node: 192.0.2.77 STREAM a.example.org",
        "nameserver 198.51.100.2",
        "search b.example",
        "link: nameserver 127.0.0.53",
        "dns: nameserver 192.0.2.1",
    ];
    ensure(others == wanted, || outcome.report())?;
    Ok(Verdict::Passed)
}

/// The output of tcpdump for a capture.
fn captured(file: &Path, filter: &str) -> Result<Outcome, String> {
    let mut command = Command::new("tcpdump");
    command.args(["-nn", "-r"]).arg(file).arg(filter);
    let outcome = exec::run(&mut command, Duration::from_secs(20))?;
    ensure(outcome.ok(), || outcome.report())?;
    Ok(outcome)
}

/// The capture has so many echo requests and as many replies, and not one more.
pub fn has_echoes(file: &Path, n: usize) -> Result<(), String> {
    let outcome = captured(file, "icmp")?;
    let count = |words: &str| outcome.stdout.matches(words).count();
    ensure(
        count("ICMP echo request") == n && count("ICMP echo reply") == n,
        || outcome.report(),
    )
}

/// The same over a TAP.
fn pcap_tap() -> Checked {
    if let Some(why) = missing(&["tcpdump"])?.or_else(|| Topology::TapServer.obstacle()) {
        return Ok(Verdict::Ignored(why));
    }
    let folder = Scratch::new()?;
    let file = folder.file("capture.pcap");
    let slot = scratch::slot();
    let address = |host: u32| format!("10.{}.{slot}.{host}", 190 + std::process::id() % 60);
    let node = Node::up(&[format!(
        "tap:{},addr={}/24,host={}/24,pcap={}",
        scratch::unique("r3"),
        address(1),
        address(2),
        file.display()
    )])?;
    node.output(&["ping", "-c", "3", "-i", "0.1", &address(2)])?;
    drop(node);
    has_echoes(&file, 3)?;
    Ok(Verdict::Passed)
}

/// What crosses a link is in the capture, both directions, and tcpdump can read it.
fn pcap_link() -> Checked {
    if let Some(why) = missing(&["tcpdump"])? {
        return Ok(Verdict::Ignored(why));
    }
    let folder = Scratch::new()?;
    let file = folder.file("capture.pcap");
    let link = scratch::unique("r3");
    let a = Node::up(&[format!(
        "link:{link},addr=10.7.7.1/24,pcap={}",
        file.display()
    )])?;
    let b = Node::up(&[format!("link:{link},addr=10.7.7.2/24")])?;
    b.output(&["ping", "-c", "3", "-i", "0.1", "10.7.7.1"])?;
    drop(b);
    drop(a);
    has_echoes(&file, 3)?;
    Ok(Verdict::Passed)
}

/// ... and through a host port: a connection that its gateway refuses, and the refusal.
fn pcap_host() -> Checked {
    if let Some(why) = missing(&["tcpdump", "bash"])? {
        return Ok(Verdict::Ignored(why));
    }
    let folder = Scratch::new()?;
    let file = folder.file("capture.pcap");
    let script = "set -- $(ip -4 route show default) && ! (exec 3<>/dev/tcp/$3/9) 2>/dev/null";
    let node = Node::up(&[format!("host,pcap={}", file.display())])?;
    node.output(&["bash", "-c", script])?;
    drop(node);
    let outcome = captured(&file, "ip")?;
    ensure(
        outcome.stdout.contains("10.0.2.2.9: Flags [S]")
            && outcome.stdout.contains("IP 10.0.2.2 > 10.0.2.15: ICMP"),
        || outcome.report(),
    )?;
    Ok(Verdict::Passed)
}

/// A signal for each packet that comes from outside: none is lost, however they fall together.
fn tap_sigio() -> Checked {
    if let Some(why) = Topology::TapServer.obstacle() {
        return Ok(Verdict::Ignored(why));
    }
    let pair = Pair::new(Topology::TapServer)?;
    let sigio = helper("sigio")?;
    let (sigio, port) = (sigio.to_string_lossy(), pair.port(0).to_string());
    let sends = [&*sigio, "send", &pair.server4, &port, "5"];
    let _sender = pair.client.start(&sends)?;
    let receives = [&*sigio, "receive", &port, "4"];
    let outcome = pair.server.run(&receives, Duration::from_secs(30))?;
    print!("{}", outcome.stdout);
    ensure(outcome.ok(), || outcome.report())?;
    Ok(Verdict::Passed)
}
