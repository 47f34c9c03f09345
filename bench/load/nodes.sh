#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Starts so many nodes, or network namespaces, and takes them down again:
# nodes.sh host|ring3 RING3 COUNT
# Says what one took to start; of nodes also the memory of one and what all take while idle.
set -e
what=$1 ring3=$2 count=$3
names=$(seq -f "r3bn$$-%.0f" "$count")
now() { date +%s%N; }
down() {
	if [ "$what" = ring3 ]; then
		# shellcheck disable=SC2086
		"$ring3" down $names >/dev/null 2>&1 || true
	else
		for name in $names; do ip netns del "$name" 2>/dev/null || true; done
	fi
}
trap down EXIT
trap 'exit 1' INT TERM

start=$(now)
for name in $names; do
	if [ "$what" = ring3 ]; then
		"$ring3" up "$name" >/dev/null
	else
		ip netns add "$name"
		ip -n "$name" link set lo up
	fi
done
end=$(now)
awk "BEGIN { printf \"ms %.3f\\n\", ($end - $start) / 1e6 / $count }"
[ "$what" = ring3 ] || exit 0

keepers=$(for name in $names; do "$ring3" stat "$name" | awk '/^keeper/ { print $NF }'; done)
# Nanoseconds on a processor, of all threads of all keepers.
used() { for pid in $keepers; do cat /proc/"$pid"/task/*/schedstat; done | awk '{ n += $1 } END { printf "%.0f", n }'; }
sleep 0.3
before=$(used) start=$(now)
sleep 1
after=$(used) end=$(now)
awk "BEGIN { printf \"cpu %.3f\\n\", 100 * ($after - $before) / ($end - $start) }"
# KiB: what the keeper maps beside, and what the host has given to the file that is the node's memory.
memory() {
	awk '/^[0-9a-f]+-[0-9a-f]+ / { own = !/\/memfd:ring3:/ } own && /^Pss:/ { kib += $2 } END { print kib }' /proc/"$1"/smaps
	for fd in /proc/"$1"/fd/*; do
		case $(readlink "$fd") in
		/memfd:ring3:*) stat -L -c '%b %B' "$fd" | awk '{ print $1 * $2 / 1024 }' ;;
		esac
	done
}
for pid in $keepers; do memory "$pid"; done |
	awk -v count="$count" '{ kib += $1 } END { printf "mib %.3f\n", kib / 1024 / count }'
