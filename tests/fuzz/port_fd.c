// SPDX-License-Identifier: GPL-2.0
/*
 * port_fd.c - TAP and packet ports against whatever a host's device may say, coverage-guided
 *
 * Compiles the driver's fdport.c, rx.c and hostio.c. An input is a list of steps: polls,
 * sends, ups, downs and looks at what was missed; and what the host answers to each read and write in them: frames of
 * all lengths with all headers, errors, short ones. kernel.h and port_fuzz.h check the rest.
 */
#include "port_fuzz.h"
#include "fdport.c"

static bool gone;	/* the host has said so */
static bool opening;	/* what is read now came while the interface was down */
static u32 sent, sending;
static u32 sending_len;
static u64 missed;	/* what the host has said, in all */

static void must_have_arrived(void)
{
	account(made + 1);
}

static u32 fill(const struct iovec *iov, u32 n, const u8 *hdr, u32 hdr_len, u32 seq, u32 len)
{
	u32 at = 0, i;

	CHECK(n > 1 && iov[0].iov_len == to_fdport(&block.port)->hdr_len);
	memcpy(iov[0].iov_base, hdr, hdr_len);
	for (i = 1; i < n && at < len; i++)
		content_put(iov[i].iov_base, min((u32)iov[i].iov_len, len - at), seq, &at);
	return hdr_len + at;
}

static long host_read(const struct iovec *iov, u32 n)
{
	static const int errors[] = { EIO, ENETDOWN, EINTR, EBADFD, ENODEV };
	static const u8 types[] = { 0, 0, 0, 1, 3, 4, 5, 0x81, 77 };
	struct virtio_net_hdr_mrg_rxbuf hdr = {};
	u32 hdr_len = to_fdport(&block.port)->hdr_len, how = byte(), len, room = 0, i;
	long err;

	must_have_arrived();
	CHECK(!gone);
	if (!left || how % 8 == 0)
		return -EAGAIN;
	if (how % 8 == 1) {
		err = errors[how / 8 % ARRAY_SIZE(errors)];
		gone = !opening && (err == EBADFD || err == ENODEV);
		return -err;
	}
	if (opening) {
		CHECK(n == 1 && iov->iov_len);
		frame_new(some_len(), false);
		memset(iov->iov_base, 0xab, 1);
		return 1;
	}
	if (how % 8 == 2)
		return fill(iov, n, (u8 *)&hdr, how / 8 % hdr_len, 0, 0);
	for (i = 0; i < n; i++)
		room += (u32)iov[i].iov_len;
	/* What does not fit is lost, and a whole segment has to. */
	CHECK(room >= hdr_len + RING3_FRAME_MAX);
	hdr.hdr.gso_type = types[how / 8 % ARRAY_SIZE(types)];
	hdr.hdr.flags = (u8)(byte() % 4);
	len = min(some_len(), room - hdr_len);
	return fill(iov, n, (u8 *)&hdr, hdr_len,
		    frame_new(len, hdr.hdr.gso_type != 77 && may_arrive(len, hdr.hdr.gso_type)), len);
}

static long host_write(const struct iovec *iov, u32 n)
{
	u32 hdr_len = to_fdport(&block.port)->hdr_len, at = 0, i;
	u32 how = byte();

	CHECK(n && iov[0].iov_len == hdr_len);
	for (i = 1; i < n; i++)
		content_same(iov[i].iov_base, (u32)iov[i].iov_len, sending, &at);
	CHECK(at == sending_len);
	if (how % 4 == 1)
		return -EAGAIN;
	if (how % 4 == 2)
		return how & 64 ? -EIO : how & 128 ? -EBADFD : -ENOBUFS;
	sent++;
	return hdr_len + at;
}

/* Frames lost since the last look, or what a socket says that has lost its interface. */
static long host_statistics(struct tpacket_stats *stats, u32 *len)
{
	u32 how = byte();

	CHECK(*len == sizeof(*stats));
	if (how % 4 == 1)
		return -ENETDOWN;
	stats->tp_packets = how;
	stats->tp_drops = how / 4;
	missed += how / 4;
	return 0;
}

static long ring3_host_syscall(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
	(void)a5;
	CHECK(a0 == THE_FD);
	if (nr == SYS_getsockopt) {
		CHECK(a1 == SOL_PACKET && a2 == PACKET_STATISTICS);
		return host_statistics((void *)a3, (void *)a4);
	}
	if (nr == SYS_readv)
		return host_read((void *)a1, (u32)a2);
	CHECK(nr == SYS_writev);
	return host_write((void *)a1, (u32)a2);
}

static void transmit(struct ring3_port *port)
{
	struct sk_buff *skb;

	/* Linux does not send while the queue is stopped. */
	if (the_queue.stopped)
		return;
	sending = byte() + 1;
	skb = to_send(sending, 14 + some_len() % (RING3_FRAME_MAX - 14));
	sending_len = skb->len;
	port->ops->xmit(port, skb, byte() % 2);
}

static void up(struct ring3_port *port)
{
	opening = true;
	CHECK(!port->ops->open(port) && dev.carrier);
	opening = false;
}

static void fuzz_one(const uint8_t *input, size_t len)
{
	struct ring3_port *port;
	u32 packet;

	step = input;
	left = len;
	gone = false;
	missed = 0;
	packet = byte() % 2;
	port = port_new(packet ? &ring3_packet_ops : &ring3_tap_ops,
			packet ? RING3_PORT_PACKET : RING3_PORT_TAP);
	CHECK(to_fdport(port)->hdr_len == (packet ? 10 : 12));
	up(port);
	while (left) {
		u32 how = byte(), budget = 1 + how / 8 % 16;

		switch (how % 8) {
		case 0: case 1: case 2: case 3:
			CHECK(port->ops->poll(port, (int)budget) <= (int)budget);
			must_have_arrived();
			CHECK(!gone || !dev.carrier);
			break;
		case 4:
			transmit(port);
			break;
		case 5:
			if (the_queue.stopped && port->ops->tx_resume(port))
				the_queue.stopped = false;
			break;
		case 6:
			fails = how & 8;
			if (!fails)
				kept_drop();
			break;
		default:
			if (how & 8) {
				CHECK(!packet || port->ops->missed(port) == missed);
				break;
			}
			port->ops->stop(port);
			the_queue.stopped = false;
			gone = false;
			up(port);
		}
	}
	port_end(port);
}

int main(int argc, char **argv)
{
	return cover_main(argc, argv);
}
