// SPDX-License-Identifier: GPL-2.0
//! The gateway of a sandbox, and what holds when the sandbox's kernel is its attacker's. Needs `make image gate` and nft.

mod place;

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::Child;

use place::{finish, spawn, Place};

/// Written as for any router: it knows nothing of sandboxes.
const POLICY: &str = "\
flush ruleset
table inet filter {
    chain forward {
        type filter hook forward priority filter; policy drop;
        ct state established,related accept
        ip daddr 198.51.100.10 tcp dport 80 accept
    }
}
";
/// A machine that loses so many bursts in a row has another fault.
const ROUNDS: u32 = 8;
/// Addresses of a set that nft has some seconds of work with.
const LONG: u32 = 200_000;
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const WORLD: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 10);

/// Another node, which nobody confines, behind the gateway's one port; it serves HTTP.
struct World {
    place: Place,
    policy: String,
    record: PathBuf,
    capture: PathBuf,
}

impl World {
    fn new(policy: &str) -> World {
        let place = Place::new();
        let path = |name: &str| place.dir.path().join(name);
        let (capture, record, rules) = (path("world.pcap"), path("record"), path("policy.nft"));
        fs::write(&rules, policy).unwrap();
        let port = format!("link:w,addr={WORLD}/24,pcap={}", capture.display());
        let folder = path("served");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("index.html"), "the world\n").unwrap();
        let folder = folder.display().to_string();
        let serve = ["/usr/bin/python3", "-m", "http.server", "-d", &folder, "80"];
        let mut args = vec!["up", "world", "--port", &port, "--"];
        args.extend(serve);
        place.ok(&args);
        place.ok(&["wait", "world", "tcp", "80", "--timeout", "20"]);
        World {
            policy: rules.display().to_string(),
            place,
            record,
            capture,
        }
    }

    /// In a sandbox behind the gateway.
    fn run(&self, command: &[&str]) -> std::process::Output {
        let port = format!("link:w,addr={OUTSIDE}/24");
        let record = self.record.display().to_string();
        let mut args = vec!["run", "--sandbox", "-n", "s", "--policy", &self.policy];
        args.extend(["--record", &record, "--port", &port, "--"]);
        args.extend(command);
        self.place.run(&args)
    }

    /// Nothing is left but what the world's server has said.
    fn is_over(&self) {
        self.place.ok(&["down", "world"]);
        let is_log = |path: &PathBuf| path.ends_with("world.log");
        place::eventually("nothing is left behind", || {
            self.place.left().iter().all(is_log)
        });
    }

    fn flows(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.record.join("flows.jsonl")).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// What a packet is to the policy: source and destination, protocol, and ports where there are some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Packet {
    Arp,
    Ip(IpAddr, IpAddr, u8, Option<(u16, u16)>),
    Other(u16),
}

fn packets(path: &Path) -> Vec<Packet> {
    let bytes = fs::read(path).unwrap();
    let mut reader = pcap_file::pcap::PcapReader::new(&*bytes).unwrap();
    let mut all = Vec::new();
    while let Some(Ok(packet)) = reader.next_packet() {
        all.push(what(&packet.data));
    }
    all
}

fn what(frame: &[u8]) -> Packet {
    let half = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let kind = half(12);
    let (from, to, protocol, at): (IpAddr, IpAddr, u8, usize) = match kind {
        0x0806 => return Packet::Arp,
        0x0800 => {
            let ip = |at: usize| <[u8; 4]>::try_from(&frame[at..at + 4]).unwrap();
            let at = 14 + usize::from(frame[14] & 0xf) * 4;
            (ip(26).into(), ip(30).into(), frame[23], at)
        }
        0x86dd => {
            let ip = |at: usize| <[u8; 16]>::try_from(&frame[at..at + 16]).unwrap();
            (ip(22).into(), ip(38).into(), frame[20], 54)
        }
        other => return Packet::Other(other),
    };
    let has_ports = matches!(i32::from(protocol), libc::IPPROTO_TCP | libc::IPPROTO_UDP);
    let ports = (has_ports && frame.len() >= at + 4).then(|| (half(at), half(at + 2)));
    Packet::Ip(from, to, protocol, ports)
}

