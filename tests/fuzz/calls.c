// SPDX-License-Identifier: GPL-2.0
/*
 * calls.c - random system calls with nearly valid arguments, on a node
 *
 *	calls [--seed N] [--seconds S] [--processes P] [--threads T] [--verbose]
 *	      [--only KIND]			(of calls; may be repeated)
 *	calls --here SEED [--threads T]		the process of that seed alone, for a debugger
 *
 * P processes with T threads each make calls on descriptors that are the node's; each process
 * lives a second or so, and a random choice of kinds of calls (a swarm), and is then
 * replaced. Its seed follows from N and its number, and each thread's from that. Another
 * thread interrupts them all and takes access rights from memory that the kernel works on.
 *
 * Nothing of the host's is touched: descriptors are those made here, by socket(), accept(),
 * dup(), epoll, pipes, and files below /proc/net; no path is ever written to; no signal is
 * sent but to own threads. Run as `unshare -n` all the same.
 *
 * A finding is a process that dies of a signal, one that does not come to its end, or a
 * node that does not serve afterwards. The last calls of each thread are printed with the
 * seed. One that is kept from running by other programs is none (late.h); where that happens to many
 * the status is 3, for nothing was shown. Ends with "calls N, processes N, starved N, findings N".
 */
#include "sockets.h"
#include "late.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#define PROCESSES_MAX	16
#define THREADS_MAX	8
#define LIFE_MS		1500
#define GRACE_MS	20000	/* to come to its end: of time in which it sleeps or runs */
#define STARVED_MS	90000	/* of any time */
#define ENDED_BADLY	99	/* status of a process that crashed, or whose child did */

static struct slot *slots;	/* [PROCESSES_MAX][THREADS_MAX] */
static int threads = 3;
static volatile bool stop;
static char *flip[THREADS_MAX];

/* ---- the other kinds of calls ---- */

static void op_pair(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in *name = memcpy(work(sizeof(a)), &a, sizeof(a));
	socklen_t *len = work(4);
	int type = one_in(3) ? SOCK_DGRAM : SOCK_STREAM, protocol = one_in(4) ? 262 : 0;
	long l, c;

	*len = sizeof(a);
	if (type == SOCK_STREAM && one_in(6))
		protocol = 132;
	if (type == SOCK_DGRAM)
		protocol = 0;
	l = CALL3(SYS_socket, AF_INET, type | SOCK_NONBLOCK, protocol);
	c = CALL3(SYS_socket, AF_INET, type | SOCK_NONBLOCK, protocol);
	if (l >= 0 && c >= 0) {
		CALL3(SYS_bind, l, name, sizeof(a));
		CALL2(SYS_listen, l, 4);
		CALL3(SYS_getsockname, l, name, len);
		CALL3(SYS_connect, c, name, sizeof(a));
		if (type == SOCK_STREAM)
			keep_fd(CALL4(SYS_accept4, l, 0, 0, SOCK_NONBLOCK));
	}
	keep_fd(l);
	keep_fd(c);
}

static void op_read_write(void)
{
	static const long reads[] = { SYS_read, SYS_write, SYS_pread64, SYS_pwrite64 };
	static const long vectors[] = { SYS_readv, SYS_writev, SYS_preadv, SYS_pwritev, SYS_preadv2,
					SYS_pwritev2 };
	size_t len = length();
	struct msghdr *m;

	if (one_in(2)) {
		CALL4(PICK(reads), any_fd(), maybe(blob(len)), one_in(2) ? len & 0xffff : len, number());
		return;
	}
	m = message(true);
	CALL6(PICK(vectors), any_fd(), m->msg_iov, m->msg_iovlen, number(), number(), below(64));
}

