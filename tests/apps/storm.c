// SPDX-License-Identifier: GPL-2.0
/*
 * storm.c - the participants of a kill storm (src/apps/storm.rs)
 *
 *	storm serve PORT		echoes records over TCP (each connection in a thread or
 *					in a child of its own) and UDP
 *	storm talk ADDR PORT SEED	sends records there and checks what comes back
 *	storm once ADDR PORT SEED	the same for a handful of records, then ends
 *	storm fork ADDR PORT SEED	children without end, which talk; some exec this program
 *	storm watch			loopback traffic; is never killed itself
 *	storm kill			"HOW PID" on standard input: kills, and says "done"
 *
 * A record is checked against its own sum and against what its connection and number say
 * that it must hold. Each says "." when it got on since it did last (20 ms at least) and ends
 * with "poisoned", "corrupt ..." or "failed ...". A peer that dies is nothing special.
 */
#include "oracle.h"
#include <stddef.h>
#include <sys/pidfd.h>

#define PAYLOAD		24000
#define DATAGRAM	4000	/* bytes of payload */
#define MAGIC		0x73746f72u
#define TICK_MS		20
#define POISONED	5	/* exit statuses */
#define CORRUPT		9

struct record {
	uint32_t magic, len;
	uint64_t conn, seq, sum;
	uint8_t data[PAYLOAD];
};
#define HEAD offsetof(struct record, data)

static __thread uint64_t rng;

static uint32_t rnd(void)
{
	rng = rng * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(rng >> 33);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static void tick(void)
{
	static uint64_t last;
	uint64_t now = now_ms();

	if (now - __atomic_load_n(&last, __ATOMIC_RELAXED) < TICK_MS)
		return;
	__atomic_store_n(&last, now, __ATOMIC_RELAXED);
	(void)!write(1, ".\n", 2);
}

static void end(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
static void end(int status, const char *format, ...)
{
	char text[200];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	text[n++] = '\n';
	(void)!write(1, text, n);
	_exit(status);
}

/* After a call failed: true if it is what a peer's death or absence looks like. */
static bool lost(const char *what)
{
	switch (errno) {
	case EIO:
		end(POISONED, "poisoned");
	case ECONNRESET: case EPIPE: case ECONNREFUSED: case ETIMEDOUT: case EAGAIN:
	case EHOSTUNREACH: case ENETUNREACH: case ENETDOWN: case ECONNABORTED: case EINPROGRESS:
	case EADDRNOTAVAIL: case ENOTCONN:
		return true;
	}
	end(1, "failed %s: %s", what, ename(errno));
}

static uint64_t sum_of(const struct record *r)
{
	uint64_t sum = 0xcbf29ce484222325ULL ^ r->len ^ r->conn * 31 ^ r->seq;
	uint64_t word;
	uint32_t i;

	for (i = 0; i + 8 <= r->len; i += 8) {
		memcpy(&word, r->data + i, 8);
		sum = (sum ^ word) * 0x100000001b3ULL;
	}
	for (; i < r->len; i++)
		sum = (sum ^ r->data[i]) * 0x100000001b3ULL;
	return sum;
}

static void record_make(struct record *r, uint64_t conn, uint64_t seq, uint32_t most)
{
	uint64_t state = conn * 77 + seq * 13 + 1;
	uint32_t i;

	r->magic = MAGIC;
	r->len = rnd() % 4 ? rnd() % 1400 : rnd() % most;
	r->conn = conn;
	r->seq = seq;
	for (i = 0; i < r->len; i += 8) {	/* PAYLOAD is a multiple of 8 */
		state = state * 6364136223846793005ULL + 1;
		memcpy(r->data + i, &state, 8);
	}
	r->sum = sum_of(r);
}

static void record_check(const struct record *r, const char *where)
{
	if (r->magic != MAGIC || r->len > PAYLOAD)
		end(CORRUPT, "corrupt %s: head %x length %u", where, r->magic, r->len);
	if (r->sum != sum_of(r))
		end(CORRUPT, "corrupt %s: connection %llx record %llu of %u bytes", where,
		    (unsigned long long)r->conn, (unsigned long long)r->seq, r->len);
}

/* All of it, or false: the peer is gone. */
static bool put(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && lost("send"))
			return false;
		at += n;
		len -= n;
	}
	return true;
}

static bool get(int fd, void *data, size_t len)
{
	char *at = data;

	while (len) {
		ssize_t n = recv(fd, at, len, 0);

		if (!n || (n < 0 && lost("recv")))
			return false;
		at += n;
		len -= n;
	}
	return true;
}

