// SPDX-License-Identifier: GPL-2.0
//! The keeper with the real kernel, where `bin/ring3-up.image` is built.

use std::path::PathBuf;
use std::time::Instant;

use ring3_config::NodeConfig;

use super::Place;
use crate::node::Node;

/// The image, or a word that the test does nothing.
fn image() -> Option<PathBuf> {
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../bin/ring3-up.image");
    let path = std::env::var_os("RING3_IMAGE").map_or(built, PathBuf::from);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: no kernel image at {}", path.display());
    None
}

fn config(name: &str, ports: &[&str]) -> Option<NodeConfig> {
    let mut config = NodeConfig::new(name);
    config.image = Some(image()?);
    config.ports = ports.iter().map(|port| port.parse().unwrap()).collect();
    Some(config)
}

#[test]
fn it_boots() {
    let place = Place::new();
    let Some(config) = config("a", &[]) else {
        return;
    };
    let start = Instant::now();
    let node = Node::start(config, &place.folder).unwrap();
    eprintln!("up after {:?}", start.elapsed());
    drop(node);
    eprintln!("gone after {:?}", start.elapsed());
}
