// SPDX-License-Identifier: GPL-2.0
//! A hostile neighbour of `ring3 proxy`'s node (`tests/apps/attack.c`), as fast as it can: an honest client behind another port is
//! served all the while, what the proxy and its node hold stays bounded, and the node's kernel complains of nothing
//! (of a node that the proxy has made, the log can't be had).
//!
//! The attacker's connections have a target of their own: with one target for both, the test measures how fast that accepts thousands of
//! connections in a second.
//!
//! 12 s; RING3_TEST_ATTACK=SECONDS is another time, 600 in tools/test-long. The figures of the last run are in build/tests/hostile.*.json. With
//! `tests/debug hostile_` the nodes' kernels check themselves.

use super::{Checked, Verdict, ensure, helper, missing, trial};
use crate::exec::{self, End, Group};
use crate::node::{self, Node};
use crate::scratch::{self, Scratch};
use crate::{Options, paths};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One round of each kind of flood takes 10 s.
const SECONDS: f64 = 12.0;
const LIMIT: Duration = Duration::from_secs(60);
/// What relay, supervisor, keeper and the node's memory may take together, in MiB: 16384 flows and some 20,000 connections are
/// in it, each kernel with its sockets and buffers.
const MEMORY_MIB: f64 = 700.0;

/// Half of the honest client's pages take less, in seconds: some 0.2 beside others on two CPUs.
const MEDIAN_S: f64 = 4.0;

pub fn trials(options: Options) -> Vec<Trial> {
    let seed = options.seed.unwrap_or(u64::from(std::process::id()));
    [("link", false), ("link_own", true), ("tap", false)]
        .into_iter()
        .map(|(what, is_own)| {
            trial(format!("hostile_{what}"), move || {
                hostile(what, is_own, seed)
            })
        })
        .collect()
}

/// The targets: a page by HTTP, and an echo by UDP. Prints both ports, and the sum of the page.
const TARGETS: &str = "
import asyncio, hashlib, os, resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
page = os.urandom(100000)
async def serve(reader, writer):
    try:
        await asyncio.wait_for(reader.readuntil(b'\\r\\n\\r\\n'), 20)
        writer.write(b'HTTP/1.0 200 OK\\r\\n\\r\\n' + page)
        await writer.drain()
    except (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError):
        pass
    writer.close()
class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, peer):
        self.transport.sendto(data, peer)
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0, backlog=4096)
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Echo, ('127.0.0.1', 0))
    print(server.sockets[0].getsockname()[1], transport.get_extra_info('sockname')[1], hashlib.sha256(page).hexdigest(), flush=True)
    await asyncio.sleep(1e6)
asyncio.run(main())
";

/// An honest client: fetches the page ten times a second at most, and asks the echo, for ARGV[2] seconds; then says how that went.
const HONEST: &str = "
import hashlib, json, socket, sys, time
to, end, wanted = sys.argv[1], time.monotonic() + float(sys.argv[2]), sys.argv[3]
good = bad = asked = answered = 0
times, whys = [], {}
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(1)
udp.connect((to, 5300))
while time.monotonic() < end:
    start = time.monotonic()
    try:
        c = socket.create_connection((to, 8080), 20)
        c.settimeout(20)
        c.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        got = b''
        while data := c.recv(1 << 16):
            got += data
        c.close()
        assert hashlib.sha256(got[got.index(b'\\r\\n\\r\\n') + 4:]).hexdigest() == wanted, 'wrong bytes'
        good += 1
    except Exception as why:
        bad += 1
        whys[repr(why)] = whys.get(repr(why), 0) + 1
    times.append(time.monotonic() - start)
    word = b'%d' % asked
    asked += 1
    try:
        udp.send(word)
        while udp.recv(100) != word:
            pass
        answered += 1
    except OSError:
        pass
    time.sleep(0.1)
