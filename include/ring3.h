/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3.h - the contract between image, gate and keeper
 *
 * These headers, ring3*.h, are the one description of the contract. ring3/abi/build.rs makes the Rust mirror of
 * them, and asm-offsets.c what assembly needs; nothing is written down twice. They depend on <stdint.h> types only, so
 * that the kernel, freestanding code and ordinary C can include them.
 *
 * Each word says who writes it (W) and who reads it (R), and when, where that is not at any time. The
 * types r3_a32, r3_as32 and r3_a64 mark words that several threads write at once: by atomic instructions only.
 *
 * Theory of operation
 * -------------------
 * A node is one region: a memfd, mapped MAP_SHARED at the same address in
 * every process of the node. Its first page starts with struct ring3_region.
 * A host thread that takes part in the node owns one struct ring3_thread
 * ("thread block"); its GS base points at it, and `%gs:0` is its address.
 *
 * A host thread gets into the image only through `enter` (see below). `enter`
 * takes the vCPU, runs the call on the task's kernel stack and returns. When
 * the call has to wait, the thread runs whatever the kernel schedules next,
 * then polls, then sleeps on its `word`. All of that happens inside `enter`.
 *
 * The enter convention (an assembly routine at base + region->enter):
 *   in:  rax = call number (x86-64 Linux number or RING3_NR_*)
 *        rdi rsi rdx rcx r8 r9 = arguments (the 4th in rcx, as C has it)
 *        r10 = the calling thread's thread block
 *   out: rax = result, as the Linux syscall ABI has it (-errno on failure),
 *        or one of -512/-513/-514/-516 (ERESTARTSYS, ERESTARTNOINTR,
 *        ERESTARTNOHAND, ERESTART_RESTARTBLOCK): the call was interrupted
 *        because thread->sigpending was set. The gate then runs handlers and
 *        decides, as kernel/signal.c and arch/x86/kernel/signal.c would.
 *   clobbers rcx rdx rsi rdi r8 r9 r10 r11 and flags; preserves rbx rbp
 *   r12-r15 and all vector state (the image has no vector instruction).
 *   Needs 4 KiB of stack. Never unwinds, never longjmps.
 */
#ifndef RING3_H
#define RING3_H

#ifdef __KERNEL__
#include <linux/types.h>
typedef u8 r3_u8;
typedef u16 r3_u16;
typedef u32 r3_u32;
typedef s32 r3_s32;
typedef u64 r3_u64;
typedef s64 r3_s64;
typedef u32 r3_a32;
typedef s32 r3_as32;
typedef u64 r3_a64;
#else
#include <stdint.h>
typedef uint8_t r3_u8;
typedef uint16_t r3_u16;
typedef uint32_t r3_u32;
typedef int32_t r3_s32;
typedef uint64_t r3_u64;
typedef int64_t r3_s64;
typedef uint32_t r3_a32;
typedef int32_t r3_as32;
typedef uint64_t r3_a64;
#endif

#include "ring3_cpuid.h"
#include "ring3_sites.h"
#include "ring3_stat.h"

#define RING3_MAGIC		0x3367006e69676572ULL	/* "region" "g3" */
#define RING3_ABI		8u

#include "ring3_space.h"

/* Offsets inside a slot. */
#define RING3_REGION_MAX	0x080000000ULL	/* region: [0, mem) */
#define RING3_ALIAS_OFFSET	0x080000000ULL	/* writable alias of the text */
#define RING3_LINK_OFFSET	0x0c0000000ULL	/* windows of `link` ports */
#define RING3_LINK_STRIDE	0x001000000ULL	/* 16 MiB each */
#define RING3_PORTS_MAX		16

/* region->state */
enum ring3_state {
	RING3_LOADED = 0,	/* the keeper has copied the image in */
	RING3_BOOTING = 1,	/* start_kernel runs */
	RING3_UP = 2,		/* pid 1 serves; processes may join */
	RING3_POISONED = 3,	/* someone died inside kernel code, or panic */
	RING3_DOWN = 4,		/* taken down on purpose */
};

