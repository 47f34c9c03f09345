/* SPDX-License-Identifier: GPL-2.0 */
/* What the port's own files and drivers share. */
#ifndef _ASM_RING3_RING3_H
#define _ASM_RING3_RING3_H

#include <linux/types.h>
#include <ring3/ring3.h>

struct task_struct;

extern struct ring3_region ring3_region;
extern struct task_struct *ring3_current;

#define ring3_vcpu	(&ring3_region.vcpu[0])
#define ring3_driver	((struct ring3_thread *)READ_ONCE(ring3_vcpu->driver))

/*
 * image_private[] of a thread block. `call` says where the thread's call is:
 *
 *	NONE	the thread is outside the image, or on the fast path
 *	WANT	it has entered the slow way; nobody has begun its call
 *	RUN	its task runs the call, on whatever thread drives
 *	DONE	the result is in tb->ret; the thread leaves at the next park
 *
 * A task-less driver (DRIVE, KEEP) is DONE from the start.
 */
#define R3T_BASE_SP	0	/* parked frame of the task: entry stack */
#define R3T_CALL	1
#define R3T_REQUEST	2	/* bits: what the thread wants from the kernel */
#define R3T_FLAGS	3
#define R3T_LINK	4	/* next in the list of all thread blocks */
#define R3T_EXIT_CODE	5
#define R3T_OUTSIDE	7	/* the task is parked at base_sp: the fast path may use it */
#define R3T_SLACK	8	/* the host's timer slack, ns, and in the upper half when it was asked for, ms */
#define R3T_OWES	9	/* it has wake-ups to send, or a hand-off to end, that nobody else knows of */
#define R3T_ROBUST	10	/* sim: what set_robust_list() said */
#define R3T_BURST	10	/* not sim, two words: calls that are left of the burst after its last sleep (vcpu/wait.c), */
				/* and the host's CPU that it was last seen on, as ring3_host_cpu(). A hint */
#define R3T_SINCE	11	/* sim: virtual time of its last turn */
#define R3T_COPY	11	/* not sim: struct ring3_outside that it has to copy: vcpu/outside.c */
#define R3T_HOST_PID	6	/* to tell whether its tid is still in use */

enum ring3_call_state { R3_CALL_NONE, R3_CALL_WANT, R3_CALL_RUN, R3_CALL_DONE };

#define R3_REQ_CALL	1UL	/* wake my task: it has a call to run */
#define R3_REQ_SIGNAL	2UL	/* interrupt my task's waiting call */
#define R3_REQ_COPIED	4UL	/* wake my task: the copy that it waits for is made */

#define R3_F_KILL	1UL	/* the task has to exit */
#define R3_F_GONE	2UL	/* the task has exited; block is reusable when tid is gone */
#define R3_F_TURN	8UL	/* sim: it has had a turn, or has one coming */
#define R3_F_EXECED	64UL	/* with R3_F_KILL: its thread is gone, another thread has executed a program */
#define R3_F_FRESH	4UL	/* a joiner: must drop the keeper's descriptors first */
#define R3_F_LOOKS	32UL	/* sim: it has looked at something of the host's, and seen nothing new */
#define R3_F_TIMED	16UL	/* sim: a timer ends its wait, as of the last look of waits.c */

/* host.c: the only system calls of the host that the image makes. */
long ring3_host_syscall(long nr, long a0, long a1, long a2, long a3, long a4, long a5);
void ring3_host_futex_wake(u32 *word, int count);
long ring3_host_futex_wait(u32 *word, u32 value, long timeout_ns);
void ring3_poison(const char *fmt, ...) __printf(1, 2);

/* clock/: nanoseconds since the node was loaded. */
u64 ring3_clock(void);
u64 ring3_host_clock(int id);
void ring3_clock_sync(void);

/* irq.c */
void ring3_irq_register(unsigned int port, void (*handler)(void *), void *arg);
void ring3_irq_unregister(unsigned int port);
void ring3_irq_raise(unsigned int port);
int ring3_poll_add(unsigned int port, const u32 *head, const u32 *tail,
		   u32 *armed, u32 *doorbell);
void ring3_poll_del(unsigned int port);
u32 ring3_poll_ready(void);
u32 ring3_poll_arm(void);
void ring3_poll_disarm(void);
u32 ring3_poll_check(void);
int ring3_poll_doorbells(u32 **words, u32 *values, int max);
void ring3_timer_irq(void);

/* process.c: coming and going. */
enum ring3_park { R3_PARK_OUTSIDE, R3_PARK_POLL, R3_PARK_SLEEP, R3_PARK_HANDOVER, R3_PARK_YIELD, R3_PARK_COPY };
void ring3_park(unsigned long mode, struct ring3_thread *to);
bool ring3_user_reach(void);
void ring3_service(void);
long ring3_dispatch(struct ring3_thread *tb);
int ring3_task_main(void *arg);
bool ring3_proc_dead(struct ring3_proc *proc);

/* task.c */
long ring3_sys_spawn(int host_pid);
long ring3_sys_clone(unsigned long flags, int host_pid);
long ring3_sys_pipe(int first, int second, int flags);
long ring3_sys_exit(int code, u32 __user *clear, u32 *left);
long ring3_sys_exit_group(int code);
long ring3_sys_exec(void);
long ring3_unshare(unsigned long flags);
long ring3_sys_reap(struct ring3_proc *proc);
long ring3_sys_fd_move(int from, int to, int cloexec);
long ring3_sys_at(int at, long nr, long a0, long a1, long a2, long a3);
void ring3_task_exited(struct ring3_thread *tb);
long ring3_sys_log_read(char __user *buf, size_t len, u64 __user *seq);
long ring3_sys_mmap(int fd, size_t len, unsigned long offset);
long ring3_sys_mmap_page(u32 id, unsigned long index);
long ring3_sys_munmap(u32 id);
long ring3_keep(struct ring3_thread *tb);

/* proxy.c */
long ring3_sys_proxy(int fd);
long ring3_sys_proxy_set(int fd, u32 mask);
long ring3_sys_proxy_clear(int fd);

/* host fd of fd-backed port `index` in the process that drives now, or -1. */
int ring3_port_fd(unsigned int index);

/* drivers/net/ring3 */
long ring3_port_add(const struct ring3_port_config *cfg);
long ring3_port_del(u32 index);

#endif
