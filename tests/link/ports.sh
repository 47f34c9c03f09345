#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ports.sh - nodes whose far sides misbehave: a garbage frame is counted and dropped, a
# broken ring or stream takes the port down with a line in the log, and the node lives; and ports
# that go down, lose their interface or write down what they see.
#
# usage: ports.sh RING3 HOSTILE. Needs root for the TAP; without it that part is left out.
set -u
ring3=$1 hostile=$2
work=$(mktemp -d /dev/shm/ring3-ports.XXXXXX)
chmod 700 "$work"
export XDG_RUNTIME_DIR=$work
id=$$
node=p$id
passed=0 failed=0

cleanup() {
	"$ring3" down "$node" "$node-b" >/dev/null 2>&1
	rm -rf "$work"
}
trap cleanup EXIT

verdict() { # STATUS NAME
	if [ "$1" = 0 ]; then
		echo "ok ports $2"; passed=$((passed + 1))
	else
		echo "FAIL ports $2"; failed=$((failed + 1))
	fi
}

check() { # NAME COMMAND...
	what=$1; shift
	"$@"
	verdict $? "$what"
}

on() { timeout 20 "$ring3" exec "$node" -- "$@"; }

# errors IFNAME: the node's count of receive errors
errors() { on cat /proc/net/dev | awk -v i="$1:" '$1 == i { print $4 }'; }
carrier() { [ "$(on cat "/sys/class/net/$1/carrier")" = "$2" ]; }
answers() { ping -q -c 2 -W 2 10.97.0.2 >/dev/null; }
lives() { on ping -c 1 -W 2 127.0.0.1 >/dev/null; }
logged() { timeout 20 "$ring3" log "$node" | grep -q "$1"; }
at_least() { [ "${1:-0}" -ge "$2" ]; }

# Within 3 s.
soon() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		"$@" && return 0
		sleep 0.2
	done
	return 1
}

keeper() {
	"$ring3" ls --json | python3 -c '
import json, sys
print(next(node["pid"] for node in json.load(sys.stdin) if node["name"] == sys.argv[1]))' "$node"
}
# The link's memory, which has no name: as the keeper holds it.
find_link() {
	for fd in "/proc/$(keeper)/fd"/*; do
		case $(readlink "$fd") in */memfd:ring3-link:$1*) echo "$fd"; break ;; esac
	done
}

test_link() {
	"$ring3" up "$node" --port "link:h$id,addr=10.0.0.1/24" || return 1
	file=$(find_link "h$id")
	bad=$("$hostile" link "$file" 20000 7) || return 1
	got=$(errors "h$id")
	check "link: $bad garbage frames, $got errors counted" at_least "$got" "$bad"
	check "link: the node lives" lives
	"$hostile" link-break "$file" >/dev/null
	check "link: a broken ring is logged" logged "broke the link's ring"
	check "link: a broken ring has no carrier" soon carrier "h$id" 0
	on ip link set "h$id" down && on ip link set "h$id" up
	"$hostile" link "$file" 100 7 >/dev/null
	check "link: works again after down and up" at_least "$(errors "h$id")" $((got + 1))
	"$ring3" down "$node"
}

test_tap() {
	tap=r3h$((id % 100000))
	"$ring3" up "$node" --port "tap:$tap,addr=10.97.0.2/24,host=10.97.0.1/24" || return 1
	ip link set dev "$tap" mtu 9000
	check "tap: answers" answers
	sent=$("$hostile" tap "$tap" 20000 3)
	ping -q -c 20 -i 0.01 -W 1 -s 8000 -M do 10.97.0.2 >/dev/null
	got=$(errors "$tap")
	check "tap: $sent odd frames and 20 giants, $got errors counted" at_least "$got" 20
	check "tap: still answers" answers
	check "tap: the node lives" lives
	test_down "$tap"
	"$ring3" down "$node"
}

# Ticks of the host's clock that process $1 has run.
ran() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
echoes() { on awk '/^Icmp: [0-9]/ { print $10 }' /proc/net/snmp; }

