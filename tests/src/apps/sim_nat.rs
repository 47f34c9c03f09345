// SPDX-License-Identifier: GPL-2.0
//! A host with `nat`: who is behind it is seen at its address, and called by published ports only.

use super::sim_cmd::Simulation;
use super::{Checked, Verdict, ensure, missing, trial};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sim_nat".into(), nat),
        trial("sim_nat_kinds".into(), kinds),
    ]
}

const NAT: &str = r#"
general: {stop_time: 5 s, heartbeat_interval: null}
hosts:
  inside:
    processes:
    - {path: python3, args: -m http.server 80, expected_final_state: running}
    - {path: curl, args: -s -o /dev/null http://outside/out, start_time: 1 s, expected_final_state: {exited: 0}}
  gate: {nat: {link: uplink, publish: {8080: "inside:80"}}}
  outside:
    processes:
    - {path: python3, args: -u -m http.server 80, expected_final_state: running}
    - {path: curl, args: "-s -o /dev/null -w %{http_code} http://gate:8080/", start_time: 2 s}
    - {path: curl, args: -s -m 1 http://inside/, start_time: 2 s, expected_final_state: {exited: 28}}
links:
- {between: [inside, gate]}
- {between: [gate, outside], name: uplink, addresses: [198.51.100.1/24, 198.51.100.2/24]}
"#;

fn nat() -> Checked {
    if let Some(why) = missing(&["python3", "curl", "nft"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run_with(NAT, &[])?;
    simulation.ended_well()?;
    let status = simulation.read("hosts/outside/curl.1001.stdout")?;
    ensure(status == "200", || status.clone())?;
    let seen = simulation.read("hosts/outside/python3.1000.stderr")?;
    ensure(
        seen.starts_with("198.51.100.1 - - ") && seen.contains("GET /out"),
        || seen.clone(),
    )?;
    Ok(Verdict::Passed)
}

/// Who is inside sends from one port to two ports of `a`, and then hears from `a`, from a third port of `a`, and from `b`. Each
/// of these is told at which port the inside was seen.
const KINDS: &str = r#"
general: {stop_time: 6 s, heartbeat_interval: null}
x-inside: &inside |
  import socket
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  s.bind(("", 5000))
  s.sendto(b"to 1", ("a", 1))
  s.sendto(b"to 2", ("a", 2))
  s.settimeout(3)
  heard = set()
  try:
      while True: heard.add(s.recv(99).decode())
  except TimeoutError: print(*sorted(heard))
x-outside: &outside |
  import socket, time
  one, two, three = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
  one.bind(("", 1)); two.bind(("", 2)); three.bind(("", 3))
  _, seen = one.recvfrom(99)
  _, other = two.recvfrom(99)
  print("same" if seen == other else "another", flush=True)
  one.sendto(b"peer", seen)
  three.sendto(b"port", seen)
  three.sendto(b"%d" % seen[1], ("b", 4))
x-other: &other |
  import socket
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  s.bind(("", 4))
  port = int(s.recv(99))
  s.sendto(b"host", ("198.51.100.1", port))
hosts:
  inside: {processes: [{path: python3, args: [-c, *inside], start_time: 1 s}]}
  gate: {nat: {link: uplink, kind: KIND}}
  hub: {router: true}
  a: {processes: [{path: python3, args: [-c, *outside]}]}
  b: {processes: [{path: python3, args: [-c, *other]}]}
links:
- {between: [inside, gate]}
- {between: [gate, hub], name: uplink, addresses: [198.51.100.1/24, 198.51.100.2/24]}
- {between: [hub, a]}
- {between: [hub, b]}
"#;

/// Each kind lets in whom RFC 3489 says.
fn kinds() -> Checked {
    if let Some(why) = missing(&["python3", "nft"])? {
        return Ok(Verdict::Ignored(why));
    }
    for (kind, heard, port) in [
        ("full_cone", "host peer port", "same"),
        ("restricted", "peer port", "same"),
        ("port_restricted", "peer", "same"),
        ("symmetric", "peer", "another"),
    ] {
        let simulation = Simulation::run_with(&KINDS.replace("KIND", kind), &[])?;
        simulation
            .ended_well()
            .map_err(|why| format!("{kind}: {why}"))?;
        let inside = simulation.read("hosts/inside/python3.1000.stdout")?;
        let seen = simulation.read("hosts/a/python3.1000.stdout")?;
        ensure((inside.trim(), seen.trim()) == (heard, port), || {
            format!("{kind}: inside heard `{inside}`, a saw {seen}")
        })?;
    }
    Ok(Verdict::Passed)
}