/// What the policy and the rules around it let onto the far network, and what the two kernels there say to each other.
fn may_be_outside(packet: &Packet) -> bool {
    let tcp = libc::IPPROTO_TCP as u8;
    match *packet {
        Packet::Arp => true,
        Packet::Ip(IpAddr::V4(from), IpAddr::V4(to), protocol, Some(ports)) => {
            let goes = (from, to) == (OUTSIDE, WORLD) && ports.1 == 80;
            let comes = (from, to) == (WORLD, OUTSIDE) && ports.0 == 80;
            protocol == tcp && (goes || comes)
        }
        // Neighbours and groups: hop-by-hop options or ICMPv6.
        Packet::Ip(IpAddr::V6(from), IpAddr::V6(to), 0 | 58, _) => {
            let near = |ip: Ipv6Addr| ip.is_unicast_link_local() || ip.is_unspecified();
            near(from) && (to.is_multicast() || near(to))
        }
        _ => false,
    }
}

fn forbidden(path: &Path) -> BTreeSet<Packet> {
    let all = packets(path);
    assert!(!all.is_empty(), "{} is empty", path.display());
    all.into_iter().filter(|it| !may_be_outside(it)).collect()
}

#[test]
fn a_policy_holds_and_is_told() {
    let world = World::new(POLICY);
    let script = "curl -sS -m 10 http://198.51.100.10/; ! curl -sS -m 1 http://198.51.100.10:81/; \
        ! curl -sS -m 1 http://10.0.3.1/; ! ping -c 1 -W 1 198.51.100.10 >/dev/null; \
        ip -o link | grep -c eth0; nft list ruleset | grep -c . || true";
    let output = world.run(&["sh", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "the world\n1\n0\n");
    let told: BTreeSet<(String, String, String)> = world
        .flows()
        .iter()
        .map(|flow| {
            let word = |key: &str| flow[key].as_str().unwrap_or_default().to_owned();
            (word("verdict"), word("proto"), word("dst"))
        })
        .collect();
    let expected = [
        ("passed", "tcp", "198.51.100.10:80"),
        ("refused", "tcp", "198.51.100.10:81"),
        ("refused", "tcp", "10.0.3.1:80"),
        ("refused", "icmp", "198.51.100.10"),
    ];
    for (verdict, proto, dst) in expected {
        let line = (verdict.to_owned(), proto.to_owned(), dst.to_owned());
        assert!(told.contains(&line), "{line:?} of {told:?}");
    }
    assert_eq!(told.iter().filter(|it| it.0 == "passed").count(), 1);
    assert_eq!(forbidden(&world.record.join("exit.pcap")), BTreeSet::new());
    world.is_over();
    assert_eq!(forbidden(&world.capture), BTreeSet::new());
}

/// What `frames.c` makes of a sandbox behind this policy, once it is over. A burst is lost in part where the gateway gets no
/// processor: it is sent again until `enough` has come through.
fn attacked(policy: &str, enough: impl Fn(&World) -> bool) -> World {
    let world = World::new(policy);
    let program = place::compiled(&world.place, "frames", &["-static", "-O1", "-w"]);
    let program = program.display().to_string();
    let mut said = String::new();
    for _ in 0..ROUNDS {
        let output = world.run(&[&program, "10.0.3.2", "198.51.100.10"]);
        // No word of the gateway's end: it has held.
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(!complaint.contains("has ended"), "{complaint}");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let count = |word: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(word));
            line.unwrap().trim().parse::<usize>().unwrap()
        };
        // They have come as far as the gateway: the record goes on with each round.
        let tried = forbidden(&world.record.join("sandbox.pcap")).len();
        if count("sent") > 600 && count("ring") > 3600 && tried > 400 && enough(&world) {
            world.is_over();
            return world;
        }
        said = format!("{said}{text}{tried} kinds have arrived\n");
    }
    panic!("not enough in {ROUNDS} rounds: {said}");
}

/// It sends what it likes, by its node's kernel and past it, into the link's memory.
#[test]
fn a_kernel_of_the_attackers_gets_nothing_past_it() {
    let world = attacked(POLICY, |_| true);
    assert_eq!(forbidden(&world.record.join("exit.pcap")), BTreeSet::new());
    assert_eq!(forbidden(&world.capture), BTreeSet::new());
    // The same where the policy lets all pass: what was not seen above, was held up by the policy. What has a source that is
    // not the sandbox's does not pass even so.
    let has_passed = |world: &World| forbidden(&world.capture).len() > 200;
    let world = attacked("flush ruleset\n", has_passed);
    let passed = forbidden(&world.capture);
    let foreign = |it: &&Packet| match it {
        Packet::Ip(IpAddr::V4(from), ..) => ![OUTSIDE, WORLD].contains(from),
        _ => false,
    };
    assert_eq!(passed.iter().find(foreign), None);
}

