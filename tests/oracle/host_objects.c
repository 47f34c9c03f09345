// SPDX-License-Identifier: GPL-2.0
/* Waits between processes for unix sockets, FIFOs, file locks and signalfds: each waiter continues. */
#include "oracle.h"
#include <sys/file.h>

static char folder[] = "/tmp/objects.XXXXXX";

static int ends(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0));
	return status;
}

static struct sockaddr_un named(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", folder, name);
	return a;
}

/* Much more than a socket holds, to a reader that is slow. */
static void stream(void)
{
	static char block[1 << 20];
	int pair[2], status;
	size_t got = 0;
	ssize_t n;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	if (!fork()) {
		close(pair[0]);
		memset(block, 'x', sizeof(block));
		_exit(write(pair[1], block, sizeof(block)) == sizeof(block) ? 3 : 4);
	}
	close(pair[1]);
	usleep(20000);
	while ((n = read(pair[0], block, 4000)) > 0)
		got += n;
	wait(&status);
	N(got);
	N(WEXITSTATUS(status));
	close(pair[0]);
}

static void names(int type)
{
	struct sockaddr_un a = named("name"), peer;
	socklen_t len = sizeof(peer);
	char buf[16] = "";
	int fd = must(socket(AF_UNIX, type, 0)), conn;
	pid_t pid;

	T(connect(fd, (void *)&a, sizeof(a)));
	must(bind(fd, (void *)&a, sizeof(a)));
	T(bind(must(socket(AF_UNIX, type, 0)), (void *)&a, sizeof(a)));
	if (type != SOCK_DGRAM)
		must(listen(fd, 1));
	pid = must(fork());
	if (!pid) {
		int own = socket(AF_UNIX, type, 0);

		usleep(20000);
		if (connect(own, (void *)&a, sizeof(a)) || write(own, "hello", 5) != 5)
			_exit(1);
		_exit(type != SOCK_DGRAM && read(own, buf, 1) != 1);
	}
	conn = type == SOCK_DGRAM ? fd : must(accept(fd, NULL, NULL));
	N(read(conn, buf, sizeof(buf)));
	printf("%s\n", buf);
	if (type != SOCK_DGRAM) {
		must(write(conn, "y", 1));
		N(getsockname(conn, (void *)&peer, &len) == 0 && !strcmp(peer.sun_path, a.sun_path));
	}
	N(ends(pid));
	unlink(a.sun_path);
	close(fd);
}

/* One more connection than the listener holds waits for the listener. */
static void backlog(void)
{
	struct sockaddr_un a = named("full");
	int fd = must(socket(AF_UNIX, SOCK_STREAM, 0)), own[4];
	pid_t pid;

	must(bind(fd, (void *)&a, sizeof(a)));
	must(listen(fd, 1));
	pid = must(fork());
	if (!pid) {
		for (int i = 0; i < 4; i++) {
			own[i] = socket(AF_UNIX, SOCK_STREAM, 0);
			if (connect(own[i], (void *)&a, sizeof(a)))
				_exit(1);
		}
		_exit(0);
	}
	usleep(20000);
	for (int i = 0; i < 4; i++)
		must(accept(fd, NULL, NULL));
	N(ends(pid));
	close(fd);
}

/* A file and a socket over a socket. */
static void rights(void)
{
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 }, c = 'c';
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int pair[2], fds[2];
	struct stat st;
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	pid = must(fork());
	if (!pid) {
		fds[0] = open("/dev/null", O_RDONLY);
		fds[1] = socket(AF_INET, SOCK_DGRAM, 0);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
		usleep(20000);
		_exit(sendmsg(pair[1], &msg, 0) != 1);
	}
	N(recvmsg(pair[0], &msg, 0));
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fds));
	N(fstat(fds[0], &st) == 0 && S_ISCHR(st.st_mode));
	N(fstat(fds[1], &st) == 0 && S_ISSOCK(st.st_mode));
	N(ends(pid));
}

static void fifos(void)
{
	char path[64], buf[8] = "";
	int fd;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/fifo", folder);
	must(mkfifo(path, 0600));
	for (int late = 0; late < 2; late++) {
		pid = must(fork());
		if (!pid) {
			usleep(late ? 30000 : 0);
			fd = open(path, O_WRONLY);
			_exit(write(fd, "abc", 3) != 3);
		}
		usleep(late ? 0 : 30000);
		fd = must(open(path, O_RDONLY));
		N(fcntl(fd, F_GETFL) & O_NONBLOCK);
		N(read(fd, buf, sizeof(buf)));
		N(read(fd, buf, sizeof(buf)));
		N(ends(pid));
		close(fd);
	}
	unlink(path);
}

