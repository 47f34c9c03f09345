// SPDX-License-Identifier: GPL-2.0
/* counter INTERFACE NAME - one of the driver's own counters, as `ethtool -S` has them */
#include "oracle.h"
#include <linux/ethtool.h>
#include <linux/sockios.h>

#define MOST	256

int main(int argc, char **argv)
{
	static struct {
		struct ethtool_gstrings head;
		char name[MOST][ETH_GSTRING_LEN];
	} names = { .head = { .cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS } };
	static struct {
		struct ethtool_stats head;
		uint64_t value[MOST];
	} stats = { .head = { .cmd = ETHTOOL_GSTATS } };
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq ifr = { .ifr_data = (void *)&info };
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0));

	need(argc == 3);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", argv[1]);
	must(ioctl(fd, SIOCETHTOOL, &ifr));
	need(info.n_stats <= MOST);
	names.head.len = info.n_stats;
	stats.head.n_stats = info.n_stats;
	ifr.ifr_data = (void *)&names;
	must(ioctl(fd, SIOCETHTOOL, &ifr));
	ifr.ifr_data = (void *)&stats;
	must(ioctl(fd, SIOCETHTOOL, &ifr));
	for (unsigned int i = 0; i < info.n_stats; i++)
		if (!strcmp(names.name[i], argv[2])) {
			say("%llu", (unsigned long long)stats.value[i]);
			return 0;
		}
	say("no counter %s among %u", argv[2], info.n_stats);
	return 1;
}
