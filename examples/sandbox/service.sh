#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# service.sh - a service that nobody trusts, behind nftables rules that somebody else wrote
#
# Needs no privilege and no network: what is outside is another node. `ring3 doctor` says whether this host can confine
# programs (Linux 6.12).
set -eu

rules=$(dirname "$0")/service.nft
trap 'ring3 down service outside' EXIT

# The one outside has a server of its own, which the service would like to reach.
ring3 up outside --port link:wire,addr=198.51.100.10/24 -- sh -c 'cd /usr && exec python3 -m http.server 80' 2>/dev/null
ring3 wait outside tcp 80

# The service listens on two ports; the rules publish one of them, as port 80 of the gateway.
ring3 up --sandbox service --policy "$rules" --port link:wire,addr=198.51.100.1/24 -- \
	sh -c 'cd /usr && python3 -m http.server 9090 & cd /usr && exec python3 -m http.server 8080'
ring3 wait service tcp 8080
ring3 wait service tcp 9090

get() {
	node=$1 url=$2 seconds=$3
	if ring3 exec "$node" -- curl -s -m "$seconds" -o /dev/null "$url"; then
		echo "$node: $url answers"
	else
		echo "$node: $url does not answer"
	fi
}
get outside http://198.51.100.1/ 20
get outside http://198.51.100.1:9090/ 20
get service http://127.0.0.1:9090/ 20
get service http://198.51.100.10/ 3

# What the service has tried, as its gateway saw it.
ring3 log service.gw | grep -c '198.51.100.10' >/dev/null && echo "its try is in the gateway's log"
