// SPDX-License-Identifier: GPL-2.0
//! Words that both --help and the manual page show, and what is said to mistyped words.

use std::ffi::OsString;
use std::io::IsTerminal;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::args::Cli;
use crate::say;

/// As a macro, so that it can stand in the middle of a constant.
macro_rules! ports {
    () => {
        "\
A port SPEC is KIND[:NAME][,key=value]...

Kinds:
  link:NAME         shared memory to the node that names the same link
  switch:NAME       a switch that joins up to 16 nodes; it is a node itself, which the first that
                    names it starts, and which ends when the last has left
  tap:INTERFACE     a TAP of the host: made if not there and permitted, else used
  host              what the host's own sockets reach, without any privilege: TCP, UDP,
                    and ping where the host permits it (ping_group_range)
                    (what --net adds)
  passt             the internet without privilege, by the program passt
  packet:INTERFACE  an interface of the host, raw (needs CAP_NET_RAW)
  xdp:INTERFACE     all that comes to queue 0 of an interface of the host, by AF_XDP
                    (needs root); across a veth `ethtool -K OTHER-END tx off`
  vhost:SOCKET      a virtual machine's network card, by vhost-user: it connects to SOCKET, which
                    is the node's user's; its memory has to be shared (docs/vhost.md)

Keys:
  addr=ADDRESS/LEN  address of the node's end; may be repeated, IPv4 and IPv6
  gw=ADDRESS        default gateway
  host=ADDRESS/LEN  tap: address of the host's end
  mtu=BYTES         68 to 65521; xdp: at most 1770
  mac=ADDRESS       for example 02:00:00:00:00:01 [default: random]
  loopback=yes      host, passt: the gateway's address leads to the loopback of the host, and so
                    to its services there [default: no]
  tcp=[A@]P[:TO]    host: port P of the host (at address A; default: all) leads to the node's
                    port TO; also ranges, 8000-8010:80-90; may be repeated, as the next three
  udp=[A@]P[:TO]    host: the same for datagrams
  allow=NET[:PORT]  host: what may be reached, where there is such a rule; NET is an address,
                    a network or *, in brackets before :PORT if it is IPv6; PORT may be a range;
                    or a name, or *.NAME: it alone resolves then, and its addresses may be
                    reached for their time to live. A rule without a PORT holds for ping, too
  deny=NET[:PORT]   host: what may not, whatever allow= says; a name does not resolve
  log=FILE          host: a line of JSON for each refusal is added to FILE
  pcap=FILE         capture what crosses the port; a capture is continued. FILE.pcapng: each packet
                    names the processes that own its socket

A comma within a name or a FILE is written twice.

Names resolve by the host's /etc/resolv.conf. Where that names the host's loopback only, as with
systemd-resolved (127.0.0.53), a node with a gateway asks the servers that the local resolver
asks; a resolver that does not say whom needs `--dns ADDRESS`."
    };
}

pub const PORTS: &str = ports!();

pub const TOUR: &str = "\
Two nodes, joined by a link:
  ring3 up a --port link:ab,addr=10.0.0.1/24
  ring3 up b --port link:ab,addr=10.0.0.2/24
  ring3 exec a -- python3 -m http.server &
  ring3 wait a tcp 8000
  ring3 exec b -- curl http://a:8000/
  ring3 down a b

`ring3 doctor` says what works on this host, `ring3 man` shows the whole manual.";

pub const RUN: &str = "\
Example:
  ring3 run --port host -- curl https://example.org/

A SPEC is KIND[:NAME][,key=value]...: `ring3 run --help` lists the kinds and keys.";

pub const CAPTURE: &str = "\
Examples:
  ring3 capture web eth0 -w web.pcapng
  ring3 capture web eth0 tcp port 80 | tshark -r -

Each packet has the processes that own its socket in a comment, where they are known
(frame.comment in Wireshark), and its direction. The capture ends with the node, with its
reader, or by a signal. Wireshark's own list of interfaces: `ring3-extcap --install`.";

pub const KUNIT: &str = "\
Example:
  ring3 kunit --suite 'mptcp*'

The report is KTAP. Exit status: 0 if all passed or were skipped, 1 if one failed or the
kernel ended before the last. The image is built by `make kunit`.";

/// Options whose value is theirs by `=` alone, since they may stand without one.
const BY_EQUALS: [&str; 3] = ["--restart", "--watch", "-w"];

/// For `--restart always`: how it is written.
fn by_equals(line: &[OsString], word: &str) -> Option<String> {
    let before = line.windows(2).find(|two| two[1] == word)?;
    let option = before[0].to_str().filter(|it| BY_EQUALS.contains(it))?;
    Some(format!("write {option}={word}"))
}

