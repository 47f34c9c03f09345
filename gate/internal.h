/* SPDX-License-Identifier: GPL-2.0 */
/*
 * internal.h - shared by the files of the mechanism; not for the policy
 */
#ifndef GATE_INTERNAL_H
#define GATE_INTERNAL_H

#include "gate.h"
#include <linux/elf.h>

/* The FP state of a signal frame (asm/sigcontext.h): where its extended part is marked, and how long the whole is. */
#define FP_LEGACY_BYTES	512
#define FP_SW_MAGIC	464
#define FP_SW_SIZE	468

static inline u32 fp_bytes(const char *fp)
{
	return *(const u32 *)(fp + FP_SW_MAGIC) == FP_XSTATE_MAGIC1 ? *(const u32 *)(fp + FP_SW_SIZE) : FP_LEGACY_BYTES;
}

#define SIGNALS		64
#define SIGBIT(n)	(1UL << ((n) - 1))

/*
 * Signals that must reach the gate at any time. SIGSYS is the backstop; SIGSEGV and SIGBUS are faults in copies,
 * and SIGBUS is the mark of stop.c, too. If a signal raised by an instruction is blocked, the host kills the
 * process at once, while other threads may be in kernel code. SIGSTKFLT is used by limits.c. The host never blocks
 * these signals; gate_tcb.forced_mask records which of them the program has blocked.
 */
#define SIG_CPU		(SIGBIT(SIGILL) | SIGBIT(SIGFPE) | SIGBIT(SIGTRAP))
#define SIG_FORCED	(SIGBIT(SIGSYS) | SIGBIT(SIGSEGV) | SIGBIT(SIGBUS) | SIGBIT(SIGSTKFLT) | SIG_CPU)
#define ALL_BLOCKED	(~SIG_FORCED)	/* all signals that the gate lets the host block */

/* struct sigaction as the kernel has it. */
struct host_sigaction {
	u64 handler;
	u64 flags;
	u64 restorer;
	u64 mask;
};

struct gate_filter;		/* seccomp.c */
u64 gate_clock_ns(s32 clock);	/* sleep.c: a clock of the host */
long gate_timer(s32 clock, s32 signo, u64 value);	/* makes a timer of the host that sends this signal; its id, or an error */
long gate_timer_set(s32 id, bool absolute, u64 ns, u64 again_ns);	/* ns 0: never */

struct gate_sighand {
	struct gate_mutex lock;
	u32 shared;		/* shared by several processes (CLONE_SIGHAND without CLONE_THREAD): see host_action() */
	struct host_sigaction action[SIGNALS + 1];	/* as the program set them */
};

#define FORCED_MAX	7
#define PENDING_MAX	9	/* the forced signals, one other, and SIGKILL */

/* The gate's state of a thread, beside struct ring3_thread. Only the thread itself touches it. */
struct gate_tcb {
	u32 busy;		/* 0: the thread has ended, the area may be reused */
	u32 npending;		/* signals noted inside the gate, to be delivered on exit */
	siginfo_t pending[PENDING_MAX];
	u64 saved_mask;		/* host mask to restore after their delivery; ALL_BLOCKED: that of the program's context */
	u64 forced_mask;	/* SIG_FORCED bits that the program believes blocked */
	u64 forced_pending;	/* ... and that were sent meanwhile */
	siginfo_t forced_info[FORCED_MAX];	/* ... and their siginfo, see forced_index() */
	u64 temp_orig;		/* gate_sigmask_begin: the mask before */
	u64 temp_set;		/* ... and the temporary mask */
	u32 temp_active;
	u32 temp_host;		/* gate_hostmask_begin: the host swaps the masks */
	u32 temp_noted;		/* the first signal was noted under the temporary mask: its handler starts with temp_set */
	u32 stop;		/* stop.c: has to park on the way out */
	u32 parked;		/* stop.c: is parked */
	u32 stop_again;		/* a stop signal (SIGTSTP and its like) that is pending on the host again; see sigstop_raise() */
	u32 restart_node;	/* restart_syscall goes to the node */
	struct gate_restart restart;	/* ... or to this */
	stack_t alt;		/* the program's sigaltstack */
	struct ucontext *uctx;	/* context of the call that the SIGSYS handler runs, for trace.c */
	u64 own_gs;		/* the GS base that the program has asked for; 0: none, and the gate's stays there. own_gs.c */
	struct gate_sighand *sighand;
	struct gate_filter *filters;	/* seccomp, newest first */
	u32 strict;		/* SECCOMP_MODE_STRICT */
	u32 borrowed;		/* a vfork child that uses its parent's memory */
	u32 traceme;		/* ... and that asked to be traced, from its exec on */
	u32 lent;		/* a vfork child: its parent frees this area */
	u32 tid;		/* the host's tid; 0: has not begun */
	u64 clear_tid;		/* in virtual time: the address of set_tid_address(), or 0 */
	u64 child_set_tid;	/* ... CLONE_CHILD_SETTID and _CLEARTID of the thread that this one creates, or of this one as it begins */
	u64 child_clear_tid;
	u64 robust_list;	/* ... the address of set_robust_list() */
	u32 node_uid, node_gid;	/* ... its ids for files on the node: sim_ids.c. A vfork child has its own, and its own two words below */
	bool one_id;		/* ... the host has one id for all of the simulation */
	bool own_users;		/* ... the process is in a user namespace within the simulation */
	u64 clone_number;	/* ... the address of the tid for the thread that this one creates, if the gate chooses it */
	u64 process;		/* number of the process among those that have used this memory; a new thread has its creator's */
	void *scratch;		/* a vfork child: the environment for execve */
	size_t scratch_size;
	char *altstack;		/* the gate's own, of ALTSTACK_BYTES */
	char *stack_top;	/* gate stack */
	struct ring3_thread *thread;
};

