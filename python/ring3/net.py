# SPDX-License-Identifier: GPL-2.0
"""Networks of many hosts on one node, for tests.

Each host, router, NAT and switch is a network namespace of one node, joined by veth pairs; delay, loss and rate are
netem's. Such a network is there in a fraction of the time that a node for each host would take, and goes with its node.

    with ring3.Net() as net:
        client, server = net.hosts("client", "server")
        gateway = net.nat("gateway", "symmetric", inside=[client])
        net.link(gateway, server, delay="20ms", loss="1%")
        with server.start("python3", "-m", "http.server"):
            server.wait("tcp", 8000)
            client.run("curl", "-s", "http://server:8000/")

A network is laid out first. Its first program starts it, or :meth:`Net.up`. After that no hosts and links can be added,
but links can change.

Programs `ip` and `tc` (iproute2) and, for NATs, `nft` (nftables) have to be installed; for NAT64 also `tayga`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Mapping, Optional, Sequence, Union

from . import _command
from ._command import Ring3Error, Word, words
from .config import unused_name
from .node import Node, Place

#: Kinds of NAT, in the words of RFC 3489 and, behind them, of RFC 4787.
#:
#: ``cone``: endpoint-independent mapping and filtering; an outside port belongs to the inside host that used it last.
#: ``port-restricted``: endpoint-independent mapping, address- and port-dependent filtering.
#: ``symmetric``: address- and port-dependent mapping and filtering; each flow has a random outside port.
NAT_KINDS = ("cone", "port-restricted", "symmetric")

#: What NAT64 puts in front of IPv4 addresses. The well-known prefix 64:ff9b::/96 may not stand in front of private ones
#: (RFC 6052, section 3.1), and tayga refuses the one of RFC 8215.
NAT64_PREFIX = IPv6Network("fd00:64::/96")
#: Addresses that a NAT64 gives to IPv6 hosts, before its masquerading.
NAT64_POOL = IPv4Network("192.168.255.0/24")

#: netem that does nothing.
NO_NETEM = "delay 0ms"

#: Seconds between two looks at a host's sockets.
WAIT_TURN = 0.02


#: What units of tc(8) mean: of times in nanoseconds, of rates in bits a second.
_TIMES = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


def _number(key: str, word: str) -> Optional[int]:
    """A word of tc's as a number: nanoseconds, bytes a second, packets, or of shares what is all of 0xFFFFFFFF."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z%]*)", word)
    if match is None:
        return None
    value, unit = float(match[1]), match[2]
    if key == "limit":
        return int(value) if not unit else None
    if key == "delay":
        return round(value * _TIMES[unit]) if unit in _TIMES else None
    if key == "rate":
        return round(value * _RATES[unit] / 8) if unit in _RATES else None
    return round(value / 100 * 0xFFFFFFFF) if unit == "%" and value <= 100 else None


@dataclass
class Quality:
    """What netem does to packets, in each direction. Values are those of tc-netem(8)."""

    #: ``20ms``, or ``20ms 5ms`` with jitter.
    delay: Optional[str] = None
    #: ``1%``.
    loss: Optional[str] = None
    #: ``10mbit``.
    rate: Optional[str] = None
    #: ``0.1%``.
    duplicate: Optional[str] = None
    #: ``25%``; needs a delay.
    reorder: Optional[str] = None
    #: ``0.01%``.
    corrupt: Optional[str] = None
    #: Packets that may wait; netem's own default is 1000.
    limit: Optional[int] = None

    def numbers(self) -> Optional[dict[str, Any]]:
        """The same as `ring3 up --layout` reads it; None: it has words that only tc knows."""
        steps: dict[str, Any] = {}
        for key in self.__dataclass_fields__:
            words = str(getattr(self, key) or "").split()
            names = ("delay_ns", "jitter_ns") if key == "delay" else (key,)
            values = [_number(key, word) for word in words]
            if len(words) > len(names) or None in values:
                return None
            steps.update(zip(names, values))
        return steps

    def netem(self) -> str:
        """Arguments of netem; empty: no need for it."""
        named = ((key, getattr(self, key)) for key in self.__dataclass_fields__)
        return " ".join(f"{key} {value}" for key, value in named if value is not None)


