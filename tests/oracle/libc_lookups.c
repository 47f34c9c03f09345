// SPDX-License-Identifier: GPL-2.0
/* Functions that libc builds on sockets: getifaddrs, if_nameindex, getaddrinfo, getnameinfo. */
#include "oracle.h"
#include <ifaddrs.h>
#include <netdb.h>

int main(void)
{
	struct ifaddrs *list;
	struct if_nameindex *names;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *res;
	char host[64], port[16], name[IFNAMSIZ];
	int r;

	must(getifaddrs(&list));
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		int f = i->ifa_addr ? i->ifa_addr->sa_family : -1;

		if (f == AF_INET || f == AF_INET6)
			say("%s family %d %s flags %#x", i->ifa_name, f, address_text((union address *)i->ifa_addr),
			    i->ifa_flags);
		else
			say("%s family %d", i->ifa_name, f);
	}
	freeifaddrs(list);
	names = if_nameindex();
	need(names);
	for (struct if_nameindex *n = names; n->if_index; n++)
		say("%u %s", n->if_index, n->if_name);
	N(if_nametoindex("lo"));
	N(if_nametoindex("nosuch"));
	say("%s", if_indextoname(1, name) ? name : ename(errno));
	say("%s", if_indextoname(77, name) ? name : ename(errno));

	r = getaddrinfo("localhost", "80", &hints, &res);
	say("localhost: %s", r ? gai_strerror(r) : "ok");
	for (struct addrinfo *a = r ? NULL : res; a; a = a->ai_next)
		say("  %s port %d", address_text((union address *)a->ai_addr), ntohs(((struct sockaddr_in *)a->ai_addr)->sin_port));
	hints.ai_flags = AI_PASSIVE;
	r = getaddrinfo(NULL, "8080", &hints, &res);
	for (struct addrinfo *a = r ? NULL : res; a; a = a->ai_next)
		say("passive %s", address_text((union address *)a->ai_addr));
	hints.ai_flags = AI_NUMERICHOST;
	r = getaddrinfo("no.such.host", "80", &hints, &res);
	say("%s", gai_strerror(r));
	hints.ai_flags = AI_ADDRCONFIG;
	r = getaddrinfo("::1", "80", &hints, &res);
	say("::1 with AI_ADDRCONFIG: %s", r ? gai_strerror(r) : "ok");
	{
		union address a = loopback(AF_INET, 80);

		r = getnameinfo(&a.sa, sizeof(a.in), host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
		say("%s %s", host, port);
	}
	return 0;
}
