// SPDX-License-Identifier: GPL-2.0
/*
 * SIGIO and SIGURG caused by a process of another user: the owner, who allowed it by F_SETOWN, waits on the host in
 * pause(), in sigwaitinfo(), in a read of a pipe, or computes.
 */
#include "cred.h"

#define EACH	25

enum waits { PAUSE, SIGWAIT, PIPE, COMPUTE };
static const char *const names[] = { "pause", "sigwaitinfo", "read", "computes" };

static volatile sig_atomic_t heard, info_right;
static int sock[2], told[2], own[2];
static enum waits how_waits;

static void on_signal(int signo, siginfo_t *info, void *context)
{
	heard = signo;
	if (signo == SIGURG || signo == SIGIO)
		info_right = info->si_code == SI_KERNEL && !info->si_pid && !info->si_uid;
	else
		info_right = info->si_code == POLL_IN && info->si_fd == sock[0] && (info->si_band & POLLIN);
	/* It may come before the read does. */
	if (how_waits == PIPE)
		need(write(own[1], "h", 1) == 1);
}

static void become(uid_t uid)
{
	must(setgroups(0, NULL));
	must(setresgid(uid, uid, uid));
	must(setresuid(uid, uid, uid));
}

/* Hears EACH signals in the way that `how` says. */
static void owner(uid_t uid, enum waits how, int signo, int set_signal)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	sigset_t set, old;
	siginfo_t info;
	int rights = 0;
	char c = 'r';

	how_waits = how;
	become(uid);
	sigemptyset(&set);
	sigaddset(&set, signo);
	must(sigprocmask(SIG_BLOCK, &set, &old));
	must(sigaction(signo, &sa, NULL));
	must(fcntl(sock[0], F_SETOWN, getpid()));
	if (set_signal)
		must(fcntl(sock[0], F_SETSIG, signo));
	must(fcntl(sock[0], F_SETFL, signo == SIGURG ? O_NONBLOCK : O_NONBLOCK | O_ASYNC));
	need(write(told[1], &c, 1) == 1);
	for (int i = 0; i < EACH; i++) {
		heard = 0;
		if (how == SIGWAIT) {
			heard = sigwaitinfo(&set, &info);
			/* The code is not POLL_IN on a node. */
			info_right = !set_signal || (info.si_fd == sock[0] && (info.si_band & POLLIN));
		} else {
			must(sigprocmask(SIG_SETMASK, how == PAUSE ? &set : &old, NULL));
			if (how == PAUSE)
				sigsuspend(&old);
			while (how == PIPE && read(own[0], &c, 1) != 1)
				need(errno == EINTR);
			while (how == COMPUTE && !heard)
				;
		}
		rights += heard == signo && info_right;
		while (recv(sock[0], &c, 1, 0) == 1)
			;
		must(sigprocmask(SIG_SETMASK, &set, NULL));
		need(write(told[1], "h", 1) == 1);
	}
	_exit(rights);
}

static void part(enum waits how, int signo, int set_signal, uid_t from, uid_t to)
{
	struct pollfd p = { .events = POLLIN };
	int arrived = 0, status;
	pid_t a, b;
	char c;

	say("user %d to user %d, %s, %s", from, to, names[how],
	    signo == SIGURG ? "SIGURG" : signo == SIGIO ? "SIGIO" : "real-time");
	fflush(stdout);
	tcp_pair(AF_INET, sock);
	must(pipe(told));
	must(pipe(own));
	a = must(fork());
	if (!a)
		owner(to, how, signo, set_signal);
	need(read(told[0], &c, 1) == 1 && c == 'r');
	b = must(fork());
	if (!b) {
		become(from);
		p.fd = told[0];
		for (int i = 0; i < EACH; i++) {
			sleep_ms(i % 3);
			must(send(sock[1], "x", 1, signo == SIGURG ? MSG_OOB : 0));
			if (poll(&p, 1, 3000) != 1)
				break;
			arrived += read(told[0], &c, 1) == 1;
		}
		_exit(arrived);
	}
	must(waitpid(b, &status, 0));
	arrived = WEXITSTATUS(status);
	if (arrived < EACH)		/* the owner waits for what is lost */
		kill(a, SIGKILL);
	must(waitpid(a, &status, 0));
	say("  %d of %d arrived, %d right", arrived, EACH, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	close(sock[0]), close(sock[1]), close(told[0]), close(told[1]), close(own[0]), close(own[1]);
}

int main(void)
{
	need_root();
	for (enum waits how = PAUSE; how <= COMPUTE; how++) {
		part(how, SIGIO, 0, SOMEBODY, NOBODY);
		part(how, SIGURG, 0, SOMEBODY, NOBODY);
		part(how, SIGRTMIN + 1, 1, SOMEBODY, NOBODY);
	}
	part(PAUSE, SIGIO, 0, NOBODY, SOMEBODY);
	part(PAUSE, SIGIO, 0, SOMEBODY, 0);
	part(PAUSE, SIGIO, 0, 0, SOMEBODY);
	return 0;
}
