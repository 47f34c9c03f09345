// SPDX-License-Identifier: GPL-2.0
//! The serving ends of bench/load's programs, on smoltcp and a TAP:
//!
//! ```text
//! smoltcp TAP ADDRESS pingpong serve tcp|udp PORT SIZE
//! smoltcp TAP ADDRESS flood serve PORT
//! smoltcp TAP ADDRESS stream serve PORT
//! smoltcp TAP ADDRESS httpd PORT
//! ```
//!
//! What crosses the wire is what the programs in bench/load say there, so that the same
//! asking end works with both. One thread; buffers of 1 MiB where data flows.

mod serve;

use serve::Step;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketSet};
use smoltcp::phy::{self, Medium, TunTapInterface};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::Duration;

/// Packets taken before the sockets have their turn.
const BURST: usize = 64;
/// How long what was said last may take to leave.
const PARTING: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("smoltcp: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<(), String> {
    let [tap, address, rest @ ..] = words else {
        return Err("usage: see the head of main.rs".into());
    };
    let address: Ipv4Addr = address.parse().map_err(|e| format!("{address}: {e}"))?;
    let mut sockets = SocketSet::new(Vec::new());
    let mut service = serve::new(rest, &mut sockets)?;

    let mut device =
        TunTapInterface::new(tap, Medium::Ethernet).map_err(|e| format!("{tap}: {e}"))?;
    let hardware = EthernetAddress([0x02, 0, 0, 0, 0x83, 0x03]);
    let mut config = Config::new(hardware.into());
    config.random_seed = 1;
    let mut interface = Interface::new(config, &mut device, Instant::now());
    interface.update_ip_addrs(|addresses| {
        // There is room for at least one.
        let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(address), 24));
    });
    println!("ready");

    let fd = device.as_raw_fd();
    loop {
        let busy = round(&mut interface, &mut device, &mut sockets);
        match service.step(&mut sockets) {
            Step::End => break,
            Step::Again => continue,
            Step::Idle if busy => continue,
            Step::Idle => {}
        }
        let delay = interface.poll_delay(Instant::now(), &sockets);
        phy::wait(fd, delay).map_err(|e| format!("{tap}: {e}"))?;
    }
    let end = std::time::Instant::now() + PARTING;
    while std::time::Instant::now() < end {
        round(&mut interface, &mut device, &mut sockets);
    }
    Ok(())
}

/// Takes a burst of packets and sends what there is; whether anything came.
fn round(interface: &mut Interface, device: &mut TunTapInterface, sockets: &mut SocketSet) -> bool {
    let now = Instant::now();
    let mut came = false;
    for _ in 0..BURST {
        if interface.poll_ingress_single(now, device, sockets) == PollIngressSingleResult::None {
            break;
        }
        came = true;
    }
    interface.poll_egress(now, device, sockets);
    interface.poll_maintenance(now);
    came
}