static bool get_record(int fd, struct record *r, const char *where)
{
	if (!get(fd, r, HEAD))
		return false;
	if (r->magic != MAGIC || r->len > PAYLOAD)
		record_check(r, where);
	if (!get(fd, r->data, r->len))
		return false;
	record_check(r, where);
	return true;
}

static void patience(int fd, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)))
		lost("setsockopt");
}

/* ---- serve ---- */

static void echo_all(int fd)
{
	struct record *r = malloc(sizeof(*r));

	patience(fd, 2000);
	while (get_record(fd, r, "at the server") && put(fd, r, HEAD + r->len))
		tick();
	free(r);
}

static void *echo_thread(void *fd)
{
	echo_all((int)(long)fd);
	close((int)(long)fd);
	return NULL;
}

static void *echo_udp(void *fd)
{
	struct record *r = malloc(sizeof(*r));
	union address from;

	for (;;) {
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom((int)(long)fd, r, sizeof(*r), 0, &from.sa, &len);

		if (n < 0) {
			lost("recvfrom");
			continue;
		}
		if (n != (ssize_t)(HEAD + r->len))
			end(CORRUPT, "corrupt datagram of %zd bytes at the server", n);
		record_check(r, "datagram at the server");
		if (sendto((int)(long)fd, r, n, 0, &from.sa, len) < 0)
			lost("sendto");
		tick();
	}
}

static void thread(void *(*run)(void *), int fd)
{
	pthread_attr_t attr;
	pthread_t t;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&t, &attr, run, (void *)(long)fd);
	if (err) {
		errno = err;
		lost("pthread_create");
	}
}

static void serve(int port)
{
	union address any = address4("0.0.0.0", port);
	int l = socket(AF_INET, SOCK_STREAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
	unsigned int turn = 0;

	if (l < 0 || u < 0 ||
	    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    setsockopt(u, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    setsockopt(l, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) ||
	    setsockopt(u, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) ||
	    bind(l, &any.sa, sizeof(any.in)) || bind(u, &any.sa, sizeof(any.in)) || listen(l, 64))
		lost("set-up of the server");
	signal(SIGCHLD, SIG_IGN);
	thread(echo_udp, u);
	for (;;) {
		struct pollfd p = { .fd = l, .events = POLLIN };
		pid_t pid;
		int fd;

		tick();
		if (poll(&p, 1, 100) < 0)
			lost("poll");
		if (!p.revents)
			continue;
		fd = accept(l, NULL, NULL);
		if (fd < 0) {
			lost("accept");
			continue;
		}
		if (turn++ % 2) {
			thread(echo_thread, fd);
			continue;
		}
		pid = fork();
		if (pid < 0)
			lost("fork");
		if (!pid) {
			/* A child outlives a server that is killed; its port must not. */
			close(l);
			close(u);
			echo_all(fd);
			_exit(0);
		}
		close(fd);
	}
}

/* ---- talk ---- */

static int dial(const union address *to, int type)
{
	int fd = socket(AF_INET, type | SOCK_NONBLOCK, 0), err = 0;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(err);

	if (fd < 0)
		lost("socket");
	if (connect(fd, &to->sa, sizeof(to->in)) && lost("connect")) {
		if (errno == EINPROGRESS) {
			if (poll(&p, 1, 500) < 0)
				lost("poll");
			if (p.revents && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) && !err)
				goto connected;
		}
		close(fd);
		return -1;
	}
connected:
	if (fcntl(fd, F_SETFL, 0))
		lost("fcntl");
	patience(fd, type == SOCK_STREAM ? 2000 : 100);
	return fd;
}

static void talk_tcp(const union address *to, int count)
{
	static struct record out, in;
	uint64_t conn = (uint64_t)getpid() << 32 | rnd(), seq = 0, acked = 0;
	int fd = dial(to, SOCK_STREAM);

	if (fd < 0)
		return;
	while (count--) {
		record_make(&out, conn, seq++, PAYLOAD);
		if (!put(fd, &out, HEAD + out.len))
			break;
		/* One or two on the way, so that both directions are full at times. */
		if (seq - acked < 2 && rnd() % 2)
			continue;
		if (!get_record(fd, &in, "at the client"))
			break;
		if (in.conn != conn || in.seq != acked++)
			end(CORRUPT, "corrupt order: record %llu for %llu",
			    (unsigned long long)in.seq, (unsigned long long)acked - 1);
		tick();
	}
	close(fd);
}

static void talk_udp(const union address *to, int count)
{
	static struct record out, in;
	uint64_t conn = (uint64_t)getpid() << 32 | rnd(), seq = 0;
	int fd = dial(to, SOCK_DGRAM);

	if (fd < 0)
		return;
	while (count--) {
		ssize_t n;

		record_make(&out, conn, seq++, DATAGRAM);
		if (send(fd, &out, HEAD + out.len, 0) < 0) {
			lost("send");
			break;
		}
		n = recv(fd, &in, sizeof(in), 0);
		if (n < 0) {
			lost("recv");
			break;
		}
		if (n != (ssize_t)(HEAD + in.len) || in.conn != conn || in.seq >= seq)
			end(CORRUPT, "corrupt datagram of %zd bytes at the client", n);
		record_check(&in, "datagram at the client");
		tick();
	}
	close(fd);
}

static void talk(const char *address, int port)
{
	union address to = address4(address, port);

	for (;;) {
		talk_tcp(&to, 1 + rnd() % 400);
		talk_udp(&to, 1 + rnd() % 100);
		tick();
		usleep(rnd() % 2000);
	}
}

/* ---- fork ---- */

static void fork_on(char **argv)
{
	union address to = address4(argv[2], atoi(argv[3]));

	for (;;) {
		int p[2], status, in_exec = rnd() % 3 == 0;
		char seed[16];
		pid_t pid;

		snprintf(seed, sizeof(seed), "%u", rnd());
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, p))
			lost("socketpair");
		pid = fork();
		if (pid < 0)
			lost("fork");
		if (!pid) {
			close(p[0]);
			if (in_exec)
				execl("/proc/self/exe", "storm", "once", argv[2], argv[3], seed, NULL);
			talk_tcp(&to, 5);
			_exit(0);
		}
		close(p[1]);
		close(p[0]);
		if (waitpid(pid, &status, 0) != pid)
			lost("waitpid");
		if (WIFEXITED(status) && WEXITSTATUS(status))
			_exit(WEXITSTATUS(status));	/* it has said why */
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
			end(POISONED, "poisoned");	/* the keeper's, to each program of such a node */
		if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
			end(1, "failed: a child ended by signal %d", WTERMSIG(status));
		tick();
	}
}

