// SPDX-License-Identifier: GPL-2.0
//! Small clients and tools: static programs, a shell's sockets, names, captures.

use super::ensure;
use super::scenario::{LIMIT, Scenario, site};
use super::topology::{Pair, Place, Topology};
use crate::exec::{self, End, Group};
use crate::scratch::{self, Scratch};
use std::process::Stdio;
use std::time::Duration;

/// Tools that look at a node's interfaces: their side is a node.
const LOOKED_AT: &[Topology] = &[Topology::Link, Topology::TapServer];

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "busybox_wget",
        programs: &["busybox"],
        what: "the static busybox: httpd as the server, wget of 20 MB",
        topologies: &Topology::ALL,
        needs_root: None,
        run: busybox_wget,
    },
    Scenario {
        name: "busybox_nc",
        programs: &["busybox"],
        what: "the static busybox: nc on both sides, 2 MB",
        topologies: &Topology::ALL,
        needs_root: None,
        run: busybox_nc,
    },
    Scenario {
        name: "bash_tcp",
        programs: &["bash", "python3"],
        what: "redirections to /dev/tcp and /dev/udp, their descriptors inherited by programs",
        topologies: &Topology::ALL,
        needs_root: None,
        run: bash_tcp,
    },
    Scenario {
        name: "dig",
        programs: &["dig", "dnsmasq"],
        what: "dnsmasq answers dig: UDP, TCP, A, AAAA, TXT of 2 KB (truncated, then TCP), NXDOMAIN",
        topologies: &Topology::ALL,
        needs_root: None,
        run: dig,
    },
    Scenario {
        name: "tcpdump",
        programs: &["tcpdump", "curl", "python3"],
        what: "an HTTP request captured on an interface and on lo, written to a file and read",
        topologies: LOOKED_AT,
        needs_root: None,
        run: tcpdump,
    },
    Scenario {
        name: "tshark",
        programs: &["tshark", "curl", "python3"],
        what: "dumpcap's capture by a mapped ring, HTTP dissected while it goes on",
        topologies: LOOKED_AT,
        needs_root: None,
        run: tshark,
    },
];

fn busybox_wget(pair: &Pair) -> Result<(), String> {
    let folder = site()?;
    let path = folder.path().to_string_lossy();
    let port = pair.port(0);
    let bind = format!("{}:{port}", pair.server4);
    let _server = pair
        .server
        .start(&["busybox", "httpd", "-f", "-p", &bind, "-h", &path])?;
    pair.wait_for_port(port)?;
    let url = format!("http://{bind}");
    let got = folder.file("got");
    let large = format!("{url}/large");
    pair.client.must(
        &[
            "busybox",
            "wget",
            "-q",
            "-O",
            &got.to_string_lossy(),
            &large,
        ],
        LIMIT,
    )?;
    ensure(scratch::same(&got, &folder.file("large"))?, || {
        "other bytes arrived".into()
    })?;
    let small = format!("{url}/small");
    let text = pair
        .client
        .must(&["busybox", "wget", "-q", "-O", "-", &small], LIMIT)?;
    ensure(text == "hello\n", || format!("got '{text}'"))
}

fn busybox_nc(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    let sent = folder.noise("sent", 2 << 20)?;
    let got = folder.file("got");
    let port = pair.port(0);
    // A standard input at its end would close the connection: one side only listens.
    let open = folder.file("open");
    let listen = format!(
        "mkfifo {0}; exec busybox nc -l -p {port} <>{0} >{1}",
        open.display(),
        got.display()
    );
    let mut server = pair.server.start(&["sh", "-c", &listen])?;
    pair.wait_for_port(port)?;
    let send = format!(
        "exec busybox nc -w 20 {} {port} <{}",
        pair.server4,
        sent.display()
    );
    // Which side closes first is busybox's matter: the bytes count.
    let mut client = pair.client.start(&["sh", "-c", &send])?;
    let arrived = exec::until(Duration::from_secs(20), || {
        std::fs::metadata(&got).is_ok_and(|m| m.len() >= 2 << 20)
    });
    let ends = (
        client.wait(Duration::from_secs(10)),
        server.wait(Duration::from_secs(10)),
    );
    ensure(arrived && scratch::same(&sent, &got)?, || {
        format!("other bytes arrived; {ends:?}")
    })?;
    ensure(ends == (Some(End::Exit(0)), Some(End::Exit(0))), || {
        format!("ends: {ends:?}")
    })
}

