# SPDX-License-Identifier: GPL-2.0
"""Each block of shell commands in the pages that people paste from is pasted, as it stands there.

It comes by standard input: a command that reads what was not meant for it makes the rest disappear, as in a terminal.
A comment in front of a block says what it needs:

| mark | |
| --- | --- |
| ``network`` | wants the internet: has a server of this machine for it, unless RING3_TEST_NETWORK is set |
| ``perf`` | left out where the host forbids perf (kernel.perf_event_paranoid) or has none |
| ``seeds`` | a search that is run with fewer seeds (test_sim_page.py) |
| ``root``, ``ssh`` | wants root: test_root_pages.py |
| ``run by FILE...`` | builds and installs: its commands stand in these files of CI |
| ``not run: why`` | the others |
"""

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading

import pytest
from pages import ORDINARY_PATH, ROOT, preparation, shell_blocks

#: Pages whose blocks stand for themselves.
APART = ["README.md", "docs/install.md", "docs/recipes.md", "docs/troubleshooting.md", "docs/sim.md", "docs/systemd.md",
         "docs/proxy.md", "docs/forward.md", "docs/vhost.md", "examples/README.md"]
#: Pages that are one session from top to bottom.
WHOLE = ["docs/reach-a-node.md"]
#: Pages whose blocks other tests run (test_launchers.py, test_pages.py).
ELSEWHERE = ["docs/testing.md"]
#: Pages of commands for who works on ring3: whole suites, builds, and a session in a debugger with numbers of processes.
OF_DEVELOPERS = ["CONTRIBUTING.md"]
END = "pasted-to-the-end"


#: Ports of the host's that a page names: another run of these tests may have them.
PORTS_OF_THE_HOST = ["8080", "1080"]


def with_free_ports(text):
    with contextlib.ExitStack() as held:
        # All at once, so that they differ.
        frees = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in PORTS_OF_THE_HOST]
        for port, free in zip(PORTS_OF_THE_HOST, frees):
            text = text.replace(f":{port}", f":{free.getsockname()[1]}")
    return text


def own_address():
    """An IPv4 address of this machine that is not its loopback's; None: it has none."""
    said = subprocess.run(["ip", "-j", "-4", "addr", "show", "scope", "global"], capture_output=True, text=True).stdout
    found = [it["local"] for link in json.loads(said or "[]") for it in link.get("addr_info", []) if "local" in it]
    return found[0] if found else None


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@contextlib.contextmanager
def as_the_internet(text):
    """The same commands, towards a server of this machine: whoever runs tests need not have the internet."""
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but its loopback's")
    # Not HTTPServer, which first asks for this machine's name: without an answer that takes long.
    # Others of the network may ask, too: they get an empty folder, and can't keep the test waiting.
    with tempfile.TemporaryDirectory() as empty:
        server = Server((address, 0), functools.partial(Quiet, directory=empty))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield re.sub(r"https://[^/ ]+/", f"http://{address}:{server.server_address[1]}/", text)
        finally:
            server.shutdown()
            server.server_close()


def is_perf_permitted():
    if shutil.which("perf", path=ORDINARY_PATH) is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        line = ["perf", "record", "-q", "-e", "cpu-clock:u", "-o", f"{folder}/perf.data", "true"]
        return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=100).returncode == 0


def is_elsewhere(mark):
    """Another test pastes it."""
    return mark.startswith("root") or mark in ("ssh", "seeds")


def cases():
    for page in APART:
        for number, (heading, text, mark) in enumerate(shell_blocks(page)):
            if is_elsewhere(mark):
                continue
            first = preparation(page)
            text = f'cd {ROOT}; {first}; cd "$OLDPWD"\n{text}' if first else text
            yield pytest.param(text, mark, id=f"{page}:{heading or 'top'}:{number}".replace(" ", "_"))
    for page in WHOLE:
        assert all(not mark or is_elsewhere(mark) for _, _, mark in shell_blocks(page)), page
        text = "".join(text for _, text, mark in shell_blocks(page) if not mark)
        yield pytest.param(text, "", id=page)