/* region->pending: interrupts. Set with an atomic OR by anyone, then kicked. */
#define RING3_IRQ_TIMER		(1u << 0)
#define RING3_IRQ_WORK		(1u << 1)	/* generic: come and look */
/*
 * A thread waits for the vCPU. The owner lets go at the next switch, and as it goes home it wakes the
 * one that sleeps, or lets the one that is awake go first.
 */
#define RING3_IRQ_SLEEPER	(1u << 4)	/* on the owner word, or is about to sleep there */
#define RING3_IRQ_WAITER	(1u << 5)	/* awake; a hint */
#define RING3_IRQ_PORT(n)	(1u << (8 + (n)))	/* port n has input or room */

/* thread->word: what a waiting thread is waiting for. Bits, atomic. */
#define RING3_WORD_DONE		(1u << 0)	/* thread->ret is the result */
#define RING3_WORD_BATON	(1u << 1)	/* the vCPU was handed to you */
#define RING3_WORD_SIGNAL	(1u << 2)	/* a host signal came: gate's handler sets it */
#define RING3_WORD_OFFERED	(1u << 3)	/* the vCPU is being handed to you: BATON will follow */

/* region->vcpu.owner: 0 free, else host tid | flags. */
#define RING3_OWNER_WAITERS	0x80000000u	/* a thread sleeps on the word, or is about to: who releases wakes one */
#define RING3_OWNER_POLLING	0x40000000u	/* holder only polls: may be taken over */
#define RING3_OWNER_OWES	0x20000000u	/* holder has put off wake-ups: no release by the fast path */
#define RING3_OWNER_TID		0x1fffffffu	/* Linux's go up to 0x3fffff */

/*
 * Calls that only ring3 has; same convention as a system call. Every other number is x86-64 Linux's own. All numbers
 * are here; ring3_park.h, ring3_cred.h, ring3_xfer.h and ring3_sim.h say what their calls do.
 */
#define RING3_NR_BASE		0x1000
/*
 * DRIVE(): run whatever is pending until idle. For threads without a task of their own: KEEP's inner turns, the keeper's
 * ring3-ports, a process's feeder. Returns 0 at once if another thread drives and nothing is left pending for it to
 * miss. ring3-ports (driver_thread[1]) rests first while others look at the ports, up to 0.8 ms: ring3_host_rest().
 */
#define RING3_NR_DRIVE		0x1000
/*
 * KEEP(vcpu): the keeper's loop for that vCPU: waits for its next timer deadline and its kicks, and on vCPU 0 for the
 * links' doorbells; drives. Returns when region->state is POISONED or DOWN.
 */
#define RING3_NR_KEEP		0x1001
/*
 * SPAWN(host_pid): for the keeper (init_thread): makes a task, child of pid 1,
 * in a thread group of its own, with an empty file table, for host process
 * host_pid. Returns the address of its thread block (proc filled in), or -errno.
 */
#define RING3_NR_SPAWN		0x1002
/*
 * CLONE(flags, host_pid): makes a task as the caller's child. flags is CLONE_* of <linux/sched.h>; of these
 * CLONE_FILES, CLONE_THREAD, CLONE_SIGHAND, CLONE_FS, CLONE_NEWNET, CLONE_NEWNS and CLONE_NEWUSER count, and CLONE_VM for
 * mappings of node descriptors. Without CLONE_THREAD a new ring3_proc is made (host_pid may be 0 and
 * filled in later by the child), without CLONE_FILES the file table and fdmap
 * are copied. Returns the address of the new thread block.
 */
