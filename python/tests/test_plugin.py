# SPDX-License-Identifier: GPL-2.0
"""How the plugin's fixtures end their nodes. The command that they run notes what it was asked for."""

import os
import subprocess
import sys
import tempfile

from pages import ROOT

import ring3
from ring3 import _command

TESTS = """
import os, select, signal
import pytest, ring3

def test_node(node):
    print(node.name)

def test_net(net):
    net.link(*net.hosts("a", "b"))
    print(net.up().node.name)

def test_killed(node):
    pid = node.status().pid
    keeper = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([keeper], [], [], 10)[0]

def test_taken_down(node):
    node.down()

@pytest.mark.ring3("pair")
def test_net_taken_down(net):
    net.up()
    net.down()

class TestSupervised:
    @pytest.fixture
    def ring3_options(self):
        return {"mem": "64M", "restart": "on-failure"}

    def test_node(self, node):
        print(node.name)
"""


def run(tmp_path, *words):
    wrapper = tmp_path / "noting"
    wrapper.write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/asked\nexec {_command.command()} "$@"\n')
    wrapper.chmod(0o755)
    (tmp_path / "test_it.py").write_text(TESTS)
    line = [sys.executable, "-m", "pytest", "-p", "ring3.pytest_plugin", "-p", "no:cacheprovider", "-q", "-rP", "test_it.py", *words]
    # The path of a node's socket may not be long.
    with tempfile.TemporaryDirectory() as runtime:
        env = {**os.environ, "RING3": str(wrapper), "PYTHONPATH": f"{ROOT}/python", "XDG_RUNTIME_DIR": runtime}
        done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
        left = os.listdir(f"{runtime}/ring3/nodes")
    return done.stdout, (tmp_path / "asked").read_text().split(), left


def test_no_command_ends_a_node(tmp_path):
    """It would be a fifth of what a fixture costs."""
    said, asked, left = run(tmp_path, "-k", "test_node and not TestSupervised or test_net and not taken")
    assert "2 passed" in said and "warning" not in said, said
    assert asked == ["up", "up"] and left == []


def test_nodes_that_are_not_there_any_more(tmp_path):
    """What is left of one that was killed is removed; one that the test itself has taken down is not the fixture's to end."""
    said, asked, left = run(tmp_path, "-k", "killed or taken_down")
    assert "3 passed" in said and ", 1 warning in" in said, said
    assert "the node of test_it.py::test_taken_down did not go down: no node named" in said, said
    assert sorted(asked) == ["down"] * 4 + ["stat"] + ["up"] * 3 and left == []


def test_a_node_that_is_started_again_has_no_one_process(tmp_path):
    said, asked, left = run(tmp_path, "-k", "TestSupervised")
    assert "1 passed" in said and "warning" not in said, said
    assert asked == ["up", "down"] and left == []


def test_a_process_that_does_not_end_is_told_by_the_command(monkeypatch):
    """As one that has too much to do: SIGTERM is not heard."""
    monkeypatch.setattr(ring3.node, "DOWN", 0.01)
    monkeypatch.setattr(ring3.node.signal, "pidfd_send_signal", lambda *_: None)
    node = ring3.Node(mem="64M")
    node._is_held = True
    down = node.up().begin_down()
    assert down.command is None
    down.finish()
    assert node.name not in [it.name for it in ring3.nodes()]
