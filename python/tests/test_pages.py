# SPDX-License-Identifier: GPL-2.0
"""What docs/python.md and docs/testing.md show is run as it stands there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, block, blocks

ENV = {**os.environ, "PYTHONPATH": f"{ROOT}/python"}


@pytest.mark.parametrize("heading, text", blocks("docs/python.md", "python"))
def test_python_page(heading, text, tmp_path):
    if "frame(" in text:
        pytest.importorskip("pandas", reason="data frames are optional")
    if "Scenario(" in text and not Path(ENV.get("RING3", f"{ROOT}/bin/ring3")).with_name("ring3-sim.image").is_file():
        pytest.skip("no image of virtual time: make sim")
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_testing_page(tmp_path):
    (tmp_path / "test_page.py").write_text(block("docs/testing.md", "python", "pytest"))
    line = [sys.executable, "-m", "pytest", "-q", "-p", "ring3.pytest_plugin", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(line, env=ENV, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "3 passed" in done.stdout, done.stdout


def test_networks_of_the_page_are_all_there():
    import re

    from ring3 import presets

    page = (ROOT / "docs/testing.md").read_text()
    table = page[page.index("| network |") : page.index("| NAT |")]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall("`([^`]*)`", "".join(rows))) == sorted(presets.PRESETS)
