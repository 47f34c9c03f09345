// SPDX-License-Identifier: GPL-2.0
/* futex(2), call by call: among threads, and among processes that map the memory at different addresses. */
#include "oracle.h"
#include <linux/futex.h>

#define WAITERS	4

static long futex(uint32_t *word, int op, uint32_t val, const void *time, uint32_t *word2, uint32_t val3)
{
	return syscall(SYS_futex, word, op, val, time, word2, val3);
}

static uint32_t *shared_words(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	return at;
}

/* Whatever the other is at: until it is seen to have waited. */
static void wake_all(uint32_t *word, int op, int count, uint32_t bits)
{
	for (int woken = 0; woken < count;) {
		long ret = must(futex(word, op, 1, NULL, NULL, bits));

		woken += ret;
		if (!ret)
			usleep(1000);
	}
}

static void wrong(void)
{
	uint32_t words[2] = { 5, 6 }, *bad = (uint32_t *)16;
	struct timespec none = { 0 }, invalid = { .tv_nsec = 2000000000 };

	T(futex(words, FUTEX_WAIT, 4, NULL, NULL, 0));
	T(futex(words, FUTEX_WAIT, 5, &none, NULL, 0));
	T(futex(words, FUTEX_WAIT_PRIVATE, 5, &none, NULL, 0));
	T(futex(words, FUTEX_WAIT, 5, &invalid, NULL, 0));
	T(futex(words, FUTEX_WAIT_BITSET, 5, &none, NULL, 1));
	T(futex(words, FUTEX_WAIT_BITSET, 5, &none, NULL, 0));
	T(futex(words, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 5, &none, NULL, 0));
	T(futex(words, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 5, &none, NULL, 1));
	T(futex((uint32_t *)((char *)words + 1), FUTEX_WAIT, 5, NULL, NULL, 0));
	T(futex((uint32_t *)((char *)words + 2), FUTEX_WAKE, 1, NULL, NULL, 0));
	T(futex(bad, FUTEX_WAIT, 5, NULL, NULL, 0));
	T(futex(bad, FUTEX_WAIT_PRIVATE, 5, NULL, NULL, 0));
	T(futex(bad, FUTEX_WAKE_PRIVATE, 5, NULL, NULL, 0));
	T(futex(words, FUTEX_WAKE_OP, 1, (void *)1, bad, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)));
	T(futex(words, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0));
	T(futex(words, FUTEX_WAKE, 1, NULL, NULL, 0));
	T(futex(words, FUTEX_CMP_REQUEUE, 1, (void *)1, words + 1, 4));
	T(futex(words, FUTEX_CMP_REQUEUE, 1, (void *)1, words + 1, 5));
	T(futex(words, FUTEX_REQUEUE, -1, (void *)1, words + 1, 5));
	T(futex(words, 99, 0, NULL, NULL, 0));
}

/* FUTEX_WAKE_OP's effect on its second word; wake_op_wakes() tests whether it looks for waiters there. */
static void wake_op_words(void)
{
	static const uint32_t codes[] = {
		FUTEX_OP(FUTEX_OP_SET, 7, FUTEX_OP_CMP_EQ, 0), FUTEX_OP(FUTEX_OP_ADD, -3, FUTEX_OP_CMP_NE, 0),
		FUTEX_OP(FUTEX_OP_OR, 0x18, FUTEX_OP_CMP_LT, 0), FUTEX_OP(FUTEX_OP_ANDN, 4, FUTEX_OP_CMP_LE, 0),
		FUTEX_OP(FUTEX_OP_XOR, 0xff, FUTEX_OP_CMP_GT, 0),
		FUTEX_OP((FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT), 20, FUTEX_OP_CMP_GE, 0),
		FUTEX_OP(6, 1, FUTEX_OP_CMP_EQ, 0),
	};
	uint32_t words[2] = { 0, 12 };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		T(futex(words, FUTEX_WAKE_OP, 1, (void *)1, words + 1, codes[i]));
		N(words[1]);
	}
}

struct wait {
	uint32_t *word;
	int op;
	uint32_t bits;
	long ret;
};

static void *waits(void *arg)
{
	struct wait *w = arg;

	w->ret = futex(w->word, w->op, 0, NULL, NULL, w->bits);
	return NULL;
}

static void threads(void)
{
	static uint32_t words[2];
	struct wait w[WAITERS];
	pthread_t t[WAITERS];
	long done = 0;
	int i;

	for (i = 0; i < WAITERS; i++) {
		w[i] = (struct wait){ words, FUTEX_WAIT_BITSET_PRIVATE, 1u << i, -1 };
		t[i] = spawn(waits, &w[i]);
	}
	T(futex(words, FUTEX_WAKE_BITSET_PRIVATE, WAITERS, NULL, NULL, 1u << WAITERS));
	for (i = WAITERS - 1; i >= 0; i--) {
		wake_all(words, FUTEX_WAKE_BITSET_PRIVATE, 1, 1u << i);
		join(t[i]);
		N(w[i].ret);
	}
	for (i = 0; i < WAITERS; i++) {
		w[i].op = FUTEX_WAIT_PRIVATE;
		t[i] = spawn(waits, &w[i]);
	}
	/* Waiters of one word don't hear of another, nor private ones of shared wake-ups. */
	while (done < WAITERS) {
		done += must(futex(words, FUTEX_REQUEUE_PRIVATE, 0, (void *)(long)WAITERS, words + 1, 0));
		usleep(1000);
	}
	N(done);
	T(futex(words, FUTEX_WAKE_PRIVATE, WAITERS, NULL, NULL, 0));
	T(futex(words + 1, FUTEX_WAKE, WAITERS, NULL, NULL, 0));
	T(futex(words + 1, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, words, 0));
	T(futex(words, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, words + 1, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)));
	T(futex(words, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, words + 1, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)));
	T(futex(words + 1, FUTEX_WAKE_PRIVATE, WAITERS, NULL, NULL, 0));
	for (i = 0; i < WAITERS; i++)
		join(t[i]);
}

