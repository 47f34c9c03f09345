// SPDX-License-Identifier: GPL-2.0
//! The manual page: one for all subcommands, made from the same words as --help.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

use clap::CommandFactory;
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;

use crate::args::Cli;
use crate::error::{Failure, Result};
use crate::help;

/// On a terminal the page, into a pipe or file its source.
pub fn man() -> Result<()> {
    let page = page().map_err(Failure::host("write the manual page"))?;
    if std::io::stdout().is_terminal() && show(&page).is_ok() {
        return Ok(());
    }
    crate::say::print(page)
}

fn show(page: &[u8]) -> std::io::Result<()> {
    let mut child = Command::new("man")
        .args(["-l", "-"])
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // The reader may quit before the end.
        let _ = stdin.write_all(page);
    }
    child.wait().map(drop)
}

fn page() -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut command = Cli::command();
    command.build();
    let man = Man::new(command.clone())
        .manual("ring3")
        .source(format!("ring3 {}", env!("CARGO_PKG_VERSION")));
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    section(&mut out, "DESCRIPTION", DESCRIPTION)?;
    Roff::new()
        .control("SH", ["COMMANDS"])
        .to_writer(&mut out)?;
    subcommands(&mut out, &command)?;
    verbatim(&mut out, "PORTS", help::PORTS)?;
    verbatim(&mut out, "DEFAULTS AND LIMITS", LIMITS)?;
    verbatim(&mut out, "NODE FILE", NODE_FILE)?;
    verbatim(&mut out, "COMPOSE FILE", help::COMPOSE)?;
    verbatim(&mut out, "EXAMPLES", help::TOUR)?;
    verbatim(&mut out, "EXIT STATUS", EXIT_STATUS)?;
    verbatim(&mut out, "ENVIRONMENT", ENVIRONMENT)?;
    verbatim(&mut out, "FILES", FILES)?;
    section(
        &mut out,
        "SEE ALSO",
        "passt(1), ip(8), tcpdump(8), ss(8), sysctl(8)",
    )?;
    Ok(out)
}

/// The verbs of a command, and the verbs of these (`compose up`).
fn subcommands(out: &mut Vec<u8>, command: &clap::Command) -> std::io::Result<()> {
    for sub in command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
    {
        subcommand(out, sub)?;
        subcommands(out, sub)?;
    }
    Ok(())
}

fn subcommand(out: &mut Vec<u8>, sub: &clap::Command) -> std::io::Result<()> {
    let mut roff = Roff::new();
    let usage = sub.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    roff.control("SS", [usage.as_str()]);
    roff.text([roman(
        sub.get_about().map(ToString::to_string).unwrap_or_default(),
    )]);
    let shown = |arg: &&clap::Arg| arg.get_id() != "help" && !arg.is_hide_set();
    for arg in sub.get_arguments().filter(shown) {
        roff.control("TP", []);
        let mut names = Vec::new();
        names.extend(arg.get_short().map(|c| format!("-{c}")));
        names.extend(arg.get_long().map(|word| format!("--{word}")));
        let values = arg.get_value_names().unwrap_or_default();
        let value = match arg.get_action().takes_values() {
            true => values
                .iter()
                .map(|v| v.to_string())
                .collect::<Vec<_>>()
                .join(" "),
            false => String::new(),
        };
        let is_optional = arg
            .get_num_args()
            .is_some_and(|range| range.min_values() == 0);
        let value = match (names.is_empty() || value.is_empty(), is_optional) {
            (true, _) => value,
            (false, true) => format!("[={value}]"),
            (false, false) => format!(" {value}"),
        };
        roff.text([bold(names.join(", ")), roman(value)]);
        roff.text([roman(
            arg.get_help().map(ToString::to_string).unwrap_or_default(),
        )]);
    }
    roff.to_writer(out)
}

fn section(out: &mut Vec<u8>, title: &str, text: &str) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for paragraph in text.split("\n\n") {
        roff.control("PP", []);
        roff.text([roman(paragraph.replace('\n', " "))]);
    }
    roff.to_writer(out)
}

/// Text whose lines are to stay as they are.
fn verbatim(out: &mut Vec<u8>, title: &str, text: &str) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    roff.control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.to_writer(out)
}

const DESCRIPTION: &str = "\
ring3 runs Linux's own network stack in user space, inside the processes of unmodified \
programs. A node is one such stack: a virtual host with its own addresses, routes, sockets and \
sysctls. Programs are put on a node by ring3 run or ring3 exec; everything they do with the network \
happens there, and everything else on the host as usual. A program has one node: commands that \
start a node or enter one (run, up, exec, sim, forward, ...) are refused from within one, and so is doctor.

Whoever starts a node is root on it: ip, nft, tc, tcpdump and raw sockets need no privilege on \
the host.";

const NODE_FILE: &str = r#"name = "web"
mem = "1G"                      # optional, as everything below
spin_ns = 50000
cpus = 1
host_cpuid = false
cmdline = ""
grace = 5                       # seconds between SIGTERM and SIGKILL at the node's end
image = "other.image"
restart = "on-failure"          # or "always", "no"