@pytest.mark.parametrize("text, mark", cases())
def test_block(text, mark, tmp_path):
    if mark.startswith("not run"):
        pytest.skip(mark)
    if mark.startswith("run by "):
        return stands_in(text, mark.split()[2:])
    if mark == "perf" and not is_perf_permitted():
        pytest.skip("this machine has no perf, or forbids it")
    if mark == "network" and not os.environ.get("RING3_TEST_NETWORK"):
        with as_the_internet(text) as near:
            return paste(near, tmp_path)
    paste(text, tmp_path)


def stands_in(text, files):
    """Each command of a block is one of these files', as it stands there."""
    whole = "\n".join((ROOT / file).read_text() for file in files)
    commands = [line.split("#")[0].strip() for line in text.splitlines()]
    missing = [it for it in commands if it and not re.search(rf"(^|\s){re.escape(it)}(\s|$)", whole)]
    assert commands and missing == [], f"not in {files}"


def paste(text, tmp_path, has_own_ports=False):
    """Its output. `has_own_ports`: no other test shares the shell's network."""
    text = text if has_own_ports else with_free_ports(text)
    with tempfile.TemporaryDirectory() as runtime:
        env = {**os.environ, "XDG_RUNTIME_DIR": runtime, "PATH": f"{ROOT}/bin:{ORDINARY_PATH}", "HOME": runtime}
        where = ROOT if text.startswith("export PATH=$PWD/bin") else tmp_path
        with tempfile.TemporaryFile("w+") as said:
            # The output is a file: what a block leaves in the background does not hold the test up.
            shell = subprocess.Popen(["bash", "-e", "-o", "pipefail", "-s"], cwd=where, env=env, stdin=subprocess.PIPE,
                                     stdout=said, stderr=said, text=True, start_new_session=True)
            try:
                shell.communicate(f"{text}\necho {END}\n", timeout=150)
            finally:
                # A reader ends these by closing the terminal. A listener that stayed would keep its port from the next run.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
            said.seek(0)
            output = said.read()
        left = subprocess.run(["ring3", "ls"], env=env, capture_output=True, text=True).stdout.splitlines()[1:]
        subprocess.run(["ring3", "down", "--all"], env=env)
    assert shell.returncode == 0, output
    assert output.endswith(END + "\n"), output
    assert left == [], left
    if where == tmp_path:
        assert os.listdir(tmp_path) == []
    return output


def test_what_the_command_says_without_arguments(tmp_path):
    """`ring3` alone shows four commands to try: they are pasted, too."""
    said = subprocess.run([f"{ROOT}/bin/ring3"], capture_output=True, text=True)
    commands = [line for line in said.stderr.splitlines() if line.startswith("  ring3 ")]
    assert said.returncode == 2 and len(commands) >= 5, said
    paste("\n".join(commands), tmp_path)


def test_demo(tmp_path):
    """What `make demo` of README runs once all is built. A small file: how fast it is does not matter here."""
    if shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("no nginx on this machine")
    with tempfile.TemporaryDirectory() as runtime:
        env = {**os.environ, "XDG_RUNTIME_DIR": runtime, "PATH": ORDINARY_PATH, "TMPDIR": str(tmp_path), "DEMO_MB": "5"}
        done = subprocess.run([f"{ROOT}/tools/demo"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5000000 bytes arrived" in done.stdout and ": the same" in done.stdout
    assert os.listdir(tmp_path) == []


def test_no_page_is_forgotten():
    """A page with commands is in one of the lists above."""
    known = {*APART, *WHOLE, *ELSEWHERE, *OF_DEVELOPERS}
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]
    found = {str(it.relative_to(ROOT)) for it in pages if "```sh\n" in it.read_text()}
    assert found <= known, found - known


@pytest.mark.parametrize("file", sorted(ROOT.glob("examples/compose/*.toml")), ids=lambda it: it.name)
def test_example(file, tmp_path):
    """The commands in an example's head."""
    lines = [line[1:].strip() for line in file.read_text().splitlines() if line.startswith("#   ring3 ")]
    assert lines[0].startswith("ring3 compose up ") and lines[-1].startswith("ring3 compose down ")
    with tempfile.TemporaryDirectory() as runtime:
        env = {**os.environ, "XDG_RUNTIME_DIR": runtime, "PATH": f"{ROOT}/bin:{ORDINARY_PATH}"}
        done = subprocess.run(["bash", "-es"], input="\n".join(lines), cwd=ROOT, env=env, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        assert subprocess.run(["ring3", "ls"], env=env, capture_output=True, text=True).stdout.count("\n") == 1
