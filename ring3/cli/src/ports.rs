// SPDX-License-Identifier: GPL-2.0
//! `ring3 port`: ports of a node that is up; and the switches that nodes name.

use std::time::{Duration, Instant};

use ring3_config::{NodeConfig, PortKind, PortSpec, Switch};
use ring3_node::client::Client;
use ring3_node::Folder;

use crate::args::{self, PortVerb};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::{names, say, up};

/// How long another's switch may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);
const TURN: Duration = Duration::from_millis(10);

pub fn port(args: &args::Port) -> Result<()> {
    match &args.verb {
        PortVerb::Add(args) => {
            ring3_config::name::node(&args.name)?;
            let spec: PortSpec = args.spec.parse()?;
            let node = Client::open(&args.name)?;
            need(std::slice::from_ref(&spec), &Interrupt::hold_back()?)?;
            let port = node.port_add(&spec.to_string())?;
            names::introduce(&args.name);
            say::print(format!("{}\n", port.ifname))
        }
        PortVerb::Del(args) => {
            ring3_config::name::node(&args.name)?;
            Client::open(&args.name)?.port_del(&args.interface)?;
            Ok(())
        }
    }
}

/// Starts the switches that a node names and that are not up. Each ends when its last node has left it.
pub fn need_switches(config: &NodeConfig, interrupt: &Interrupt) -> Result<()> {
    need(&config.ports, interrupt)
}

fn need(ports: &[PortSpec], interrupt: &Interrupt) -> Result<()> {
    for port in ports {
        if let PortKind::Switch { name } = &port.kind {
            need_switch(name, interrupt)?;
        }
    }
    Ok(())
}

fn need_switch(name: &str, interrupt: &Interrupt) -> Result<()> {
    let folder = Folder::open()?;
    if !folder.is_running(name) {
        let mut config = NodeConfig::new(name);
        config.switch = Some(Switch::WhileUsed);
        match up::start(&config, interrupt) {
            // Another node that names it was first.
            Err(_) if folder.is_running(name) => {}
            started => return started.map(drop),
        }
    }
    let start = Instant::now();
    loop {
        let is_up = Client::find(folder.clone(), name).and_then(|node| node.is_up());
        match is_up {
            Err(_) if start.elapsed() < PATIENCE => std::thread::sleep(TURN),
            result => return Ok(result?),
        }
    }
}
