// SPDX-License-Identifier: GPL-2.0
//! Databases and caches: a process for each client, background saves, threads.

use super::ensure;
use super::scenario::{LIMIT, SERVED, Scenario};
use super::topology::Pair;
use crate::exec;
use crate::scratch::Scratch;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "postgresql",
        programs: &["postgres", "setpriv"],
        what: "pgbench over TCP with 20 clients; pg_basebackup and pg_verifybackup; a fast shutdown",
        topologies: SERVED,
        needs_root: None,
        run: postgresql,
    },
    Scenario {
        name: "redis_saves",
        programs: &["redis-server", "redis-benchmark", "redis-cli"],
        what: "BGSAVE and BGREWRITEAOF in forked children under load; the data is there after a restart",
        topologies: SERVED,
        needs_root: None,
        run: redis_saves,
    },
    Scenario {
        name: "memcached",
        programs: &["memcached", "memccapable"],
        what: "four threads; memccapable (the whole protocol, text and binary), then 40 connections at once",
        topologies: SERVED,
        needs_root: None,
        run: memcached,
    },
];

/// The user that PostgreSQL runs as when the tests run as root, which it refuses.
const NOBODY: u32 = 65534;

/// PostgreSQL's programs; Debian keeps most out of the PATH.
pub fn postgresql_program(name: &str) -> Option<String> {
    let mut versions: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin").join(name)))
        .filter(|path| path.is_file())
        .collect();
    versions.sort();
    Some(versions.pop()?.to_string_lossy().into_owned())
}

fn postgresql(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    let program = |name: &str| {
        postgresql_program(name).ok_or_else(|| format!("{name} of PostgreSQL is not installed"))
    };
    let mut user: Vec<&str> = Vec::new();
    if rustix::process::geteuid().is_root() {
        user = vec![
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--",
        ];
        give(folder.path(), NOBODY)?;
    }
    let data = folder.file("data").to_string_lossy().into_owned();
    let copy = folder.file("copy").to_string_lossy().into_owned();
    let prefix = folder.path().to_string_lossy().into_owned();
    let port = pair.port(0).to_string();
    let server = |argv: &[&str]| -> Result<String, String> {
        let argv: Vec<&str> = user.iter().chain(argv).copied().collect();
        pair.server.must(&argv, LIMIT)
    };
    let client = |argv: &[&str]| -> Result<String, String> {
        let to = ["-h", &pair.server4, "-p", &port, "-U", "me"];
        let argv: Vec<&str> = user.iter().chain(argv).chain(&to).copied().collect();
        pair.client.must(&argv, LIMIT)
    };

    let (initdb, pg_ctl) = (program("initdb")?, program("pg_ctl")?);
    let (pgbench, basebackup) = (program("pgbench")?, program("pg_basebackup")?);
    server(&[
        &initdb,
        "-D",
        &data,
        "-U",
        "me",
        "-A",
        "trust",
        "-N",
        "--no-instructions",
    ])?;
    let mut access = std::fs::read_to_string(folder.file("data/pg_hba.conf"))
        .map_err(|e| format!("pg_hba.conf: {e}"))?;
    access.push_str("host all,replication all 0.0.0.0/0 trust\n");
    folder.write("data/pg_hba.conf", access)?;
    let options = format!(
        "-c listen_addresses={} -c port={port} -c unix_socket_directories={prefix} \
         -c fsync=off -c max_connections=40",
        pair.server4
    );
    let log = format!("{prefix}/log");
    let done = server(&[
        &pg_ctl, "start", "-w", "-t", "30", "-D", &data, "-l", &log, "-o", &options,
    ])
    .and_then(|_| {
        client(&[&pgbench, "-i", "-q", "-s", "2", "postgres"])?;
        let load = [&pgbench, "-c", "20", "-j", "2", "-T", "4", "-n", "postgres"];
        let text = pair.server.rewritten(|| client(&load))?;
        ensure(
            text.contains("number of clients: 20")
                && text.contains("number of failed transactions: 0 "),
            || text.clone(),
        )?;
        client(&[
            &pgbench, "-c", "20", "-j", "2", "-t", "5", "-C", "-n", "postgres",
        ])?;
        client(&[&basebackup, "-D", &copy, "-X", "stream", "-c", "fast"])?;
        server(&[&program("pg_verifybackup")?, "-q", &copy])?;
        server(&[&pg_ctl, "stop", "-w", "-t", "30", "-m", "fast", "-D", &data])
    });
    done.map(|_| ()).map_err(|why| {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        format!("{why}\n--- PostgreSQL's log\n{}", exec::tail(&log, 20))
    })
}

/// Gives a folder to a user, for itself alone.
fn give(path: &Path, user: u32) -> Result<(), String> {
    std::os::unix::fs::chown(path, Some(user), Some(user)).map_err(|e| e.to_string())?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
        .map_err(|e| e.to_string())
}

