// SPDX-License-Identifier: GPL-2.0
//! What programs see of the machine in virtual time is the same in each run; and programs that wait for each other end it.

use super::sim_cmd::{LIMIT, Simulation, twice};
use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec;
use crate::node::ring3;
use crate::scratch::Scratch;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sim_sees_machine".into(), machine),
        trial("sim_sees_tools".into(), tools),
        trial("sim_sees_folder".into(), folder),
        trial("sim_sees_localhost".into(), localhost),
        trial("sim_sees_deadlock".into(), deadlock),
        trial("sim_sees_late".into(), late),
        trial("sim_sees_keepalive".into(), keepalive),
    ]
}

/// Processes, processor, memory, and times of files: of one that was written, a directory, a machine's file that is hidden by the
/// simulation's, and one that is touched.
const LOOKS: &str = r#"
import os, subprocess, time
for name in ('self/stat', 'self/status', 'self/statm', 'cpuinfo', 'uptime'):
    print(open('/proc/' + name).read())
print(open('/proc/%d/stat' % os.getppid()).read().split()[21], os.cpu_count(), os.sched_getaffinity(0))
open('x', 'w').write('a'); time.sleep(1.5); open('x', 'a').write('b'); os.mkdir('d'); time.sleep(3)
print('written', os.stat('x').st_mtime_ns)
for name in ('x', 'd', '.', '..', '/tmp', '/etc/hosts', '/proc/self/stat'):
    s = os.stat(name); print(name, s.st_mtime_ns, s.st_ctime_ns, s.st_atime_ns)
os.utime('x'); print('touched', os.stat('x').st_mtime_ns)
os.utime('x', (2208988800, 2208988800)); print('ahead', os.stat('x').st_mtime_ns)
for i in range(20):
    os.mkdir('e%d' % i); open('e%d/a' % i, 'w'); a = os.stat('e%d' % i).st_mtime_ns; time.sleep(5)
    open('e%d/b' % i, 'w'); print('changed', os.stat('e%d' % i).st_mtime_ns - a > 4e9)
p = os.fork()
if p == 0: os._exit(0)
time.sleep(1)
for name in ('%d/stat' % p, '%d/task/%d/stat' % (p, p), '1/stat', '1/status'):
    print(open('/proc/' + name).read())
os.waitpid(p, 0)
try: open('/proc/%d/stat' % p)
except FileNotFoundError: print('gone')
d = os.open('/dev', os.O_RDONLY); print('random', os.read(os.open('urandom', os.O_RDONLY, dir_fd=d), 8).hex())
d = os.open('/sys/devices/system/cpu', os.O_RDONLY); print('cpus', os.read(os.open('online', os.O_RDONLY, dir_fd=d), 8))
open('shared', 'w').close(); os.chmod('shared', 0o666); os.chmod('.', 0o777)
p = os.fork()
if p == 0:
    if os.getuid() == 0: os.setgid(65534); os.setuid(65534)
    fd = os.open('shared', os.O_WRONLY)
    try: os.utime(fd); os._exit(0)
    finally: os._exit(1)
print('touches', os.waitpid(p, 0)[1])
print(*[line for line in subprocess.run(['/bin/true'], env={'LD_SHOW_AUXV': '1'}, capture_output=True, text=True)
        .stdout.splitlines() if 'HWCAP' in line or 'PLATFORM' in line or 'STKSZ' in line])
"#;

