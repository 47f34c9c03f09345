// SPDX-License-Identifier: GPL-2.0
/*
 * poll.c - an idle vCPU's owner polls links and ports before it sleeps
 *
 * All of this runs on a host thread's own stack: see internal.h.
 */
#include <uapi/linux/poll.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/processor.h>
#include <asm/ring3.h>
#include <asm/ring3_poll.h>
#include <asm/unistd.h>
#include "internal.h"

/* A thread that was called is on its way: the host may have put it on this very CPU. */
static bool somebody_comes(struct ring3_cpu *cpu)
{
	struct ring3_thread *called = cpu->called;

	return called && called->tid && (host_load(&called->word) & RING3_WORD_COME);
}

/* A thread that was woken, and has something to do, has not run since: it has no CPU. */
static bool somebody_has_no_cpu(struct ring3_cpu *cpu)
{
	struct ring3_thread *tb;
	u32 w;
	int i;

	for (i = 0; i < WOKEN; i++) {
		tb = READ_ONCE(cpu->woken[i]);
		if (!tb || !tb->tid)
			continue;
		w = host_load(&tb->word);
		if ((w & (RING3_WORD_SLEEPING | RING3_WORD_QUEUED)) &&
		    (w & (RING3_WORD_DONE | RING3_WORD_COME | RING3_WORD_HANDED)))
			return true;
	}
	return false;
}

/* The descriptors of the node's ports in this process. */
static int fd_ports(struct ring3_thread *tb, struct pollfd *fds, u32 *bits)
{
	struct ring3_proc *proc = (struct ring3_proc *)tb->proc;
	int i, n = 0;

	for (i = 0; proc && i < RING3_PORTS_MAX; i++) {
		if (proc->port_fd[i] < 0 || ring3_poll_watches(i) || !ring3_irq_wanted(i))
			continue;
		bits[n] = RING3_IRQ_PORT(i);
		fds[n++] = (struct pollfd) { proc->port_fd[i], POLLIN, 0 };
	}
	return n;
}

/* Those that have something; one that has an error besides is left to the keeper. */
static u32 fd_ports_ready(struct pollfd *fds, const u32 *bits, int n)
{
	u32 ready = 0;
	int i;

	if (ring3_host_syscall(__NR_poll, (long)fds, n, 0, 0, 0, 0) <= 0)
		return 0;
	for (i = 0; i < n; i++)
		if (fds[i].revents == POLLIN)
			ready |= bits[i];
	return ready;
}

struct polling {
	struct pollfd fds[RING3_PORTS_MAX];
	u32 fd_bits[RING3_PORTS_MAX];
	int n_fds;
	u64 start, now;
	bool beside_peer;	/* a far end of a link has its CPU here */
	bool yielded;		/* a yield has just run somebody */
};

/*
 * Spinning pays when what we wait for comes while we do. A spin in vain that
 * was followed by work soon after was too short: a sleep and a wake-up on
 * another CPU alone take that long. One followed by a long sleep was too long.
 */
static void adapt_spin(struct ring3_cpu *cpu, u64 start)
{
	u64 cap = READ_ONCE(ring3_region.spin_ns);

	if (cpu->gave_up) {
		cpu->spin_ns = start - cpu->gave_up < 4 * cap ? cap : cpu->spin_ns / 2;
		cpu->gave_up = 0;
	}
	cpu->spin_ns = clamp(cpu->spin_ns, min(cap, SPIN_MIN_NS), cap);
}

