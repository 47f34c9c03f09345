# SPDX-License-Identifier: GPL-2.0
# Root file systems for tests/packages and tests/distributions: read by their shells.
# shellcheck shell=bash disable=SC2154

failed=0
# check NAME COMMAND...: a line of the suite; false if it failed
check() {
	local name=$1; shift
	if "$@" >"$work/said" 2>&1; then
		echo "ok ${suite_name:-packages}::$name"
	else
		echo "FAIL ${suite_name:-packages}::$name"; sed 's/^/  /' "$work/said" | tail -n 20; failed=1
		return 1
	fi
}
at_most() { echo "$1: $(stat -c %s "$1") bytes, at most $2"; [ "$(stat -c %s "$1")" -le "$2" ]; }
is_static() { ! readelf -lW "$1" | grep -q INTERP; }

# bare DIR: a root file system of busybox
bare() {
	mkdir -p "$1"/{bin,proc,dev,tmp,etc,usr/bin}
	chmod 1777 "$1/tmp"
	cp /bin/busybox "$1/bin/busybox"
	"$1/bin/busybox" --list | grep -vx busybox | while read -r name; do ln -s busybox "$1/bin/$name"; done
	echo 'user:x:1234:1234::/tmp:/bin/sh' >"$1/etc/passwd"
}

# within DIR COMMAND...: in there, as its user
within() {
	local dir=$1; shift
	unshare -m -p -n -f bash -c '
		dir=$1; shift
		mount -t proc proc "$dir/proc" && mount --rbind /dev "$dir/dev" &&
		exec chroot --userspec=1234:1234 "$dir" /bin/env -i PATH=/usr/bin:/bin:/usr/local/bin "$@"' - "$dir" "$@"
}

# A server and a client on one node: the host of this namespace has not even a loopback that is up. $0: the client.
SERVE='echo found >/tmp/index.html; busybox httpd -f -p 8000 -h /tmp & 
n=0; until busybox wget -q -O- http://127.0.0.1:8000/index.html >/dev/null 2>&1 || [ $n = 50 ]; do n=$((n+1)); sleep 0.1; done
$0 http://127.0.0.1:8000/index.html | grep -x found; status=$?; kill $!; exit $status'

uses() { within "$1" ring3 run --mem 64M -- sh -c "$SERVE" "$2"; }

# listed DIR: all files, but for what belongs to a package manager
listed() {
	(cd "$1" && find . \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./var \) -prune -o -print | sort)
}
leaves_nothing() { listed "$1" | diff "$2" -; }