/// For `--spin-ns -1`, which looks like an option to clap.
fn below_zero(line: &[OsString], word: &str) -> Option<String> {
    word.strip_prefix('-')?.parse::<f64>().ok()?;
    let before = line.windows(2).find(|two| two[1] == word)?;
    let option = before[0].to_str().filter(|it| it.starts_with('-'))?;
    Some(format!(
        "{option} takes no value below zero, as `{word}` is"
    ))
}

/// A mistake in one line, with clap's tip if it has one, and where to read more.
fn one_line(error: &clap::Error, line: &[OsString]) -> String {
    let text = error.render().to_string();
    let mut parts = text.split("\n\n");
    let lines = parts.next().unwrap_or_default().lines().map(str::trim);
    let what = lines.collect::<Vec<_>>().join(" ");
    let mut what = what.trim_start_matches("error: ").to_owned();
    let verb = line.iter().filter_map(|word| word.to_str()).nth(1);
    let known = Cli::command();
    let known = verb.and_then(|verb| known.find_subcommand(verb));
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) {
        if let Some(words) = below_zero(line, word) {
            what = words;
        } else if let Some(tip) = by_equals(line, word) {
            what += &format!("; {tip}");
        }
    }
    // That a word could be a value behind `--` leads astray where that is a program's.
    let tips = parts.flat_map(str::lines).map(str::trim);
    let tip = tips.filter_map(|it| it.strip_prefix("tip: "));
    for tip in tip.filter(|tip| !tip.contains("use '--")) {
        what += &format!("; {tip}");
    }
    let of_verb = known.map_or(String::new(), |it| format!(" {}", it.get_name()));
    format!("{what}; `ring3{of_verb} --help` lists what there is")
}

/// The command line. A mistake in it ends the process.
pub fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let kind = error.kind();
        if error.use_stderr() && kind != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            let line: Vec<_> = std::env::args_os().collect();
            say::complain(one_line(&error, &line));
        } else if error.use_stderr() || std::io::stdout().is_terminal() {
            error.exit()
        } else if let Err(failure) = say::print(error.render().to_string()) {
            say::complain(failure);
            std::process::exit(1)
        }
        std::process::exit(error.exit_code())
    })
}

/// A filter becomes a word of the kernel's command line, so it has to be one.
pub fn glob(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(|c: char| c.is_whitespace() || c == '"') {
        true => Err("one word, such as 'mptcp*' or 'hash.*'".into()),
        false => Ok(text.to_owned()),
    }
}

pub const UP: &str = "\
Example:
  ring3 up web --port tap:r3tap0,addr=10.1.0.2/24,gw=10.1.0.1,host=10.1.0.1/24

A SPEC is KIND[:NAME][,key=value]...: `ring3 up --help` lists the kinds and keys.";

pub const RUN_LONG: &str = concat!(
    "\
Examples:
  ring3 run --port host -- curl https://example.org/
  ring3 run --sandbox --ro . --tmp -- python3 tool.py

With --sandbox the program and its node are confined, by a list of host calls and by rules for files, signals and
abstract sockets. It has the network that its ports lead to, and none of the host's. It sees programs, libraries and
a few settings of the system, and what --ro and --rw name. When CMD has ended, all that it left ends. With --policy
its ports are those of a gateway that enforces nftables rules; `ring3 log NAME.gw` shows what it decides.
docs/security.md says what holds it.

Exit status: that of CMD; 128+N if signal N ended it; 125 if ring3 failed, 126 if CMD
cannot be executed, 127 if it was not found; 2 for a mistake on the command line.

",
    ports!()
);

pub const UP_LONG: &str = concat!(
    "\
Examples:
  ring3 up web --port tap:r3tap0,addr=10.1.0.2/24,gw=10.1.0.1,host=10.1.0.1/24
  ring3 up -f node.toml
  ring3 up web --restart --port link:ab -- nginx -g 'daemon off;'

CMD, and what [[program]] in the file lists, is started when the node is up. It reads nothing, and what it
says goes where the node's process has its output: NAME.log in the runtime folder, or with --foreground
where `ring3 up` has its own. With --restart a program that fails is started again, and so is the whole node when it
fails or its process is killed; --restart=always also starts programs again that exit with 0. It gives up
when a node fails six times in a row. A systemd service wants `ExecStart=ring3 up web --foreground ...` and
`Restart=on-failure`.

",
    ports!()
);

pub const EXEC: &str = "\
Example:
  ring3 exec web -- ip addr

On a node in a sandbox CMD is started in the same confinement.

Exit status: that of CMD; 125 if ring3 failed, 126 if CMD cannot be executed, 127 if it
was not found.";

