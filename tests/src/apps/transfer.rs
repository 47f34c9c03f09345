// SPDX-License-Identifier: GPL-2.0
//! Files that go out by sendfile(): whole, whatever becomes of the packets.

use super::scenario::{LIMIT, SERVED, Scenario};
use super::topology::Pair;
use crate::paths;
use crate::scratch::Scratch;
use std::time::Duration;

pub const SCENARIOS: &[Scenario] = &[Scenario {
    name: "sendfile",
    programs: &["python3", "tc", "ip"],
    what: "three workers send random pieces of a file to eight clients: undisturbed, with packets lost, \
           delayed and sent twice, and while the interface goes down and up",
    topologies: SERVED,
    needs_root: None,
    run: sendfile,
}];

fn sendfile(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    folder.noise("file", 8 << 20)?;
    let file = folder.file("file").to_string_lossy().into_owned();
    let script = paths::root().join("tests/apps/sendfile.py");
    let script = script.to_string_lossy();
    let port = pair.port(0).to_string();
    let _server = pair
        .server
        .start(&["python3", &script, "serve", &file, &port])?;
    pair.wait_for_port(pair.port(0))?;
    let ask = |count: &str| {
        let argv = [
            "python3",
            &script,
            "ask",
            &file,
            &pair.server4,
            &port,
            count,
        ];
        pair.client.must(&argv, LIMIT)
    };
    ask("60")?;

    let interface = pair.interface.as_str();
    let trouble = format!(
        "tc qdisc add dev {interface} root netem delay 500us loss 2% duplicate 2% reorder 5%"
    );
    let trouble: Vec<&str> = trouble.split(' ').collect();
    pair.server.must(&trouble, LIMIT)?;
    ask("10")?;
    pair.server
        .must(&["tc", "qdisc", "del", "dev", interface, "root"], LIMIT)?;

    std::thread::scope(|scope| {
        let asks = scope.spawn(|| ask("300"));
        let mut moved = Ok(String::new());
        while !asks.is_finished() && moved.is_ok() {
            std::thread::sleep(Duration::from_millis(20));
            let ip = |what| {
                let argv = ["ip", "link", "set", interface, what];
                pair.server.must(&argv, LIMIT)
            };
            moved = ip("down").and_then(|_| ip("up"));
            std::thread::sleep(Duration::from_millis(700));
        }
        asks.join().expect("no panic")?;
        moved.map(|_| ())
    })
}
