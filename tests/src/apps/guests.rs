// SPDX-License-Identifier: GPL-2.0
//! Virtual machines whose network card is a `vhost` port's: Debian's kernel in QEMU, without KVM.

use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, Group, Outcome};
use crate::node::{self, Node};
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("guest_serves".into(), serves),
        trial("guest_reboots".into(), reboots),
        trial("guest_killed".into(), killed),
        trial("guest_nonsense".into(), nonsense),
    ]
}

/// A guest boots in 5 s on a processor of its own; one that others use, too, is several times slower.
const GUEST: Duration = Duration::from_secs(240);
const PROGRAMS: [&str; 5] = ["qemu-system-x86_64", "busybox", "cpio", "iperf3", "python3"];
const INSTALLER: &str =
    "/usr/lib/debian-installer/images/12/amd64/text/debian-installer/amd64/linux";
const PAGE_BYTES: usize = 100_000;

/// Puts the card up, and fetches a page, which the node may not serve yet.
const BEGIN: &str = "
up() {
    for i in $(seq 20); do ip addr add 10.7.0.2/24 dev eth0 2>/dev/null && break; sleep 0.5; done
    ip link set eth0 up
}
fetch() { wget -q -O $1 http://10.7.0.1:8000/page; }
up
for i in $(seq 20); do fetch /first && break; sleep 1; done
echo SUM $(sha256sum </first)
";

/// Serves the page, and counts at /boot.
const SERVE: &str = "
import http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    boots = 0
    def do_GET(self):
        if self.path != '/boot':
            return super().do_GET()
        Handler.boots += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'%d' % Handler.boots)
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(('', 8000), Handler).serve_forever()
";

/// A node that serves a page to the guest behind its port.
struct Bed {
    node: Node,
    folder: Scratch,
    _servers: Vec<Group>,
    sum: String,
}

impl Bed {
    fn new() -> Result<Bed, String> {
        build()?;
        let folder = Scratch::new()?;
        let page = folder.noise("page", PAGE_BYTES)?;
        let sum = Command::new("sha256sum").arg(&page).output();
        let sum = sum.map_err(|why| why.to_string())?;
        let sum = String::from_utf8_lossy(&sum.stdout);
        let sum = sum.split(' ').next().unwrap_or_default().to_owned();
        let socket = folder.file("vm").to_string_lossy().into_owned();
        let node = Node::up(&[format!("vhost:{socket},addr=10.7.0.1/24")])?;
        let mut server = node.command(["python3", "-c", SERVE]);
        server.current_dir(folder.path());
        let servers = vec![
            node::background(&mut server)?,
            node::background(&mut node.command(["iperf3", "-s"]))?,
        ];
        Ok(Bed {
            node,
            folder,
            _servers: servers,
            sum,
        })
    }

    /// A guest that does this job.
    fn guest(&self, job: &str) -> Result<Command, String> {
        let job = self.folder.write("job", format!("{BEGIN}{job}"))?;
        let socket = self.folder.file("vm");
        let mut command = Command::new(paths::root().join("tests/guest/run"));
        command.arg(job).args(["vhost-user,chardev=c", "-chardev"]);
        command.arg(format!("socket,id=c,path={},reconnect=1", socket.display()));
        command.stdin(Stdio::null());
        Ok(command)
    }

    fn run(&self, job: &str) -> Result<Outcome, String> {
        let outcome = exec::run(&mut self.guest(job)?, GUEST)?;
        ensure(outcome.ok(), || outcome.report())?;
        Ok(outcome)
    }

    /// Whether the guest says these lines in this order, the sum of the page before them.
    fn expect(&self, outcome: &Outcome, lines: &[&str]) -> Result<(), String> {
        let sum = format!("SUM {} -", self.sum);
        let mut wanted = std::iter::once(sum.as_str())
            .chain(lines.iter().copied())
            .peekable();
        for line in outcome.stdout.lines() {
            wanted.next_if(|it| line.trim_end() == *it);
        }
        ensure(wanted.peek().is_none(), || {
            format!("not said: {:?}\n{}", wanted.peek(), outcome.report())
        })
    }

    fn log(&self) -> Result<String, String> {
        let path = paths::runtime().join(format!("{}.log", self.node.name));
        std::fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))
    }
}