/* From here on any thread may take the vCPU. The wake-ups that were put off are sent. */
static void poll_begins(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	bool owes = cpu->n_wakes;
	struct wakes wakes;
	u32 o;

	if (owes)
		vcpu_owe(tb);
	vcpu_take_wakes(cpu, &wakes);
	o = r3_start_polling(&vcpu->owner);
	if (owes) {
		vcpu_send_wakes(&wakes);
		vcpu_owe_no_more(tb);
	}
	if (r3_owner_waits(o)) {
		vcpu_wake_owner(vcpu, 1);
		/* It takes the vCPU from us, and the host may have put it on this CPU. */
		ring3_host_syscall(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
	}
}

/* Is there something to do? Ports that have something are in `pending' then. */
static bool something_came(struct ring3_thread *tb, struct polling *p)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	u32 ready;

	if (host_load(vcpu_pending(vcpu)) || (host_load(&tb->word) & RING3_WORD_SIGNAL))
		return true;
	ready = ring3_poll_ready();
	if (!ready && p->n_fds)
		ready = fd_ports_ready(p->fds, p->fd_bits, p->n_fds);
	if (ready)
		host_or(vcpu_pending(vcpu), ready);
	return ready;
}

/* A timer has expired, the CPU is contended, or nothing came for as long as a poll pays. */
static bool time_is_over(struct ring3_vcpu *vcpu, struct polling *p)
{
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	u64 last = p->now;

	p->now = ring3_clock();
	if (p->now >= READ_ONCE(vcpu->deadline)) {
		host_or(vcpu_pending(vcpu), RING3_IRQ_TIMER);
		return true;
	}
	if ((p->now - last >= COMPUTES_NS && vcpu_crowded_out(cpu, last, p->now)) ||
	    p->now - p->start >= cpu->spin_ns) {
		cpu->gave_up = p->now;
		return true;
	}
	/* What we wait for may be its to do, on this CPU: the host puts it there if it is idle. */
	return p->now - p->start >= COMES_NS && somebody_has_no_cpu(cpu);
}

/* Before the next look. False: it is better to sleep. */
static bool pause_or_yield(struct ring3_cpu *cpu, struct polling *p)
{
	u64 last;

	if (!p->beside_peer && !p->n_fds && !(p->now - p->start >= cpu->patience && somebody_comes(cpu))) {
		host_pause();
		return true;
	}
	/*
	 * What we wait for wants this very CPU (or may want it: nobody tells where
	 * the far end of a host's device is): the host's scheduler likes to put a
	 * thread beside the one that woke it. If others with more to do want it
	 * too it is better to sleep and be woken.
	 */
	if (!vcpu_yield_cpu(cpu, p->now)) {
		cpu->gave_up = ring3_clock();
		return false;
	}
	last = p->now;
	p->now = ring3_clock();
	p->yielded = p->now - last > YIELDED_NS;
	p->beside_peer = ring3_poll_beside_peer();
	return true;
}

/*
 * The idle task is parked and this thread's call waits: look at what memory
 * shows, without a system call. Returns as vcpu_wait(); 1 also when it gives up.
 */
int vcpu_poll(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	struct polling p;
	bool came;

	p.n_fds = fd_ports(tb, p.fds, p.fd_bits);
	p.yielded = false;
	p.start = p.now = ring3_clock();
	if (vcpu_is_crowded(cpu, p.start) || vcpu_other_wants_cpu(tb)) {
		cpu->gave_up = 0;
		WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) | R3_EXIT_POLL);
		return 1;
	}
	vcpu_seen_here(tb);
	adapt_spin(cpu, p.start);
	ring3_poll_disarm();
	p.beside_peer = ring3_poll_beside_peer();
	WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) | R3_EXIT_POLL);
	poll_begins(tb);

	for (;;) {
		if (!r3_owner_polls(host_load(&vcpu->owner), tb->tid)) {
			cpu->patience = p.yielded ? 0 : COMES_NS;
			return vcpu_wait(tb, POLLED);
		}
		p.yielded = false;
		came = something_came(tb, &p);
		if (came || time_is_over(vcpu, &p) || !pause_or_yield(cpu, &p))
			break;
	}
	if (!r3_stop_polling(&vcpu->owner, tb->tid))
		return vcpu_wait(tb, POLLED);

	if (came && (host_load(&tb->word) & RING3_WORD_SIGNAL)) {
		r3_word_clear(&tb->word, RING3_WORD_SIGNAL);
		r3t_request(tb) |= R3_REQ_SIGNAL;
	}
	return 1;
}
