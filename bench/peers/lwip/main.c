// SPDX-License-Identifier: GPL-2.0
/*
 * lwip - the serving ends of bench/load's programs, on lwIP and a TAP
 *
 *	lwip TAP ADDRESS pingpong serve tcp|udp PORT SIZE
 *	lwip TAP ADDRESS flood serve PORT
 *	lwip TAP ADDRESS stream serve PORT
 *	lwip TAP ADDRESS httpd PORT
 *
 * What crosses the wire is what the programs in bench/load say there, so that the same
 * asking end works with both. One thread, callbacks, no copy but the stack's own: the
 * way lwIP is meant to be used.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "lwip/tcp.h"
#include "lwip/udp.h"
#include "tap.h"

#define CHUNK	65536	/* bytes that are handed to TCP at once */

static char data[1 << 20];

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

/*
 * The last words of a connection leave with the next round of the loop: it ends the
 * program some time after.
 */
static uint64_t end_at;

static void end_soon(void)
{
	end_at = now_ns() + 20000000;
}

static void end_if_due(void)
{
	if (end_at && now_ns() >= end_at)
		exit(0);
}

static struct tcp_pcb *tcp_serve(int port, tcp_accept_fn accept)
{
	struct tcp_pcb *pcb = tcp_new();

	if (!pcb || tcp_bind(pcb, IP_ADDR_ANY, port) != ERR_OK)
		die("tcp_bind");
	pcb = tcp_listen_with_backlog(pcb, 255);
	if (!pcb)
		die("tcp_listen");
	tcp_accept(pcb, accept);
	return pcb;
}

static void put(struct tcp_pcb *pcb, const void *from, u16_t n)
{
	if (tcp_write(pcb, from, n, TCP_WRITE_FLAG_COPY) != ERR_OK) {
		fprintf(stderr, "lwip: the send buffer is full\n");
		exit(1);
	}
	tcp_output(pcb);
}

/* pingpong: what comes goes back. */

static err_t echo_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	struct pbuf *q;

	if (!p)
		exit(0);
	for (q = p; q; q = q->next)
		put(pcb, q->payload, q->len);
	tcp_recved(pcb, p->tot_len);
	pbuf_free(p);
	return ERR_OK;
}

static err_t echo_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
	tcp_nagle_disable(pcb);
	tcp_recv(pcb, echo_recv);
	return ERR_OK;
}

static void echo_datagram(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *from,
			  u16_t port)
{
	udp_sendto(pcb, p, from, port);
	pbuf_free(p);
}

static err_t over_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	exit(0);
}

static err_t over_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
	tcp_recv(pcb, over_recv);
	return ERR_OK;
}

static void udp_serve(int port, udp_recv_fn recv)
{
	struct udp_pcb *pcb = udp_new();

	if (!pcb || udp_bind(pcb, IP_ADDR_ANY, port) != ERR_OK)
		die("udp_bind");
	udp_recv(pcb, recv, NULL);
}

/* flood: datagrams are counted; each byte on the control connection asks for the counts. */

static struct {
	uint64_t packets, first, last;
} count;

static void count_datagram(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *from,
			   u16_t port)
{
	static char taken[65536];

	/* A program would have the bytes in its own memory. */
	pbuf_copy_partial(p, taken, p->tot_len, 0);
	pbuf_free(p);
	if (!(count.packets % 16)) {
		count.last = now_ns();
		if (!count.first)
			count.first = count.last;
	}
	count.packets++;
}

static err_t count_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	int i;

	if (!p)
		exit(0);
	for (i = 0; i < p->tot_len; i++)
		put(pcb, &count, sizeof(count));
	tcp_recved(pcb, p->tot_len);
	pbuf_free(p);
	return ERR_OK;
}

static err_t count_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
	tcp_nagle_disable(pcb);
	tcp_recv(pcb, count_recv);
	return ERR_OK;
}

/* stream: an order, then data in one of the directions. */

static struct {
	uint32_t size, back;
	uint64_t ns;
} order;
static struct {
	uint64_t bytes, ns;
} result;
static size_t ordered;		/* bytes of the order that have come */
static uint64_t start, end;
static bool sent_all;