#define RING3_NR_CLONE		0x1003
/*
 * EXIT(code, clear, left): ends the calling task; EXIT_GROUP(code): all tasks of its
 * process. Of EXIT's words see ring3_sim.h; elsewhere they are 0. Both return 0 to the caller, whose thread block is dead after
 * that: it must not enter again. The memory is reused once the tid is gone.
 */
#define RING3_NR_EXIT		0x1004
#define RING3_NR_EXIT_GROUP	0x1005
#define RING3_BY_SIGNAL		0x100	/* the code is the signal that the process dies by */
/*
 * EXEC(): what execve does to descriptors: unshares the file table from
 * other tasks, closes close-on-exec ones (and their fdmap bits). Other threads
 * of the process are made to exit.
 */
#define RING3_NR_EXEC		0x1006
/*
 * REAP(proc): for the keeper: the host process behind that ring3_proc is gone. Kills its tasks, and those of children
 * that the host never made, and frees the entry. -EBUSY: a task did not end within a second; ask again.
 */
#define RING3_NR_REAP		0x1007
/*
 * FD_MOVE(from, to, cloexec): moves a descriptor of the node's table to the number `to`, replacing what was there.
 * Returns `to`.
 */
#define RING3_NR_FD_MOVE	0x1008
/*
 * PROXY(fd): installs a proxy file at number fd (a host descriptor's number), so
 * that it can be in the node's epoll, poll and select sets. Readiness is fed by
 * PROXY_SET(fd, mask): mask = EPOLL* bits that are now ready, wakes waiters (each
 * call is an edge); PROXY_CLEAR(fd): forgets readiness without a wake-up.
 * PROXY of a number that holds a proxy already is 0, of a node's file -EBUSY.
 */
#define RING3_NR_PROXY		0x1009
#define RING3_NR_PROXY_SET	0x100a
#define RING3_NR_PROXY_CLEAR	0x100b
/*
 * PORT_ADD(struct ring3_port_config *): for the keeper: makes a network
 * interface. Returns its ifindex. PORT_DEL(index).
 */
#define RING3_NR_PORT_ADD	0x100c
#define RING3_NR_PORT_DEL	0x100d
/*
 * LOG_READ(buf, len, seq *): copies kernel log records from *seq on as text
 * lines ("<prio>[ssss.uuuuuu] text\n"), advances *seq; returns bytes.
 */
#define RING3_NR_LOG_READ	0x100e
/*
 * MMAP(fd, len, offset): the id of a new mapping of a node descriptor, whose memory does not go before the
 * mapping does (packet rings); -ENODEV where the file has none, -EINVAL where that is not its size.
 * MMAP_PAGE(id, index): the address of the region page that backs page `index` of it.
 * MUNMAP(id): no address of the process's has it any more. A child's mappings have the ids of its
 * parent's; EXEC and the end of the process unmap what is left.
 */
#define RING3_NR_MMAP		0x100f
#define RING3_NR_MMAP_PAGE	0x1011
#define RING3_NR_MUNMAP		0x1012
/*
 * AT(fd, nr, a0, a1, a2, a3): the call nr(a0..a3), but the descriptor that it makes gets the
 * number fd, which is free in the node's table (the gate has just reserved it in the host's).
 * The gate makes every node descriptor so: a number chosen by the node's own lowest-number rule
 * may be one that the host gives to another thread while this one still sleeps in accept().
 */
#define RING3_NR_AT		0x1010
/* ring3_park.h */
#define RING3_NR_PARK		0x1013
#define RING3_NR_UNPARK		0x1014
#define RING3_NR_GRAB		0x1015
/* ring3_cred.h */
#define RING3_NR_NEWUSER	0x1016
#define RING3_NR_IDS		0x1017
#define RING3_NR_NUMBER		0x1018
#define RING3_NR_FILE_CAPS	0x101a
/* ring3_xfer.h */
#define RING3_NR_SENDFILE	0x1019
/* ring3_adopt.h */
#define RING3_NR_ADOPTER	0x101b
#define RING3_NR_ADOPT		0x101c
/* ring3_sim.h */
#define RING3_NR_TURN		0x101d
#define RING3_NR_BEGIN		0x101e
#define RING3_NR_FUTEX_PAGE	0x101f
#define RING3_NR_PIPE		0x1020
#define RING3_NR_MAX		0x1021	/* numbers from here on are no calls */


