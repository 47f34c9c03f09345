// SPDX-License-Identifier: GPL-2.0
//! A host with `nat`: who is behind it is seen at its address, and called by published ports only.

use super::sim_cmd::Simulation;
use super::{Checked, Verdict, ensure, missing, trial};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![trial("sim_nat".into(), nat)]
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
