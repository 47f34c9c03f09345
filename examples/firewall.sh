#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# firewall.sh - a node's own nftables: one port is open, attempts at all others are counted
#
# Needs nft (nftables). Shows: any tool that wants root on the host is run on a node by its user.
set -eu
trap 'ring3 down ex-wall ex-visitor' EXIT
ring3 up ex-wall --port link:ex-fw,addr=10.0.0.1/24
ring3 up ex-visitor --port link:ex-fw,addr=10.0.0.2/24

ring3 exec ex-wall -- nft -f - <<'END'
table inet wall {
	counter refused { }
	chain input {
		type filter hook input priority 0; policy accept;
		iifname "ex-fw" tcp dport != 80 counter name refused reject with tcp reset
	}
}
END
for port in 80 81; do
	ring3 exec ex-wall -- python3 -m http.server $port >/dev/null 2>&1 &
	ring3 wait ex-wall tcp $port
done

ring3 exec ex-visitor -- curl -s -o /dev/null -w 'port 80: status %{http_code}\n' http://ex-wall/
! ring3 exec ex-visitor -- curl -s http://ex-wall:81/
ring3 exec ex-wall -- nft list counter inet wall refused | grep 'packets 1 '
