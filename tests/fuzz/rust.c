// SPDX-License-Identifier: GPL-2.0
/*
 * rust.c - our parsers in Rust (ring3/fuzz), coverage-guided
 *
 * Built once and run by the name of what is to be fuzzed: join, control, port, node, small. The
 * Rust code is compiled with the calls to __sanitizer_cov_trace_pc() that cover.h counts.
 */
static const char *const words[] = {
	"link", "tap", "passt", "packet", ":", ",", "=", "/", "addr", "addr=", "gw=", "host=", "mtu=",
	"mac=", "pcap=", "10.0.0.1/24", "10.0.0.1", "fd00::1/64", "fe80::1", "ab", "1500",
	"02:00:00:00:00:01", "[[port]]\n", "[sysctl]\n", "kind = 'link'\n", "name = 'a'\n", "mem = '64M'\n",
	"port = ['passt']\n", "'net.ipv4.ip_forward' = 1\n", "net.ipv4.x=1", "../", "spin_ns = 1\n",
	"{\"op\":\"status\"}", "{\"op\":\"log\",\"from\":1}", "{\"op\":\"down\"}", "\"ok\"", "{\"error\":\"x\"}",
	"{\"log\":{\"text\":\"x\",\"next\":1}}", "\xc3\xa4", "\n", " ", "'", "\"", "18446744073709551616", "K", "G",
};
#define FUZZ_WORDS words
#include "cover.h"

_Bool ring3_fuzz(const char *name, const uint8_t *data, size_t len);

static const char *target;

static void fuzz_one(const uint8_t *data, size_t len)
{
	if (!ring3_fuzz(target, data, len))
		abort();
}

int main(int argc, char **argv)
{
	target = strrchr(argv[0], '/');
	target = target ? target + 1 : argv[0];
	return cover_main(argc, argv);
}
