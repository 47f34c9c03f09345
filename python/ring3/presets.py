# SPDX-License-Identifier: GPL-2.0
"""Networks that testers want, by name. Each has the hosts ``client`` and ``server``; some have more.

========================== =======================================================================================
``pair``                   client - server
``routed``                 client - router - server
``nat-cone``               client - gateway (NAT) - server
``nat-port-restricted``    the same with another NAT
``nat-symmetric``          the same with another NAT
``peers-KIND``             client - gateway (NAT) - router - gateway2 (NAT) - peer; server at the router: hole punching
``lossy-wan``              client - router - server; 40 ms each way in all, 1 % loss, 20 Mbit/s
``narrow-mtu``             client - router - router2 - server, with 1280 bytes in the middle: path MTU discovery
``black-hole``             the same, and no ICMP comes back: what a captive firewall does to path MTU discovery
``ipv6-only``              client - router - server without IPv4
``nat64``                  client (no IPv4) - router - gateway (NAT64, by tayga) - server (no IPv6)
``partition``              client, server, third on a switch, for ``net.partition("client")``
========================== =======================================================================================
"""

from __future__ import annotations

from typing import Any, Callable

from ._command import Ring3Error
from .net import NAT_KINDS, Net

PRESETS: dict[str, Callable[[Net], None]] = {}


def _preset(name: str) -> Callable[[Callable[[Net], None]], Callable[[Net], None]]:
    def add(lay_out: Callable[[Net], None]) -> Callable[[Net], None]:
        PRESETS[name] = lay_out
        return lay_out

    return add


def lay_out(net: Net, name: str) -> Net:
    """Adds the hosts and links of a preset to a network."""
    if name not in PRESETS:
        raise Ring3Error(f"no network `{name}`: there are {', '.join(sorted(PRESETS))}")
    if name == "ipv6-only":
        net.ipv4, net.ipv6 = False, True
    PRESETS[name](net)
    return net


def network(name: str, **options: Any) -> Net:
    """A network of this name: ``with presets.network("lossy-wan") as net:``."""
    return lay_out(Net(**options), name)


@_preset("pair")
def _pair(net: Net) -> None:
    net.link(*net.hosts("client", "server"))


@_preset("ipv6-only")
@_preset("routed")
def _routed(net: Net) -> None:
    client, server = net.hosts("client", "server")
    router = net.router("router")
    net.link(client, router)
    net.link(router, server)


def _behind_nat(kind: str) -> Callable[[Net], None]:
    def lay_out(net: Net) -> None:
        client, server = net.hosts("client", "server")
        net.link(net.nat("gateway", kind, inside=[client]), server)

    return lay_out


def _peers(kind: str) -> Callable[[Net], None]:
    def lay_out(net: Net) -> None:
        client, peer, server = net.hosts("client", "peer", "server")
        router = net.router("router")
        net.link(net.nat("gateway", kind, inside=[client]), router)
        net.link(net.nat("gateway2", kind, inside=[peer]), router)
        net.link(router, server)

    return lay_out


for _kind in NAT_KINDS:
    PRESETS[f"nat-{_kind}"] = _behind_nat(_kind)
    PRESETS[f"peers-{_kind}"] = _peers(_kind)


@_preset("lossy-wan")
def _lossy_wan(net: Net) -> None:
    client, server = net.hosts("client", "server")
    router = net.router("router")
    net.link(client, router)
    net.link(router, server, delay="40ms", loss="1%", rate="20mbit")


@_preset("narrow-mtu")
def _narrow_mtu(net: Net) -> None:
    client, server = net.hosts("client", "server")
    near, far = net.router("router"), net.router("router2")
    net.link(client, near)
    net.link(near, far, mtu=1280)
    net.link(far, server)


@_preset("black-hole")
def _black_hole(net: Net) -> None:
    _narrow_mtu(net)
    for name in ("router", "router2"):
        net.machines[name].drops_icmp = True


@_preset("nat64")
def _nat64(net: Net) -> None:
    client, server = net.hosts("client", "server")
    router, gateway = net.router("router"), net.nat64("gateway")
    net.link(client, router, network="fd00:0:0:1::/64")
    net.link(router, gateway, network="fd00:0:0:2::/64")
    net.link(gateway, server, network="10.0.3.0/24")


@_preset("partition")
def _partition(net: Net) -> None:
    net.switch(*net.hosts("client", "server", "third"))