static void op_control(void)
{
	static const int commands[] = { F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETOWN,
					F_GETSIG, F_SETLEASE, F_GETPIPE_SZ, F_GETLK, F_SETLK, 1033, 1036 };
	int command = PICK(commands);
	long nr[] = { SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_lseek, SYS_flock, SYS_fstat,
		      SYS_fstatfs, SYS_fallocate, SYS_readahead, SYS_fadvise64, SYS_fchmod, SYS_fgetxattr,
		      SYS_getdents64 };

	switch (below(8)) {
	case 0:
		keep_fd(CALL1(SYS_dup, any_fd()));
		break;
	case 1:
		CALL3(SYS_dup3, any_fd(), any_fd(), one_in(2) ? O_CLOEXEC : 0);
		break;
	case 2: case 3:
		if (command == F_DUPFD_CLOEXEC)
			keep_fd(CALL3(SYS_fcntl, any_fd(), command, 100 + below(200)));
		else
			CALL3(SYS_fcntl, any_fd(), command, command == F_SETFL ? O_NONBLOCK | (number() & O_APPEND) : number() & 1);
		break;
	case 4:
		CALL2(SYS_shutdown, any_fd(), one_in(8) ? number() : below(3));
		break;
	case 5:
		keep_fd(-1);
		CALL4(PICK(nr), any_fd(), maybe(blob(256)), number(), number());
		break;
	default: {
		int *place = &PICK(pool);
		int fd = __atomic_exchange_n(place, 0, __ATOMIC_RELAXED);

		if (fd)
			CALL1(SYS_close, fd);
	}
	}
}

static void op_wait(void)
{
	struct epoll_event *ev = blob(sizeof(*ev) * 16);
	struct pollfd *p = blob(sizeof(*p) * 16);
	struct timespec *ts = work(sizeof(*ts));
	fd_set *sets = blob(3 * sizeof(*sets));
	uint32_t i, n = below(16);
	long fd;

	*ts = (struct timespec){ 0, below(3000000) };
	switch (below(5)) {
	case 0:
		for (i = 0; i < n; i++)
			p[i].fd = any_fd();
		CALL5(SYS_ppoll, maybe(p), one_in(30) ? number() : n, maybe(ts), 0, 8);
		break;
	case 1:
		fd = any_fd();
		memset(sets, 0, 3 * sizeof(*sets));
		for (i = 0; i < 3; i++)
			if (fd >= 0 && fd < FD_SETSIZE)
				FD_SET(fd, &sets[i]);
		CALL6(SYS_pselect6, one_in(16) ? number() : FD_SETSIZE, maybe(sets), maybe(sets + 1), sets + 2,
		      maybe(ts), 0);
		break;
	case 2:
		keep_fd(CALL1(SYS_epoll_create1, 0));
		break;
	case 3:
		ev->events = one_in(2) ? rnd() : EPOLLIN | EPOLLOUT | (one_in(2) ? EPOLLET : EPOLLONESHOT);
		CALL4(SYS_epoll_ctl, any_fd(), one_in(20) ? number() : 1 + below(3), any_fd(), maybe(ev));
		break;
	default:
		CALL5(SYS_epoll_pwait, any_fd(), maybe(ev), one_in(30) ? number() : 16, below(4), 0);
	}
}

static void op_move(void)
{
	int *p = work(8);
	uint64_t *offset = work(8);
	size_t len = length() & 0xffff;

	*offset = one_in(2) ? 0 : number();
	switch (below(5)) {
	case 0:
		if (!CALL2(SYS_pipe2, p, O_NONBLOCK)) {
			keep_fd(p[0]);
			keep_fd(p[1]);
		}
		break;
	case 1:
		CALL4(SYS_sendfile, any_fd(), any_fd(), one_in(2) ? NULL : maybe(offset), len);
		break;
	case 2:
		CALL4(SYS_tee, any_fd(), any_fd(), len, 2);
		break;
	case 3:
		CALL4(SYS_vmsplice, any_fd(), message(true)->msg_iov, below(4), 2);
		break;
	default:
		CALL6(SYS_splice, any_fd(), one_in(4) ? offset : NULL, any_fd(), NULL, len, 2 | below(8));
	}
}