fn bash_tcp(pair: &Pair) -> Result<(), String> {
    let folder = site()?;
    let path = folder.path().to_string_lossy();
    let port = pair.port(0);
    let number = port.to_string();
    let _server = pair.server.start(&[
        "python3",
        "-m",
        "http.server",
        "--bind",
        &pair.server4,
        "-d",
        &path,
        &number,
    ])?;
    pair.wait_for_port(port)?;
    let script = format!(
        "set -e; exec 3<>/dev/tcp/{}/{port}\n\
         printf 'GET /small HTTP/1.0\\r\\n\\r\\n' >&3\n\
         read -r status <&3; echo \"$status\"; tail -n 1 <&3; exec 3>&-\n\
         exec 4<>/dev/tcp/{}/{port}; printf 'GET /large HTTP/1.0\\r\\n\\r\\n' >&4\n\
         sed -u '/^\\r$/q' <&4 >/dev/null; cat <&4 | cmp - {path}/large && echo same",
        pair.server4, pair.server4
    );
    let text = pair.client.must(&["bash", "-c", &script], LIMIT)?;
    ensure(text == "HTTP/1.0 200 OK\r\nhello\nsame\n", || {
        format!("got '{text}'")
    })?;
    // UDP: what is sent to a port without a server comes back as an error.
    let script = format!(
        "exec 3<>/dev/udp/{}/{number}; echo x >&3; sleep 0.3; echo y >&3",
        pair.server4
    );
    let outcome = pair.client.run(&["bash", "-c", &script], LIMIT)?;
    ensure(
        outcome.end == End::Exit(1) && outcome.stderr.contains("Connection refused"),
        || format!("to a closed UDP port: {}", outcome.report()),
    )
}

fn dig(pair: &Pair) -> Result<(), String> {
    let port = pair.port(0);
    let number = port.to_string();
    let long = format!(
        "--txt-record=long.test{}",
        format!(",{}", "x".repeat(200)).repeat(10)
    );
    let listen = format!("--listen-address={}", pair.server4);
    let mut argv = vec!["dnsmasq", "-d", "-C", "/dev/null", "-p", &number, &listen];
    argv.extend(["--bind-interfaces", "--no-resolv", "--no-hosts"]);
    argv.extend([
        "--address=/a.test/192.0.2.7",
        "--address=/a.test/2001:db8::7",
    ]);
    argv.extend(["--local=/test/", &long]);
    if rustix::process::geteuid().is_root() {
        argv.push("--user=root");
    }
    let _server = pair.server.start(&argv)?;
    pair.wait_for_port(port)?;
    let at = format!("@{}", pair.server4);
    let ask = |words: &[&str]| {
        let mut argv = vec!["dig", &at, "-p", &number, "+tries=3", "+time=3"];
        argv.extend(words);
        pair.client.must(&argv, LIMIT)
    };
    for (words, answer) in [
        (&["+short", "a.test"][..], "192.0.2.7\n"),
        (&["+short", "+tcp", "a.test"], "192.0.2.7\n"),
        (&["+short", "a.test", "AAAA"], "2001:db8::7\n"),
    ] {
        let text = ask(words)?;
        ensure(text == answer, || format!("dig {words:?}: {text}"))?;
    }
    let text = ask(&["+short", "+noedns", "long.test", "TXT"])?;
    ensure(text.matches('x').count() == 2000, || {
        format!("the long answer: {text}")
    })?;
    let text = ask(&["none.test"])?;
    ensure(text.contains("NXDOMAIN"), || text.clone())
}

/// A capture that goes on, its output in a file.
fn capture(pair: &Pair, folder: &Scratch, argv: &[&str]) -> Result<Group, String> {
    let output =
        |name: &str| std::fs::File::create(folder.file(name)).map_err(|e| format!("{name}: {e}"));
    let mut command = pair.server.command(argv);
    command
        .stdin(Stdio::null())
        .stdout(output("out")?)
        .stderr(output("err")?);
    Group::spawn(&mut command)
}

