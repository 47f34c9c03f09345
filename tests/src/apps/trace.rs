// SPDX-License-Identifier: GPL-2.0
//! Debuggers and tracers, on a node and from outside, of programs on a node.

use super::{Checked, Verdict, ensure, helper, missing, trial};
use crate::exec::{self, End, Group};
use crate::node::{Node, SHORT};
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn with_node(
    name: &'static str,
    tool: &'static str,
    check: fn(&Node, &str) -> Result<(), String>,
) -> Trial {
    trial(format!("trace_{name}"), move || -> Checked {
        if let Some(why) = missing(&[tool])? {
            return Ok(Verdict::Ignored(why));
        }
        let program = helper("debugged")?;
        check(&Node::up(&[])?, &program.to_string_lossy())?;
        Ok(Verdict::Passed)
    })
}

pub fn trials() -> Vec<Trial> {
    vec![
        with_node("gdb_run", "gdb", gdb_run),
        with_node("gdb_break", "gdb", gdb_break),
        with_node("gdb_signal", "gdb", gdb_signal),
        with_node("gdb_attach", "gdb", gdb_attach),
        with_node("strace_on_node", "strace", strace_on_node),
        with_node("strace_outside", "strace", strace_outside),
        with_node("strace_attach", "strace", strace_attach),
        with_node("ltrace", "ltrace", ltrace),
        with_node("valgrind", "valgrind", valgrind),
    ]
}

/// gdb on the node, with these commands, and what it and the program say.
fn gdb(node: &Node, commands: &[&str], program: &[&str]) -> Result<String, String> {
    let mut argv = vec!["gdb", "--nx", "--batch"];
    for command in commands {
        argv.extend(["-ex", command]);
    }
    argv.extend(program);
    let outcome = node.exec(&argv)?;
    ensure(outcome.ok(), || outcome.report())?;
    let text = format!("{}\n{}", outcome.stdout, outcome.stderr);
    // The gate's own signals are nobody's business.
    ensure(
        !text.contains("SIGSYS") && !text.contains("SIGSEGV"),
        || outcome.report(),
    )?;
    Ok(text)
}

fn holds(text: &str, words: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| !text.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("no '{word}' in:\n{text}")),
    }
}

fn gdb_run(node: &Node, program: &str) -> Result<(), String> {
    let text = gdb(node, &["run"], &["--args", program])?;
    holds(&text, &["total 250", "exited with code 05"])
}

fn gdb_break(node: &Node, program: &str) -> Result<(), String> {
    let commands = [
        "break work",
        "run",
        "bt",
        "finish",
        "ignore 1 1000",
        "continue",
        "info breakpoints",
    ];
    let text = gdb(node, &commands, &["--args", program])?;
    holds(
        &text,
        &[
            "#0 ",
            "work (",
            "main (",
            "total 250",
            "exited with code 05",
            "already hit 20 times",
        ],
    )
}

/// A signal stops the program in a call of the node's: the backtrace leads out of it.
fn gdb_signal(node: &Node, program: &str) -> Result<(), String> {
    let text = gdb(
        node,
        &["run", "bt", "continue"],
        &["--args", program, "signal"],
    )?;
    holds(
        &text,
        &[
            "SIGUSR1",
            "recv",
            "wait_for_more (",
            "main (",
            "terminated with signal SIGUSR1",
        ],
    )
}

/// A program on the node that waits in recv().
fn waiting(node: &Node, program: &str) -> Result<(Group, u32), String> {
    let mut command = node.command([program, "wait"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut group = Group::spawn(&mut command)?;
    let pid = group.child().id();
    let out = group.child().stdout.take().ok_or("no pipe")?;
    let waits = BufReader::new(out)
        .lines()
        .map_while(Result::ok)
        .any(|line| line == "waiting");
    ensure(waits, || "the program did not start".into())?;
    Ok((group, pid))
}

fn gdb_attach(node: &Node, program: &str) -> Result<(), String> {
    let (mut group, pid) = waiting(node, program)?;
    let text = gdb(node, &["bt", "detach"], &["-p", &pid.to_string()])?;
    holds(&text, &["recv", "wait_for_more (", "main ("])?;
    ensure(
        group.wait(std::time::Duration::from_millis(100)).is_none(),
        || "the program did not survive".into(),
    )
}

/// Runs it traced; its way of ending and its output have to be its own. The trace.
fn straced(
    folder: &Scratch,
    program: &str,
    command: impl FnOnce(&[&str]) -> Command,
    node: &[&str],
) -> Result<String, String> {
    let trace = folder.file("trace").to_string_lossy().into_owned();
    let mut argv = vec!["strace", "-f", "-o", &trace];
    argv.extend(node);
    argv.push(program);
    let outcome = exec::run(&mut command(&argv), SHORT)?;
    ensure(
        outcome.end == End::Exit(5) && outcome.stdout == "total 250\n",
        || outcome.report(),
    )?;
    let text = std::fs::read_to_string(&trace).map_err(|e| format!("{trace}: {e}"))?;
    holds(&text, &["write(1, \"total 250\\n\"", "exit_group(5)"])?;
    Ok(text)
}

fn strace_on_node(node: &Node, program: &str) -> Result<(), String> {
    let folder = Scratch::new()?;
    let text = straced(&folder, program, |argv| node.command(argv), &[])?;
    ensure(!text.contains("--- SIGSYS"), || exec::tail(&text, 20))
}

fn strace_outside(node: &Node, program: &str) -> Result<(), String> {
    let folder = Scratch::new()?;
    let ring3 = crate::paths::ring3().to_string_lossy().into_owned();
    let to_node = [&ring3, "exec", &node.name, "--"];
    straced(
        &folder,
        program,
        |argv| {
            let mut command = Command::new(argv[0]);
            command.args(&argv[1..]);
            command
        },
        &to_node,
    )?;
    Ok(())
}

/// From outside and from the node, for a while; the program stays as it is.
fn strace_attach(node: &Node, program: &str) -> Result<(), String> {
    let (mut group, pid) = waiting(node, program)?;
    let pid = pid.to_string();
    let argv = [
        "timeout",
        "1",
        "strace",
        "-f",
        "-o",
        "/dev/null",
        "-p",
        &pid,
    ];
    for mut command in [node.command(argv), {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]);
        command
    }] {
        let outcome = exec::run(&mut command, SHORT)?;
        // timeout's own status, or strace's after the signal.
        ensure(
            matches!(outcome.end, End::Exit(124 | 143 | 0)) && outcome.stderr.contains("attached"),
            || outcome.report(),
        )?;
        ensure(
            group.wait(std::time::Duration::from_millis(100)).is_none(),
            || "the program did not survive".into(),
        )?;
    }
    Ok(())
}

/// It reads the program's symbols from /proc/PID/exe.
fn ltrace(node: &Node, program: &str) -> Result<(), String> {
    let outcome = node.exec(&["ltrace", program])?;
    ensure(
        outcome.stderr.matches("recv(").count() == 20
            && outcome.stderr.contains("exited (status 5)")
            && outcome.stdout == "total 250\n",
        || outcome.report(),
    )
}

fn valgrind(node: &Node, program: &str) -> Result<(), String> {
    let outcome = node.exec(&["valgrind", "-q", "--error-exitcode=9", program])?;
    ensure(
        outcome.end == End::Exit(5) && outcome.stdout == "total 250\n",
        || outcome.report(),
    )
}
