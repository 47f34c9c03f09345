// SPDX-License-Identifier: GPL-2.0
//! What a simulation does itself beside what the usual programs make of the same: words for `ip` and `tc`, captures.

use super::ordinary::{as_nobody, nobody};
use super::sim_cmd::{LIMIT, Simulation};
use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, Group, until};
use crate::node::ring3;
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::process::{Command, Stdio};
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sim_words_same".into(), same),
        trial("sim_words_capture".into(), capture),
        trial("sim_words_ordinary".into(), || {
            as_nobody("apps::sim_words_capture")
        }),
        trial("sim_words_seen".into(), seen),
        trial("sim_words_seen_ordinary".into(), || {
            as_nobody("apps::sim_words_seen")
        }),
        trial("sim_words_users".into(), users),
        trial("sim_words_users_fewer".into(), users_fewer),
        trial("sim_words_users_ordinary".into(), || {
            as_nobody("apps::sim_words_users")
        }),
        trial("sim_words_nested".into(), nested),
        trial("sim_words_nested_ordinary".into(), || {
            as_nobody("apps::sim_words_nested")
        }),
        trial("sim_words_examples_ordinary".into(), examples_ordinary),
    ]
}

/// Where root has not all capabilities, as in a container, programs see them all, and may give them up.
fn users_fewer() -> Checked {
    if !rustix::process::geteuid().is_root() {
        return Ok(Verdict::Ignored("for root".into()));
    }
    if let Some(why) = missing(&["setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let scratch = Scratch::new()?;
    let file = scratch.write(
        "scenario.yaml",
        "general: {stop_time: 5 s, heartbeat_interval: null}\nnetwork: {graph: {type: 1_gbit_switch}}\nhosts:\n  a:\n    network_node_id: 0\n    \
         processes: [{path: setpriv, args: --reuid=33 --regid=33 --clear-groups -- grep -E '^(Uid|CapEff)' /proc/self/status}]\n",
    )?;
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-sys_resource,-sys_time", "--"])
        .arg(paths::ring3())
        .arg("sim")
        .arg(file)
        .current_dir(scratch.path());
    let outcome = exec::run(&mut command, LIMIT)?;
    ensure(outcome.ok(), || outcome.report())?;
    let said = std::fs::read_to_string(scratch.file("shadow.data/hosts/a/setpriv.1000.stdout"))
        .map_err(|why| why.to_string())?;
    ensure(
        said == "Uid:\t33\t33\t33\t33\nCapEff:\t0000000000000000\n",
        || said.clone(),
    )?;
    Ok(Verdict::Passed)
}

/// Each of examples/sim, once, without rights; other tests run them as whoever runs these.
fn examples_ordinary() -> Checked {
    const PROGRAMS: &[&str] = &[
        "setpriv",
        "bird",
        "curl",
        "etcd",
        "etcdctl",
        "iperf3",
        "ip",
        "memcached",
        "nginx",
        "nft",
        "ping",
        "python3",
        "redis-cli",
        "redis-server",
        "ss",
    ];
    if !rustix::process::geteuid().is_root() {
        return Ok(Verdict::Ignored(
            "this user is an ordinary one already".into(),
        ));
    }
    if let Some(why) = missing(PROGRAMS)? {
        return Ok(Verdict::Ignored(why));
    }
    let folder = paths::root().join("examples/sim");
    let entries = std::fs::read_dir(&folder).map_err(|why| why.to_string())?;
    let mut examples: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .collect();
    examples.sort();
    ensure(examples.len() > 10, || format!("{examples:?}"))?;
    for file in examples {
        let home = Scratch::new()?;
        let mut command = nobody(&home, paths::ring3())?;
        command.arg("sim").arg(&file);
        let outcome = exec::run(&mut command, LIMIT)?;
        ensure(outcome.ok(), || {
            format!("{}: {}", file.display(), outcome.report())
        })?;
    }
    Ok(Verdict::Passed)
}

/// A daemon that begins as root, gives its files to another user, and becomes that.
const USERS: &str = r#"
general: {stop_time: 5 s, heartbeat_interval: null}
network: {graph: {type: 1_gbit_switch}}
x-daemon: &daemon |
  import os, socket, struct, subprocess
  def fails(what, *args):
      try: what(*args)
      except PermissionError: return True
  print(os.getresuid(), os.getgroups(), os.stat("/etc/passwd").st_uid)
  open("f", "w").close(); os.chown("f", 33, 33)
  pid = os.posix_spawn("/bin/true", ["true"], {}, setsigmask=[]); os.waitpid(pid, 0)
  os.setgroups([7, 33]); os.setgid(33); os.setuid(33)
  print(os.getresuid(), os.getresgid(), os.getgroups(), os.stat("f").st_uid, os.stat("f").st_gid, os.stat("/etc/passwd").st_uid)
  print(fails(os.setuid, 0), fails(os.setgroups, []), fails(os.chown, "f", 0, -1), fails(socket.socket().bind, ("", 80)))
  print(fails(os.chown, "/etc/passwd", 33, 33), fails(os.chown, "/etc/passwd", -1, 33), fails(os.chown, "f", -1, 99), fails(os.chown, "f", 33, 7))
  os.chown("/etc/passwd", -1, -1)
  print(os.stat("/proc/sys/net/ipv4/ip_forward").st_uid, fails(os.chown, "/proc/sys/net/ipv4/ip_forward", 33, 33))
  two = lambda data: struct.unpack("3i", data)[1:]
  says = lambda *ids: [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", *ids))]
  a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
  print(two(a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)))
  b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
  a.send(b"x"); a.sendmsg([b"y"], says(os.getpid(), 33, 33))
  print([two(b.recvmsg(10, 200)[1][0][2]) for i in range(2)])
  print(*(fails(a.sendmsg, [b"z"], says(*ids)) for ids in ((os.getpid(), 0, 33), (os.getpid(), 33, 0), (1, 33, 33))))
  pid = os.fork()
  if not pid: os._exit(a.send(b"x") != 1)
  os.waitpid(pid, 0); s = b.recvmsg(10, 200)[1][0][2]; print(struct.unpack("i", s[:4])[0] == pid)
  print(subprocess.run(["sh", "-c", "id -u; id -G; grep -E '^(Uid|CapEff)' /proc/self/status"], stdout=subprocess.PIPE, text=True).stdout)
hosts:
  a: {network_node_id: 0, processes: [{path: python3, args: [-c, *daemon]}]}
"#;

/// For all who may run simulations the same: on the node the daemon is who it says.
fn users() -> Checked {
    let simulation = Simulation::run_with(USERS, &[])?;
    let heard = simulation.read("hosts/a/python3.1000.stderr")?;
    simulation
        .ended_well()
        .map_err(|why| format!("{why}; {heard}"))?;
    let text = simulation.read("hosts/a/python3.1000.stdout")?;
    let want = "(0, 0, 0) [] 0\n\
                (33, 33, 33) (33, 33, 33) [7, 33] 33 33 0\n\
                True True True True\n\
                True True True None\n\
                0 True\n\
                (33, 33)\n[(33, 33), (33, 33)]\nTrue True True\nTrue\n\
                33\n33 7\nUid:\t33\t33\t33\t33\nCapEff:\t0000000000000000\n\n";
    ensure(text == want, || text.clone())?;
    Ok(Verdict::Passed)
}

/// A child in a user namespace of its own, from clone() and by vfork: what it is says nothing of its parent.
const NESTED: &str = r#"
general: {stop_time: 5 s, heartbeat_interval: null}
network: {graph: {type: 1_gbit_switch}}
x-nested: &nested |
  import ctypes, os, signal
  c = ctypes.CDLL(None); NEWUSER = 0x10000000; VFORK = 0x4100
  r, w = os.pipe()
  pid = c.syscall(56, signal.SIGCHLD | NEWUSER, 0, 0, 0, 0)
  if not pid:
      os.close(w); print(os.getuid(), os.getgid(), os.stat("/").st_uid, flush=True); os.read(r, 1)
      try: os.setuid(8)
      except OSError as why: print(os.getuid(), why.strerror, flush=True)
      os._exit(0)
  os.close(r); import time; time.sleep(0.1)
  open(f"/proc/{pid}/uid_map", "w").write("7 0 1"); os.close(w); os.waitpid(pid, 0)
  os.setuid(33)
  stack = ctypes.create_string_buffer(1 << 16)
  pid = c.clone(c.unshare, ctypes.c_void_p(ctypes.addressof(stack) + (1 << 16)), VFORK | signal.SIGCHLD, ctypes.c_void_p(NEWUSER))
  print(os.waitpid(pid, 0)[1], os.getresuid())
  try: os.setuid(0)
  except OSError as why: print(why.strerror)
hosts:
  a: {network_node_id: 0, processes: [{path: python3, args: [-c, *nested]}]}
"#;

fn nested() -> Checked {
    let simulation = Simulation::run_with(NESTED, &[])?;
    let heard = simulation.read("hosts/a/python3.1000.stderr")?;
    simulation
        .ended_well()
        .map_err(|why| format!("{why}; {heard}"))?;
    let text = simulation.read("hosts/a/python3.1000.stdout")?;
    let want = "65534 65534 65534\n7 Invalid argument\n0 (33, 33, 33)\nOperation not permitted\n";
    ensure(text == want, || text.clone())?;
    Ok(Verdict::Passed)
}

/// A host at the network and with three links, two of them on equal ways to the same host. It looks at what it has, takes
/// that down, has `ip` and `tc` make it anew from the words in the data folder, and looks again.
const SCENARIO: &str = r#"
general: {stop_time: 20 s, heartbeat_interval: null}
sim: {ipv6: true}
network: {graph: {type: 1_gbit_switch}}
x-look: &look |
  look() {
    for what in "-d link" addr route "-6 route" neigh; do ip $what show; done | sed 's/promiscuity.*gso_max_size/gso_max_size/'
    tc -d qdisc show
  }
  look | sort >one
  for dev in eth0 eth1 eth2 eth3; do
    ip link set $dev down
    ip addr flush dev $dev
    ip link set $dev gso_max_segs 65535
    tc qdisc del dev $dev root
  done
  ip link set lo down
  look | sort >none
  ip -batch ../../network/a.ip && tc -batch ../../network/a.tc || exit 3
  sleep 3
  look | sort >two
hosts:
  a: {network_node_id: 0, processes: [{path: sh, args: [-c, *look], start_time: 1 s}]}
  r1: {router: true}
  r2: {router: true}
  b: {router: true}
  c: {}
  d: {}
links:
- {between: [a, r1], rate: 10 Mbit, limit: 50 KB}
- {between: [a, r2], rate: 40 Gbit}
- {between: [a, c], rate: 1 Mbit, queue: fq_codel, addresses: [[192.0.2.1/24, "2001:db8::1/64"], [192.0.2.2/24, "2001:db8::2/64"]]}
- {between: [r1, b]}
- {between: [r2, b]}
- {between: [b, d]}
"#;

fn same() -> Checked {
    if let Some(why) = missing(&["ip", "tc", "nft"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run_with(SCENARIO, &[])?;
    let heard = simulation.read("hosts/a/sh.1000.stderr")?;
    simulation
        .ended_well()
        .map_err(|why| format!("{why}; {heard}"))?;
    let look = |name: &str| simulation.read(&format!("hosts/a/{name}"));
    let (one, none, two) = (look("one")?, look("none")?, look("two")?);
    for words in [
        "gso_max_segs 1 ",
        "nexthop via",
        "qdisc bfifo 1: dev eth1 root refcnt 2 limit 50000b",
        "qdisc bfifo 1: dev eth2 root refcnt 2 limit 1514000b",
        "qdisc fq_codel 1: dev eth3 root",
        "default via 169.254.0.1 dev eth0",
        "inet6 2001:db8::1/64",
        "PERMANENT",
    ] {
        ensure(one.contains(words) && !none.contains(words), || {
            format!("{words}: not made, or not taken down: {one}\n----\n{none}")
        })?;
    }
    ensure(one == two, || format!("{one}\n---- by programs:\n{two}"))?;
    Ok(Verdict::Passed)
}

/// Both directions of an interface, once each; nobody has to be root for it.
fn capture() -> Checked {
    if let Some(why) = missing(&["ping", "tcpdump"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run_with(
        "general: {stop_time: 6 s, heartbeat_interval: null}\nhosts:\n  a:\n    \
         host_options: {pcap_enabled: true, pcap_capture_size: 60 B}\n    processes:\n    \
         - {path: ping, args: -c 3 -i 0.2 b, start_time: 1 s}\n    \
         - {path: ping, args: -c 2 -i 0.2 localhost, start_time: 1 s}\n  b: {}\n\
         links: [{between: [a, b]}]\n",
        &[],
    )?;
    simulation.ended_well()?;
    for (interface, requests) in [("eth0", 3), ("lo", 2)] {
        let output = std::process::Command::new("tcpdump")
            .args(["-n", "-r"])
            .arg(simulation.data(&format!("hosts/a/{interface}.pcap")))
            .output()
            .map_err(|why| format!("tcpdump: {why}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for words in ["echo request", "echo reply"] {
            let count = text.matches(words).count();
            ensure(count == requests, || format!("{interface}: {text}"))?;
        }
    }
    Ok(Verdict::Passed)
}

/// A simulation that runs is looked at from outside its PID namespace, and cannot be entered from there.
fn seen() -> Checked {
    const SOON: Duration = Duration::from_secs(30);
    let scratch = Scratch::new()?;
    let text = "general: {stop_time: 60 s, heartbeat_interval: null}\n\
                network: {graph: {type: 1_gbit_switch}}\n\
                hosts: {a: {network_node_id: 0, processes: [{path: sleep, args: \"50\"}]}}\n";
    let file = scratch.write("scenario.yaml", text)?;
    let errors = std::fs::File::create(scratch.file("errors")).map_err(|why| why.to_string())?;
    let mut command = ring3(["sim", "--real-time"]);
    command.arg(file).current_dir(scratch.path());
    command.stdout(Stdio::null()).stderr(errors);
    let mut simulation = Group::spawn(&mut command)?;
    let node = format!("sim-{}", simulation.child().id());
    let mut last = String::new();
    let is_up = until(SOON, || {
        let listed = exec::run(&mut ring3(["ls"]), SOON);
        last = listed.map_or_else(|why| why, |it| it.stdout);
        last.lines()
            .any(|line| line.starts_with(&node) && line.contains(" up "))
    });
    let heard = || std::fs::read_to_string(scratch.file("errors")).unwrap_or_default();
    ensure(is_up, || format!("ls: {last}; {}", heard()))?;
    let stat = exec::run(&mut ring3(["stat", &node]), SOON)?;
    ensure(stat.ok(), || stat.report())?;
    ensure(!heard().contains("warn"), heard)?;
    let enter = exec::run(&mut ring3(["exec", &node, "--", "true"]), SOON)?;
    ensure(
        enter.end == exec::End::Exit(125) && enter.stderr.contains("PID namespace"),
        || enter.report(),
    )?;
    simulation.kill();
    Ok(Verdict::Passed)
}
