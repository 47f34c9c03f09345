#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# planted.sh OUT [ports] - do the fuzzers find faults? Each line below is a change of what a
# fuzzer runs; it has to fail within PLANTED_SECONDS (60). `ports`: only those without Rust.
set -u
cd "$(dirname "$0")" || exit 1
out=$1 what=${2-all}
seconds=${PLANTED_SECONDS:-60}
top=$(cd ../.. && pwd)
driver=$top/kernel/drivers/net/ring3
failed=0

verdict() { # STATUS TARGET NAME [WHY]
	if [ "$1" = 0 ]; then
		echo "ok fuzz $2 planted: $3"
	else
		echo "FAIL fuzz $2 planted: $3: ${4-}"; failed=1
	fi
}

found() { # TARGET NAME PROGRAM
	"$3" --corpus "corpus/$1" --seconds "$seconds" --seed 1 >/dev/null 2>&1
	case $? in
	0) verdict 1 "$1" "$2" "not found" ;;
	2) verdict 1 "$1" "$2" "could not run" ;;
	*) verdict 0 "$1" "$2" ;;
	esac
	rm -f "$3" "$3.input"
}

port() { # TARGET FILE NAME SED
	rm -rf "$out/planted" && cp -r "$driver" "$out/planted"
	sed "$4" "$driver/$2" >"$out/planted/$2"
	if cmp -s "$driver/$2" "$out/planted/$2"; then
		verdict 1 "$1" "$3" "the line is not there any more"
	elif ! ${CC:-cc} -std=gnu11 -O1 -g -w -Ishim -I"$out/planted" -I"$top/build/abi/include" \
		-fsanitize-coverage=trace-pc -fsanitize=address,undefined -fno-sanitize-recover=all \
		-o "$out/planted_$1" "$1.c"; then
		verdict 1 "$1" "$3" "does not compile"
	else
		found "$1" "$3" "$out/planted_$1"
	fi
	rm -rf "$out/planted"
}

rust() { # TARGET FILE NAME SED
	[ "$what" = all ] || return 0
	source=$out/rust/ring3
	mkdir -p "$source" "$out/rust/include" "$out/rust/tests"
	rsync -rc --delete "$top/ring3/" "$source/" && rsync -rc "$top/include/" "$out/rust/include/"
	sed "$4" "$top/ring3/$2" >"$source/$2"
	if cmp -s "$top/ring3/$2" "$source/$2"; then
		verdict 1 "$1" "$3" "the line is not there any more"
	elif ! make -s "$out/rust/$1" OUT="$out/rust" SOURCE="$source" >"$out/rust/log" 2>&1; then
		verdict 1 "$1" "$3" "does not compile, see $out/rust/log"
	else
		found "$1" "$3" "$out/rust/$1"
	fi
}

port port_fd fdport.c 'the rest of a page is given out twice' 's/p->offset += step;/;/'
port port_fd fdport.c 'a page is not held' 's/get_page(p->page);/;/'
port port_fd fdport.c 'no room for a whole segment' 's/while (slot->room < FD_RX_PAGES)/while (slot->room < FD_RX_PAGES \/ 4)/'
port port_fd fdport.c 'a device that is gone is read' 's/if (n == -EAGAIN || fdp->gone)/if (n == -EAGAIN)/'
port port_fd fdport.c 'frames that lie behind a refused call are left' 's/^\t\*last = false;/\t*last = true;/'
port port_fd fdport.c 'a slot is read that has not been filled' 's/i < n; i++) {$/i < fdp->batch; i++) {/'
port port_fd fdsend.c 'a frame is kept that was sent' 's/while (n-- > 0)/while (n-- > 1)/'
port port_fd fdsend.c 'a frame is lost behind one that the host refused' 's/fdp->queue\[fdp->first++\], n)/fdp->queue[fdp->first], n), fdp->first += 2/'
port port_fd fdsend.c 'more frames than there is room for' 's/&& fdp->queued < FD_TX_BATCH &&/\&\&/'
port port_fd fdsend.c 'a frame of a TAP waits' 's/more && fdp->many/more/'
port port_fd fdport.c 'missed frames do not add up' 's/atomic64_add(stats.tp_drops, &fdp->missed);/fdp->missed.counter = stats.tp_drops;/'
port port_fd rx.c 'runts are let in' 's/if (unlikely(len < ETH_HLEN))/if (unlikely(len < 8))/'
port port_passt passt.c 'a length of any size' 's/if (\*len > PASST_FRAME_MAX) {/if (0) {/'
port port_passt passt.c 'what came before up is received' 's/^\tpasst_drain(port, passt);/\t;/'
port port_passt passt.c 'what was moved is counted twice' 's/passt->have -= passt->off;/;/'
port port_passt passt.c 'what was sent stays sent' 's/passt->sent -= passt_bytes(skb);/;/'
port port_passt passt.c 'a half sent frame is dropped' 's/passt->sent ? __skb_dequeue(&passt->queue) : NULL/NULL/'
port port_passt hostio.c 'an entry starts at its beginning again' 's/iov\[0\].iov_base += skip;/;/'
port port_passt rx.c 'a page is not held' 's/get_page(frag->page);/;/'
rust join node/src/join.rs 'who else asks' 's/if request.pid != pid {/if false {/'
rust join node/src/join.rs 'a longer request' 's/if bytes.len() != size_of::<ring3_join_request>() {/if bytes.len() < size_of::<ring3_join_request>() {/'
rust control node/src/control.rs 'a number is lost' 's/^        from: u64,/        #[serde(skip)] from: u64,/'
rust port config/src/port.rs 'any MTU' 's/^const MTU_MIN: u32 = 68;/const MTU_MIN: u32 = 0;/'
rust node config/src/file.rs 'the whole is not checked' 's/node.check().map_err.*;/;/'
rust node config/src/file.rs 'a message is cut within a character' 's/text.get(..span.start).unwrap_or(text)/\&text[..(span.start + 1).min(text.len())]/'
rust small config/src/sysctl.rs 'a way out of /proc/sys' 's/matches!(part, "" | "." | "..")/matches!(part, "")/'
exit $failed
