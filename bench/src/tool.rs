// SPDX-License-Identifier: GPL-2.0
//! Compiling and running what is measured.

use serde::Serialize;
use std::path::PathBuf;
use std::process::Command;

pub fn root() -> PathBuf {
    match std::env::var_os("RING3_ROOT") {
        Some(root) => PathBuf::from(root),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")),
    }
}

/// `ring3 ARGS`; the variable RING3 names another command than bin/ring3.
pub fn ring3(args: &[&str]) -> Command {
    let path = std::env::var_os("RING3").map_or_else(|| root().join("bin/ring3"), PathBuf::from);
    let mut command = Command::new(path);
    command.args(args);
    command
}

/// The same command, started in the cgroup whose cgroup.procs is named; without a name as it is.
pub fn within(cgroup: &str, command: Command) -> Command {
    if cgroup.is_empty() {
        return command;
    }
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "echo 0 >\"$0\" && exec \"$@\"", cgroup])
        .arg(command.get_program())
        .args(command.get_args());
    shell
}

/// The output of `ring3 stat` for a node.
pub fn stat(node: &str) -> Result<serde_json::Value, String> {
    let text = output(&mut ring3(&["stat", node, "--json"]))?;
    serde_json::from_str(&text).map_err(|e| format!("ring3 stat --json: {e}"))
}

/// Where everything made lies.
pub fn build() -> PathBuf {
    std::env::var_os("RING3_BUILD").map_or_else(|| root().join("build"), PathBuf::from)
}

/// Where compiled programs lie.
pub fn programs() -> PathBuf {
    build().join("bench")
}

/// Where results are kept.
pub fn results() -> Result<PathBuf, String> {
    let folder = root().join("bench/results");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// Takes away what is kept of a figure, before it is measured: a result that is there is of
/// the run that said so last.
pub fn discard(name: &str) -> Result<(), String> {
    let folder = results()?;
    for kind in ["json", "png", "svg"] {
        let path = folder.join(format!("{name}.{kind}"));
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: {e}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Compiles bench/`source` and returns the program's path.
pub fn compile(source: &str) -> Result<PathBuf, String> {
    compile_with(source, &[])
}

/// As `compile`, without shared libraries.
pub fn compile_static(source: &str) -> Result<PathBuf, String> {
    compile_with(source, &["-static"])
}

fn compile_with(source: &str, options: &[&str]) -> Result<PathBuf, String> {
    let from = root().join("bench").join(source);
    let folder = programs();
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let program = folder.join(from.file_stem().unwrap_or_default());
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-pthread"]).args(options);
    cc.arg("-o").arg(&program).arg(&from);
    output(&mut cc)?;
    Ok(program)
}

/// Runs a command that has to succeed; its standard output.
pub fn output(command: &mut Command) -> Result<String, String> {
    let name = format!("{:?}", command.get_program());
    let out = command.output().map_err(|e| format!("{name}: {e}"))?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr);
        return Err(format!("{name}: {}: {}", out.status, why.trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// As `output`, for a command that prints one number.
pub fn number(command: &mut Command) -> Result<f64, String> {
    let text = output(command)?;
    text.trim()
        .parse()
        .map_err(|_| format!("not a number: '{}'", text.trim()))
}

/// Prints a result, and keeps it as bench/results/NAME.json.
pub fn print(name: &str, result: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(result).map_err(|e| e.to_string())?;
    println!("{text}");
    let path = results()?.join(format!("{name}.json"));
    std::fs::write(&path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))
}
