# SPDX-License-Identifier: GPL-2.0
"""Units: what is installed, and what docs/systemd.md shows, as systemd itself reads it. No service manager is needed."""

import os
import re
import shutil
import socket
import subprocess

import pytest
from pages import ROOT, blocks


#: What each version says of a unit that it does not take as it is written.
FAULT = re.compile("unknown|invalid|failed to parse|missing|not executable|ignoring", re.IGNORECASE)


@pytest.fixture
def verify(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine")

    def verify(*units):
        """The status and the faults found in these units, in a folder where they stand with `ring3@.service`.

        Each version of systemd has warnings of its own, also about the machine's units: these are no faults.
        """
        unit = (ROOT / "tools/ring3@.service").read_text().replace("@PREFIX@/bin/ring3", f"{ROOT}/bin/ring3")
        (tmp_path / "ring3@.service").write_text(unit)
        for name, text in units:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text.replace("/usr/bin/ring3", f"{ROOT}/bin/ring3"))
        names = [str(tmp_path / name) for name, _ in units if "/" not in name] or [str(tmp_path / "ring3@web.service")]
        if not units:
            (tmp_path / "ring3@web.service").symlink_to("ring3@.service")
        env = {**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:", "SYSTEMD_LOG_LEVEL": "warning"}
        # As the system's manager it makes folders in /run.
        whose = [] if os.geteuid() == 0 else ["--user"]
        done = subprocess.run(["systemd-analyze", *whose, "verify", "--man=no", "--recursive-errors=no", *names],
                              env=env, capture_output=True, text=True, timeout=120)
        ours = [str(tmp_path), *map(os.path.basename, names)]
        faults = [it for it in done.stderr.splitlines() if FAULT.search(it) and any(name in it for name in ours)]
        return done.returncode, "\n".join(faults if done.returncode == 0 else [done.stderr])

    return verify


def test_the_unit(verify):
    assert verify() == (0, "")


def test_a_mistake_is_found(verify):
    status, said = verify(("bad.service", "[Service]\nExecStart=/usr/bin/no-such-program\n"))
    assert status != 0 or "no-such-program" in said
    status, said = verify(("bad.service", "[Service]\nExecStart=/bin/true\nNoSuchKey=1\n"))
    assert status != 0 or "NoSuchKey" in said


def test_units_of_the_page(verify):
    found = {heading: [] for heading, _ in blocks("docs/systemd.md", "ini")}
    for heading, text in blocks("docs/systemd.md", "ini"):
        found[heading].append(text)
    (drop_in,) = found["A unit whose program runs on a node"]
    door_socket, door = found["Socket activation"]
    plain = ("plain.service", "[Service]\nExecStart=/bin/true\n")
    drop_in = drop_in.replace("/usr/sbin/nginx", "/bin/true")
    assert verify(plain, ("plain.service.d/node.conf", drop_in)) == (0, "")
    assert verify(("web-door.socket", door_socket), ("web-door@.service", door)) == (0, "")


def test_one_connection_of_a_socket_unit(node):
    """What web-door@.service does with its standard input, which systemd has accepted."""
    with node.start("python3", "-m", "http.server", "8000", "--directory", "/usr/share/doc/"):
        node.wait("tcp", 8000)
        listener = socket.create_server(("127.0.0.1", 0))
        with listener, socket.create_connection(listener.getsockname()) as client:
            accepted, _ = listener.accept()
            with accepted:
                door = subprocess.Popen([os.environ["RING3"], "connect", node.name, "127.0.0.1", "8000"],
                                        stdin=accepted, stdout=accepted)
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = client.makefile("rb").read()   # all: what a client leaves unread is an error of whoever sent it
        assert b" 200 OK\r\n" in answer and door.wait(timeout=60) == 0
