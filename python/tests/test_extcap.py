# SPDX-License-Identifier: GPL-2.0
"""Wireshark's list of interfaces has those of nodes, and captures from them."""

import os
import shutil
import subprocess
import tempfile

import pytest
from pages import ROOT

import ring3
from ring3 import Port
from ring3.config import unused_name


@pytest.fixture
def tshark(tmp_path):
    if shutil.which("tshark") is None:
        pytest.skip("no tshark on this machine")
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""}
    subprocess.run([ROOT / "tools/ring3-extcap", "--install"], env=env, check=True, stdout=subprocess.DEVNULL)

    def start(*line):
        return subprocess.Popen(["tshark", *line], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def test_list_and_live_capture(tshark):
    link = unused_name("l")
    with ring3.Node(ports=[Port("link", link, addr="192.0.2.1/24")]) as a, \
         ring3.Node(ports=[Port("link", link, addr="192.0.2.2/24")]):
        name = a.status().ports[0].ifname
        listed = tshark("-D").communicate(timeout=60)[0]
        assert f"ring3:{a.name}:{name} ({name} of ring3 node {a.name})" in listed
        with tempfile.TemporaryDirectory() as folder:
            capture = tshark("-i", f"ring3:{a.name}:{name}", "-f", "icmp", "-c", "4", "-w", f"{folder}/x.pcapng")
            with a.start("ping", "-i", "0.1", "192.0.2.2"):
                said = capture.communicate(timeout=60)[1]
            read = tshark("-r", f"{folder}/x.pcapng").communicate(timeout=60)[0]
        assert read.count("Echo (ping)") == 4, said + read
        assert "Error" not in said, said


def test_a_wrong_filter_says_so():
    with ring3.Node() as node:
        line = [ROOT / "tools/ring3-extcap", "--capture", "--extcap-interface", f"ring3:{node.name}:lo", "--fifo", "/dev/null",
                "--extcap-capture-filter", "nonsense here"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "syntax error" in done.stderr, done


def test_a_capture_of_nobody_fails():
    line = [ROOT / "tools/ring3-extcap", "--capture", "--extcap-interface", "ring3:nobody-is-this:x", "--fifo", "/dev/null"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 125 and "no node named `nobody-is-this`" in done.stderr