static void op_files(void)
{
	static const char * const paths[] = {
		"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/dev", "/proc/net/route",
		"/proc/net/snmp", "/proc/net/netstat", "/proc/net/packet", "/proc/net/netlink",
		"/proc/net/sockstat", "/proc/net/raw", "/proc/net/igmp", "/proc/net/fib_trie",
		"/proc/net", "/sys/class/net", "/sys/class/net/lo/mtu", "/proc/net/if_inet6",
		"/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net", "/proc/self/ns/net", "/proc/net/ptype",
	};
	const char *path = PICK(paths);
	char *copy = strcpy(work(64), path);
	long fd = CALL4(SYS_openat, AT_FDCWD, maybe(copy), O_RDONLY | (one_in(3) ? O_CLOEXEC : 0), 0);
	size_t len = length() & 0x3fff;

	if (fd < 0)
		return;
	CALL3(SYS_lseek, fd, one_in(2) ? number() : 0, below(4));
	CALL3(SYS_read, fd, maybe(blob(len)), len);
	CALL3(SYS_getdents64, fd, maybe(blob(len)), len);
	keep_fd(fd);
}

/* A packet ring that is mapped, whose words are then scribbled over. */
static void op_ring(void)
{
	long fd = CALL3(SYS_socket, AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(3));
	int *version = work(4), *request = work(28);
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(3), .sll_ifindex = 1 };
	uint32_t *ring, i;
	size_t bytes;

	if (fd < 0)
		return;
	*version = (int)below(3);
	request[0] = 4096 << below(3);
	request[1] = 1 + below(6);
	request[2] = 2048 << below(2);
	request[3] = request[0] / request[2] * request[1];
	request[4] = below(20);
	request[5] = request[6] = 0;
	bytes = (size_t)request[0] * request[1];
	CALL5(SYS_setsockopt, fd, 263, 10, version, 4);
	CALL5(SYS_setsockopt, fd, 263, one_in(2) ? 5 : 13, request, *version == 2 ? 28 : 16);
	CALL3(SYS_bind, fd, memcpy(work(sizeof(ll)), &ll, sizeof(ll)), sizeof(ll));
	ring = (uint32_t *)CALL6(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if ((long)ring < 0 && (long)ring > -4096) {
		CALL1(SYS_close, fd);
		return;
	}
	for (i = 0; i < 40; i++) {
		((volatile uint32_t *)ring)[below(2) ? below(16) : below(bytes / 4)] = (uint32_t)number();
		if (one_in(6))
			CALL6(SYS_sendto, fd, 0, 0, MSG_DONTWAIT, 0, 0);
		if (one_in(6))
			op_send();
	}
	CALL2(SYS_munmap, ring, bytes);
	keep_fd(fd);
}

/* Frames with a header of virtio's into the stack, by a TUN and by a packet socket on lo. */
static void op_frames(void)
{
	uint8_t *f = blob(2048);
	char *path = strcpy(work(32), "/dev/net/tun");
	struct ifreq *r = blob(sizeof(*r));
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_ifindex = 1, .sll_halen = 6 };
	int *one = work(4);
	uint32_t i;
	long fd;

	*one = 1;
	if (one_in(2)) {
		fd = CALL4(SYS_openat, AT_FDCWD, path, O_RDWR | O_NONBLOCK, 0);
		memset(r, 0, sizeof(*r));
		memcpy(r->ifr_name, "fz0", 4);
		r->ifr_flags = (short)(one_in(8) ? rnd() : 0x4002 | below(2) << 12 | below(4));
		CALL3(SYS_ioctl, fd, 0x400454ca /* TUNSETIFF */, maybe(r));
	} else {
		fd = CALL3(SYS_socket, AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
		CALL5(SYS_setsockopt, fd, 263, 15 /* PACKET_VNET_HDR */, one, 4);
		CALL3(SYS_bind, fd, memcpy(work(sizeof(ll)), &ll, sizeof(ll)), sizeof(ll));
	}
	if (fd < 0)
		return;
	for (i = 0; i < 20; i++) {
		size_t len = one_in(8) ? below(60000) : 10 + below(1600);

		f = blob(len);
		if (len > 60) {
			f[0] = (uint8_t)below(3);		/* flags, gso_type, header, size, csum */
			f[1] = (uint8_t[]){ 0, 0, 1, 3, 4, 5, 0x81, 77 }[below(8)];
			f[3] = f[5] = f[7] = f[9] = 0;
			f[22] = 8;
			f[23] = (uint8_t[]){ 0, 6, 0xdd }[below(3)];
			f[24] = one_in(2) ? 0x45 : 0x60;
			f[33] = (uint8_t[]){ 6, 17, 1, 47, 4, 41, 132, 50 }[below(8)];
		}
		CALL3(SYS_write, fd, one_in(4) && len < EDGE ? to_edge(f, len < 60 * KIB ? len : 60 * KIB) : (void *)f, len);
	}
	keep_fd(fd);
}