/* ---- watch and kill ---- */

static void watch(void)
{
	static struct record out, in;
	int t[2], u[2];
	uint64_t seq = 0;

	tcp_pair(AF_INET, t);
	udp_pair(AF_INET, u);
	patience(t[1], 5000);
	for (;;) {
		record_make(&out, 1, seq++, DATAGRAM);
		if (!put(t[0], &out, HEAD + out.len) || !get_record(t[1], &in, "on loopback"))
			end(1, "failed: its own connection broke: %s", ename(errno));
		if (send(u[0], &out, HEAD + out.len, 0) < 0)
			lost("send");
		if (recv(u[1], &in, sizeof(in), 0) < 0)
			lost("recv");
		record_check(&in, "datagram on loopback");
		tick();
		usleep(1000);
	}
}

static long by(const char *how, pid_t pid)
{
	if (!strcmp(how, "kill"))
		return kill(pid, SIGKILL);
	if (!strcmp(how, "tgkill"))
		return syscall(SYS_tgkill, pid, pid, SIGKILL);
	if (!strcmp(how, "tkill"))
		return syscall(SYS_tkill, pid, SIGKILL);
	if (!strcmp(how, "sigqueue"))
		return sigqueue(pid, SIGKILL, (union sigval){ 0 });
	if (!strcmp(how, "pidfd")) {
		int fd = pidfd_open(pid, 0);
		long ret = fd < 0 ? -1 : pidfd_send_signal(fd, SIGKILL, NULL, 0);

		if (fd >= 0)
			close(fd);
		return ret;
	}
	return kill(-pid, SIGKILL);
}

static void kill_on(void)
{
	char line[100], how[20];
	int pid;

	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%19s %d", how, &pid) != 2 || pid <= 1)
			end(1, "failed: what is '%s'?", line);
		if (by(how, pid) && errno == EIO)
			end(POISONED, "poisoned");
		say("done");
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "";

	rng = argc > 4 ? strtoull(argv[4], NULL, 10) * 2654435761u : 1;
	if (!strcmp(role, "serve") && argc == 3)
		serve(atoi(argv[2]));
	if (!strcmp(role, "talk") && argc == 5)
		talk(argv[2], atoi(argv[3]));
	if (!strcmp(role, "fork") && argc == 5)
		fork_on(argv);
	if (!strcmp(role, "once") && argc == 5) {
		union address to = address4(argv[2], atoi(argv[3]));

		talk_tcp(&to, 5);
		return 0;
	}
	if (!strcmp(role, "watch"))
		watch();
	if (!strcmp(role, "kill"))
		kill_on();
	fprintf(stderr, "usage: see the head of storm.c\n");
	return 2;
}
