// SPDX-License-Identifier: GPL-2.0
/*
 * port_fd.c - TAP and packet ports against whatever a host's device may say, coverage-guided
 *
 * Compiles the driver's fdport.c, fdsend.c, rx.c and hostio.c. An input is a list of steps: polls,
 * sends, flushes, ups, downs and looks at what was missed; and what the host answers to each read and write in them:
 * frames of all lengths with all headers, errors, short ones, several at once or some of several, and that it refuses such
 * calls. kernel.h and port_fuzz.h check the rest.
 */
#include "port_fuzz.h"
#include "fdport.c"
#include "fdsend.c"

static bool gone;	/* the host has said so */
static long owed;	/* an error in the middle of several reads, which the next one hears of */
static bool opening;	/* what is read now came while the interface was down */

#define UNSENT	64u
static struct { u32 seq, len; } unsent[UNSENT];	/* by their numbers: what the port was given and has not sent */
static u32 given, gone_out;
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

	CHECK(!gone);
	if (owed) {
		err = owed;
		owed = 0;
		gone = !opening && (err == -EBADFD || err == -ENODEV);
		return err;
	}
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

/* Several reads in one. The first error ends it, and is told if nothing was read. */
static long host_recvmmsg(struct mmsghdr *msg, u32 n)
{
	u32 i;

	CHECK(to_fdport(&block.port)->many && n && n <= FD_RX_BATCH);
	if (left && byte() % 16 == 1)
		return byte() % 2 ? -EPERM : -ENOSYS;
	for (i = 0; i < n; i++) {
		long got = host_read(msg[i].msg_hdr.msg_iov, (u32)msg[i].msg_hdr.msg_iovlen);

		if (got < 0 && !i)
			return got;
		if (got < 0) {
			owed = got == -EAGAIN ? 0 : got;
			gone = false;
			return i;
		}
		msg[i].msg_len = (u32)got;
	}
	return n;
}

/* The oldest frame that has not been sent, or was lost, whole. */
static long host_write(const struct iovec *iov, u32 n)
{
	u32 hdr_len = to_fdport(&block.port)->hdr_len, at = 0, i, seq, len;
	u32 how = byte();

	CHECK(n && iov[0].iov_len == hdr_len && gone_out < given);
	seq = unsent[gone_out % UNSENT].seq;
	len = unsent[gone_out % UNSENT].len;
	for (i = 1; i < n; i++)
		content_same(iov[i].iov_base, (u32)iov[i].iov_len, seq, &at);
	CHECK(at == len);
	if (how % 4 == 1)
		return -EAGAIN;
	gone_out++;
	if (how % 4 == 2)
		return how & 64 ? -EIO : how & 128 ? -EBADFD : -ENOBUFS;
	return hdr_len + at;
}

/* The first error ends it; if frames went before it, it is told, and the frame offered, again. */
static long host_sendmmsg(struct mmsghdr *msg, u32 n)
{
	u32 i, before;

	CHECK(to_fdport(&block.port)->many && n > 1 && n <= FD_TX_BATCH);
	if (left && byte() % 16 == 1)
		return byte() % 2 ? -EPERM : -ENOSYS;
	for (i = 0; i < n; i++) {
		long put;

		before = gone_out;
		put = host_write(msg[i].msg_hdr.msg_iov, (u32)msg[i].msg_hdr.msg_iovlen);
		if (put >= 0)
			continue;
		if (i)
			gone_out = before;
		return i ? (long)i : put;
	}
	return n;
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
	if (nr == SYS_recvmmsg || nr == SYS_readv) {
		must_have_arrived();
		return nr == SYS_readv ? host_read((void *)a1, (u32)a2) : host_recvmmsg((void *)a1, (u32)a2);
	}
	if (nr == SYS_sendmmsg)
		return host_sendmmsg((void *)a1, (u32)a2);
	CHECK(nr == SYS_writev);
	return host_write((void *)a1, (u32)a2);
}

/* How many frames wait in the port for the end of a batch or for room. */
static u32 waiting(const struct ring3_port *port)
{
	const struct fd_port *fdp = to_fdport(port);

	return fdp->queued - fdp->first;
}

static void transmit(struct ring3_port *port)
{
	unsigned long dropped = port->dev->stats.tx_dropped;
	u32 seq = byte() + 1;
	struct sk_buff *skb;
	bool more;

	/* Linux does not send while the queue is stopped. */
	if (the_queue.stopped)
		return;
	skb = to_send(seq, 14 + some_len() % (RING3_FRAME_MAX - 14));
	CHECK(given - gone_out < UNSENT);
	unsent[given % UNSENT].seq = seq;
	unsent[given++ % UNSENT].len = skb->len;
	more = byte() % 2;
	port->ops->xmit(port, skb, more);
	/* A header that could not be made: this frame is the last that was given, and the host never saw it. */
	if (given - gone_out > waiting(port)) {
		CHECK(given - gone_out == waiting(port) + 1 && port->dev->stats.tx_dropped > dropped);
		given--;
	}
	CHECK(more || the_queue.stopped || !waiting(port));
	CHECK(to_fdport(port)->many || the_queue.stopped || !waiting(port));
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
	owed = 0;
	missed = 0;
	given = gone_out = 0;
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
			if (!the_queue.stopped) {
				port->ops->flush(port);
				CHECK(the_queue.stopped || !waiting(port));
			} else if (port->ops->tx_resume(port)) {
				the_queue.stopped = false;
				CHECK(!waiting(port));
			}
			CHECK(given - gone_out == waiting(port));
			break;
		case 6:
			if (how & 16)
				prog_change(port);
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
			CHECK(!waiting(port));
			gone_out = given;
			owed = 0;
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
