// SPDX-License-Identifier: GPL-2.0
//! A process of a scenario: which program, when, and how it has to end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Fault;
use crate::old;
use crate::read::{home, opt};
use crate::scenario::{Expected, General, Process};
use crate::spawn::SEARCH;
use crate::units::{signal_of, time_of};
use crate::yaml::{Node, Result, Value};

pub const PROCESS: &[&str] = &[
    "path",
    "args",
    "environment",
    "start_time",
    "shutdown_time",
    "shutdown_signal",
    "expected_final_state",
];

/// A process, and how many of it (Shadow 2).
pub fn read(
    node: &Node,
    path: &str,
    general: &General,
    search: &str,
    is_old: bool,
) -> Result<(Process, u32)> {
    let mut map = node.map(path)?;
    let at = map.need("path")?;
    let word = at.text(&map.at("path"))?.to_owned();
    let program = find_program(&word, search)
        .map_err(|why| Fault::at(at.place, format!("{path}.path: {why}")))?;
    let name = called(&word, &program);
    let start_node = map.take("start_time");
    let start = match start_node {
        Some(node) => time_of(node, &format!("{path}.start_time"))?,
        None => Duration::ZERO,
    };
    if start >= general.stop_time {
        let place = start_node.map_or(node.place, |n| n.place);
        return Err(Fault::at(
            place,
            format!("{path}.start_time: it must be before general.stop_time"),
        ));
    }
    let args = opt(&mut map, "args", arguments)?.unwrap_or_default();
    let environment = opt(&mut map, "environment", environment)?.unwrap_or_default();
    let old_stop = opt(&mut map, "stop_time", |node, path| {
        Ok((time_of(node, path)?, node.place))
    })?;
    let shutdown_node = map.take("shutdown_time");
    let signal = opt(&mut map, "shutdown_signal", signal_of)?;
    let shutdown = match shutdown_node {
        Some(node) => {
            let when = time_of(node, &format!("{path}.shutdown_time"))?;
            if when >= general.stop_time || when <= start {
                return Err(Fault::at(
                        node.place,
                        format!("{path}.shutdown_time: it must be after start_time and before general.stop_time"),
                    ));
            }
            Some((when, signal.unwrap_or(15)))
        }
        None => {
            if let Some((_, place)) = old_stop.filter(|(when, _)| *when <= start) {
                let words = format!("{path}.stop_time: it must be after start_time");
                return Err(Fault::at(place, words));
            }
            old_stop.map(|(when, _)| (when, 9))
        }
    };
    let expected =
        opt(&mut map, "expected_final_state", expected)?.unwrap_or(match (old_stop, is_old) {
            (Some(_), _) => Expected::Any,
            (None, true) => Expected::NotFailed,
            (None, false) => Expected::Exited(0),
        });
    let quantity = opt(&mut map, "quantity", old::quantity)?.unwrap_or(1);
    map.finish(PROCESS)?;
    let process = Process {
        place: node.place,
        name,
        program,
        args,
        environment,
        start,
        shutdown,
        expected,
    };
    Ok((process, quantity))
}

/// Argument 0: the word, as a shell and Shadow have it. But a program that looks for its own file finds it by that word
/// in its PATH, where another of the same name may be.
fn called(word: &str, program: &Path) -> String {
    let same = word.contains('/')
        || find_program(word, SEARCH).is_ok_and(|other| other.as_path() == program);
    let words = match same {
        true => home(word),
        false => program.to_owned(),
    };
    words.to_string_lossy().into_owned()
}

/// As execvp(3) does, once and for all before the start.
pub fn find_program(word: &str, search: &str) -> std::result::Result<PathBuf, String> {
    if word.contains('/') {
        let path = home(word);
        let path = std::path::absolute(&path).map_err(|why| why.to_string())?;
        return match is_program(&path) {
            true => Ok(path),
            false => Err(format!("{word}: no such program")),
        };
    }
    std::env::split_paths(search)
        .map(|folder| folder.join(word))
        .find(|path| is_program(path))
        .ok_or_else(|| format!("{word}: not found in PATH"))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Text that is split as a shell would, or a list.
fn arguments(node: &Node, path: &str) -> Result<Vec<String>> {
    match &node.value {
        Value::Text(text) => shell_words::split(text)
            .map_err(|_| Fault::at(node.place, format!("{path}: a quote is not closed"))),
        Value::List(items) => items.iter().map(|item| item.scalar(path)).collect(),
        _ => Ok(vec![node.scalar(path)?]),
    }
}

/// A map; Shadow 2 also had `A=1;B=2`.
fn environment(node: &Node, path: &str) -> Result<Vec<(String, String)>> {
    if let Value::Text(text) = &node.value {
        return text
            .split(';')
            .filter(|pair| !pair.is_empty())
            .map(|pair| match pair.split_once('=') {
                Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
                None => Err(Fault::at(
                    node.place,
                    format!("{path}: `{pair}` has no `=`"),
                )),
            })
            .collect();
    }
    node.map(path)?
        .rest()
        .into_iter()
        .map(|(key, _, node)| Ok((key, node.scalar(path)?)))
        .collect()
}

fn expected(node: &Node, path: &str) -> Result<Expected> {
    let wanted = "`running`, `{exited: N}` or `{signaled: SIGNAL}`";
    match &node.value {
        Value::Text(text) if text == "running" => Ok(Expected::Running),
        Value::Map(_) => {
            let mut map = node.map(path)?;
            let exited = opt(&mut map, "exited", |n, p| n.int(p))?;
            let signaled = opt(&mut map, "signaled", signal_of)?;
            map.finish(&["exited", "signaled"])?;
            match (exited, signaled) {
                (Some(status), None) => Ok(Expected::Exited(status)),
                (None, Some(signal)) => Ok(Expected::Signaled(signal)),
                _ => Err(node.wrong(path, wanted)),
            }
        }
        _ => Err(node.wrong(path, wanted)),
    }
}