times.sort()
print(json.dumps({'good': good, 'bad': bad, 'why': whys, 'median_s': times[len(times) // 2], 'slowest_s': times[-1], 'udp_asked': asked, 'udp_answered': answered}))
";

struct Proxy {
    group: Group,
    complained: std::path::PathBuf,
}

impl Proxy {
    fn complained(&self) -> String {
        std::fs::read_to_string(&self.complained).unwrap_or_default()
    }
}

fn hostile(what: &str, is_own: bool, seed: u64) -> Checked {
    if let Some(why) = missing(&["python3", "ping", "pgrep"])? {
        return Ok(Verdict::Ignored(why));
    }
    if what == "tap" && !rustix::process::geteuid().is_root() {
        return Ok(Verdict::Ignored("making a TAP needs root".into()));
    }
    let seconds: f64 = match std::env::var("RING3_TEST_ATTACK") {
        Ok(text) => text
            .parse()
            .map_err(|_| format!("RING3_TEST_ATTACK={text}: no seconds"))?,
        Err(_) => SECONDS,
    };
    let (folder, slot) = (Scratch::new()?, scratch::slot());
    let (near, far) = (scratch::unique("r3"), scratch::unique("r3"));
    let (victim, attacker) = (format!("10.85.{slot}.1"), format!("10.85.{slot}.2"));
    let (inside, friend) = (format!("10.86.{slot}.1"), format!("10.86.{slot}.2"));
    let hostile_port = match what {
        "tap" => format!("tap:{near},addr={victim}/24,host={attacker}/24"),
        _ => format!("link:{near},addr={victim}/24"),
    };
    let ports = [hostile_port, format!("link:{far},addr={inside}/24")];

    let (_attacked, told) = targets(&folder, "attacked")?;
    let attacked = told.split_whitespace().next().unwrap_or_default();
    let (_asked, told) = targets(&folder, "asked")?;
    let words: Vec<&str> = told.split_whitespace().collect();
    let [tcp, udp, sum] = words[..] else {
        return Err(told.clone());
    };

    let edge = if is_own {
        None
    } else {
        Some(Node::up(&ports)?)
    };
    let name = edge
        .as_ref()
        .map_or(scratch::unique("t"), |it| it.name.clone());
    let own = if is_own {
        format!("port = {ports:?}\n")
    } else {
        String::new()
    };
    let file = folder.write(
        "proxy.toml",
        format!(
            "on = {name:?}\n{own}
            [[listener]]\nlisten = \"tcp:80\"\nto = [\"127.0.0.1:{attacked}\"]\nidle = \"10s\"\nlimit = {{ connections = 100 }}
            [[listener]]\nlisten = \"tcp:8080\"\nto = [\"127.0.0.1:{tcp}\"]\n
            [[listener]]\nlisten = \"udp:5300\"\nto = [\"127.0.0.1:{udp}\"]\n"
        ),
    )?;
    let complained = folder.file("complained");
    let mut command = node::ring3(["proxy"]);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(std::fs::File::create(&complained).map_err(|why| why.to_string())?);
    let mut proxy = Proxy {
        group: Group::spawn(&mut command)?,
        complained,
    };

    let good = Node::up(&[format!("link:{far},addr={friend}/24")])?;
    let evil = match what {
        "tap" => None,
        _ => Some(Node::up(&[format!("link:{near},addr={attacker}/24")])?),
    };
    let answers = |node: &Node, to: &str| {
        node.exec(&["ping", "-q", "-c", "1", "-W", "1", to])
            .is_ok_and(|it| it.ok())
    };
    let serves = || {
        let fetch = ["python3", "-c", HONEST, &inside, "0.1", sum];
        good.output(&fetch)
            .is_ok_and(|said| said.contains("\"bad\": 0"))
    };
    ensure(exec::until(LIMIT, serves), || {
        format!("it does not serve: {}", proxy.complained())
    })?;
    let neighbours = format!("ping -q -c 1 -W 5 {victim} >/dev/null; ip neigh show {victim}");
    let mut ask = on(evil.as_ref(), &["sh", "-c", &neighbours]);
    let said = exec::run(&mut ask, LIMIT)?;
    let mac = said
        .stdout
        .split("lladdr ")
        .nth(1)
        .and_then(|it| it.split(' ').next());
    let mac = mac.ok_or_else(|| said.report())?.to_owned();

    let attack = helper("attack")?.display().to_string();
    let (time, seed) = (seconds.to_string(), seed.to_string());
    let victim6 = link_local(&mac)?;
    let words = [
        &attack, &near, &mac, &attacker, &victim, &victim6, &friend, "80", "5300", &time, &seed,
    ];
    let mut attack = on(evil.as_ref(), &words);
    let sent = folder.file("sent");
    attack
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&sent).map_err(|why| why.to_string())?);
    let mut honest = good.command(["python3", "-c", HONEST, &inside, &time, sum]);
    let heard = folder.file("heard");
    honest
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&heard).map_err(|why| why.to_string())?);

    let pids = processes(&mut proxy, edge.as_ref())?;
    let mut memory = vec![pss(&pids)?];
    let start = Instant::now();
    let (mut attack, mut honest) = (Group::spawn(&mut attack)?, Group::spawn(&mut honest)?);
    while start.elapsed().as_secs_f64() < seconds {
        std::thread::sleep(Duration::from_secs(1));
        memory.push(pss(&pids).map_err(|why| format!("{why}: {}", proxy.complained()))?);
    }
    for (name, group) in [("attack", &mut attack), ("honest client", &mut honest)] {
        let end = group.wait(LIMIT);
        ensure(end == Some(End::Exit(0)), || {
            format!("the {name}: {end:?}: {}", proxy.complained())
        })?;
    }
    let text = std::fs::read_to_string(&heard).map_err(|why| why.to_string())?;
    let heard: Value = serde_json::from_str(&text).map_err(|why| format!("{why}: {text}"))?;
    let sent = std::fs::read_to_string(&sent).map_err(|why| why.to_string())?;
    let most = memory.iter().copied().fold(0.0, f64::max);
    let figures =
        json!({ "attack": sent.trim(), "seconds": seconds, "honest": heard, "memory_mib": memory });
    let results = paths::root().join("build/tests");
    let kept = results.join(format!("hostile.{what}.json"));
    let _ = std::fs::write(kept, figures.to_string());
    let all = || {
        format!(
            "seed {seed}: {sent}{text}{most:.0} MiB at most; {}",
            proxy.complained()
        )
    };
    ensure(heard["bad"] == 0 && heard["good"].as_u64() > Some(0), all)?;
    ensure(heard["median_s"].as_f64() < Some(MEDIAN_S), all)?;
    // A datagram may be lost; a flow that has been there before the flood is not.
    let asked = heard["udp_asked"].as_u64().unwrap_or_default();
    ensure(heard["udp_answered"].as_u64() > Some(asked / 2), all)?;
    ensure(most <= MEMORY_MIB, all)?;
    // Attackers have made connections, so the proxy had those to bear as well.
    ensure(!sent.contains("connected 0\n"), all)?;

    let lives = exec::until(LIMIT, || answers(&good, &inside));
    ensure(lives, || format!("no answer afterwards: {}", all()))?;
    // A node that the proxy has made answers nobody: it has no control socket, and its relay may write no file.
    if let Some(edge) = &edge {
        let log = exec::run(&mut node::ring3(["log", &edge.name]), LIMIT)?;
        ensure(log.ok() && log.stdout.lines().count() > 10, || log.report())?;
        let path = folder.write("log", &log.stdout)?;
        let looks = Command::new(paths::root().join("tests/debug"))
            .arg("--complaints")
            .arg(path)
            .output();
        let looks = looks.map_err(|why| why.to_string())?;
        let found = String::from_utf8_lossy(&looks.stdout).into_owned();
        ensure(found.is_empty(), || format!("{found}{}", all()))?;
    }
    proxy.group.terminate();
    let end = proxy.group.wait(LIMIT);
    ensure(end == Some(End::Exit(0)), || {
        format!("the proxy: {end:?}: {}", proxy.complained())
    })?;
    Ok(Verdict::Passed)
}

