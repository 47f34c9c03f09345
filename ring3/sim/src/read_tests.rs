// SPDX-License-Identifier: GPL-2.0
//! Scenarios as people write them, and the mistakes that they make.

use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::read::scenario;
use crate::scenario::{Action, Expected, Scenario};
use crate::units::Rate;
use crate::yaml::Value;
use crate::{events, ours, process, read};

const PATH: &str = "/usr/bin:/bin";

fn read(text: &str) -> Result<Scenario, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.yaml");
    std::fs::write(&path, text).unwrap();
    scenario(&path, PATH, &[]).map(|(scenario, _)| scenario)
}

/// `line:column: words` of the fault.
fn fault(text: &str) -> String {
    match read(text) {
        Err(Error::Scenario { place, words, .. }) => format!("{place}: {words}"),
        other => panic!("{other:?}"),
    }
}

const SMALL: &str = "
general:
  stop_time: 10 min
  model_unblocked_syscall_latency: true
  heartbeat_interval: null
network:
  graph: {type: 1_gbit_switch}
experimental:
  use_memory_manager: true
x-common: &client
  network_node_id: 0
  host_options: {pcap_enabled: true, pcap_capture_size: 100 B}
  processes:
  - path: sleep
    args: \"'1 0' 2\"
    environment: {A: 1, B: two}
    start_time: 2
    shutdown_time: 3 s
    shutdown_signal: SIGKILL
    expected_final_state: {signaled: 9}
hosts:
  b: *client
  a:
    <<: *client
    bandwidth_up: 10 Mbit
    ip_addr: 11.0.0.7
";

#[test]
fn keys_of_shadow() {
    let scenario = read(SMALL).unwrap();
    assert_eq!(scenario.general.stop_time, Duration::from_secs(600));
    assert_eq!(scenario.general.seed, 1);
    assert_eq!(scenario.general.sample, Duration::ZERO);
    let (a, b) = (&scenario.hosts["a"], &scenario.hosts["b"]);
    assert_eq!((a.up, b.up), (Some(Rate(10_000_000)), None));
    assert_eq!(
        (a.pcap, a.address),
        (Some(100), Some("11.0.0.7".parse().unwrap()))
    );
    assert_eq!(scenario.general.preemption, None);
    let process = &b.processes[0];
    assert_eq!(process.args, ["1 0", "2"]);
    assert_eq!(process.environment[0], ("A".to_owned(), "1".to_owned()));
    assert_eq!(process.start, Duration::from_secs(2));
    assert_eq!(process.shutdown, Some((Duration::from_secs(3), 9)));
    assert_eq!(process.expected, Expected::Signaled(9));
    assert_eq!(scenario.notes.len(), 1, "{:?}", scenario.notes);
}

#[test]
fn mistakes_have_line_and_column() {
    for (from, to, words) in [
        (
            "stop_time: 10 min",
            "stop_time: 10 mn",
            "3:14: general.stop_time: a time, such as",
        ),
        (
            "path: sleep",
            "path: slip",
            "14:11: hosts.b.processes[0].path: slip: not found in PATH",
        ),
        (
            "start_time: 2",
            "start_time: 2 h",
            "17:17: hosts.b.processes[0].start_time: it must be before",
        ),
        ("use_memory", "<<: 1\n  use_memory", "9:7: `<<` takes a map"),
        (
            "  b: *client",
            "  b: {network_node_id: 7}",
            "22:24: hosts.b.network_node_id: the graph has no node 7",
        ),
        (
            "11.0.0.7",
            "127.0.0.1",
            "26:14: hosts.a.ip_addr: 127.0.0.1 can't be",
        ),
        (
            "shutdown_time: 3",
            "stop_time: 2",
            "18:16: hosts.b.processes[0].stop_time: it must be after start_time",
        ),
        ("hosts:", "host:", "2:1: the scenario: `hosts` is missing"),
        (
            "1_gbit_switch",
            "10_gbit_switch",
            "7:17: network.graph.type: `gml` or",
        ),
        (
            "'1 0' 2",
            "'1 0 2",
            "15:11: hosts.b.processes[0].args: a quote is not closed",
        ),
        (
            "SIGKILL",
            "KILL",
            "19:22: hosts.b.processes[0].shutdown_signal: a signal",
        ),
    ] {
        let found = fault(&SMALL.replacen(from, to, 1));
        assert!(found.starts_with(words), "{to}: {found}");
    }
}