fn redis_saves(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    let number = pair.port(0).to_string();
    let dir = folder.path().to_string_lossy();
    let start = || {
        let server = pair.server.start(&[
            "redis-server",
            "--port",
            &number,
            "--bind",
            &pair.server4,
            "--protected-mode",
            "no",
            "--save",
            "",
            "--appendonly",
            "yes",
            "--dir",
            &dir,
        ])?;
        pair.wait_for_port(pair.port(0))?;
        Ok::<_, String>(server)
    };
    let cli = |words: &[&str]| {
        let mut argv = vec!["redis-cli", "-h", &pair.server4, "-p", &number];
        argv.extend(words);
        pair.client.must(&argv, LIMIT)
    };
    let field = |name: &str| -> Result<String, String> {
        let text = cli(&["info", "persistence"])?;
        let found = text
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
        Ok(found
            .ok_or_else(|| format!("no {name} in:\n{text}"))?
            .trim()
            .to_string())
    };
    let idle = || {
        exec::until(Duration::from_secs(20), || {
            [
                "rdb_bgsave_in_progress",
                "aof_rewrite_in_progress",
                "aof_rewrite_scheduled",
            ]
            .iter()
            .all(|name| field(name).is_ok_and(|value| value == "0"))
        })
    };
    let mut server = start()?;
    ensure(idle(), || "a save goes on after the start".to_string())?;
    let saved = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let argv = [
                "redis-benchmark",
                "-h",
                &pair.server4,
                "-p",
                &number,
                "-n",
                "60000",
                "-c",
                "20",
                "-r",
                "20000",
                "-d",
                "200",
                "-t",
                "set",
                "-q",
            ];
            pair.client.must(&argv, LIMIT)
        });
        let saves = || -> Result<(), String> {
            for command in ["bgsave", "bgrewriteaof", "bgsave", "bgrewriteaof"] {
                let text = cli(&[command])?;
                ensure(text.contains("started"), || format!("{command}: {text}"))?;
                ensure(idle(), || format!("{command} does not end"))?;
            }
            Ok(())
        };
        let saves = saves();
        let text = load.join().map_err(|_| "the load's thread died")??;
        ensure(text.contains("requests per second"), || text.clone())?;
        saves
    });
    saved?;
    for name in [
        "rdb_last_bgsave_status",
        "aof_last_bgrewrite_status",
        "aof_last_write_status",
    ] {
        let value = field(name)?;
        ensure(value == "ok", || format!("{name}: {value}"))?;
    }
    let size = cli(&["dbsize"])?;
    ensure(size.trim().parse().is_ok_and(|n: u32| n > 10000), || {
        format!("dbsize {size}")
    })?;
    // redis-cli fails or not when the server ends before its answer.
    let _ = cli(&["shutdown"]);
    let end = server.wait(Duration::from_secs(10));
    ensure(end == Some(exec::End::Exit(0)), || {
        format!("redis-server's end: {end:?}")
    })?;
    let _again = start()?;
    let mut loaded = String::new();
    let same = exec::until(Duration::from_secs(10), || {
        loaded = cli(&["dbsize"]).unwrap_or_default();
        loaded == size
    });
    ensure(same, || format!("before {size}, after a restart {loaded}"))
}

fn memcached(pair: &Pair) -> Result<(), String> {
    let port = pair.port(0);
    let number = port.to_string();
    let mut argv = vec![
        "memcached",
        "-t",
        "4",
        "-l",
        &pair.server4,
        "-p",
        &number,
        "-U",
        "0",
    ];
    if rustix::process::geteuid().is_root() {
        argv.extend(["-u", "root"]);
    }
    let _server = pair.server.start(&argv)?;
    pair.wait_for_port(port)?;
    let text = pair
        .client
        .must(&["memccapable", "-h", &pair.server4, "-p", &number], LIMIT)?;
    ensure(text.contains("All tests passed"), || text.clone())?;
    let script = format!(
        "import socket, threading\n\
         bad = []\n\
         def client(n):\n\
         \x20 f = socket.create_connection(('{}', {port}), timeout=30).makefile('rwb')\n\
         \x20 for i in range(100):\n\
         \x20  v = b'%d.%d ' % (n, i) * 50\n\
         \x20  f.write(b'set k%d.%d 0 0 %d\\r\\n%s\\r\\nget k%d.%d\\r\\n' % (n, i, len(v), v, n, i)); f.flush()\n\
         \x20  if f.readline() != b'STORED\\r\\n' or not f.readline().startswith(b'VALUE'): bad.append((n, i))\n\
         \x20  if f.readline() != v + b'\\r\\n' or f.readline() != b'END\\r\\n': bad.append((n, i))\n\
         t = [threading.Thread(target=client, args=(n,)) for n in range(40)]\n\
         [x.start() for x in t]; [x.join() for x in t]\n\
         print('wrong:', bad)",
        pair.server4
    );
    let text = pair.client.must(&["python3", "-c", &script], LIMIT)?;
    ensure(text == "wrong: []\n", || text.clone())
}
