# SPDX-License-Identifier: GPL-2.0
"""Scenarios made by a program, in virtual time. What answers is a simulated host: its address is no other's."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ring3
from ring3 import _command

IMAGE = Path(os.environ.get("RING3", "bin/ring3")).parent / "ring3-sim.image"
needs_image = pytest.mark.skipif(not IMAGE.is_file(), reason=f"no image of virtual time ({IMAGE}): make sim")

#: Sends a byte and waits for one; says how long that took, in ms of virtual time.
ASK = """
import socket, time
out = socket.create_connection(("server", 80))
begin = time.monotonic()
out.sendall(b"?")
out.recv(1)
print((time.monotonic() - begin) * 1000)
"""
ANSWER = """
import socket
door = socket.create_server(("", 80))
stream, _ = door.accept()
stream.recv(1)
stream.sendall(b"!")
"""


def round_trip(delay, loss="0"):
    scenario = ring3.Scenario("3 s", sample="500 ms")
    scenario.link("client", "server", delay=f"{delay} ms", rate="100 Mbit", loss=loss)
    scenario.process("server", "python3", "-c", ANSWER)
    scenario.process("client", "python3", "-c", ASK, start="1 s")
    return scenario


def milliseconds(results):
    return {"rtt": float(results.output("client", "python3"))}


@needs_image
def test_scenario_and_sweep(tmp_path):
    points = [{"delay": 5}, {"delay": 20}, {"delay": 20, "seed": 7}]
    done = ring3.sweep(round_trip, points, tmp_path / "sweep", jobs=2)
    rows = done.rows(milliseconds)
    assert [row["delay"] for row in rows] == [5, 20, 20]
    # Virtual: two ways, and what the programs' calls cost.
    assert 10 <= rows[0]["rtt"] < 10.5 and 40 <= rows[1]["rtt"] < 40.5
    assert [run.results.summary["seed"] for run in done] == [1, 1, 7]
    table = done[0].results.rows("interfaces")
    assert {row["host"] for row in table} >= {"client", "server"}
    assert all(isinstance(row["time"], float) and isinstance(row["rx_bytes"], int) for row in table)


class Counting(ThreadPoolExecutor):
    """Another executor, which is the caller's to end."""

    submitted = 0

    def submit(self, what, /, *args, **keys):
        self.submitted += 1
        return super().submit(what, *args, **keys)


def everything(results):
    """The files of a run that have to be the same everywhere."""
    tables = sorted(results.folder.glob("*.csv")) + sorted(results.folder.glob("hosts/*/*.std*"))
    return {str(path.relative_to(results.folder)): path.read_bytes() for path in [*tables, results.folder / "result.json"]}


@needs_image
def test_sweep_by_another_executor(tmp_path):
    points = [{"delay": 5}, {"delay": 5}, {"delay": 20}]
    with Counting(2) as executor:
        done = ring3.sweep(round_trip, points, tmp_path / "sweep", executor=executor)
        assert executor.submit(int, "7").result() == 7 and executor.submitted == 4
    files = [everything(run.results) for run in done]
    assert len(files[0]) >= 6 and files[0] == files[1] != files[2]


@needs_image
def test_run_that_fails(tmp_path):
    scenario = ring3.Scenario("1 s")
    scenario.link("a", "b")
    scenario.process("a", "sh", "-c", "exit 3")
    with pytest.raises(ring3.Ring3Error, match="exited: 3"):
        scenario.run(tmp_path / "one")
    assert not scenario.run(tmp_path / "two", check=False).summary["ok"]
    scenario.hosts["a"]["processes"][0]["expected_final_state"] = {"exited": 3}
    assert scenario.run(tmp_path / "three").summary["ok"]


def test_mistakes_are_named(tmp_path):
    scenario = ring3.Scenario("1 s")
    scenario.link("a", "b", rate="fast")
    with pytest.raises(ring3.Ring3Error, match="rate"):
        scenario.run(tmp_path / "out")


#: In the place of Dask's: two workers, which are threads here. The second one leaves another file, if asked to. LOST: a worker is lost
#: with each run after the comparison. BLIND: workers don't see the folder.
DISTRIBUTED = """
import os
from concurrent.futures import ThreadPoolExecutor
def lose(*words):
    raise RuntimeError("KilledWorker")
class Client:
    def __init__(self, address, timeout):
        if address == "tcp://nobody:1":
            raise OSError("timed out")
        self.pool = ThreadPoolExecutor(2)
    def scheduler_info(self):
        return {"workers": {name: {"nthreads": 1} for name in ("tcp://one:2", "tcp://two:2")}}
    def submit(self, what, *args, workers=None, pure=True):
        assert not pure
        if workers == ["tcp://two:2"] and "OTHER" in os.environ:
            args = ([*args[0][:-1], os.environ["OTHER"]], *args[1:])
        if "BLIND" in os.environ:
            args = ([*args[0][:-1], "/nowhere/faults.json"], *args[1:])
        with open(os.environ["CALLS"], "a") as file:
            file.write(f"{workers}\\n")
        if "LOST" in os.environ and workers is None:
            what = lose
        return self.pool.submit(what, *args)
"""


@needs_image
def test_search_on_a_cluster(tmp_path, monkeypatch):
    """The seeds of a search run on the workers, after each has shown that it leaves the same for the first one."""
    (tmp_path / "distributed.py").write_text(DISTRIBUTED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.chdir(tmp_path)
    round_trip(5).write("scenario.yaml")

    def search(folder, address):
        line = [_command.command(), "sim", "scenario.yaml", "--seeds", "3..6", "--faults", "loss", "--dask", address, "-d", folder]
        return subprocess.run(line, capture_output=True, text=True)

    done = search("found", "tcp://all:1")
    assert "2 workers, all with the same results of seed 3" in done.stderr and "of 4 seeds fail" in done.stdout, done
    runs = json.loads((tmp_path / "found/search.json").read_text())
    assert [run["seed"] for run in runs] == [3, 4, 5, 6]
    calls = (tmp_path / "calls").read_text().split("\n")[:-1]
    assert calls == ["['tcp://one:2']", "['tcp://two:2']"] + 4 * ["None"]
    # A worker that is given other faults has other results.
    (tmp_path / "other.json").write_text(
        json.dumps([{"label": "x", "events": [{"at": {"secs": 1, "nanos": 0}, "what": {"loss": ["client", 0.5]}}]}])
    )
    monkeypatch.setenv("OTHER", str(tmp_path / "other.json"))
    done = search("differs", "tcp://all:1")
    assert done.returncode != 0 and "have different results for one seed" in done.stderr, done
    monkeypatch.delenv("OTHER")
    # Workers that can't run it have no results to be equal.
    monkeypatch.setenv("BLIND", "1")
    done = search("blind", "tcp://all:1")
    assert done.returncode != 0 and "worker tcp://one:2 cannot run the scenario: " in done.stderr, done
    monkeypatch.delenv("BLIND")
    # A worker that is lost says nothing of its seed.
    monkeypatch.setenv("LOST", "1")
    done = search("lost", "tcp://all:1")
    assert done.returncode != 0 and "a worker failed: RuntimeError('KilledWorker')" in done.stderr, done
    assert "seeds fail" not in done.stdout, done
    # The corrected command works: nothing lies where the results are to go.
    done = search("nobody", "tcp://nobody:1")
    assert done.returncode != 0 and "no scheduler at tcp://nobody:1: timed out" in done.stderr, done
    assert not (tmp_path / "nobody").exists()
