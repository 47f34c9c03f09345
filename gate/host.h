/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host.h - the host's system call ABI, raw
 *
 * host_syscallN() never checks for pending signals: it is for calls that do not block. A call that may wait on the
 * program's behalf uses gate_host() (gate.h), so that a signal can interrupt it.
 */
#ifndef GATE_HOST_H
#define GATE_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdarg.h>

#include <asm/unistd.h>
#include <asm/prctl.h>
#include <asm/signal.h>
#include <asm/siginfo.h>
#include <asm/sigcontext.h>
#include <asm/ucontext.h>
#include <asm/stat.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/time.h>
#include <linux/uio.h>

/* Everything that is linked into the gate is within reach of RIP: no GOT. Never popped. */
#pragma GCC visibility push(hidden)

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int32_t s32;
typedef int64_t s64;

/* Not in the uapi headers: results of interrupted calls inside a kernel. */
#define ERESTARTSYS		512
#define ERESTARTNOINTR		513
#define ERESTARTNOHAND		514
#define ERESTART_RESTARTBLOCK	516

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH	59
#define PR_SYS_DISPATCH_ON		1
#endif

#define HOST_IS_ERR(x)		((unsigned long)(x) >= -4095UL)

/* The kernel's struct msghdr and cmsghdr; no uapi header has them. */
struct host_msghdr {
	void *name;
	u32 namelen;
	u32 pad0;
	struct iovec *iov;
	u64 iovlen;
	void *control;
	u64 controllen;
	u32 flags;
	u32 pad1;
};

struct host_statfs {
	s64 type, bsize, blocks, bfree, bavail, files, ffree;
	s32 fsid[2];
	s64 namelen, frsize, flags, spare[4];
};
#define HOST_NOSUID	2	/* flags: ST_NOSUID */
#define HOST_NOEXEC	8	/* ST_NOEXEC */

struct host_cmsghdr {
	u64 len;
	s32 level;
	s32 type;
};

/* Of sockets; no uapi header has these without libc's types. */
#define AF_UNIX			1
#define AF_ALG			38
#define AF_VSOCK		40
#define SOCK_SEQPACKET		5
#define SOL_SOCKET		1
#define SO_TYPE			3
#define SO_DOMAIN		39
#define SOL_SCTP		132
#define SO_PEERCRED		17
#define SO_COOKIE		57
#define SCM_RIGHTS		1
#define SCM_MAX_FD		253
#define SHUT_WR			1
#define MSG_PEEK		0x2
#define MSG_CTRUNC		0x8
#define MSG_TRUNC		0x20
#define MSG_DONTWAIT		0x40
#define MSG_NOSIGNAL		0x4000
#define MSG_MORE		0x8000
#define MSG_CMSG_CLOEXEC	0x40000000

static inline long host_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	long ret;

	asm volatile("syscall"
		     : "=a"(ret)
		     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
	return ret;
}

static inline long host_syscall5(long nr, long a, long b, long c, long d, long e)
{
	return host_syscall6(nr, a, b, c, d, e, 0);
}

static inline long host_syscall4(long nr, long a, long b, long c, long d)
{
	return host_syscall6(nr, a, b, c, d, 0, 0);
}

static inline long host_syscall3(long nr, long a, long b, long c)
{
	long ret;

	asm volatile("syscall"
		     : "=a"(ret)
		     : "a"(nr), "D"(a), "S"(b), "d"(c)
		     : "rcx", "r11", "memory");
	return ret;
}

static inline long host_syscall2(long nr, long a, long b)
{
	return host_syscall3(nr, a, b, 0);
}

static inline long host_syscall1(long nr, long a)
{
	return host_syscall3(nr, a, 0, 0);
}

static inline long host_syscall0(long nr)
{
	return host_syscall3(nr, 0, 0, 0);
}

static inline void host_nap(long ns)
{
	struct timespec ts = { .tv_nsec = ns };

	host_syscall2(__NR_nanosleep, (long)&ts, 0);
}

#endif /* GATE_HOST_H */
