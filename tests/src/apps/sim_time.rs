// SPDX-License-Identifier: GPL-2.0
//! Nodes in virtual time: the image `sim`.

use super::sim_cmd::Simulation;
use super::{Checked, Verdict, ensure, helper, trial};
use crate::compile::compile;
use crate::exec;
use crate::node::Node;
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::process::Command;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sim_time_sleep".into(), sleep),
        trial("sim_time_ping".into(), ping),
        trial("sim_time_processes".into(), processes),
        trial("sim_time_stop".into(), stop),
        trial("sim_time_threads".into(), threads),
        trial("sim_time_exact".into(), exact),
        trial("sim_time_exact_locks".into(), exact_locks),
        trial("sim_time_exact_host".into(), exact_host),
        trial("sim_time_exact_calls".into(), exact_calls),
        trial("sim_time_oracle".into(), oracle),
        trial("sim_time_deadlock".into(), deadlock),
        trial("sim_time_machine".into(), machine),
        trial("sim_time_loop".into(), endless),
        trial("sim_time_starved".into(), starved),
        trial("sim_time_preempted".into(), preempted),
        trial("sim_time_preempted_exec".into(), preempted_exec),
        trial("sim_time_seed".into(), seed),
    ]
}

/// Two hosts and a wire with 10 ms each way; the numbers are ping's.
const WIRE: &str = "set -e
ip netns add h1; ip netns add h2
ip link add v1 netns h1 type veth peer name v2 netns h2
ip -n h1 addr add 10.0.0.1/24 dev v1; ip -n h2 addr add 10.0.0.2/24 dev v2
ip -n h1 link set v1 up; ip -n h2 link set v2 up
tc -n h1 qdisc add dev v1 root netem delay 10ms; tc -n h2 qdisc add dev v2 root netem delay 10ms
ip netns exec h1 ping -c 4 10.0.0.2";

fn is_built() -> bool {
    paths::root().join("bin/ring3-sim.image").exists()
}

fn absent() -> Verdict {
    Verdict::Ignored("bin/ring3-sim.image is not built: make sim".into())
}

fn up(seed: &str) -> Result<Node, String> {
    Node::up_with(["--image", "sim", "--seed", seed])
}

/// Seconds of the node's clock that the words take.
fn lasts(node: &Node, words: &str) -> Result<f64, String> {
    let script = format!(
        "import time, os\nt = time.clock_gettime(time.CLOCK_MONOTONIC)\n{words}\nprint(time.clock_gettime(time.CLOCK_MONOTONIC) - t)"
    );
    let text = node.output(&["python3", "-c", &script])?;
    text.trim()
        .parse()
        .map_err(|_| format!("no number: {text}"))
}

fn sleep() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let node = up("1")?;
    let start = Instant::now();
    let took = lasts(&node, "time.sleep(1000)")?;
    let real = start.elapsed().as_secs_f64();
    // What Python itself does around it are some calls, of 1 us each.
    ensure((1000.0..1000.0001).contains(&took), || {
        format!("a sleep of 1000 s took {took} s")
    })?;
    ensure(real < 30.0, || format!("it took {real} s of real time"))?;
    Ok(Verdict::Passed)
}

fn ping() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let text = up("1")?.output(&["sh", "-c", WIRE])?;
    // The first packet waits for ARP.
    let exact = text.matches("time=20.0 ms").count();
    ensure(exact == 3 && text.contains("time=40.0 ms"), || text)?;
    Ok(Verdict::Passed)
}

fn processes() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let node = up("1")?;
    let script = "(sleep 3; echo b) | cat; sleep 5 & wait; echo w$?
sleep 100 & P=$!; sleep 1; kill $P; wait $P; echo $?
sleep 100 & P=$!; sleep 1; kill -9 $P; wait $P; echo $?
(exit 7) & wait $!; echo $?
python3 -c 'import os; os._exit(-1)'; echo $?
python3 -c 'import os; os._exit(0x309)'; echo $?";
    let text = node.output(&["sh", "-c", script])?;
    ensure(text == "b\nw0\n143\n137\n7\n255\n9\n", || text.clone())?;
    Ok(Verdict::Passed)
}