class Host(Place):
    """A host of a network, or a router. Programs on it are started as on a :class:`ring3.Node`."""

    def __init__(self, net: Net, name: str, kind: str = "host", nat: str = "") -> None:
        self.net = net
        self.name = name
        self.kind = kind
        self.nat = nat
        #: Ends of links: the link, and this host's place in it. The interface of the first is eth0.
        self.ends: list[tuple[Link, int]] = []
        self.sysctls: dict[str, Any] = {}
        #: A router that says nothing of what it drops.
        self.drops_icmp = False

    @property
    def forwards(self) -> bool:
        return self.kind != "host"

    @property
    def addresses(self) -> list[str]:
        """All addresses, in the order of the interfaces, IPv4 first."""
        return [str(net[place + 1]) for link, place in self.ends for net in link.networks]

    @property
    def address(self) -> str:
        """The address on eth0: IPv4 where there is one."""
        if not self.addresses:
            raise Ring3Error(f"host `{self.name}` has no address: link it to another")
        return self.addresses[0]

    def _line(self, program: Sequence[Word]) -> list[str]:
        self.net.up()
        inside = ["ip", "netns", "exec", self.name, *words(program)]
        return [_command.command(), "exec", self.net.node.name, "--", *inside]

    def wait(self, protocol: str, port: int, timeout: float = 30.0) -> None:
        """Waits until a program listens on this port; `timeout` in seconds."""
        # One program on the node for all looks: starting one costs more than a look. In /proc/net/tcp listening is 0A,
        # in udp a bound socket is 07.
        state = "0A" if protocol == "tcp" else "07"
        look = f'''end=$(( $(date +%s) + {max(1, round(timeout))} ))
until grep -qi "^ *[0-9]*: [0-9A-F]*:{port:04X} [0-9A-F:]* {state} " /proc/net/{protocol} /proc/net/{protocol}6; do
[ "$(date +%s)" -lt "$end" ] || exit 1; sleep {WAIT_TURN}; done 2>/dev/null'''
        if not self.run("sh", "-c", look, check=False).ok:
            raise Ring3Error(f"nobody listens on {protocol} port {port} of host `{self.name}` after {timeout} s")

    def __repr__(self) -> str:
        return f"Host({self.name!r}, {self.kind}, {' '.join(self.addresses) or 'no address'})"


@dataclass
class Link:
    """A segment that two or more hosts are on. Three and more are joined by a bridge."""

    net: Net
    hosts: list[Host]
    networks: list[Union[IPv4Network, IPv6Network]]
    quality: Quality
    mtu: Optional[int] = None
    #: Interfaces at the hosts, in their order.
    interfaces: list[str] = field(default_factory=list)

    def change(self, **quality: Any) -> None:
        """Other qualities than before, in both directions, while the network is up: ``link.change(loss="30%")``."""
        self.quality = Quality(**quality)
        if self.net.is_up:
            self.net.script("".join(self._netem(place) for place in range(len(self.hosts))))

    def cut(self, *hosts: Host) -> None:
        """Nothing comes through any more, or nothing to and from these hosts; addresses and routes stay."""
        self._apply("loss 100%", [it for it in self.hosts if not hosts or it in hosts])

    def heal(self) -> None:
        """As before :meth:`cut`."""
        self._apply(self.quality.netem(), self.hosts)

    def _apply(self, netem: str, hosts: Sequence[Host]) -> None:
        self.net.up()
        lines = []
        for place, (host, interface) in enumerate(zip(self.hosts, self.interfaces)):
            if host in hosts or len(self.hosts) == 2:
                lines.append(f"tc -n {host.name} qdisc replace dev {interface} root netem {netem or NO_NETEM}\n")
            if host in hosts and len(self.hosts) > 2:
                # The other direction is the switch's.
                switched = netem if netem == "loss 100%" else NO_NETEM
                lines.append(f"tc qdisc replace dev {self.tap(place)} root netem {switched}\n")
        self.net.script("".join(lines))

    def tap(self, place: int) -> str:
        """The switch's interface to a host."""
        return f"sw{self.net.links.index(self) + 1}p{place}"

    def _netem(self, place: int) -> str:
        netem = self.quality.netem()
        if not netem and not self.net.is_up:
            return ""
        host, interface = self.hosts[place], self.interfaces[place]
        return f"tc -n {host.name} qdisc replace dev {interface} root netem {netem or NO_NETEM}\n"