/// Whether a file of the folder holds the words, now or soon.
fn soon(folder: &Scratch, name: &str, words: &[&str]) -> Result<(), String> {
    let text = || std::fs::read_to_string(folder.file(name)).unwrap_or_default();
    let held = exec::until(Duration::from_secs(15), || {
        let text = text();
        words.iter().all(|word| text.contains(word))
    });
    ensure(held, || {
        let err = std::fs::read_to_string(folder.file("err")).unwrap_or_default();
        format!("no {words:?} in:\n{}--- stderr\n{err}", text())
    })
}

/// A web server on the server's side, and the address of its small file.
fn web(pair: &Pair, folder: &Scratch) -> Result<(Group, String), String> {
    let port = pair.port(0);
    let number = port.to_string();
    let path = folder.path().to_string_lossy();
    let server = pair
        .server
        .start(&["python3", "-m", "http.server", "-d", &path, &number])?;
    pair.wait_for_port(port)?;
    Ok((server, format!("http://{}:{port}/small", pair.server4)))
}

fn tcpdump(pair: &Pair) -> Result<(), String> {
    let folder = site()?;
    let (_server, url) = web(pair, &folder)?;
    let port = pair.port(0).to_string();
    let local = format!("http://127.0.0.1:{port}/small");
    for (interface, place, url) in [
        (pair.interface.as_str(), &pair.client, &url),
        ("lo", &pair.server, &local),
    ] {
        let file = folder.file("capture").to_string_lossy().into_owned();
        let mut group = capture(
            pair,
            &folder,
            &[
                "tcpdump", "-i", interface, "-U", "-Z", "root", "-w", &file, "tcp", "port", &port,
            ],
        )?;
        soon(&folder, "err", &["listening on"])?;
        place.must(&["curl", "-sS", "-f", url], LIMIT)?;
        let read = || {
            pair.server
                .must(&["tcpdump", "-nn", "-A", "-r", &file], LIMIT)
        };
        let mut text = String::new();
        let seen = exec::until(Duration::from_secs(10), || {
            text = read().unwrap_or_default();
            ["GET /small", "200 OK", "hello", "Flags [S]", "Flags [F"]
                .iter()
                .all(|word| text.contains(word))
        });
        ensure(seen, || format!("on {interface}:\n{text}"))?;
        group.terminate();
        let end = group.wait(Duration::from_secs(10));
        ensure(end.is_some(), || {
            format!("on {interface}, told to end: {end:?}")
        })?;
        soon(&folder, "err", &["0 packets dropped by kernel"])?;
    }
    Ok(())
}

fn tshark(pair: &Pair) -> Result<(), String> {
    let Place::Node(_) = pair.server else {
        return Err("the server is no node".into());
    };
    let folder = site()?;
    let (_server, url) = web(pair, &folder)?;
    let decode = format!("tcp.port=={},http", pair.port(0));
    let mut group = capture(
        pair,
        &folder,
        &[
            "tshark",
            "-l",
            "-n",
            "-i",
            &pair.interface,
            "-d",
            &decode,
            "-Y",
            "http",
            "-T",
            "fields",
            "-e",
            "ip.src",
            "-e",
            "http.request.uri",
            "-e",
            "http.response.code",
        ],
    )?;
    soon(&folder, "err", &["Capturing on"])?;
    // It says so before dumpcap has bound its socket: requests are repeated until seen.
    let seen = exec::until(Duration::from_secs(20), || {
        let fetched = pair.client.must(&["curl", "-sS", "-f", &url], LIMIT);
        let text = std::fs::read_to_string(folder.file("out")).unwrap_or_default();
        fetched.is_ok() && text.contains("/small") && text.contains("200")
    });
    let text = || std::fs::read_to_string(folder.file("out")).unwrap_or_default();
    ensure(seen, || {
        let err = std::fs::read_to_string(folder.file("err")).unwrap_or_default();
        format!("tshark saw no request and answer:\n{}\n{err}", text())
    })?;
    ensure(text().contains(&pair.server4), text)?;
    group.terminate();
    let end = group.wait(Duration::from_secs(10));
    ensure(end.is_some(), || format!("told to end: {end:?}"))
}