#[test]
fn a_policy_that_does_not_load_is_none() {
    let world = World::new("table inet filter { nonsense }\n");
    let output = world.run(&["echo", "it runs"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert_eq!(output.stdout, b"");
    let said = String::from_utf8_lossy(&output.stderr);
    let (first, nfts) = said.split_once('\n').unwrap();
    let wanted = format!("ring3: {}:1: syntax error", world.policy);
    assert!(first.starts_with(&wanted), "{said}");
    assert!(first.ends_with(": the policy is not loaded"), "{said}");
    assert!(nfts.starts_with(&format!("{}:1:", world.policy)), "{said}");
    // Further down, and without a syntax error.
    let none = "table inet filter {\n\tchain c {\n\t\tip saddr @none drop\n\t}\n}\n";
    fs::write(&world.policy, none).unwrap();
    let output = world.run(&["echo", "it runs"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let wanted = format!("ring3: {}:3: ", world.policy);
    assert!(said.starts_with(&wanted), "{said}");
    let place = &world.place;
    let args = [
        "run",
        "--sandbox",
        "--policy",
        "/no/such",
        "--net",
        "--",
        "true",
    ];
    place.fails(&args, 125, "/no/such");
    let args = ["run", "--sandbox", "--policy", &world.policy, "--", "true"];
    place.fails(&args, 2, "there is none");
    let args = ["run", "--sandbox", "--policy", &world.policy, "--port"];
    let args = [&args[..], &["host,tcp=8080:80", "--", "true"]].concat();
    place.fails(&args, 2, "tcp=");
    world.is_over();
}

/// A policy in reach of the programs that it binds is refused, under each of its names.
#[test]
fn a_policy_is_out_of_reach() {
    let world = World::new(POLICY);
    let place = &world.place;
    let path = |name: &str| place.dir.path().join(name).display().to_string();
    let work = path("work");
    fs::create_dir(&work).unwrap();
    fs::copy(&world.policy, path("work/policy.nft")).unwrap();
    std::os::unix::fs::symlink(path("work/policy.nft"), path("link.nft")).unwrap();
    let runs = |more: &[&str]| -> std::process::Output {
        let first = [
            "run",
            "--sandbox",
            "--rw",
            &work,
            "--port",
            "link:x,addr=10.9.0.1/30",
        ];
        place.run(&[&first[..], more, &["--", "true"]].concat())
    };
    for name in ["work/policy.nft", "link.nft"] {
        place::expect_failure(&runs(&["--policy", &path(name)]), 2, "in reach");
    }
    fs::hard_link(path("work/policy.nft"), path("second.nft")).unwrap();
    place::expect_failure(&runs(&["--policy", &path("second.nft")]), 2, "second name");
    place::expect_failure(&runs(&["--record", &path("work/record")]), 2, "in reach");
    assert!(!place.dir.path().join("work/record").exists());
    // The runtime folder is there, with the locks and logs of other nodes.
    let above = place.dir.path().display().to_string();
    let output = place.run(&["run", "--sandbox", "--rw", &above, "--", "true"]);
    place::expect_failure(&output, 2, "in reach");
    fs::copy(&world.policy, path("apart.nft")).unwrap();
    let output = runs(&["--policy", &path("apart.nft"), "--record", &path("record")]);
    assert!(output.status.success(), "{output:?}");
    world.is_over();
}

/// A folder or a file that is mounted at a second place, below `--rw`, is in reach as well.
#[test]
fn a_policy_that_is_mounted_twice_is_in_reach() {
    let world = World::new(POLICY);
    let place = &world.place;
    let path = |name: &str| place.dir.path().join(name).display().to_string();
    let (work, kept) = (path("work"), path("kept"));
    fs::create_dir_all(path("work/below")).unwrap();
    fs::create_dir(&kept).unwrap();
    fs::copy(&world.policy, path("kept/policy.nft")).unwrap();
    fs::write(path("work/file"), "").unwrap();
    let behind_mount = |from: &str, to: &str, args: &[&str]| -> std::process::Output {
        let script = "mount --bind \"$0\" \"$1\" && shift && exec \"$@\"";
        let words = ["-m", "sh", "-c", script, from, to];
        finish(spawn(&mut place::behind(
            &place.command(args),
            "unshare",
            &words,
        )))
    };
    let mut mount = std::process::Command::new("unshare");
    mount.args(["-m", "mount", "--bind", &kept, &path("work/below")]);
    if !finish(spawn(&mut mount)).status.success() {
        eprintln!("not run: this user can't mount a folder");
        return;
    }
    let run = ["run", "--sandbox", "--rw", &work];
    let port = ["--port", "link:x,addr=10.9.0.1/30"];
    let policy = ["--policy", &path("kept/policy.nft")];
    let record = ["--record", &path("kept/record")];
    let alias = ["--policy", &path("work/below/policy.nft")];
    let [with_policy, with_record, with_alias] =
        [policy, record, alias].map(|more| [&run[..], &port, &more, &["--", "true"]].concat());
    let below = path("work/below");
    for args in [&with_policy, &with_record] {
        place::expect_failure(&behind_mount(&kept, &below, args), 2, "in reach");
    }
    let file = (path("kept/policy.nft"), path("work/file"));
    let output = behind_mount(&file.0, &file.1, &with_policy);
    place::expect_failure(&output, 2, "in reach");
    // By the name that it has there, too.
    place::expect_failure(&behind_mount(&kept, &below, &with_alias), 2, "in reach");
    let plain = [&run[..], &["--", "true"]].concat();
    let runtime = place.dir.path().join("ring3").display().to_string();
    place::expect_failure(&behind_mount(&runtime, &below, &plain), 2, "in reach");
    let nodes = place.dir.path().join("ring3/nodes").display().to_string();
    let output = behind_mount(&nodes, &below, &plain);
    place::expect_failure(&output, 2, "in reach");
    // Something else that is mounted there is no hindrance.
    fs::create_dir(path("else")).unwrap();
    let output = behind_mount(&path("else"), &below, &plain);
    assert!(output.status.success(), "{output:?}");
    world.is_over();
}

fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// The one process of this place that runs `nft`.
fn loader(place: &Place) -> Option<nix::unistd::Pid> {
    let place = format!("XDG_RUNTIME_DIR={}\0", place.dir.path().display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut loaders = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let is_nft = fs::read_to_string(entry.path().join("comm")).ok()? == "nft\n";
        // A program of a sandbox does not have that variable. Its keeper has: a parent's parent.
        let ours = std::iter::successors(Some(pid), |&pid| parent(pid)).take(4);
        let ours = ours.filter_map(|pid| fs::read(format!("/proc/{pid}/environ")).ok());
        let ours = ours.map(|it| String::from_utf8_lossy(&it).contains(&place));
        (is_nft && { ours }.any(|it| it)).then_some(nix::unistd::Pid::from_raw(pid))
    });
    loaders.next()
}

/// Ends what a failure leaves behind: a command, and a process that has been stopped.
struct Interrupted<'a> {
    place: &'a Place,
    child: Option<Child>,
}

impl Drop for Interrupted<'_> {
    fn drop(&mut self) {
        use nix::sys::signal::{kill, Signal};
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(nft) = loader(self.place) {
            // Its keeper ends with it.
            let _ = kill(nft, Signal::SIGKILL);
        }
    }
}

/// While the rules are loaded: neither the gateway nor its sandbox is left.
#[test]
fn an_interrupted_start_leaves_nothing() {
    use nix::sys::signal::{kill, Signal};
    let place = Place::new();
    let policy = place.dir.path().join("policy.nft");
    // Long enough that nft is seen at work, and is stopped there.
    let addresses = (0..LONG).map(|n| Ipv4Addr::from(0x0100_0000 + 2 * n).to_string());
    let addresses = addresses.collect::<Vec<_>>().join(", ");
    let set = format!("set s {{ type ipv4_addr; elements = {{ {addresses} }}; }}");
    fs::write(&policy, format!("table ip t {{ {set} }}\n")).unwrap();
    let words = policy.display().to_string();
    let exit = format!("link:w,addr={OUTSIDE}/24");
    for more in [&[][..], &["--serve", "link:a,addr=10.7.0.1/30"]] {
        let args = ["up", "--sandbox", "a", "--policy", &words, "--port", &exit];
        let args = [&args[..], more].concat();
        let child = spawn(&mut place::with_usual_signals(&place.command(&args)));
        let mut guard = Interrupted {
            place: &place,
            child: Some(child),
        };
        place::eventually("nft is stopped", || {
            loader(&place).is_some_and(|nft| kill(nft, Signal::SIGSTOP).is_ok())
        });
        let child = guard.child.take().unwrap();
        place::signal(&child, Signal::SIGINT);
        let output = finish(child);
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let logs = |path: &PathBuf| path.extension().is_some_and(|it| it == "log");
        place::eventually("nothing is left behind", || {
            place.left().iter().all(logs) && loader(&place).is_none()
        });
    }
}

/// The flows can be read while it runs, and `down` of the sandbox ends both.
#[test]
fn its_log_is_read_while_it_runs() {
    let world = World::new(POLICY);
    let place = &world.place;
    let port = format!("link:w,addr={OUTSIDE}/24");
    let script = "curl -sS -m 10 -o /dev/null http://198.51.100.10/; sleep 1000";
    let args = ["run", "--sandbox", "-n", "s", "--policy", &world.policy];
    let mut args = args.to_vec();
    args.extend(["--port", &port, "--", "sh", "-c", script]);
    let child = spawn(&mut place.command(&args));
    place::eventually("the log tells of the connection", || {
        let output = place.run(&["log", "s.gw"]);
        String::from_utf8_lossy(&output.stdout).contains("\"passed\"")
    });
    place.fails(&["log", "s"], 1, "NAME.gw");
    place.ok(&["down", "s"]);
    assert_eq!(finish(child).status.code(), Some(143));
    world.is_over();
}

/// One gateway, started for itself, and two sandboxes that stay: both reach the world, neither the other.
#[test]
fn two_sandboxes_behind_one_gateway() {
    let world = World::new(POLICY);
    let place = &world.place;
    let exit = format!("link:w,addr={OUTSIDE}/24");
    let mut args = vec!["up", "--sandbox", "gw", "--policy", &world.policy];
    args.extend(["--serve", "link:a,addr=10.7.0.1/30"]);
    args.extend(["--serve", "link:b,addr=10.7.0.5/30", "--port", &exit]);
    place.ok(&args);
    for (name, port, address) in [
        ("a", "link:a,addr=10.7.0.2/30,gw=10.7.0.1", "10.7.0.2"),
        ("b", "link:b,addr=10.7.0.6/30,gw=10.7.0.5", "10.7.0.6"),
    ] {
        let serve = [
            "/usr/bin/python3",
            "-m",
            "http.server",
            "-d",
            "/usr/share/doc",
            "80",
        ];
        let mut args = vec!["up", "--sandbox", name, "--port", port, "--"];
        args.extend(serve);
        place.ok(&args);
        place.ok(&["wait", name, "tcp", "80", "--timeout", "20"]);
        // Its own server answers, and its own port 80 is nobody else's.
        let url = format!("http://{address}/");
        place.ok(&[
            "exec",
            name,
            "--",
            "curl",
            "-sS",
            "-m",
            "10",
            "-o",
            "/dev/null",
            &url,
        ]);
    }
    for (name, other) in [("a", "10.7.0.6"), ("b", "10.7.0.2")] {
        let url = format!("http://{other}/");
        let peer = place.run(&["exec", name, "--", "curl", "-sS", "-m", "1", &url]);
        assert!(!peer.status.success(), "{peer:?}");
        let curl = ["curl", "-sS", "-m", "10", "http://198.51.100.10/"];
        let mut args = vec!["exec", name, "--"];
        args.extend(curl);
        assert_eq!(place.ok(&args), "the world\n");
    }
    let mut told = String::new();
    place::eventually("both are told", || {
        told = place.ok(&["log", "gw"]);
        told.contains("10.7.0.2:") && told.contains("10.7.0.6:")
    });
    assert!(
        told.contains("10.7.0.2:") && told.contains("10.7.0.6:"),
        "{told}"
    );
    // The gateway is the user's own: what is asked of it, it is asked from within its walls.
    let rules = place.ok(&[
        "exec", "gw", "--", "nft", "list", "chain", "inet", "filter", "forward",
    ]);
    assert!(rules.contains("198.51.100.10"), "{rules}");
    let stat = place.stat("a");
    assert_eq!(stat["ports"][0]["peer"], "gw");
    place.ok(&["down", "a", "b", "gw"]);
    let args = ["up", "--sandbox", "c", "--serve", "link:a", "--port", &exit];
    place.fails(&args, 2, "--serve link:a");
    let args = ["up", "--sandbox", "c", "--restart"];
    place.fails(&args, 2, "--restart");
    // Where nft says no, so does it.
    fs::write(&world.policy, "nonsense").unwrap();
    let serve = "link:a,addr=10.7.0.1/30";
    let mut args = vec!["up", "--sandbox", "gw", "--policy", &world.policy];
    args.extend(["--serve", serve, "--port", &exit]);
    let failed = place.run(&args);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    world.place.ok(&["down", "world"]);
    let logs = |path: &PathBuf| path.extension().is_some_and(|it| it == "log");
    place::eventually("nothing is left behind", || place.left().iter().all(logs));
}