/// A stopped process does nothing, and time goes on for the others.
fn stop() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let script = "import os, signal, threading, time
def child():
    n = 0
    def count():
        nonlocal n
        while True: time.sleep(.1); n += 1
    threading.Thread(target=count, daemon=True).start()
    signal.signal(signal.SIGUSR1, lambda *a: (os.write(1, b'%d\\n' % (n // 10)), os._exit(3)))
    while True: time.sleep(1)
p = os.fork()
if p == 0: child()
time.sleep(5.05); os.kill(p, signal.SIGSTOP); t = time.time()
print(os.WIFSTOPPED(os.waitpid(p, os.WUNTRACED)[1]), flush=True)
time.sleep(1000); os.kill(p, signal.SIGCONT); time.sleep(4.05); os.kill(p, signal.SIGUSR1)
print(os.waitpid(p, 0)[1] >> 8, flush=True)
q = os.fork()
if q == 0: os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(1); os.kill(q, signal.SIGKILL); print(os.waitpid(q, 0)[1])";
    let text = up("1")?.output(&["python3", "-c", script])?;
    ensure(text == "True\n9\n3\n9\n", || text.clone())?;
    Ok(Verdict::Passed)
}

fn threads() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let node = up("1")?;
    let words = "import threading
def f(): time.sleep(2)
x = [threading.Thread(target=f) for i in range(5)]
[i.start() for i in x]; [i.join() for i in x]";
    let took = lasts(&node, words)?;
    // They sleep at the same time; the rest is calls of 1 us.
    ensure((2.0..2.002).contains(&took), || format!("{took} s"))?;
    Ok(Verdict::Passed)
}

/// Who waits for a pipe, an eventfd or a timerfd goes on when it is ready, not a look later.
fn exact() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let node = up("1")?;
    let waits = "import select
def after(seconds, act):
    if not os.fork():
        time.sleep(seconds); act(); os._exit(0)
r, w = os.pipe()
after(0.7, lambda: os.write(w, b'x')); assert os.read(r, 1) == b'x'
after(0.7, lambda: os.write(w, b'x')); assert select.select([r], [], [], 5)[0]; os.read(r, 1)
p = select.epoll(); p.register(r, select.EPOLLIN)
after(0.7, lambda: os.write(w, b'x')); assert p.poll(5); os.read(r, 1)
e = os.eventfd(0)
after(0.7, lambda: os.eventfd_write(e, 3)); assert os.eventfd_read(e) == 3
[os.wait() for i in range(4)]
os.close(w); assert os.read(r, 1) == b''";
    // Four times 0.7 s; to fork and to write are some hundred calls of 1 us.
    let took = lasts(&node, waits)?;
    ensure((2.8..2.803).contains(&took), || format!("{took} s"))?;
    Ok(Verdict::Passed)
}

/// Who waits for a lock, a condition or a queue of another thread or process goes on when it is free.
fn exact_locks() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let node = up("1")?;
    let waits = "import threading, multiprocessing as m
def after(seconds, act): threading.Thread(target=lambda: (time.sleep(seconds), act())).start()
l = threading.Lock(); l.acquire(); after(0.7, l.release); l.acquire()
c = threading.Condition()
def tell():
    with c: c.notify()
with c: after(0.7, tell); c.wait()
e = threading.Event(); assert not e.wait(0.7)
s = m.Semaphore(0)
def child(s): time.sleep(0.7); s.release()
p = m.get_context('fork').Process(target=child, args=(s,)); p.start(); s.acquire(); p.join()";
    // Four times 0.7 s; to start threads and processes is some hundred calls of 1 us.
    let took = lasts(&node, waits)?;
    ensure((2.8..2.803).contains(&took), || format!("{took} s"))?;
    Ok(Verdict::Passed)
}