#[test]
fn graphs_inline() {
    let text = "
general: {stop_time: 1 s}
network:
  graph:
    type: gml
    inline: |
      graph [
        node [ id 0 ]
        edge [ source 0 target 0 latency \"1 sec\" packet_loss 2 ]
      ]
hosts:
  a: {network_node_id: 0, bandwidth_up: 1 Mbit, bandwidth_down: 1 Mbit}
";
    let found = fault(text);
    assert!(
        found.contains("network.graph.inline: packet_loss: a number from 0 to 1"),
        "{found}"
    );
    assert!(found.starts_with("9:"), "{found}");
    assert!(read(&text.replace("loss 2", "loss 0.2")).is_ok());
    let found = fault(
        &text
            .replace("loss 2", "loss 0")
            .replace("bandwidth_up: 1 Mbit,", ""),
    );
    assert!(found.contains("hosts.a.bandwidth_up: neither"), "{found}");
}

#[test]
fn graphs_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let graph = "graph [ node [ id 0 ] edge [ source 0 target 0 latency 1 ] ]";
    let (plain, packed) = (dir.path().join("g.gml"), dir.path().join("g.gml.xz"));
    std::fs::write(&plain, graph).unwrap();
    let mut xz = Vec::new();
    lzma_rs::xz_compress(&mut graph.as_bytes(), &mut xz).unwrap();
    std::fs::write(&packed, xz).unwrap();
    let text = |path: &Path, more: &str| {
        format!(
            "general: {{stop_time: 1}}\nnetwork: {{graph: {{type: gml, file: {{path: {}{more}}}}}}}\n\
             hosts: {{a: {{network_node_id: 0, bandwidth_up: 1 Mbit, bandwidth_down: 1 Mbit}}}}\n",
            path.display()
        )
    };
    assert!(read(&text(&plain, "")).is_ok());
    assert!(read(&text(&packed, ", compression: xz")).is_ok());
    assert!(fault(&text(&packed, "")).contains("not UTF-8"));
    std::fs::write(&plain, "graph [\n node [ ] ]").unwrap();
    let error = read(&text(&plain, "")).unwrap_err().to_string();
    assert!(error.contains("g.gml:2:2: a node without `id`"), "{error}");
}

/// Of Shadow's keys about itself, these have an effect.
#[test]
fn threads_that_compute() {
    let with = |keys: &str| {
        let keys = format!("experimental:\n  native_preemption_enabled: true\n{keys}");
        read(&SMALL.replacen("experimental:\n", &keys, 1))
    };
    let usual = with("").unwrap();
    let preemption = usual.general.preemption.unwrap();
    assert_eq!(preemption.after, Duration::from_millis(100));
    assert_eq!(preemption.sleep, Duration::from_millis(10));
    let is_said = |note: &String| note.contains("two runs may differ");
    assert!(usual.notes.iter().any(is_said), "{:?}", usual.notes);
    let other =
        with("  native_preemption_native_interval: 1 s\n  native_preemption_sim_interval: 2 ms\n");
    let preemption = other.unwrap().general.preemption.unwrap();
    assert_eq!(preemption.after, Duration::from_secs(1));
    assert_eq!(preemption.sleep, Duration::from_millis(2));
    let words = with("  native_preemption_native_interval: 19 ms\n").unwrap_err();
    assert!(
        words
            .to_string()
            .contains("experimental.native_preemption_native_interval: 20 ms at least"),
        "{words}"
    );
    let words = with("  native_preemption_sim_interval: x\n").unwrap_err();
    assert!(
        words
            .to_string()
            .contains("experimental.native_preemption_sim_interval"),
        "{words}"
    );
}

/// What the command line says takes the place of what the file says, and is named as such when it is wrong.
#[test]
fn the_command_line_is_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.yaml");
    let text = SMALL.replacen(
        "experimental:",
        "host_option_defaults: {pcap_capture_size: 64 B}\nexperimental:",
        1,
    );
    let text = text.replacen(
        "pcap_enabled: true, pcap_capture_size: 100 B",
        "pcap_enabled: true",
        1,
    );
    std::fs::write(&path, text).unwrap();
    let key = |words: [&str; 2], value| (words.map(str::to_owned).to_vec(), value);
    let with = |list: &[crate::read::Override]| scenario(&path, PATH, list);
    let (made, tree) = with(&[
        key(["general", "stop_time"], Value::Text("5".into())),
        key(["experimental", "use_new_tcp"], Value::Text("true".into())),
    ])
    .unwrap();
    assert_eq!(made.general.stop_time, Duration::from_secs(5));
    assert!(
        made.notes[0].ends_with("use_memory_manager, use_new_tcp"),
        "{:?}",
        made.notes
    );
    assert!(tree.to_json().contains("\"stop_time\": \"5\""));
    // The defaults' size holds where the host only says that it wants a capture.
    assert_eq!(made.hosts["a"].pcap, Some(64));
    let made = with(&[key(
        ["host_option_defaults", "pcap_capture_size"],
        Value::Text("96 B".into()),
    )]);
    assert_eq!(made.unwrap().0.hosts["a"].pcap, Some(96));
    let words = with(&[key(["general", "stop_time"], Value::Text("0".into()))])
        .unwrap_err()
        .to_string();
    assert_eq!(
        words,
        "from the command line: general.stop_time: it must be more than 0"
    );
}

