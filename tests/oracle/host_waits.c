// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that wait for another process at an object of the host's, and go on when that acts, 0.2 s later: splice(), sendfile(), tee()
 * and vmsplice() at FIFOs and unix sockets, semaphores, message queues of both kinds, asynchronous requests.
 *
 * With an argument it prints ms in place of whether the wait was long enough: in virtual time they are exact.
 */
#include "oracle.h"
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#define WAIT_MS	200

static char folder[] = "/tmp/waits.XXXXXX";
static char block[1 << 16];
static int exact;
static struct timespec began;

static long ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((now.tv_sec - began.tv_sec) * 1000000000 + now.tv_nsec - began.tv_nsec) / 1000000;
}

static void now(void)
{
	clock_gettime(CLOCK_MONOTONIC, &began);
}

/* True in a child, WAIT_MS later. */
static int later(void)
{
	now();
	if (fork())
		return 0;
	usleep(WAIT_MS * 1000);
	return 1;
}

static void waited(const char *what, long ret)
{
	int error = ret < 0 ? errno : 0;
	long took = ms();

	printf("%s: %ld %s ", what, ret, error ? ename(error) : "");
	if (exact)
		printf("%ld ms\n", took);
	else
		printf("%s\n", took >= WAIT_MS - 5 ? "after a wait" : "too early");
}

/* Of a call that is not to wait. On a busy machine it may take long all the same. */
static void told(const char *what, long ret)
{
	printf("%s: %ld %s\n", what, ret, ret < 0 ? ename(errno) : "");
}

static void gone(void)
{
	fflush(stdout);
	while (wait(NULL) > 0)
		;
}

static int fifo(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	must(mkfifo(path, 0600));
	return must(open(path, O_RDWR));
}

static void fill_up(int fd)
{
	must(fcntl(fd, F_SETFL, O_NONBLOCK));
	while (write(fd, block, sizeof(block)) > 0)
		;
	must(fcntl(fd, F_SETFL, 0));
}

static void drain(int fd)
{
	must(fcntl(fd, F_SETFL, O_NONBLOCK));
	while (read(fd, block, sizeof(block)) > 0)
		;
	_exit(0);
}

static void tcp(int pair[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = must(socket(AF_INET, SOCK_STREAM, 0));
	socklen_t len = sizeof(a);

	must(bind(listener, (void *)&a, sizeof(a)));
	must(listen(listener, 1));
	must(getsockname(listener, (void *)&a, &len));
	pair[0] = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(pair[0], (void *)&a, sizeof(a)));
	pair[1] = must(accept(listener, NULL, NULL));
	close(listener);
}

static void splices(void)
{
	int full = fifo("full"), empty = fifo("empty"), other = fifo("other"), net[2], pair[2];
	struct iovec one = { block, 5 };

	tcp(net);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	must(write(net[0], "hello", 5));
	fill_up(full);
	if (later())
		drain(full);
	waited("splice: socket to a full FIFO", splice(net[1], NULL, full, NULL, 100, 0));
	gone();
	if (later())
		_exit(write(empty, "hello", 5) != 5);
	waited("splice: empty FIFO to a socket", splice(empty, NULL, net[0], NULL, 100, 0));
	gone();
	if (later())
		_exit(write(empty, "hello", 5) != 5);
	waited("splice: empty FIFO to a unix socket", splice(empty, NULL, pair[0], NULL, 100, 0));
	gone();
	fill_up(full);
	must(write(empty, "hello", 5));
	if (later())
		drain(full);
	waited("splice: FIFO to a full FIFO", splice(empty, NULL, full, NULL, 100, 0));
	gone();
	if (later())
		_exit(write(empty, "hello", 5) != 5);
	waited("tee: empty FIFO", tee(empty, other, 100, 0));
	gone();
	fill_up(full);
	if (later())
		drain(full);
	waited("vmsplice: full FIFO", vmsplice(full, &one, 1, 0));
	gone();
	fill_up(full);
	told("vmsplice: full FIFO, SPLICE_F_NONBLOCK", vmsplice(full, &one, 1, SPLICE_F_NONBLOCK));
	told("splice: full FIFO, SPLICE_F_NONBLOCK", splice(empty, NULL, full, NULL, 100, SPLICE_F_NONBLOCK));
	must(fcntl(full, F_SETFL, O_NONBLOCK));
	told("splice: full FIFO, O_NONBLOCK", splice(empty, NULL, full, NULL, 100, 0));
}

/* Much more than a socket holds: all of it is sent. */
static void sends(void)
{
	int file = must(memfd_create("file", 0)), pair[2], full = fifo("sendfile");
	off_t size = 4 << 20, at = 0;

	must(ftruncate(file, size));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	if (later()) {
		close(pair[0]);
		while (read(pair[1], block, sizeof(block)) > 0)
			;
		_exit(0);
	}
	close(pair[1]);
	waited("sendfile: unix socket", sendfile(pair[0], file, &at, size));
	close(pair[0]);
	gone();
	N(at);
	fill_up(full);
	at = 0;
	if (later())
		drain(full);
	waited("sendfile: full FIFO", sendfile(full, file, &at, 100));
	gone();
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	must(fcntl(pair[0], F_SETFL, O_NONBLOCK));
	at = 0;
	printf("sendfile: O_NONBLOCK: %d\n", sendfile(pair[0], file, &at, size) < size);
	told("sendfile: full, O_NONBLOCK", sendfile(pair[0], file, &at, size));
}

