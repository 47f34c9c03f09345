#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""partition.py - a TCP connection outlives a network that falls into two halves and heals

Needs ip and tc. Shows: a network of hosts on one node, cut and mended while programs talk.
"""
import subprocess

from ring3 import presets

SERVE = """
import socket
server = socket.create_server(("", 7000)); print("ready", flush=True)
peer, _ = server.accept()
for line in peer.makefile(): print(line.strip(), flush=True)
"""
TALK = """
import socket, sys
peer = socket.create_connection(("server", 7000), 60)
for line in sys.stdin: peer.sendall(line.encode())
"""

with presets.network("partition") as net:
    server, client = net["server"], net["client"]
    with server.start("python3", "-c", SERVE) as heard:
        assert heard.readline() == "ready"
        with client.start("python3", "-c", TALK, stdin=subprocess.PIPE) as talking:

            def say(word: str) -> None:
                talking.inner.stdin.write(word + "\n")
                talking.inner.stdin.flush()

            say("before")
            print("heard", heard.readline())
            net.partition("client")
            assert not client.run("ping", "-c", "1", "-W", "1", "server", check=False).ok
            say("meanwhile")  # it waits in the client's send queue, and is sent again
            net.heal()
            word = heard.readline()
            print("heard", word)
            assert word == "meanwhile"