#define RING3_FDS_MAX		65536	/* node descriptors lie below this number */

/*
 * Who owns which descriptor number of one file table. The gate reads and
 * writes it (atomically, one bit per call); the image copies it on CLONE without
 * CLONE_FILES and drops close-on-exec bits on EXEC.
 */
struct ring3_fdmap {
	r3_u64 node[RING3_FDS_MAX / 64];	/* 1: the node's, 0: the host's */
	r3_u64 proxy[RING3_FDS_MAX / 64];	/* 1: host's, and has a proxy file */
};

/* ring3_proc.state. FREE and LIVE: W image; DEAD: W the thread that calls REAP, before the call. */
#define RING3_PROC_FREE		0u
#define RING3_PROC_LIVE		1u
#define RING3_PROC_DEAD		2u	/* being reaped: its memory is gone, its threads run nothing */

/*
 * ring3_proc.end: when a node ends, its programs end too, by SIGTERM and, after the grace, SIGKILL. Whoever is first to
 * send a process the SIGTERM sets TERM; so it comes once.
 */
#define RING3_END_TERM		(1u << 0)	/* SIGTERM was sent */
#define RING3_END_SAID		(1u << 1)	/* the gate has said why, and sees to the SIGKILL */

/* One host process of the node. Made by SPAWN/CLONE, lies in region->procs[]. R: all. */
struct ring3_proc {
	r3_a32 state;		/* RING3_PROC_* */
	r3_as32 pid;		/* host pid. W: SPAWN, CLONE, or the host (CLONE_PARENT_SETTID) */
	r3_a32 threads;		/* live thread blocks. W: image, with the blocks' lock */
	r3_u32 creator;		/* W: CLONE. While pid is 0: who makes it, an index of procs[] and 1; or 0 */
	r3_as32 port_fd[RING3_PORTS_MAX];	/* host fds of fd-backed ports here, -1: none. W: the gate at join; CLONE */
	/* W, R: this process's gate; the gate of a process that sets another's limits. gate/limits.c */
	r3_u32 cpu_timer;	/* RLIMIT_CPU: number of the host's timer and 1; 0: there is none */
	r3_u32 pdeath_kill;	/* a DEATH_SIGNAL of the host's stands for SIGKILL */
	r3_u32 as_pages;	/* by so much the host's RLIMIT_AS is above the program's */
	r3_a32 end;		/* RING3_END_*. W: the keeper, its undertaker, the process's gate */
	r3_a64 started;		/* the process, by /proc/PID/stat; of an earlier one, or 0, until the keeper has looked. W: the keeper */
};

/* A signal the node raised for a thread (SIGPIPE, SIGIO, ...). */
#define RING3_SIG_PROCESS	0x100u	/* for the process, not for the thread */
struct ring3_siginfo {
	r3_s32 signo;		/* may have RING3_SIG_PROCESS */
	r3_s32 code;
	r3_s32 fd;		/* SIGIO with F_SETSIG */
	r3_s32 band;
};
#define RING3_SIGQ		8

/*
 * The thread block. One per host thread of the node, in region memory.
 * First line: hot, written by the owning thread. Second: written by others. Not said otherwise: R image and gate.
 */
