# SPDX-License-Identifier: GPL-2.0
"""Networks of hosts on one node: what they promise by name is what packets meet."""

import os
import re
import subprocess

import pytest

from pages import ORDINARY_PATH
from ring3 import Net, ProgramError, Ring3Error, nodes, presets

#: Answers each datagram with the address that it came from; says its own when it listens.
MIRROR = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", int(sys.argv[1])))
print("up", flush=True)
while True:
    data, who = s.recvfrom(2000)
    s.sendto(f"{who[0]} {who[1]}".encode(), who)
"""

#: From one socket to each of the destinations; prints how it is seen there, or "lost".
ASK = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5000)); s.settimeout(20)
for word in sys.argv[1:]:
    host, port = word.split(":")
    s.sendto(b"?", (host, int(port)))
    try: print(s.recv(100).decode())
    except OSError: print("lost")
"""


#: For tc.
ROOTS_PATH = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
#: Seconds that a busy machine may take for what has to come.
PATIENCE = 20


def ping(host, target, count=1, wait=PATIENCE):
    """`wait`: seconds for a reply; little where none is to come."""
    return host.run("ping", "-c", str(count), "-i", "0.02", "-W", str(wait), target, check=False)


def mapped_ports(net):
    """The outside ports of one inside socket, towards two ports of the server."""
    client, server = net["client"], net["server"]
    with server.start("python3", "-c", MIRROR, "7001") as one, server.start("python3", "-c", MIRROR, "7002") as two:
        assert one.readline() == two.readline() == "up"
        said = client.run("python3", "-c", ASK, f"{server.address}:7001", f"{server.address}:7002").stdout.split()
    gateway = net["gateway"].ends[1][0].networks[0][1]
    assert said[0] == said[2] == str(gateway)
    return said[1], said[3]


@pytest.mark.ring3("nat-symmetric")
def test_symmetric(net):
    one, two = mapped_ports(net)
    assert one != two and "5000" not in (one, two)


@pytest.mark.parametrize("kind", ["cone", "port-restricted"])
def test_endpoint_independent_mapping(kind):
    with presets.network(f"nat-{kind}") as net:
        assert mapped_ports(net) == ("5000", "5000")


#: Sends to the server, waits for a word, and prints what has come.
LISTEN = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5000))
s.sendto(b"?", (sys.argv[1], 7001))
print("up", flush=True)
sys.stdin.readline()
s.settimeout(float(sys.argv[2]))
try: print(s.recv(100).decode())
except OSError: print("nothing")
"""


@pytest.mark.parametrize("kind, comes", [("cone", "hello"), ("port-restricted", "nothing"), ("symmetric", "nothing")])
def test_filtering(kind, comes):
    """A stranger's datagram to the port that a socket is mapped to."""
    with presets.network(f"nat-{kind}") as net:
        client, server = net["client"], net["server"]
        gateway = net["gateway"].ends[1][0].networks[0][1]
        patience = str(0.5 if comes == "nothing" else PATIENCE)
        with client.start("python3", "-c", LISTEN, server.address, patience, stdin=subprocess.PIPE) as listening:
            assert listening.readline() == "up"
            server.run("python3", "-c", f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"hello", ("{gateway}", 5000))""")
            listening.inner.stdin.write("now\n")
            listening.inner.stdin.flush()
            assert listening.readline() == comes


#: Both send to the other's outside address from port 5000, some times; prints whether one came.
PUNCH = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5000)); s.settimeout(0.2)
for turn in range(int(sys.argv[2])):
    s.sendto(b"punch", (sys.argv[1], 5000))
    try:
        s.recv(100); s.sendto(b"punch", (sys.argv[1], 5000)); print("through"); break
    except OSError: pass
else: print("blocked")
"""


@pytest.mark.parametrize("kind, word", [("cone", "through"), ("port-restricted", "through"), ("symmetric", "blocked")])
def test_hole_punching(kind, word):
    with presets.network(f"peers-{kind}") as net:
        outside = {name: str(net[name].ends[1][0].networks[0][1]) for name in ("gateway", "gateway2")}
        # A fifth of a second each: the other may not have started yet.
        turns = str(10 if word == "blocked" else 5 * PATIENCE)
        with net["client"].start("python3", "-c", PUNCH, outside["gateway2"], turns) as one:
            with net["peer"].start("python3", "-c", PUNCH, outside["gateway"], turns) as two:
                assert (one.readline(), two.readline()) == (word, word)


def test_nobody_outside_comes_in():
    with presets.network("nat-port-restricted") as net:
        assert ping(net["client"], "server").ok
        assert not ping(net["server"], net["client"].address, wait=1).ok


def test_delay_loss_and_change(net):
    a, b = net.hosts("a", "b")
    link = net.link(a, b, delay="30ms")

    def times():
        return [float(it) for it in re.findall(r"time=([\d.]+)", ping(a, "b", 3).stdout)]

    slow = times()
    assert len(slow) == 3 and min(slow) >= 60
    link.change(loss="50%")
    # ping's figure has decimals where it is not a whole number.
    lost = float(re.search(r"([\d.]+)% packet loss", ping(a, "b", 60, wait=1).stdout)[1])
    assert 40 <= lost <= 98
    # Longer than a busy machine may take.
    link.change(delay=f"{5 * PATIENCE}s")
    assert not ping(a, "b", wait=1).ok
    link.change()
    assert ping(a, "b").ok
    link.cut()
    assert not ping(a, "b", wait=1).ok
    link.heal()
    assert ping(a, "b").ok


