// SPDX-License-Identifier: GPL-2.0
/*
 * sim_futex.c - futexes in virtual time
 *
 * The node's kernel serves them. It can't see which pages a program shares with others. So in a process that has ever
 * shared memory, the gate looks an address up in the host's list of mappings, and tells the node once for each mapping.
 * When the process maps or unmaps something, the gate forgets what it has looked up.
 *
 * One thread of the node runs at a time, and nothing here waits: there is no lock.
 */
#include "internal.h"
#include "policy.h"
#include <linux/futex.h>

#define MAP_SHARED_BIT		0x1	/* MAP_SHARED and MAP_SHARED_VALIDATE have it, MAP_PRIVATE has not */
#define LINES_BYTES		8192	/* more than the longest line, whose path has 4096 */
#define RANGES			16
#define ROBUST_MAX		2048	/* ROBUST_LIST_LIMIT: no list is longer, but one in a circle */
#define FUTEX2_PRIVATE		0x80	/* newer than some headers; the same as FUTEX_PRIVATE_FLAG */

struct waitv {
	u64 val, uaddr;
	u32 flags, reserved;
};
#define WAITV_MAX		128

struct range {
	u64 start, end;
	u64 object;		/* 0: the process's own memory */
	u64 index;		/* of the page at start */
};

static bool shares_memory;	/* kept by fork; a new program shares nothing yet */
static struct range ranges[RANGES] GATE_KEPT;
static u32 ranges_used;
static u64 ranges_of;		/* the ring3_proc that they describe; 0: look up anew */

/* A call that changes the process's mappings is about to be made. */
long sim_maps(struct gate_regs *r, gate_handler otherwise)
{
	if (r->nr == __NR_shmat || (r->nr == __NR_mmap && (r->a[3] & MAP_SHARED_BIT)))
		WRITE_ONCE(shares_memory, true);
	ranges_of = 0;
	return otherwise(r);
}

static const char *number(const char *at, u32 base, u64 *value)
{
	u32 digit;

	for (*value = 0;; at++) {
		digit = *at >= '0' && *at <= '9' ? *at - '0' : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10 : 16;
		if (digit >= base)
			return at;
		*value = *value * base + digit;
	}
}

/* "START-END rwxs OFFSET MAJOR:MINOR INODE   PATH". True: the address is in there. */
static bool line_has(const char *line, u64 address, struct range *r)
{
	static const char sysv[] = "/SYSV";
	u64 offset, major, minor, inode;

	line = number(line, 16, &r->start);
	if (*line++ != '-' || address < r->start)
		return false;
	line = number(line, 16, &r->end);
	if (address >= r->end || *line++ != ' ')
		return false;
	r->object = r->index = 0;
	if (line[3] != 's')
		return true;
	line = number(line + 5, 16, &offset);
	line = number(line + 1, 16, &major);
	line = number(line + 1, 16, &minor);
	line = number(line + 1, 10, &inode);
	while (*line == ' ')
		line++;
	/* Numbers of SysV memory are not those of the file system that it is on. */
	r->object = strncmp(line, sysv, strlen(sysv)) ? 1ull << 62 : 1ull << 63;
	r->object ^= major << 52 ^ minor << 40 ^ inode;
	r->index = offset / GATE_PAGE;
	return true;
}

/* Finds the mapping at the address. False: there is none that the gate can know. */
static bool look_up(u64 address, struct range *r)
{
	static char buf[LINES_BYTES + 1] GATE_TABLE;
	long n, have = 0, line, end;
	bool found = false;
	long fd = host_syscall4(__NR_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0) {
		gate_warn("no /proc: a futex in shared memory is seen by one process alone");
		return false;
	}
	while (!found && (n = host_syscall3(__NR_read, fd, (long)buf + have, LINES_BYTES - have)) > 0) {
		have += n;
		buf[have] = 0;
		for (line = 0; !found; line = end + 1) {
			for (end = line; end < have && buf[end] != '\n'; end++)
				;
			if (end == have)
				break;
			found = line_has(buf + line, address, r);
		}
		memmove(buf, buf + line, have - line);
		have -= line;
	}
	host_syscall1(__NR_close, fd);
	return found;
}

