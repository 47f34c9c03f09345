// SPDX-License-Identifier: GPL-2.0
//! Servers and clients, unmodified, over each topology.

use super::ensure;
use super::scenario::{LIMIT, Scenario, fetch, load, site};
use super::topology::{Pair, Topology};
use crate::scratch::{self, Scratch};
use std::time::Duration;

/// What was there from the first: one server, one client.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "ping",
        programs: &["ping"],
        what: "echo requests of 56 to 8000 bytes, IPv4",
        topologies: &Topology::ALL,
        needs_root: None,
        run: ping,
    },
    Scenario {
        name: "ping6",
        programs: &["ping"],
        what: "the same, IPv6",
        topologies: &Topology::ALL,
        needs_root: None,
        run: ping6,
    },
    Scenario {
        name: "http_server_curl",
        programs: &["python3", "curl", "ab"],
        what: "http.server; curl: 20 MB, fifty requests one after another and ten at once, IPv4 and IPv6",
        topologies: &Topology::ALL,
        needs_root: None,
        run: http_server_curl,
    },
    Scenario {
        name: "python_client",
        programs: &["python3"],
        what: "http.server and urllib: 20 MB",
        topologies: &Topology::ALL,
        needs_root: None,
        run: python_client,
    },
    Scenario {
        name: "nginx_curl",
        programs: &["nginx", "curl", "ab"],
        what: "one process, sendfile; curl as above",
        topologies: &Topology::ALL,
        needs_root: None,
        run: nginx_curl,
    },
    Scenario {
        name: "iperf3_tcp",
        programs: &["iperf3"],
        what: "TCP, 2 s",
        topologies: &Topology::ALL,
        needs_root: None,
        run: iperf3_tcp,
    },
    Scenario {
        name: "iperf3_reverse",
        programs: &["iperf3"],
        what: "TCP, the server sends",
        topologies: &Topology::ALL,
        needs_root: None,
        run: iperf3_reverse,
    },
    Scenario {
        name: "iperf3_parallel",
        programs: &["iperf3"],
        what: "TCP, 8 streams",
        topologies: &Topology::ALL,
        needs_root: None,
        run: iperf3_parallel,
    },
    Scenario {
        name: "iperf3_udp",
        programs: &["iperf3"],
        what: "UDP, 100 Mbit/s",
        topologies: &Topology::ALL,
        needs_root: None,
        run: iperf3_udp,
    },
    Scenario {
        name: "iperf3_ipv6",
        programs: &["iperf3"],
        what: "TCP over IPv6",
        topologies: &Topology::ALL,
        needs_root: None,
        run: iperf3_ipv6,
    },
    Scenario {
        name: "redis",
        programs: &["redis-server", "redis-benchmark"],
        what: "redis-cli; redis-benchmark, 50 clients and pipelines",
        topologies: &Topology::ALL,
        needs_root: None,
        run: redis,
    },
    Scenario {
        name: "socat_file",
        programs: &["socat"],
        what: "a file of 5 MB over TCP, IPv6",
        topologies: &Topology::ALL,
        needs_root: None,
        run: socat_file,
    },
    Scenario {
        name: "socat_udp",
        programs: &["socat"],
        what: "UDP datagrams, a child for each",
        topologies: &Topology::ALL,
        needs_root: None,
        run: socat_udp,
    },
];

fn ping(pair: &Pair) -> Result<(), String> {
    ping_address(pair, &pair.server4)
}

fn ping6(pair: &Pair) -> Result<(), String> {
    ping_address(pair, &pair.server6)
}

fn ping_address(pair: &Pair, address: &str) -> Result<(), String> {
    // Large enough to be fragmented, too.
    for size in ["56", "1400", "8000"] {
        let text = pair.client.must(
            &[
                "ping", "-c", "5", "-i", "0.1", "-s", size, "-W", "2", address,
            ],
            LIMIT,
        )?;
        ensure(text.contains(" 0% packet loss"), || text.clone())?;
    }
    Ok(())
}

