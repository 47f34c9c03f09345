// SPDX-License-Identifier: GPL-2.0
/*
 * halves serve ADDRESS PORT COUNT
 * halves ask ADDRESS PORT COUNT BYTES SEED
 *
 * COUNT connections, AT_ONCE of them at one time, BYTES through each, both ways together in shares by chance. Of eight connections five have each side
 * end its direction when it has said all, so one is over while the other still goes on; two are reset by the client, one by the
 * server, after any number of bytes. Each byte is compared. The side that is reset has to see that, and no end before it.
 * AT_ONCE is small enough for queues of 1,000 packets: a reset that is lost is lost for good, with any TCP.
 * Both sides print how many connections went as they should, and what went wrong on others.
 */
#include "oracle.h"

#define TABLE	(1 << 20)
#define CHUNK	(64 << 10)
#define AT_ONCE	64

enum kind { ENDS, CLIENT_RESETS, SERVER_RESETS };

struct head {
	uint64_t there, back, reset_at;
	uint32_t seed, kind;
};

struct side {
	int fd, is_shut, is_eof, is_server;
	uint32_t head_bytes;	/* that have been sent, or have come */
	uint64_t said, heard;
	struct head head;
};

static uint8_t table[TABLE + CHUNK];	/* what is said, from any place on, again and again */
static int epoll, good, bad, started, count;
static uint64_t bytes, seed;
static struct sockaddr_in at = { .sin_family = AF_INET };

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* Of a direction: 1 from the client. */
static const uint8_t *words(struct side *s, int direction, uint64_t at)
{
	return table + (mix(s->head.seed * 2ULL + direction) + at) % TABLE;
}

static void watch(struct side *s, int op)
{
	uint64_t all = s->is_server ? s->head.back : s->head.there;
	int hears_head = s->is_server && s->head_bytes < sizeof(s->head);
	struct epoll_event event = { .data.ptr = s };

	if (!s->is_eof)
		event.events |= EPOLLIN;
	if (!hears_head && !s->is_shut && (s->said <= all))
		event.events |= EPOLLOUT;
	must(epoll_ctl(epoll, op, s->fd, &event));
}

static void over(struct side *s, const char *why)
{
	if (why) {
		bad++;
		fprintf(stderr, "%s: kind %u seed %u there %lu back %lu reset_at %lu: said %lu heard %lu: %s\n",
			s->is_server ? "server" : "client", s->head.kind, s->head.seed, s->head.there, s->head.back, s->head.reset_at,
			s->said, s->heard, why);
	} else {
		good++;
	}
	close(s->fd);
	free(s);
}

static int is_mine_to_reset(struct side *s)
{
	/* A client that has heard something knows that the server has its head. */
	return s->head.kind == (s->is_server ? SERVER_RESETS : CLIENT_RESETS) && s->said + s->heard >= s->head.reset_at &&
	       (s->is_server || s->heard);
}

/* The other side is to end this connection by a reset. */
static int is_reset_expected(struct side *s)
{
	return s->head.kind == (s->is_server ? CLIENT_RESETS : SERVER_RESETS);
}

static void failed(struct side *s)
{
	int is_reset = errno == ECONNRESET || errno == EPIPE;

	over(s, is_reset && is_reset_expected(s) ? NULL : ename(errno));
}

/* Whether it is still there. */
static int hear(struct side *s)
{
	static uint8_t in[CHUNK];
	uint64_t all = s->is_server ? s->head.there : s->head.back;
	ssize_t n;

	if (s->is_server && s->head_bytes < sizeof(s->head)) {
		n = read(s->fd, (uint8_t *)&s->head + s->head_bytes, sizeof(s->head) - s->head_bytes);
		if (n <= 0 && errno != EAGAIN)
			return over(s, "no head"), 0;
		s->head_bytes += n > 0 ? n : 0;
		return 1;
	}
	n = read(s->fd, in, sizeof(in));
	if (n < 0 && errno == EAGAIN)
		return 1;
	if (n < 0)
		return failed(s), 0;
	if (!n) {
		if (s->heard != all || is_reset_expected(s))
			return over(s, "an end before its time"), 0;
		s->is_eof = 1;
		return 1;
	}
	if (s->heard + n > all || memcmp(in, words(s, s->is_server, s->heard), n))
		return over(s, "other bytes"), 0;
	s->heard += n;
	return 1;
}

