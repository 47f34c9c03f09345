/* SPDX-License-Identifier: GPL-2.0 */
/*
 * gate.h - the gate's mechanism, for the code that decides about calls (policy.h)
 *
 * Theory of operation
 * -------------------
 * The gate is a static executable that the host runs in place of the program. It joins the node, maps the program
 * beside itself, arms a backstop (sud.c) and jumps to the program: every `syscall` instruction outside of the gate
 * and the image raises SIGSYS, whose handler makes a call of gate_syscall() of it. A site that traps often is
 * rewritten (patch.c) into a jump to entry/x86_64/entry.S, which does the same in a few nanoseconds on a stack of
 * the gate.
 *
 *   program --syscall--> SIGSYS handler ---+
 *   program --jmp--> stub --> gate_entry --+--> gate_syscall() [policy]
 *                                          |      image_call()  the node
 *                                          |      gate_host()   the host, may wait
 *                                          |      host_syscallN()  the host, won't
 *                                          +--> gate_exit_work(): signals, restarts
 *
 * Signals (signal.c): a handler of the program never runs while the thread is inside the gate or the image. The
 * signal is noted (thread->sigpending), the waiting call ends early with -ERESTART*, and the handler runs when the
 * thread leaves the gate. So gate code that gets one of the codes -512, -513, -514 or -516 from image_call() or
 * gate_host() must undo or keep what it did, and return the code unchanged. The exit path turns it into EINTR or a
 * restart of the whole call.
 *
 * Locks: a gate_mutex may be held across calls of the host and of the image that do not wait, never across
 * gate_host(). fork takes all of them: gate_life.forks.
 */
#ifndef GATE_H
#define GATE_H

#include "host.h"
#include "ring3.h"
#include "asm_defs.h"

#define GATE_PAGE	4096UL

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define READ_ONCE(x)	(*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile typeof(x) *)&(x) = (v))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define offset_in_page(x)	((u64)(x) & (GATE_PAGE - 1))
#define page_align(x)	(((u64)(x) + GATE_PAGE - 1) & ~(GATE_PAGE - 1))
#define page_start(x)	((u64)(x) & ~(GATE_PAGE - 1))
#define barrier()	asm volatile("" ::: "memory")
/* Large tables are placed after the variables that every start of a program touches. */
#define GATE_TABLE	__attribute__((section(".bss.table")))
/* Functions that each fork child runs: see gate.lds */
#define GATE_FORKED	__attribute__((section(".text.forked")))
/* Variables that a fork child does not write: behind the page of those that it does. */
#define GATE_KEPT	__attribute__((section(".bss.kept")))

/*
 * A system call of the program. Made by entry.S on the thread's gate stack (then uctx is NULL) or by the SIGSYS
 * handler. Handlers must not change it: the program's registers are restored from it, and the call may be
 * restarted.
 */
struct gate_regs {
	u64 nr;
	u64 a[6];
	u64 stub;		/* entry.S: return address inside the site's stub */
	struct ucontext *uctx;	/* the program's whole context, or NULL */
};

/* ---- from a call number to its handler (route.c) ---- */

/* Runs one call; returns its result, -errno or an -ERESTART* code. */
long gate_syscall(struct gate_regs *r);

/* CLASS_*: how much of call nr the stub of a rewritten site may do without the gate's handlers. */
u32 gate_class(u64 nr);

/* ---- the tables (tables.c): the only way in which a file calls one above it ---- */

typedef long (*gate_handler)(struct gate_regs *r);
/* In virtual time; `otherwise' is the handler that serves the call in real time. */
typedef long (*gate_sim_handler)(struct gate_regs *r, gate_handler otherwise);
#include "handlers.h"	/* each handler of calls.tbl */
extern const gate_handler gate_handlers[GATE_STRAIGHT_NR];	/* NULL: the host serves the call unchanged */
extern const gate_sim_handler gate_sim_handlers[GATE_STRAIGHT_NR];	/* NULL: as in real time */
extern const u8 gate_classes[GATE_STRAIGHT_NR];

/*
 * gate_straight[i]: may entry.S serve call number i by itself (GATE_STRAIGHT* in asm_defs.h)? Such a call goes straight to
 * the image if its first argument is a descriptor whose bit in fdmap->node is set. At first as gate_straight_calls[],
 * all zero once a seccomp filter is set.
 */
