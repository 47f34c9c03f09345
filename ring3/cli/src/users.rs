// SPDX-License-Identifier: GPL-2.0
//! `ring3 ls --all-users`: root sees every user's nodes.
//!
//! A node answers its own user only. So root asks as that user: this command runs itself, with the user's identity and
//! runtime folder, for each folder that there is in the usual places.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::unistd::{geteuid, Gid, Uid, User};
use ring3_node::client::Status;

use crate::error::{Failure, Result};
use crate::say;

/// A user's nodes: what each says, or its name and why it says nothing.
pub struct Nodes {
    pub user: String,
    pub nodes: Vec<serde_json::Value>,
}

/// Runtime folders by their owner; those of sessions, and those of users without one (see runtime.rs of ring3-node).
fn folders() -> BTreeMap<u32, Vec<PathBuf>> {
    let list = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten();
    let sessions = list("/run/user").map(|it| it.path().join("ring3"));
    let others = list("/tmp")
        .filter(|it| it.file_name().to_string_lossy().starts_with("ring3-"))
        .map(|it| it.path());
    let own = std::iter::once(PathBuf::from("/run/ring3"));
    let mut found: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
    for path in sessions.chain(others).chain(own) {
        // Not by way of a symbolic link: its owner says nothing of what it leads to.
        if let Ok(meta) = fs::symlink_metadata(&path) {
            if meta.is_dir() && path.join("nodes").is_dir() {
                found.entry(meta.uid()).or_default().push(path);
            }
        }
    }
    found
}

pub fn list() -> Result<Vec<Nodes>> {
    if !geteuid().is_root() {
        return Err(Failure::NotRoot);
    }
    let mut all = Vec::new();
    for (uid, folders) in folders() {
        let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
        let gid = user.as_ref().map_or(Gid::from_raw(uid), |it| it.gid);
        let name = user.map_or(uid.to_string(), |it| it.name);
        let mut nodes = Vec::new();
        for folder in folders {
            match ask(uid, gid.as_raw(), &folder) {
                Ok(more) => nodes.extend(more),
                Err(why) => say::complain(format_args!("nodes of user {name}: {why}")),
            }
        }
        all.push(Nodes { user: name, nodes });
    }
    Ok(all)
}

fn ask(uid: u32, gid: u32, folder: &std::path::Path) -> Result<Vec<serde_json::Value>> {
    let fail = || Failure::host("ask as that user, who has to be able to run this command");
    let exe = std::env::current_exe().map_err(fail())?;
    let mut command = Command::new(exe);
    command
        .args(["ls", "--json"])
        .uid(uid)
        .gid(gid)
        .current_dir("/")
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    if folder.file_name().is_some_and(|name| name == "ring3") {
        command.env("XDG_RUNTIME_DIR", folder.parent().unwrap_or(folder));
    }
    let output = command.output().map_err(fail())?;
    serde_json::from_slice(&output.stdout).map_err(|why| fail()(why.into()))
}

/// For the table: what the node says, if it does.
pub fn status(node: &serde_json::Value) -> Option<Status> {
    serde_json::from_value(node.clone()).ok()
}
