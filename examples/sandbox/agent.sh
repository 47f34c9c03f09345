#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# agent.sh - an agent that may reach one package index and nothing else
#
# Needs no privilege. Without an internet the index is not reached; all else is refused just the same. `ring3 doctor` says whether
# this host can confine programs (Linux 6.12).
set -eu
cd "$(dirname "$0")"
command -v ring3 >/dev/null || PATH=$(cd ../.. && pwd)/bin:$PATH
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# What is refused is said on stderr, too.
ring3 run --sandbox --tmp --ro "$PWD" --port "host,allow=pypi.org:443,allow=files.pythonhosted.org:443,log=$log" \
	-- /usr/bin/python3 "$PWD/agent.py"

# The port's gateway is a process that the agent can't reach. What it has refused, each once:
python3 - "$log" <<'END'
import json
import sys

with open(sys.argv[1]) as log:
    lines = [json.loads(line) for line in log]
for what, whom in dict.fromkeys((line["what"], line["whom"]) for line in lines):
    print("refused:", what, whom)
END