class Net:
    """A network. `ipv4` and `ipv6` say which addresses its hosts have; `options` are those of its :class:`Node`."""

    def __init__(self, *, ipv4: bool = True, ipv6: bool = True, **options: Any) -> None:
        if not (ipv4 or ipv6):
            raise Ring3Error("a network without IPv4 and IPv6 has no addresses: ask for one of them")
        self.ipv4, self.ipv6 = ipv4, ipv6
        self.machines: dict[str, Host] = {}
        self.links: list[Link] = []
        self.is_up = False
        options.setdefault("mem", "256M")
        self._options = options
        self.node = Node(unused_name("net"))

    # Laying out

    def host(self, name: str, sysctls: Optional[Mapping[str, Any]] = None) -> Host:
        return self._add(Host(self, name), sysctls)

    def hosts(self, *names: str) -> list[Host]:
        return [self.host(name) for name in names]

    def router(self, name: str, sysctls: Optional[Mapping[str, Any]] = None) -> Host:
        """A host that forwards; every other host has routes by way of it."""
        return self._add(Host(self, name, "router"), sysctls)

    def nat(self, name: str, kind: str = "port-restricted", inside: Sequence[Union[Host, str]] = (), **quality: Any) -> Host:
        """A router that hides the hosts `inside`, which it is linked to, behind its addresses on all its other links.

        `kind` is one of :data:`NAT_KINDS`. IPv6 addresses are translated too.
        """
        if kind not in NAT_KINDS:
            raise Ring3Error(f"no kind of NAT `{kind}`: there are {', '.join(NAT_KINDS)}")
        if not inside:
            raise Ring3Error(f"NAT `{name}` has nobody inside: name hosts by inside=[...]")
        nat = self._add(Host(self, name, "nat", kind), None)
        self.link(nat, *inside, **quality)
        return nat

    def nat64(self, name: str) -> Host:
        """A router between networks without IPv4 and networks without IPv6 (RFC 6146), by the program tayga.

        Hosts without an IPv6 address are reached at fd00:64::ADDRESS; their names say so, as DNS64 would. Only IPv6
        hosts can begin. Give the networks by ``link(..., network=)``.
        """
        if shutil.which("tayga", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise Ring3Error("no program `tayga`, which translates for NAT64: install the package tayga")
        return self._add(Host(self, name, "nat64"), None)

    def link(
        self, *hosts: Union[Host, str], network: Optional[str] = None, mtu: Optional[int] = None, **quality: Any
    ) -> Link:
        """Joins two hosts, or more by a switch. `quality`: see :class:`Quality`; it holds for each direction.

        Addresses are 10.0.N.1, 10.0.N.2 and so on, in the hosts' order, and fd00:0:0:N::1; or of `network`.
        """
        self._refuse_if_up()
        members = [it if isinstance(it, Host) else self[it] for it in hosts]
        if len(members) < 2:
            raise Ring3Error("a link joins two hosts or more")
        number = len(self.links) + 1
        networks: list[Union[IPv4Network, IPv6Network]] = []
        if network is not None:
            networks = [ip_network(network)]
        else:
            networks += [IPv4Network(f"10.0.{number}.0/24")] if self.ipv4 else []
            networks += [IPv6Network(f"fd00:0:0:{number:x}::/64")] if self.ipv6 else []
        link = Link(self, members, networks, Quality(**quality), mtu)
        for place, host in enumerate(members):
            link.interfaces.append(f"eth{len(host.ends)}")
            host.ends.append((link, place))
        self.links.append(link)
        return link

    switch = link

    def _add(self, host: Host, sysctls: Optional[Mapping[str, Any]]) -> Host:
        self._refuse_if_up()
        if host.name in self.machines:
            raise Ring3Error(f"the network has a host `{host.name}` already")
        if not host.name.replace("-", "").isalnum() or host.name.startswith("-"):
            raise Ring3Error(f"`{host.name}` is no name for a host: letters, digits and - within")
        host.sysctls.update(sysctls or {})
        self.machines[host.name] = host
        return host

    def _refuse_if_up(self) -> None:
        if self.is_up:
            raise Ring3Error("the network is up: add hosts and links before the first program is started")

    def __getitem__(self, name: str) -> Host:
        try:
            return self.machines[name]
        except KeyError:
            raise Ring3Error(f"no host `{name}` in this network: there are {', '.join(self.machines)}") from None

    # Running

    def up(self) -> Net:
        """Starts it, if that has not been done yet."""
        if self.is_up:
            return self
        hosts: dict[str, Sequence[str]] = {"localhost": ["127.0.0.1", "::1"]}
        hosts.update({name: _known_as(it) for name, it in self.machines.items() if it.addresses})
        options = dict(self._options)
        options["hosts"] = {**hosts, **options.get("hosts", {})}
        self.node = Node(self.node.name, **options)
        # The node's own process makes the network: a program of the node for it would cost more than all else here.
        verb, name, *others = self.node.config.line()
        _command.ask(verb, name, "--layout", "/dev/stdin", *others, input=json.dumps(layout(self)))
        try:
            script = rest(self)
            if script:
                self.script(script)
        except BaseException:
            self.node.down()
            raise
        self.is_up = True
        return self

    def down(self) -> None:
        if self.is_up:
            self.is_up = False
            self.node.down()

    def script(self, text: str) -> None:
        """Runs a script of sh on the node, outside of all hosts; for what this class has no word for."""
        # An ordinary user's PATH lacks what tc and nft are in.
        self.node.run("sh", "-e", input=f'PATH="$PATH:/usr/sbin:/sbin"\n{text}')

    def partition(self, *hosts: Union[Host, str]) -> None:
        """Cuts these hosts off from all others, but not from each other. :meth:`heal` ends it."""
        inside = {it.name if isinstance(it, Host) else it for it in hosts}
        for link in self.links:
            names = {host.name for host in link.hosts}
            if names & inside and names - inside:
                link.cut(*(host for host in link.hosts if host.name in inside))

    def heal(self) -> None:
        """Ends what :meth:`partition` and :meth:`Link.cut` have begun."""
        for link in self.links:
            link.heal()

    def __enter__(self) -> Net:
        return self

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        try:
            self.down()
        except Ring3Error:
            if error is None:
                raise

    def __repr__(self) -> str:
        return f"Net({', '.join(self.machines)}; {len(self.links)} links)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{it.name}</th><td>{it.kind} {it.nat}</td><td>{' '.join(it.addresses)}</td></tr>"
            for it in self.machines.values()
        )
        return f"<table>{rows}</table>"


