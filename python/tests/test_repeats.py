# SPDX-License-Identifier: GPL-2.0
"""`tools/test` repeats what failed, and loses nothing of it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from pages import ROOT

SUM = "test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s"


def listed(*names: str, passed: int) -> str:
    """How libtest ends where something failed."""
    block = "\n".join(f"    {name}" for name in names)
    end = SUM.format(word="FAILED", passed=passed, failed=len(names))
    return f"failures:\n\n---- {names[0]} ----\nexit 1\n\n\nfailures:\n{block}\n\n{end}"


CASES = {
    # Only what failed runs again.
    "two failed": ("test a ... FAILED\ntest b ... FAILED\n" + listed("a", "b", passed=98), 101, "100 passed, 0 failed", "--only a --only b"),
    # A child's words are in the line of one of them.
    "a garbled line": (
        "test a ... ring3: words\nFAILED\ntest b ... FAILED\n" + listed("a", "b", passed=98),
        101,
        "100 passed, 0 failed",
        "--only a --only b",
    ),
    # A child's words are in the list: nobody knows what failed.
    "a garbled list": (
        "test a ... FAILED\n" + listed("a", "b", passed=98).replace("    b", "    b words"),
        101,
        "7 passed, 0 failed",
        "--skip apps::sim_",
    ),
    # The runner ends amid the tests: those that it did not come to run, too.
    "killed": ("test a ... ok\ntest b ... FAILED\n", 137, "7 passed, 0 failed", "--skip apps::sim_"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_runs_again(case: str, tmp_path: Path) -> None:
    first, status, total, words = CASES[case]
    for folder in ("tools", "tests"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "tools/test", tmp_path / "tools/test")
    (tmp_path / "first").write_text(first + "\n")
    run = tmp_path / "tests/run"
    run.write_text(
        f"""#!/bin/bash
if [ ! -e ran ]; then echo >ran; cat first; exit {status}; fi
echo "$*" >again
n=7; [ "$1" != --only ] || n=$(($# / 2))
echo "{SUM.format(word="ok", passed="$n", failed=0)}"
"""
    )
    run.chmod(0o755)
    done = subprocess.run(
        [tmp_path / "tools/test", "nodes"], env={**os.environ, "RING3_TEST_AGAIN": "1"}, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == total, done.stdout + done.stderr
    assert done.returncode == 0
    assert (tmp_path / "again").read_text() == words + "\n"
