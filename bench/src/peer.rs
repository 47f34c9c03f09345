// SPDX-License-Identifier: GPL-2.0
//! Other stacks beside which ring3 is measured: where they lie and how they are started.
//!
//! `make -C bench peers` builds them into build/peers. A User-mode Linux runs the bench's
//! own programs; the libraries come with programs that say the same on the wire.

use crate::figure::{BedKind, Series};
use crate::tool;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a User-mode Linux may take to answer.
const BOOT: Duration = Duration::from_secs(20);
/// The one TAP of a namespace, or the first of two.
pub const TAP: &str = "tap0";
const OTHER_TAP: &str = "tap1";

/// Why this series can't be measured here, if it can't.
pub fn missing(series: &Series) -> Option<String> {
    if series.node.iter().any(|word| word == "--cpus") {
        let image = tool::root().join("bin/ring3-smp.image");
        return (!image.exists()).then(|| format!("{} is not built (make smp)", image.display()));
    }
    let needed = match series.bed {
        BedKind::Peer | BedKind::UmlLoopback | BedKind::UmlTap | BedKind::UmlPair => {
            path(&series.peer)
        }
        BedKind::Pasta | BedKind::PastaIn => PathBuf::from("/usr/bin/pasta"),
        BedKind::Slirp => PathBuf::from("/usr/bin/slirp4netns"),
        _ if series.peer.is_empty() => return None,
        _ => path(&series.peer),
    };
    (!needed.exists()).then(|| match series.peer.is_empty() {
        true => format!("{} is not installed (tools/setup bench)", needed.display()),
        false => format!("{} is not built (make -C bench peers)", series.peer),
    })
}

/// Where a peer's program lies.
pub fn path(name: &str) -> PathBuf {
    tool::build().join("peers").join(name)
}

/// The words that run `words` on a library's stack: its program knows ours by name.
pub fn library(name: &str, address: &str, words: &[String]) -> Vec<String> {
    let mut all = vec![path(name).display().to_string(), TAP.into(), address.into()];
    if let Some((first, rest)) = words.split_first() {
        let file = Path::new(first).file_name().unwrap_or_default();
        all.push(file.to_string_lossy().into_owned());
        all.extend_from_slice(rest);
    }
    all
}

/// A TAP that stays, in `namespace`, with the host's end addressed.
pub fn tap(namespace: &str, address: &str) -> Result<(), String> {
    ip(namespace, &format!("tuntap add dev {TAP} mode tap"))?;
    up(namespace, TAP, address)
}

/// Two TAPs that stay, joined by a bridge with an address of the host's.
pub fn bridge(namespace: &str, address: &str) -> Result<[&'static str; 2], String> {
    let taps = [TAP, OTHER_TAP];
    ip(namespace, "link add br0 type bridge")?;
    for tap in taps {
        ip(namespace, &format!("tuntap add dev {tap} mode tap"))?;
        ip(namespace, &format!("link set {tap} up master br0"))?;
    }
    up(namespace, "br0", address)?;
    Ok(taps)
}

fn up(namespace: &str, device: &str, address: &str) -> Result<(), String> {
    ip(namespace, &format!("addr add {address}/24 dev {device}"))?;
    ip(namespace, &format!("link set {device} up"))
}

fn ip(namespace: &str, line: &str) -> Result<(), String> {
    let mut ip = Command::new("ip");
    tool::output(ip.args(["-n", namespace]).args(line.split(' '))).map(drop)
}

/// A program that runs as long as this lives.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        // One that is gone already needs no signal.
        let _ = tool::output(Command::new("kill").args(["-TERM", &pid]));
        let start = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) {
            if start.elapsed() > Duration::from_secs(3) {
                let _ = self.0.kill();
                let _ = self.0.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

pub fn in_namespace(namespace: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}"));
    command
}

pub fn start(mut command: Command) -> Result<Running, String> {
    let name = format!("{:?}", command.get_program());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(Running)
        .map_err(|e| format!("{name}: {e}"))
}

/// Starts a User-mode Linux on a TAP of `namespace` and waits until its agent answers. The
/// TAP's name makes its own unique.
pub fn uml(
    name: &str,
    namespace: &str,
    tap: &str,
    address: &str,
    id: &str,
) -> Result<Running, String> {
    let mut command = in_namespace(namespace);
    command.arg(path("uml-run")).args([
        path(name).display().to_string(),
        format!("{id}-{tap}"),
        tap.to_string(),
        address.to_string(),
    ]);
    let mut running = start(command)?;
    let start = Instant::now();
    let asked = ["true".to_string()];
    while tool::output(&mut call(namespace, address, &asked)).is_err() {
        if start.elapsed() > BOOT || !matches!(running.0.try_wait(), Ok(None)) {
            return Err(format!(
                "{name} does not come up; see its console: {} {} x {tap} {address}",
                path("uml-run").display(),
                path(name).display()
            ));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(running)
}

/// A command in a User-mode Linux.
pub fn call(namespace: &str, address: &str, words: &[String]) -> Command {
    let mut command = in_namespace(namespace);
    command.arg(path("uml-call")).arg(address).args(words);
    command
}
