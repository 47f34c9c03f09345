# SPDX-License-Identifier: GPL-2.0
"""`ring3 perf report` names the functions of a node's kernel, which perf alone shows as numbers."""

import re
import shutil
import subprocess

import pytest

import ring3
from ring3 import _command

#: Datagrams on a node's loopback: the work of its kernel, whatever else the machine does meanwhile.
WORK = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0))
for _ in range(400000): s.sendto(b"x" * 100, s.getsockname()); s.recv(200)
"""
ROW = re.compile(r"%\s+\[?memfd:ring3:(\S+) \(deleted\)\s+\[\.\] (\S+)")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    if shutil.which("perf") is None:
        pytest.skip("no perf on this machine")
    path = tmp_path_factory.mktemp("perf") / "perf.data"
    with ring3.Node(mem="256M") as node:
        on_node = [_command.command(), "exec", node.name, "--", "python3", "-c", WORK]
        # Samples of the program's own time, not of the clock on the wall.
        line = ["perf", "record", "-e", "cpu-clock:u", "-F", "500", "-o", str(path), "--", *on_node]
        done = subprocess.run(line, capture_output=True, text=True, timeout=300)
        if done.returncode != 0 and re.search("paranoid|Permission|permitted|not supported", done.stderr):
            pytest.skip(f"this host refuses perf: {done.stderr.splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        yield node, path


def rows(*line):
    done = subprocess.run([*line, "--stdio", "--sort", "dso,symbol"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return ROW.findall(done.stdout)


def test_names_of_a_nodes_kernel(recorded):
    node, path = recorded
    bare = rows("perf", "report", "-i", path)
    assert bare and all(symbol.startswith("0x") for _, symbol in bare), bare
    named = rows(_command.command(), "perf", "report", "-i", path)
    assert {name for name, _ in named} == {node.name}
    assert not any(symbol.startswith("0x") for _, symbol in named), named
    assert any("udp" in symbol for _, symbol in named), named


def test_an_image_by_name(recorded):
    """As for a node that is gone, whose image is not the installed one."""
    node, path = recorded
    named = rows(_command.command(), "perf", "--image", _command.ask_json("stat", node.name, "--json")["image"], "report", "-i", path)
    assert any("udp" in symbol for _, symbol in named), named


def test_mistakes(tmp_path):
    def said(*line):
        done = subprocess.run([_command.command(), "perf", *line], capture_output=True, text=True, cwd=tmp_path)
        return done.returncode, done.stderr

    assert said("record", "true")[0] == 2
    status, text = said("report")
    assert status == 1 and "cannot read perf.data" in text
    (tmp_path / "perf.data").write_text("nothing")
    status, text = said("report")
    assert status == 1 and "no node's kernel in perf.data" in text
    (tmp_path / "perf.data").write_text("/memfd:ring3:n (deleted)")
    status, text = said("--image", "/bin/true", "report")
    assert status == 1 and "not an image with symbols" in text