/// The same for what is the host's: unix sockets, FIFOs and file locks.
fn exact_host() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let node = up("1")?;
    let scratch = Scratch::new()?;
    let waits = format!(
        "import ctypes, fcntl, socket, struct
def after(seconds, act):
    if not os.fork():
        time.sleep(seconds); act(); os._exit(0)
a, b = socket.socketpair()
after(0.7, lambda: a.send(b'x')); assert b.recv(1) == b'x'
s = socket.socket(socket.AF_UNIX); s.bind({sock:?}); s.listen()
after(0.7, lambda: socket.socket(socket.AF_UNIX).connect({sock:?})); s.accept()
os.mkfifo({fifo:?})
after(0.7, lambda: open({fifo:?}, 'w').write('x')); assert open({fifo:?}).read() == 'x'
f = open({fifo:?} + '.lock', 'w')
def hold():
    g = open({fifo:?} + '.lock', 'w'); fcntl.flock(g, fcntl.LOCK_EX); os.write(w, b'x'); time.sleep(0.7)
r, w = os.pipe()
after(0, hold); os.read(r, 1); fcntl.flock(f, fcntl.LOCK_EX)
a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 0, 700000))
try: a.recv(1)
except BlockingIOError: pass
libc = ctypes.CDLL(None); fifo = {fifo:?}.encode()
after(0.7, lambda: open(fifo, 'rb').read()); os.close(libc.syscall(85, fifo, 0o600))
time.sleep(0.1); how = struct.pack('QQQ', os.O_WRONLY, 0, 0)
after(0.6, lambda: open(fifo, 'rb').read()); os.close(libc.syscall(437, -100, fifo, how, 24))",
        sock = scratch.file("sock"),
        fifo = scratch.file("fifo")
    );
    let took = lasts(&node, &waits)?;
    ensure((4.9..4.905).contains(&took), || format!("{took} s"))?;
    Ok(Verdict::Passed)
}

/// ... and for the other calls that wait there: each goes on at the time at which another process acts, 200 ms later.
fn exact_calls() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let program = compile(&paths::oracle().join("host_waits.c"))?;
    let text = up("1")?.output(&[&program.to_string_lossy(), "exact"])?;
    let waits: Vec<&str> = text.lines().filter(|line| line.ends_with(" ms")).collect();
    ensure(
        waits.len() == 23 && waits.iter().all(|line| line.ends_with(" 200 ms")),
        || text.clone(),
    )?;
    Ok(Verdict::Passed)
}

/// Linux is the oracle for what virtual time has of its own, too.
fn oracle() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    const LIMIT: Duration = Duration::from_secs(60);
    for name in [
        "exec_beside",
        "exit_beside",
        "futex_calls",
        "host_objects",
        "host_waits",
    ] {
        let program = compile(&paths::oracle().join(format!("{name}.c")))?;
        let host = exec::run(&mut Command::new(&program), LIMIT)?;
        let node = Node::up_with(["--image", "sim", "--cmdline", "ring3_sim_jitter=200"])?;
        let there = exec::run(&mut node.command([&program]), LIMIT)?;
        // What a thread says that goes on where it must not is on stderr only.
        ensure(
            host.ok() && there.ok() && host.stdout == there.stdout && there.stderr.is_empty(),
            || format!("{name}: host {}\nnode {}", host.report(), there.report()),
        )?;
    }
    Ok(Verdict::Passed)
}

