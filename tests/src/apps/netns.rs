// SPDX-License-Identifier: GPL-2.0
//! Network namespaces inside a node, as iproute2, util-linux and bridges use them.
//!
//! Each script runs on the host, in network and mount namespaces of its own with an empty /run,
//! and on a node; the outputs must be equal. On the node an ordinary user has no need of a
//! user namespace for it. One more trial has the node itself in a pid namespace, where processes
//! have the small numbers that a kernel's threads have elsewhere.

use super::{Checked, Verdict, ensure, installed, trial};
use crate::exec::{self, Outcome};
use crate::node::{Node, UNSET, ring3};
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Names and numbers only, of links in an order that does not vary.
const LINKS: &str = "links() { ip -o \"$@\" link | awk '{print $2, $3}' | sort; }; ";

const SCRIPTS: &[(&str, &str)] = &[
    (
        "named",
        "ip netns add blue && ip netns add red && ip netns list | awk '{print $1}' | sort
         ip netns add blue; echo $?
         ip netns exec blue sh -c 'links; ls /sys/class/net | grep -v masters; cat /proc/net/dev | wc -l'
         ip link add va type veth peer name vb
         ip link set va netns blue; ip link set vb netns red
         links; links -n blue | sed s/@if[0-9]*/@if/; ls /sys/class/net | grep -v masters
         ip -n blue addr add 10.1.1.1/24 dev va; ip -n blue link set va up
         ip -n red addr add 10.1.1.2/24 dev vb; ip -n red link set vb up
         ip netns exec blue ping -q -c 3 -i 0.05 -W 2 10.1.1.2 | grep -o '[0-9]* received'
         ping -q -c 1 -W 1 10.1.1.2 2>&1 | grep -c ' received'
         ip netns exec blue sysctl -w net.ipv4.ip_default_ttl=77; sysctl net.ipv4.ip_default_ttl
         ip netns identify $$; ip netns exec red sh -c 'ip netns identify $$'
         ip netns exec red sleep 30 & sleep 0.3; ip netns pids red | wc -l; kill $!; wait
         ip netns del blue; ip netns list | awk '{print $1}'
         ip -n blue link; echo $?
         for i in $(seq 100); do ip -n red link show vb >/dev/null 2>&1 || break; sleep 0.05; done
         links -n red; ip -all netns del; ip netns list",
    ),
    (
        "unnamed",
        "unshare -n sh -c 'links; ip link set lo up; ping -q -c 1 127.0.0.1 | grep -c 1.received'
         links
         unshare -n sleep 30 & p=$!; sleep 0.3
         ip link add v type veth peer name w netns $p && links
         nsenter --net=/proc/$p/ns/net sh -c links | sed s/@if[0-9]*/@if/
         nsenter -t $p -n ip link set w name x; nsenter -t $p -n sh -c links | sed s/@if[0-9]*/@if/
         [ $(readlink /proc/$p/ns/net) = $(readlink /proc/self/ns/net) ]; echo $?
         ip link set v netns $p; links
         kill $p; wait; ip link add v type veth peer name w netns $p; echo $?",
    ),
    (
        "bridged",
        "ip link add br0 type bridge; ip link set br0 up
         for i in 1 2 3; do
             ip netns add n$i
             ip link add p$i type veth peer name eth0 netns n$i
             ip link set p$i master br0 up
             ip -n n$i addr add 10.2.2.$i/24 dev eth0; ip -n n$i link set eth0 up
         done
         bridge link | wc -l
         for i in 2 3; do ip netns exec n1 ping -q -c 2 -i 0.05 -W 2 10.2.2.$i | grep -o '[0-9]* received'; done
         ip link set p3 down; ip netns exec n1 ping -q -c 1 -W 1 10.2.2.3 | grep -o '[0-9]* received'
         ip -all netns exec ip -o -4 addr show eth0 | awk '/inet/ {print $4}' | sort",
    ),
    (
        "routed",
        "ip netns add c; ip netns add r; ip netns add s
         # A host's namespaces forward where its first one does.
         ip netns exec r sysctl -qw net.ipv4.ip_forward=0
         ip link add c0 netns c type veth peer name r0 netns r
         ip link add s0 netns s type veth peer name r1 netns r
         ip -n c addr add 10.3.0.2/24 dev c0; ip -n c link set c0 up
         ip -n r addr add 10.3.0.1/24 dev r0; ip -n r link set r0 up
         ip -n r addr add 10.4.0.1/24 dev r1; ip -n r link set r1 up
         ip -n s addr add 10.4.0.2/24 dev s0; ip -n s link set s0 up
         ip -n c route add default via 10.3.0.1; ip -n s route add default via 10.4.0.1
         ip netns exec c ping -q -c 1 -W 1 10.4.0.2 | grep -o '[0-9]* received'
         ip netns exec r sysctl -qw net.ipv4.ip_forward=1
         ip netns exec c ping -q -c 3 -i 0.05 -W 2 10.4.0.2 | grep -o '[0-9]* received'
         ip netns exec s socat -u TCP-LISTEN:7000 - | md5sum & sleep 0.5
         head -c 3000000 /dev/zero | ip netns exec c socat -u - TCP:10.4.0.2:7000; wait
         ip netns exec r sh -c 'nft add table t; nft add chain t f { type filter hook forward priority 0 \\; policy drop \\; }'
         ip netns exec c ping -q -c 1 -W 1 10.4.0.2 | grep -o '[0-9]* received'; nft list tables",
    ),
    (
        // A gateway ends connections to any address (IP_TRANSPARENT, TPROXY), and answers in that address's name.
        "transparent",
        "ip netns add c; ip netns add g
         ip link add c0 netns c type veth peer name g0 netns g
         ip -n c addr add 10.3.0.2/24 dev c0; ip -n c link set c0 up; ip -n c route add default via 10.3.0.1
         ip -n g addr add 10.3.0.1/24 dev g0; ip -n g link set g0 up; ip -n g link set lo up
         ip -n g rule add iif g0 lookup 100; ip -n g route add local default dev lo table 100
         ip netns exec g sh -c 'nft add table t; nft add chain t p { type filter hook prerouting priority -150 \\; }
             nft add rule t p iifname g0 meta l4proto { tcp, udp } tproxy to :9999'
         ip netns exec g python3 -c '
import socket
def transparent(kind, at):
    s = socket.socket(socket.AF_INET, kind)
    s.setsockopt(socket.SOL_IP, 19, 1)
    s.setsockopt(socket.SOL_IP, 20, 1)
    s.bind(at)
    return s
t = transparent(socket.SOCK_STREAM, (\"0.0.0.0\", 9999))
u = transparent(socket.SOCK_DGRAM, (\"0.0.0.0\", 9999))
t.listen()
for _ in range(2):
    c, peer = t.accept()
    c.sendall(repr((peer[0], c.getsockname())).encode())
    c.close()
data, control, _, peer = u.recvmsg(99, 99)
to = control[0][2]
to = socket.inet_ntoa(to[4:8]), int.from_bytes(to[2:4], \"big\")
u = transparent(socket.SOCK_DGRAM, to)
u.sendto(data.upper(), peer)
' &
         for i in $(seq 100); do ip netns exec g ss -tln | grep -q 9999 && break; sleep 0.05; done
         ip netns exec c python3 -c '
import socket
for to in (\"192.0.2.9\", 80), (\"198.51.100.7\", 443):
    s = socket.create_connection(to, 5)
    print(s.recv(99).decode(), s.recv(99), s.getpeername())
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(5)
u.connect((\"203.0.113.5\", 53))
u.send(b\"query\")
print(u.recv(99))
' || exit 1
         wait",
    ),
];

/// The script that names processes by their numbers.
const BY_PID: usize = 1;

pub fn trials() -> Vec<Trial> {
    let plain = SCRIPTS.iter().map(|&(name, script)| (name, script, false));
    plain
        .chain([("small_pids", SCRIPTS[BY_PID].1, true)])
        .map(|(name, script, small_pids)| {
            trial(format!("netns_{name}"), move || -> Checked {
                for tool in ["ip", "bridge", "ping", "socat", "nft", "nsenter", "python3"] {
                    if !installed(tool) {
                        return Ok(Verdict::Ignored(format!("{tool} is not installed")));
                    }
                }
                compare(script, small_pids)?;
                Ok(Verdict::Passed)
            })
        })
        .chain([
            trial("netns_vrf".into(), vrf),
            trial("netns_pids_refused".into(), pids_refused),
            trial("netns_first_process".into(), first_process),
        ])
        .collect()
}

/// Which device each socket belongs to (SO_BINDTODEVICE) that is made below `ip vrf exec`, and below that in a
/// network of its own whose VRF has the same name. Few hosts have VRFs: what Linux says is written here.
const VRFS: &str = "
    bound() { python3 -c 'import socket; print(socket.socket().getsockopt(1, 25, 16).rstrip(bytes(1)).decode() or \"none\")'; }
    export -f bound
    ip link add red type vrf table 10 && ip link set red up
    ip link add blue type vrf table 11 && ip link set blue up
    bound; ip vrf exec red bash -c 'bound; bash -c bound'; ip vrf exec blue bash -c bound; bound
    ip netns add other; ip -n other link add dummy type vrf table 9; ip -n other link add red type vrf table 10
    ip -n other link set red up; ip netns exec other ip vrf exec red bash -c bound; ip vrf exec red bash -c bound
    rmdir $(awk '$3 == \"cgroup2\" {print $2; exit}' /proc/mounts)/other-ns 2>/dev/null; true";

/// A VRF's group of processes on the node is frozen: the host is who stops programs, so theirs go on.
const FROZEN: &str = "
    ip link add red type vrf table 10 && ip link set red up
    ip vrf exec red sleep 1 &
    sleep 0.3
    file=$(awk '$3 == \"cgroup2\" { print $2; exit }' /proc/mounts)/vrf/red/cgroup.freeze
    echo 1 >$file && echo written; wait; ss -tln >/dev/null && echo serves
";

fn vrf() -> Checked {
    for tool in ["ip", "python3"] {
        if !installed(tool) {
            return Ok(Verdict::Ignored(format!("{tool} is not installed")));
        }
    }
    if !rustix::process::geteuid().is_root() {
        // ip makes the folder above a VRF's in the host's cgroups.
        return Ok(Verdict::Ignored(
            "ip vrf exec asks the host for root".into(),
        ));
    }
    let node = exec::run(&mut ring3(["run", "--", "bash", "-c", VRFS]), LIMIT)?;
    let expected = "none\nred\nred\nblue\nnone\nred\nred\n";
    ensure(node.stdout == expected, || node.report())?;
    let node = exec::run(&mut ring3(["run", "--", "bash", "-c", FROZEN]), LIMIT)?;
    ensure(node.stdout == "written\nserves\n", || node.report())?;
    Ok(Verdict::Passed)
}

/// A pid namespace below a node: an error and the reason at once, and not a node that ends when somebody in there waits.
fn pids_refused() -> Checked {
    let node = Node::up(&[])?;
    let script = "unshare -Urpf sh -c 'timeout 3 nc -l 9999'; echo $?; ss -tln | grep -c 9999";
    let outcome = node.exec(&["bash", "-c", script])?;
    ensure(
        outcome.stdout == "1\n0\n" && outcome.stderr.contains("pid namespace"),
        || outcome.report(),
    )?;
    ensure(node.exec(&["ss", "-tln"])?.ok(), || {
        "the node does not serve".into()
    })?;
    Ok(Verdict::Passed)
}

/// Linux ignores signals without a handler for the first process of a pid namespace, whichever process sends them.
const FIRST: &str = "
    echo $$; kill -TERM $$; kill -TSTP $$; kill -SEGV $$; kill -ALRM $$; echo lives
    (sleep 0.2; kill -TERM 1; kill -HUP 1) & wait; echo waited
    trap 'echo caught' USR1; kill -USR1 $$; (kill -TERM $$); sh -c 'kill -TERM $$'; echo $?
    ss -tln >/dev/null && echo serves; exit 7";

/// The program is the first process of the pid namespace that its node is in, as in a container.
fn first_process() -> Checked {
    let run = |script: &str| {
        let mut command = unshare("-pf");
        let runtime = Scratch::in_memory()?;
        command.args(["--mount-proc", "--kill-child", "bash", "-c", script, "bash"]);
        command.arg(FIRST).arg(paths::ring3());
        command.env("XDG_RUNTIME_DIR", runtime.path());
        exec::run(&mut command, LIMIT)
    };
    let host = run("exec bash -c \"$1\"")?;
    let node = run("\"$2\" up first >/dev/null && exec \"$2\" exec first -- bash -c \"$1\"")?;
    let expected = "1\nlives\nwaited\ncaught\n143\nserves\n";
    ensure(host.stdout == expected, || {
        format!("host: {}", host.report())
    })?;
    ensure(node.stdout == expected, || {
        format!("node: {}", node.report())
    })?;
    Ok(Verdict::Passed)
}

fn compare(script: &str, small_pids: bool) -> Result<(), String> {
    let host = on_host(script)?;
    let node = on_node(script, small_pids)?;
    ensure(host.ok(), || format!("host: {}", host.report()))?;
    ensure(host.stdout == node.stdout, || {
        format!("host: {}\nnode: {}", host.report(), node.report())
    })
}

/// `unshare`, as root or as one who becomes root in a namespace.
fn unshare(namespaces: &str) -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("-r");
    }
    command.arg(namespaces);
    command
}

fn on_host(script: &str) -> Result<Outcome, String> {
    let mut command = unshare("-nm");
    let script = format!(
        "({UNSET}) && mount -t tmpfs run /run && mount -t sysfs sys /sys\n{}\ntrue",
        with_links(script)
    );
    command.args(["bash", "-c", &script]);
    exec::run(&mut command, LIMIT)
}

fn on_node(script: &str, small_pids: bool) -> Result<Outcome, String> {
    // A plain node has lo up, a fresh namespace of the host's has not.
    let script = format!("ip link set lo down\n{}\ntrue", with_links(script));
    let args = ["run", "--", "bash", "-c", &script];
    let runtime = Scratch::in_memory()?;
    let mut command = match small_pids {
        false => ring3(args),
        true => {
            let mut command = unshare("-pf");
            command.args(["--mount-proc", "--kill-child"]);
            command.arg(paths::ring3()).args(args);
            // Root in its namespace only: the folders of the host's root are not for it.
            command.env("XDG_RUNTIME_DIR", runtime.path());
            command
        }
    };
    exec::run(&mut command, LIMIT)
}

/// The function is exported, so that the shells in there have it.
fn with_links(script: &str) -> String {
    format!(
        "{LINKS}export -f links\n{}",
        script.replace("sh -c", "bash -c")
    )
}