route = ["10.2.0.0/16 via 10.0.0.2"]
hosts = { db = "10.0.0.9" }     # the node's own /etc/hosts, in the place of the host's
dns = ["10.0.0.3"]              # the same for /etc/resolv.conf
wait = ["tcp 80"]               # `ring3 up` returns when a program has such a socket

[sandbox]                       # with this table, even an empty one, the node is a sandbox: the options of that name
rw = ["work"]
tmp = true
policy = "policy.nft"
proc_mem = "1G"                 # also ro, record, pids, cpu_time, files, file_size, min_free

[sysctl]
net.ipv4.tcp_congestion_control = "bbr"

[[port]]
kind = "link"
name = "ab"
addr = ["10.0.0.1/24", "fd00::1/64"]

[[port]]
kind = "passt"
pcap = "web.pcap"

[[program]]                     # what `ring3 up` starts on the node
command = ["nginx", "-g", "daemon off;"]

A port may also be one string: port = ["link:ab,addr=10.0.0.1/24", "passt"]
Relative paths start in the folder of the file."#;

/// A test holds what it says of numbers.
const LIMITS: &str = "\
names      of nodes, links and switches: 1 to 63 letters, digits, `.`, `_` and `-`, a letter or digit
           first; of the host's interfaces: at most 15 characters
--mem      32M to 2G, in steps of 2M [1G]; the host gives what is touched, 13M of an idle node
--cpus     1 to 3
--spin-ns  0 to 1000000000 [50000]
--grace    0 to 3600 seconds [5]
--port     16 of a node, and two more while it is up (`ring3 port add`)
programs   16384 processes of a node; descriptors of the node lie below number 65536, and the gate
           keeps the 32 highest that the limit (ulimit -n) allows
host, passt
           without addr= the node is 10.0.2.15/24 and fd72:696e:6733::15/64, and its gateways are
           10.0.2.2 and fd72:696e:6733::2; with addr= and without gw= the gateway is the network's
           first other address
the end    `ring3 run` ends its node when CMD ends: what CMD has left in the background, and other
           programs that `ring3 exec` put there, get SIGTERM, and SIGKILL after --grace. The node of
           `ring3 up` stays when its programs end, until `ring3 down`; that of `ring3 up --foreground`
           ends with the process. A link, and what is under way on it, is gone when both ends are.";

const EXIT_STATUS: &str = "\
0    success
1    failure; doctor: something that ring3 needs is missing
2    a mistake on the command line or in a node file

run, exec and debug end as the program did, run and exec with 128+N if signal N ended it, or with
125  ring3 itself failed
126  the program cannot be executed
127  the program was not found";

const ENVIRONMENT: &str = "\
XDG_RUNTIME_DIR  where the runtime folder lies
RING3_LOG        what ring3 says about its own work: error, warn (default), info, debug
RING3_GATE       another gate than the one beside the command
RING3_ADOPTER    of the keeper: trace, to trace programs also where BPF would do; none, and a kill may end a node
RING3_IMAGE      another kernel image than the one beside the command
RING3_KERNEL_LOG a file to which the kernel log of each node is added when it ends
RING3_NODE       set for programs on a node: the socket by which their children join it
NO_COLOR         no colours";

const FILES: &str = "\
$XDG_RUNTIME_DIR/ring3, /run/ring3 (root) or /tmp/ring3-UID
    the runtime folder: sockets of the nodes, and NAME.log with the output of the process
    of a node that was started by ring3 up";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::NodeArgs;

    #[test]
    fn limits_are_those_of_the_page() {
        let is_good = |args: &NodeArgs| crate::node_args::node(args, Some("a"), "a").is_ok();
        let with = |change: &dyn Fn(&mut NodeArgs)| {
            let mut args = NodeArgs::default();
            change(&mut args);
            is_good(&args)
        };
        for (mem, good) in [
            ("32M", true),
            ("2G", true),
            ("30M", false),
            ("2050M", false),
            ("33M", false),
        ] {
            assert_eq!(with(&|it| it.mem = Some(mem.into())), good, "{mem}");
        }
        for (cpus, good) in [(1, true), (3, true), (0, false), (4, false)] {
            assert_eq!(with(&|it| it.cpus = Some(cpus)), good, "{cpus}");
        }
        for (spin, good) in [(0, true), (1_000_000_000, true), (1_000_000_001, false)] {
            assert_eq!(with(&|it| it.spin_ns = Some(spin)), good, "{spin}");
        }
        for (grace, good) in [("0", true), ("3600", true), ("3601", false)] {
            assert_eq!(with(&|it| it.grace = Some(grace.into())), good, "{grace}");
        }
        for (count, good) in [(16, true), (17, false)] {
            let ports =
                |it: &mut NodeArgs| it.ports = (0..count).map(|n| format!("link:l{n}")).collect();
            assert_eq!(with(&ports), good, "{count}");
        }
        let page = String::from_utf8(page().unwrap()).unwrap();
        assert!(page.contains("DEFAULTS AND LIMITS") && page.contains("32M to 2G"));
    }
}
