// SPDX-License-Identifier: GPL-2.0
/* mlockall(): a small program locks its own memory, as root and as a user with a limit. */
#include "oracle.h"
#include <linux/capability.h>

/* MiB, rounded. */
static long locked(void)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");

	need(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmLck: %ld", &kib);
	fclose(f);
	return kib / 1024;
}

static void lock(const char *what, int flags)
{
	long mib;
	char *m;

	NAMED(what, mlockall(flags));
	mib = locked();
	say("%s", mib > 200 ? "more than there is" : mib > 0 ? "something" : "nothing");
	m = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("more: %ld", m == MAP_FAILED ? -1 : locked() - mib);
	if (m != MAP_FAILED)
		munmap(m, 32 << 20);
	must(munlockall());
	N(locked());
}

int main(void)
{
	struct rlimit r;
	int fd;
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	/* A mapping that reaches beyond its file's end. */
	must(ftruncate(fd = must(memfd_create("short", 0)), 4096));
	need(mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	lock("current", MCL_CURRENT);
	lock("current and future", MCL_CURRENT | MCL_FUTURE);
	lock("on fault", MCL_CURRENT | MCL_ONFAULT);
	T(mlockall(MCL_ONFAULT));
	T(mlockall(8));
	T(mlockall(0));

	must(getrlimit(RLIMIT_MEMLOCK, &r));
	if (r.rlim_max > 64 << 20)
		r.rlim_max = 64 << 20;
	r.rlim_cur = r.rlim_max;
	must(setrlimit(RLIMIT_MEMLOCK, &r));
	must(syscall(SYS_capget, &head, data));
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	data[0].permitted &= ~(1u << CAP_IPC_LOCK);
	data[0].inheritable &= ~(1u << CAP_IPC_LOCK);
	must(syscall(SYS_capset, &head, data));
	lock("within the limit", MCL_CURRENT);
	r.rlim_cur = r.rlim_max = 65536;
	must(setrlimit(RLIMIT_MEMLOCK, &r));
	T(mlockall(MCL_CURRENT));
	N(locked());
	r.rlim_cur = r.rlim_max = 0;
	must(setrlimit(RLIMIT_MEMLOCK, &r));
	T(mlockall(MCL_CURRENT));
	N(locked());
	return 0;
}
