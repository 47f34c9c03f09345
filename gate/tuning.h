/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tuning.h - the gate's constants of time: for how long it waits, and from when on an effort pays
 *
 * Each has its unit, what it was taken from, and the test or bench that shows it wrong. "Chosen" is said of
 * one that no measurement stands behind.
 */
#ifndef RING3_GATE_TUNING_H
#define RING3_GATE_TUNING_H

/*
 * Traps of one site before it is rewritten. Measured: a trap takes 2 us, a rewrite 10 us. bench/run spawn is slower if
 * sites that are used a few times are rewritten, bench/run passthrough if busy ones are not.
 */
#define PATCH_HOT_TRAPS		6
/*
 * Traps of a process whose sites in the dynamic linker are remembered for the next process. Chosen: more than a C
 * library's start has. bench/run spawn.
 */
#define PATCH_FIRST_TRAPS	24
/*
 * Nanoseconds that `cpuid` has to take before a program's are rewritten. Measured: 4 to 10 us below a hypervisor;
 * the C library makes some forty. bench/run spawn.
 */
#define CPUID_SLOW_NS		1000

/* Nanoseconds between two looks whether a keeper that does not answer a program is stopped. Chosen. apps::up_stopped. */
#define JOIN_LOOK_NS		500000000L

/*
 * For a SIGKILL within the node. How many turns of how many nanoseconds the vCPU is waited for; with several vCPUs, turns before
 * the others are given back. Chosen: 0.2 s, longer than any call takes. tests/run storm, gate policy/kills.
 */
#define KILL_TAKE_TURNS		200
#define KILL_TURN_NS		1000000
#define KILL_DRAIN_TURNS	16		/* of pause: DRAIN_TURNS in kernel/arch/ring3/vcpu/tuning.h */
#define KILL_TAKE_SEVERAL	4
/* Nanoseconds between two looks at a poller, which wakes nobody. From region->spin_ns, 50 us as a rule: twice that. */
#define KILL_POLLER_NS		100000
/*
 * Nanoseconds between two looks whether a target has stopped, and how many (20 ms): a thread without a CPU stops when it has
 * one. Chosen. tests/run neighbours_stop_within.
 */
#define KILL_STOP_NAP_NS	50000
#define KILL_STOP_NAPS		200
/* Milliseconds that the end of one target may take: the host gives its memory back. Chosen. tests/run storm. */
#define KILL_DEATH_MS		20

/*
 * Nanoseconds after which threads are sent the mark of stop.c again: a mark that meets another SIGBUS is dropped. Chosen. The models
 * "stop: ... gets a SIGBUS" need that it is sent again; oracle::exit_last_two has two ends at once.
 */
#define STOP_AGAIN_NS		5000000L
/* Nanoseconds after which an end does not wait for a call that can't be interrupted. Chosen. tests/run kill_ storm. */
#define STOP_LIMIT_NS		1000000000L
/*
 * Nanoseconds that stand for membarrier() where the host refuses that: an interrupt is taken to have reached each core by then. Chosen;
 * a host whose tick is slower than that breaks it, and no test has such a host.
 */
#define STOP_FENCE_NS		2000000L

/* Nanoseconds between two looks for a vfork child that was killed and can't say that it has ended. Chosen. oracle::vfork_*. */
#define VFORK_LOOK_NS		20000000L
/* Nanoseconds between two looks whether a helper thread that was told to end is gone, and how many (half a second). Chosen. apps::leaks_*. */
#define HELPER_NAP_NS		50000
#define HELPER_NAPS_MAX		10000
/* Nanoseconds after which RLIMIT_CPU's signal is sent again: it may have been dropped for another. Chosen. oracle::limit_cpu. */
#define CPU_AGAIN_NS		50000000ULL
/* Nanoseconds between two looks where no feeder thread can be had (RLIMIT_NPROC). Chosen; docs/compatibility.md tells the delay. */
#define WAIT_BLIND_NS		10000000ull
/*
 * Cycles between two looks of a wait at the host's half of a mixed epoll that was busy: about 15 us. Chosen. No bench has such an
 * epoll; oracle::epoll_mixed shows that no event is missed.
 */
#define EPOLL_LOOK_CYCLES	40000
/* Bytes from which pages move instead of being copied: a page costs more than less bytes. bench/run nginx. */
#define XFER_DIRECT_MIN		4096u

#endif