static void op_bpf(void)
{
	uint64_t *attr = blob(160);

	if (one_in(2)) {
		attr[0] = 1 | (uint64_t)below(4) << 32;		/* a socket filter of few instructions */
		attr[1] = U(maybe(blob(64)));
		attr[2] = U(maybe(strcpy(work(8), "GPL")));
		attr[3] = 0;
	}
	CALL3(SYS_bpf, one_in(20) ? number() : below(38), maybe(attr), one_in(8) ? number() : 120);
}

/* A child with the same descriptors, that goes on for a little and ends in its own way. */
static void run_some(uint32_t calls);
static void interrupted(int sig);
static void op_fork(void)
{
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
	struct sigaction sa = { .sa_handler = interrupted };
	long pid = fork();

	if (!pid) {
		/* Alone: nobody else interrupts it. */
		sigaction(SIGALRM, &sa, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
		if (one_in(3))
			CALL1(SYS_unshare, CLONE_NEWNET);
		run_some(below(60));
		syscall(SYS_exit_group, 0);
	}
	if (pid > 0) {
		int status = 0;

		while (waitpid((int)pid, &status, 0) < 0 && errno == EINTR)
			;
		/* Its own finding it has said; look() counts ours. */
		if (status)
			syscall(SYS_exit_group, ENDED_BADLY);
	}
}

static const struct kind {
	const char *name;
	void (*run)(void);
	uint32_t weight;
} kinds[] = {
	{ "socket", op_socket, 10 }, { "name", op_name, 10 }, { "names", op_names, 6 },
	{ "option", op_option, 24 }, { "send", op_send, 14 }, { "receive", op_receive, 10 },
	{ "netlink", op_netlink, 10 }, { "ioctl", op_ioctl, 8 }, { "pair", op_pair, 6 },
	{ "read", op_read_write, 6 }, { "control", op_control, 8 }, { "wait", op_wait, 8 },
	{ "move", op_move, 6 }, { "files", op_files, 4 }, { "ring", op_ring, 2 },
	{ "frames", op_frames, 2 }, { "bpf", op_bpf, 2 }, { "fork", op_fork, 1 },
};
static uint32_t swarm = ~0U, only;	/* kinds that this process uses, may use */
static __thread bool in_child;

static uint32_t kind_named(const char *name)
{
	uint32_t i;

	for (i = 0; name && i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(name, kinds[i].name))
			return 1U << i;
	fprintf(stderr, "calls: no such kind\n");
	exit(2);
}

static void run_one(void)
{
	uint32_t total = 0, i, turn;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		total += swarm >> i & 1 ? kinds[i].weight : 0;
	turn = below(total);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		uint32_t weight = swarm >> i & 1 ? kinds[i].weight : 0;

		if (turn < weight) {
			if (kinds[i].run != op_fork || !in_child)
				kinds[i].run();
			return;
		}
		turn -= weight;
	}
}

static void run_some(uint32_t calls)
{
	in_child = true;
	while (calls--)
		run_one();
}

/* ---- a process ---- */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void interrupted(int sig)
{
	(void)sig;
}

/* Never meant to happen: our own code touches good memory only, the kernel has to take all. */
static void crashed(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	const greg_t *r = uc->uc_mcontext.gregs;

	printf("FINDING: signal %d code %d at %p, instruction 0x%llx, stack 0x%llx, rax 0x%llx, thread %d\n",
	       sig, info->si_code, info->si_addr, r[REG_RIP], r[REG_RSP], r[REG_RAX],
	       slot ? (int)(slot - slots) % THREADS_MAX : -1);
	fflush(stdout);
	_exit(ENDED_BADLY);
}

