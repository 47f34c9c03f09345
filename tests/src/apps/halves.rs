// SPDX-License-Identifier: GPL-2.0
//! A thousand connections through each gateway, 64 at one time, with half-closes and resets at random (`tests/apps/halves.c`): each byte
//! is compared, and each end is what the other side has done.
//!
//! 240 kB through each; RING3_TEST_BYTES is another number.

use super::{Checked, Verdict, ensure, helper, trial};
use crate::exec::{self, End, Group};
use crate::node::{self, Node};
use crate::scratch::{self, Scratch};
use crate::{Options, node::ring3, paths};
use libtest_mimic::Trial;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const COUNT: &str = "1000";
const BYTES: u64 = 240_000;
const LIMIT: Duration = Duration::from_secs(60);
/// Of all connections, with the bytes that each has by default; more bytes have more.
const PATIENCE: Duration = Duration::from_secs(120);
const BYTES_A_SECOND: u64 = 20_000_000;

pub fn trials(options: Options) -> Vec<Trial> {
    let seed = options.seed.unwrap_or(u64::from(std::process::id()));
    let with = |name: &str, test: fn(&Ends) -> Checked| {
        trial(format!("halves_{name}"), move || test(&Ends::new(seed)?))
    };
    vec![
        with("proxy", proxy),
        with("forward", forward),
        with("host_port", host_port),
    ]
}

struct Ends {
    folder: Scratch,
    program: String,
    seed: u64,
    bytes: u64,
}

impl Ends {
    fn new(seed: u64) -> Result<Ends, String> {
        let bytes = match std::env::var("RING3_TEST_BYTES") {
            Ok(text) => text
                .parse()
                .map_err(|_| format!("RING3_TEST_BYTES={text}: no number"))?,
            Err(_) => BYTES,
        };
        Ok(Ends {
            folder: Scratch::new()?,
            program: helper("halves")?.display().to_string(),
            seed,
            bytes,
        })
    }

    fn patience(&self) -> Duration {
        let all = self.bytes * COUNT.parse::<u64>().unwrap_or(0);
        PATIENCE + Duration::from_secs(all / BYTES_A_SECOND)
    }

    /// The server, which listens when this returns, and what it says.
    fn serve(
        &self,
        node: Option<&Node>,
        address: &str,
        port: &str,
    ) -> Result<(Group, PathBuf), String> {
        let said = self.folder.file("served");
        let words = [&self.program, "serve", address, port, COUNT];
        let mut command = match node {
            Some(node) => node.command(words),
            None => {
                let mut command = Command::new(&self.program);
                command.args(&words[1..]);
                command
            }
        };
        let file = |path: &PathBuf| std::fs::File::create(path).map_err(|why| why.to_string());
        command.stdin(Stdio::null()).stdout(file(&said)?);
        command.stderr(file(&self.folder.file("served.bad"))?);
        let group = Group::spawn(&mut command)?;
        let read = || std::fs::read_to_string(&said).unwrap_or_default();
        ensure(exec::until(LIMIT, || read().contains("ready")), || {
            format!("no server: {}", read())
        })?;
        Ok((group, said))
    }

    /// The clients, on a node; then both sides agree that all was right.
    fn ask(
        &self,
        node: &Node,
        (address, port): (&str, &str),
        (mut server, said): (Group, PathBuf),
    ) -> Checked {
        let (bytes, seed) = (self.bytes.to_string(), self.seed.to_string());
        let mut clients = node.command([&self.program, "ask", address, port, COUNT, &bytes, &seed]);
        let outcome = exec::run(&mut clients, self.patience())?;
        let end = server.wait(LIMIT);
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let wanted = format!("good {COUNT} bad 0");
        let is_good = outcome.ok() && outcome.stdout.contains(&wanted) && end == Some(End::Exit(0));
        ensure(is_good && read(said.clone()).contains(&wanted), || {
            let bad = exec::tail(&read(self.folder.file("served.bad")), 20);
            format!(
                "seed {seed}: {}--- server {end:?}\n{}{bad}",
                outcome.report(),
                read(said)
            )
        })?;
        Ok(Verdict::Passed)
    }
}

/// From a node over a link, to the host.
fn proxy(ends: &Ends) -> Checked {
    let (link, slot) = (scratch::unique("r3"), scratch::slot());
    let port = (17_000 + std::process::id() % 1000).to_string();
    let server = ends.serve(None, "127.0.0.1", &port)?;
    let address = format!("10.87.{slot}.1");
    let edge = Node::up(&[format!("link:{link},addr={address}/24")])?;
    let client = Node::up(&[format!("link:{link},addr=10.87.{slot}.2/24")])?;
    let to = format!("127.0.0.1:{port}");
    let words = [
        "proxy", "--on", &edge.name, "--listen", "tcp:80", "--to", &to,
    ];
    let _proxy = node::background(&mut ring3(words))?;
    wait(&edge, "80")?;
    ends.ask(&client, (&address, "80"), server)
}

/// From a node over two links, to another node.
fn forward(ends: &Ends) -> Checked {
    let (near, far, slot) = (
        scratch::unique("r3"),
        scratch::unique("r3"),
        scratch::slot(),
    );
    let port =
        |link: &str, net: u32, host: u32| format!("link:{link},addr=10.{net}.{slot}.{host}/24");
    let a = Node::up(&[port(&near, 87, 1)])?;
    let b = Node::up(&[port(&near, 87, 2), port(&far, 88, 2)])?;
    let c = Node::up(&[port(&far, 88, 1)])?;
    let server = ends.serve(Some(&c), "0.0.0.0", "5000")?;
    let to = format!("10.88.{slot}.1:5000");
    let words = [
        "forward", "--on", &b.name, "--listen", "tcp:80", "--to", &to,
    ];
    let _agent = node::background(&mut ring3(words))?;
    wait(&b, "80")?;
    ends.ask(&a, (&format!("10.87.{slot}.2"), "80"), server)
}

/// From a node by its `host` port, to an address of the host.
fn host_port(ends: &Ends) -> Checked {
    let script = "
        \"$2\" serve 192.0.2.1 7000 $3 >served &
        server=$!
        for i in $(seq 100); do grep -q ready served && break; sleep 0.1; done
        \"$1\" run --port host -- \"$2\" ask 192.0.2.1 7000 $3 $4 $5 && wait $server; status=$?
        cat served; exit $status";
    let (bytes, seed) = (ends.bytes.to_string(), ends.seed.to_string());
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(paths::ring3());
    command.args([&ends.program, COUNT, &bytes, &seed]);
    let mut command = node::in_fresh_network("ip addr add 192.0.2.1/32 dev lo", &command);
    command.current_dir(ends.folder.path());
    let outcome = exec::run(&mut command, ends.patience())?;
    let wanted = format!("good {COUNT} bad 0");
    let both = outcome.stdout.matches(&wanted).count() == 2;
    ensure(outcome.ok() && both, || {
        format!("seed {seed}: {}", outcome.report())
    })?;
    Ok(Verdict::Passed)
}

fn wait(node: &Node, port: &str) -> Result<(), String> {
    let outcome = exec::run(&mut ring3(["wait", &node.name, "tcp", port]), LIMIT)?;
    ensure(outcome.ok(), || outcome.report())
}
