#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# failover.sh - two links between two nodes as one: the second takes over when the first loses its carrier
#
# Needs ip (iproute2). Shows: bonding, and what a program sees of a cable that is pulled: nothing.
set -eu
trap 'ring3 down ex-a ex-b' EXIT
ring3 up ex-a --port link:ex-one --port link:ex-two
ring3 up ex-b --port link:ex-one --port link:ex-two
for node in a:1 b:2; do
	ring3 exec "ex-${node%:*}" -- sh -ec "
		ip link add bond0 type bond mode active-backup miimon 50
		for port in ex-one ex-two; do ip link set \$port down; ip link set \$port master bond0; done
		ip link set bond0 type bond primary ex-one
		ip addr add 10.0.0.${node#*:}/24 dev bond0
		ip link set bond0 up"
done
active() { ring3 exec "$1" -- cat /sys/class/net/bond0/bonding/active_slave; }
# A bond looks at its carriers every 50 ms.
both_use() {
	until [ "$(active ex-a) $(active ex-b)" = "$1 $1" ]; do sleep 0.1; done
	echo "in use: $1"
}

both_use ex-one
ring3 exec ex-a -- ping -c 2 -W 20 10.0.0.2
# The cable is pulled: both ends lose their carrier.
ring3 exec ex-a -- ip link set ex-one down
ring3 exec ex-b -- ip link set ex-one down
both_use ex-two
ring3 exec ex-a -- ping -c 2 -W 20 10.0.0.2