static void again(int sig)
{
}

/* Calls that don't wait, and waits that end early: for less than was asked for, or by a signal. */
static void early(void)
{
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, never = { 0 };
	struct sigaction act = { .sa_handler = again, .sa_flags = SA_RESTART };
	struct timeval limit = { 30, 0 };
	char buf[8] = "abc";
	struct iovec iov = { buf, 3 };
	struct mmsghdr many[2] = { { { .msg_iov = &iov, .msg_iovlen = 1 } }, { { .msg_iov = &iov, .msg_iovlen = 1 } } };
	int pair[2], n;

	for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
		must(socketpair(AF_UNIX, type, 0, pair));
		T(recvmmsg(pair[0], many, 2, MSG_DONTWAIT, NULL));
		T(recvmmsg(pair[0], many, 0, 0, NULL));
		T(sendmmsg(pair[1], many, 1, 0));
		T(recvmmsg(pair[0], many, 2, MSG_WAITFORONE, NULL));
		must(send(pair[1], "abc", 3, 0));
		T(recv(pair[0], buf, sizeof(buf), MSG_WAITALL | MSG_PEEK));
		if (type == SOCK_DGRAM)
			T(recv(pair[0], buf, sizeof(buf), MSG_WAITALL));
		while ((n = sendmmsg(pair[1], many, 2, MSG_DONTWAIT)) > 0)
			;
		N(errno == EAGAIN);
		close(pair[0]);
		close(pair[1]);
	}
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	must(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	must(sigaction(SIGALRM, &act, NULL));
	must(setitimer(ITIMER_REAL, &often, NULL));
	T(recv(pair[0], buf, 1, 0));
	T(read(pair[0], buf, 1));
	must(setitimer(ITIMER_REAL, &never, NULL));
	close(pair[0]);
	close(pair[1]);
}

