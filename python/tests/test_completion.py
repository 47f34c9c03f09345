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


def offered(*words):
    env = {**os.environ, "PATH": f"{ROOT}/bin:{os.environ['PATH']}"}
    line = ["bash", "--norc", "-c", SCRIPT, "bash", "ring3", *words]
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


def test_subcommands():
    assert offered("doct") == ["doctor"]
