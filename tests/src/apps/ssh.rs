// SPDX-License-Identifier: GPL-2.0
//! OpenSSH's server on a node: it forks, execs itself, and sandboxes a child by seccomp.

use super::ensure;
use super::scenario::{LIMIT, SERVED, Scenario};
use super::topology::Pair;
use crate::exec::End;
use crate::scratch::{self, Scratch};
use std::path::Path;

const COPIED: usize = 100 << 20;
/// Debian's sshd wants to chroot its unprivileged child there.
const EMPTY_FOLDER: &str = "/run/sshd";

pub const SCENARIOS: &[Scenario] = &[Scenario {
    name: "ssh",
    programs: &["sshd", "ssh", "scp", "ssh-keygen"],
    what: "a login by key with a command; scp of 100 MB there and back",
    topologies: SERVED,
    needs_root: Some("sshd separates privileges as root"),
    run: ssh,
}];

fn ssh(pair: &Pair) -> Result<(), String> {
    std::fs::create_dir_all(EMPTY_FOLDER).map_err(|e| format!("{EMPTY_FOLDER}: {e}"))?;
    let folder = Scratch::new()?;
    let port = pair.port(0);
    let config = configure(pair, &folder, port)?;
    let _server = pair
        .server
        .start(&["/usr/sbin/sshd", "-D", "-e", "-f", &config])?;
    pair.wait_for_port(port)?;
    command(pair, &folder, port)?;
    copy(pair, &folder, port)
}

fn key(pair: &Pair, path: &Path) -> Result<(), String> {
    let path = path.to_string_lossy();
    pair.client.must(
        &[
            "ssh-keygen",
            "-q",
            "-t",
            "ed25519",
            "-N",
            "",
            "-C",
            "test",
            "-f",
            &path,
        ],
        LIMIT,
    )?;
    Ok(())
}

/// Keys and the server's configuration.
fn configure(pair: &Pair, folder: &Scratch, port: u16) -> Result<String, String> {
    key(pair, &folder.file("host"))?;
    key(pair, &folder.file("id"))?;
    let path = folder.path().display();
    let config = folder.write(
        "config",
        format!(
            "ListenAddress {}\nPort {port}\nHostKey {path}/host\nPidFile none\nUsePAM no\n\
             AuthorizedKeysFile {path}/id.pub\nStrictModes no\nPermitRootLogin yes\nSetEnv HOME={path}\n\
             Subsystem sftp internal-sftp\n",
            pair.server4
        ),
    )?;
    Ok(config.to_string_lossy().into_owned())
}

/// What ssh and scp have in common; `port` is the letter of the option.
fn options(folder: &Scratch, letter: &str, port: u16) -> Vec<String> {
    let id = folder.file("id").to_string_lossy().into_owned();
    let known = format!("UserKnownHostsFile={}/known", folder.path().display());
    [
        "-q",
        "-F",
        "none",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        &known,
        "-i",
        &id,
        letter,
        &port.to_string(),
    ]
    .map(String::from)
    .to_vec()
}

fn command(pair: &Pair, folder: &Scratch, port: u16) -> Result<(), String> {
    let mut argv = vec!["ssh".to_string()];
    argv.extend(options(folder, "-p", port));
    argv.push(format!("root@{}", pair.server4));
    argv.push("echo came by $SSH_CONNECTION; exit 7".into());
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let outcome = pair.client.run(&argv, LIMIT)?;
    ensure(
        outcome.end == End::Exit(7)
            && outcome.stdout.starts_with("came by ")
            && outcome
                .stdout
                .trim_end()
                .ends_with(&format!(" {} {port}", pair.server4)),
        || outcome.report(),
    )
}

/// There and back again.
fn copy(pair: &Pair, folder: &Scratch, port: u16) -> Result<(), String> {
    let sent = folder.noise("sent", COPIED)?;
    let far = format!("root@{}:{}/far", pair.server4, folder.path().display());
    let back = folder.file("back");
    for (from, to) in [
        (sent.to_string_lossy(), far.as_str().into()),
        (far.as_str().into(), back.to_string_lossy()),
    ] {
        let mut argv = vec!["scp".to_string()];
        argv.extend(options(folder, "-P", port));
        argv.push(from.into_owned());
        argv.push(to.into_owned());
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        pair.client.must(&argv, LIMIT)?;
    }
    ensure(scratch::same(&sent, &back)?, || {
        "other bytes arrived".into()
    })
}
