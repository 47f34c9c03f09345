#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""nat64.py - a client without IPv4 reaches a server without IPv6

Needs ip, curl, nft and tayga. Shows: the network `nat64`, as mobile networks have it: RFC 6146's translator, and names
that resolve to addresses of its prefix, as DNS64 would answer.
"""
from ring3 import presets

with presets.network("nat64") as net:
    client, server = net["client"], net["server"]
    assert "inet " not in client.run("ip", "addr", "show", "eth0").stdout
    assert "inet6 fd" not in server.run("ip", "addr", "show", "eth0").stdout
    with server.start("python3", "-m", "http.server", "80") as serving:
        server.wait("tcp", 80)
        said = client.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code} from %{remote_ip}", "http://server/").stdout
print(said)
assert said.startswith("200 from fd00:64::")