#: One thing to be done, as `ring3 up --layout` reads it (ring3/config/src/layout.rs).
Step = dict[str, Any]


def layout(net: Net) -> list[Step]:
    """What makes the namespaces of a network, and their interfaces, addresses and routes.

    New namespaces have the settings of the node's first one (devconf_inherit_init_net), so that a router costs no
    program of its own.
    """
    steps = [_sysctl("net.core.devconf_inherit_init_net", 1), *_forwarding(net, 1)]
    # Link-local addresses serve at once, not after the second that looking for duplicates takes.
    for which in ("all", "default"):
        steps += [_sysctl(f"net.ipv6.conf.{which}.accept_dad", 0)] if net.ipv6 else []
    steps += [{"do": "host", "name": it.name} for it in net.machines.values() if it.forwards]
    steps += _forwarding(net, 0)
    steps += [{"do": "host", "name": it.name} for it in net.machines.values() if not it.forwards]
    for number, link in enumerate(net.links, 1):
        steps += _wires(link, f"br{number}")
    for host in net.machines.values():
        steps += _addresses(host)
        steps += [{"do": "route", "host": host.name, "to": to, "via": via} for to, via in _routes(net, host)]
        steps += [_sysctl(key, value, host.name) for key, value in host.sysctls.items()]
    for link in net.links:
        numbers = link.quality.numbers()
        for host, interface in zip(link.hosts, link.interfaces) if numbers else ():
            steps.append({"do": "netem", "host": host.name, "interface": interface, "netem": numbers})
    return steps