/*
 * The lower part of the alternate stack is used while the SIGSYS handler runs a call. The image's stacks are not
 * the alternate stack, so the host would deliver a fault in the image at the top of it, over the handler's own
 * frame. SS_AUTODISARM lets the handler name another.
 */
#define ALTSTACK_CALL_BYTES	(32UL << 10)
#ifndef SS_AUTODISARM
#define SS_AUTODISARM	(1U << 31)
#endif

static inline stack_t tcb_altstack(const struct gate_tcb *tcb)
{
	return (stack_t){
		.ss_sp = tcb->altstack + ALTSTACK_CALL_BYTES,
		.ss_flags = (int)SS_AUTODISARM,
		.ss_size = ALTSTACK_BYTES - ALTSTACK_CALL_BYTES,
	};
}

static inline stack_t tcb_call_altstack(const struct gate_tcb *tcb)
{
	return (stack_t){
		.ss_sp = tcb->altstack,
		.ss_flags = (int)SS_AUTODISARM,
		.ss_size = ALTSTACK_CALL_BYTES,
	};
}

struct exit_action {
	long ret;
	long action;
};
enum { EXIT_NORMAL = 0, EXIT_DELIVER = 1, EXIT_REDO = 2 };

static inline struct gate_tcb *gate_tcb(void)
{
	struct gate_tcb *t;

	asm volatile("movq %%gs:%c1, %0" : "=r"(t) : "i"(GATE_WORD(WORD_TCB)));
	return t;
}

/* Everything global. */
struct gate_state {
	struct ring3_region *region;	/* NULL in the node-less test build */
	u64 text_start, text_end;	/* addresses of the image's text */
	u64 enter;
	u64 (*fixup)(u64 rip);
	bool sim;			/* time is virtual: sim.c */
	bool yama;			/* the host asks for whom a program lets itself be traced by */
	void (*nap)(u64 *ns);		/* in virtual time sim_nap(), else NULL */
	u64 links;			/* ports whose memory is mapped, one bit each */
	u32 threads;			/* live threads in this address space */
	u64 processes;			/* processes that have ever used it; 1: only this one */
	const char *asked;		/* the path by which the program was started */
	bool exe_known;			/* gate_exe is filled in */
	u64 exe_dev, exe_ino;		/* the file at GATE_FD_PROGRAM, as long as that is this process's */
	u64 counts[8];			/* enum gate_count */
};
extern struct gate_state gate;
void gate_exe_note(int fd);
extern char gate_exe[PROC_EXE_BYTES];		/* path of the running program; see gate_exe_path() */

enum gate_count {
	COUNT_TRAPS,		/* SIGSYS */
	COUNT_SITES,		/* rewritten */
	COUNT_HLT,		/* traps in rewritten sites and on the way out */
	COUNT_SIGNALS,		/* delivered to handlers of the program */
	COUNT_REFUSED,		/* sites that can't be rewritten */
};

static inline void count(enum gate_count c)
{
	__atomic_fetch_add(&gate.counts[c], 1, __ATOMIC_RELAXED);
}

