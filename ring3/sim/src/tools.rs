// SPDX-License-Identifier: GPL-2.0
//! What `ip`, `tc`, `nft` and `ss` do, in the network namespace that the caller is in.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use crate::data::Data;
use crate::error::{Error, Result};
use crate::plan::Space;
use crate::rtnl;
use crate::spawn;

/// Lines for `ip` or `tc`; kept beside the results under `name`, if it has one.
pub fn batch(data: &Data, tool: &str, name: &str, lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    if !name.is_empty() {
        let path = data.network(name);
        std::fs::write(&path, text_of(lines))
            .map_err(Error::host(format!("write {}", path.display())))?;
    }
    rtnl::say(tool, lines, |lines| {
        with_file(data, tool, "", &text_of(lines), &["-batch"])
    })
}

fn text_of(lines: &[String]) -> String {
    format!("{}\n", lines.join("\n"))
}

pub fn script(data: &Data, name: &str, script: &str) -> Result<()> {
    with_file(data, "nft", name, script, &["-f"])
}

fn with_file(data: &Data, tool: &str, name: &str, text: &str, args: &[&str]) -> Result<()> {
    let path: PathBuf = match name.is_empty() {
        true => data.network("step"),
        false => data.network(name),
    };
    std::fs::write(&path, text).map_err(Error::host(format!("write {}", path.display())))?;
    let path = path.to_string_lossy().into_owned();
    let args: Vec<&str> = args.iter().copied().chain([path.as_str()]).collect();
    run(tool, &args, text)
}

pub fn run(tool: &str, args: &[&str], text: &str) -> Result<()> {
    let output = Command::new(tool)
        .args(args)
        .env_clear()
        .env("PATH", spawn::SEARCH)
        .output()
        .map_err(Error::host(format!("start {tool}")))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let is_noise = |line: &&str| line.starts_with("Warning") || line.is_empty();
    let first = words
        .lines()
        .find(|line| !is_noise(line))
        .unwrap_or("it says nothing");
    let line = words
        .lines()
        .find_map(|line| line.rsplit_once(':')?.1.trim().parse::<usize>().ok())
        .and_then(|number| text.lines().nth(number.checked_sub(1)?))
        .unwrap_or_default();
    Err(Error::Said(format!("{tool} failed: {first} ({line})")))
}

pub fn set_sysctl(key: &str, value: &str) -> Result<()> {
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    std::fs::write(&path, value).map_err(Error::host(format!("set the sysctl {key} to `{value}`")))
}

/// What the plan says of a network namespace; the caller is in it.
pub fn set_up(data: &Data, space: &Space) -> Result<()> {
    for (key, value) in &space.early {
        set_sysctl(key, value)?;
    }
    batch(data, "ip", &format!("{}.simlink", space.name), &space.wires)?;
    batch(data, "ip", &format!("{}.ip", space.name), &space.ip)?;
    batch(data, "tc", &format!("{}.tc", space.name), &space.tc)?;
    if !space.nft.is_empty() {
        script(data, &format!("{}.nft", space.name), &space.nft)?;
    }
    for (key, value) in &space.sysctls {
        set_sysctl(key, value)
            .map_err(|error| Error::Said(format!("host {}: {error}", space.name)))?;
    }
    Ok(())
}

/// A file of the node's, such as that of a network namespace.
pub fn open(path: &str) -> Result<File> {
    File::open(path).map_err(Error::host(format!("open {path}")))
}
