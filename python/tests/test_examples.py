# SPDX-License-Identifier: GPL-2.0
"""Each task in examples/ does what its head says, checks itself, and leaves nothing behind."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
from pages import ORDINARY_PATH, ROOT, shell_blocks

#: Programs that a head may name; Debian packages of the others are always there.
TOOLS = ["bridge", "curl", "ip", "nft", "pytest", "tayga", "tc", "tcpdump"]


def tasks():
    return sorted(it for it in (ROOT / "examples").iterdir() if it.suffix in (".sh", ".py"))


def line(task):
    if task.name.startswith("test_"):
        return [sys.executable, "-m", "pytest", "-p", "ring3.pytest_plugin", "-p", "no:cacheprovider", "-q", str(task)]
    return [sys.executable, str(task)] if task.suffix == ".py" else ["sh", str(task)]


def what_the_head_exports():
    """PATH and PYTHONPATH, as examples/README.md tells an ordinary user to set them."""
    ((_, text, _),) = shell_blocks("examples/README.md")
    (export,) = [it for it in text.splitlines() if it.startswith("export ")]
    env = {"PATH": ORDINARY_PATH}
    said = subprocess.run(["sh", "-c", f'{export}; echo "$PATH"; echo "$PYTHONPATH"'], cwd=ROOT, env=env, capture_output=True,
                          text=True, check=True).stdout.split("\n")
    return {"PATH": said[0], "PYTHONPATH": said[1]}


def head(task):
    text = task.read_text()
    return text[: text.index("Shows:")] if "Shows:" in text else text[:500]


@pytest.mark.parametrize("task", tasks(), ids=lambda it: it.name)
def test_task(task, tmp_path):
    exports = what_the_head_exports()
    named = [it for it in TOOLS if re.search(rf"\b{it}\b", head(task)) and it != "pytest"]
    lacking = [it for it in named if not shutil.which(it, path=exports["PATH"])]
    if lacking and not os.environ.get("CI"):
        pytest.skip(f"not on this machine: {' '.join(lacking)}")
    with tempfile.TemporaryDirectory() as runtime:
        env = {
            **os.environ, "XDG_RUNTIME_DIR": runtime, "HOME": str(tmp_path), "TMPDIR": str(tmp_path),
            **exports,
        }
        done = subprocess.run(line(task), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL)
        left = subprocess.run(["ring3", "ls"], env=env, capture_output=True, text=True).stdout.splitlines()[1:]
        subprocess.run(["ring3", "down", "--all"], env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
    assert left == [] and os.listdir(tmp_path) == []


def test_file_of_the_proxy():
    done = subprocess.run([f"{ROOT}/bin/ring3", "proxy", "--check", f"{ROOT}/examples/proxy.toml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_list_has_them_all():
    listed = re.findall(r"^\| \[([^\]]*)\]\(", (ROOT / "examples/README.md").read_text(), re.M)
    there = {it.name for it in tasks()} | {"compose/", "forward/", "proxy.toml", "sandbox/run.sh", "sandbox/agent.sh", "sandbox/service.sh", "sim/"}
    assert set(listed) == there
    assert len(tasks()) >= 12


@pytest.mark.parametrize("task", tasks(), ids=lambda it: it.name)
def test_head(task):
    """What it is, what it needs and what it shows stand at its head."""
    assert re.search(rf"{re.escape(task.name)} - \w", head(task))
    assert "Needs " in head(task)