static void *thread_main(void *arg)
{
	stack_t alt = { .ss_size = 64 * KIB };

	slot = arg;
	slot->busy = true;
	alt.ss_sp = malloc(alt.ss_size);
	sigaltstack(&alt, NULL);
	rng = slot->seed;
	if (arena_new()) {
		flip[(slot - slots) % THREADS_MAX] = arena + WORK;
		while (!stop)
			run_one();
	}
	slot->busy = false;
	return NULL;
}

/* Interrupts the threads, and plays with their memory, until the time is over. */
static void process_main(int number, uint64_t seed, int life_ms)
{
	static const int ignored[] = { SIGPIPE, SIGIO, SIGURG, SIGUSR2, SIGALRM };
	struct sigaction sa = { .sa_handler = interrupted };
	pthread_t t[THREADS_MAX];
	struct timespec pause = { 0, 3000000 };
	uint64_t end = now_ms() + (uint64_t)life_ms;
	int i, turn;

	rng = seed;
	swarm = only ? only : one_in(3) ? ~0U : rnd() | rnd() | 3;
	for (i = 0; i < (int)ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigaction(SIGUSR1, &sa, NULL);
	sa.sa_sigaction = crashed;
	sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	for (i = 0; i < threads; i++) {
		struct slot *s = &slots[number * THREADS_MAX + i];

		memset(s, 0, sizeof(*s));
		s->seed = seed + 1000003ULL * (uint64_t)(i + 1);
		s->pid = getpid();
		if (pthread_create(&t[i], NULL, thread_main, s))
			_exit(3);
	}
	for (turn = 0; now_ms() < end; turn++) {
		nanosleep(&pause, NULL);
		pthread_kill(t[turn % threads], SIGUSR1);
		if (one_in(4) && flip[turn % threads])
			mprotect(flip[turn % threads], FLIP, one_in(2) ? PROT_NONE : PROT_READ | PROT_WRITE);
	}
	stop = true;
	/* Some just end, with calls under way. */
	if (one_in(3))
		_exit(0);
	for (i = 0; i < threads; i++) {
		struct slot *s = &slots[number * THREADS_MAX + i];

		while (s->busy) {
			pthread_kill(t[i], SIGUSR1);
			nanosleep(&pause, NULL);
		}
		pthread_join(t[i], NULL);
	}
	_exit(0);
}

/* ---- the parent ---- */

static long failed, starved, calls_made;

static void print_last(int number)
{
	int i, n;

	for (i = 0; i < threads; i++) {
		struct slot *s = &slots[number * THREADS_MAX + i];

		printf("  thread %d, seed %llu, %llu calls begun, %llu ended:\n", i,
		       (unsigned long long)s->seed, (unsigned long long)s->count,
		       (unsigned long long)s->done);
		for (n = 0; n < LAST; n++) {
			struct call *c = &s->last[(s->count + (unsigned int)n) % LAST];

			printf("    %ld(0x%lx, 0x%lx, 0x%lx, 0x%lx, 0x%lx, 0x%lx) = %ld\n", c->nr,
			       c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5], c->ret);
		}
	}
}

struct process {
	pid_t pid;
	uint64_t until, seed;
	struct late late;
};

/* 0: it goes on; 1: it ended as it should, or was kept from that; 2: a finding. */
static int look(struct process *p, int number)
{
	int status, got = waitpid(p->pid, &status, WNOHANG), i;
	uint64_t now = now_ms();

	if (!got && now < p->until)
		return 0;
	if (!got) {
		late_look(&p->late, p->pid, now);
		if (p->late.had_ms < GRACE_MS && now < p->until + STARVED_MS)
			return 0;
	}
	for (i = 0; i < threads; i++)
		calls_made += (long)slots[number * THREADS_MAX + i].count;
	if (!got) {
		bool hangs = p->late.had_ms >= GRACE_MS;

		printf("%s; seed %llu; late for %llu ms, of which it waited for no CPU %llu ms\n",
		       hangs ? "FINDING: a process hangs" : "a process is kept from running",
		       (unsigned long long)p->seed, (unsigned long long)(now - p->until),
		       (unsigned long long)p->late.had_ms);
		late_print(p->pid, 2);
		print_last(number);
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &status, 0);
		starved += !hangs;
		return hangs ? 2 : 1;
	}
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 1;
	printf("FINDING: a process ended with %s %d; seed %llu\n", WIFSIGNALED(status) ? "signal" : "status",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
	       (unsigned long long)p->seed);
	print_last(number);
	return 2;
}