fn http_server_curl(pair: &Pair) -> Result<(), String> {
    let folder = site()?;
    let path = folder.path().to_string_lossy();
    let port = pair.port(0);
    let number = port.to_string();
    let _server = pair.server.start(&[
        "python3",
        "-m",
        "http.server",
        "--bind",
        "::",
        "-d",
        &path,
        &number,
    ])?;
    pair.wait_for_port(port)?;
    fetch(pair, &folder, port)?;
    // That one makes a thread for each request; starting and ending threads always traps.
    let (port, address) = (pair.port(1), &pair.server4);
    let code = "import os, sys; from http.server import *; os.chdir(sys.argv[1]); \
                HTTPServer((sys.argv[2], int(sys.argv[3])), SimpleHTTPRequestHandler).serve_forever()";
    let number = port.to_string();
    let argv = ["python3", "-c", code, &path, address, &number];
    let _single = pair.server.start(&argv)?;
    pair.wait_for_port(port)?;
    under_load(pair, port, "500")
}

fn python_client(pair: &Pair) -> Result<(), String> {
    let folder = site()?;
    let port = pair.port(0);
    let number = port.to_string();
    let path = folder.path().to_string_lossy();
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
        "import urllib.request as u, hashlib as h\n\
         d = u.urlopen('http://{}:{port}/large', timeout=20).read()\n\
         w = open('{path}/large', 'rb').read()\n\
         print(len(d), h.sha256(d).digest() == h.sha256(w).digest())",
        pair.server4
    );
    let text = pair.client.must(&["python3", "-c", &script], LIMIT)?;
    ensure(text == format!("{} True\n", 20 << 20), || text.clone())
}

fn nginx_curl(pair: &Pair) -> Result<(), String> {
    let folder = site()?;
    let port = pair.port(0);
    let path = folder.path().display();
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let config = folder.write(
        "nginx.conf",
        format!(
            "daemon off; master_process off; {user} pid {path}/pid; error_log {path}/log;\n\
             events {{ worker_connections 512; }}\n\
             http {{ access_log off; sendfile on; tcp_nopush on; keepalive_timeout 5;\n\
             client_body_temp_path {path}; proxy_temp_path {path}; fastcgi_temp_path {path};\n\
             uwsgi_temp_path {path}; scgi_temp_path {path};\n\
             server {{ listen {}:{port}; listen [{}]:{port}; root {path}; }} }}\n",
            pair.server4, pair.server6
        ),
    )?;
    let config = config.to_string_lossy();
    let prefix = folder.path().to_string_lossy();
    let _server = pair
        .server
        .start(&["nginx", "-p", &prefix, "-c", &config, "-e", "stderr"])?;
    pair.wait_for_port(port)?;
    fetch(pair, &folder, port)?;
    under_load(pair, port, "2000")
}

/// Most calls of a server under load come by rewritten sites.
fn under_load(pair: &Pair, port: u16, requests: &str) -> Result<(), String> {
    let url = format!("http://{}:{port}/small", pair.server4);
    let args = ["-n", requests, "-c", "4", &url];
    pair.server.rewritten(|| load(pair, &args)).map(|_| ())
}

/// One iperf3 run; both directions' sums must show traffic.
fn iperf3(pair: &Pair, address: &str, options: &[&str]) -> Result<(), String> {
    let port = pair.port(0).to_string();
    let _server = pair.server.start(&["iperf3", "-s", "-1", "-p", &port])?;
    pair.wait_for_port(pair.port(0))?;
    let mut argv = vec!["iperf3", "-c", address, "-p", &port, "-t", "2", "-f", "m"];
    argv.extend(options);
    let text = pair.client.must(&argv, Duration::from_secs(30))?;
    // "[  5]   0.00-2.00   sec  1.15 GBytes  4931 Mbits/sec    0             sender"
    for end in ["sender", "receiver"] {
        let rate = text
            .lines()
            .filter(|line| line.trim_end().ends_with(end))
            .filter_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let unit = words.iter().position(|w| *w == "Mbits/sec")?;
                words.get(unit.checked_sub(1)?)?.parse::<f64>().ok()
            })
            .next_back();
        ensure(rate.is_some_and(|mbits| mbits > 1.0), || {
            format!("no {end}'s rate in:\n{text}")
        })?;
    }
    Ok(())
}

