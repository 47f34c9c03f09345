# SPDX-License-Identifier: GPL-2.0
"""Simulated hosts whose clocks of the day are wrong, and a debugger that sees all hosts as one program."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

import ring3
from ring3 import _command

ROOT = Path(__file__).resolve().parents[2]
IMAGE = Path(os.environ.get("RING3", "bin/ring3")).parent / "ring3-sim.image"
pytestmark = pytest.mark.skipif(not IMAGE.is_file(), reason=f"no image of virtual time ({IMAGE}): make sim")

#: By how many us the clock of the day is ahead of the monotonic one, four times. Then how long, by the monotonic clock in us, waits took for
#: a time of the day that was half a second away.
LOOK = """import ctypes, os, signal, time
libc = ctypes.CDLL(None)
class Spec(ctypes.Structure): _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
class Both(ctypes.Structure): _fields_ = [("every", Spec), ("first", Spec)]
def soon():
    at = time.clock_gettime_ns(time.CLOCK_REALTIME) + 500 * 10**6
    return Spec(at // 10**9, at % 10**9)
def sleep():
    assert libc.clock_nanosleep(0, 1, ctypes.byref(soon()), None) == 0
def timerfd():
    fd = libc.timerfd_create(0, 0)
    assert libc.timerfd_settime(fd, 1, ctypes.byref(Both(Spec(), soon())), None) == 0
    os.read(fd, 8)
def timer():
    name = ctypes.c_void_p()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    assert libc.timer_create(0, None, ctypes.byref(name)) == 0
    assert libc.timer_settime(name, 1, ctypes.byref(Both(Spec(), soon())), None) == 0
    signal.sigwait([signal.SIGALRM])
def futex():
    word = ctypes.c_int(0)
    assert libc.syscall(202, ctypes.byref(word), 9 | 128 | 256, 0, ctypes.byref(soon()), None, -1) == -1
for second in range(4):
    print(time.clock_gettime_ns(time.CLOCK_REALTIME) // 1000 - time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)
    time.sleep(1)
for wait in (sleep, timerfd, timer, futex):
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    wait()
    print((time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin) // 1000)
"""


def numbers(results, host):
    return [int(line) for line in results.output(host, "python3").split()]


def test_a_clock_that_is_wrong(tmp_path):
    """It is behind from the start, steps, and then gains 500 us a second; that of another host is right meanwhile. Waits for a time of
    the day end when the host's own clock shows it."""
    scenario = ring3.Scenario("20 s")
    scenario.link("good", "bad")
    scenario.host("bad", clock={"step": "-1.5 s"})
    for host in ("good", "bad"):
        scenario.process(host, "python3", "-c", LOOK, start="1 s")
    scenario.event("1.5 s", clock={"host": "bad", "step": "200 ms"})
    scenario.event("2.5 s", clock={"host": "bad", "drift": "500 ppm"})
    results = scenario.run(tmp_path / "data")
    good, bad = numbers(results, "good"), numbers(results, "bad")
    assert all(ahead == pytest.approx(good[0], abs=2) for ahead in good[:4])
    assert good[4:] == pytest.approx(4 * [500_000], abs=200)
    behind = [one - other for one, other in zip(bad[:4], good)]
    assert behind[:2] == pytest.approx([-1_500_000, -1_300_000], abs=5)
    assert behind[2] == pytest.approx(-1_300_000 + 250, abs=50) and behind[3] - behind[2] == pytest.approx(500, abs=5)
    assert bad[4:] == pytest.approx(4 * [499_750], abs=200)
    assert "bad's clock gains 500 ppm" in [event["what"] for event in results.summary["events"]]


def test_a_clock_that_is_set(tmp_path):
    """By a program: its host's, and neither another host's nor the machine's."""
    show = "date -u +%Y-%m-%dT%H"
    scenario = ring3.Scenario("5 s")
    scenario.link("a", "b")
    scenario.process("a", "sh", "-c", f"date -u -s 2031-05-06T07:08:09; {show}", start="1 s")
    scenario.process("b", "sh", "-c", show, start="2 s")
    before = time.time() - time.monotonic()
    results = scenario.run(tmp_path / "data")
    assert results.output("a", "sh").splitlines()[-1] == "2031-05-06T07" and results.output("b", "sh") == "2000-01-01T00\n"
    assert time.time() - time.monotonic() == pytest.approx(before, abs=10)


#: What Linux says to times that can't be, and waits for ever: a line each.
EDGES = """import ctypes, errno, os, select, threading, time
libc = ctypes.CDLL(None, use_errno=True)
class Spec(ctypes.Structure): _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
class Both(ctypes.Structure): _fields_ = [("every", Spec), ("first", Spec)]
class Timex(ctypes.Structure): _fields_ = [("modes", ctypes.c_uint), ("x", ctypes.c_long * 8), ("time", Spec), ("y", ctypes.c_long * 30)]
NEVER = 9223372036
def err(ret): return errno.errorcode[ctypes.get_errno()] if ret == -1 else ret
word = ctypes.c_int(0)
threading.Thread(target=lambda: (time.sleep(3), libc.syscall(202, ctypes.byref(word), 1 | 128, 1))).start()
print(err(libc.syscall(202, ctypes.byref(word), 9 | 128 | 256, 0, ctypes.byref(Spec(NEVER, 0)), None, -1)))
fd = libc.timerfd_create(0, os.O_NONBLOCK)
print(err(libc.timerfd_settime(fd, 1, ctypes.byref(Both(Spec(), Spec(NEVER, 0))), None)), select.select([fd], [], [], 3)[0])
print(err(libc.timerfd_settime(fd, 1, ctypes.byref(Both(Spec(), Spec(0, 1))), None)), len(select.select([fd], [], [], 3)[0]))
now = int(time.time())
print(libc.clock_nanosleep(5, 1, ctypes.byref(Spec(now + 1, 0)), None) == errno.EOPNOTSUPP)
for seconds in (2**63 - 1, -2**63, 9300000000, -now - 1): print(err(libc.clock_adjtime(0, ctypes.byref(Timex(0x100, time=Spec(seconds, 0))))))
print(err(libc.clock_settime(0, ctypes.byref(Spec(0, 0)))), int(time.time()) - now)
"""


def test_times_that_cannot_be(tmp_path):
    """A wait for ever is none that is over, whatever the clock was set to; a clock is not set to before the start of the machine."""
    scenario = ring3.Scenario("20 s")
    scenario.link("behind", "slow")
    scenario.host("behind", clock={"step": "-2 s"})
    scenario.host("slow", clock={"drift": "-100 ppm"})
    for host in ("behind", "slow"):
        scenario.process(host, "python3", "-c", EDGES, start="1 s")
    results = scenario.run(tmp_path / "data")
    for host in ("behind", "slow"):
        lines = results.output(host, "python3").splitlines()
        assert lines[:4] == ["0", "0 []", "0 1", "True"], (host, lines)
        assert lines[4:8] == 4 * ["EINVAL"] and lines[8] == "EINVAL 0", (host, lines)


def test_no_clocks_in_real_time(tmp_path):
    scenario = ring3.Scenario("1 s")
    scenario.link("a", "b")
    scenario.host("a", clock={"drift": 10})
    with pytest.raises(ring3.Ring3Error, match="needs virtual time"):
        scenario.run(tmp_path / "data", real_time=True)


SYMBOLS = ROOT / "build/kernel-sim/vmlinux"


def line(folder):
    """Simulates three hosts in a row."""
    return [_command.command(), "sim", ROOT / "examples/sim/three-hosts.yaml", "--data-directory", folder]


def debugged(tmp_path, script):
    """The simulation, gdb with this script, and what the simulation said."""
    with subprocess.Popen([*line("debugged"), "--gdb"], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as simulation:
        until = time.monotonic() + 120
        while not (tmp_path / "debugged/gdb.sock").exists() and time.monotonic() < until:
            time.sleep(0.05)
        words = ["gdb", "-nx", "-batch", "-x", "debugged/gdb.init", "-x", script]
        gdb = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        return simulation, gdb, simulation.communicate(timeout=300)[1]


@pytest.mark.skipif(not SYMBOLS.is_file(), reason=f"no {SYMBOLS}: the image came from the cache")
def test_a_packet_followed_by_gdb(tmp_path):
    """The walk-through of docs/sim.md: one datagram, three hosts. The run is the same as without a debugger."""
    simulation, gdb, said = debugged(tmp_path, ROOT / "examples/sim/follow.gdb")
    assert simulation.returncode == 0, said + gdb.stdout + gdb.stderr
    for text in (
        "client: udp_sendmsg at 0.000000 s",
        "middle: ip_forward at 0.010000 s",
        '"eth0" is the interface that it came by',
        "server: udp_rcv at 0.040000 s",
        "the same packet: 1",
    ):
        assert text in gdb.stdout, gdb.stdout + gdb.stderr
    subprocess.run(line("plain"), cwd=tmp_path, check=True, capture_output=True)
    result = [json.loads((tmp_path / folder / "result.json").read_text()) for folder in ("debugged", "plain")]
    assert result[0] == result[1]


#: Breakpoints in the nap of the kernel, in what a stopped thread itself calls, and after a thread that died on its way to a stop.
EDGES_OF_GDB = """
tbreak *udp_sendmsg
continue
delete
break *ring3_host_nap
tbreak *ip_forward
continue
printf "after a nap\\n"
delete
break *turn_trap
python
try: gdb.execute("continue")
except gdb.error as why: print("refused:", why)
gdb.execute("delete")
end
set {unsigned int}&turn_debug = 2 | 4194303 << 2
tbreak *udp_rcv
continue
printf "after the dead\\n"
delete
detach
"""


@pytest.mark.skipif(not SYMBOLS.is_file(), reason=f"no {SYMBOLS}: the image came from the cache")
def test_breakpoints_that_could_have_no_end(tmp_path):
    """Where a stopped thread itself comes by, and where a thread was killed as it was about to stop."""
    words = tmp_path / "words.gdb"
    words.write_text(EDGES_OF_GDB)
    simulation, gdb, said = debugged(tmp_path, words)
    assert simulation.returncode == 0, said + gdb.stdout + gdb.stderr
    for text in ("after a nap", "refused: ", "after the dead"):
        assert text in gdb.stdout, gdb.stdout + gdb.stderr