/* Other readers do not count; a writer counts that does not write, and one whose open() could have made the file. */
static void fifo_ends(void)
{
	int *written = (int *)must((long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	char path[64], c;
	pid_t first, writer;
	int fd, both, hold[2];

	snprintf(path, sizeof(path), "%s/ends", folder);
	must(pipe(hold));
	must(mkfifo(path, 0600));
	first = must(fork());
	if (!first) {
		fd = open(path, O_RDONLY);
		_exit(fd < 0 ? 9 : __atomic_load_n(written, __ATOMIC_SEQ_CST));
	}
	usleep(20000);
	fd = must(open(path, O_RDONLY | O_NONBLOCK));
	usleep(20000);
	writer = must(fork());
	if (!writer) {
		__atomic_store_n(written, 3, __ATOMIC_SEQ_CST);
		close(hold[1]);
		_exit(open(path, O_WRONLY) < 0 || read(hold[0], &c, 1));
	}
	N(WEXITSTATUS(ends(first)));
	close(hold[1]);
	N(ends(writer));
	close(hold[0]);
	close(fd);

	both = must(open(path, O_RDWR));
	fd = must(open(path, O_RDONLY));
	N(fcntl(fd, F_GETFL) & O_NONBLOCK);
	close(fd);
	close(both);

	writer = must(fork());
	if (!writer) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		_exit(write(fd, "abc", 3) != 3);
	}
	T(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
	usleep(20000);
	fd = must(open(path, O_RDONLY));
	N(ends(writer));
	close(fd);
	munmap(written, 4096);
	unlink(path);
}

static int lock(int fd, int how, bool ofd)
{
	struct flock l = { .l_type = F_WRLCK };

	if (how == 0)
		return flock(fd, LOCK_EX);
	return fcntl(fd, ofd ? F_OFD_SETLKW : F_SETLKW, &l);
}

/* Given back by a call, by the last close, and by the end of the process. */
static void file_locks(int how, bool ofd)
{
	char path[64], c;
	int fd, pipes[2], hold[2], status;

	snprintf(path, sizeof(path), "%s/lock", folder);
	for (int end = 0; end < 3; end++) {
		must(pipe(pipes));
		must(pipe(hold));
		if (!fork()) {
			close(hold[1]);
			fd = open(path, O_RDWR | O_CREAT, 0600);
			if (lock(fd, how, ofd) || write(pipes[1], "x", 1) != 1)
				_exit(1);
			usleep(30000);
			if (end == 0 && how == 0)
				flock(fd, LOCK_UN);
			else if (end < 2)
				close(fd);
			_exit(end < 2 && read(hold[0], &c, 1));
		}
		must(read(pipes[0], &c, 1));
		fd = must(open(path, O_RDWR));
		T(lock(fd, how, ofd));
		close(fd);
		close(pipes[0]);
		close(pipes[1]);
		close(hold[1]);
		wait(&status);
		N(WEXITSTATUS(status));
		close(hold[0]);
	}
	unlink(path);
}

static void signals(void)
{
	struct signalfd_siginfo info;
	struct pollfd p;
	sigset_t set;
	pid_t pid, parent = getpid();

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigdelset(&set, SIGCHLD);
	p = (struct pollfd){ must(signalfd(-1, &set, SFD_CLOEXEC)), POLLIN };
	pid = must(fork());
	if (!pid) {
		usleep(20000);
		kill(parent, SIGUSR2);
		_exit(7);
	}
	N(poll(&p, 1, -1));
	N(read(p.fd, &info, sizeof(info)));
	N(info.ssi_signo == SIGUSR2);
	N(info.ssi_pid == (uint32_t)pid);
	sigaddset(&set, SIGCHLD);
	must(signalfd(p.fd, &set, 0));
	N(read(p.fd, &info, sizeof(info)));
	N(info.ssi_signo == SIGCHLD);
	N(info.ssi_pid == (uint32_t)pid);
	N(info.ssi_status);
	N(WEXITSTATUS(ends(pid)));
}

static siginfo_t got;
static volatile int came;

static void queued(int sig, siginfo_t *info, void *context)
{
	got = *info;
	came = sig;
}

/* Prints the sender of a signal, the way it was sent, and its value. */
static void senders(void)
{
	struct sigaction act = { .sa_sigaction = queued, .sa_flags = SA_SIGINFO };
	pid_t pid, parent = getpid();

	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGRTMIN, &act, NULL);
	for (int queue = 0; queue < 2; queue++) {
		came = 0;
		pid = must(fork());
		if (!pid)
			_exit(queue ? sigqueue(parent, SIGRTMIN, (union sigval){ .sival_int = 42 }) : kill(parent, SIGUSR1));
		while (!came)
			usleep(1000);
		N(came == (queue ? SIGRTMIN : SIGUSR1));
		N(got.si_code == (queue ? SI_QUEUE : SI_USER));
		N(got.si_pid == pid);
		N(got.si_uid == getuid());
		N(queue ? got.si_value.sival_int : 0);
		N(ends(pid));
	}
}

/* A parent hears of a stop and of a continuation, by a signal and by a wait. SIGCHLD is blocked. */
static void stops(void)
{
	siginfo_t info;
	sigset_t set;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	while (sigtimedwait(&set, NULL, &(struct timespec){ 0 }) > 0)
		;
	pid = must(fork());
	if (!pid) {
		raise(SIGSTOP);
		_exit(5);
	}
	must(sigwaitinfo(&set, &info));
	N(info.si_code == CLD_STOPPED && info.si_pid == pid && info.si_status == SIGSTOP);
	must(waitid(P_PID, pid, &info, WSTOPPED));
	N(info.si_code == CLD_STOPPED && info.si_status == SIGSTOP);
	must(kill(pid, SIGCONT));
	must(waitid(P_PID, pid, &info, WCONTINUED | WEXITED | WNOWAIT));
	must(waitid(P_PID, pid, &info, WEXITED));
	N(info.si_code == CLD_EXITED && info.si_status == 5);
	must(sigwaitinfo(&set, &info));

	pid = must(fork());
	if (!pid) {
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	must(waitid(P_PID, pid, &info, WSTOPPED));
	must(kill(pid, SIGCONT));
	must(waitid(P_PID, pid, &info, WCONTINUED));
	N(info.si_code == CLD_CONTINUED && info.si_status == SIGCONT);
	must(kill(pid, SIGKILL));
	N(ends(pid));
}

int main(void)
{
	must((long)mkdtemp(folder) > 0 ? 0 : -1);
	stream();
	names(SOCK_STREAM);
	names(SOCK_DGRAM);
	names(SOCK_SEQPACKET);
	backlog();
	rights();
	early();
	fifos();
	fifo_ends();
	file_locks(0, false);
	file_locks(1, false);
	file_locks(1, true);
	signals();
	senders();
	stops();
	rmdir(folder);
	return 0;
}
