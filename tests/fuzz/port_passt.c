// SPDX-License-Identifier: GPL-2.0
/*
 * port_passt.c - a passt port against whatever comes along its stream, coverage-guided
 *
 * Compiles the driver's passt.c, rx.c and hostio.c. An input is a list of steps: polls,
 * sends, ups and downs; and how much of the stream each read and write moves. The stream in is
 * made here, frame by frame, until a length that none has, an end or an error; the stream out is
 * taken apart again: frames in their order, whole, and after an error nothing. What is whole in
 * the stream when the interface comes up must not arrive.
 */
#include "port_fuzz.h"
#include "passt.c"

#define NUMBERS	1024u

/* The stream in: where we are in the frame that comes. */
static struct {
	u32 seq, len, at;	/* at counts the length field */
	bool bad, over;
} in;

/* The stream out. */
static struct {
	u32 seq, len, at;	/* of the frame under way */
	u32 last;		/* number of the last one begun */
	u8 head[4];
	bool over;
} out;
static u32 numbered;		/* frames given to xmit */
static u32 lengths[NUMBERS];	/* of these */

static void in_next(void)
{
	u32 how = byte();

	in.at = 0;
	in.bad = how % 32 == 31;
	if (in.bad) {
		in.len = RING3_FRAME_MAX + 1 + (how / 32 ? 0 : byte() << 24);
		in.seq = 0;
		return;
	}
	in.len = min(some_len(), RING3_FRAME_MAX);
	in.seq = frame_new(in.len, may_arrive(in.len, 0));
}

/* At most room bytes more of the frame that comes. */
static u32 in_some(u8 *buf, u32 room)
{
	u32 n = min(room, 4 + in.len - in.at), head, i, at;

	/* Behind a length that is none, anything. */
	if (in.bad && in.at >= 4) {
		memset(buf, 0xab, room);
		return room;
	}
	head = in.at < 4 ? min(n, 4 - in.at) : 0;
	for (i = 0; i < head; i++)
		buf[i] = (u8)(in.len >> 8 * (3 - in.at++));
	if (in.bad)
		return head;
	if (in.at >= 4) {
		at = in.at - 4;
		content_put(buf + head, n - head, in.seq, &at);
		in.at += n - head;
	}
	if (in.at == 4 + in.len)
		in.at = ~0u;
	return n;
}

static long host_recv(u8 *buf, size_t room)
{
	static const int errors[] = { ECONNRESET, EIO, ENOTCONN };
	u32 how = byte(), want, n;

	CHECK(room && !in.over);
	if (!left || how % 8 == 0)
		return -EAGAIN;
	if (how == 255 || how == 254) {
		in.over = true;
		return how == 255 ? 0 : -errors[byte() % 3];
	}
	if (how == 253 || how == 252)
		return how == 253 ? -ENOMEM : -ENOBUFS;
	want = how % 8 < 3 ? 1 + how / 8 : how % 8 < 6 ? 1 + byte() * 64 : ~0u;
	for (n = 0; n < want && n < room;) {
		if (in.at == ~0u) {
			if (!left)
				break;
			in_next();
		}
		n += in_some(buf + n, min(want, (u32)room) - n);
	}
	return n ? (long)n : -EAGAIN;
}

/* Its length is there: is there a frame of it that was not begun yet? */
static void out_length(void)
{
	u32 i;

	out.len = get_unaligned_be32(out.head);
	for (i = out.last + 1; i <= numbered; i++)
		if (lengths[i % NUMBERS] == out.len)
			return;
	CHECK(!"a length that no frame has");
}

/* Its number is there, which says which of that length it is. */
static void out_number(void)
{
	memcpy(&out.seq, out.head, 4);
	CHECK(out.seq > out.last && out.seq <= numbered && lengths[out.seq % NUMBERS] == out.len);
	out.last = out.seq;
}