def rest(net: Net) -> str:
    """The script for what few networks have: rules of firewalls, qualities of links in words that only tc knows."""
    script = ""
    for host in net.machines.values():
        if host.drops_icmp:
            script += f"ip netns exec {host.name} nft -f - <<'END'\n{_SILENT}END\n"
        if host.nat:
            script += f"ip netns exec {host.name} nft -f - <<'END'\n{_nat_rules(host, net)}END\n"
        if host.kind == "nat64":
            script += f"ip netns exec {host.name} sh -e <<'END'\n{_NAT64}END\n"
    for link in net.links:
        if link.quality.numbers() is None:
            script += "".join(link._netem(place) for place in range(len(link.hosts)))
    return script


def _sysctl(key: str, value: Any, host: Optional[str] = None) -> Step:
    return {"do": "sysctl", "host": host, "key": key, "value": str(value)}


def _forwarding(net: Net, value: int) -> list[Step]:
    """What namespaces that are made from now on inherit."""
    steps = [_sysctl("net.ipv4.ip_forward", value)]
    return steps + ([_sysctl("net.ipv6.conf.all.forwarding", value)] if net.ipv6 else [])


def _up(host: Optional[Host], interface: str, bridge: Optional[str] = None) -> Step:
    return {"do": "up", "host": host.name if host else None, "interface": interface, "bridge": bridge}


def _wires(link: Link, bridge: str) -> list[Step]:
    ends: list[Step] = [{"host": host.name, "interface": at} for host, at in zip(link.hosts, link.interfaces)]
    if len(ends) == 2:
        return [{"do": "wire", "ends": ends, "mtu": link.mtu}]
    steps: list[Step] = [{"do": "bridge", "name": bridge, "mtu": link.mtu}]
    for place, end in enumerate(ends):
        tap = link.tap(place)
        steps += [{"do": "wire", "ends": [{"interface": tap}, end], "mtu": link.mtu}, _up(None, tap, bridge)]
    return [*steps, _up(None, bridge)]


def _addresses(host: Host) -> list[Step]:
    steps = [_up(host, "lo")]
    for number, (link, place) in enumerate(host.ends):
        steps.append(_up(host, f"eth{number}"))
        for network in link.networks:
            address = f"{network[place + 1]}/{network.prefixlen}"
            steps.append({"do": "address", "host": host.name, "interface": f"eth{number}", "address": address})
    return steps


def _routes(net: Net, host: Host) -> list[tuple[str, str]]:
    """Routes (network and gateway) to all networks that are not its own, by the fewest hops.

    Nobody outside of a NAT has a route to its inside.
    """
    routes: list[tuple[str, str]] = []
    known = {id(link) for link, _ in host.ends}
    # Machines that were come to, with the link they were come to by, and the first hop's machine and link.
    todo: list[tuple[Host, Link, Host, Link]] = []
    seen = {host.name}

    def spread(machine: Host, by: Optional[Link], first: Optional[tuple[Host, Link]]) -> None:
        if machine.kind == "nat64" and first is not None:
            hop, wire = first
            near = [str(it[wire.hosts.index(hop) + 1]) for it in wire.networks if it.version == 6]
            routes.extend((str(NAT64_PREFIX), it) for it in near)
        for link, _ in machine.ends:
            if machine.nat and by is not None and by is not machine.ends[0][0] and link is machine.ends[0][0]:
                continue
            if id(link) not in known and first is not None:
                known.add(id(link))
                hop, wire = first
                gateways = {it.version: it[wire.hosts.index(hop) + 1] for it in wire.networks}
                for network in link.networks:
                    if network.version in gateways:
                        routes.append((str(network), str(gateways[network.version])))
            for other in link.hosts:
                if other.forwards and other.name not in seen:
                    seen.add(other.name)
                    todo.append((other, link, *(first or (other, link))))

    spread(host, None, None)
    while todo:
        machine, by, hop, wire = todo.pop(0)
        spread(machine, by, (hop, wire))
    return routes