struct ring3_thread {
	r3_u64 self;		/* address of this block; %gs:0. W: who makes it */
	r3_u64 host_sp;		/* the thread's own stack while inside. W, R: entry.S on this thread */
	r3_u64 region;		/* address of struct ring3_region. W: who makes it */
	r3_u64 task;		/* struct task_struct *, 0: a driver without task. W: image */
	r3_u32 tid;		/* host tid. W: the thread before its first enter; REAP */
	r3_u32 inside;		/* W: the gate: 1 before it calls enter, 0 after. R: its handlers, and who stops the process */
	r3_u32 sigpending;	/* interrupt the waiting call. W: the gate's handlers */
	r3_u32 nsig;		/* node -> gate: entries in sigq. W: image, while the thread is inside; the gate resets it to 0 */
	r3_u64 proc;		/* address of struct ring3_proc. W: who makes it */
	r3_u64 fdmap;		/* address of struct ring3_fdmap. W: image */

	r3_a32 word;		/* futex; RING3_WORD_*. W, R: all */
	r3_s64 ret;		/* result, valid with WORD_DONE. W: who finishes the call */
	r3_u64 nr;		/* slow entry: the call and its arguments. W: entry.S on this thread */
	r3_u64 args[6];
	r3_u64 image_private[10];	/* W, R: image: R3T_* of asm/ring3.h */

	struct ring3_siginfo sigq[RING3_SIGQ];	/* W: image; R: the gate on its way out */
	r3_u64 gate[64];	/* gate's own per-thread words; the image never looks */
};

/*
 * Right to run kernel code. vcpu[0] lies in the region's head; with several (ring3_smp.h) the others lie elsewhere
 * in the region. R: all.
 */
struct ring3_vcpu {
	r3_a32 owner;		/* RING3_OWNER_*. W: image, gate/kill.c, and the keeper for a dead holder */
	r3_a32 irq_enabled;	/* 1: interrupts enabled. W: the kernel code that runs. up only: smp has it on the stack */
	r3_u64 driver;		/* thread block of the holder. W: who gets the vCPU, or hands it over */
	r3_u64 deadline;	/* next timer event, ns on the node's monotonic clock; ~0: none. W: the holder */
	r3_u32 polled;		/* what the way out of a call has to do: R3_EXIT_*. W: the holder */
	r3_a32 pending;		/* RING3_IRQ_* for this vCPU. smp only: up has region->pending. W: all */
	r3_a32 kick;		/* futex word on which KEEP(n) sleeps, n > 0; vCPU 0 has region->kick. W: all */
	r3_a32 wakes;		/* counts wake-ups of threads that sleep on `owner'. W: who wakes one; R: who slept (region->late) */
	r3_u64 next;		/* address of the node's next vCPU, 0: none. W: boot */
	r3_u64 task;		/* smp: struct task_struct * that is current. W: __switch_to() */
	r3_u64 image;		/* smp: the image's struct ring3_cpu of this vCPU. W: boot */
};

/* What the keeper asks PORT_ADD for. */
enum ring3_port_kind {
	RING3_PORT_LINK = 1,	/* struct ring3_link at window */
	RING3_PORT_TAP = 2,	/* fd: tap with IFF_VNET_HDR, vnet_hdr_sz 12, O_NONBLOCK */
	RING3_PORT_PASST = 3,	/* fd: unix stream, be32 length + frame, O_NONBLOCK */
	RING3_PORT_PACKET = 4,	/* fd: AF_PACKET with PACKET_VNET_HDR, O_NONBLOCK */
	RING3_PORT_XDP = 5,	/* fd: AF_XDP, its rings at window (ring3_xdp.h) */
};
#define RING3_PORT_CSUM		(1u << 0)	/* far side takes partial checksums */
#define RING3_PORT_TSO		(1u << 1)	/* far side takes TCP segments of 64 KiB */
#define RING3_PORT_USO		(1u << 2)	/* ... and UDP ones */
struct ring3_port_config {
	r3_u32 index;		/* 0 .. RING3_PORTS_MAX-1: also proc->port_fd[index] */
	r3_u32 kind;		/* enum ring3_port_kind */
	r3_u32 flags;		/* RING3_PORT_* */
	r3_u32 mtu;		/* 0: the kind's default */
	r3_u32 side;		/* link: which end, 0 or 1 */
	r3_u8 mac[6];		/* all zero: random */
	r3_u8 pad[2];
	r3_u64 window;		/* link: address of struct ring3_link; xdp: of the rings */
	char name[16];		/* interface name, NUL-terminated */
};