extern const u8 gate_straight_calls[GATE_STRAIGHT_NR];
extern u8 gate_straight[GATE_STRAIGHT_NR];

/*
 * A lock that fork holds so that the child's copy is consistent, and a function that the child calls with the lock
 * held.
 */
struct gate_fork {
	struct gate_mutex *lock;	/* or NULL */
	void (*child)(void);		/* or NULL */
};
#define PROC_EXE_BYTES	4096

/* Hooks for the life of a process, which files above the caller provide. All are set. */
struct gate_life {
	void (*start)(bool fresh);		/* before the program starts; `fresh': on joining, not on exec */
	const struct gate_fork *forks;		/* in the order in which their locks are taken; the last has neither */
	u32 (*stamp)(void);			/* changes when the process gives the node something that a child has to have, too */
	u64 (*numbers)(void);			/* changes when a number is given up on the host, or has become the node's */
	void (*inherit)(u64 numbers);		/* in a child with descriptors of its own; `numbers': the value of numbers() before */
	void (*shared)(void);			/* another process is about to share our descriptors */
	bool (*refuses_ns)(u64 flags);		/* CLONE_NEW*: true if they are refused, after a message with the reason */
	void (*exec)(bool begins);		/* all other threads are stopped; false: it has failed */
	/*
	 * The path to use in place of (dirfd, path) if that is the exe link of a process of the node; NULL if it is
	 * not.
	 */
	const char *(*exe)(s32 dirfd, const char *path, char exe[PROC_EXE_BYTES]);
	bool (*grow)(u64 size);			/* the host refuses memory to the gate: may the gate ask again? */
	u32 (*others)(void);			/* threads of the program beside the caller */
	long (*unshare_files)(void);		/* gives the process a descriptor table of its own, on both sides */
	/* Each call, in virtual time; handler NULL: the host's call. */
	long (*sim)(struct gate_regs *r, gate_handler handler);
	void (*sim_ends)(bool all);	/* in virtual time: the thread ends, or with `all' the process */
	void (*sim_ids)(u64 *auxv, bool after);	/* ... the program starts; `after': after exec */
};
extern const struct gate_life gate_life;

/*
 * Told to the table's owner: closed() and dup() of descriptors of the node, proxy_closed() of a descriptor of the
 * host that has a proxy.
 */
struct gate_fd_life {
	void (*closed)(u32 fd);
	void (*dup)(u32 from, u32 to);
	void (*proxy_closed)(u32 fd);
};
extern const struct gate_fd_life gate_fd_life;

/* cred.c */
bool cred_prctl_is(u64 option);		/* prctl() about rights */
long cred_prctl(struct gate_regs *r);
/* Exec has made the effective ids the saved ones: gives the task the ids that the program sees. */
void cred_align(const u64 *auxv);
/* After the exec of fd: gives the task the capabilities of the file. */
void cred_of_file(int fd);
bool cred_host_ignores_set_id(const struct stat *st);	/* ... bits of a file */

/* ---- calls (image.c, host.S) ---- */

/*
 * Calls the image on this thread. On return, signals that the node has raised for the thread have been passed to
 * the host.
 */