/// procps's tools, which end where something is missing in /proc.
fn tools() -> Checked {
    if let Some(why) = missing(&["ps", "vmstat", "top", "uptime"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run_with(
        "general: {stop_time: 5 s, heartbeat_interval: null}\nlinks: [{between: [a, b]}]\nhosts:\n  b: {}\n  a:\n    processes:\n    \
         - {path: sleep, args: 4}\n    - {path: ps, args: aux, start_time: 1 s}\n    \
         - {path: ps, args: -ef, start_time: 2 s}\n    - {path: vmstat, start_time: 3 s}\n    \
         - {path: top, args: -b -n 1, start_time: 3 s}\n    - {path: uptime, start_time: 3 s}\n",
        &[],
    )?;
    simulation.ended_well()?;
    for (name, words) in [
        ("ps.1001", "00:00   0:00 sleep 4"),
        ("ps.1002", "sleep 4"),
        ("vmstat.1003", "-----cpu-----"),
        ("top.1004", "%Cpu(s):"),
        ("uptime.1005", "up 0 min"),
    ] {
        let text = simulation.read(&format!("hosts/a/{name}.stdout"))?;
        ensure(text.contains(words), || format!("{name}: {text}"))?;
    }
    Ok(Verdict::Passed)
}

fn machine() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let scratch = Scratch::new()?;
    let program = LOOKS.replace('\n', "\n        ");
    let file = scratch.write(
        "scenario.yaml",
        format!(
            r#"
general: {{stop_time: 200 s, heartbeat_interval: null}}
network: {{graph: {{type: 1_gbit_switch}}}}
hosts:
  one:
    network_node_id: 0
    processes:
    - path: python3
      args:
      - -c
      - |{program}
      start_time: 2 s
"#
        ),
    )?;
    let outcome = twice(&scratch, &file, &[])?;
    ensure(outcome.ok(), || outcome.report())?;
    let text = std::fs::read_to_string(scratch.file("shadow.data/hosts/one/python3.1000.stdout"))
        .map_err(|why| why.to_string())?;
    // 2 s and 1.5 s after 2000-01-01, midnight UTC; what Python does before that is some thousand calls of 1 us.
    let time = |what: &str| -> Result<f64, String> {
        let line = text.lines().find(|line| line.starts_with(what));
        let word = line.and_then(|line| line.split(' ').nth(1));
        let ns: f64 = word
            .and_then(|word| word.parse().ok())
            .ok_or(text.clone())?;
        Ok(ns / 1e9 - 946_684_800.0)
    };
    ensure(
        (3.5..3.52).contains(&time("written")?) && (6.5..6.52).contains(&time("touched")?),
        || text.clone(),
    )?;
    ensure(
        text.contains("(python3) R ") && text.contains("model name\t: ring3 vCPU"),
        || text.clone(),
    )?;
    ensure(
        text.contains("\n1 {0}\n") || text.contains(" 1 {0}\n"),
        || format!("one CPU: {text}"),
    )?;
    ensure(
        text.contains("\nahead 2208988800000000000\n")
            && text.matches("changed True\n").count() == 20
            && text.contains("\ngone\n")
            && text.contains("\ncpus b'0\\n'\n")
            && text.contains("\ntouches 0\n"),
        || format!("files, processes, folders: {text}"),
    )?;
    ensure(
        text.contains("AT_HWCAP:") && text.contains("7888111"),
        || format!("the auxiliary vector: {text}"),
    )?;
    Ok(Verdict::Passed)
}

/// Looks at each folder of the path that it is in, as shells do, and says what time it is, and whether a file that it writes has the
/// time of its host's clock, which is wrong.
const PATH: &str = r#"
general: {stop_time: 5 s, heartbeat_interval: null}
network: {graph: {type: 1_gbit_switch}}
hosts:
  one:
    network_node_id: 0
    clock: {step: 100 s}
    processes:
    - path: python3
      args:
      - -c
      - |
        import os, time
        path = os.getcwd()
        while path != '/':
            os.stat(path); path = os.path.dirname(path)
        print(time.monotonic_ns())
        open('x', 'w').write('x')
        print('ahead', abs(os.stat('x').st_mtime - time.time()) < 1)
"#;

/// How deep the data folder lies moves no call of a program.
fn folder() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let scratch = Scratch::new()?;
    let file = scratch.write("scenario.yaml", PATH)?;
    let run = |data: &str| -> Result<String, String> {
        let mut command = ring3(["sim", "--data-directory"]);
        command.arg(scratch.file(data)).arg(&file);
        let outcome = exec::run(&mut command, LIMIT)?;
        ensure(outcome.ok(), || outcome.report())?;
        let said = scratch.file(data).join("hosts/one/python3.1000.stdout");
        std::fs::read_to_string(said).map_err(|why| why.to_string())
    };
    let (near, far) = (run("near")?, run("far/below/this/folder/and/that")?);
    ensure(near == far && near.ends_with("\nahead True\n"), || {
        format!("near: {near}far: {far}")
    })?;
    Ok(Verdict::Passed)
}

