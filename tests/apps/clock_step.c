// SPDX-License-Identifier: GPL-2.0
/*
 * clock_step.c - the host's wall clock is set while a node is busy (src/apps/faults.rs)
 *
 *	clock_step under FILE COMMAND [ARG]...	runs it where clock_gettime(CLOCK_REALTIME), as a system
 *						call, is off by the seconds in FILE
 *	clock_step watch FILE			on a node that was started so: sets the clock forth and back
 *
 * To set the clock would set it for the machine. A node asks the host for it by a system call, and
 * seccomp lets another process answer that. Programs read theirs from the vDSO, which goes on unmoved: so what the
 * node's clock shows is seen beside it, by the time stamps of packets.
 *
 * After each step the stamps have to follow within seconds; a connection that is busy all the time, and
 * time-outs, may not notice.
 */
#include "oracle.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define FOLLOWS_S	10	/* SYNC_INTERVAL_NS of time.c is one */
#define SETTLES_S	2	/* a node that has just come up looks at the host's clock more often */
#define NEAR_NS		100000000LL
#define PAUSE_MS	1500	/* the longest that a round trip may take: no retransmission time-out of an hour */

static volatile int64_t *offset;	/* seconds */

static void map_offset(const char *file)
{
	int fd = must(open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600));

	must(ftruncate(fd, sizeof(*offset)));
	offset = mmap(NULL, sizeof(*offset), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(offset != MAP_FAILED);
	close(fd);
}

/* The kernel's answer, but later or earlier. */
static int64_t answer(const struct seccomp_notif *q)
{
	struct timespec now;
	char path[40];
	ssize_t n;
	int mem;

	must(clock_gettime(CLOCK_REALTIME, &now));
	now.tv_sec += *offset;
	snprintf(path, sizeof(path), "/proc/%u/mem", q->pid);
	mem = open(path, O_RDWR | O_CLOEXEC);
	if (mem < 0)
		return -ESRCH;	/* it is gone */
	n = pwrite(mem, &now, sizeof(now), q->data.args[1]);
	close(mem);
	return n == sizeof(now) ? 0 : -EFAULT;
}

static int under(char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };
	int listener = must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
	pid_t pid;
	int status;

	fcntl(listener, F_SETFD, FD_CLOEXEC);
	pid = must(fork());
	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	for (;;) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		struct seccomp_notif q = { 0 };
		struct seccomp_notif_resp a = { 0 };

		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		if (poll(&p, 1, 20) <= 0 || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &q))
			continue;	/* it has been interrupted, and asks again */
		a.id = q.id;
		a.error = answer(&q);
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &a);
	}
}

static int64_t now_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The node's wall clock minus the program's, by the stamp of a datagram to itself. */
static int64_t ahead_ns(int u)
{
	char control[128], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	int64_t before = now_ns(CLOCK_REALTIME);
	struct timespec stamp;

	must(send(u, "x", 1, 0));
	must(recvmsg(u, &m, 0));
	need(CMSG_FIRSTHDR(&m) && CMSG_FIRSTHDR(&m)->cmsg_type == SO_TIMESTAMPNS);
	memcpy(&stamp, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(stamp));
	return stamp.tv_sec * 1000000000LL + stamp.tv_nsec - before;
}

static int longest_ms;
static volatile bool stop;

/* Echoes one byte to and fro, and notes the longest that one took. */
static void *busy(void *arg)
{
	int *ends = arg;
	char byte;

	while (!stop) {
		int64_t start = now_ns(CLOCK_MONOTONIC);
		int took;

		must(send(ends[0], "x", 1, 0));
		must(recv(ends[1], &byte, 1, 0));
		must(send(ends[1], "y", 1, 0));
		must(recv(ends[0], &byte, 1, 0));
		took = (now_ns(CLOCK_MONOTONIC) - start) / 1000000;
		if (took > longest_ms)
			longest_ms = took;
		usleep(500);
	}
	return NULL;
}

static int watch(void)
{
	static const int64_t steps[] = { 3600, -86400, 0 };
	union address a = loopback(AF_INET, 0);
	socklen_t len = sizeof(a.in);
	int l = must(socket(AF_INET, SOCK_STREAM, 0)), u = must(socket(AF_INET, SOCK_DGRAM, 0)), ends[2], one = 1;
	struct pollfd p = { .events = POLLIN };
	int failed = 0;
	pthread_t t;
	size_t i;

	must(bind(l, &a.sa, len));
	must(listen(l, 1));
	must(getsockname(l, &a.sa, &len));
	ends[0] = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(ends[0], &a.sa, len));
	ends[1] = must(accept(l, NULL, NULL));
	a = loopback(AF_INET, 0);
	must(bind(u, &a.sa, len));
	must(getsockname(u, &a.sa, &len));
	must(connect(u, &a.sa, len));
	must(setsockopt(u, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)));
	need(!pthread_create(&t, NULL, busy, ends));

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		int64_t wanted = steps[i] * 1000000000LL, start, off, took;

		sleep(SETTLES_S);
		start = now_ns(CLOCK_MONOTONIC);
		*offset = steps[i];
		do {
			/* A time-out on the node, while its clock is set. */
			p.fd = l;
			took = now_ns(CLOCK_MONOTONIC);
			must(poll(&p, 1, 50));
			took = now_ns(CLOCK_MONOTONIC) - took;
			if (took < 50000000 || took > PAUSE_MS * 1000000LL) {
				printf("a time-out of 50 ms took %lld ms\n", (long long)took / 1000000);
				failed = 1;
			}
			off = ahead_ns(u) - wanted;
		} while ((off > NEAR_NS || off < -NEAR_NS) && now_ns(CLOCK_MONOTONIC) - start < FOLLOWS_S * 1000000000LL);
		printf("step to %+lld s: off by %lld us after %lld ms\n", (long long)steps[i], (long long)off / 1000,
		       (long long)(now_ns(CLOCK_MONOTONIC) - start) / 1000000);
		failed |= off > NEAR_NS || off < -NEAR_NS;
	}
	stop = true;
	pthread_join(t, NULL);
	printf("longest round trip %d ms\n", longest_ms);
	return failed || longest_ms > PAUSE_MS;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "under")) {
		map_offset(argv[2]);
		return under(argv + 3);
	}
	if (argc == 3 && !strcmp(argv[1], "watch")) {
		map_offset(argv[2]);
		return watch();
	}
	fprintf(stderr, "usage: clock_step under FILE COMMAND [ARG]... | watch FILE\n");
	return 2;
}
