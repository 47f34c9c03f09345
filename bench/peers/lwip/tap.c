// SPDX-License-Identifier: GPL-2.0
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"

#define BURST	64	/* packets taken before timers and the program have their turn */
#define FRAME	1514	/* bytes: Ethernet's head and its MTU */

static struct netif netif;
static int tap;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

u32_t sys_now(void)
{
	return now_ns() / 1000000;
}

void die(const char *what)
{
	fprintf(stderr, "lwip: %s: %s\n", what, strerror(errno));
	exit(1);
}

static err_t transmit(struct netif *n, struct pbuf *p)
{
	char frame[FRAME];

	if (p->tot_len > sizeof(frame))
		return ERR_BUF;
	/* What the TAP does not take is lost, as on any wire. */
	if (!p->next)
		return write(tap, p->payload, p->len) < 0 ? ERR_IF : ERR_OK;
	pbuf_copy_partial(p, frame, p->tot_len, 0);
	return write(tap, frame, p->tot_len) < 0 ? ERR_IF : ERR_OK;
}

static err_t begin(struct netif *n)
{
	static const u8_t mac[] = { 0x02, 0, 0, 0, 0x83, 0x02 };

	n->name[0] = 't';
	n->name[1] = 'a';
	n->mtu = 1500;
	n->hwaddr_len = sizeof(mac);
	memcpy(n->hwaddr, mac, sizeof(mac));
	n->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET |
		   NETIF_FLAG_LINK_UP;
	n->output = etharp_output;
	n->linkoutput = transmit;
	return ERR_OK;
}

void tap_open(const char *name, const char *addr)
{
	struct ifreq r = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	ip4_addr_t ip, mask, any = { 0 };

	tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (tap < 0)
		die("/dev/net/tun");
	strncpy(r.ifr_name, name, sizeof(r.ifr_name) - 1);
	if (ioctl(tap, TUNSETIFF, &r))
		die(name);
	if (!ip4addr_aton(addr, &ip)) {
		fprintf(stderr, "lwip: %s: not an address\n", addr);
		exit(2);
	}
	IP4_ADDR(&mask, 255, 255, 255, 0);
	lwip_init();
	netif_add(&netif, &ip, &mask, &any, NULL, begin, ethernet_input);
	netif_set_default(&netif);
	netif_set_up(&netif);
}

/* One packet; 0 when there is none. */
static int take(void)
{
	char frame[FRAME + 4];
	ssize_t n = read(tap, frame, sizeof(frame));
	struct pbuf *p;

	if (n <= 0)
		return 0;
	p = pbuf_alloc(PBUF_RAW, n, PBUF_POOL);
	if (!p)
		return 1;
	pbuf_take(p, frame, n);
	if (netif.input(p, &netif) != ERR_OK)
		pbuf_free(p);
	return 1;
}

void tap_loop(void (*idle)(void))
{
	for (;;) {
		struct pollfd f = { .fd = tap, .events = POLLIN };
		u32_t wait = sys_timeouts_sleeptime();
		int i;

		if (poll(&f, 1, wait == SYS_TIMEOUTS_SLEEPTIME_INFINITE ? -1 : (int)wait) < 0 &&
		    errno != EINTR)
			die("poll");
		for (i = 0; i < BURST && take(); i++)
			;
		sys_check_timeouts();
		if (idle)
			idle();
	}
}
