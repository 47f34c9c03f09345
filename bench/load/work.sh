#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Work that has little to do with the network: work.sh compute|processes
set -e
case $1 in
compute)
	head -c 100000000 /dev/zero | sha256sum >/dev/null
	;;
processes)
	i=0
	while [ $i -lt 100 ]; do
		/bin/true
		i=$((i + 1))
	done
	;;
*)
	echo "usage: work.sh compute|processes" >&2
	exit 2
	;;
esac
