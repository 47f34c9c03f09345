// SPDX-License-Identifier: GPL-2.0
//! The `host` port: what the host's own sockets carry and what a node's program sees of it are the same.

use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, Outcome};
use crate::node;
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::process::Command;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("host_port_ipv4".into(), || same_answers("192.0.2.1")),
        trial("host_port_ipv6".into(), || same_answers("2001:db8::1")),
        trial("host_port_datagrams".into(), datagrams_of_four),
        trial("host_port_published".into(), published),
        trial("host_port_rules".into(), rules),
        trial("host_port_killed".into(), killed),
        trial("host_port_names".into(), names),
        trial("host_port_echo".into(), echo),
        trial("host_port_confined".into(), confined),
        trial("host_port_named".into(), named),
        trial("host_port_ping".into(), ping),
    ]
}

/// Addresses of the host that stand for others'. It takes 203.0.113.7 without being it.
const SET_UP: &str = "ip addr add 192.0.2.1/32 dev lo; ip route add local 203.0.113.7 dev lo src 192.0.2.1; ip addr add 2001:db8::1/128 dev lo nodad; ip addr add fe80::99/64 dev lo nodad";

/// $1: ring3, $2: the folder of helpers, $3: this test's folder; `ordinary` starts a program as a user who may nothing.
const PRELUDE: &str = "
    ring3=$1 helpers=$2 folder=$3
    case $(id -u) in
    0)
        chown 65534:65534 \"$folder\"; chmod 700 \"$folder\"
        cp \"$helpers/gateway.py\" \"$folder\"
        ordinary='setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs' ;;
    *) cp \"$helpers/gateway.py\" \"$folder\" ;;
    esac
    cd \"$folder\" || exit 9
    export XDG_RUNTIME_DIR=$folder
    python3 gateway.py serve 192.0.2.1 2001:db8::1 >ready &
    helper=$!
    trap 'kill $helper' EXIT
    for i in $(seq 100); do [ -s ready ] && break; sleep 0.1; done
";

/// Runs a script on a host with a network of its own.
fn on_host(script: &str, args: &[&str]) -> Result<Outcome, String> {
    let folder = Scratch::new()?;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{PRELUDE}\n{script}"), "sh"]);
    command.arg(paths::ring3());
    command.arg(paths::root().join("tests/apps"));
    command.arg(folder.path()).args(args);
    let mut command = node::in_fresh_network(SET_UP, &command);
    exec::run(&mut command, Duration::from_secs(100))
}