static void semaphores(void)
{
	int id = must(semget(IPC_PRIVATE, 2, 0600));
	struct sembuf up = { 0, 1, 0 }, down = { 0, -1, 0 }, both[2] = { { 0, -1, 0 }, { 1, -1, IPC_NOWAIT } };
	struct sembuf zero = { 0, 0, 0 }, undo = { 0, -1, SEM_UNDO };
	struct timespec limit = { .tv_nsec = WAIT_MS * 1000000 };

	N(syscall(SYS_semop, id, &zero, 1UL << 32 | 1));	/* the number of operations has 32 bits */
	if (later())
		_exit(semop(id, &up, 1));
	waited("semop", semop(id, &down, 1));
	gone();
	T(semop(id, &up, 1));
	if (later())
		_exit(semop(id, &down, 1));
	waited("semop: for zero", semop(id, &zero, 1));
	gone();
	now();
	waited("semtimedop: limit", semtimedop(id, &down, 1, &limit));
	limit.tv_nsec = -1;
	told("semtimedop: bad limit", semtimedop(id, &down, 1, &limit));
	if (later())
		_exit(semop(id, &up, 1));
	waited("semop: the second says IPC_NOWAIT", semop(id, both, 2));
	gone();
	told("semop: the second can't", semop(id, both, 2));
	now();
	if (!fork()) {		/* its end gives the semaphore back */
		must(semop(id, &undo, 1));
		usleep(WAIT_MS * 1000);
		_exit(0);
	}
	while (semctl(id, 0, GETVAL))
		usleep(1000);
	waited("semop: undone", semop(id, &down, 1));
	gone();
	if (later())
		_exit(semctl(id, 0, IPC_RMID));
	waited("semop: removed", semop(id, &down, 1));
	gone();
}

struct message {
	long type;
	char text[8192];
};

static void messages(void)
{
	int id = must(msgget(IPC_PRIVATE, 0600));
	static struct message in, out = { .type = 7 };

	if (later())
		_exit(msgsnd(id, &out, 5, 0));
	waited("msgrcv", msgrcv(id, &in, sizeof(in.text), 7, 0));
	gone();
	told("msgrcv: IPC_NOWAIT", msgrcv(id, &in, sizeof(in.text), 7, IPC_NOWAIT));
	while (!msgsnd(id, &out, sizeof(out.text), IPC_NOWAIT))
		;
	if (later())
		_exit(msgrcv(id, &in, sizeof(in.text), 0, 0) < 0);
	waited("msgsnd: full", msgsnd(id, &out, 100, 0));
	gone();
	if (later())
		_exit(msgctl(id, IPC_RMID, NULL));
	waited("msgrcv: removed", msgrcv(id, &in, sizeof(in.text), 9, 0));
	gone();
}

static void posix(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 16 };
	struct timespec until = { 0 };
	char name[32], text[16];
	mqd_t q;

	snprintf(name, sizeof(name), "/waits.%d", getpid());
	q = must(mq_open(name, O_RDWR | O_CREAT, 0600, &attr));
	mq_unlink(name);
	if (later())
		_exit(mq_send(q, "hello", 5, 3));
	waited("mq_receive", mq_receive(q, text, sizeof(text), NULL));
	gone();
	must(mq_send(q, "a", 1, 0));
	if (later())
		_exit(mq_receive(q, text, sizeof(text), NULL) < 0);
	waited("mq_send: full", mq_send(q, "b", 1, 0));
	gone();
	now();
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += WAIT_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	waited("mq_timedsend: limit", mq_timedsend(q, "c", 1, 0, &until));
	told("mq_timedsend: limit has passed", mq_timedsend(q, "c", 1, 0, &until));
	until.tv_nsec = -1;
	told("mq_timedsend: bad limit", mq_timedsend(q, "c", 1, 0, &until));
}

static void requests(void)
{
	int file = must(memfd_create("file", 0)), pair[2];
	struct iocb write = { .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = file, .aio_buf = (u_int64_t)block, .aio_nbytes = 100 };
	struct iocb poll = { .aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN };
	struct iocb *list[2] = { &write, &poll };
	struct timespec limit = { .tv_nsec = WAIT_MS * 1000000 };
	struct io_event events[4];
	aio_context_t ctx = 0;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	poll.aio_fildes = pair[0];
	must(syscall(SYS_io_setup, 4, &ctx));
	N(syscall(SYS_io_submit, ctx, 1, list));
	now();
	N(syscall(SYS_io_getevents, ctx, 1, 4, events, NULL));
	N(events[0].res);
	now();
	waited("io_getevents: limit", syscall(SYS_io_getevents, ctx, 1, 4, events, &limit));
	N(syscall(SYS_io_submit, ctx, 2, list));
	if (later())
		_exit(syscall(SYS_write, pair[1], "x", 1) != 1);
	waited("io_getevents: two", syscall(SYS_io_getevents, ctx, 2, 4, events, NULL));
	gone();
	now();
	waited("io_pgetevents: limit", syscall(SYS_io_pgetevents, ctx, 1, 4, events, &limit, NULL));
	syscall(SYS_io_destroy, ctx);
}

int main(int argc, char **argv)
{
	char words[64];

	exact = argc > 1;
	signal(SIGPIPE, SIG_IGN);
	must((long)mkdtemp(folder) ? 0 : -1);
	splices();
	sends();
	semaphores();
	messages();
	posix();
	requests();
	fflush(stdout);
	snprintf(words, sizeof(words), "rm -r %s", folder);
	return system(words);
}