static err_t stream_sent(void *arg, struct tcp_pcb *pcb, u16_t len)
{
	while (!sent_all) {
		size_t room = tcp_sndbuf(pcb);
		size_t n = order.size < CHUNK ? order.size : CHUNK - 1;

		if (now_ns() >= end) {
			sent_all = true;
			tcp_shutdown(pcb, 0, 1);
			break;
		}
		if (room < n)
			break;
		if (tcp_write(pcb, data, n, TCP_WRITE_FLAG_COPY) != ERR_OK)
			break;
	}
	tcp_output(pcb);
	return ERR_OK;
}

static err_t stream_poll(void *arg, struct tcp_pcb *pcb)
{
	return order.back ? stream_sent(arg, pcb, 0) : ERR_OK;
}

static void stream_take(struct pbuf *p)
{
	u16_t at = 0;

	if (ordered < sizeof(order)) {
		at = pbuf_copy_partial(p, (char *)&order + ordered, sizeof(order) - ordered, 0);
		ordered += at;
	}
	if (at == p->tot_len)
		return;
	pbuf_copy_partial(p, data, p->tot_len - at, at);
	if (!start)
		start = now_ns();
	else
		result.bytes += p->tot_len - at;
}

static err_t stream_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	bool fresh = ordered < sizeof(order);

	if (!p && order.back)
		exit(0);
	if (!p) {
		result.ns = now_ns() - start;
		put(pcb, &result, sizeof(result));
		end_soon();
		return ERR_OK;
	}
	stream_take(p);
	tcp_recved(pcb, p->tot_len);
	pbuf_free(p);
	if (fresh && ordered == sizeof(order) && order.back) {
		end = now_ns() + order.ns;
		return stream_sent(arg, pcb, 0);
	}
	return ERR_OK;
}

static err_t stream_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
	tcp_recv(pcb, stream_recv);
	tcp_sent(pcb, stream_sent);
	tcp_poll(pcb, stream_poll, 1);
	return ERR_OK;
}

/* httpd: a kilobyte for each request. */

static char answer[2048];
static int answer_len;

static err_t http_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	u16_t at, end_len = 4;

	if (!p) {
		tcp_close(pcb);
		return ERR_OK;
	}
	/* wrk sends a request whole and waits for its answer: an end is a request. */
	for (at = 0; (at = pbuf_memfind(p, "\r\n\r\n", end_len, at)) != 0xffff; at += end_len)
		put(pcb, answer, answer_len);
	tcp_recved(pcb, p->tot_len);
	pbuf_free(p);
	return ERR_OK;
}

static err_t http_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
	tcp_nagle_disable(pcb);
	tcp_recv(pcb, http_recv);
	return ERR_OK;
}

static void http_serve(int port)
{
	answer_len = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n");
	memset(answer + answer_len, 'x', 1024);
	answer_len += 1024;
	tcp_serve(port, http_accept);
}

int main(int argc, char **argv)
{
	const char *what = argc > 4 ? argv[3] : "";

	if (argc > 4)
		tap_open(argv[1], argv[2]);
	if (argc == 8 && !strcmp(what, "pingpong") && !strcmp(argv[5], "tcp")) {
		tcp_serve(atoi(argv[6]), echo_accept);
	} else if (argc == 8 && !strcmp(what, "pingpong")) {
		udp_serve(atoi(argv[6]), echo_datagram);
		tcp_serve(atoi(argv[6]), over_accept);
	} else if (argc == 6 && !strcmp(what, "flood")) {
		udp_serve(atoi(argv[5]), count_datagram);
		tcp_serve(atoi(argv[5]), count_accept);
	} else if (argc == 6 && !strcmp(what, "stream")) {
		tcp_serve(atoi(argv[5]), stream_accept);
	} else if (argc == 5 && !strcmp(what, "httpd")) {
		http_serve(atoi(argv[4]));
	} else {
		fprintf(stderr, "usage: see the head of main.c\n");
		return 2;
	}
	ready();
	tap_loop(end_if_due);
}
