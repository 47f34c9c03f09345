#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# capture.sh - the packets of one request, in a file for Wireshark
#
# Needs curl and tcpdump. Shows: pcap=FILE, which writes what crosses a port from the first packet on.
set -eu
cd "$(mktemp -d)"
trap 'ring3 down ex-server ex-client; rm -r "$PWD"' EXIT
ring3 up ex-server --port link:ex-cap,addr=10.0.0.1/24
ring3 up ex-client --port link:ex-cap,addr=10.0.0.2/24,pcap=client.pcap
ring3 exec ex-server -- python3 -m http.server 80 >/dev/null 2>&1 &
ring3 wait ex-server tcp 80
ring3 exec ex-client -- curl -s -o /dev/null http://ex-server/

# The file can be read while it grows.
until [ "$(tcpdump -n -r client.pcap 'tcp[tcpflags] & tcp-fin != 0' 2>/dev/null | wc -l)" -ge 2 ]; do sleep 0.1; done
tcpdump -n -r client.pcap tcp