static bool serves(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int l = socket(AF_INET, SOCK_DGRAM, 0);

	/* lo may be down, full, or filtered by now: only what says that the kernel is there. */
	return l >= 0 && (!bind(l, (void *)&a, sizeof(a)) || errno != EIO) && !close(l);
}

int main(int argc, char **argv)
{
	uint64_t seed = (uint64_t)time(NULL), seconds = 30, number = 0, start = now_ms(), here = 0;
	struct process p[PROCESSES_MAX] = { { 0 } };
	struct rlimit core = { 0, 0 };
	int processes = 3, i;
	bool verbose = false;

	for (i = 1; i < argc; i++) {
		uint64_t value = i + 1 < argc ? strtoull(argv[i + 1], NULL, 0) : 0;

		if (!strcmp(argv[i], "--verbose")) {
			verbose = true;
			continue;
		}
		if (!strcmp(argv[i], "--seed"))
			seed = value;
		else if (!strcmp(argv[i], "--only"))
			only |= kind_named(argv[i + 1]);
		else if (!strcmp(argv[i], "--here"))
			here = value;
		else if (!strcmp(argv[i], "--seconds"))
			seconds = value;
		else if (!strcmp(argv[i], "--processes"))
			processes = (int)(value < PROCESSES_MAX ? value : PROCESSES_MAX);
		else if (!strcmp(argv[i], "--threads"))
			threads = (int)(value < THREADS_MAX ? value : THREADS_MAX);
		else
			return fprintf(stderr, "usage: see the head of calls.c\n"), 2;
		i++;
	}
	if (!getenv("RING3_NODE"))
		return fprintf(stderr, "calls: not on a node\n"), 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	setrlimit(RLIMIT_CORE, &core);
	slots = mmap(NULL, sizeof(struct slot) * PROCESSES_MAX * THREADS_MAX, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (slots == MAP_FAILED)
		return 2;
	if (here)
		process_main(0, here, LIFE_MS * 20);
	printf("seed %llu\n", (unsigned long long)seed);
	while (now_ms() - start < seconds * 1000) {
		for (i = 0; i < processes; i++) {
			if (p[i].pid > 0) {
				int end = look(&p[i], i);

				failed += end == 2;
				if (!end)
					continue;
			}
			if (!serves()) {
				printf("FINDING: the node does not serve: %s\n", strerror(errno));
				failed++;
				goto out;
			}
			p[i].seed = seed * 1000003 + number++;
			p[i].until = now_ms() + LIFE_MS;
			p[i].late = (struct late){ 0 };
			if (verbose)
				printf("process %d: seed %llu\n", i, (unsigned long long)p[i].seed);
			p[i].pid = fork();
			if (!p[i].pid)
				process_main(i, p[i].seed, LIFE_MS);
			if (p[i].pid < 0) {
				printf("FINDING: fork: %s\n", strerror(errno));
				failed++;
				goto out;
			}
		}
		usleep(5000);
	}
out:
	for (i = 0; i < processes; i++) {
		int end = p[i].pid > 0 ? 0 : 1;

		while (!end) {
			end = look(&p[i], i);
			usleep(2000);
		}
		failed += end == 2;
	}
	if (!serves())
		failed++, printf("FINDING: the node does not serve: %s\n", strerror(errno));
	printf("calls %ld, processes %llu, starved %ld, findings %ld\n", calls_made,
	       (unsigned long long)number, starved, failed);
	return failed ? 1 : (uint64_t)starved * 10 > number ? 3 : 0;
}
