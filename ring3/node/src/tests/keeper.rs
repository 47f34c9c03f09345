// SPDX-License-Identifier: GPL-2.0
//! The keeper on a fake image.

use std::process::Command;
use std::time::{Duration, Instant};

use ring3_abi::*;
use ring3_config::NodeConfig;

use super::join_client::{hold_vcpu, join, vcpu_owner};
use super::Place;
use crate::client::{Client, State};
use crate::elf::c_string;
use crate::error::{Errno, Error};
use crate::node::Node;
use crate::NodeHandle;

/// Polls for something that another thread does.
fn soon(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(5), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_node_comes_up_answers_and_leaves_nothing() {
    let place = Place::new();
    let mut config = place.fake_node("a");
    config.ports = vec!["link:l,addr=10.0.0.1/24,mtu=9000".parse().unwrap()];
    config.sysctls = vec![("net.ipv4.ip_forward".into(), "1".into())];
    let node = NodeHandle::start_in(config.clone(), &place.folder).unwrap();
    assert!(node.join_path().exists());
    assert!(matches!(
        NodeHandle::start_in(config, &place.folder),
        Err(Error::NameTaken { .. })
    ));

    let client = Client::find(place.folder.clone(), "a").unwrap();
    let status = client.status().unwrap();
    assert_eq!(status.state, State::Up);
    assert_eq!(status.version, "6.12.0 fake");
    assert_eq!(status.ports[0].ifname, "l");
    assert_eq!(status.ports[0].addrs, ["10.0.0.1/24"]);
    let log = client.log(0).unwrap();
    assert_eq!(log.text, "<6>[0000.000001] fake\n".repeat(2));
    assert_eq!(client.log(log.next).unwrap().text, "");

    client.down().unwrap();
    assert!(matches!(client.status(), Err(Error::NoSuchNode { .. })));
    assert!(matches!(
        Client::find(place.folder.clone(), "a"),
        Err(Error::NoSuchNode { .. })
    ));
    node.down().unwrap();
    assert!(place.is_clean());
}

#[test]
fn a_boot_that_fails_says_why_and_leaves_nothing() {
    let place = Place::new();
    for (define, words) in [
        ("FAKE_BOOT=1", "no init found"),
        ("FAKE_BOOT=2", "returned -2"),
    ] {
        let mut config = place.fake_node("a");
        config.ports = vec!["link:l".parse().unwrap()];
        config.image = Some(place.fake_image(&[define]));
        let error = NodeHandle::start_in(config, &place.folder).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(place.is_clean());
    }
}

#[test]
fn an_image_that_is_none() {
    let place = Place::new();
    let start = |image: &std::path::Path| {
        let mut config = NodeConfig::new("a");
        config.image = Some(image.to_owned());
        NodeHandle::start_in(config, &place.folder)
            .unwrap_err()
            .to_string()
    };
    let missing = start(&place.path("missing"));
    assert!(
        missing.contains("missing") && missing.contains("make"),
        "{missing}"
    );
    let text = place.path("text");
    std::fs::write(&text, "no image").unwrap();
    assert!(start(&text).contains("no 64-bit ELF"));
    let own = std::env::current_exe().unwrap();
    assert!(start(&own).contains("not a ring3 kernel image"));
    let old = place.fake_image(&["FAKE_ABI=77"]);
    assert!(start(&old).contains("contract 0000004d"));
    assert!(place.is_clean());
}

#[test]
fn programs_join_and_are_missed() {
    let place = Place::new();
    let mut config = place.fake_node("a");
    config.ports = vec!["link:l".parse().unwrap()];
    let node = NodeHandle::start_in(config, &place.folder).unwrap();
    let pid = std::process::id() as i32;

    let (reply, fds) = join(node.join_path(), RING3_ABI, pid);
    // The port, and spare memory for two that may come (node/live.rs).
    assert_eq!((reply.status, reply.nports), (0, 3));
    assert_eq!(reply.ports[0].kind, RING3_PORT_LINK);
    assert_eq!(c_string(&reply.node), "a");
    assert_eq!(fds.len(), 5, "region, socket for tickets, port, spares");
    assert!(reply.thread > reply.base && reply.thread < reply.base + reply.size);
    let size = rustix::fs::fstat(&fds[2]).unwrap().st_size;
    assert_eq!(size, i64::from(RING3_LINK_BYTES));

    for (abi, pid, words) in [
        (99, pid, "contract 00000063"),
        (RING3_ABI, 1, "pid namespaces"),
    ] {
        let (reply, fds) = join(node.join_path(), abi, pid);
        assert!(reply.status < 0 && fds.is_empty());
        let message = c_string(&reply.message);
        assert!(message.contains(words), "{message}");
    }

    // Another process joins, is seen, dies and is seen no more.
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::keeper::joins_and_sleeps", "--nocapture"])
        .env(RING3_ENV_NODE, node.join_path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let client = Client::find(place.folder.clone(), "a").unwrap();
    let pids = || -> Vec<i32> {
        let status = client.status().unwrap();
        status.procs.iter().map(|proc| proc.pid).collect()
    };
    soon("the child joins", || pids() == [child.id() as i32]);
    child.kill().unwrap();
    child.wait().unwrap();
    soon("its death is seen", || pids().is_empty());
    node.down().unwrap();
}

/// Not a test by itself: the child of the one above.
#[test]
fn joins_and_sleeps() {
    if let Some(path) = std::env::var_os(RING3_ENV_NODE) {
        join(path.as_ref(), RING3_ABI, std::process::id() as i32);
        std::thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn a_bad_address_is_efault() {
    let place = Place::new();
    let mut node = Node::start(place.fake_node("a"), &place.folder).unwrap();
    assert_eq!(node.init().read_at_address(8), Err(Errno(libc::EFAULT)));
    let mut word = [1, 2, 3, 4, 0, 0, 0, 0];
    assert_eq!(node.init().read(0, &mut word), Ok(0x0403_0201));
}

#[test]
fn both_ends_of_a_link_in_one_process() {
    let place = Place::new();
    let start = |name: &str| {
        let mut config = place.fake_node(name);
        config.ports = vec!["link:l".parse().unwrap()];
        NodeHandle::start_in(config, &place.folder)
    };
    let a = start("a").unwrap();
    let b = start("b").unwrap();
    let error = start("c").unwrap_err().to_string();
    assert!(error.contains("`a`") && error.contains("`b`"), "{error}");
    a.down().unwrap();
    let c = start("c").unwrap();
    drop((b, c));
    assert!(place.is_clean());
}

/// A node with one process, which is killed while its thread, with `word`, has the vCPU.
fn kill_the_holder(word: u32) -> (NodeHandle, u64, i32) {
    let place = Place::new();
    let node = NodeHandle::start_in(place.fake_node("a"), &place.folder).unwrap();
    // Our own task is the first of the fake image's, the child's the second.
    let (reply, _) = join(node.join_path(), RING3_ABI, std::process::id() as i32);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::keeper::joins_and_sleeps", "--nocapture"])
        .env(RING3_ENV_NODE, node.join_path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let client = Client::find(place.folder.clone(), "a").unwrap();
    soon("the child joins", || {
        client.status().unwrap().procs.len() == 1
    });
    let block = reply.thread + size_of::<ring3_thread>() as u64;
    hold_vcpu(reply.base, block, child.id(), word);
    child.kill().unwrap();
    child.wait().unwrap();
    (node, reply.base, child.id() as i32)
}

#[test]
fn a_death_inside_the_kernel_poisons_the_node() {
    let (node, _, pid) = kill_the_holder(0);
    soon("the node is poisoned", || node.poison().is_some());
    let error = node.down().unwrap_err().to_string();
    assert!(
        error.contains(&format!("process {pid} died inside")),
        "{error}"
    );
}

#[test]
fn a_vcpu_on_its_way_to_a_dead_process_is_taken_back() {
    for word in [RING3_WORD_BATON, RING3_WORD_OFFERED] {
        let (node, base, _) = kill_the_holder(word);
        soon("the vCPU is free", || vcpu_owner(base) == 0);
        assert_eq!(node.poison(), None);
        node.down().unwrap();
    }
}
