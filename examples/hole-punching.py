#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""hole-punching.py - do two hosts behind NATs reach each other? By kind of NAT

Needs ip and nft. Shows: networks by name, each with its NATs; both hosts send to the other's outside address.
"""
from ring3 import presets
from ring3.net import NAT_KINDS

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

found = {}
for kind in NAT_KINDS:
    # A fifth of a second each: where they come through, the other may still be starting.
    turns = "10" if kind == "symmetric" else "100"
    with presets.network(f"peers-{kind}") as net:
        one, two = (str(net[name].ends[1][0].networks[0][1]) for name in ("gateway", "gateway2"))
        with net["client"].start("python3", "-c", PUNCH, two, turns) as a, net["peer"].start("python3", "-c", PUNCH, one, turns) as b:
            found[kind] = a.readline(), b.readline()
    print(f"{kind:16} {' '.join(found[kind])}")
assert found == {"cone": ("through",) * 2, "port-restricted": ("through",) * 2, "symmetric": ("blocked",) * 2}