const LINKS: &str = "
general: {stop_time: 1 min}
hosts: {a: {}, b: {sysctls: {net.ipv4.tcp_congestion_control: bbr}}, r: {router: true}}
links:
- {between: [a, r], rate: 10 Mbit, delay: 5 ms, queue: fq_codel, back: {rate: 1 Mbit}}
- {between: [r, b], name: far, addresses: [10.0.0.1/24, [10.0.0.2/24, fd00::2/64]]}
events:
- {at: 5 s, down: far}
- {at: 2 s, partition: [[a], [b]]}
- {at: 3 s, change: {link: a-r, loss: 1 %}}
";

#[test]
fn links_and_events() {
    let scenario = read(LINKS).unwrap();
    let link = &scenario.links[0];
    assert_eq!(link.name, "a-r");
    assert_eq!(
        (link.wires[0].rate, link.wires[1].rate),
        (Some(Rate(10_000_000)), Some(Rate(1_000_000)))
    );
    assert_eq!(link.wires[1].delay, Duration::from_millis(5));
    assert_eq!(scenario.links[1].ends[1].addresses.len(), 2);
    let times: Vec<_> = scenario
        .events
        .iter()
        .map(|event| event.at.as_secs())
        .collect();
    assert_eq!(times, [2, 3, 5]);
    let Action::LinkSet(_, wires) = &scenario.events[1].what else {
        panic!()
    };
    assert_eq!(
        (wires[0].loss, wires[1].rate),
        (0.01, Some(Rate(1_000_000)))
    );
}

/// A check over several keys names the place of the one that is at fault.
#[test]
fn checks_name_the_key() {
    for (text, words) in [
        (
            "general: {stop_time: 1}\nnetwork: {graph: {type: 1_gbit_switch}}\nhosts:\n  a: {network_node_id: 0, ip_addr: 11.0.0.1}\n  b: {network_node_id: 0, ip_addr: 11.0.0.1}\n",
            "5:36: hosts.b.ip_addr: 11.0.0.1 is a's already",
        ),
        (
            "general: {stop_time: 1}\nhosts:\n  a: {network_node_id: 0}\n",
            "3:24: hosts.a.network_node_id: the scenario has no `network`",
        ),
        (
            "general: {stop_time: 1}\nhosts: {a: {}, b: {}}\nsim: {faults: {hosts: [c]}}\n",
            "3:23: sim.faults.hosts: there is no host `c`",
        ),
        (
            "general: {stop_time: 1}\nhosts: {a: {}, b: {}}\nsim:\n  faults: {from: 0, to: 2}\n",
            "4:25: sim.faults: `from` has to be before",
        ),
        (
            "general: {stop_time: 1}\nhosts:\n  a: {nat: up}\n",
            "3:12: hosts.a.nat: it has no link `up`",
        ),
        (
            "general: {stop_time: 1}\nhosts:\n  a:\n    files: {etc/motd: hello}\n",
            "4:12: hosts.a.files: `etc/motd`: a path from the root",
        ),
        (
            "general: {stop_time: 1}\nhosts: {a: {}, b: {}}\nlinks:\n- between: [a, b]\n  reorder: 1 %\n",
            "5:12: links[0]: reorder needs a delay",
        ),
        (
            "general: {stop_time: 1}\nnetwork:\n  use_shortest_path: false\n  graph: {type: gml, inline: 'graph [ node [ id 0 ] ]'}\nhosts: {a: {network_node_id: 0, bandwidth_up: 1 Mbit, bandwidth_down: 1 Mbit}}\n",
            "4:10: network.graph: node 0 has no edge to itself",
        ),
    ] {
        let found = fault(text);
        assert!(found.starts_with(words), "{found}");
    }
}

#[test]
fn mistakes_in_links_and_events() {
    for (from, to, words) in [
        ("[a, r]", "[a, x]", "link a-x: there is no host `x`"),
        ("[a, r]", "[a, a]", "both ends are the same host"),
        ("name: far", "name: a-r", "link a-r: a second one"),
        (
            "down: far",
            "down: near",
            "events[0].down: there is no link `near`",
        ),
        (
            "down: far",
            "downn: far",
            "unknown key `downn`: is `down` meant?",
        ),
        ("[[a], [b]]", "[[a], [a]]", "`a` is in two groups"),
        ("rate: 10 Mbit, ", "", "a queue needs a rate"),
        (
            "10.0.0.1/24",
            "10.0.0.1/64",
            "is not an address with its prefix",
        ),
        ("at: 5 s, ", "", "events[0]: `at` is missing"),
        (
            "at: 5 s",
            "at: 5 min",
            "events[0].at: it must be before general.stop_time",
        ),
        (
            "down: far",
            "run: no-such, on: a",
            "events[0].run: no-such: not found in PATH",
        ),
    ] {
        let found = fault(&LINKS.replacen(from, to, 1));
        assert!(found.contains(words), "{to}: {found}");
        let changed = LINKS[..LINKS.find(from).unwrap()].matches('\n').count() + 1;
        assert!(found.starts_with(&format!("{changed}:")), "{to}: {found}");
    }
}