/* context.S, copy.S, entry.S, host.S, start.S, gate.lds */
extern const char gate_exit_check[], gate_exit_end[], gate_trap_deliver[], gate_trap_redo[];
extern const char gate_host_check[], gate_host_insn[], gate_host_abort[];
extern const char gate_copy_start[], gate_copy_end[], gate_copy_fault[];
extern const char patch_stubs[], patch_stubs_end[], own_gs_stubs[], own_gs_stubs_end[];
extern char gate_first_altstack[], gate_first_stack_top[REGS_ABOVE];
extern const char gate_text_start[], gate_text_end[];
extern struct gate_mutex gate_heap_lock, gate_patch_lock, gate_areas_lock, gate_filter_lock,
	gate_limits_lock, gate_raised_lock;
long gate_copy_raw(void *dst, const void *src, size_t n);
long gate_strncpy_raw(char *dst, const void *src, size_t size);
long gate_enter_raw(long nr, long a, long b, long c, long d, long e, long f,
		    struct ring3_thread *t);
void gate_restorer(void);
void gate_resume(struct ucontext *uc) __attribute__((noreturn));
void gate_jump(u64 entry, u64 sp) __attribute__((noreturn));
extern u8 gate_debugged;	/* set by a debugger: trap before the program starts */
extern const char gate_resume_check[], gate_resume_insn[];
extern const char gate_clone_check[], gate_clone_insn[], gate_clone_abort[], gate_clone_born[], gate_clone_known[];
long gate_clone_raw(long nr, long a, long b, long c, long d, long e, void *child, struct ring3_thread *t);
void gate_exit_raw(int code, u32 *busy) __attribute__((noreturn));

/*
 * loader.c. One read of `head' has all that is needed of most files; `more' is for the others. Kept small: a
 * program that starts others pays for each page of stack.
 */
#define HEAD_BYTES	1024
struct image_file {
	const char *interp;		/* or NULL */
	const Elf64_Phdr *ph;
	char *more;			/* NULL, or memory of the loader */
	long have;			/* bytes read into head */
	Elf64_Ehdr eh;
	char head[HEAD_BYTES] __attribute__((aligned(8)));
};

/* The only executable segment of the file whose code runs first: the interpreter, or a program without one. */
struct program_text {
	u64 key;		/* identifies the file and its version; 0: there is no such segment */
	u64 start, end;
	bool open;		/* writable, until patch_start() has run */
};

/* start.c: the program to start. loader.c fills it in */
struct program {
	int fd;			/* the file that is mapped: the program, or a script's interpreter */
	const char *path;	/* ... its path */
	const char *execfn;	/* AT_EXECFN: the path that was asked for */
	char **argv;
	int argc;
	u64 entry;		/* address of the first instruction: the ELF interpreter's or the program's */
	u64 phdr, phnum, exec_entry, interp_base;
	u64 start_code, end_code, start_data, end_data, brk;
	bool exec_stack;
	u64 sp;
	struct program_text first;	/* the text that runs first */
	bool has_interp;		/* ... is an interpreter */
	struct image_file file;		/* what was read of the file */
};

/* loader.c */
/*
 * Checks the file that execve(path) would run; -errno, with a reason in why[] if ring3 refuses it. `closes': the
 * path leads through a descriptor that the exec closes.
 */
#define WHY_BYTES	160
long program_probe(int fd, const char *path, bool closes, char why[WHY_BYTES]);
/* Follows #! lines and reads the head of the file to map; may change argv. */
long program_resolve(struct program *p, bool probed, char why[WHY_BYTES]);
void program_map(struct program *p);
/* stack.c: builds argv, envp and the auxiliary vector on the host's stack at sp. */
void program_stack(struct program *p, char **envp, u64 *auxv, u64 sp);

/* join.c */
/* Joins the node at `path` or dies; returns the thread block. */
struct ring3_thread *node_join(const char *path, u64 magic);
void gate_adopt(const char *path, const char *how) __attribute__((noreturn));
/* Continues with the thread block and descriptors that the gate before exec has left. */
struct ring3_thread *node_inherit(u64 thread, u64 links);
void node_let_trace(void);

/* own_gs.c */
extern u8 own_gs_possible;	/* the processor has FSGSBASE */
extern u8 gate_own_gs;		/* a thread of this process has had a GS base of its own */
void own_gs_taken(void);
u64 own_gs_of(struct ucontext *uc, u64 check, u64 insn);	/* called by gate_resume() */
long own_gs_set(u64 base);
static inline void own_gs_enter(void)
{
	if (unlikely(READ_ONCE(gate_own_gs)))
		own_gs_taken();
}

