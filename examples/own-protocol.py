#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""own-protocol.py - a protocol of one's own below IP: raw Ethernet frames between two nodes

Needs nothing. Shows: AF_PACKET without privilege; programs that are started and talked to from Python.
"""
import ring3

KIND = 0x88B5  # an EtherType for experiments (IEEE 802)

ANSWER = f"""
import socket
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons({KIND}))
port.bind(("lab", {KIND}))
print("ready", flush=True)
frame = port.recv(2000)
port.send(frame[6:12] + frame[:6] + frame[12:14] + frame[14:].upper())
"""
ASK = f"""
import socket
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons({KIND}))
port.bind(("lab", {KIND}))
port.settimeout(60)
port.send(bytes.fromhex("020000000002" "020000000001" "{KIND:04x}") + b"hello, neighbour".ljust(46))
print(port.recv(2000)[14:].decode().strip())
"""

link = f"link:{ring3.config.unused_name('l')}"
with ring3.Node(ports=[f"{link},mac=02:00:00:00:00:01"]) as a, ring3.Node(ports=[f"{link},mac=02:00:00:00:00:02"]) as b:
    for node in a, b:
        node.run("ip", "link", "set", link[5:], "name", "lab")
        node.run("ip", "link", "set", "lab", "up")
    with b.start("python3", "-c", ANSWER) as answering:
        assert answering.readline() == "ready"
        said = a.run("python3", "-c", ASK).stdout.strip()
print(said)
assert said == "HELLO, NEIGHBOUR"