fn iperf3_tcp(pair: &Pair) -> Result<(), String> {
    iperf3(pair, &pair.server4, &[])
}

fn iperf3_reverse(pair: &Pair) -> Result<(), String> {
    iperf3(pair, &pair.server4, &["-R"])
}

fn iperf3_parallel(pair: &Pair) -> Result<(), String> {
    iperf3(pair, &pair.server4, &["-P", "8"])
}

fn iperf3_udp(pair: &Pair) -> Result<(), String> {
    iperf3(pair, &pair.server4, &["-u", "-b", "100M"])
}

fn iperf3_ipv6(pair: &Pair) -> Result<(), String> {
    iperf3(pair, &pair.server6, &["-6"])
}

fn redis(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    let number = pair.port(0).to_string();
    let dir = folder.path().to_string_lossy();
    let _server = pair.server.start(&[
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
        "no",
        "--dir",
        &dir,
    ])?;
    pair.wait_for_port(pair.port(0))?;
    let cli = |words: &[&str]| {
        let mut argv = vec!["redis-cli", "-h", &pair.server4, "-p", &number];
        argv.extend(words);
        pair.client.must(&argv, LIMIT)
    };
    ensure(cli(&["set", "key", "value"])?.trim() == "OK", || {
        "set failed".into()
    })?;
    let value = cli(&["get", "key"])?;
    ensure(value.trim() == "value", || format!("got {value}"))?;
    for extra in [&["-c", "50"][..], &["-c", "10", "-P", "16"][..]] {
        let mut argv = vec![
            "redis-benchmark",
            "-h",
            &pair.server4,
            "-p",
            &number,
            "-n",
            "10000",
            "-t",
            "set,get,lrange_100",
            "-q",
        ];
        argv.extend(extra);
        let text = pair.server.rewritten(|| pair.client.must(&argv, LIMIT))?;
        let results = text.matches("requests per second").count();
        ensure(results >= 3, || text.clone())?;
    }
    Ok(())
}

fn socat_file(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    let port = pair.port(0);
    let sent = folder.noise("sent", 5 << 20)?;
    let got = folder.file("got");
    let listen = format!("TCP6-LISTEN:{port},bind=[{}],reuseaddr", pair.server6);
    let create = format!("CREATE:{}", got.display());
    let mut server = pair.server.start(&["socat", "-u", &listen, &create])?;
    pair.wait_for_port(port)?;
    let open = format!("OPEN:{}", sent.display());
    let connect = format!("TCP6:[{}]:{port}", pair.server6);
    pair.client.must(&["socat", "-u", &open, &connect], LIMIT)?;
    let end = server.wait(Duration::from_secs(10));
    ensure(end == Some(crate::exec::End::Exit(0)), || {
        format!("the server's end: {end:?}")
    })?;
    ensure(scratch::same(&sent, &got)?, || "other bytes arrived".into())
}

const ECHOED: &str = "ping1\nping2\nping3\nping4\nping5\n";

fn socat_udp(pair: &Pair) -> Result<(), String> {
    let port = pair.port(0);
    let listen = format!("UDP4-RECVFROM:{port},bind={},fork", pair.server4);
    let _server = pair.server.start(&["socat", &listen, "EXEC:cat"])?;
    let address = format!("UDP4:{}:{port}", pair.server4);
    // A datagram may be lost on a busy machine: each is tried three times.
    let script = format!(
        "for i in 1 2 3 4 5; do for try in 1 2 3; do \
         r=$(echo ping$i | socat -t 1 - {address}); [ -n \"$r\" ] && break; done; \
         echo \"$r\"; done"
    );
    let mut text = String::new();
    // UDP has no sign of readiness: the first try may come before the server.
    crate::exec::until(Duration::from_secs(20), || {
        text = pair
            .client
            .run(&["sh", "-c", &script], LIMIT)
            .map(|outcome| outcome.stdout)
            .unwrap_or_default();
        text == ECHOED
    });
    ensure(text == ECHOED, || format!("got '{text}'"))
}
