# SPDX-License-Identifier: GPL-2.0
"""test_server.py - pytest: each test has a network of its own, and port 80 is free in all of them

Needs pytest, curl, ip and tc: `python3 -m pytest -p ring3.pytest_plugin test_server.py`. With the wheel installed,
`pytest test_server.py` is enough, and `pytest -n 4` runs them side by side.
"""
import pytest


def test_it_answers(node):
    with node.start("python3", "-m", "http.server", "80"):
        node.wait("tcp", 80)
        assert node.run("curl", "-s", "http://127.0.0.1/").ok


@pytest.mark.ring3("lossy-wan")
def test_it_answers_from_afar(net):
    server, client = net["server"], net["client"]
    with server.start("python3", "-m", "http.server", "80"):
        server.wait("tcp", 80)
        assert client.run("curl", "-s", "http://server/").ok


@pytest.mark.ring3("nat-symmetric")
def test_nobody_reaches_a_server_behind_a_nat(net):
    with net["client"].start("python3", "-m", "http.server", "80"):
        net["client"].wait("tcp", 80)
        address = net["client"].address
        assert not net["server"].run("curl", "-s", "-m", "1", f"http://{address}/", check=False).ok
