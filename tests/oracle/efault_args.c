// SPDX-License-Identifier: GPL-2.0
/* EFAULT for every other pointer that a socket call takes. */
#include "bad_memory.h"

static int tcp[2], udp[2], l, e, clients[BAD_COUNT * 4], used;
static union address me;

static void offer(void)
{
	int c = must(socket(AF_INET, SOCK_STREAM, 0));

	must(connect_port(c, AF_INET, local_port(l)));
	clients[used++] = c;
}

#define SEE(expr) do { long r_ = (expr); printf("  %s -> %s\n", #expr, r_ < 0 ? ename(errno) : "ok"); } while (0)

int main(void)
{
	bad_init();
	tcp_pair(AF_INET, tcp);
	udp_pair(AF_INET, udp);
	l = listener(AF_INET, 64);
	e = must(epoll_create1(0));
	must(epoll_ctl(e, EPOLL_CTL_ADD, udp[0], &(struct epoll_event){ .events = EPOLLOUT }));
	me = loopback(AF_INET, local_port(udp[1]));
	for (int k = 0; k < BAD_COUNT; k++) {
		char b[64];
		socklen_t len = 16;
		int fresh = must(socket(AF_INET, SOCK_STREAM, 0)), value = 1;
		struct iovec iov = { b, 16 };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 }, bad;
		int expect_ok = k == BAD_READ_ONLY;	/* good for what is only read */

		printf("%s%s\n", bad_names[k], expect_ok ? " (zeroes)" : "");
#define P(size) bad_pointer(k, size)
		SEE(bind(fresh, P(16), 16));
		SEE(connect(fresh, P(16), 16));
		offer();
		SEE(accept(l, P(16), &len));
		offer();
		SEE(accept(l, &me.sa, P(4)));
		SEE(getsockname(tcp[0], P(16), &len));
		SEE(getsockname(tcp[0], &me.sa, P(4)));
		SEE(getpeername(tcp[0], P(16), &len));
		SEE(getpeername(tcp[0], &me.sa, P(4)));
		SEE(setsockopt(tcp[0], SOL_SOCKET, SO_KEEPALIVE, P(4), 4));
		SEE(setsockopt(tcp[0], IPPROTO_TCP, TCP_NODELAY, P(4), 4));
		SEE(setsockopt(tcp[0], IPPROTO_IP, IP_TOS, P(4), 4));
		SEE(setsockopt(tcp[0], IPPROTO_TCP, TCP_CONGESTION, P(4), 4));
		SEE(setsockopt(tcp[0], SOL_SOCKET, SO_LINGER, P(8), 8));
		len = 4;
		SEE(getsockopt(tcp[0], SOL_SOCKET, SO_KEEPALIVE, P(4), &len));
		SEE(getsockopt(tcp[0], SOL_SOCKET, SO_KEEPALIVE, &value, P(4)));
		SEE(getsockopt(tcp[0], IPPROTO_TCP, TCP_NODELAY, P(4), &len));
		SEE(getsockopt(tcp[0], IPPROTO_IP, IP_TOS, &value, P(4)));
		len = 104;
		SEE(getsockopt(tcp[0], IPPROTO_TCP, TCP_INFO, P(104), &len));
		me = loopback(AF_INET, local_port(udp[1]));
		len = 16;
		SEE(sendto(udp[0], "x", 1, 0, P(16), 16));
		must(send(udp[1], "x", 1, 0));
		SEE(recvfrom(udp[0], b, 16, 0, P(16), &len));
		must(send(udp[1], "x", 1, 0));
		SEE(recvfrom(udp[0], b, 16, 0, &me.sa, P(4)));
		SEE(sendmsg(udp[0], P(56), 0));
		must(send(udp[1], "x", 1, 0));
		SEE(recvmsg(udp[0], P(56), MSG_DONTWAIT));
		while (recv(udp[0], b, 16, MSG_DONTWAIT) >= 0)
			;
		bad = m;
		bad.msg_iov = P(16);
		SEE(sendmsg(udp[0], &bad, 0));
		SEE(recvmsg(udp[0], &bad, MSG_DONTWAIT));
		bad = m;
		bad.msg_name = P(16);
		bad.msg_namelen = 16;
		SEE(sendmsg(udp[0], &bad, 0));
		must(send(udp[1], "x", 1, 0));
		SEE(recvmsg(udp[0], &bad, MSG_DONTWAIT));
		bad = m;
		bad.msg_control = P(32);
		bad.msg_controllen = 32;
		SEE(sendmsg(udp[0], &bad, 0));
		must(set_int(udp[0], IPPROTO_IP, IP_RECVTTL, 1));
		must(send(udp[1], "x", 1, 0));
		SEE(recvmsg(udp[0], &bad, MSG_DONTWAIT));
		say("    flags %s control %zu", msg_flags(bad.msg_flags), bad.msg_controllen);
		must(set_int(udp[0], IPPROTO_IP, IP_RECVTTL, 0));
		SEE(sendmmsg(udp[0], P(64), 1, 0));
		SEE(recvmmsg(udp[0], P(64), 1, MSG_DONTWAIT, NULL));
		SEE(syscall(SYS_recvmmsg, udp[0], &(struct mmsghdr){ .msg_hdr = m }, 1, MSG_DONTWAIT, k == BAD_NULL ? (void *)8 : P(16)));
		SEE(writev(udp[0], P(16), 1));
		SEE(readv(udp[0], P(16), 1));
		SEE(syscall(SYS_poll, k == BAD_NULL ? (void *)8 : P(8), 1, 0));
		SEE(syscall(SYS_epoll_ctl, e, EPOLL_CTL_ADD, tcp[0], P(12)));
		epoll_ctl(e, EPOLL_CTL_DEL, tcp[0], NULL);
		SEE(syscall(SYS_epoll_wait, e, P(12), 1, 0));
		SEE(syscall(SYS_select, 30, k == BAD_NULL ? (void *)8 : P(8), NULL, NULL, &(struct timeval){}));
		SEE(syscall(SYS_select, 1, NULL, NULL, NULL, k == BAD_NULL ? (void *)8 : P(16)));
		SEE(ioctl(tcp[0], FIONREAD, P(4)));
		SEE(ioctl(tcp[0], FIONBIO, P(4)));
		fcntl(tcp[0], F_SETFL, 0);
		SEE(ioctl(udp[0], SIOCGIFINDEX, P(40)));
		SEE(ioctl(udp[0], SIOCGIFCONF, P(16)));
		SEE(fstat(tcp[0], k == BAD_NULL ? (void *)8 : P(144)));
		SEE(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, P(8)));
		SEE(syscall(SYS_fcntl, tcp[0], F_GETOWN_EX, P(8)));
		close(fresh);
	}
	return 0;
}
