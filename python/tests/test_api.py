# SPDX-License-Identifier: GPL-2.0
"""The API against nodes. What answers is a node: the host has none of these addresses, interfaces or names."""

import asyncio
import importlib.util
import os
import subprocess
import time
import urllib.request

import pytest

import ring3
from ring3 import Event, Port, Ring3Error
from ring3.config import Config, unused_name
from ring3.statistics import read_metrics

#: Of TEST-NET-1: no host has it.
ADDRESS = "192.0.2.1"
SERVER = ("python3", "-m", "http.server", "8000", "--directory", "/usr/share/doc/")
has_pandas = importlib.util.find_spec("pandas") is not None


def link(place):
    return Port("link", place, addr=f"{ADDRESS}/24")


def test_port_specifications():
    assert str(Port("passt", loopback=True)) == "passt,loopback=yes"
    port = Port("link", "a,b", addr=["10.0.0.1/24", "fd00::1/64"], gw="10.0.0.2", mtu=1400, pcap="x,y.pcap")
    assert str(port) == "link:a,,b,addr=10.0.0.1/24,addr=fd00::1/64,gw=10.0.0.2,mtu=1400,pcap=x,,y.pcap"


def test_command_line():
    config = Config("a", ports=["link:x"], sysctls={"net.ipv4.ip_forward": 1}, hosts={"b": ["10.0.0.2", "fd00::2"]},
                    mem="64M", restart="always", command=["sleep", "1"])
    assert config.line() == [
        "up", "a", "--port", "link:x", "--sysctl", "net.ipv4.ip_forward=1", "--add-host", "b=10.0.0.2",
        "--add-host", "b=fd00::2", "--mem", "64M", "--restart=always", "--", "sleep", "1",
    ]


def test_events():
    assert Event.read_all("[    0.5] one\ntwo\n") == [Event("one", 0.5), Event("two")]


def test_metrics_with_strange_labels():
    text = '# TYPE x counter\nx{node="a",device="e\\"1\\\\"} 7\ny{node="b"} 2.5\n'
    one, two = read_metrics(text)
    assert (one.name, one.node, one.labels, one.value) == ("x", "a", {"device": 'e"1\\'}, 7.0)
    assert (two.node, two.labels, two.value) == ("b", {}, 2.5)


def test_run():
    assert ring3.run("cat", "/sys/class/net/lo/operstate", mem="64M").ok
    result = ring3.run("sh", "-c", "echo said; exit 3", check=False)
    assert (result.status, result.stdout) == (3, "said\n")
    with pytest.raises(ring3.ProgramError, match="status 3: said"):
        ring3.run("sh", "-c", "echo said; exit 3")
    assert ring3.run("sh", "-c", "kill -9 $$", check=False).status == 137
    with pytest.raises(ring3.ProgramError, match=r"`sh -c 'kill -9 \$\$'` was ended by SIGKILL \(status 137\): it said nothing"):
        ring3.run("sh", "-c", "kill -9 $$")


def test_input_and_output_that_are_no_text(node):
    raw = bytes(range(256)).replace(b"\r", b"")
    assert node.run("cat", input=raw).stdout.encode(errors="surrogateescape") == raw
    assert node.run("cat", input="ä\n").stdout == "ä\n"
    assert ring3.run("wc", "-c", input=raw).stdout.strip() == "255"

    async def later():
        async with ring3.aio.Node() as other:
            return await other.run("cat", input=raw)

    assert asyncio.run(later()).stdout.encode(errors="surrogateescape") == raw


def test_a_program_that_takes_too_long(node):
    with pytest.raises(ring3.ProgramTimeout, match=r"`sh -c 'echo a; sleep 60'` did not end in 0.5 s, and was killed"):
        node.run("sh", "-c", "echo a; sleep 60", timeout=0.5)
    # As the standard library has it.
    with pytest.raises(subprocess.TimeoutExpired):
        ring3.run("sleep", "60", timeout=0.5)


def test_connect_to_nobody(node):
    with pytest.raises(Ring3Error, match="cannot connect to 127.0.0.1 port 1 from node .*: Connection refused"):
        node.connect("127.0.0.1", 1)
    with pytest.raises(Ring3Error, match="no node named"):
        ring3.Node("nobody-is-this").connect("127.0.0.1", 1)


def test_errors_are_the_commands_own_words():
    with pytest.raises(Ring3Error, match="^no node named `nobody-is-this` is running"):
        ring3.Node.attach("nobody-is-this")
    with pytest.raises(Ring3Error, match="kind"):
        ring3.run("true", ports=["nonsense"])
    with pytest.raises(TypeError):
        ring3.Node(no_such_option=1)


