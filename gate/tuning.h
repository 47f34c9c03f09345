/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tuning.h - the gate's constants of time: how long it waits, and when an effort pays
 *
 * Each has its unit, the measurement it came from, and the test or bench that would show it wrong. "Chosen": there
 * is no measurement.
 */
#ifndef RING3_GATE_TUNING_H
#define RING3_GATE_TUNING_H

/*
 * Traps of one site before it is rewritten. Measured: a trap takes 2 us, a rewrite 10 us. bench/run spawn is slower if
 * sites that are used a few times are rewritten, bench/run passthrough if busy ones are not.
 */
#define PATCH_HOT_TRAPS		6
/*
 * Traps of a process whose sites in the dynamic linker the node remembers for the next process. Chosen: more than
 * the start of a C library has. bench/run spawn.
 */
#define PATCH_FIRST_TRAPS	24
/*
 * Nanoseconds that a `cpuid` has to take before the gate rewrites those of a program. Measured: 4 to 10 us under a
 * hypervisor; the C library executes some forty. bench/run spawn.
 */
#define CPUID_SLOW_NS		1000

/*
 * Nanoseconds between two looks whether another process of a sandbox has answered, looks until it is asked again, and looks at most: a second. Chosen.
 * sandbox::oracle::limit_as.
 */
#define WISH_LOOK_NS		100000L
#define WISH_AGAIN		200
#define WISH_LOOKS		10000

/* Nanoseconds between two tries for a source's lock where the host refuses to wait. Chosen: longer than it is held. oracle::splice_processes. */
#define SOURCE_NAP_NS		50000L

/* Nanoseconds between two checks whether a keeper that does not answer is stopped. Chosen. apps::up_stopped. */
#define JOIN_LOOK_NS		500000000L

/*
 * For a SIGKILL within the node: the number of waits for the vCPU, and nanoseconds of each; with several vCPUs,
 * waits before the others are released. Chosen: 0.2 s, longer than any call takes. tests/run storm, gate
 * policy/kills.
 */
#define KILL_TAKE_TURNS		200
#define KILL_TURN_NS		1000000
#define KILL_DRAIN_TURNS	16		/* of pause: DRAIN_TURNS in kernel/arch/ring3/vcpu/tuning.h */
#define KILL_TAKE_SEVERAL	4
/*
 * Nanoseconds between two looks at a poller, which wakes no waiter. Twice region->spin_ns, which is 50 us by
 * default.
 */
#define KILL_POLLER_NS		100000
/*
 * Nanoseconds between two checks whether a target has stopped, and their number (20 ms): a thread without a CPU
 * stops when it gets one. Chosen. tests/run neighbours_stop_within.
 */
#define KILL_STOP_NAP_NS	50000
#define KILL_STOP_NAPS		200
/* Milliseconds to wait for the end of one target: the host frees its memory. Chosen. tests/run storm. */
#define KILL_DEATH_MS		20

/*
 * Nanoseconds after which stop.c sends its mark again: a mark is dropped if another SIGBUS is pending. Chosen. The
 * models "stop: ... gets a SIGBUS" need the repetition; oracle::exit_last_two has two ends at once.
 */
#define STOP_AGAIN_NS		5000000L
/*
 * Nanoseconds after which an end no longer waits for a call that can't be interrupted. Chosen. tests/run kill_
 * storm.
 */
#define STOP_LIMIT_NS		1000000000L
/*
 * Nanoseconds that replace membarrier() if the host refuses that: by then each core is assumed to have taken an
 * interrupt. Chosen. A host with a slower tick breaks the assumption; no test has such a host.
 */
#define STOP_FENCE_NS		2000000L

/*
 * Nanoseconds between two looks whether the adopter has let a process go for a debugger, and their number (a second): its threads
 * have to come out of what can't be interrupted. Chosen. tests/run debug_.
 */
#define PLACE_TURN_NS		20000000L
#define PLACE_TURNS		50
/* Nanoseconds for which a program that joins waits for the adopter, which traces it within 0.2 ms on an idle CPU. Chosen. */
#define TRACED_WAIT_NS		20000000L

/*
 * Nanoseconds between two checks for a vfork child that was killed and can't report its end. Chosen.
 * oracle::vfork_*.
 */
#define VFORK_LOOK_NS		20000000L
/*
 * Nanoseconds between two checks whether a helper thread has ended, and their number (half a second). Chosen.
 * apps::leaks_*.
 */
#define HELPER_NAP_NS		50000
#define HELPER_NAPS_MAX		10000
/* Nanoseconds after which RLIMIT_CPU's signal is sent again: it may have been dropped. Chosen. oracle::limit_cpu. */
#define CPU_AGAIN_NS		50000000ULL
/*
 * Nanoseconds between two checks if there can be no feeder thread (RLIMIT_NPROC). Chosen; docs/compatibility.md
 * states the delay.
 */
#define WAIT_BLIND_NS		10000000ull
/*
 * Cycles between two looks of a waiter at the twin of a mixed epoll whose last look found events: about 15 us.
 * Chosen. No bench has such an epoll; oracle::epoll_mixed shows that no event is missed.
 */
#define EPOLL_LOOK_CYCLES	40000
/* Bytes from which pages are moved instead of copied: below that, handling a page costs more. bench/run nginx. */
#define XFER_DIRECT_MIN		4096u

#endif