/// An ordinary user's node, without a capability: the host's answers are the expected ones.
fn same_answers(address: &str) -> Checked {
    if let Some(why) = missing(&["python3", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let script = "
        python3 gateway.py ask $4 >host || exit 8
        on_node='grep -q host0: /proc/net/dev && exec python3 gateway.py ask $0'
        $ordinary \"$ring3\" run --port host -- sh -c \"$on_node\" $4 >node || exit 7
        diff host node && cat node";
    let outcome = on_host(script, &[address])?;
    ensure(outcome.ok(), || outcome.report())?;
    ensure(outcome.stdout.lines().count() >= 8, || outcome.report())?;
    Ok(Verdict::Passed)
}

/// The gateway does not carry echo requests, and does not answer for others: nobody has the first address.
fn echo() -> Checked {
    if let Some(why) = missing(&["ping"])? {
        return Ok(Verdict::Ignored(why));
    }
    let script = "
        for address in 198.51.100.7 192.0.2.1 2001:db8::7; do
            \"$ring3\" run --port host -- ping -n -c 1 -W 9 $address | grep -c 'filtered\\|prohibited'
        done";
    let outcome = on_host(script, &[])?;
    ensure(outcome.stdout == "1\n1\n1\n", || outcome.report())?;
    Ok(Verdict::Passed)
}

/// Four nodes at once ask one server from ports of the same number: no answer comes to another.
fn datagrams_of_four() -> Checked {
    if let Some(why) = missing(&["python3", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let script = "
        for tag in a b c d; do
            $ordinary \"$ring3\" run --net -- python3 gateway.py tagged 192.0.2.1 $tag >said.$tag &
            pids=\"$pids $!\"
        done
        for pid in $pids; do wait $pid || exit 8; done
        cat said.?";
    let outcome = on_host(script, &[])?;
    ensure(outcome.ok(), || outcome.report())?;
    let wanted = "500 answers, 0 of others'\n".repeat(4);
    ensure(outcome.stdout == wanted, || outcome.report())?;
    Ok(Verdict::Passed)
}

/// A node's server is reached by ports of the host, and sees its client's address.
fn published() -> Checked {
    if let Some(why) = missing(&["python3", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    // Its server listens on ports 7001 (a sum of what it got, and of whom) and 7007 (an echo).
    let script = "
        $ordinary \"$ring3\" run --port host,tcp=192.0.2.1@9001:7001,tcp=9002:7001,udp=9007:7007 -- \\
            python3 gateway.py serve :: >served &
        server=$!
        trap 'kill $helper $server' EXIT
        for i in $(seq 100); do [ -s served ] && break; sleep 0.1; done
        python3 gateway.py published 192.0.2.1 9001 9007
        python3 gateway.py published fe80::99%lo 9002 9007";
    let outcome = on_host(script, &[])?;
    // A client of one of the host's links has the gateway's address, as one of the host itself.
    let wanted = "a peer that is gone is noticed\ntcp: 10000000 b1cafb47e91fbb8a from 192.0.2.1\nudp: echoed\n\
        a peer that is gone is noticed\ntcp: 10000000 b1cafb47e91fbb8a from fd72:696e:6733::2\nudp: echoed\n";
    ensure(outcome.stdout == wanted, || outcome.report())?;
    Ok(Verdict::Passed)
}

/// What a rule refuses is refused at once, counted and said.
fn rules() -> Checked {
    if let Some(why) = missing(&["python3", "curl", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let script = "
        get() {
            rules=$1; shift
            $ordinary \"$ring3\" run --port host$rules -- curl -sS -m 5 -o got -w '%{exitcode}\\n' \"$@\" 2>>said
        }
        python3 -m http.server -b 192.0.2.1 8000 >/dev/null 2>&1 &
        server=$!
        for i in $(seq 100); do curl -s -o /dev/null http://192.0.2.1:8000 && break; sleep 0.1; done
        get '' http://192.0.2.1:8000/
        get ,deny=192.0.2.0/24 http://192.0.2.1:8000/
        get ,allow=192.0.2.1:8000 http://192.0.2.1:8000/
        get ,allow=192.0.2.1:8001 http://192.0.2.1:8000/
        get ,allow=*:8000,deny=192.0.2.1 http://192.0.2.1:8000/
        kill $server; grep -c 'refused tcp to 192.0.2.1:8000' said; grep -v refused said >&2";
    let outcome = on_host(script, &[])?;
    ensure(outcome.stdout == "0\n7\n0\n7\n7\n3\n", || outcome.report())?;
    Ok(Verdict::Passed)
}

/// The port's process is confined, and has no rights. It is killed: no carrier, a line in the log, `ls` says so, and the node lives.
fn killed() -> Checked {
    if let Some(why) = missing(&["python3", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let script = "
        $ordinary \"$ring3\" up a --net || exit 8
        trap '$ordinary \"$ring3\" down a; kill $helper' EXIT
        before=$($ordinary \"$ring3\" exec a -- cat /sys/class/net/host0/carrier)
        pid=$($ordinary \"$ring3\" stat a --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"ports\"][0][\"pid\"])')
        grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd):' /proc/$pid/status
        kill -9 $pid
        for i in $(seq 50); do
            after=$($ordinary \"$ring3\" exec a -- cat /sys/class/net/host0/carrier)
            [ \"$after\" = 0 ] && break; sleep 0.1
        done
        echo \"$before $after\"
        $ordinary \"$ring3\" ls | grep -c 'no other end'
        grep -c 'host port.s process has ended' ring3/a.log
        $ordinary \"$ring3\" exec a -- ping -c 1 127.0.0.1 >/dev/null && echo lives";
    let outcome = on_host(script, &[])?;
    let none = "0000000000000000";
    let wanted = format!(
        "CapEff:\t{none}\nCapBnd:\t{none}\nNoNewPrivs:\t1\nSeccomp:\t2\n1 0\n1\n1\nlives\n"
    );
    ensure(outcome.stdout == wanted, || outcome.report())?;
    Ok(Verdict::Passed)
}

/// Whoever takes the gateway over can't write to its kernel's text, and finds no descriptor but those it was made with.
fn confined() -> Checked {
    if let Some(why) = missing(&["python3", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let script = "
        exec 7</etc/passwd
        $ordinary \"$ring3\" up a --net || exit 8
        trap '$ordinary \"$ring3\" down a; kill $helper' EXIT
        pid=$($ordinary \"$ring3\" stat a --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"ports\"][0][\"pid\"])')
        python3 gateway.py inspect $pid";
    let outcome = on_host(script, &[])?;
    let wanted = "text: 1 mapping, 0 can be written\n\
        files: /dev/null anon_inode:[eventfd] anon_inode:[eventpoll] link pipe socket\n";
    ensure(outcome.stdout == wanted, || outcome.report())?;
    Ok(Verdict::Passed)
}

/// The resolver of the host's loopback, where a.example.org is 203.0.113.7, own.example.net the host itself, big.example.org
/// has 60 addresses, that one among them, and all else
/// 192.0.2.77, and a server on port 8000. $1 in the script: ring3.
fn with_resolver(script: &str) -> Result<Outcome, String> {
    let wrapped = format!(
        "
        printf 'nameserver 127.0.0.53\noptions timeout:2\n' >resolv.conf
        python3 -m http.server -b 0.0.0.0 8000 >/dev/null 2>&1 &
        server=$!
        trap 'kill $helper $server' EXIT
        for i in $(seq 300); do curl -s -o /dev/null http://192.0.2.1:8000 && break; sleep 0.1; done
        unshare -m sh -c 'mount --bind resolv.conf /etc/resolv.conf && exec \"$@\"' sh sh -c '
            ring3=$1 ordinary=$2
            python3 gateway.py resolve & trap \"kill $!\" EXIT
            for i in $(seq 50); do getent ahostsv4 a.example.org >ready2 && break; sleep 0.2; done
            {script}
        ' sh \"$ring3\" \"$ordinary\""
    );
    on_host(&wrapped, &[])
}

/// A rule names a name: that one alone resolves, and its addresses can be reached at the rule's port. No name opens the
/// host itself. An answer that is too long for a datagram comes by TCP, under the same rules.
fn named() -> Checked {
    if let Some(why) = missing(&["python3", "curl", "getent", "unshare", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let script = r#"
            on_node="
                get() { curl -sS -m 9 -o got -w \"%{exitcode} \" \"\$@\" 2>/dev/null; }
                get http://203.0.113.7:8000/
                get http://b.example.net:8000/
                get http://a.example.org:8000/
                get http://203.0.113.7:8000/
                get http://203.0.113.7:7001/
                get http://own.example.net:8000/
                python3 gateway.py asks 10.0.2.2"
            $ordinary "$ring3" run --port host,allow=A.example.org:8000,allow=own.example.net:8000,log=refused.json -- sh -c "$on_node" 2>said
            grep -q "refused the name b.example.net" said && echo said
            python3 gateway.py read refused.json
            on_node="
                getent ahostsv4 big.example.org | grep -c STREAM
                curl -sS -m 9 -o got -w \"%{exitcode}\n\" http://203.0.113.7:8000/ 2>/dev/null"
            $ordinary "$ring3" run --port host,allow=big.example.org:8000 -- sh -c "$on_node"
            $ordinary "$ring3" run --port host,deny=*.example.org -- sh -c "getent ahostsv4 a.example.org | wc -l; getent ahostsv4 b.example.net | head -1" 2>/dev/null"#;
    let outcome = with_resolver(script)?;
    let wanted = "7 6 0 0 7 7 refused refused by TCP\nsaid\n\
        tcp to 203.0.113.7:8000\nthe name b.example.net\ntcp to 203.0.113.7:7001\n\
        the address 192.0.2.1 of own.example.net\ntcp to 192.0.2.1:8000\nthe name c.example.org\n\
        60\n0\n0\n192.0.2.77      STREAM b.example.net\n";
    ensure(outcome.stdout == wanted, || outcome.report())?;
    Ok(Verdict::Passed)
}

/// Echo requests go out where the host lets an ordinary user send some; rules hold for them.
fn ping() -> Checked {
    if let Some(why) = missing(&["ping", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let script = "
        (echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range) || { echo unset; exit; }
        ask() { port=$1; shift; $ordinary \"$ring3\" run --port host$port -- ping -n -c 2 -i 0.2 -W 9 \"$@\" 2>&1; }
        for address in 192.0.2.1 2001:db8::1 10.0.2.2; do
            ask '' -s 3000 $address | grep -c '^3008 bytes from'
        done
        ask ,allow=192.0.2.1:80 192.0.2.1 | grep -c 'filtered\\|prohibited'
        ask ,allow=192.0.2.1 192.0.2.1 | grep -c 'bytes from'
        ask '' 240.0.0.1 | grep -c 'nreachable'";
    let outcome = on_host(script, &[])?;
    if outcome.stdout == "unset\n" {
        let why = outcome.stderr.lines().last().unwrap_or_default();
        let why = format!("net.ipv4.ping_group_range cannot be set here: {why}");
        return Ok(Verdict::Ignored(why));
    }
    ensure(outcome.stdout == "2\n2\n2\n2\n2\n2\n", || outcome.report())?;
    Ok(Verdict::Passed)
}

/// Names resolve as the host resolves them, a resolver on the host's loopback included.
fn names() -> Checked {
    if let Some(why) = missing(&["python3", "getent", "unshare", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let resolver = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((\"127.0.0.53\", 53))
while True:
    query, peer = s.recvfrom(2000)
    end = query.index(b\"\\0\", 12) + 5
    record = b\"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4\\xc0\\0\\2\\x4d\"
    is_a = query[end - 4:end] == b\"\\0\\1\\0\\1\"
    head = query[:2] + b\"\\x81\\x80\\0\\1\" + (b\"\\0\\1\" if is_a else b\"\\0\\0\") + b\"\\0\" * 4
    s.sendto(head + query[12:end] + (record if is_a else b\"\"), peer)
";
    let script = format!(
        "
        printf 'nameserver 127.0.0.53\\noptions timeout:2\\n' >resolv.conf
        unshare -m sh -c 'mount --bind resolv.conf /etc/resolv.conf && exec \"$@\"' sh sh -c '
            ring3=$1 ordinary=$2
            python3 -c \"$3\" & trap \"kill $!\" EXIT
            for i in 1 2 3 4 5 6 7 8 9; do getent ahostsv4 a.example.org >/dev/null && break; sleep 0.2; done
            $ordinary \"$ring3\" run --net -- sh -c \"getent ahostsv4 a.example.org | head -1; cat /etc/resolv.conf\"
        ' sh \"$ring3\" \"$ordinary\" '{resolver}'"
    );
    let outcome = on_host(&script, &[])?;
    let wanted = "192.0.2.77      STREAM a.example.org\nnameserver 10.0.2.2\noptions timeout:2\n";
    ensure(outcome.stdout == wanted, || outcome.report())?;
    Ok(Verdict::Passed)
}