static int speak(struct side *s)
{
	uint64_t all = s->is_server ? s->head.back : s->head.there;
	ssize_t n;

	if (s->is_shut)
		return 1;
	if (!s->is_server && s->head_bytes < sizeof(s->head)) {
		n = send(s->fd, (uint8_t *)&s->head + s->head_bytes, sizeof(s->head) - s->head_bytes, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return failed(s), 0;
		s->head_bytes += n > 0 ? n : 0;
		return 1;
	}
	if (s->said == all) {
		/* Who resets, or is reset, says no end. */
		if (s->head.kind == ENDS)
			shutdown(s->fd, SHUT_WR);
		s->is_shut = 1;
		return 1;
	}
	n = send(s->fd, words(s, !s->is_server, s->said), all - s->said < CHUNK ? all - s->said : CHUNK, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN)
		return failed(s), 0;
	s->said += n > 0 ? n : 0;
	return 1;
}

static void turn(struct side *s, uint32_t events)
{
	struct linger linger = { 1, 0 };
	int was = s->is_eof << 1 | s->is_shut, had = s->head_bytes == sizeof(s->head);

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !s->is_eof && !hear(s))
		return;
	if (events & EPOLLOUT && !speak(s))
		return;
	if (had && is_mine_to_reset(s)) {
		setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		return over(s, NULL);
	}
	if (s->is_eof && s->is_shut)
		return over(s, NULL);
	if (was != (s->is_eof << 1 | s->is_shut) || had != (s->head_bytes == sizeof(s->head)))
		watch(s, EPOLL_CTL_MOD);
}

static void start(void)
{
	struct side *s = calloc(1, sizeof(*s));
	uint64_t chance = mix(seed << 20 | started);

	s->head.seed = seed * 1000003 + started;
	s->head.there = mix(chance) % bytes;
	s->head.back = bytes - s->head.there;
	s->head.kind = (const int[]){ ENDS, ENDS, ENDS, ENDS, ENDS, CLIENT_RESETS, CLIENT_RESETS, SERVER_RESETS }[started++ % 8];
	s->head.reset_at = mix(chance + 1) % (bytes / 2 + 1);
	s->fd = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(s->fd, (void *)&at, sizeof(at)));
	must(fcntl(s->fd, F_SETFL, O_NONBLOCK));
	watch(s, EPOLL_CTL_ADD);
}

int main(int argc, char **argv)
{
	int is_server = argc == 5 && !strcmp(argv[1], "serve"), listener = -1, one = 1;
	struct rlimit limit;

	need(is_server || (argc == 7 && !strcmp(argv[1], "ask")));
	need(inet_pton(AF_INET, argv[2], &at.sin_addr) == 1);
	at.sin_port = htons(atoi(argv[3]));
	count = atoi(argv[4]);
	must(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (size_t i = 0; i < TABLE / 8; i++) {
		uint64_t word = mix(i);

		memcpy(table + i * 8, &word, 8);
	}
	memcpy(table + TABLE, table, CHUNK);
	epoll = must(epoll_create1(0));
	if (is_server) {
		struct epoll_event event = { .events = EPOLLIN };

		listener = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		must(bind(listener, (void *)&at, sizeof(at)));
		must(listen(listener, 4096));
		must(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event));
		say("ready");
	} else {
		bytes = strtoull(argv[5], NULL, 10);
		seed = strtoull(argv[6], NULL, 10);
	}
	while (good + bad < count) {
		struct epoll_event events[64];
		int n;

		while (!is_server && started < count && started - good - bad < AT_ONCE)
			start();
		n = epoll_wait(epoll, events, 64, 60000);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			fprintf(stderr, "%s: %d of %d connections stand still\n", argv[1], count - good - bad, count);
			break;
		}
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr) {
				turn(events[i].data.ptr, events[i].events);
				continue;
			}
			for (;;) {
				struct side *s;
				int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

				if (fd < 0)
					break;
				s = calloc(1, sizeof(*s));
				*s = (struct side){ .fd = fd, .is_server = 1 };
				watch(s, EPOLL_CTL_ADD);
			}
		}
	}
	say("good %d bad %d", good, bad);
	return good != count;
}