static int of_child(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0));
	return status;
}

/* Of anonymous memory, and of a file that the processes map at two places, from two offsets. */
static void processes(void)
{
	uint32_t *word = shared_words();
	char name[] = "/tmp/futex.XXXXXX";
	int fd = must(mkstemp(name));
	pid_t pid = must(fork());

	if (!pid)
		_exit(futex(word, FUTEX_WAIT, 0, NULL, NULL, 0));
	wake_all(word, FUTEX_WAKE, 1, 0);
	N(of_child(pid));

	unlink(name);
	must(ftruncate(fd, 3 * 4096));
	pid = must(fork());
	if (!pid) {
		word = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
		_exit(futex(word + 1024 + 3, FUTEX_WAIT, 0, NULL, NULL, 0));
	}
	word = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	T(futex(word + 2048 + 2, FUTEX_WAKE, 1, NULL, NULL, 0));
	wake_all(word + 2048 + 3, FUTEX_WAKE, 1, 0);
	N(of_child(pid));

	/* A private mapping of the same page is another's. */
	pid = must(fork());
	if (!pid)
		_exit(futex(word, FUTEX_WAIT, 0, NULL, NULL, 0));
	uint32_t *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	own[0] = 0;
	T(futex(own, FUTEX_WAKE, 1, NULL, NULL, 0));
	wake_all(word, FUTEX_WAKE, 1, 0);
	N(of_child(pid));
	close(fd);
}

/* Locks in shared memory, whose owner dies. */
static void robust(bool pi)
{
	pthread_mutex_t *m = (pthread_mutex_t *)shared_words();
	pthread_mutexattr_t attr;
	int pipes[2];
	pid_t pid;
	char c;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (pi)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(m, &attr);
	for (int dies = 0; dies < 3; dies++) {
		must(pipe(pipes));
		pid = must(fork());
		if (!pid) {
			pthread_mutex_lock(m);
			must(write(pipes[1], "x", 1));
			usleep(30000);
			if (dies == 2)
				raise(SIGKILL);
			if (dies == 0)
				pthread_mutex_unlock(m);
			_exit(0);
		}
		must(read(pipes[0], &c, 1));
		printf("%s\n", ename(pthread_mutex_lock(m)));
		printf("%s\n", ename(dies ? pthread_mutex_consistent(m) : 0));
		printf("%s\n", ename(pthread_mutex_unlock(m)));
		of_child(pid);
		close(pipes[0]);
		close(pipes[1]);
	}
}

static volatile int tried;

static void *locks(void *arg)
{
	pthread_mutex_t *m = arg;
	struct timespec past = { 1, 0 };

	printf("%s\n", ename(pthread_mutex_trylock(m)));
	printf("%s\n", ename(pthread_mutex_timedlock(m, &past)));
	tried = 1;
	printf("%s\n", ename(pthread_mutex_lock(m)));
	pthread_mutex_unlock(m);
	return NULL;
}

static void pi(void)
{
	uint32_t word = 0;
	pthread_mutexattr_t attr;
	pthread_mutex_t m;
	pthread_t t;

	T(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	N(word == (uint32_t)getpid());
	T(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	N(word);
	T(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	word = 0x3ffffff;
	T(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&m, &attr);
	pthread_mutex_lock(&m);
	t = spawn(locks, &m);
	while (!tried)
		usleep(1000);
	usleep(30000);		/* it may wait by now, or not */
	pthread_mutex_unlock(&m);
	join(t);
	printf("%s\n", ename(pthread_mutex_trylock(&m)));
}

static volatile int handled;

static void handler(int sig)
{
	handled = sig;
}

static void signals(void)
{
	static uint32_t word;
	struct sigaction act = { .sa_handler = handler };
	struct timespec later = { 30, 0 };
	struct itimerval soon = { { .tv_usec = 20000 }, { .tv_usec = 20000 } }, never = { 0 };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	T(futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
	act.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &act, NULL);
	T(futex(&word, FUTEX_WAIT_PRIVATE, 0, &later, NULL, 0));
	setitimer(ITIMER_REAL, &never, NULL);
	N(handled == SIGALRM);
}

int main(void)
{
	wrong();
	wake_op_words();
	threads();
	processes();
	robust(false);
	robust(true);
	pi();
	signals();
	return 0;
}