/// Starts [`TARGETS`]; what they have said.
fn targets(folder: &Scratch, name: &str) -> Result<(Group, String), String> {
    let mut targets = Command::new("python3");
    let told = folder.file(name);
    targets.args(["-c", TARGETS]).stdin(Stdio::null());
    targets.stdout(std::fs::File::create(&told).map_err(|why| why.to_string())?);
    let targets = Group::spawn(&mut targets)?;
    let read = || std::fs::read_to_string(&told).unwrap_or_default();
    ensure(exec::until(LIMIT, || read().ends_with('\n')), || {
        "no targets".into()
    })?;
    Ok((targets, read()))
}

/// On the attacker's node, or on the host.
fn on(node: Option<&Node>, words: &[&str]) -> Command {
    match node {
        Some(node) => node.command(words),
        None => {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]);
            command
        }
    }
}

/// RFC 4291, appendix A.
fn link_local(mac: &str) -> Result<String, String> {
    let bytes: Vec<u8> = mac
        .split(':')
        .flat_map(|it| u8::from_str_radix(it, 16))
        .collect();
    let [a, b, c, d, e, f] = bytes[..] else {
        return Err(format!("{mac} is no MAC address"));
    };
    Ok(format!(
        "fe80::{:x}{b:02x}:{c:x}ff:fe{d:02x}:{e:x}{f:02x}",
        a ^ 2
    ))
}

/// Supervisor, relay, and the node's keeper.
fn processes(proxy: &mut Proxy, edge: Option<&Node>) -> Result<Vec<u32>, String> {
    let supervisor = proxy.group.child().id();
    let mut all = vec![supervisor];
    let mut find = Command::new("pgrep");
    find.args(["-P", &supervisor.to_string()]);
    let found = exec::run(&mut find, LIMIT)?;
    all.extend(found.stdout.split_whitespace().flat_map(str::parse::<u32>));
    ensure(all.len() > 1, || format!("no relay: {}", found.report()))?;
    if let Some(edge) = edge {
        let stat = exec::run(&mut node::ring3(["stat", &edge.name, "--json"]), LIMIT)?;
        let stat: Value = serde_json::from_str(&stat.stdout).map_err(|why| why.to_string())?;
        all.push(stat["pid"].as_u64().ok_or("no keeper")? as u32);
    }
    Ok(all)
}

/// MiB; of a page that several have, each has its share.
fn pss(pids: &[u32]) -> Result<f64, String> {
    let mut sum = 0.0;
    for pid in pids {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = std::fs::read_to_string(&path).map_err(|why| format!("{path}: {why}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kib: Option<f64> = line.and_then(|it| it.split_whitespace().next()?.parse().ok());
        sum += kib.ok_or_else(|| format!("{path}: no Pss"))? / 1024.0;
    }
    Ok(sum)
}
