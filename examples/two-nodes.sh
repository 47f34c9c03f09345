#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# two-nodes.sh - a web server on one node, a client on another, shared memory between them
#
# Needs curl. Shows: up, exec, wait, names of nodes, down.
set -eu
cd "$(mktemp -d)"
trap 'ring3 down ex-server ex-client; rm -r "$PWD"' EXIT
echo 'hello from another node' >index.html

ring3 up ex-server --port link:ex-two,addr=10.0.0.1/24
ring3 up ex-client --port link:ex-two,addr=10.0.0.2/24
ring3 exec ex-server -- python3 -m http.server 80 2>/dev/null &
ring3 wait ex-server tcp 80

# Port 80 needs no privilege on a node, and the nodes know each other's names.
ring3 exec ex-client -- curl -s http://ex-server/