/* Called before the node reads a futex at this address, which others may share. */
static void say(u64 address)
{
	struct range *r;
	u32 i;

	if (likely(!READ_ONCE(shares_memory)))
		return;
	if (ranges_of != gate_thread()->proc) {
		ranges_used = 0;
		ranges_of = gate_thread()->proc;
		image_call4(RING3_NR_FUTEX_MEMORY, 0, 0, 0, 0);
	}
	for (i = 0; i < ranges_used && i < RANGES; i++)
		if (address >= ranges[i].start && address < ranges[i].end)
			return;
	r = &ranges[ranges_used % RANGES];
	if (!look_up(address, r))
		return;
	if (++ranges_used == 2 * RANGES)
		ranges_used = RANGES;
	if (r->object)
		image_call4(RING3_NR_FUTEX_MEMORY, r->start, r->end, r->object, r->index);
}

static bool has_two(u32 op)
{
	return op == FUTEX_REQUEUE || op == FUTEX_CMP_REQUEUE || op == FUTEX_WAKE_OP ||
	       op == FUTEX_WAIT_REQUEUE_PI || op == FUTEX_CMP_REQUEUE_PI;
}

/* A shared futex has to be in mapped memory; for a private one Linux uses the address alone. */
static long shared(u64 address)
{
	u32 value;

	if (!(address & 3) && gate_copy_in(&value, user_ptr(address), sizeof(value)))
		return -EFAULT;
	say(address);
	return 0;
}

long sim_futex(struct gate_regs *r, gate_handler otherwise)
{
	u32 op = r->a[1] & FUTEX_CMD_MASK;

	if (!(r->a[1] & FUTEX_PRIVATE_FLAG) && (shared(r->a[0]) || (has_two(op) && shared(r->a[4]))))
		return -EFAULT;
	return image_pass(r);
}

/* futex_wake() and futex_wait() have their flags in the fourth argument and the fifth. */
static long futex2(struct gate_regs *r, u32 flags)
{
	if (!(r->a[flags] & FUTEX2_PRIVATE) && shared(r->a[0]))
		return -EFAULT;
	return image_pass(r);
}

long sim_futex_wake(struct gate_regs *r, gate_handler otherwise)
{
	return futex2(r, 3);
}

long sim_futex_wait(struct gate_regs *r, gate_handler otherwise)
{
	return futex2(r, 4);
}

static long futexes(struct gate_regs *r, u64 count)
{
	struct waitv w;
	u64 i;

	for (i = 0; i < count && i < WAITV_MAX; i++) {
		if (gate_copy_in(&w, user_ptr(r->a[0] + i * sizeof(w)), sizeof(w)))
			return -EFAULT;
		if (!(w.flags & FUTEX2_PRIVATE))
			say(w.uaddr);
	}
	return image_pass(r);
}

long sim_futex_waitv(struct gate_regs *r, gate_handler otherwise)
{
	return futexes(r, r->a[1]);
}

long sim_futex_requeue(struct gate_regs *r, gate_handler otherwise)
{
	return futexes(r, 2);
}

/* Robust futexes: the node wakes those that wait, and the host marks those of a process that it kills. */
long sim_robust_list(struct gate_regs *r, gate_handler otherwise)
{
	long ret = image_pass(r);

	if (ret)
		return ret;
	gate_tcb()->robust_list = r->a[0];
	return gate_host_regs(r);
}

/* Tells the node the list that it walks when the thread ends: struct robust_list_head. */
static void say_robust(u64 head)
{
	u64 words[3], at;
	u32 i;

	if (!head || gate_copy_in(words, user_ptr(head), sizeof(words)))
		return;
	if (words[2])
		say((words[2] & ~1ull) + words[1]);
	for (at = words[0] & ~1ull, i = 0; at && at != head && i < ROBUST_MAX; i++) {
		say(at + words[1]);
		if (gate_copy_in(&at, user_ptr(at), sizeof(at)))
			return;
		at &= ~1ull;
	}
}

/* Called before the thread ends, or with `all' the whole process. */
void sim_futex_ends(bool all)
{
	struct gate_tcb *tcb;
	u32 i;

	if (likely(!READ_ONCE(shares_memory)))
		return;
	say_robust(gate_tcb()->robust_list);
	for (i = 0; all && (tcb = thread_area(i)); i++)
		if (tcb->busy && tcb != gate_tcb())
			say_robust(tcb->robust_list);
}
