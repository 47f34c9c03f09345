# SPDX-License-Identifier: GPL-2.0
"""The walk-through of docs/sim.md, and its other pieces of configuration."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from pages import ROOT, blocks, shell_blocks

from ring3 import _command

WALK = "A walk-through"


def sim(folder, *line):
    with_runtime = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    done = subprocess.run([_command.command(), "sim", *line], cwd=folder, env=with_runtime, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def first_and_events():
    return [text for heading, text in blocks("docs/sim.md", "yaml") if heading == WALK]


def test_walk_through(tmp_path, first_and_events):
    first, events = first_and_events
    (tmp_path / "first.yaml").write_text(first)
    sim(tmp_path, "--check", "first.yaml")
    assert sorted(os.listdir(tmp_path)) == ["first.yaml"]
    # What the page adds for the second run: losses; and for root a capture.
    bare = "  client:\n    network_node_id: 0\n"
    assert bare in first
    is_root = os.geteuid() == 0
    text = first.replace(bare, bare + "    host_options: {pcap_enabled: true}\n") if is_root else first
    (tmp_path / "first.yaml").write_text(text + events)
    sim(tmp_path, "--real-time", "first.yaml")
    host = tmp_path / "shadow.data/hosts/client"
    assert "Directory listing" in (host / "curl.1000.stdout").read_text()
    if is_root:
        assert (host / "eth0.pcap").stat().st_size > 500
    assert (tmp_path / "shadow.data/report.html").is_file()
    assert (tmp_path / "shadow.data/tcp.csv").is_file()


def test_links_of_the_page(tmp_path):
    (text,) = [text for heading, text in blocks("docs/sim.md", "yaml") if heading == "`links`"]
    whole = f"general: {{stop_time: 1 s}}\n{text}hosts:\n  home: {{}}\n  router: {{}}\n"
    (tmp_path / "links.yaml").write_text(whole)
    sim(tmp_path, "--check", "links.yaml")


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server on this machine")
def test_search_of_the_page(tmp_path):
    """As it stands there, but for two seeds in the place of a hundred."""
    image = Path(_command.command()).with_name("ring3-sim.image")
    if not image.is_file():
        pytest.skip(f"no {image}: make sim")
    ((text, mark),) = [(text, mark) for heading, text, mark in shell_blocks("docs/sim.md") if heading == "Seeds that fail"]
    assert mark == "seeds" and text.count(" --seeds 1..100 ") == 1
    shutil.copy(ROOT / "examples/sim/sentinel.yaml", tmp_path)
    (tmp_path / "check.sh").write_text("#!/bin/sh\ntest -s $1/result.json\n")
    (tmp_path / "check.sh").chmod(0o755)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "PATH": f"{os.path.dirname(_command.command())}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-e"], input=text.replace("1..100", "1..2"), cwd=tmp_path, env=env, capture_output=True,
                          text=True, timeout=600)
    # Whether a seed's faults make Redis lose its writes is not for this test to say.
    assert done.returncode in (0, 1) and " of 2 seeds fail\n" in done.stdout, done
    assert len(json.loads((tmp_path / "sentinel.data/search.json").read_text())) == 2


def test_every_piece_is_known():
    headings = sorted(heading for heading, _ in blocks("docs/sim.md", "yaml"))
    assert headings == [WALK, WALK, "`links`"], f"{ROOT}/docs/sim.md has pieces that no test here reads"