/// A host without IPv6 has ::1 all the same, and no other such address.
fn localhost() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let program = "import socket
        server = socket.create_server(('::1', 80), family=socket.AF_INET6)
        print(socket.create_connection(('localhost', 80)).getpeername()[0])
        print(*[line.split()[-1] for line in open('/proc/net/if_inet6')])";
    let text = format!(
        "general: {{stop_time: 5 s, heartbeat_interval: null}}\nlinks: [{{between: [a, b]}}]\nhosts:\n  b: {{}}\n  a:\n    processes:\n    \
         - path: python3\n      args:\n      - -c\n      - |\n        {program}\n"
    );
    for options in [&[][..], &["--real-time"]] {
        let simulation = Simulation::run_with(&text, options)?;
        simulation.ended_well()?;
        let said = simulation.read("hosts/a/python3.1000.stdout")?;
        ensure(said == "::1\nlo\n", || format!("{options:?}: {said}"))?;
    }
    Ok(Verdict::Passed)
}

/// Two programs that wait for each other, and a server that nobody asks: no timer is left.
const STUCK: &str = r#"
general: {stop_time: 1 h, heartbeat_interval: 10 s}
network: {graph: {type: 1_gbit_switch}}
hosts:
  server:
    network_node_id: 0
    processes:
    - {path: python3, args: ["-c", "import socket; s = socket.create_server(('', 80)); s.accept()[0].recv(1)"], expected_final_state: running}
  one:
    network_node_id: 0
    processes:
    - {path: python3, args: ["-c", "import socket; socket.create_connection(('server', 80)).recv(1)"], start_time: 5 s}
"#;

fn deadlock() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run_with(STUCK, &[])?;
    let said = &simulation.outcome.stdout;
    ensure(
        simulation.outcome.end == exec::End::Exit(1)
            && said.contains("\"deadlock\": true")
            && said.contains("\"host\": \"one\"")
            && said.contains("\"program\": \"python3\"")
            && said.contains("\"call\": \"recvfrom\"")
            && !said.contains("\"stop\": 3600"),
        || simulation.outcome.report(),
    )?;
    Ok(Verdict::Passed)
}

/// One that sleeps beyond the stop time is late, and in no deadlock.
fn late() -> Checked {
    let simulation = Simulation::run_with(
        r#"
general: {stop_time: 900 s, heartbeat_interval: 10 s}
network: {graph: {type: 1_gbit_switch}}
hosts:
  one:
    network_node_id: 0
    processes: [{path: sleep, args: 1000}]
"#,
        &[],
    )?;
    let said = &simulation.outcome.stdout;
    ensure(
        simulation.outcome.end == exec::End::Exit(1)
            && said.contains("\"deadlock\": false")
            && said.contains("\"call\": \"clock_nanosleep\"")
            && said.contains("\"stop\": 900000000000"),
        || simulation.outcome.report(),
    )?;
    Ok(Verdict::Passed)
}

/// SO_KEEPALIVE takes 7,875 s or an eighth more to tell that a peer is gone: a wait that is no deadlock before. The peer is cut off and says nothing.
fn keepalive() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run_with(
        r#"
general: {stop_time: 3 h, heartbeat_interval: 100 s}
network: {graph: {type: 1_gbit_switch}}
hosts:
  server:
    network_node_id: 0
    processes:
    - {path: python3, args: ["-c", "import socket; s = socket.create_server(('', 80)); s.accept()[0].recv(1)"], expected_final_state: running}
  one:
    network_node_id: 0
    processes:
    - path: python3
      args:
      - -c
      - |
        import socket, time
        s = socket.create_connection(('server', 80))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        begin = time.monotonic()
        try:
            s.recv(1)
        except TimeoutError:
            print('gone', 7800 < time.monotonic() - begin < 9000)
      start_time: 5 s
events:
- {at: 20 s, partition: [[one], [server]]}
"#,
        &[],
    )?;
    ensure(simulation.outcome.ok(), || simulation.outcome.report())?;
    let said = simulation.read("hosts/one/python3.1000.stdout")?;
    ensure(said == "gone True\n", || said.clone())?;
    Ok(Verdict::Passed)
}