long image_call(long nr, long a, long b, long c, long d, long e, long f);
#define image_call0(nr)			image_call(nr, 0, 0, 0, 0, 0, 0)
#define image_call1(nr, a)		image_call(nr, (long)(a), 0, 0, 0, 0, 0)
#define image_call2(nr, a, b)		image_call(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define image_call3(nr, a, b, c)	\
	image_call(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
bool gate_call_goes_on(long ret);	/* true if the call was cut short without reason: see there */

/*
 * A host call that may wait. If a signal is pending or comes first, it returns -ERESTARTNOINTR and has done
 * nothing.
 */
long gate_host(long nr, long a, long b, long c, long d, long e, long f);

/* The end of a thread; handlers are in handlers.h. */
void gate_exit_task(struct gate_regs *r);
long gate_exit(struct gate_regs *r);
u64 gate_process(void);	/* a number for each process that has used this memory; the first is 1 */

/* ---- waits of a given length (sleep.c) ---- */

/* How restart_syscall continues an interrupted wait: see there. */
struct gate_restart {
	long (*go_on)(struct gate_regs *r, const struct gate_restart *wait);	/* NULL: there is no such wait */
	u64 nr;			/* the original call; its arguments are still in the registers */
	u64 until;		/* ns */
	s32 clock;		/* clock of the host, if the call names one */
};
long gate_restart_later(const struct gate_restart *wait);	/* returns the result that the call has to return */
long gate_poll(struct gate_regs *r);		/* poll, of descriptors of the host */

/* ---- threads (thread.c) ---- */

static inline struct ring3_thread *gate_thread(void)
{
	struct ring3_thread *t;

	asm volatile("movq %%gs:0, %0" : "=r"(t));
	return t;
}

/* Makes the call on the host, unchanged. */
static inline long gate_host_regs(const struct gate_regs *r)
{
	gate_thread()->gate[WORD_COUNTS + RING3_STAT_PASSED]++;
	return gate_host(r->nr, r->a[0], r->a[1], r->a[2], r->a[3], r->a[4], r->a[5]);
}

/* thread->gate[] words from this one on belong to the policy. */
#define GATE_WORD_POLICY	16

static inline struct ring3_fdmap *gate_fdmap(void)
{
	return (struct ring3_fdmap *)gate_thread()->fdmap;
}

static inline bool gate_fd_is_node(u32 fd)
{
	return fd < RING3_FDS_MAX &&
	       (READ_ONCE(gate_fdmap()->node[fd / 64]) >> (fd % 64) & 1);
}

/* ---- descriptors that the gate keeps for itself (fds.c) ---- */

enum {
	GATE_FD_REGION = 0,
	GATE_FD_SELF = 1,	/* the gate's own executable, for exec */
	GATE_FD_PROGRAM = 2,	/* a program on its way through exec */
	GATE_FD_KEEPER = 3,	/* a socket to the keeper (ticket.c) */
	GATE_FD_POLICY = 4,	/* 4..14: the policy's */
	GATE_FD_FILTERS = 15,	/* seccomp filters on their way through exec */
	GATE_FD_PORT = 16,	/* + index: a port's descriptor */
};
extern u32 gate_fd_base;

static inline bool reserved_fd(u32 fd)
{
	return fd - gate_fd_base < GATE_RESERVED_FDS;
}

static inline int gate_fd(int slot)
{
	return gate_fd_base + slot;
}

/* Moves fd to a slot of the gate's row, which stays open over exec; returns the new number or -errno. */
long gate_fd_keep(int fd, int slot);
/*
 * Raises the soft limit of open files to `to', and the hard one if that is lower and may be raised; 0: to the hard
 * limit. Other threads wait here until fds_back() is called with the returned value.
 */
struct rlimit64 fds_raise(u64 to);
void fds_back(struct rlimit64 lim);
long gate_open_for_exec(int dir, const char *path, int flags);
void fd_slot_idle(int slot);

/* ---- other processes, and the host's /proc (state.c) ---- */

/* The process number *i of the node, or the next one; *i becomes the number after it. NULL: there is no more. */
struct ring3_proc *proc_next(u32 *i);
struct ring3_proc *proc_find(s32 pid);	/* NULL: not a process of the node */
/* The parts of a path below /proc/PID or /proc/PID/task/TID; self and thread-self are translated. False: it is none. */
struct proc_path {
	s32 pid, tid;		/* tid 0: the path names no thread */
	const char *rest;
};
bool proc_path(const char *path, struct proc_path *at);
/* Reads the beginning of a file and appends a NUL; returns the length or an error. */
long read_proc(const char *path, char *text, size_t size);
long read_and_close(long fd, char *text, size_t size);	/* fd is open, or is the error */
const char *proc_line(const char *text, const char *key);	/* the text after `key' at the beginning of a line; NULL: no line has it */
bool process_peek(s32 pid, const void *at, void *to, size_t n);	/* reads its memory; false: not all of it could be read */
/* Reads a link and appends a NUL; returns the length (size - 1: it may be truncated) or an error. */
long proc_link(const char *path, char *text, size_t size);
long fd_link(int fd, char *text, size_t size);		/* the same for the link of a descriptor */
long fd_link_of(s32 pid, u32 fd, char *text, size_t size);
s32 pidfd_pid(int fd);		/* the process of a pidfd; 0: it has ended, or this is not a pidfd */

/* ---- signals (sigcall.c) ---- */

/*
 * Around a call of the node that has a signal mask of its own (ppoll, pselect6, epoll_pwait): begin installs *set,
 * end restores the old mask. ret is the call's result. A signal that only the temporary mask lets in runs its
 * handler if it has ended the call.
 */
void gate_sigmask_begin(u64 set);
void gate_sigmask_end(long ret);

/* The same if the host installs the mask itself: only announces it (`user' may be 0). */
void gate_hostmask_begin(u64 user);
void gate_hostmask_end(long ret);
long gate_host_masked(const struct gate_regs *r, u64 user);	/* a host call between these two */

/* ---- program (exe.c) ---- */

/* The path of the running program's file, absolute, as /proc/self/exe shows it. */
const char *gate_exe_file(char *buf, size_t size);
const char *gate_exe_path(void);
/* Is path (in gate memory) another name of /proc/self/exe? */
bool gate_path_is_self_exe(const char *path);

/*
 * patch.c: rewritten calls use a table and slots at addresses that the program believes to be free. Sets [*start,
 * *end) to the first of these ranges within it; false if there is none.
 */
bool patch_within(u64 *start, u64 *end);

/* ---- memory and strings (heap.c, string.c, copy.S) ---- */

void *gate_alloc(size_t size);			/* zeroed; NULL: no memory */
void gate_free(void *p);
void *gate_pages(size_t size);			/* whole pages, zeroed */
void *gate_pages_shared(size_t size);	/* children of a fork share them */
void gate_pages_free(void *p, size_t size);

void *memcpy(void *d, const void *s, size_t n);
void *memmove(void *d, const void *s, size_t n);
void *memset(void *d, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t n);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
/* Parses a decimal or 0x number in s; end points to the character after it. */
u64 gate_strtou(const char *s, int base, const char **end);

/* own.c */
enum own_file {
	OWN_MAPS,
	OWN_STATUS,
	OWN_MEMORY = 20,	/* not a file of /proc: see memory.c */
	OWN_MACHINE = 64,	/* the first of those that no process has */
};
/* tid: a thread, 0: the process; pid: another process of the sandbox, 0: this one */
long own_ask(u32 file, s32 tid, s32 pid);
long own_interrupted(u64 nr);		/* what a call of the program's comes to that the host ended with EINTR */
bool own_is_unsure(long ret);
bool own_confined(void);
long own_given(const char *path, long ret);
long own_open(enum own_file file);		/* a descriptor, or an error */
long own_opened(u64 user_path, u64 flags, long ret);
/* memory.c */
bool is_memory(const char *path);		/* in /dev/shm */
/* Writes the path's name below the sandbox's own folder to buf. False: there is no such folder. */
bool memory_name(const char *path, char *buf, size_t size);
/* stage.c: the name of a unix socket as its program has given it; bytes of sun_path, before and after */
u32 stage_name(char *path, u32 len);
struct own_maps {			/* iterates over the mappings of this process */
	long fd;
	u32 len, taken;
	char text[4096];
};
bool own_maps_open(struct own_maps *m);
/* The next mapping: returns the rest of its line. NULL: there is no more, and the file is closed. */
const char *own_maps_next(struct own_maps *m, u64 *start, u64 *end);
/* snprintf with %s %c %d %u %x %lx %ld %lu %p %%; returns the length. */
int gate_format(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int gate_vformat(char *buf, size_t size, const char *fmt, va_list ap);

/* User memory: 0 or -EFAULT. The string form returns a length, -EFAULT or -ENAMETOOLONG. */
long gate_copy_in(void *dst, const void *user, size_t n);
long gate_copy_out(void *user, const void *src, size_t n);
long gate_strncpy_in(char *dst, const void *user, size_t size);

bool sim_on(void);		/* sim.c: time is virtual */
bool sim_cpu_hidden(void);	/* sim_cpu.c: ... and the processor is, too */

/* ---- mutex (mutex.c) ---- */

struct gate_mutex {
	u32 word;		/* 0 free, 1 owned, 2 owned and awaited */
};

void gate_lock(struct gate_mutex *m);
bool gate_trylock(struct gate_mutex *m);
void gate_unlock(struct gate_mutex *m);

/* ---- messages (log.c) ---- */

extern bool gate_debug;		/* RING3_GATE_DEBUG is set */
/* "ring3: ..." on stderr, then exit_group(code). For start-up only. */
void gate_die(int code, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/* "ring3: ..." on stderr. */
void gate_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define gate_log(...)					\
	do {						\
		if (unlikely(gate_debug))		\
			gate_warn(__VA_ARGS__);		\
	} while (0)

#endif /* GATE_H */
