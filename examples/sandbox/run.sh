#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# run.sh - two programs that nobody trusts, each with a network of its own, and what they can't do
#
# Needs no privilege. `ring3 doctor` says whether this host can confine programs (Linux 6.12).
set -eu
cd "$(dirname "$0")"
command -v ring3 >/dev/null || PATH=$(cd ../.. && pwd)/bin:$PATH
given=$(mktemp -d)
trap 'rm -rf "$given"' EXIT

# Both serve port 8080: each has a loopback of its own.
serve='python3 -m http.server 8080 >/dev/null 2>&1 & curl -s --retry 15 --retry-delay 1 --retry-connrefused -o /dev/null -w "%{http_code}\n" http://127.0.0.1:8080/'
ring3 run --sandbox -- sh -c "cd /usr && $serve" &
ring3 run --sandbox -- sh -c "cd /usr && $serve"
wait $!

# It has the folder that it was given, and nothing of the user's.
ring3 run --sandbox --rw "$given" --tmp -- sh -c "
	echo result >$given/file
	ls \"$HOME\" || echo 'the home folder is not there'
	cat /proc/$$/environ >/dev/null || echo 'nor are the processes of others'
	kill -0 $$ || echo 'and none of them can be sent a signal'
" 2>/dev/null
cat "$given/file"