/// All wait, and no timer wakes a program: the node ends, and says which they are.
fn deadlock() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let node = Node::up_with([
        "--image",
        "sim",
        "--cmdline",
        "ring3_sim_deadlock=1 ring3_sim_stall=100",
    ])?;
    let script =
        "import threading, time; time.sleep(5); l = threading.Lock(); l.acquire(); l.acquire()";
    let outcome = node.exec(&["env", "HOSTNAME=h1", "python3", "-c", script])?;
    ensure(
        !outcome.ok()
            && outcome.stderr.contains("deadlock at 5.")
            && outcome.stderr.contains("host h1, python3 (process")
            && outcome.stderr.contains("in futex"),
        || outcome.report(),
    )?;
    // Some daemons write over their environment: then the host's own file has its name.
    let scratch = Scratch::new()?;
    let file = scratch.write("hostname", "h2\n")?;
    let node = Node::up_with([
        "--image",
        "sim",
        "--cmdline",
        "ring3_sim_deadlock=1 ring3_sim_stall=100",
    ])?;
    let within = format!(
        "mount --bind {} /etc/hostname && exec env -u HOSTNAME python3 -c '{script}'",
        file.display()
    );
    let outcome = node.exec(&["unshare", "-rm", "sh", "-c", &within])?;
    ensure(outcome.stderr.contains("host h2, python3 (process"), || {
        outcome.report()
    })?;
    Ok(Verdict::Passed)
}

/// Of the machine a program sees one CPU, whose cycle counter and use are virtual, and which was started just now.
fn machine() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let node = up("1")?;
    let cycles = helper("cycles")?;
    let text = node.output(&[&cycles.to_string_lossy()])?;
    let ns: u64 = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or(text.clone())?;
    ensure(
        (2_000_000_000..2_000_100_000).contains(&ns) && text.trim().ends_with(" 0 0"),
        || text.clone(),
    )?;
    let text = node.output(&["sh", "-c", "nproc; cut -d. -f1 /proc/uptime"])?;
    let lines: Vec<&str> = text.lines().collect();
    ensure(
        lines.len() == 2 && lines[0] == "1" && lines[1].parse::<u32>().is_ok_and(|s| s < 60),
        || text.clone(),
    )?;
    Ok(Verdict::Passed)
}

/// A program that keeps the turn for too long ends the simulation, which names it, its host and when.
fn endless() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let options = ["--image", "sim", "--cmdline", "ring3_sim_patience=2"];
    let words = [
        (
            "import time; time.sleep(5)\nwhile True: pass".to_string(),
            "computes without a call for 2 s",
        ),
        (
            // open() of a file on which its own process holds a lease, and does not give it up
            "import fcntl, os, signal, tempfile, time; time.sleep(5); f = tempfile.NamedTemporaryFile()
r = os.open(f.name, os.O_RDONLY); os.close(f.fileno()); signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(r, fcntl.F_SETLEASE, fcntl.F_RDLCK); os.open(f.name, os.O_WRONLY)"
                .to_string(),
            "waits in the host for 2 s",
        ),
    ];
    for (script, what) in words {
        let node = Node::up_with(options)?;
        let outcome = node.exec(&["env", "HOSTNAME=h1", "python3", "-c", &script])?;
        ensure(
            !outcome.ok()
                && outcome.stderr.contains("host h1, python3 (process")
                && outcome.stderr.contains("at 5.")
                && outcome.stderr.contains(what),
            || format!("{what}: {}", outcome.report()),
        )?;
    }
    Ok(Verdict::Passed)
}

/// Programs that want the processor, all on the first one.
struct Crowd(Vec<std::process::Child>);

impl Crowd {
    fn new(count: usize) -> Result<Crowd, String> {
        let start = || {
            Command::new("taskset")
                .args(["-c", "0", "sh", "-c", "while :; do :; done"])
                .spawn()
                .map_err(|why| why.to_string())
        };
        (0..count)
            .map(|_| start())
            .collect::<Result<_, _>>()
            .map(Crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program that computes for less than the limit is left alone, however little of the processor it gets.
fn starved() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let node = Node::up_with(["--image", "sim", "--cmdline", "ring3_sim_patience=3"])?;
    let _crowd = Crowd::new(7)?;
    // Some 0.7 s of the processor, without a call: five seconds and more in this crowd.
    let script = "for i in range(12_000_000): pass\nprint(i)";
    let start = Instant::now();
    let program = node.command(["python3", "-c", script]);
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "0"]).arg(program.get_program());
    pinned.args(program.get_args());
    let outcome = exec::run(&mut pinned, Duration::from_secs(60))?;
    ensure(outcome.stdout == "11999999\n", || outcome.report())?;
    let took = start.elapsed().as_secs_f64();
    if took < 4.0 {
        return Ok(Verdict::Ignored(format!("there was no crowd: {took} s")));
    }
    Ok(Verdict::Passed)
}

