#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""mptcp.py - one connection over two paths goes on when the first path is cut

Needs ip (iproute2). Shows: Multipath TCP, whose path manager wants root on a host; sysctls and `ip mptcp`.
"""
import subprocess

import ring3

SERVE = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
server.bind(("", 7000)); server.listen(); print("ready", flush=True)
peer, _ = server.accept()
for line in peer.makefile(): print(line.strip(), flush=True)
""".replace("socket.IPPROTO_MPTCP", "262")  # Python 3.9 has no name for it
TALK = """
import socket, sys
peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
peer.connect(("10.0.1.2", 7000))
for line in sys.stdin: peer.sendall(line.encode())
"""

with ring3.Net(ipv6=False) as net:
    client, server = net.hosts("client", "server")
    first, second = net.link(client, server), net.link(client, server)
    for host in client, server:
        host.run("ip", "mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2")
    client.run("ip", "mptcp", "endpoint", "add", "10.0.2.1", "dev", "eth1", "subflow")
    server.run("ip", "mptcp", "endpoint", "add", "10.0.2.2", "dev", "eth1", "signal")
    with server.start("python3", "-c", SERVE) as heard:
        assert heard.readline() == "ready"
        with client.start("python3", "-c", TALK, stdin=subprocess.PIPE) as talking:

            def say(word: str) -> None:
                talking.inner.stdin.write(word + "\n")
                talking.inner.stdin.flush()

            say("both paths are there")
            print(heard.readline())
            while "10.0.2." not in client.run("ss", "-Htni", "state", "established").stdout:
                pass
            first.cut()
            say("the first is cut")
            word = heard.readline()
            print(word)
            assert word == "the first is cut"