/// The schema knows the keys that the reader knows. It also has those of Shadow 2 that have other names now.
#[test]
fn the_schema_has_the_same_keys() {
    let text = include_str!("../../../docs/sim.schema.json");
    let schema: serde_json::Value = serde_json::from_str(text).unwrap();
    let mut old = vec!["host_defaults", "options", "stop_time", "pcap_directory"];
    old.push("quantity");
    old.extend(crate::old::OPTIONS);
    for (at, known) in [
        ("", read::TOP),
        ("/properties/general", read::GENERAL),
        ("/$defs/host", read::HOST),
        ("/$defs/options", read::OPTIONS),
        ("/$defs/process", process::PROCESS),
        ("/$defs/wire", ours::WIRE),
        ("/$defs/event", events::EVENT),
        ("/$defs/event/properties/clock", events::CLOCK),
        ("/$defs/host/properties/clock", ours::CLOCK),
        ("/properties/links/items", ours::LINK),
        ("/properties/sim", ours::SETTINGS),
        ("/properties/sim/properties/faults", ours::FAULTS),
    ] {
        let properties = schema.pointer(&format!("{at}/properties")).unwrap();
        let mut found: Vec<&str> = properties
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        found.retain(|key| known.contains(key) || !old.contains(key));
        let mut known = known.to_vec();
        known.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, known, "{at}");
    }
}

#[test]
fn clocks_that_are_wrong() {
    let text = "general: {stop_time: 10}\nnetwork: {graph: {type: 1_gbit_switch}}\nhosts:\n  \
                a: {network_node_id: 0, clock: {step: -1.5 s, drift: 20 ppm}}\nevents:\n\
                - {at: 2 s, clock: {host: a, step: 200 ms}}\n- {at: 3 s, clock: {host: a, drift: -0.5}}\n";
    let made = read(text).unwrap();
    let changes: Vec<_> = made
        .events
        .iter()
        .map(|event| match &event.what {
            Action::Clock(host, change) => (host.as_str(), change.step, change.drift),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        changes,
        [
            ("a", -1_500_000_000, Some(20_000)),
            ("a", 200_000_000, None),
            ("a", 0, Some(-500)),
        ]
    );
    for (from, to, words) in [
        (
            "step: 200 ms",
            "step: soon",
            "6:36: events[0].clock.step: a time",
        ),
        (
            "-0.5",
            "501",
            "7:37: events[1].clock.drift: parts of a million from -500 to 500",
        ),
        ("host: a, step", "host: b, step", "there is no host `b`"),
        (
            ", step: 200 ms",
            "",
            "`step: TIME` or `drift: PPM` is needed",
        ),
    ] {
        let found = fault(&text.replacen(from, to, 1));
        assert!(found.contains(words), "{to}: {found}");
    }
}

/// A file for Shadow 2: hosts and processes by number, no place, no final state.
#[test]
fn files_for_shadow_2() {
    let text = "general: {stop_time: 10}\nnetwork: {graph: {type: 1_gbit_switch}}\n\
                host_defaults: {heartbeat_interval: 1, pcap_directory: here}\nhosts:\n  \
                server: {processes: [{path: /bin/sh}]}\n  \
                client:\n    quantity: 3\n    options: {log_level: debug}\n    \
                processes: [{path: /bin/sh, quantity: 2, stop_time: 5}]\n";
    let made = read(text).unwrap();
    let names: Vec<&String> = made.hosts.keys().collect();
    assert_eq!(names, ["client1", "client2", "client3", "server"]);
    let client = &made.hosts["client2"];
    assert_eq!((client.processes.len(), client.node), (2, Some(0)));
    assert!(client.pcap.is_some());
    assert_eq!(client.processes[0].expected, Expected::Any);
    assert_eq!(
        made.hosts["server"].processes[0].expected,
        Expected::NotFailed
    );
    for (from, to, words) in [
        (
            "quantity: 3",
            "quantity: 0",
            "7:15: hosts.client.quantity: 1 to",
        ),
        (
            "quantity: 3",
            "quantity: 3\n    ip_addr: 11.0.0.9",
            "3 hosts can't have one address",
        ),
        ("  server", "  client2", "`client2` is there twice"),
    ] {
        let found = fault(&text.replacen(from, to, 1));
        assert!(found.contains(words), "{to}: {found}");
    }
}