/// Loops without calls that wait for another process and for a timer's signal: where the scenario allows it, others run meanwhile.
fn preempted() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let script = r#"
import ctypes, mmap, os, signal, time
ctypes.CDLL(None).prctl(15, b"d\xc3\n\xa4mon\xc3")
m = mmap.mmap(-1, 4096)
if not os.fork():
    time.sleep(1); m[0] = 1; os._exit(0)
start = time.monotonic(); x = 1.5; y = 0
while not m[0]:
    x = x * 1.0000001; y += 1
print(1 <= time.monotonic() - start < 1.2, x > 1.5, abs(x - 1.5 * 1.0000001 ** y) < 1e-3); os.wait()
hits = []
signal.signal(signal.SIGALRM, lambda *a: hits.append(time.monotonic()))
start = time.monotonic(); signal.setitimer(signal.ITIMER_REAL, 0.5)
while not hits: pass
print(0.5 <= hits[0] - start < 0.7)
"#;
    let scenario = |options: &str| {
        let program = script.replace('\n', "\n        ");
        format!(
            "general: {{stop_time: 20 s, heartbeat_interval: null}}\nlinks: [{{between: [a, b]}}]\n{options}hosts:\n  b: {{}}\n  a:\n    \
             processes:\n    - path: python3\n      args:\n      - -c\n      - |{program}\n"
        )
    };
    let simulation = Simulation::run_with(
        &scenario(
            "experimental: {native_preemption_enabled: true, native_preemption_native_interval: 20 ms, native_preemption_sim_interval: 100 ms}\n",
        ),
        &[],
    )?;
    simulation.ended_well()?;
    let text = simulation.read("hosts/a/python3.1000.stdout")?;
    ensure(text == "True True True\nTrue\n", || text.clone())?;
    // The result says who was, and when: two runs may differ from there on.
    let result = simulation.read("result.json")?;
    for words in [
        "\"preempted\": [",
        "\"program\": \"d\u{fffd}\\\\n\u{fffd}mon\u{fffd}\"",
        "\"host\": \"a\"",
    ] {
        ensure(result.contains(words), || format!("no {words}: {result}"))?;
    }
    let page = simulation.read("report.html")?;
    ensure(page.contains("Preempted while they computed"), || {
        "the report does not say it".into()
    })?;
    Ok(Verdict::Passed)
}

/// An exec amid the computing: what preempts the thread does not kill the program that it executes.
fn preempted_exec() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let program = helper("exec_busy")?;
    let node = Node::up_with([
        "--image",
        "sim",
        "--cmdline",
        "ring3_sim_preempt=20000000,1000000",
    ])?;
    let outcome = node.exec(&[&program.to_string_lossy(), "100"])?;
    ensure(outcome.ok() && outcome.stdout == "done\n", || {
        outcome.report()
    })?;
    Ok(Verdict::Passed)
}

fn seed() -> Checked {
    if !is_built() {
        return Ok(absent());
    }
    let run = |seed: &str| {
        let node = up(seed)?;
        let first = node.output(&["sh", "-c", WIRE])?;
        let second = node.output(&[
            "python3",
            "-c",
            "import os, random, time; print(os.getrandom(8).hex(), random.random(), hash('x'), open('/dev/urandom', 'rb').read(4).hex(), time.time())",
        ])?;
        Ok::<_, String>(first + &second)
    };
    let (a, b, c) = (run("1")?, run("1")?, run("2")?);
    ensure(a == b, || format!("one seed, two results:\n{a}{b}"))?;
    ensure(a != c, || format!("two seeds, one result:\n{a}"))?;
    Ok(Verdict::Passed)
}