/* area.c */
struct gate_tcb *tcb_new(struct ring3_thread *t, u64 process);
struct gate_tcb *tcb_first(struct ring3_thread *t);
void tcb_free(struct gate_tcb *tcb);
struct gate_tcb *thread_area(u32 i);		/* NULL after the last */
void areas_forget(struct gate_tcb *own);
void vfork_done(struct ring3_thread *t);	/* its parent need not wait for it in CLONE_VFORK any more */

/* image.c */
long image_call_as(struct ring3_thread *t, long nr, long a);

/* thread.c */
void thread_adopt(struct ring3_thread *t, struct gate_tcb *tcb, stack_t alt);
void gate_child_start(void *child) __attribute__((noreturn));
struct ring3_thread *null_thread_new(void);	/* node-less test build */

void counts_print(void);

/* stat.c */
void stat_flush(void);

/* Counts a call that came in by way RING3_STAT_ENTERED or _TRAPPED. */
static inline void stat_call(u32 way)
{
	if (unlikely(++gate_thread()->gate[WORD_COUNTS + way] >= RING3_STAT_BATCH))
		stat_flush();
}

/* fds.c */
void fds_start(u32 inherited_base);
void fds_started(void);

/* prctl.c */
void thread_named(const char *name);

/* end.c */
void end_look(void);

/* stop.c */
extern u32 gate_stopper;			/* tid of the thread that stops the others, see stop.c */
void stop_others(void);				/* see stop.c */
bool stop_others_for_now(void);
void stop_undo(void);
void stop_final(void);
bool stop_entering(struct ring3_thread *t);
bool stop_ending(void);
void stop_park(void);
bool stop_signal(const siginfo_t *info);
bool stop_is_mark(const siginfo_t *info);
void stop_forked(void);

/* state.c */
char process_state(s32 pid);	/* the state letter of /proc/PID/stat; 0: it has ended; '?': the host does not tell */

/* limits.c */
bool limits_is_death(const siginfo_t *info);	/* this signal stands for a SIGKILL */
bool limits_is_mark(const siginfo_t *info);	/* this signal was for the gate only */
long limits_pdeath(const struct gate_regs *r);	/* PR_SET_PDEATHSIG PR_GET_PDEATHSIG */
struct limits_room {
	u64 as, data;		/* bytes by which the host's limits were raised */
};
void limits_room(u64 size, u64 text, u32 windows, struct limits_room *room);
void limits_joined(struct ring3_proc *proc, const struct limits_room *room);
bool limits_grow(u64 size);	/* the gate needs `size' more bytes than the host's limit allows */
void limits_fork(struct ring3_proc *child);
void limits_forked(void);
void limits_start(bool fresh);

/* seccomp.c */
enum seccomp_does {
	SECCOMP_DOES_CALL,	/* the call goes on */
	SECCOMP_DOES_RETURN,	/* returns *ret without making the call */
	SECCOMP_DOES_TRAP,	/* sends *info to the program's handler without making the call */
};
enum seccomp_does seccomp_judge(struct gate_regs *r, u64 ip, long *ret, siginfo_t *info);
static inline bool seccomp_active(const struct gate_tcb *tcb)
{
	return READ_ONCE(tcb->filters) || tcb->strict;
}
long seccomp_prctl(struct gate_regs *r);	/* PR_SET_SECCOMP */
long seccomp_mode(struct gate_regs *r);		/* PR_GET_SECCOMP */
void seccomp_inherit(struct gate_tcb *child, const struct gate_tcb *parent);
long seccomp_save(void);			/* before exec: 1 if there are filters to restore */
void seccomp_restore(void);

static inline bool is_restart(long ret)
{
	return ret == -ERESTARTSYS || ret == -ERESTARTNOINTR || ret == -ERESTARTNOHAND ||
	       ret == -ERESTART_RESTARTBLOCK;
}

/* sud.c */
void sud_arm(void);
void sud_call(struct ucontext *uc);	/* handles the call at whose end uc is */
void sud_wait(struct ucontext *uc, u64 ns);	/* between two instructions of the program */

/* call.c */
struct exit_action gate_exit_work(struct gate_regs *r, long ret);
struct exit_action gate_call(struct gate_regs *r);

/* disposition.c */
void signal_start(void);
void signal_install(struct gate_sighand *sh);	/* sets all host dispositions from sh */
void signal_share(struct gate_sighand *sh);	/* another process is about to share our handlers */
void signal_exec(bool begins);			/* false: the exec has failed */

/* noted.c */
bool signal_pending(struct gate_tcb *tcb);	/* is a signal to be delivered? */
bool signal_wants_restart(struct gate_tcb *tcb, long ret);
u64 signal_block_all(void);			/* returns the mask before */
void signal_set_mask(u64 mask);
void signal_drain_node(void);			/* passes thread->sigq to the host */