static void out_some(const u8 *p, u32 n)
{
	u32 some, at;

	for (; n; p += some, n -= some) {
		if (out.at < 8) {
			some = 1;
			out.head[out.at++ % 4] = *p;
			if (out.at == 4)
				out_length();
			else if (out.at == 8)
				out_number();
			continue;
		}
		some = min(n, 4 + out.len - out.at);
		at = out.at - 4;
		content_same(p, some, out.seq, &at);
		out.at += some;
		if (out.at == 4 + out.len)
			out.at = 0;
	}
}

static long host_send(const struct user_msghdr *msg)
{
	size_t all = 0, some, n, i;
	u32 how = byte();

	CHECK(!out.over && msg->msg_iovlen && msg->msg_iovlen <= PASST_IOV);
	if (how % 4 == 1)
		return -EAGAIN;
	if (how == 254) {
		out.over = true;
		return -EPIPE;
	}
	if (how == 252 || how == 248)
		return how == 252 ? -ENOMEM : -ENOBUFS;
	for (i = 0; i < msg->msg_iovlen; i++)
		all += msg->msg_iov[i].iov_len;
	CHECK(all);
	some = how % 4 == 2 ? 1 + how / 4 : how % 4 == 3 ? 1 + (size_t)byte() * 400 : all;
	if (some > all)
		some = all;
	for (i = 0, n = 0; n < some; n += msg->msg_iov[i++].iov_len)
		out_some(msg->msg_iov[i].iov_base, (u32)min(msg->msg_iov[i].iov_len, some - n));
	return (long)some;
}

static long ring3_host_syscall(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
	(void)a3, (void)a4, (void)a5;
	CHECK(a0 == THE_FD);
	if (nr == SYS_recvfrom)
		return host_recv((void *)a1, (size_t)a2);
	CHECK(nr == SYS_sendmsg);
	return host_send((void *)a1);
}

static void transmit(struct ring3_port *port, bool more)
{
	struct sk_buff *skb;

	if (the_queue.stopped)
		return;
	skb = to_send(++numbered, 14 + some_len() % (RING3_FRAME_MAX - 14));
	lengths[numbered % NUMBERS] = skb->len;
	port->ops->xmit(port, skb, more);
}

/* Up: what came whole before does not arrive any more; what has begun does. */
static void opened(struct ring3_port *port, int err)
{
	u32 end = in.at == ~0u || in.bad ? made + 1 : in.seq, i;

	CHECK(!err == !to_passt(port)->down);
	CHECK(err || dev.carrier);
	for (i = 1; i <= FRAMES && i < end; i++)
		frames[(end - i) % FRAMES].must = false;
}

static void fuzz_one(const uint8_t *input, size_t len)
{
	struct ring3_port *port;

	step = input;
	left = len;
	memset(&in, 0, sizeof(in));
	in.at = ~0u;
	memset(&out, 0, sizeof(out));
	numbered = 0;
	port = port_new(&ring3_passt_ops, RING3_PORT_PASST);
	opened(port, port->ops->open(port));
	while (left) {
		u32 how = byte(), budget = 1 + how / 8 % 16;

		switch (how % 8) {
		case 0: case 1: case 2: case 3:
			CHECK(port->ops->poll(port, (int)budget) <= (int)budget);
			CHECK(!to_passt(port)->down || !dev.carrier);
			break;
		case 4: case 5:
			transmit(port, how & 128);
			break;
		case 6:
			if (how & 16)
				prog_change(port);
			if (the_queue.stopped && port->ops->tx_resume(port))
				the_queue.stopped = false;
			if (!the_queue.stopped && how & 32) {
				port->ops->flush(port);
				CHECK(the_queue.stopped || skb_queue_empty(&to_passt(port)->queue));
			}
			fails = how & 8;
			break;
		default:
			if (how & 24)
				break;
			port->ops->stop(port);
			the_queue.stopped = false;
			opened(port, port->ops->open(port));
		}
	}
	port_end(port);
}

int main(int argc, char **argv)
{
	return cover_main(argc, argv);
}