# An interface that is down: its frames keep no poller awake, and are not received when it comes up.
test_down() { # TAP
	"$ring3" exec "$node" -- python3 -c 'import socket; socket.create_server(("", 8000)).accept()' &
	waits=$!
	ip neigh replace 10.97.0.2 lladdr "$(on cat "/sys/class/net/$1/address")" dev "$1" nud permanent
	on ip link set "$1" down
	before=$(echoes)
	ping -q -c 20 -i 0.01 -W 1 10.97.0.2 >/dev/null
	ticks=$(ran $waits)
	sleep 2
	ticks=$(($(ran $waits) - ticks))
	check "tap: down, a program that waits runs for $ticks of 200 ticks" at_least 40 "$ticks"
	on ip link set "$1" up
	check "tap: up, answers" soon answers
	ping -q -c 1 10.97.0.2 >/dev/null
	after=$(echoes)
	check "tap: what came meanwhile stays out ($before, then $after echoes)" at_least $((before + 15)) "$after"
	kill $waits
}

# The host's interface goes away.
test_packet() {
	veth=r3p$((id % 100000))
	ip link add "$veth" type veth peer name "$veth-b" || return 1
	ip link set dev "$veth" up && ip link set dev "$veth-b" up || return 1
	"$ring3" up "$node" --port "packet:$veth,addr=10.98.0.2/24" || return 1
	check "packet: carrier" carrier "$veth" 1
	flood "$veth-b"
	check "packet: what the host drops for want of room is counted" missed "$veth"
	ip link del dev "$veth"
	on ping -q -c 2 -W 1 10.98.0.1 >/dev/null
	check "packet: the interface is gone, no carrier" soon carrier "$veth" 0
	check "packet: and it is logged" logged "device is gone"
	check "packet: the node lives" lives
	"$ring3" down "$node"
}

# More than the port's socket holds, while the node stands still.
flood() { # INTERFACE
	keeper=$(keeper)
	kill -STOP "$keeper"
	python3 -c '
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for _ in range(40000):
    s.send(b"\xff" * 12 + b"\x88\xb5" + bytes(1000))' "$1"
	kill -CONT "$keeper"
}
missed() { at_least "$(on cat "/sys/class/net/$1/statistics/rx_missed_errors")" 1; }

# What pcap= writes is what was on the wire, also what the kernel takes off it.
test_vlan() {
	"$ring3" up "$node" --port "link:v$id,addr=10.0.0.1/24,pcap=$work/vlan.pcap" || return 1
	"$ring3" up "$node-b" --port "link:v$id,addr=10.0.0.2/24" || return 1
	for end in 1 2; do
		name=$node
		[ $end = 1 ] || name=$node-b
		timeout 20 "$ring3" exec "$name" -- sh -ec "
			ip link add link v$id name v5 type vlan id 5
			ip addr add 10.5.0.$end/24 dev v5
			ip link set v5 up" || return 1
	done
	on ping -q -c 3 -i 0.1 10.5.0.2 >/dev/null
	for what in request reply; do
		check "pcap: each echo $what has its VLAN tag" soon tagged $what
	done
	"$ring3" down "$node" "$node-b"
}
tagged() { [ "$(tcpdump -en -r "$work/vlan.pcap" 2>/dev/null | grep -c "vlan 5,.*echo $1")" = 3 ]; }

test_passt() {
	mkdir "$work/bin"
	cp "$hostile" "$work/bin/passt"
	PATH=$work/bin:$PATH HOSTILE_BREAK=$work/break \
		"$ring3" up "$node" --port passt,mtu=1500 || return 1
	sleep 2
	got=$(errors passt0)
	check "passt: giants and runts, $got errors counted" at_least "$got" 100
	check "passt: carrier" carrier passt0 1
	touch "$work/break"
	check "passt: a corrupt stream takes the port down" soon carrier passt0 0
	check "passt: and is logged" logged "stream is corrupt"
	check "passt: the node lives" lives
	"$ring3" down "$node"
}

test_link; verdict $? "link: up and down"
test_vlan; verdict $? "pcap: up and down"
test_passt; verdict $? "passt: up and down"
if [ "$(id -u)" = 0 ] && [ -c /dev/net/tun ]; then
	test_tap; verdict $? "tap: up and down"
	test_packet; verdict $? "packet: up and down"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
