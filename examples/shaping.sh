#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# shaping.sh - a download before and after tc limits the server's link to 8 Mbit/s
#
# Needs curl and tc (iproute2). Shows: Linux's own queueing disciplines on a link.
set -eu
cd "$(mktemp -d)"
trap 'ring3 down ex-server ex-client; rm -r "$PWD"' EXIT
head -c 1000000 /dev/urandom >file

ring3 up ex-server --port link:ex-tc,addr=10.0.0.1/24
ring3 up ex-client --port link:ex-tc,addr=10.0.0.2/24
ring3 exec ex-server -- python3 -m http.server 80 2>/dev/null &
ring3 wait ex-server tcp 80
download() { ring3 exec ex-client -- curl -s -o copy -w '%{time_total}\n' http://ex-server/file; cmp file copy; }

echo "unlimited: $(download) s"
ring3 exec ex-server -- tc qdisc add dev ex-tc root tbf rate 8mbit burst 16kb latency 400ms
limited=$(download)
echo "8 Mbit/s:  $limited s"
# 1 MB is 8 Mbit: a second, less what the burst lets through at once.
awk "BEGIN { exit !($limited > 0.9) }"
