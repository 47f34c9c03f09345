// SPDX-License-Identifier: GPL-2.0
//! Which version of a program is installed, by its own word.

use crate::apps;
use crate::exec;
use std::process::Command;
use std::time::Duration;

/// How programs are asked.
const WAYS: &[&str] = &["--version", "-v", "-V", "version"];

/// Those that answer otherwise, or for somebody else.
const ASKED: &[(&str, &[&str])] = &[
    ("apache2", &["apache2", "-v"]),
    (
        "ping",
        &["dpkg-query", "-W", "-f=${Version}", "iputils-ping"],
    ),
    (
        "sshd",
        &["dpkg-query", "-W", "-f=${Version}", "openssh-server"],
    ),
    ("busybox", &["busybox"]),
    (
        "musl-gcc",
        &["dpkg-query", "-W", "-f=${Version}", "musl-tools"],
    ),
];

/// The version, or a question mark.
pub fn version(program: &str) -> String {
    if let Some((_, argv)) = ASKED.iter().find(|(name, _)| *name == program) {
        return answer(Command::new(argv[0]).args(&argv[1..])).unwrap_or("?".into());
    }
    let Some(path) = apps::path_of(program) else {
        return "?".into();
    };
    WAYS.iter()
        .find_map(|way| answer(Command::new(&path).arg(way)))
        .unwrap_or("?".into())
}

/// The first word that begins like a version.
fn answer(command: &mut Command) -> Option<String> {
    let outcome = exec::run(command, Duration::from_secs(20)).ok()?;
    let text = outcome.stdout + &outcome.stderr;
    text.split(|c: char| c.is_whitespace() || "()/,\"=".contains(c))
        .map(|word| word.trim_start_matches("go").trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains(['.', '-']))
        .map(|word| word.trim_end_matches(['.', ':', ';']).to_string())
        // Debian's epoch is not the program's.
        .map(|word| match word.split_once(':') {
            Some((_, version)) => version.to_string(),
            None => word,
        })
}
