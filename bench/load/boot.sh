#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Starts a stack and says how long until its first packet and what memory it has then:
# boot.sh RING3 PROGRAMS host|ring3|uml-VERSION|LIBRARY
# For a library it is the time until its program serves, on a TAP that is there.
set -e
ring3=$1 load=$2 what=$3
peers=$load/../peers
case $what in
host)
	exec "$load/firstline" received "$load/first_packet" stay
	;;
ring3)
	exec "$load/firstline" received "$ring3" run -- "$load/first_packet" stay
	;;
uml-*)
	exec "$load/firstline" received "$peers/uml-run" "$peers/$what" "r3b$$" - - "$load/first_packet" stay
	;;
*)
	ip link show tap0 >/dev/null 2>&1 || {
		ip tuntap add dev tap0 mode tap
		ip addr add 10.83.0.1/24 dev tap0
		ip link set tap0 up
	}
	exec "$load/firstline" ready "$peers/$what" tap0 10.83.0.2 httpd 80
	;;
esac
