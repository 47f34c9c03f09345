// SPDX-License-Identifier: GPL-2.0
//! Language runtimes with threads, handlers and system calls of their own.

use super::ensure;
use super::scenario::{LIMIT, Scenario, fetch4, load, site};
use super::topology::{Pair, Topology};
use crate::exec;
use crate::paths;
use crate::scratch::Scratch;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "node_http",
        programs: &["node", "curl", "ab"],
        what: "http server and client of Node.js: 20 MB, 500 requests on kept connections; curl, ab",
        topologies: &Topology::ALL,
        needs_root: None,
        run: node_http,
    },
    Scenario {
        name: "go_http",
        programs: &["go", "curl", "ab"],
        what: "static server and client (CGO_ENABLED=0): 20 MB, 500 requests by 20 goroutines; curl, ab",
        topologies: &Topology::ALL,
        needs_root: None,
        run: go_http,
    },
    Scenario {
        name: "java_http",
        programs: &["java", "javac", "curl", "ab"],
        what: "com.sun.net.httpserver.HttpServer and java.net.http: 20 MB, 500 requests by 20 threads; curl, ab",
        topologies: &Topology::ALL,
        needs_root: None,
        run: java_http,
    },
    Scenario {
        name: "musl_static",
        programs: &["musl-gcc"],
        what: "a forking echo server and its client, static, from musl: names, IPv4 and IPv6",
        topologies: &Topology::ALL,
        needs_root: None,
        run: musl_static,
    },
    Scenario {
        name: "musl_dynamic",
        programs: &["musl-gcc"],
        what: "the same with musl's dynamic linker",
        topologies: &Topology::ALL,
        needs_root: None,
        run: musl_dynamic,
    },
];

/// Two tests at once want the same program built once.
static BUILDING: Mutex<()> = Mutex::new(());

/// Builds a program by a compiler's command line, unless it is younger than its source.
fn built(name: &str, source: &str, command: &mut Command) -> Result<PathBuf, String> {
    let _one = BUILDING.lock().map_err(|_| "an earlier build panicked")?;
    let age = |path: &PathBuf| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    let program = paths::build().join("apps").join(name);
    if age(&program) > age(&paths::root().join(source)) {
        return Ok(program);
    }
    let outcome = exec::run(command, Duration::from_secs(300))?;
    if !outcome.ok() {
        return Err(format!("{source} does not compile: {}", outcome.report()));
    }
    Ok(program)
}

fn folder() -> Result<PathBuf, String> {
    let folder = paths::build().join("apps");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// The server and the client of one language: `SERVE ADDRESS PORT FOLDER` serves a folder's files,
/// `FETCH URL` prints the size of /large and how many of 500 requests for /small were right.
fn http(pair: &Pair, argv: &[&str]) -> Result<(), String> {
    let folder = site()?;
    let path = folder.path().to_string_lossy();
    let port = pair.port(0);
    let number = port.to_string();
    let serve: Vec<&str> = argv
        .iter()
        .copied()
        .chain(["serve", &pair.server4, &number, &path])
        .collect();
    let _server = pair.server.start(&serve)?;
    pair.wait_for_port(port)?;
    fetch4(pair, &folder, port)?;
    let base = format!("http://{}:{port}", pair.server4);
    let fetch: Vec<&str> = argv.iter().copied().chain(["fetch", &base]).collect();
    let text = pair.client.must(&fetch, LIMIT)?;
    ensure(text == format!("{} 500\n", 20 << 20), || {
        format!("{}: {text}", fetch.join(" "))
    })?;
    let url = format!("{base}/small");
    load(pair, &["-n", "1000", "-c", "10", &url])?;
    load(pair, &["-n", "1000", "-c", "10", "-k", &url])?;
    Ok(())
}

fn node_http(pair: &Pair) -> Result<(), String> {
    let script = paths::root().join("tests/apps/http.js");
    http(pair, &["node", &script.to_string_lossy()])
}

fn go_http(pair: &Pair) -> Result<(), String> {
    let source = "tests/apps/http.go";
    let folder = folder()?;
    let mut go = Command::new("go");
    go.env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "")
        .env("GOCACHE", folder.join("go-cache"))
        .args(["build", "-o"])
        .arg(folder.join("http-go"))
        .arg(paths::root().join(source));
    let program = built("http-go", source, &mut go)?;
    http(pair, &[&program.to_string_lossy()])
}

fn java_http(pair: &Pair) -> Result<(), String> {
    let source = "tests/apps/Http.java";
    let folder = folder()?;
    let mut javac = Command::new("javac");
    javac.arg("-d").arg(&folder).arg(paths::root().join(source));
    built("Http.class", source, &mut javac)?;
    let classes = folder.to_string_lossy();
    http(pair, &["java", "-Xmx256m", "-cp", &classes, "Http"])
}

fn musl_static(pair: &Pair) -> Result<(), String> {
    musl(pair, "musl-static", &["-static"])
}

fn musl_dynamic(pair: &Pair) -> Result<(), String> {
    musl(pair, "musl-dynamic", &[])
}

fn musl(pair: &Pair, name: &str, options: &[&str]) -> Result<(), String> {
    let source = "tests/apps/talk.c";
    let folder = folder()?;
    let mut gcc = Command::new("musl-gcc");
    gcc.args(["-O1", "-Wall", "-Werror", "-o"])
        .arg(folder.join(name))
        .args(options)
        .arg(paths::root().join(source));
    let program = built(name, source, &mut gcc)?;
    let program = program.to_string_lossy();
    let port = pair.port(0);
    let number = port.to_string();
    let scratch = Scratch::new()?;
    let sent = scratch.noise("sent", 4 << 20)?;
    let _server = pair.server.start(&[&program, "serve", &number])?;
    pair.wait_for_port(port)?;
    for address in [&pair.server4, &pair.server6] {
        let argv = [&*program, "send", address, &number, &sent.to_string_lossy()];
        let text = pair.client.must(&argv, LIMIT)?;
        ensure(
            text == format!("{} of {} came back\n", 4 << 20, 4 << 20),
            || text.clone(),
        )?;
    }
    Ok(())
}
