// SPDX-License-Identifier: GPL-2.0
//! Plans: who gets which address, which way packets take, which words make the queues.

use std::path::PathBuf;
use std::time::Duration;

use crate::plan::{plan, Cables, Plan, Space, Step, NET, WIRES};

fn of(text: &str) -> Plan {
    with(text, Cables::Netem)
}

fn with(text: &str, cables: Cables) -> Plan {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.yaml");
    std::fs::write(&path, text).unwrap();
    let (scenario, _) = crate::read::scenario(&path, "/usr/bin:/bin", &[]).unwrap();
    plan(&scenario, PathBuf::from("/data"), cables)
}

fn space<'a>(plan: &'a Plan, name: &str) -> &'a Space {
    plan.spaces.iter().find(|space| space.name == name).unwrap()
}

fn has(lines: &[String], words: &str) -> bool {
    lines.iter().any(|line| line.contains(words))
}

const PLACES: &str = "
general: {stop_time: 10 s, bootstrap_end_time: 2 s}
network:
  graph:
    type: gml
    inline: |
      graph [
        node [ id 0 host_bandwidth_down \"8 Mbit\" host_bandwidth_up \"4 Mbit\" ]
        node [ id 7 host_bandwidth_down \"2 Mbit\" host_bandwidth_up \"1 Mbit\" ]
        edge [ source 0 target 0 latency \"1 ms\" packet_loss 0 ]
        edge [ source 7 target 7 latency \"2 ms\" packet_loss 0 ]
        edge [ source 0 target 7 latency \"2500 us\" packet_loss 0.25 ]
      ]
hosts:
  a: {network_node_id: 0, ip_addr: 11.0.0.2}
  b: {network_node_id: 0}
  c: {network_node_id: 7, bandwidth_up: 3 Mbit}
  d: {network_node_id: 7}
";

#[test]
fn addresses_are_given_in_order_of_names() {
    let plan = of(PLACES);
    let addresses: Vec<String> = plan
        .hosts
        .iter()
        .map(|host| host.addresses[0].to_string())
        .collect();
    assert_eq!(addresses, ["11.0.0.2", "11.0.0.1", "11.0.0.3", "11.0.0.4"]);
}

#[test]
fn places_have_their_ways() {
    let text = PLACES.replace(", bootstrap_end_time: 2 s", "");
    let plan = of(&text);
    let net = space(&plan, NET);
    // To c (port c2): from node 0 by class 1:1, from node 7 by class 1:2.
    assert!(has(
        &net.tc,
        "dev c2 parent 1:1 handle 11: netem limit 1000000 delay 2500us loss 25.00000000%"
    ));
    assert!(has(
        &net.tc,
        "dev c2 parent 1:2 handle 12: netem limit 1000000 delay 2000us"
    ));
    assert!(has(
        &net.tc,
        "dev c2 parent 1: classid 1:ffff htb rate 2000000bit"
    ));
    assert!(
        net.nft
            .contains("11.0.0.2 : 1:1, 11.0.0.1 : 1:1, 11.0.0.3 : 1:2, 11.0.0.4 : 1:2"),
        "{}",
        net.nft
    );
    assert!(has(&space(&plan, "c").tc, "tbf rate 3000000bit"));
    assert!(has(&space(&plan, "d").tc, "tbf rate 1000000bit"));
    assert!(plan.timeline.is_empty());
}

#[test]
fn nothing_is_lost_or_slow_before_the_bootstrap_ends() {
    let plan = of(PLACES);
    let net = space(&plan, NET);
    assert!(!has(&net.tc, "loss") && has(&net.tc, "delay 2500us"));
    assert!(space(&plan, "a").tc.is_empty());
    let end = &plan.timeline[0];
    assert_eq!(end.at, Duration::from_secs(2));
    assert!(end
        .steps
        .iter()
        .any(|step| matches!(step, Step::Tc { lines, .. } if has(lines, "loss 25"))));
    assert!(end.steps.iter().any(
        |step| matches!(step, Step::Tc { space, lines } if space == "a" && has(lines, "4000000bit"))
    ));
}

#[test]
fn a_link_has_its_queue_at_the_sender_and_its_delay_behind() {
    let plan = of("
general: {stop_time: 1 s}
hosts: {a: {}, b: {}}
links: [{between: [a, b], rate: 8 Mbit, delay: 3 ms, queue: fq_codel, back: {rate: 1 Mbit, delay: 5 ms, queue: cake}}]
");
    assert_eq!(space(&plan, "a").tc.len(), 2);
    assert!(has(&space(&plan, "a").tc, "tbf rate 8000000bit burst 3028"));
    assert!(has(&space(&plan, "a").tc, "parent 1:1 handle 10: fq_codel"));
    assert_eq!(
        space(&plan, "b").tc,
        ["qdisc replace dev eth0 root handle 1: cake bandwidth 1000000bit"]
    );
    let wires = space(&plan, WIRES);
    // What leaves by the end at b came from a.
    assert!(has(
        &wires.tc,
        "dev l0b root handle 1: netem limit 1000000 delay 3000us"
    ));
    assert!(has(
        &wires.tc,
        "dev l0a root handle 1: netem limit 1000000 delay 5000us"
    ));
    assert!(has(
        &space(&plan, "a").ip,
        "route replace default via 10.128.0.2"
    ));
}

/// netem refuses a distribution around no delay.
#[test]
fn jitter_needs_no_delay() {
    let text = "
general: {stop_time: 1 s}
hosts: {a: {}, b: {}}
links: [{between: [a, b], jitter: 1 ms}]
";
    assert!(has(
        &space(&of(text), WIRES).tc,
        "delay 1us 1000us distribution normal"
    ));
}

/// In virtual time a link is one pair of interfaces, which have the rate and the delay themselves.
#[test]
fn a_link_of_virtual_time_has_its_properties_in_its_ends() {
    let text = "
general: {stop_time: 9 s, seed: 7}
hosts: {a: {}, b: {}, c: {}}
links:
- {between: [a, b], rate: 8 Mbit, delay: 3 ms, queue: fq_codel, back: {rate: 1 Mbit, loss: 50 %, queue: fifo, limit: 9 KB}}
- {between: [a, c], rate: 1 Mbit, queue: cake}
events:
- {at: 1 s, down: a-b}
- {at: 2 s, change: {link: a-b, rate: 4 Mbit}}
";
    let plan = with(text, Cables::Simlink);
    assert!(plan.spaces.iter().all(|space| space.name != WIRES));
    let pair = "link add eth0 netns a address 02:01:00:00:00:00 type simlink peer name eth0 netns b address 02:01:01:00:00:00";
    assert!(has(&plan.links, pair), "{:#?}", plan.links);
    let (a, b) = (space(&plan, "a"), space(&plan, "b"));
    assert!(has(
        &a.wires,
        "link set eth0 type simlink rate 8000000 delay 3000000 jitter 0 loss 0 "
    ));
    assert!(has(
        &b.wires,
        "link set eth0 type simlink rate 1000000 delay 3000000 jitter 0 loss 2147483648 "
    ));
    assert_eq!(
        a.tc,
        [
            "qdisc replace dev eth0 root handle 1: fq_codel",
            "qdisc replace dev eth1 root handle 1: cake"
        ]
    );
    assert_eq!(
        b.tc,
        ["qdisc replace dev eth0 root handle 1: bfifo limit 9000"]
    );
    let seeds: Vec<_> = a.wires.iter().chain(&b.wires).collect();
    assert!(seeds.iter().all(|line| line.contains(" seed ")));
    let down = Step::Ip {
        space: "a".into(),
        lines: vec!["link set eth0 carrier off".into()],
    };
    assert_eq!(plan.timeline[0].steps, [down]);
    // The queues are there before the rates; random numbers do not begin again.
    let changed = &plan.timeline[1].steps;
    assert!(
        matches!(&changed[0], Step::Tc { space, lines } if space == "a" && has(lines, "fq_codel"))
    );
    assert!(
        matches!(&changed[1], Step::Ip { space, lines } if space == "a"
        && has(lines, "rate 4000000 ") && !has(lines, "seed"))
    );
    assert_eq!(changed.len(), 4);
}

#[test]
fn equal_ways_are_all_taken_and_only_routers_pass_on() {
    let plan = of("
general: {stop_time: 1 s}
sim: {ipv6: true}
hosts: {a: {}, b: {}, left: {router: true}, right: {router: true}, near: {router: true}, far: {router: true}, deaf: {}}
links:
- {between: [a, near]}
- {between: [near, left]}
- {between: [near, right]}
- {between: [near, deaf]}
- {between: [left, far]}
- {between: [right, far]}
- {between: [deaf, far]}
- {between: [far, b]}
");
    let near = space(&plan, "near");
    let subnet = "route replace 10.128.0.28/30 nexthop via 10.128.0.6 nexthop via 10.128.0.10";
    assert!(near.ip.iter().any(|line| line == subnet), "{:#?}", near.ip);
    assert!(has(
        &near.ip,
        "route replace fd10:0:0:7::/64 nexthop via fd10:0:0:1::2 nexthop via fd10:0:0:2::2"
    ));
    assert!(has(&space(&plan, "deaf").ip, "via"));
    let forwards = |name: &str| {
        space(&plan, name)
            .early
            .contains(&("net.ipv4.ip_forward".into(), "1".into()))
    };
    assert!(forwards("near") && !forwards("deaf"));
}

#[test]
fn processes_are_numbered_by_their_starts() {
    let plan = of("
general: {stop_time: 9 s}
network: {graph: {type: 1_gbit_switch}}
hosts:
  a:
    network_node_id: 0
    processes:
    - {path: sleep, args: 1, start_time: 2 s, shutdown_time: 5 s}
    - {path: sh, start_time: 1 s}
events: [{at: 1500 ms, run: sh, on: a}]
");
    let labels: Vec<&str> = plan
        .processes
        .iter()
        .map(|process| process.label.as_str())
        .collect();
    assert_eq!(labels, ["sh.1001", "sleep.1002", "sh.1000"]);
    let times: Vec<u128> = plan
        .timeline
        .iter()
        .map(|timed| timed.at.as_millis())
        .collect();
    assert_eq!(times, [1000, 1500, 2000, 5000]);
}

/// A host without an IPv6 address has IPv6 off, and the kernel takes no neighbour there.
#[test]
fn an_end_without_ipv6_knows_no_neighbour_of_it() {
    let plan = of("
general: {stop_time: 1 s}
hosts: {a: {}, b: {}}
links: [{between: [a, b], addresses: [10.0.0.1/24, [10.0.0.2/24, \"fd00::2/64\"]]}]
");
    assert!(has(&space(&plan, "a").ip, "neigh replace 10.0.0.2 "));
    assert!(!has(&space(&plan, "a").ip, "neigh replace fd00::2 "));
    assert!(has(
        &space(&plan, "b").ip,
        "addr add fd00::2/64 dev eth0 nodad"
    ));
}