def test_a_node():
    with ring3.Node(ports=[link(unused_name("l"))], mem="64M") as node:
        status = node.status()
        assert (status.name, status.state, status.ports[0].peer) == (node.name, "up", None)
        assert status.ports[0].addrs == [f"{ADDRESS}/24"]
        assert status.mem.size == 64 << 20
        assert node.name in [it.name for it in ring3.nodes()]
        assert ADDRESS in [it["local"] for dev in node.run("ip", "-j", "addr").json() for it in dev["addr_info"]]
        assert node.run("cat", input="through\n").stdout == "through\n"
        assert node.run("sh", "-c", "echo $WORD", env={"WORD": "of ours"}).stdout == "of ours\n"
        with pytest.raises(subprocess.TimeoutExpired):
            node.run("sleep", "60", timeout=0.2)
        assert any("Linux version" in it.text for it in node.events())
        assert node.events(level=0) == []
        assert node._repr_html_().startswith("<table>")
    with pytest.raises(Ring3Error):
        node.status()
    assert "no node named" in node._repr_html_()


def test_a_failure_of_the_block_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        with ring3.Node() as node:
            node.down()
            1 / 0


def test_ways_in():
    with ring3.Node(ports=[link(unused_name("l"))]) as node, node.start(*SERVER):
        node.wait("tcp", 8000)
        with node.connect(ADDRESS, 8000) as stream:
            stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert stream.makefile("rb").readline().endswith(b"200 OK\r\n")
        with node.socks() as proxy:
            opener = urllib.request.build_opener(Tunnel(proxy))
            assert opener.open(f"http://{ADDRESS}:8000/").status == 200
        with pytest.raises(Ring3Error, match="9"):
            node.wait("tcp", 9, timeout=0.1)


class Tunnel(urllib.request.HTTPHandler):
    """HTTP by CONNECT, which urllib itself keeps for https."""

    def __init__(self, proxy):
        super().__init__()
        self.proxy = proxy

    def http_open(self, request):
        import http.client

        host, port = request.host.split(":")
        proxy = self.proxy

        class Connection(http.client.HTTPConnection):
            def __init__(self, *_, **options):
                at, number = proxy.split(":")
                super().__init__(at, int(number))
                self.set_tunnel(host, int(port))

        return self.do_open(Connection, request)


def test_programs_end_with_their_block():
    with ring3.Node() as node:
        with node.start("sleep", "600") as process:
            pass
        assert process.inner.returncode is not None
        with node.start("sh", "-c", "echo up; read x; echo $x", stdin=subprocess.PIPE) as process:
            assert process.readline() == "up"
            process.inner.stdin.write("down\n")
            process.inner.stdin.flush()
            assert process.readline() == "down"
        assert node.status().procs == []


def test_a_child_in_the_background_keeps_no_block_waiting():
    # It has the program's pipes open for longer than the test may take.
    began = time.monotonic()
    with ring3.Node() as node, node.start("sh", "-c", "sleep 600 & echo up; exec sleep 600") as process:
        assert process.readline() == "up"
    assert time.monotonic() - began < 300


def test_statistics():
    name = unused_name("l")
    with ring3.Node(ports=[link(name)]) as a, ring3.Node(ports=[Port("link", name, addr="192.0.2.2/24")]) as b:
        before = a.counter("node_netstat_Icmp_InEchos")
        b.run("ping", "-c", "3", "-i", "0.01", ADDRESS)
        assert a.counter("node_netstat_Icmp_InEchos") == before + 3
        assert a.counter("node_network_receive_packets_total", device=a.status().ports[0].ifname) >= 3
        with pytest.raises(Ring3Error, match="counts nothing"):
            a.counter("no_such_counter")
        rates = [rate for rate, _ in zip(a.watch(0.1), range(2))]
        with pytest.raises(ValueError, match="0.1 or more"):
            next(a.watch(0.05))
        assert rates[0].memory > 0
        if has_pandas:
            assert list(ring3.frame(rates)["memory"]) == [it.memory for it in rates]
            table = ring3.frame(a.metrics())
            assert {"name", "node", "device", "value"} <= set(table.columns)
            assert len(ring3.frame(a.events())) == len(a.events())


def test_compose(tmp_path):
    one, two = unused_name("c"), unused_name("c")
    file = tmp_path / "net.toml"
    file.write_text(f'[link.{one}]\n{one} = "10.0.0.1/24"\n{two} = "10.0.0.2/24"\n[node.{one}]\n[node.{two}]\n')
    with ring3.compose(file) as nodes:
        assert sorted(nodes) == sorted([one, two])
        assert nodes[one].run("ping", "-c", "1", two).ok
    assert not {one, two} & {it.name for it in ring3.nodes()}


