# SPDX-License-Identifier: GPL-2.0
"""What bash offers after a piece of a command line, without the package bash-completion."""

import os
import subprocess

import pytest
from pages import ROOT

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


def test_subcommands():
    assert offered("doct") == ["doctor"]
