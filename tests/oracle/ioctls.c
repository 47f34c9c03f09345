// SPDX-License-Identifier: GPL-2.0
/* ioctl() on sockets: queue sizes, interfaces, errors. */
#include "oracle.h"
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <net/route.h>

static void queues(const char *who, int fd)
{
	int in = -7, out = -7, ri, ro;

	ri = ioctl(fd, FIONREAD, &in) ? errno : 0;
	ro = ioctl(fd, SIOCOUTQ, &out) ? errno : 0;
	say("%s: in %s %d, out %s %d", who, ename(ri), in, ename(ro), out);
}

static void interface(int fd, const char *name)
{
	static const struct { unsigned long request; const char *text; } gets[] = {
		{ SIOCGIFINDEX, "index" }, { SIOCGIFMTU, "mtu" }, { SIOCGIFMETRIC, "metric" },
		{ SIOCGIFTXQLEN, "txqlen" },
	};
	struct ifreq r;

	memset(&r, 0, sizeof(r));
	strcpy(r.ifr_name, name);
	for (size_t i = 0; i < ARRAY_SIZE(gets); i++) {
		r.ifr_ifindex = -1;
		if (ioctl(fd, gets[i].request, &r))
			say("%s %s: %s", name, gets[i].text, ename(errno));
		else
			say("%s %s: %d", name, gets[i].text, r.ifr_ifindex);
	}
	if (!ioctl(fd, SIOCGIFFLAGS, &r))
		say("up %d loopback %d running %d", !!(r.ifr_flags & IFF_UP),
		    !!(r.ifr_flags & IFF_LOOPBACK), !!(r.ifr_flags & IFF_RUNNING));
	if (!ioctl(fd, SIOCGIFHWADDR, &r))
		say("hardware type %d", r.ifr_hwaddr.sa_family);
	if (!ioctl(fd, SIOCGIFADDR, &r))
		say("address %s", inet_ntoa(((struct sockaddr_in *)&r.ifr_addr)->sin_addr));
	else
		say("address %s", ename(errno));
	if (!ioctl(fd, SIOCGIFNETMASK, &r))
		say("mask %s", inet_ntoa(((struct sockaddr_in *)&r.ifr_addr)->sin_addr));
}

int main(void)
{
	int p[2], u[2], fd;
	char b[16];
	struct ifreq list[8], r;
	struct ifconf conf = { .ifc_len = sizeof(list), .ifc_req = list };
	struct arpreq arp;

	tcp_pair(AF_INET, p);
	udp_pair(AF_INET, u);
	queues("empty tcp", p[1]);
	queues("empty udp", u[1]);
	must(write(p[0], "abcdef", 6));
	must(send(u[0], "abc", 3, 0));
	must(send(u[0], "defgh", 5, 0));
	need(wait_for(p[1], POLLIN));
	queues("tcp", p[1]);
	queues("udp, the first only", u[1]);
	must(recv(u[1], b, 16, 0));
	queues("udp", u[1]);
	fd = listener(AF_INET, 1);
	queues("listener", fd);
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	queues("fresh", fd);
	close(p[0]);
	need(wait_for(p[1], POLLRDHUP));
	queues("after FIN", p[1]);

	fd = u[0];
	interface(fd, "lo");
	interface(fd, "nosuch0");
	T(ioctl(fd, SIOCGIFCONF, &conf));
	for (int i = 0; i < conf.ifc_len / (int)sizeof(r); i++)
		say("%s %s", list[i].ifr_name, inet_ntoa(((struct sockaddr_in *)&list[i].ifr_addr)->sin_addr));
	conf.ifc_req = NULL;
	T(ioctl(fd, SIOCGIFCONF, &conf));
	say("needed: entries %zu", conf.ifc_len / sizeof(r));
	memset(&r, 0, sizeof(r));
	r.ifr_ifindex = 1;
	T(ioctl(fd, SIOCGIFNAME, &r));
	say("%s", r.ifr_name);
	r.ifr_ifindex = 55;
	T(ioctl(fd, SIOCGIFNAME, &r));

	/* Changing things, as the owner of the network. */
	memset(&r, 0, sizeof(r));
	strcpy(r.ifr_name, "lo");
	r.ifr_mtu = 9000;
	T(ioctl(fd, SIOCSIFMTU, &r));
	interface(fd, "lo");
	r.ifr_flags = 0;
	T(ioctl(fd, SIOCSIFFLAGS, &r));
	T(sendto(fd, "x", 1, 0, NULL, 0));
	r.ifr_flags = IFF_UP;
	T(ioctl(fd, SIOCSIFFLAGS, &r));
	T(sendto(fd, "x", 1, 0, NULL, 0));
	memset(&arp, 0, sizeof(arp));
	T(ioctl(fd, SIOCGARP, &arp));
	T(ioctl(fd, SIOCADDRT, &(struct rtentry){}));
	T(ioctl(fd, 0x5401 /* TCGETS */, b));
	T(ioctl(fd, 0xdeadbeef, b));
	T(ioctl(-1, FIONREAD, b));
	T(isatty(fd));
	return 0;
}
