// SPDX-License-Identifier: GPL-2.0
//! The PROXY protocol.

use super::*;

/// HAProxy and nginx say whom a header names; HAProxy makes headers.
#[test]
fn headers_of_the_proxy_protocol() {
    let place = nodes();
    let path = |name: &str| {
        place
            .dir
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let (haproxy, nginx) = (path("haproxy.sock"), path("nginx.sock"));
    let config = format!(
        "defaults\n mode http\n timeout client 30s\n timeout server 30s\n timeout connect 30s\nfrontend f\n bind unix@{haproxy} accept-proxy\n http-request return status 200 content-type text/plain lf-string haproxy=%[src]:%[dst_port]\n"
    );
    fs::write(path("haproxy.cfg"), config).expect("write");
    let config = format!(
        "daemon off; master_process off; pid {pid}; error_log stderr; events {{}}\nhttp {{ access_log off; client_body_temp_path {tmp}1; proxy_temp_path {tmp}2; fastcgi_temp_path {tmp}3; uwsgi_temp_path {tmp}4; scgi_temp_path {tmp}5;\nserver {{ listen unix:{nginx} proxy_protocol; location / {{ return 200 nginx=$proxy_protocol_addr:$proxy_protocol_server_port; }} }} }}\n",
        pid = path("nginx.pid"), tmp = path("tmp")
    );
    fs::write(path("nginx.conf"), config).expect("write");
    let server = |program: &str, args: &[&str]| {
        let mut command = std::process::Command::new(program);
        Proxy(
            command
                .args(args)
                .stdin(Stdio::null())
                .spawn()
                .expect("it starts"),
        )
    };
    let _haproxy = server("haproxy", &["-db", "-f", &path("haproxy.cfg")]);
    let _nginx = server("nginx", &["-p", &path(""), "-c", &path("nginx.conf")]);
    for socket in [&haproxy, &nginx] {
        eventually("a server listens", || {
            std::os::unix::net::UnixStream::connect(socket).is_ok()
        });
    }
    let mut text = "on = \"a\"\n".to_owned();
    // Ports 80 to 83: without headers of clients; 90 to 93: with them.
    for (base, named) in [(80, false), (90, true)] {
        for (at, (to, version)) in [(&haproxy, 1), (&haproxy, 2), (&nginx, 1), (&nginx, 2)]
            .into_iter()
            .enumerate()
        {
            let port = base + at;
            text += &format!("[[listener]]\nlisten = \"tcp:{port}\"\nto = [\"unix:{to}\"]\nproxy_out = \"v{version}\"\nproxy_in = {named}\n");
        }
    }
    let proxy = Proxy::start(&place, &[&file(&place, &text)], &["80", "93"]);
    // HAProxy on node b, whose clients come by its loopback.
    let senders: String = (0..4)
        .map(|at| {
            let version = ["send-proxy", "send-proxy-v2"][at % 2];
            format!(
                "listen l{at}\n bind 127.0.0.1:{}\n server s {ADDRESS}:{} {version}\n",
                100 + at,
                90 + at
            )
        })
        .collect();
    fs::write(path("sender.cfg"), format!("defaults\n mode tcp\n timeout client 30s\n timeout server 30s\n timeout connect 30s\n{senders}")).expect("write");
    let mut sender = place.command(&["exec", "b", "haproxy", "-db", "-f", &path("sender.cfg")]);
    let _sender = Proxy(sender.spawn().expect("it starts"));
    place.ok(&["wait", "b", "tcp", "103"]);
    let script = "
import sys, urllib.request
for port in sys.argv[2:]:
    with urllib.request.urlopen(f'http://{sys.argv[1]}:{port}/', timeout=30) as answer: print(answer.read().decode().strip())
";
    let said = python(&place, script, &[ADDRESS, "80", "81", "82", "83"]);
    let expected = [
        "haproxy=192.0.2.2:80",
        "haproxy=192.0.2.2:81",
        "nginx=192.0.2.2:82",
        "nginx=192.0.2.2:83",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let said = python(&place, script, &["127.0.0.1", "100", "101", "102", "103"]);
    let expected = [
        "haproxy=127.0.0.1:100",
        "haproxy=127.0.0.1:101",
        "nginx=127.0.0.1:102",
        "nginx=127.0.0.1:103",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    // A client that sends none where one is asked for is not let in.
    assert_eq!(says(&place, "90", "GET / HTTP/1.0\r\n\r\n"), "");
    drop(proxy);
}