QUALITIES = [
    {"delay": "20ms 5ms", "loss": "1%", "rate": "10mbit"},
    {"delay": "1.5s", "reorder": "25%", "duplicate": "0.5%", "corrupt": "0.01%", "limit": 77},
    {"rate": "40gbit"},
    # Words that only tc knows.
    {"delay": "20ms 5ms 30% distribution normal"},
]


@pytest.mark.parametrize("quality", QUALITIES)
def test_qualities_mean_what_tc_makes_of_them(net, quality):
    """The keeper makes the first qdisc from numbers, tc the later ones from words."""
    a, b = net.hosts("a", "b")
    link = net.link(a, b, **quality)

    def shown(host):
        # Its handle, and the seed of its random numbers, are new each time.
        said = host.run("tc", "qdisc", "show", "dev", "eth0", "root", env=ROOTS_PATH).stdout
        return re.sub(r"netem \w+:|seed \d+", "", said)

    first = [shown(a), shown(b)]
    assert all("netem" in it or "qdisc" in it and "limit" in it for it in first), first
    link.change(**quality)
    assert [shown(a), shown(b)] == first


def test_settings_of_one_host(net):
    """Each host's own; a wrong one fails by name, and leaves no node."""
    a, b = net.host("a", sysctls={"net.ipv4.ip_default_ttl": 99}), net.host("b")
    net.link(a, b)
    assert [it.run("cat", "/proc/sys/net/ipv4/ip_default_ttl").stdout for it in (a, b)] == ["99\n", "64\n"]
    other = Net()
    other.link(other.host("a", sysctls={"net.ipv4.nothing": 1}), other.host("b"))
    with pytest.raises(Ring3Error, match="net.ipv4.nothing"):
        other.up()
    assert other.node.name not in {it.name for it in nodes()}


def test_path_of_an_ordinary_user(monkeypatch):
    """tc and nft lie in folders that Debian's users have not on their PATH."""
    monkeypatch.setenv("PATH", ORDINARY_PATH)
    with presets.network("nat-symmetric") as net:
        net.links[0].change(loss="0.1%")
        assert ping(net["client"], "server", 5).ok


@pytest.mark.ring3("partition")
def test_partition(net):
    client, server, third = net["client"], net["server"], net["third"]
    assert ping(client, "server").ok and ping(third, "server").ok
    net.partition("client")
    assert not ping(client, "server", wait=1).ok and not ping(client, "third", wait=1).ok
    assert ping(third, "server").ok
    net.heal()
    assert ping(client, "server").ok


def fetch(net, patience):
    """Some 30 KB from server to client over TCP; whether they came within so many seconds."""
    serve = "import http.server; print('up', flush=True); http.server.test(http.server.SimpleHTTPRequestHandler, port=8000)"
    with net["server"].start("python3", "-c", serve, cwd="/usr/share/common-licenses") as server:
        assert server.readline() == "up"
        net["server"].wait("tcp", 8000)
        got = net["client"].run("curl", "-s", "-m", str(patience), f"http://{net['server'].address}:8000/GPL-3", check=False)
        return got.ok and len(got.stdout) > 30_000


@pytest.mark.parametrize("name, comes", [("narrow-mtu", True), ("black-hole", False)])
def test_path_mtu(name, comes):
    with presets.network(name) as net:
        # The server finds out by itself where no message tells it: not for this test.
        net["server"].sysctls["net.ipv4.tcp_mtu_probing"] = 0
        assert fetch(net, PATIENCE if comes else 3) == comes


@pytest.mark.parametrize("name", sorted(presets.PRESETS))
def test_each_preset_connects(name):
    with presets.network(name) as net:
        reply = ping(net["client"], "server", 5)
        assert "1 received" in reply.stdout or reply.ok, reply.stdout
        if name == "ipv6-only":
            assert "inet " not in net["client"].run("ip", "addr", "show", "eth0").stdout


def test_two_networks_do_not_meet():
    with presets.network("pair") as one, presets.network("pair") as two:
        two["server"].run("ip", "link", "set", "eth0", "down")
        assert ping(one["client"], "server").ok
        assert not ping(two["client"], "server", wait=1).ok


def test_mistakes(net):
    with pytest.raises(Ring3Error, match="no kind of NAT `round`"):
        net.nat("n", "round", inside=["a"])
    with pytest.raises(Ring3Error, match="nobody inside"):
        net.nat("n")
    net.host("a")
    with pytest.raises(Ring3Error, match="has a host `a` already"):
        net.host("a")
    with pytest.raises(Ring3Error, match="no host `b`"):
        net.link("a", "b")
    with pytest.raises(Ring3Error, match="no name for a host"):
        net.host("../a")
    with pytest.raises(Ring3Error, match="no network `moon`"):
        presets.lay_out(net, "moon")
    net["a"].run("true")
    with pytest.raises(Ring3Error, match="the network is up"):
        net.host("c")
    with pytest.raises(ProgramError):
        net["a"].run("false")


def test_wait_says_who_does_not_listen():
    with presets.network("pair") as net:
        with pytest.raises(Ring3Error, match="nobody listens on tcp port 80 of host `server`"):
            net["server"].wait("tcp", 80, timeout=1)
