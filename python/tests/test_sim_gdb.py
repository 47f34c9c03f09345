# SPDX-License-Identifier: GPL-2.0
"""Folders that `ring3 sim --gdb` is given."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from pages import ROOT

from ring3 import _command

pytestmark = pytest.mark.skipif(
    not Path(_command.command()).with_name("ring3-sim.image").is_file(), reason="no image of virtual time: make sim"
)
SCENARIO = ["sim", ROOT / "examples/sim/three-hosts.yaml", "--gdb", "--data-directory"]


def test_folders_with_spaces(tmp_path):
    """That of the image, whose symbols gdb reads, and that of the simulation, in the line to be typed."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    command = Path(_command.command())
    for name in (command.name, "ring3-gate", "ring3-sim.image"):
        shutil.copy(command.with_name(name), folder / name)
    with subprocess.Popen([folder / command.name, *SCENARIO, folder / "data"], stderr=subprocess.PIPE, text=True) as simulation:
        until = time.monotonic() + 120
        while not (folder / "data/gdb.sock").exists() and time.monotonic() < until:
            time.sleep(0.05)
        words = ["gdb", "-nx", "-batch", "-x", folder / "data/gdb.init", "-ex", "info symbol turn_idle"]
        gdb = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        if gdb.returncode != 0:
            simulation.kill()  # It waits for a debugger for ever.
        said = simulation.communicate(timeout=300)[1]
    assert "turn_idle in section .text" in gdb.stdout, gdb.stdout + gdb.stderr
    assert simulation.returncode == 0 and f"gdb -x '{folder}/data/gdb.init'" in said, said


def test_a_folder_too_deep(tmp_path):
    """Before anything is made there."""
    folder = tmp_path / ("d" * 100)
    done = subprocess.run([_command.command(), *SCENARIO, folder], capture_output=True, text=True, timeout=100)
    assert done.returncode != 0 and "too long for a socket" in done.stderr, done
    assert not folder.exists()
