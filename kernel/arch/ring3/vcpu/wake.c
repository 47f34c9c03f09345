// SPDX-License-Identifier: GPL-2.0
/*
 * wake.c - wake a thread that sleeps without the vCPU
 *
 * A thread sleeps on its own word (SLEEPING) or on the vCPU's owner word (QUEUED). On contended CPUs the
 * owner defers wake-ups until it has released the vCPU: wake_later().
 *
 * A thread that has taken deferred wake-ups, or hands the vCPU over, may be killed before it has woken anybody. It says so in
 * its block (vcpu_owe()). When its process is reaped, all threads are woken that sleep and have something to do. A
 * hand-off that has no BATON yet is then taken up without it.
 */
#include <linux/kernel.h>
#include <asm/ring3.h>
#include <asm/timex.h>
#include "internal.h"

/* Wakes threads that sleep on the owner word. */
void vcpu_wake_owner(struct ring3_vcpu *vcpu, int count)
{
	host_add(&vcpu->wakes, 1);
	ring3_host_futex_wake(&vcpu->owner, count);
}

void vcpu_wake(struct ring3_thread *tb, u32 w)
{
	struct ring3_cpu *cpu = vcpu_cpu(r3t_vcpu(tb));

	/* Where no CPU is idle the host mostly wakes a thread on the CPU that it slept on. */
	if ((w & (RING3_WORD_SLEEPING | RING3_WORD_QUEUED)) && vcpu_is_here(tb))
		vcpu_wants_cpu_here(tb);
	if (w & (RING3_WORD_SLEEPING | RING3_WORD_QUEUED))
		WRITE_ONCE(cpu->woken[cpu->n_woken++ % WOKEN], tb);
	if (w & RING3_WORD_SLEEPING)
		ring3_host_futex_wake(&tb->word, 1);
	else if (w & RING3_WORD_QUEUED)
		vcpu_wake_owner(r3t_vcpu(tb), INT_MAX);
}

/*
 * A thread that is woken on the CPU of its waker runs at once, mostly. It needs the vCPU, which the waker still has, so both would have
 * to sleep once more. So where the CPUs are contended, or the thread slept on this very CPU, the owner wakes it after the release.
 */
static bool wake_later(struct ring3_thread *tb, u32 w)
{
	struct ring3_vcpu *vcpu = ring3_this_vcpu;
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);

	if (vcpu != r3t_vcpu(tb) || cpu->n_wakes == WAKES_MAX ||
	    (!vcpu_is_here(tb) && !vcpu_is_crowded(cpu, ring3_clock())))
		return false;
	cpu->wakes[cpu->n_wakes++] = (struct ring3_wake) { tb, w };
	r3_owe(&vcpu->owner);
	return true;
}

/* A thread's word says something new and was `w` before: wakes it, wherever it sleeps. */
static void wake_thread(struct ring3_thread *tb, u32 w)
{
	if (!(w & (RING3_WORD_SLEEPING | RING3_WORD_QUEUED)))
		return;
	vcpu_seen_here(ring3_driver);
	if (!wake_later(tb, w))
		vcpu_wake(tb, w);
}

void vcpu_take_wakes(struct ring3_cpu *cpu, struct wakes *wakes)
{
	unsigned int i;

	wakes->n = cpu->n_wakes;
	for (i = 0; i < wakes->n; i++)
		wakes->at[i] = cpu->wakes[i];
	cpu->n_wakes = 0;
}

/* How many threads owe something; more, where one was killed between its two steps. */
static u32 owing;

void vcpu_owe(struct ring3_thread *tb)
{
	host_add(&owing, 1);
	r3t_owes(tb) = 1;
	barrier();
}

void vcpu_owe_no_more(struct ring3_thread *tb)
{
	barrier();
	r3t_owes(tb) = 0;
	host_add(&owing, -1);
}

/* The next thread that owes something; NULL: none. */
struct ring3_thread *vcpu_next_owing(struct ring3_thread *tb)
{
	if (!host_load(&owing))
		return NULL;
	tb = tb ? (struct ring3_thread *)tb->image_private[R3T_LINK] : ring3_threads;
	while (tb && !r3t_owes(tb))
		tb = (struct ring3_thread *)tb->image_private[R3T_LINK];
	return tb;
}

static bool owed_by(const struct ring3_proc *proc)
{
	struct ring3_thread *tb;
	bool any = false;

	for (tb = ring3_threads; tb; tb = (struct ring3_thread *)tb->image_private[R3T_LINK]) {
		if (tb->proc != (unsigned long)proc || !r3t_owes(tb))
			continue;
		vcpu_owe_no_more(tb);
		any = true;
	}
	return any;
}

/* The process is dead: nobody else sends what its threads owe. */
void vcpu_send_for_dead(const struct ring3_proc *proc)
{
	const u32 told = RING3_WORD_DONE | RING3_WORD_COME | RING3_WORD_SIGNAL | RING3_WORD_HANDED;
	struct ring3_thread *tb;
	u32 w;

	if (!host_load(&owing) || !owed_by(proc))
		return;
	for (tb = ring3_threads; tb; tb = (struct ring3_thread *)tb->image_private[R3T_LINK]) {
		w = host_load(&tb->word);
		if (w & told)
			vcpu_wake(tb, w);
	}
}

void vcpu_send_wakes(const struct wakes *wakes)
{
	unsigned int i;

	for (i = 0; i < wakes->n; i++)
		vcpu_wake(wakes->at[i].tb, wakes->at[i].word);
}

/* For a holder that does not let go soon. */
void ring3_wake_now(struct ring3_vcpu *vcpu)
{
	struct wakes wakes;

	vcpu_take_wakes(vcpu_cpu(vcpu), &wakes);
	vcpu_send_wakes(&wakes);
}

void ring3_thread_notify(struct ring3_thread *tb, u32 bits)
{
	wake_thread(tb, r3_word_set(&tb->word, bits));
}

/*
 * Calls a thread that sleeps, for its task needs it; false: it is awake. When it drives,
 * ring3_service() wakes the task.
 */
bool ring3_thread_call(struct ring3_thread *tb)
{
	if (!(host_load(&tb->word) & (RING3_WORD_SLEEPING | RING3_WORD_QUEUED)))
		return false;
	vcpu_cpu(r3t_vcpu(tb))->called = tb;
	ring3_thread_notify(tb, RING3_WORD_COME);
	return true;
}
