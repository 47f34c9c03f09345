# SPDX-License-Identifier: GPL-2.0
"""Wireshark's list of interfaces has those of nodes, and captures from them."""

import os
import shutil
import subprocess
import tempfile
import time

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


def comments(tshark, file, filter="frame"):
    said = tshark("-r", file, "-Y", filter, "-T", "fields", "-e", "frame.comment").communicate(timeout=60)[0]
    return said.splitlines()


def test_list_and_live_capture(tshark):
    link = unused_name("l")
    with ring3.Node(ports=[Port("link", link, addr="192.0.2.1/24")]) as a, \
         ring3.Node(ports=[Port("link", link, addr="192.0.2.2/24")]):
        name = a.status().ports[0].ifname
        listed = tshark("-D").communicate(timeout=60)[0]
        assert f"ring3:{a.name}:{name} ({name} of ring3 node {a.name})" in listed
        names = [it["ifname"] for it in a.run("ip", "-j", "link").json()]
        interfaces = [it for it in listed.split() if it.startswith(f"ring3:{a.name}:")]
        assert sorted(interfaces) == sorted(f"ring3:{a.name}:{it}" for it in names), listed
        with tempfile.TemporaryDirectory() as folder:
            capture = tshark("-i", f"ring3:{a.name}:{name}", "-f", "icmp", "-c", "4", "-w", f"{folder}/x.pcapng")
            with a.start("ping", "-i", "0.1", "192.0.2.2"):
                said = capture.communicate(timeout=60)[1]
            read = tshark("-r", f"{folder}/x.pcapng").communicate(timeout=60)[0]
            owners = comments(tshark, f"{folder}/x.pcapng")
        assert read.count("Echo (ping)") == 4, said + read
        assert "Error" not in said, said
        # One process pings, so its raw socket has all replies, too.
        assert len(owners) == 4 and owners[-1].startswith("ping ("), owners


def test_packets_name_their_processes(tshark, tmp_path):
    """pcap=FILE.pcapng: a server's packets are the server's, a client's the client's, those of both ends on one node are told apart."""
    link = unused_name("l")
    file = tmp_path / "b.pcapng"
    with ring3.Node(ports=[Port("link", link, addr="192.0.2.1/24")]) as a, \
         ring3.Node(ports=[Port("link", link, addr="192.0.2.2/24", pcap=str(file))]) as b:
        with b.start("python3", "-m", "http.server", "8000") as server:
            b.wait("tcp", 8000)
            # A connection that lasts: short ones may be over before the tables are read.
            slow = "import socket, time; s = socket.create_connection(('192.0.2.%s', %d)); time.sleep(0.3); s.close()"
            a.run("python3", "-c", slow % (2, 8000))
            with a.start("python3", "-m", "http.server", "8001"):
                a.wait("tcp", 8001)
                client = b.start("python3", "-c", slow % (1, 8001))
                client.result()
            pids = server.pid, client.pid
    for port, pid in zip((8000, 8001), pids):
        owners = comments(tshark, str(file), f"tcp.port == {port}")
        # All of them, also the last ones, whose socket is closed.
        assert len(owners) >= 6 and set(owners) == {f"python3 ({pid})"}, (port, pid, owners)
    # A direction for each.
    directions = tshark("-r", str(file), "-T", "fields", "-e", "frame.packet_flags_direction").communicate(timeout=60)[0].split()
    assert set(directions) == {"0x00000001", "0x00000002"}, directions


def test_capture_ends_with_its_reader_and_its_node(tmp_path):
    with ring3.Node() as node:
        line = [ROOT / "bin/ring3", "capture", node.name, "lo"]
        gone = subprocess.Popen([*line, "-w", tmp_path / "gone.pcapng"])
        stays = subprocess.Popen([*line, "-w", tmp_path / "stays.pcapng", "icmp"])
        while not all((tmp_path / it).exists() and (tmp_path / it).stat().st_size for it in ("gone.pcapng", "stays.pcapng")):
            assert gone.poll() is None and stays.poll() is None
            time.sleep(0.05)
        gone.terminate()
        gone.wait(timeout=20)
        node.run("ping", "-c", "3", "-i", "0.01", "127.0.0.1")
    # The node is down.
    assert stays.wait(timeout=20) == 0
    assert (tmp_path / "stays.pcapng").stat().st_size > 3 * 98
    for wrong, words in (["lo", "-w", "/nonexistent/x"], "No such file"), (["nothing", "-w", "/dev/null"], "no interface `nothing`"):
        with ring3.Node() as node:
            done = subprocess.run([ROOT / "bin/ring3", "capture", node.name, *wrong], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and words in done.stderr, done


def test_a_wrong_filter_says_so():
    with ring3.Node() as node:
        line = [ROOT / "tools/ring3-extcap", "--capture", "--extcap-interface", f"ring3:{node.name}:lo", "--fifo", "/dev/null",
                "--extcap-capture-filter", "nonsense here"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "syntax error" in done.stderr, done


def test_a_capture_of_nobody_fails():
    line = [ROOT / "tools/ring3-extcap", "--capture", "--extcap-interface", "ring3:nobody-is-this:x", "--fifo", "/dev/null"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 1 and "no node named `nobody-is-this`" in done.stderr