#: Neither "fragmentation needed" nor "packet too big" is sent or forwarded.
_SILENT = """table inet silent {
chain output {
type filter hook output priority 0;
icmp type destination-unreachable drop
icmpv6 type packet-too-big drop
}
chain forward {
type filter hook forward priority 0;
icmp type destination-unreachable drop
icmpv6 type packet-too-big drop
}
}
"""


#: The interface of the translator, its program, and masquerading of what it has translated to IPv4. The program puts itself
#: into the background before it takes the interface: it serves from the instant at which that has a carrier.
_NAT64 = f"""ip tuntap add dev nat64 mode tun
ip link set nat64 up
ip route add {NAT64_POOL} dev nat64
ip route add {NAT64_PREFIX} dev nat64
nft add table ip nat64
nft add chain ip nat64 out '{{ type nat hook postrouting priority srcnat; }}'
nft add rule ip nat64 out ip saddr {NAT64_POOL} masquerade
tayga --config /dev/stdin <<'CONFIG'
tun-device nat64
ipv4-addr {NAT64_POOL[1]}
prefix {NAT64_PREFIX}
dynamic-pool {NAT64_POOL}
CONFIG
until [ "$(cat /sys/class/net/nat64/carrier)" = 1 ]; do sleep {WAIT_TURN}; done
"""


def _known_as(host: Host) -> list[str]:
    """The addresses of a name: in a network with NAT64 also those that it gives to hosts without IPv6."""
    addresses = host.addresses
    has_nat64 = any(it.kind == "nat64" for it in host.net.machines.values())
    if not has_nat64 or any(ip_address(it).version == 6 for it in addresses):
        return addresses
    return addresses + [str(NAT64_PREFIX[int(IPv4Address(it))]) for it in addresses]


def _nat_rules(host: Host, net: Net) -> str:
    inside = "eth0"
    masquerade = "masquerade fully-random" if host.nat == "symmetric" else "masquerade"
    text = ""
    for family, kind, wanted in (("ip", "ipv4_addr", net.ipv4), ("ip6", "ipv6_addr", net.ipv6)):
        if not wanted:
            continue
        maps = owns = sends = ""
        if host.nat == "cone":
            for protocol in ("udp", "tcp"):
                maps += f"map {protocol}_owner {{ type inet_service : {kind}; flags dynamic, timeout; timeout 5m; }}\n"
                owns += f'iifname "{inside}" update @{protocol}_owner {{ {protocol} sport : {family} saddr }}\n'
                sends += f'iifname != "{inside}" dnat to {protocol} dport map @{protocol}_owner\n'
        # What nobody asked for is dropped before it becomes a connection: else it would take the port of one that
        # an inside host is about to make.
        text += f"""table {family} nat {{
{maps}
chain forward {{
type filter hook forward priority 0;
{owns}}}
chain input {{
type filter hook input priority 0;
iifname != "{inside}" meta l4proto {{ tcp, udp }} ct state new drop
}}
chain prerouting {{
type nat hook prerouting priority dstnat;
{sends}}}
chain postrouting {{
type nat hook postrouting priority srcnat;
oifname != {{ "{inside}", "lo" }} {masquerade}
}}
}}
"""
    return text
