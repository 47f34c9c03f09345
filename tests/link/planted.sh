#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# planted.sh OUT COMPILER... - does link_fuzz find faults? Each of these lines is a change of
# link_ring.h that lets a far side in; the fuzzer has to fail within ten seconds.
set -u
cd "$(dirname "$0")" || exit 1
out=$1; shift
driver=../../kernel/drivers/net/ring3/link_ring.h
failed=0
mkdir -p "$out/planted"

build() { # COMPILER..., with the folder of the planted copy in front
	compiler=$1; shift
	"$compiler" -I"$out/planted" "$@" -Wno-error -o "$out/link_fuzz_planted" link_fuzz.c
}

try() { # NAME SED COMPILER...
	name=$1 change=$2; shift 2
	sed "$change" $driver >"$out/planted/link_ring.h"
	if cmp -s $driver "$out/planted/link_ring.h"; then
		echo "FAIL link_fuzz planted: $name: the line is not there any more"; failed=1
	elif ! build "$@"; then
		echo "FAIL link_fuzz planted: $name: does not compile"; failed=1
	elif "$out/link_fuzz_planted" --corpus corpus --seconds 10 >/dev/null 2>&1; then
		echo "FAIL link_fuzz planted: $name: not found"; failed=1
	else
		echo "ok link_fuzz planted: $name"
	fi
}

try 'a length of any size' 's/if (n > rx->size - sizeof(\*r))/if (0)/' "$@"
try 'a head beyond the ring' 's/if (avail > rx->size || /if (/' "$@"
try 'a record over the end' 's/if (rx->record > avail || rx->record > contiguous)/if (rx->record > avail)/' "$@"
try 'a skip past the head' 's/if (!at || contiguous > avail)/if (!at)/' "$@"
try 'a tail before the ring' 's/if (tx->head - tail > tx->size) {/if (0) {/' "$@"
try 'a length that is read twice' 's/\t\t\*len = n;/\t\t*len = link_load(\&r->len);/' "$@"
rm -rf "$out/planted" "$out/link_fuzz_planted" "$out/link_fuzz_planted.input"
exit $failed