/* sigframe.c: delivers pending signals to a context of the program */
void signal_deliver(struct ucontext *uc);

/* signal.c */
/* gate_resume() is about to resume uc: true if it has to check again. */
bool signal_late(struct ucontext *uc);
/* The context was the program's when the first signal was noted in the gate: restores the mask of that time. */
static inline void signal_mask_back(const struct gate_tcb *tcb, struct ucontext *uc)
{
	if (tcb->npending && tcb->saved_mask != ALL_BLOCKED)
		uc->uc_sigmask = tcb->saved_mask;
}

/* oops.c */
void oops_trace(const struct ucontext *uc);	/* prints where the node's kernel was */

/* sim.c: virtual time */
struct clone_args;
void sim_start(void);
void sim_exec_number(const struct ring3_thread *t);
void sim_exec_alone(void);
void sim_exec_begins(void);
void sim_begin(struct ring3_thread *t, s32 tid);
void sim_turn(void);
void sim_vfork_wait(struct ring3_thread *t, s32 tid, u64 own);
void sim_killed(void) __attribute__((noreturn));
void sim_nap(u64 *ns);
void sim_jitter(void);
bool sim_trap(struct ucontext *uc);
u64 sim_day(void);
bool sim_is_preempted(const siginfo_t *info, u64 *value);
u64 sim_clone(struct gate_tcb *tcb, u64 flags, u64 child_tid);
void sim_clone_number(struct clone_args *args, size_t *size, const struct ring3_thread *t, s32 *number);
bool sim_clone_again(struct clone_args *args, long error);
void sim_exit_task(int code);
void sim_exit(void);

void sim_wait(u64 *ns, u64 most);
void sim_changed(void);

/* sim_ids.c: users and groups in virtual time */
void sim_ids_start(u64 *auxv, bool after);
/* The process is in a user namespace that a program of the simulation has made: the host's rules apply, and its answers. */
static inline void sim_ids_nested(struct gate_tcb *tcb)
{
	tcb->own_users = true;
	tcb->one_id = false;
}

/* sim_cpu.c: the processor in virtual time */
void sim_cpu_start(void);
void sim_cpuid(u32 leaf, u32 subleaf, u32 regs[4]);
bool sim_cpu_fault(struct sigcontext *sc, const u8 insn[2]);
bool sim_cpu_aux(u64 kind, u64 *value);	/* false: no such entry */


/* tsc.c */
bool tsc_read(struct sigcontext *sc);
bool tsc_virtual(struct sigcontext *sc);
void tsc_start(void);

/* cpuid.c */
bool cpuid_knows(u64 key);			/* will cpuid_start() write to this file's text? */
void cpuid_start(const struct program_text *text);
void cpuid_stop(void);
bool cpuid_at(u64 site, struct sigcontext *sc);	/* emulates the instruction in the middle of a site */
void cpuid_leave(struct sigcontext *sc);	/* in a stub of cpuid.S: moves to the program's context */

/* patch.c, patch_interp.c, patch_context.c */
bool patch_knows(u64 interp_key);		/* does patch_start() know sites of this file? */
void patch_start(const struct program *p);
void patch_trap(u64 rip, u64 nr);		/* a site has trapped: it may be rewritten */
enum patch_fault { PATCH_NONE, PATCH_RETRY, PATCH_CALL };
enum patch_fault patch_fault(struct ucontext *uc);
void patch_leave(struct ucontext *uc);	/* in a stub or slot: moves to the program's context */
void patch_hide_eintr(struct sigcontext *sc);
void patch_look_closer(void);			/* from now on all stubs call the gate */
void patch_own_gs(void);			/* from now on all stubs look at GS */
bool patch_trapped(struct sigcontext *sc);
u64 patch_stub_site(u64 stub);			/* address at which to repeat the call */
u64 patch_stub_return(u64 stub);		/* ... and to which it returns */
/* The same for another process: the address of the word to read there, and the number to add. */
const u64 *patch_stub_return_word(u64 stub, u32 *add);
bool patch_cpuid(u64 addr, u64 stub);		/* sites of cpuid.c: jump to its stub */
void patch_cpuid_undo(u64 addr, const u8 *code);
void patch_threads(void);			/* the address space has got a second thread */

/* patch_fork.c */
void patch_forks(void);				/* this thread is about to fork */
void patch_forked(struct ring3_thread *parent);	/* this process is a child with memory of its own */

#endif /* GATE_INTERNAL_H */
