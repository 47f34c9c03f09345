# SPDX-License-Identifier: GPL-2.0
"""Blocks of the pages that want root, pasted as test_shell_pages.py pastes the others, in a network namespace of their own.

tests/python runs this file as its caller; an ordinary user skips it.
"""

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from pages import shell_blocks
from test_shell_pages import APART, WHOLE, paste

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def namespace():
    """The test's thread is in a network namespace of its own, and so is what it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    newnet = 0x40000000
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(newnet) != 0:
        pytest.skip("this machine refuses network namespaces")
    try:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield
    finally:
        assert libc.setns(before, newnet) == 0
        os.close(before)


def blocks():
    for page in APART + WHOLE:
        for heading, text, mark in shell_blocks(page):
            if mark.startswith("root"):
                yield pytest.param(text, mark, id=f"{page}:{heading}".replace(" ", "_"))


@pytest.mark.parametrize("text, mark", blocks())
def test_block(text, mark, namespace, tmp_path):
    if mark == "root, until it is ended":
        if " --real-time " in text and subprocess.run(["chrt", "-f", "1", "true"], capture_output=True).returncode != 0:
            pytest.skip("this machine refuses real time: no CAP_SYS_NICE, or a cgroup without any")
        # It serves: that it has not ended by itself, and ends well when it is told to.
        text = f"{text.rstrip()} & serves=$!\nsleep 2; kill -TERM $serves; wait $serves\n"
    paste(text, tmp_path, has_own_ports=True)


def test_ssh(tmp_path):
    """docs/reach-a-node.md, with an SSH server on the node and what a user has in ~/.ssh."""
    server = shutil.which("sshd", path="/usr/sbin:/sbin")
    if server is None or shutil.which("ssh") is None:
        pytest.skip("no SSH on this machine")
    found = list(shell_blocks("docs/reach-a-node.md"))
    (at,) = [number for number, (_, _, mark) in enumerate(found) if mark == "ssh"]
    first, ssh, last = found[0][1], found[at][1], found[-1][1]
    assert "ring3 up web" in first and "ring3 down web" in last
    # Debian's sshd wants to chroot its unprivileged child there.
    Path("/run/sshd").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for key in ("host", "id"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{key}"], check=True)
        Path(folder, "server").write_text(
            f"HostKey {folder}/host\nPidFile none\nUsePAM no\nAuthorizedKeysFile {folder}/id.pub\nStrictModes no\nPermitRootLogin yes\n"
        )
        Path(folder, "client").write_text(f"IdentityFile {folder}/id\nUserKnownHostsFile {folder}/known\nStrictHostKeyChecking no\n")
        # The session's shell reads what a person would type.
        Path(folder, "ssh").write_text(f"#!/bin/sh\necho 'ip -br addr; exit' | exec {shutil.which('ssh')} -F {folder}/client \"$@\"\n")
        Path(folder, "ssh").chmod(0o755)
        start = f"ring3 exec web -- {server} -D -e -f {folder}/server & ring3 wait web tcp 22\n"
        said = paste(f"PATH={folder}:$PATH\n{first}{start}{ssh}{last}", tmp_path)
    assert "10.0.0.1/24" in said