def test_asyncio():
    async def main():
        async with ring3.aio.Node(mem="64M") as a, ring3.aio.Node(mem="64M") as b:
            results = await asyncio.gather(*[node.run("hostname") for node in (a, b) for _ in range(3)])
            assert all(it.ok for it in results)
            assert (await a.status()).name == a.name
            with pytest.raises(ring3.ProgramTimeout, match="`sleep 60` did not end in 0.2 s, and was killed"):
                await a.run("sleep", "60", timeout=0.2)
            begun = time.monotonic()
            with pytest.raises(ring3.ProgramTimeout):
                await a.run("sh", "-c", "sleep 30 & wait", timeout=0.2)
            assert time.monotonic() - begun < 15    # a child keeps the pipes
            descriptors = len(os.listdir("/proc/self/fd"))
            with pytest.raises(ring3.ProgramTimeout, match="has ended, but what it has started kept its output"):
                await a.run("sh", "-c", "sleep 4 &", timeout=2)
            with pytest.raises(ring3.ProgramTimeout, match="has ended, but what it has started kept its output"):
                ring3.Node.attach(a.name).run("sh", "-c", "sleep 4 &", timeout=2)
            await asyncio.sleep(0.1)                # the loop closes them
            assert len(os.listdir("/proc/self/fd")) == descriptors
            with pytest.raises(ring3.ProgramError):
                await a.run("false")
            async for rates in a.watch(0.1):
                assert rates.memory > 0
                break
            assert await b.events()
        return a.name, b.name

    names = asyncio.run(main())
    assert not set(names) & {it.name for it in ring3.nodes()}


def test_ports_that_come_and_go():
    lan = unused_name("s")
    with ring3.Node(ports=[Port("switch", lan, addr=f"{ADDRESS}/24")], mem="64M") as a, ring3.Node(mem="64M") as b:
        interface = b.add_port(Port("switch", lan, addr="192.0.2.2/24"))
        assert [it.ifname for it in b.status().ports] == [interface]
        # Its neighbour knows it from then on.
        assert a.run("ping", "-c", "1", b.name).ok
        b.remove_port(interface)
        assert b.status().ports == []
        with pytest.raises(Ring3Error, match="nonsense"):
            b.remove_port("nonsense")
        with pytest.raises(Ring3Error, match="kind"):
            b.add_port("nonsense")


def test_what_asyncio_has_of_the_rest(tmp_path):
    """Each public method of a node is there for asyncio, with the same arguments."""
    import inspect

    methods = [name for name in dir(ring3.Node) if not name.startswith("_") and name not in ("begin_down", "start")]
    for name in methods:
        ours, theirs = (inspect.signature(getattr(it, name)) for it in (ring3.Node, ring3.aio.Node))
        assert list(ours.parameters) == list(theirs.parameters), name

    async def main():
        lan = unused_name("s")
        port = Port("switch", lan, addr=f"{ADDRESS}/24")
        async with ring3.aio.Node(ports=[port], mem="64M") as a, ring3.aio.Node(mem="64M") as b:
            again = await ring3.aio.Node.attach(a.name)
            assert (await again.run("pwd", cwd=tmp_path)).stdout == f"{tmp_path}\n"
            interface = await b.add_port(Port("switch", lan, addr="192.0.2.2/24"))
            before = await a.counter("node_netstat_Icmp_InEchos")
            await b.run("ping", "-c", "2", "-i", "0.01", ADDRESS)
            assert await a.counter("node_netstat_Icmp_InEchos") == before + 2
            with pytest.raises(Ring3Error, match="counts nothing"):
                await a.counter("no_such_counter")
            server = await a.start(*SERVER, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL)
            await a.wait("tcp", 8000)
            reader, writer = await b.connect(ADDRESS, 8000)
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            assert (await reader.readline()).endswith(b"200 OK\r\n")
            writer.close()
            with pytest.raises(Ring3Error, match="cannot connect to 127.0.0.1 port 1 from node .*: Connection refused"):
                await b.connect("127.0.0.1", 1)
            async with b.socks() as proxy:
                at, port = proxy.split(":")
                reader, writer = await asyncio.open_connection(at, int(port))
                writer.write(f"CONNECT {ADDRESS}:8000 HTTP/1.1\r\n\r\n".encode())
                assert b" 200 " in await reader.readline()
                writer.close()
            await b.remove_port(interface)
            assert (await b.status()).ports == []
            server.terminate()
            await server.wait()
        with pytest.raises(Ring3Error, match="no node named"):
            await ring3.aio.Node.attach("nobody-is-this")

    asyncio.run(main())
