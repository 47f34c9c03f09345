// SPDX-License-Identifier: GPL-2.0
/* Capabilities that a program drops, one by one, and the ones that are left after exec. */
#include "cred.h"

static void without(const char *name, uint64_t cap)
{
	uint64_t all = caps_permitted() & ~cap;

	must(caps_set(all, all, 0));
	rights(name);
	N(caps_set(all | cap, all, 0));
}

static void lowered(void)
{
	uint64_t all = caps_permitted();

	must(caps_set(all, all & ~CAP(NET_RAW), 0));
	rights("NET_RAW lowered");
	must(caps_set(all, all, 0));
	rights("NET_RAW raised");
}

static void again(const char *part) __attribute__((noreturn));
static void again(const char *part)
{
	execl("/proc/self/exe", "cred_caps", part, NULL);
	need(!"exec");
	exit(1);
}

static void exec_root(void)
{
	must(caps_set(CAP(NET_RAW), CAP(NET_RAW), 0));
	rights("root with one");
	again("root with one, after exec");
}

static void exec_bounded(void)
{
	must(prctl(PR_CAPBSET_DROP, CAP_NET_RAW));
	must(prctl(PR_CAPBSET_DROP, CAP_NET_BIND_SERVICE));
	rights("bounded");
	again("bounded, after exec");
}

static void exec_no_new(void)
{
	must(caps_set(CAP(NET_RAW), CAP(NET_RAW), 0));
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	again("no new privileges, after exec");
}

static void exec_kept(void)
{
	must(prctl(PR_SET_KEEPCAPS, 1));
	must(setresuid(NOBODY, NOBODY, NOBODY));
	must(caps_set(CAP(NET_RAW), CAP(NET_RAW), 0));
	rights("kept");
	again("kept, after exec");
}

static void exec_ambient(void)
{
	must(prctl(PR_SET_KEEPCAPS, 1));
	must(setresuid(NOBODY, NOBODY, NOBODY));
	must(caps_set(CAP(NET_RAW) | CAP(NET_BIND_SERVICE), CAP(NET_RAW) | CAP(NET_BIND_SERVICE),
		      CAP(NET_BIND_SERVICE)));
	must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0));
	rights("ambient");
	again("ambient, after exec");
}

static void exec_locked(void)
{
	must(prctl(PR_SET_SECUREBITS, 0x3));	/* NOROOT, locked */
	rights("root is nobody");
	again("root is nobody, after exec");
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		rights(argv[1]);
		return 0;
	}
	need_root();
	IN_CHILD(without("without NET_BIND_SERVICE", CAP(NET_BIND_SERVICE)));
	IN_CHILD(without("without NET_ADMIN", CAP(NET_ADMIN)));
	IN_CHILD(without("without NET_RAW", CAP(NET_RAW)));
	IN_CHILD(without("without DAC_OVERRIDE", CAP(DAC_OVERRIDE)));
	IN_CHILD(without("without any", ~0ull));
	IN_CHILD(lowered());
	IN_CHILD(exec_root());
	IN_CHILD(exec_bounded());
	IN_CHILD(exec_no_new());
	IN_CHILD(exec_kept());
	IN_CHILD(exec_ambient());
	IN_CHILD(exec_locked());
	return 0;
}
