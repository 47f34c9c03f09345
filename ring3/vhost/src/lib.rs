// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the device of a `vhost` port
//!
//! A virtual machine's network card is two virtio queues in the guest's memory. By vhost-user the virtual machine gives that
//! memory to this process, the device, which moves frames between the queues and the link of a node. So the guest's packets
//! are served by the node's Linux, and cross the host once.
//!
//! ```text
//!              kick (eventfd)                         doorbell (futex)
//! guest's TX ───────────────────▶ worker ── send() ──────────────────────▶ node
//! guest's RX ◀─────────────────── link's thread ── receive() ◀──────────── node
//!              call (eventfd)                         doorbell (futex)
//! ```
//!
//! What crosses is a frame with its virtio_net_hdr, which queues and links both have: 64 KiB segments and checksums that are
//! yet to be made go from end to end. Each frame is copied once. A guest that has not negotiated such gets frames that were cut
//! and summed here ([`offload`]).
//!
//! Nothing of a guest is trusted. Rings and tables are read once and checked, headers are copied before they are looked at, and
//! the node checks them again. What makes no sense is dropped and counted; a queue whose rings make none is left alone until
//! the guest sets it up anew. The process is confined before the first virtual machine comes ([`wall`]).
//!
//! | what happens | and then |
//! | --- | --- |
//! | the guest resets, or its driver stops | the queues are stopped: the node's interface loses its carrier until they start |
//! | the virtual machine ends | the same; the next one that connects is served |
//! | the device ends, by a fault | the keeper starts another (ring3_node, ports/vhost.rs) |
//! | the node goes down | the keeper's end of the talk is closed: the device ends, and the virtual machine sees that |
//!
//! | module | concept |
//! | --- | --- |
//! | [`lanes`] | the two directions: start reading here |
//! | [`link`] | the device's end of a link's rings |
//! | [`chain`], [`used`] | the guest's buffers, taken and given back |
//! | [`features`] | what device and guest agree on, and headers |
//! | [`offload`] | frames for guests that agree to little |
//! | [`frontend`] | the connection of a virtual machine |
//! | [`says`] | the log |
//! | [`wall`] | the host calls that are left |

mod chain;
mod error;
mod features;
mod frontend;
mod lanes;
mod link;
mod offload;
mod says;
mod used;
pub mod wall;

#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ring3_node::{VhostPlan, VhostTalk};
use vhost::vhost_user::{BackendReqHandler, Error as ProtocolError};

pub use error::{Error, Result};

use frontend::{Device, Handler, Hears};
use lanes::Lanes;
use link::Memory;
use says::Says;

/// How often to try again what the host refuses.
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(100);

/// The process of a `vhost` port, from its start until its keeper is gone. `socket` is its end of the talk with the keeper.
pub fn vhost_port(socket: OwnedFd) -> Result<()> {
    ring3_node::inside::close_inherited(&socket)?;
    let (talk, plan, link, listener) = VhostTalk::hear(socket)?;
    let talk = Arc::new(talk);
    let begun = begin(&talk, &plan, link.memory(), listener);
    // What fails before it serves, the keeper says.
    begun.inspect_err(|error| talk.answer(Err(&error.to_string())))?;
    talk.wait_for_end();
    // Whatever the threads are about: memory, queues and sockets go with the process.
    std::process::exit(0)
}

fn begin(
    talk: &Arc<VhostTalk>,
    plan: &VhostPlan,
    memory: &std::fs::File,
    listener: OwnedFd,
) -> Result<()> {
    // Half a device would be one that hangs.
    std::panic::set_hook(Box::new(|panic| {
        log::error!("{panic}");
        std::process::exit(101);
    }));
    ring3_node::raise_descriptor_limit();
    ring3_sandbox::drop_capabilities().map_err(Error::Capabilities)?;
    // While the process has one thread: a domain of Landlock is a thread's.
    if !ring3_sandbox::fence()? {
        log::info!(
            "this host's kernel has no Landlock: the device has only its list of host calls"
        );
    }
    let says = Says::new(&plan.node, &plan.socket);
    let lanes = Arc::new(Lanes::new(Memory::map(memory)?, says));
    let teller = talk.clone();
    let hears: Arc<Hears> = Arc::new(move |state: &str| teller.say_state(state));
    let listener = UnixListener::from(listener);
    wall::raise()?;
    serve_all(&lanes, listener, hears)?;
    talk.answer(Ok(()));
    Ok(())
}

/// Starts the threads.
fn serve_all(lanes: &Arc<Lanes>, listener: UnixListener, hears: Arc<Hears>) -> Result<()> {
    let started = lanes.clone();
    start("ring3-link", move || follow_link(&started))?;
    let started = lanes.clone();
    start("ring3-guests", move || {
        take_guests(&started, listener, &hears)
    })
}

/// No virtual machine has connected.
const NO_GUEST: &str = "";

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(drop)
        .map_err(Error::io("start a thread"))
}

/// Takes what the node sends, and goes on with what waits for the node.
fn follow_link(lanes: &Lanes) {
    let mut is_starved = false;
    let mut bell = lanes.memory.bell_now();
    loop {
        if !is_starved {
            lanes.memory.arm(true);
        }
        if lanes.has_work(is_starved) {
            lanes.memory.arm(false);
        } else {
            lanes.memory.wait(bell);
            lanes.memory.arm(false);
        }
        // Before the looks: the guest's kick after receive()'s last one is a ring that the wait sees.
        bell = lanes.memory.bell_now();
        is_starved = lanes.receive();
        lanes.send_on();
    }
}

/// Serves one virtual machine after another.
fn take_guests(lanes: &Arc<Lanes>, listener: UnixListener, hears: &Arc<Hears>) {
    loop {
        match listener.accept() {
            Ok((socket, _)) => serve(lanes, socket, hears),
            Err(why) => {
                log::warn!("{}a virtual machine is not served: {why}", lanes.says.head);
                std::thread::sleep(HOST_TROUBLE_TURN);
            }
        }
        hears(NO_GUEST);
    }
}

/// One virtual machine, until it is gone.
fn serve(lanes: &Arc<Lanes>, socket: UnixStream, hears: &Arc<Hears>) {
    let head = &lanes.says.head;
    let started = Device::new(lanes.clone(), hears.clone()).and_then(|device| {
        let works = device.clone();
        let worker = std::thread::Builder::new().name("ring3-kicks".into());
        Ok((device, worker.spawn(move || works.work())?))
    });
    let (device, worker) = match started {
        Ok(both) => both,
        Err(why) => return log::warn!("{head}a virtual machine is not served: {why}"),
    };
    log::info!("{head}a virtual machine has connected");
    hears(frontend::CONNECTED);
    let handler = Arc::new(Mutex::new(Handler::new(device.clone())));
    let mut requests = BackendReqHandler::from_stream(socket, handler);
    let why = loop {
        match requests.handle_request() {
            Ok(()) => {}
            // QEMU enables queues before it says which features it takes. vhost refuses that, and does not say which queue: QEMU
            // does so for both of the one pair there is.
            Err(ProtocolError::InactiveFeature(_)) => device.enable(),
            Err(why) => break why,
        }
    };
    device.end(worker);
    let sum = lanes.says.sum();
    match why {
        ProtocolError::Disconnected
        | ProtocolError::PartialMessage
        | ProtocolError::SocketBroken(_) => {
            log::info!("{head}the virtual machine is gone{sum}");
        }
        why => log::warn!("{head}the virtual machine's connection ends, by a message that makes no sense: {why}{sum}"),
    }
}