/*
 * At offset 0 of the region (and of the image file's first PT_LOAD). Fields above
 * `base` are constant in the image; the keeper fills the next group before boot.
 */
struct ring3_region {
	r3_u64 magic;
	r3_u32 abi;
	r3_u32 flavour;		/* 0 up, 1 smp, 2 sim */
	r3_u64 image_size;	/* bytes with bss, a multiple of 4096 */
	r3_u64 text_start;	/* offsets of the executable part, page-aligned */
	r3_u64 text_end;
	r3_u64 boot;		/* offset of long boot(struct ring3_thread *init_thread), C convention:
				 * relocates, boots, returns 0 when the node is UP. Keeper only. */
	r3_u64 enter;		/* offset of the enter routine */
	r3_u64 fixup;		/* offset of u64 fixup(u64 rip), C convention, async-signal-safe:
				 * where to go on after a fault at rip, 0: not ours */
	char version[96];	/* "6.12.117 up #1 ..." for messages */

	/* W: the keeper, before boot. R: image and gate. */
	r3_u64 base;		/* address of the region in every process */
	r3_u64 size;		/* bytes of the memfd */
	r3_u64 tsc_khz;		/* 0: use the host's clock_gettime */
	r3_u64 boot_tsc;	/* TSC and the host's clocks read together, before boot */
	r3_u64 boot_monotonic_ns;
	r3_u64 boot_realtime_ns;
	r3_u8 seed[64];		/* randomness for the node's pool */
	char node_name[64];	/* becomes the node's hostname */
	char cmdline[512];	/* kernel command line */
	r3_s32 keeper_pid;
	r3_u32 spin_ns;		/* cap of idle polling, ns; 0: never poll */
	r3_u32 grace_ms;	/* what programs have between SIGTERM and SIGKILL when the node ends. R: gates */

	/* At run time. R: all. */
	r3_a32 state;		/* enum ring3_state. W: the keeper; POISONED: who finds that */
	r3_a32 pending;		/* RING3_IRQ_*; smp: for vCPU 0, taken over by the next DRIVE or KEEP. W: all */
	r3_a32 kick;		/* futex word on which KEEP sleeps. W: all */
	r3_a32 procs_gen;	/* futex word; ++ whenever procs[] changes. W: image; the keeper to wake itself */
	r3_a32 procs_used;	/* procs[] was never in use from this index on; only grows. W: image, with the blocks' lock */
	char poison[128];	/* why POISONED, one line. W: who set it */
	struct ring3_vcpu vcpu[1] __attribute__((aligned(64)));
	struct ring3_thread init_thread __attribute__((aligned(64)));	/* pid 1: keeper's main thread */
	struct ring3_thread driver_thread[4];	/* task-less: [0] KEEP, [1] port epoll, [2..3] KEEP of vCPU 1 and 2 */
	struct ring3_proc init_proc;		/* the keeper's process */
	r3_a64 stat[RING3_STAT_COUNTS];		/* W: gates; R: the keeper. ring3_stat.h */
	r3_a64 late;		/* waits that only their time limit ended. W: image, gate/kill.c; R: the keeper. ring3_stat.h */
	r3_u64 site[RING3_SITES];		/* W, R: gates. ring3_sites.h */
#define RING3_PROCS_MAX		16384	/* 1.5 MiB, of which the host gives the pages that were in use */
	struct ring3_proc procs[RING3_PROCS_MAX];
	struct ring3_cpuid cpuid __attribute__((aligned(64)));	/* W, R: gates. ring3_cpuid.h */
};

#endif /* RING3_H */