/// The guest's kernel and root file system, once.
fn build() -> Result<(), String> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    let build = || {
        let mut command = Command::new(paths::root().join("tests/guest/build"));
        let outcome = exec::run(&mut command, Duration::from_secs(100))?;
        ensure(outcome.ok(), || outcome.report())
    };
    BUILT.get_or_init(build).clone()
}

fn check(test: fn() -> Checked) -> Checked {
    if let Some(why) = missing(&PROGRAMS)? {
        return Ok(Verdict::Ignored(why));
    }
    let has_kernel = std::env::var_os("RING3_TEST_INSTALLER").is_some()
        || std::path::Path::new(INSTALLER).exists();
    if !has_kernel && std::env::var_os("CI").is_none() {
        return Ok(Verdict::Ignored(
            "there is no kernel for guests: see tools/setup".into(),
        ));
    }
    test()
}

/// A thousand requests, each answer compared, and streams both ways.
fn serves() -> Checked {
    check(|| {
        let bed = Bed::new()?;
        let job = "
good=0
for i in $(seq 1000); do fetch /got && cmp -s /got /first && good=$((good + 1)); done
echo GOOD $good
iperf3 -c 10.7.0.1 -n 100M >/dev/null && echo SENT
iperf3 -c 10.7.0.1 -n 100M -R >/dev/null && echo RECEIVED
";
        let outcome = bed.run(job)?;
        bed.expect(&outcome, &["GOOD 1000", "SENT", "RECEIVED"])?;
        Ok(Verdict::Passed)
    })
}

/// A guest that resets its machine in the middle of a stream is served again.
fn reboots() -> Checked {
    check(|| {
        let bed = Bed::new()?;
        let job = "
boot=$(wget -q -O - http://10.7.0.1:8000/boot)
echo BOOT $boot
[ $boot != 1 ] || { iperf3 -c 10.7.0.1 -t 60 >/dev/null & sleep 1; echo b >/proc/sysrq-trigger; sleep 60; }
fetch /got && cmp /got /first && echo SAME
";
        let mut command = bed.guest(job)?;
        command.env("REBOOT", "1");
        let outcome = exec::run(&mut command, GUEST)?;
        ensure(outcome.ok(), || outcome.report())?;
        bed.expect(&outcome, &["BOOT 1", "BOOT 2", "SAME"])?;
        Ok(Verdict::Passed)
    })
}

/// A virtual machine that is killed in the middle of a stream leaves its place to the next.
fn killed() -> Checked {
    check(|| {
        let bed = Bed::new()?;
        let path = bed.folder.file("said");
        let mut command = bed.guest("echo BUSY; iperf3 -c 10.7.0.1 -t 600 >/dev/null")?;
        command.stdout(std::fs::File::create(&path).map_err(|why| why.to_string())?);
        let mut guest = Group::spawn(&mut command)?;
        let is_busy = || std::fs::read_to_string(&path).is_ok_and(|text| text.contains("BUSY"));
        ensure(exec::until(GUEST, is_busy), || {
            "the guest does not come up".into()
        })?;
        std::thread::sleep(Duration::from_secs(1));
        guest.kill();
        let outcome = bed.run("")?;
        bed.expect(&outcome, &["GUEST ends 0"])?;
        Ok(Verdict::Passed)
    })
}

/// A guest that writes nonsense to its queues harms nobody: the same device serves it, and the node, as before.
fn nonsense() -> Checked {
    check(|| {
        let bed = Bed::new()?;
        let job = "
rings 200 7
up
fetch /got && cmp /got /first && echo SAME
";
        let outcome = bed.run(job)?;
        bed.expect(&outcome, &["RINGS 200 rounds", "SAME"])?;
        let log = bed.log()?;
        // Both kinds of nonsense came to the device, and none ended it.
        for said in [
            "the guest's queues have a",
            "makes no sense: it is left alone",
        ] {
            ensure(log.contains(said), || {
                format!("not in the log: {said}\n{log}")
            })?;
        }
        ensure(!log.contains("it is started again"), || log.clone())?;
        ensure(
            bed.node
                .output(&["ip", "-br", "link", "show", "vhost0"])?
                .contains("vhost0"),
            || log.clone(),
        )?;
        Ok(Verdict::Passed)
    })
}
