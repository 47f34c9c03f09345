// SPDX-License-Identifier: GPL-2.0
//! Each file and function that ARCHITECTURE.md names exists.
//!
//! A name in backquotes with a `/` is a path below the root; `ring3*.h` stands for several files. One that ends in
//! `()` is a function or a label of an assembly file; if the same line names files before it, the last of them
//! has it. Functions of mainline Linux are in italics, and are not looked for.

use crate::paths;
use libtest_mimic::{Failed, Trial};
use std::path::Path;

const PAGE: &str = "ARCHITECTURE.md";
/// Paths that only a build makes.
const MADE: [&str; 2] = ["build/", "bin/"];
/// Too few names, and the page is another than this reads.
const FILES_MIN: usize = 50;
const FUNCTIONS_MIN: usize = 80;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("page::names_exist", || exist().map_err(Failed::from)),
        Trial::test("page::names_are_looked_for", || {
            finds().map_err(Failed::from)
        }),
    ]
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn exist() -> Result<(), String> {
    let root = paths::root();
    let (files, functions, missing) = look(&read(&root.join(PAGE))?, &root);
    if !missing.is_empty() {
        return Err(format!("{PAGE}:\n{}", missing.join("\n")));
    }
    match files >= FILES_MIN && functions >= FUNCTIONS_MIN {
        true => Ok(()),
        false => Err(format!(
            "{PAGE} names {files} files and {functions} functions only: does this test still read it?"
        )),
    }
}

/// A page with mistakes: each is found, and nothing else.
fn finds() -> Result<(), String> {
    let page = "`gate/none.c`\n`gate/signal/kill.c`: `do_kill()`\n`gate/signal/kill.c`: `ring3_enter()`\n\
                `ring3_enter()`\n`kernel/arch/ring3/x86_64/entry.S`: `ring3_enter()`\n\
                `ring3/node/src/procs.rs`: `judge()`, `judges()`\n`include/ring3*.h`, *schedule()*\n";
    let (.., missing) = look(page, &paths::root());
    let lines: Vec<&str> = missing.iter().filter_map(|m| m.split(':').next()).collect();
    match lines == ["line 1", "line 3", "line 4", "line 6"] {
        true => Ok(()),
        false => Err(format!("found: {}", missing.join("\n"))),
    }
}

/// How many files and functions the text names, and what does not exist.
fn look(text: &str, root: &Path) -> (usize, usize, Vec<String>) {
    let (mut files, mut functions, mut missing) = (0, 0, Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let mut file: Option<(&str, String)> = None;
        for name in line.split('`').skip(1).step_by(2) {
            if let Some(function) = name.strip_suffix("()") {
                // Calls of programs, `recv()`, are the reader's to know.
                let Some((path, source)) = &file else {
                    if function.contains("ring3_") || function.starts_with("gate_") {
                        missing.push(format!("line {number}: {name} without its file"));
                    }
                    continue;
                };
                functions += 1;
                if !source.lines().any(|line| defines(line, function)) {
                    missing.push(format!("line {number}: {path} has no {name}"));
                }
            } else if name.contains('/') && !name.contains(' ') {
                if MADE.iter().any(|made| name.starts_with(made)) || name.starts_with('/') {
                    continue;
                }
                files += 1;
                let path = root.join(name.split('*').next().unwrap_or(name));
                let folder = path.parent().unwrap_or(root);
                let there = match name.contains('*') {
                    true => folder.exists(),
                    false => path.exists(),
                };
                if !there {
                    missing.push(format!("line {number}: there is no {name}"));
                }
                file = Some((name, read(&path).unwrap_or_default()));
            }
        }
    }
    (files, functions, missing)
}

/// Does this line of C, Rust or assembly define it? A declaration or a call does not.
fn defines(line: &str, name: &str) -> bool {
    let c = line.starts_with(|c: char| c.is_ascii_alphabetic())
        && !line.trim_end().ends_with(';')
        && word_before(line, name, "(");
    let rust = line.contains(&format!("fn {name}(")) || line.contains(&format!("fn {name}<"));
    let assembly = line.starts_with(&format!("{name}:"))
        || (line.starts_with("SYM_") && word_before(line, name, ")"))
        || (line.starts_with("SYM_") && word_before(line, name, ","));
    c || rust || assembly
}

/// `name` as a whole word, with `after` behind it.
fn word_before(line: &str, name: &str, after: &str) -> bool {
    line.match_indices(&format!("{name}{after}"))
        .any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
}
