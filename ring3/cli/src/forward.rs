// SPDX-License-Identifier: GPL-2.0
//! `ring3 forward`: from what was typed to the agent (crate ring3-forward), which is a program on the node.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ring3_forward::Order;
use ring3_node::client::Client;

use crate::args::{self, AfterCut, Forward, Way};
use crate::error::{Failure, Result};
use crate::program::Program;
use crate::run;
use crate::say;

pub fn forward(args: &Forward) -> Result<u8> {
    check(&args.way)?;
    let exe = std::env::current_exe().map_err(Failure::host("find where ring3 is"))?;
    let mut command = vec![exe.into_os_string(), "on-node".into(), "forward".into()];
    command.extend(words(&args.way));
    let on = args.on.clone();
    if args.port.is_empty() {
        let on = on.ok_or(Failure::ForwardWhere)?;
        ring3_config::name::node(&on)?;
        let node = Client::open(&on)?;
        node.is_up()?;
        let program = Program::find(&command)?;
        ring3_forward::run_in_real_time(args.real_time, args.cpu)?;
        return Err(program.exec(&node.join_path()));
    }
    // The keeper's threads have what this one has.
    ring3_forward::run_in_real_time(args.real_time, args.cpu)?;
    run::run(&args::Run {
        name: on,
        node: args::NodeArgs {
            ports: args.port.clone(),
            spin_ns: args.spin_ns,
            ..Default::default()
        },
        sandbox: args::SandboxArgs::default(),
        command,
    })
}

fn check(way: &Way) -> Result<()> {
    let count = way.to.len();
    match count > ring3_forward::TARGETS_MAX {
        true => Err(Failure::ForwardTargets { count }),
        false => Ok(()),
    }
}

/// The same words once more.
fn words(way: &Way) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["--listen".into(), way.listen.to_string().into()];
    for to in &way.to {
        words.extend(["--to".into(), to.to_string().into()]);
    }
    if let Some(path) = &way.handler {
        words.extend(["--handler".into(), path.into()]);
    }
    if !way.words.is_empty() {
        // As one word: a value may begin with a hyphen.
        words.push(format!("--words={}", way.words).into());
    }
    words.push(format!("--budget={}us", way.budget.as_micros()).into());
    words.push(
        match way.after_cut {
            AfterCut::Drop => "--after-cut=drop",
            AfterCut::Pass => "--after-cut=pass",
        }
        .into(),
    );
    if let Some(stats) = way.stats {
        words.push(format!("--stats={stats}").into());
    }
    words
}

/// The agent, on the node.
pub fn inside(way: &Way) -> Result<u8> {
    check(way)?;
    // A connection has two descriptors and more.
    ring3_node::raise_descriptor_limit();
    let any = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    let order = Order {
        is_stream: way.listen.is_stream,
        listen: SocketAddr::new(way.listen.address.unwrap_or(any), way.listen.port),
        targets: way.to.clone(),
        handler: way.handler.clone(),
        words: way.words.clone(),
        budget: way.budget,
        after_cut: match way.after_cut {
            AfterCut::Drop => ring3_forward::AfterCut::Drop,
            AfterCut::Pass => ring3_forward::AfterCut::Pass,
        },
        stats: way.stats.map(std::time::Duration::from_secs_f64),
    };
    // Numbers that nobody reads end no forwarding.
    let out = |text: String| drop(say::print(text));
    ring3_forward::run(&order, say::complain, out)?;
    Ok(0)
}
