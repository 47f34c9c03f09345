// SPDX-License-Identifier: GPL-2.0
//! `ring3 perf report`: perf with the names of a node's kernel.
//!
//! perf sees the kernel's text as a mapping of the file `/memfd:ring3:NODE (deleted)`, which it cannot open. In a folder for
//! its option --symfs this module puts a file of that name, with the image's functions at the offsets that they have in the
//! node's memory. All else in the folder is links to the host's own folders.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{symlink, DirBuilderExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ring3_node::client::Client;

use crate::args;
use crate::error::{Failure, Result};
use crate::program;
use crate::symbols;

/// The subcommands of perf that read symbols, and take --symfs.
const READERS: [&str; 4] = ["report", "script", "annotate", "diff"];
const IMAGE: &str = "ring3-up.image";
/// A node's memory in a process's list of mappings.
const BEFORE: &[u8] = b"/memfd:ring3:";
const AFTER: &[u8] = b" (deleted)";
/// Of a node's name; longer is something else.
const NAME_MAX: usize = 64;

pub fn perf(args: &args::Perf) -> Result<u8> {
    let (verb, rest) = (&args.command[0], &args.command[1..]);
    if !READERS.iter().any(|it| verb == it) {
        return Err(Failure::PerfVerb {
            verb: verb.to_string_lossy().into_owned(),
        });
    }
    let inputs = inputs(verb, rest);
    let mut nodes = Vec::new();
    for path in &inputs {
        let data = fs::read(path).map_err(Failure::host(format!("read {}", path.display())))?;
        nodes.extend(names(&data));
    }
    nodes.sort();
    nodes.dedup();
    if nodes.is_empty() {
        return Err(Failure::PerfNoNode { inputs });
    }
    let folder = Folder::new().map_err(Failure::host("make a folder for symbols"))?;
    for node in &nodes {
        folder.add(node, &image(args, node)?)?;
    }
    let mut command = Command::new("perf");
    command.arg(verb).arg("--symfs").arg(&folder.0);
    // With --symfs it would not ask the host's kernel for its names; what the host hides stays hidden.
    let has_names = rest
        .iter()
        .any(|it| it.to_string_lossy().contains("kallsyms"));
    if !has_names && verb != "diff" && are_names_shown() {
        command.arg("--kallsyms=/proc/kallsyms");
    }
    let status = command
        .args(rest)
        .status()
        .map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => Failure::CommandNotFound {
                command: "perf".to_owned(),
            },
            _ => Failure::host("start perf")(why),
        })?;
    let signal = status.signal().map(|number| 128 + number);
    Ok(status.code().or(signal).unwrap_or(1) as u8)
}

/// The files that perf will read.
fn inputs(verb: &OsStr, rest: &[OsString]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if word == "-i" || word == "--input" {
            found.extend(words.next().map(PathBuf::from));
        } else if let Some(path) = text.strip_prefix("--input=") {
            found.push(path.into());
        } else if let Some(path) = text.strip_prefix("-i").filter(|_| !text.starts_with("--")) {
            found.push(path.into());
        } else if verb == "diff" && !text.starts_with('-') {
            found.push(word.into());
        }
    }
    if found.is_empty() {
        found.push("perf.data".into());
    }
    found
}

/// The nodes whose memory the data names.
fn names(data: &[u8]) -> Vec<String> {
    let at = data.windows(BEFORE.len()).enumerate();
    let at = at.filter(|(_, bytes)| *bytes == BEFORE);
    at.filter_map(|(at, _)| {
        let rest = &data[at + BEFORE.len()..];
        let rest = &rest[..rest.len().min(NAME_MAX + AFTER.len())];
        let len = rest.windows(AFTER.len()).position(|it| it == AFTER)?;
        let name = std::str::from_utf8(&rest[..len]).ok()?;
        (!name.contains(['/', '\0'])).then(|| name.to_owned())
    })
    .collect()
}

/// The node's, if it is still up; else the one that a node would be made of now.
fn image(args: &args::Perf, node: &str) -> Result<PathBuf> {
    if let Some(path) = &args.image {
        return Ok(path.clone());
    }
    let up = Client::open(node).and_then(|node| node.status());
    let image = up.map(|status| status.image).ok();
    let image = image.or_else(|| program::beside_command(IMAGE));
    image.ok_or_else(|| Failure::PerfNoImage {
        node: node.to_owned(),
    })
}

/// Addresses are zero for those who may not see them.
fn are_names_shown() -> bool {
    let text = fs::read("/proc/kallsyms").unwrap_or_default();
    let first = text.split(|byte| *byte == b' ').next();
    first.is_some_and(|address| address.iter().any(|digit| *digit != b'0'))
}

/// For perf's --symfs; it goes with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("ring3-perf-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Folder(path);
        for entry in fs::read_dir("/")? {
            let entry = entry?;
            symlink(entry.path(), folder.0.join(entry.file_name()))?;
        }
        Ok(folder)
    }

    fn add(&self, node: &str, image: &Path) -> Result<()> {
        let bytes = fs::read(image).map_err(Failure::host(format!("read {}", image.display())))?;
        let laid_out = symbols::at_offsets(&bytes).ok_or_else(|| Failure::NoSymbols {
            path: image.to_owned(),
        })?;
        let path = self.0.join(format!("memfd:ring3:{node} (deleted)"));
        fs::write(&path, laid_out).map_err(Failure::host(format!("write {}", path.display())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn input_files() {
        let of = |verb: &str, line: &str| inputs(OsStr::new(verb), &words(line));
        assert_eq!(of("report", "--stdio"), [PathBuf::from("perf.data")]);
        for line in ["-i x", "-ix", "--input x", "--input=x --stdio"] {
            assert_eq!(of("report", line), [PathBuf::from("x")], "{line}");
        }
        assert_eq!(of("diff", "-b a b"), [PathBuf::from("a"), "b".into()]);
    }

    #[test]
    fn nodes_of_a_file() {
        let data = b"..\0/memfd:ring3:a (deleted)\0\0/memfd:ring3-link:ab (deleted)\0/memfd:ring3:b-2 (deleted)\
            /memfd:ring3:../etc (deleted) /memfd:ring3:";
        assert_eq!(names(data), ["a", "b-2"]);
    }
}
