#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# wrk with one thread: wrk.sh ADDRESS PORT "DOCUMENT x CONNECTIONS" SECONDS
# Before that it runs for a second that does not count: the server may just have started.
set -e
document=${3% x *}
connections=${3#* x }
# wrk counts whole seconds.
seconds=$(printf '%.0f' "$4")
[ "$seconds" -ge 1 ] || seconds=1
ulimit -n "$(ulimit -H -n)"
wrk -t 1 -c "$connections" -d 1s "http://$1:$2/$document" >/dev/null
exec wrk --latency -t 1 -c "$connections" -d "${seconds}s" "http://$1:$2/$document"
