# SPDX-License-Identifier: GPL-2.0
"""What shells offer after a piece of a command line: bash (without the package bash-completion), zsh and fish."""

import os
import pty
import shutil
import subprocess

import pytest
from pages import ROOT

import ring3

BASH = """
source <(ring3 completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
function=$(complete -p ring3 | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function ring3 "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = """
ring3 completion fish | source
complete -C "$argv"
"""
#: Its completion works in the line editor alone. What it would show goes into a file.
ZSH = """
autoload -U compinit && compinit -u -D
source <(ring3 completion zsh)
compadd() {
    local -a hits
    if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
        builtin compadd -O hits "$@"
        print -rl -- $hits >>$HITS
    fi
    builtin compadd "$@"
}
over() { print >>$HITS.over; exit }
comppostfuncs=(over)
bindkey '^I' complete-word
"""


ENV = {**os.environ, "PATH": f"{ROOT}/bin:{os.environ['PATH']}"}
#: A command that says whatever a program may have it say.
HOSTILE = "ring3() { printf 'NAME\\n$(./p)\\n'; printf 'port %s\\n' '$(./p)' '`./p`' eth0; }\n"


def by_bash(env, words, before=""):
    script = BASH.replace("COMP_WORDS=", f"{before}COMP_WORDS=", 1)
    line = ["bash", "--norc", "-c", script, "bash", *words]
    return subprocess.run(line, env=env, capture_output=True, text=True, timeout=100, check=True).stdout.split()


def by_fish(env, words):
    line = ["fish", "--no-config", "-c", FISH, " ".join(words)]
    said = subprocess.run(line, env=env, capture_output=True, text=True, timeout=100, check=True).stdout
    return [it.split("\t")[0] for it in said.splitlines()]


def by_zsh(env, words, folder):
    hits, over = folder / "hits", folder / "hits.over"
    hits.write_text("")
    over.unlink(missing_ok=True)
    (folder / ".zshrc").write_text(ZSH)
    # A word that looks typed: nothing is run, so it needs no quotes.
    line = " ".join(words).encode() + b"\t"
    ours, its = pty.openpty()
    env = {**env, "HITS": str(hits), "ZDOTDIR": str(folder), "TERM": "dumb"}
    zsh = subprocess.Popen(["zsh", "-d", "-i"], env=env, stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    said = b""
    try:
        os.write(ours, line)
        while not over.exists():
            said += os.read(ours, 1000)
    except OSError:  # it has ended
        pass
    finally:
        os.close(ours)
        zsh.wait(100)
    assert over.exists(), said
    return [it for it in hits.read_text().splitlines() if it]


@pytest.fixture(params=["bash", "zsh", "fish"])
def offered(request, tmp_path):
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    env = {**ENV, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}

    def offered(*words):
        words = ["ring3", *words]
        return {"bash": by_bash, "fish": by_fish}[shell](env, words) if shell != "zsh" else by_zsh(env, words, tmp_path)

    return offered


@pytest.mark.parametrize("words", [["exec"], ["down"], ["stat"], ["connect"], ["wait"], ["port", "add"], ["port", "del"]])
def test_names_of_nodes(node, offered, words):
    names = offered(*words, node.name[:-1])
    # Tests beside this one have nodes, too.
    assert node.name in names and all(it.startswith(node.name[:-1]) for it in names), names


def test_commands_on_a_node(node, offered):
    assert "uname" in offered("exec", node.name, "--", "unam")
    assert "uname" in offered("exec", node.name, "unam")
    assert offered("exec", node.name, "--", "ls", f"{ROOT}/READ")[0].endswith("README.md")


@pytest.mark.parametrize("words", [["run", "--"], ["run", "--mem", "64M", "--"], ["up", "x", "--"]])
def test_commands_of_a_new_node(offered, words):
    assert "uname" in offered(*words, "unam")
    assert offered(*words, "ls", f"{ROOT}/READ")[0].endswith("README.md")


def test_kinds_of_ports(offered):
    assert offered("up", "x", "--port", "l") == ["link:"]
    assert "switch:" in offered("run", "-p", "")


def test_interfaces_of_a_node(node, offered):
    node.add_port(ring3.Port("switch", "lan", addr="192.0.2.1/24"))
    assert offered("port", "del", node.name, "") == ["lan"]
    assert sorted(offered("capture", node.name, "l")) == ["lan", "lo"]


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


def test_what_a_program_calls_itself_is_not_executed(node, offered, program):
    """compgen -W expands words, and a program's name may have a line break in it."""
    with node.start("python3", "-c", NAMED, stdin=subprocess.PIPE) as named:
        assert named.readline() == "named"
        names = offered("capture", node.name, "")
        described = subprocess.run([f"{ROOT}/bin/ring3", "stat", node.name], capture_output=True, text=True, check=True)
    assert names == ["lo"] and not program()
    assert "x?port $(./p)" in described.stdout


def test_what_is_no_name_is_not_executed(program):
    assert "NAME" not in by_bash(ENV, ["ring3", "stat", ""], before=HOSTILE)
    assert by_bash(ENV, ["ring3", "capture", "x", ""], before=HOSTILE) == ["eth0", "lo"]
    assert not program()


def test_subcommands(offered):
    assert offered("doct") == ["doctor"]
