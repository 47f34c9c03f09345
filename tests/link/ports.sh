#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ports.sh - nodes whose far sides misbehave: a garbage frame is counted and dropped, a
# broken ring or stream takes the port down with a line in the log, and the node lives.
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

# The folder is in memory, so that the link's file lies in it.
find_link() { find "$work" -path "*links/$1"; }

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
	"$ring3" down "$node"
}

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
test_passt; verdict $? "passt: up and down"
if [ "$(id -u)" = 0 ] && [ -c /dev/net/tun ]; then
	test_tap; verdict $? "tap: up and down"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
