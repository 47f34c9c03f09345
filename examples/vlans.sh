#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# vlans.sh - a node is a VLAN switch: two of three hosts reach each other
#
# Needs ip and bridge (iproute2). Shows: a node with several links, and a bridge with VLAN filtering.
set -eu
trap 'ring3 down ex-switch ex-red1 ex-red2 ex-blue' EXIT
ring3 up ex-switch --port link:red1 --port link:red2 --port link:blue
ring3 up ex-red1 --port link:red1,addr=10.0.0.1/24
ring3 up ex-red2 --port link:red2,addr=10.0.0.2/24
ring3 up ex-blue --port link:blue,addr=10.0.0.3/24

ring3 exec ex-switch -- sh -ec '
	ip link add br0 type bridge vlan_filtering 1 vlan_default_pvid 0
	for port in red1 red2 blue; do ip link set $port master br0 up; done
	bridge vlan add dev red1 vid 10 pvid untagged
	bridge vlan add dev red2 vid 10 pvid untagged
	bridge vlan add dev blue vid 20 pvid untagged
	ip link set br0 up
	bridge vlan show'

ring3 exec ex-red1 -- ping -c 1 -W 20 10.0.0.2
! ring3 exec ex-blue -- ping -c 1 -W 1 10.0.0.2
