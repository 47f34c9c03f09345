// SPDX-License-Identifier: GPL-2.0
/*
 * memory.c - /dev/shm in a sandbox
 *
 * C libraries keep POSIX shared memory and semaphores in /dev/shm, which is the whole host's. A sandbox has a folder of its own
 * in its place. The warden gives a descriptor of that, by which the gate learns its path.
 */
#include "policy.h"

#define SHM		"/dev/shm"

static struct {
	u32 known;		/* 1: there is none; 2: there is one */
	char path[64];
} memory;

static bool has_memory(void)
{
	u32 known = __atomic_load_n(&memory.known, __ATOMIC_ACQUIRE);
	char path[sizeof(memory.path)];
	long fd, n = 0;

	if (likely(known))
		return known == 2;
	fd = own_ask(OWN_MEMORY, 0, 0);
	if (own_is_unsure(fd))
		return false;
	if (fd >= 0) {
		n = fd_link(fd, path, sizeof(path));
		host_syscall1(__NR_close, fd);
	}
	known = n > 0 && n < (long)sizeof(path) - 1 ? 2 : 1;
	if (known == 2)
		memcpy(memory.path, path, n + 1);
	__atomic_store_n(&memory.known, known, __ATOMIC_RELEASE);
	return known == 2;
}

bool is_memory(const char *path)
{
	const char *rest = path + strlen(SHM);

	return !strncmp(path, SHM, strlen(SHM)) && (!*rest || *rest == '/');
}

bool memory_name(const char *path, char *buf, size_t size)
{
	const char *rest = path + strlen(SHM);

	if (!has_memory() || strlen(memory.path) + strlen(rest) >= size)
		return false;
	gate_format(buf, size, "%s%s", memory.path, rest);
	return true;
}