pub const DEBUG: &str = "\
Examples:
  ring3 debug 4711 -- gdb -p 4711
  ring3 debug 4711 -- strace -f -p 4711

On a host without CAP_BPF a node traces its own programs, so that the node survives when one is killed. A
process has one tracer: a debugger from outside is refused (`Operation not permitted'). With this command the
node leaves the process alone until CMD has ended. A debugger that is itself on the node, as by
`ring3 exec NODE -- gdb -p PID', does not need it. gdb on the host knows the gate's file only: symbols and
backtraces of the program are had on the node.

Exit status: that of CMD; 125 if ring3 failed, 126 if CMD cannot be executed, 127 if it
was not found; 2 for a mistake on the command line.";

pub const PORT: &str = "\
Examples:
  ring3 port add a switch:lan,addr=10.0.0.1/24
  ring3 port del a lan

In its life a node can be given two ports while it is up, of kind switch or link, without pcap=. Taking one away gives its
place not back. A link's far end must not be up yet. A sandbox takes none. Programs that run see the interface come and go.";

pub const COMPOSE: &str = "\
Example of a file:
  [link.ab]                     # a link: its two nodes, with the address of each
  a = \"10.0.0.1/24\"
  b = \"10.0.0.2/24\"

  [switch.lan]                  # a switch: any nodes, the same way
  a = \"10.1.0.1/24\"
  b = \"10.1.0.2/24\"

  [node.a]                      # what node.toml can have, without the name
  wait = [\"tcp 8000\"]
  program = [{ command = [\"python3\", \"-m\", \"http.server\"] }]

  [node.b]
  route = [\"default via 10.0.0.1\"]

Then `ring3 exec b -- curl http://a:8000/`: each node has the names of the others in its own
/etc/hosts. A node that is up already is left as it is. `ring3 compose up --wait 'a tcp 8000' FILE`
waits for a server whose node has no `wait =` for it.";

pub const CONNECT: &str = "\
Examples:
  ring3 connect web 127.0.0.1 5432
  ring3 connect -v web '[fd00::1]' 80
  ssh -o ProxyCommand='ring3 connect web %h %p' root@10.0.0.1

Exit status: 0 when the far side has ended the connection; 1 if there is none.";

pub const PUBLISH: &str = "\
Example:
  ring3 publish web 80 --listen 127.0.0.1:8080 &
  curl http://127.0.0.1:8080/

The node's server sees connections from its own loopback. Every user of the host can connect. At the
start of a node, a port `host,tcp=8080:80` does the same without this command, for all addresses of the host.";

pub const SOCKS: &str = "\
Example:
  ring3 socks web &
  curl --proxy socks5h://127.0.0.1:1080 http://10.0.0.1:8000/

Whoever can connect to the host's loopback can use it: all users of this host. It ends with
the node.";

pub const PROXY: &str = "\
The process that has the clients is confined: it opens no file, starts nothing, and has no sockets of the host but those
to the targets. SIGTERM: no more clients, and the end after the last connection or the grace. SIGHUP: the same as reload.

Examples:
  ring3 proxy --on web --listen tcp:80 --to 127.0.0.1:8080
  ring3 proxy --on web --listen tcp:443 --to unix:/run/app.sock --log web.jsonl --metrics 127.0.0.1:9100
  ring3 proxy proxy.toml
  ring3 proxy reload web

A file:
  on = \"web\"
  [[listener]]
  listen = \"tcp:80\"
  to = [\"127.0.0.1:8080\", { to = \"127.0.0.1:8081\", weight = 2 }, \"node:db:5432\"]
  proxy_out = \"v2\"
  limit = { connections = 100, rate = 50, bytes = \"10M\" }
  health = { check = \"http\", path = \"/health\", interval = \"2s\" }";

pub const FORWARD: &str = "\
The agent is a program on the node: one thread takes a packet from the wire, through the node's Linux, gives it to the handler,
and sends it. It says `forwarding` when it listens, and its numbers at SIGTERM or SIGINT. UDP goes one way; `ring3 proxy` is for
questions and answers. A handler whose call uses up its budget, or faults, is cut off and called no more, and a line says so.

Examples:
  ring3 forward --on b --listen udp:5000 --to 10.0.1.2:5000
  ring3 forward --on b --listen udp:5000 --to 10.0.1.2:5000 --to 10.0.1.3:5000 --handler ./filter.so --budget 50us
  ring3 forward --port link:ab,addr=10.0.0.2/24 --port link:bc,addr=10.0.1.1/24 --real-time 50 --cpu 1 \\
      --listen tcp:80 --to 10.0.1.2:80";

pub const TOP: &str = "\
CPU is that of the node's keeper, its ports' processes and its programs, in per cent of one CPU. Rates are of all
interfaces but loopback. Keys: q ends, up and down choose a node, s sorts by name, CPU, traffic or memory, p pauses.

Examples:
  ring3 top
  ring3 top -n 1 | sort -k4nr
  ring3 top -n 1 --json | jq -r '.[] | select(.cpu_percent > 50) | .name'";

pub const CONSOLE: &str = "\
Commands: ls, cat, echo WORDS > PATH, cd, pwd, help, exit. On a terminal there are history and completion; else commands are
read from standard input, and the exit status is 1 if one of them failed.

Examples:
  ring3 console web
  echo 'cat /proc/net/snmp' | ring3 console web
  echo 'echo 0 > /proc/sys/net/ipv4/tcp_sack' | ring3 console web";

pub const METRICS: &str = "\
Each sample has the label node. Names are those of node_exporter where it has them: node_network_*, node_netstat_*,
node_sockstat_*, of the node's first network namespace. ring3_node_* is what the keeper knows. A node whose kernel does
not answer has ring3_node_scrape_success 0 and no node_* samples.

Examples:
  ring3 metrics | grep Tcp_RetransSegs
  ring3 metrics --listen 127.0.0.1:9101";

pub const WAIT: &str = "\
Example:
  ring3 exec web -- python3 -m http.server &
  ring3 wait web tcp 8000

Nothing connects to the port: the node's table of sockets is looked at. Exit status: 0 when
there is such a socket; 1 if there was none in time.";

/// A length of time that a person may mean.
pub fn seconds(text: &str) -> Result<f64, String> {
    const DAY: f64 = 86_400.0;
    let seconds: f64 = text
        .parse()
        .map_err(|_| "seconds, such as 5 or 0.5".to_owned())?;
    match (0.0..=DAY).contains(&seconds) {
        true => Ok(seconds),
        false => Err("0 to 86400 seconds".into()),
    }
}

/// A pause between two lines that a person may mean.
pub fn interval(text: &str) -> Result<f64, String> {
    let seconds = seconds(text)?;
    match seconds >= 0.1 {
        true => Ok(seconds),
        false => Err("0.1 to 86400 seconds".into()),
    }
}

/// A CPU's number, as many as the host's sets of CPUs have room for.
pub fn cpu(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    let known = number.filter(|cpu| *cpu < libc::CPU_SETSIZE as usize);
    known.ok_or_else(|| "a CPU's number, from 0 on".into())
}

/// What a call of a handler may take: the watchdog looks once in that time.
pub fn budget(text: &str) -> Result<std::time::Duration, String> {
    const UNITS: [(&str, u64); 3] = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];
    const BOUNDS: std::ops::RangeInclusive<u64> = 10..=10_000_000;
    let micros = UNITS.iter().find_map(|(unit, micros)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*micros)
    });
    let allowed = micros.filter(|micros| BOUNDS.contains(micros));
    let time = allowed.map(std::time::Duration::from_micros);
    time.ok_or_else(|| "10us to 10s, such as 50us or 1ms".into())
}

pub const COMPLETION: &str = "\
Examples:
  ring3 completion bash >~/.local/share/bash-completion/completions/ring3
  ring3 completion zsh >\"${fpath[1]}/_ring3\"
  ring3 completion fish >~/.config/fish/completions/ring3.fish";

pub const GRAPH: &str = "\
Examples:
  ring3 graph
  ring3 graph --svg >nodes.svg";

pub const PERF: &str = "\
Example:
  ring3 up web -- nginx -g 'daemon off;'
  perf record -g -p \"$(pidof -d, nginx)\" -- sleep 5
  ring3 perf report

perf sees a node's kernel as code of each of its programs, without names. This command gives it
a folder of symbols (--symfs). Recording needs no help. An ordinary user sees programs of its own,
where the host's sysctl kernel.perf_event_paranoid is at most 2.";

pub const SIM: &str = "\
Example:
  ring3 sim examples/sim/dumbbell.yaml
  ring3 sim --real-time FILE.yaml --seeds 1..20 --faults crash,partition --minimize

Time is virtual: two runs of one seed are equal, and take as long as the work in them. The image is `make sim`.

A scenario is a configuration file of the simulator Shadow, or one with the keys `links`, `topology`, `events`
and `sim`: docs/sim.md describes them, examples/sim has some. What it makes lies in its data directory: hosts/HOST/PROGRAM.N.stdout and .stderr, captures,
tcp.csv, queues.csv, interfaces.csv, result.json, report.html.

Exit status: 0, every process ended as the scenario expects; 1, one did not, or the simulation failed; 2, the
scenario has a mistake.";
