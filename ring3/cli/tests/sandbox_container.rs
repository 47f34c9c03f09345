// SPDX-License-Identifier: GPL-2.0
//! Sandboxes where nothing is to be had: an ordinary user without capabilities, in a container whose filter lets nobody make a
//! namespace. Needs `make image gate`.

mod place;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use place::{finish, spawn, Place};

struct Container {
    place: Place,
    filter: PathBuf,
}

impl Container {
    fn new() -> Container {
        let place = Place::new();
        let filter = place::compiled(&place, "container", &[]);
        Container { place, filter }
    }

    fn command(&self, args: &[&str]) -> Command {
        let filter = self.filter.display().to_string();
        place::behind(&self.place.ordinary(args), &filter, &[])
    }

    fn run(&self, args: &[&str]) -> Output {
        finish(spawn(&mut self.command(args)))
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

/// What the filter is there for.
#[test]
fn it_is_as_narrow_as_a_container() {
    let container = Container::new();
    let tries = "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n\
        for call in (272, 134, 425): c.syscall(call, 0x10000000); print(ctypes.get_errno())";
    let mut command = Command::new(&container.filter);
    let output = finish(spawn(command.args(["/usr/bin/python3", "-c", tries])));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "1\n1\n1\n",
        "{output:?}"
    );
}

/// Policy, record, limits, and each way in.
#[test]
fn all_of_it_in_a_container() {
    let container = Container::new();
    let folder = container.place.dir.path();
    let policy = folder.join("policy.nft").display().to_string();
    let rules = "table inet filter {\n chain forward {\n type filter hook forward priority 0; policy drop;\n \
        ct state established,related accept\n tcp dport 80 accept\n }\n}\n";
    fs::write(&policy, rules).unwrap();
    let record = folder.join("record");
    let server = [
        "--",
        "/usr/bin/python3",
        "-m",
        "http.server",
        "-d",
        "/usr/share/doc",
        "80",
    ];
    let world = ["up", "world", "--port", "link:w,addr=198.51.100.10/24"];
    container.ok(&[&world[..], &server].concat());
    container.ok(&["wait", "world", "tcp", "80", "--timeout", "20"]);
    let record_words = record.display().to_string();
    let up = [
        "up",
        "--sandbox",
        "a",
        "--policy",
        &policy,
        "--record",
        &record_words,
        "--tmp",
    ];
    let limits = [
        "--pids",
        "64",
        "--proc-mem",
        "1G",
        "--files",
        "1024",
        "--file-size",
        "64M",
    ];
    let more = [
        "--cpu-time",
        "1000",
        "--min-free",
        "1K",
        "--port",
        "link:w,addr=198.51.100.1/24",
    ];
    container.ok(&[&up[..], &limits, &more].concat());
    let get = "curl -s -m 20 -o /dev/null -w '%{http_code}\\n' http://198.51.100.10/; \
        curl -s -m 1 http://198.51.100.10:81/; echo x >$TMPDIR/x; cat $TMPDIR/x; ulimit -Hn";
    assert_eq!(
        container.ok(&["exec", "a", "--", "sh", "-c", get]),
        "200\nx\n1024\n"
    );
    // The warden is asked by a call that the container's filter lets through.
    let own = "import ctypes; print(ctypes.CDLL(None).syscall(215, 1, 0, 0) > 2)";
    assert_eq!(
        container.ok(&["exec", "a", "--", "/usr/bin/python3", "-c", own]),
        "True\n"
    );
    let request = folder.join("request");
    fs::write(&request, "HEAD / HTTP/1.0\r\n\r\n").unwrap();
    let mut connect = container.command(&["connect", "a", "198.51.100.10", "80"]);
    let output = finish(spawn(connect.stdin(fs::File::open(&request).unwrap())));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("200 OK"),
        "{output:?}"
    );
    place::eventually("the log tells what was refused", || {
        let flows = container.ok(&["log", "a.gw"]);
        let mut flows = flows.lines();
        flows.any(|it| it.contains("\"refused\"") && it.contains("198.51.100.10:81\""))
    });
    container.ok(&["down", "a"]);
    container.ok(&["down", "world"]);
    for (name, least) in [
        ("flows.jsonl", 1),
        ("sandbox.pcap", 100),
        ("exit.pcap", 100),
    ] {
        let len = fs::metadata(record.join(name)).unwrap().len();
        assert!(len > least, "{name} has {len} bytes");
    }
    // What the server had to say stays.
    let logs = |path: &PathBuf| path.extension().is_some_and(|it| it == "log");
    place::eventually("nothing else is left behind", || {
        container.place.left().iter().all(logs)
    });
}
