# SPDX-License-Identifier: GPL-2.0
"""What bash offers after a piece of a command line, without the package bash-completion."""

import os
import subprocess

import pytest
from pages import ROOT

import ring3

SCRIPT = """
source <(ring3 completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
function=$(complete -p ring3 | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function ring3 "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


#: A command that says whatever a program may have it say.
HOSTILE = "ring3() { printf 'NAME\\n$(./p)\\n'; printf 'port %s\\n' '$(./p)' '`./p`' eth0; }\n"


def offered(*words, before=""):
    env = {**os.environ, "PATH": f"{ROOT}/bin:{os.environ['PATH']}"}
    script = SCRIPT.replace("COMP_WORDS=", f"{before}COMP_WORDS=", 1)
    line = ["bash", "--norc", "-c", script, "bash", "ring3", *words]
    return subprocess.run(line, env=env, capture_output=True, text=True, timeout=100, check=True).stdout.split()


@pytest.mark.parametrize("words", [["exec"], ["down"], ["stat"], ["connect"], ["wait"], ["port", "add"], ["port", "del"]])
def test_names_of_nodes(node, words):
    names = offered(*words, node.name[:-1])
    # Tests beside this one have nodes, too.
    assert node.name in names and all(it.startswith(node.name[:-1]) for it in names), names


def test_commands_on_a_node(node):
    assert "uname" in offered("exec", node.name, "--", "unam")
    assert "uname" in offered("exec", node.name, "unam")
    assert offered("exec", node.name, "--", "ls", f"{ROOT}/READ") == [f"{ROOT}/README.md"]


@pytest.mark.parametrize("words", [["run", "--"], ["run", "--mem", "64M", "--"], ["up", "x", "--"]])
def test_commands_of_a_new_node(words):
    assert "uname" in offered(*words, "unam")
    assert offered(*words, "ls", f"{ROOT}/READ") == [f"{ROOT}/README.md"]


def test_kinds_of_ports():
    assert offered("up", "x", "--port", "l") == ["link:"]
    assert "switch:" in offered("run", "--port", "")


def test_interfaces_of_a_node(node):
    node.add_port(ring3.Port("switch", "lan", addr="192.0.2.1/24"))
    assert offered("port", "del", node.name, "") == ["lan"]
    assert offered("capture", node.name, "l") == ["lan", "lo"]


NAMED = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, b"x\\nport $(./p)")
print("named", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """In the working folder; whether it was executed."""
    (tmp_path / "p").write_text("#!/bin/sh\n: >made\n")
    (tmp_path / "p").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return (tmp_path / "made").exists


def test_what_a_program_calls_itself_is_not_executed(node, program):
    """compgen -W expands words, and a program's name may have a line break in it."""
    with node.start("python3", "-c", NAMED, stdin=subprocess.PIPE) as named:
        assert named.readline() == "named"
        names = offered("capture", node.name, "")
        described = subprocess.run([f"{ROOT}/bin/ring3", "stat", node.name], capture_output=True, text=True, check=True)
    assert names == ["lo"] and not program()
    assert "x?port $(./p)" in described.stdout


def test_what_is_no_name_is_not_executed(program):
    assert "NAME" not in offered("stat", "", before=HOSTILE)
    assert offered("capture", "x", "", before=HOSTILE) == ["eth0", "lo"]
    assert not program()


def test_subcommands():
    assert offered("doct") == ["doctor"]
