# SPDX-License-Identifier: GPL-2.0
"""Is there a command in README, the recipes or the examples that no test executes?

Blocks of shell commands are pasted by test_shell_pages.py, tasks run by test_examples.py. Every other command of these pages, in a block
that is not run or within a sentence, has a line here that says which test executes it, and by which words.
"""

import re

import pytest
from pages import ROOT, shell_blocks
from test_examples import tasks

PAGES = ["README.md", "docs/recipes.md", "examples/README.md"]
#: What a command begins with.
COMMAND = re.compile(r"^(ring3(-\w+)?|make|pip|tshark|curl|perf|sudo|apt|(tools|tests|bench|examples|\.ci)/\S+)( |$)")
#: A command: the file of the test, and what stands there.
ELSEWHERE = {
    "make deb": (".ci/packages", "make deb"),
    "make wheel": (".ci/packages", "make wheel"),
    "make archive": ("tests/distributions", "tools/package archive"),
    "make smp": ("tools/test-long", "make --no-print-directory smp"),
    "make test": (".ci/run", "make test"),
    "tests/python pages": ("tools/test", "tests/python"),
    "ring3": ("python/tests/test_shell_pages.py", 'subprocess.run([f"{ROOT}/bin/ring3"]'),
    "ring3 capture": ("python/tests/test_extcap.py", '"capture", node.name'),
    "ring3 debug PID -- CMD": ("tests/src/apps/debug.rs", '["debug", &program.pid, "--"]'),
    "ring3 forward": ("docs/forward.md", "ring3 forward --on b --listen tcp:80"),
    "ring3 man": ("ring3/cli/tests/words.rs", 'ring3(&["man"])'),
    "ring3 perf": ("python/tests/test_perf.py", '"perf", "report"'),
    "ring3 proxy": ("docs/proxy.md", "ring3 proxy --on edge --listen tcp:80"),
    "ring3 proxy --check": ("python/tests/test_examples.py", '"proxy", "--check"'),
    "ring3 run --sandbox": ("ring3/cli/tests/sandbox.rs", "--sandbox"),
    "ring3 sim": ("python/tests/test_sim_page.py", '"sim", *line'),
    "ring3-extcap --install": ("python/tests/test_extcap.py", '"--install"'),
    "tshark -D": ("python/tests/test_extcap.py", 'tshark("-D")'),
}
#: Files of examples/ that are no tasks of their own: the file of the test, and what stands there for the name.
FILES = {
    "compose/*.toml": ("python/tests/test_shell_pages.py", "examples/compose/*.toml"),
    "proxy.toml": ("python/tests/test_examples.py", "examples/proxy.toml"),
    "forward/*.c": ("tests/src/apps/forward.rs", '"examples/forward/{name}"'),
    "sandbox/*.sh": ("ring3/cli/tests/sandbox.rs", '"{name}"'),
    "sandbox/service.nft": ("examples/sandbox/service.sh", "service.nft"),
    "sandbox/agent.py": ("examples/sandbox/agent.sh", "agent.py"),
    "sim/bufferbloat-*.yaml": ("tests/src/apps/sim_cmd.rs", '"bufferbloat-{queue}"'),
    "sim/three-hosts.yaml": ("python/tests/test_sim_clock.py", "examples/sim/three-hosts.yaml"),
    "sim/follow.gdb": ("docs/sim.md", "examples/sim/follow.gdb"),
    "sim/*.yaml": ("tests/src/apps/sim_*.rs", '"{stem}"'),
}


def says(place, words):
    return any(words in file.read_text() for file in ROOT.glob(place))


def not_pasted(page):
    """Commands of a page that are in no block that is pasted, without their comments."""
    for _, text, mark in shell_blocks(page):
        if mark.startswith("not run"):
            yield from (line.partition("#")[0].strip() for line in text.splitlines())
    sentences = re.sub(r"(?ms)^```.*?^```$", "", (ROOT / page).read_text())
    yield from (span for span in re.findall(r"`([^`\n]+)`", sentences) if COMMAND.match(span))


def unexecuted(commands):
    return [it for it in commands if it not in ELSEWHERE or not says(*ELSEWHERE[it])]


@pytest.mark.parametrize("page", PAGES)
def test_each_command_is_executed(page):
    assert unexecuted(not_pasted(page)) == []


def test_one_that_nobody_executes_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr("test_commands.ROOT", tmp_path)
    monkeypatch.setattr("pages.ROOT", tmp_path)
    (tmp_path / "page.md").write_text(
        "# A\nType `make nothing`, see `a.toml`.\n\n<!-- not run: why -->\n```sh\nring3 ls   # all\n```\n\n```sh\nring3 top\n```\n")
    assert unexecuted(not_pasted("page.md")) == ["ring3 ls", "make nothing"]


def test_no_line_is_stale():
    """Each line of the table is of a command that a page has."""
    found = {command for page in PAGES for command in not_pasted(page)}
    assert set(ELSEWHERE) <= found, set(ELSEWHERE) - found


def test_each_example_is_executed():
    for file in (ROOT / "examples").rglob("*"):
        name = str(file.relative_to(ROOT / "examples"))
        if file.is_dir() or file.name == "README.md" or file in tasks() or "__pycache__" in name:
            continue
        place, words = next((it for pattern, it in FILES.items() if file.match(f"examples/{pattern}")), (None, None))
        assert place, f"no test executes examples/{name}"
        words = words.replace("{name}", file.name).replace("{stem}", file.stem)
        assert says(place, words), f"no `{words}` in {place} executes examples/{name}"
