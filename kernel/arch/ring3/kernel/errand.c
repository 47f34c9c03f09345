// SPDX-License-Identifier: GPL-2.0
/*
 * errand.c - host calls that the keeper makes for kernel code
 *
 * Theory of operation
 * -------------------
 * Some host calls have to be made by one and the same process, whichever thread drives. A signal that the node
 * raises is for a process of any user, and the driver may lack the permission to send it. The console is the
 * keeper's descriptor 2; in a program that number may be a database. Kernel code leaves such an errand here, and
 * KEEP carries it out on its own stack.
 *
 * The keeper may signal every process of its node: each process that joins has the keeper's uid, and if it has
 * changed its uid since, it needed a privilege that the keeper has, too. If the host refuses nevertheless, the
 * keeper logs that.
 *
 * Signals are queued in a ring with room for many; if it is full, the sender waits. The console's ring drops text
 * if KEEP is too slow, and reports how much. Kernel code writes to the rings under a lock, and only KEEP reads.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/spinlock.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include "errand.h"
#include "../vcpu/vcpu.h"

#define SIGNALS		256U		/* of 24 bytes: enough for SIGIO to a large process group */
#define TEXT_BYTES	65536U		/* a report of a debugging kernel has some 10 KiB */

static struct ring3_signal signals[SIGNALS];
static u32 signals_head, signals_tail;
static DEFINE_SPINLOCK(signals_lock);

static char text[TEXT_BYTES];
static u32 text_head, text_tail, text_lost;

static bool signal_put(const struct ring3_signal *s)
{
	unsigned long flags;
	bool room;

	spin_lock_irqsave(&signals_lock, flags);
	room = signals_head - host_load(&signals_tail) < SIGNALS;
	if (room) {
		signals[signals_head % SIGNALS] = *s;
		host_store(&signals_head, signals_head + 1);
	}
	spin_unlock_irqrestore(&signals_lock, flags);
	return room;
}

/* Sent by a thread of the process itself, if one drives; otherwise by the keeper. May sleep. */
void ring3_signal(const struct ring3_proc *to, const struct ring3_signal *s)
{
	const struct ring3_proc *proc = (const struct ring3_proc *)ring3_driver->proc;

	if (proc == to || proc == &ring3_region.init_proc) {
		ring3_host_signal(s);
		return;
	}
	while (!signal_put(s)) {
		ring3_kick(ring3_region.vcpu);
		schedule_timeout_uninterruptible(1);
	}
	ring3_kick(ring3_region.vcpu);
}

/* While the node boots, the keeper drives, and KEEP does not run yet. */
void ring3_console_put(const char *s, u32 n)
{
	u32 i, room = TEXT_BYTES - (text_head - host_load(&text_tail));

	if (host_load(&ring3_region.state) < RING3_UP) {
		ring3_host_stderr(s, n);
		return;
	}
	if (n > room) {
		WRITE_ONCE(text_lost, text_lost + n - room);
		n = room;
	}
	for (i = 0; i < n; i++)
		text[(text_head + i) % TEXT_BYTES] = s[i];
	host_store(&text_head, text_head + n);
	ring3_kick(ring3_region.vcpu);
}

static void carry_signals(void)
{
	char line[80];
	long err;
	u32 n;

	while (signals_tail != host_load(&signals_head)) {
		const struct ring3_signal *s = &signals[signals_tail % SIGNALS];

		err = ring3_host_signal(s);
		if (err == -EPERM) {
			n = scnprintf(line, sizeof(line),
				      "ring3: the host lets nobody send signal %d to process %d\n",
				      s->signo, s->pid);
			ring3_host_stderr(line, n);
		}
		host_store(&signals_tail, signals_tail + 1);
	}
}

static void carry_text(void)
{
	static u32 said;
	u32 head = host_load(&text_head), lost = READ_ONCE(text_lost), n;
	char line[64];

	while (text_tail != head) {
		n = min(head - text_tail, TEXT_BYTES - text_tail % TEXT_BYTES);
		ring3_host_stderr(text + text_tail % TEXT_BYTES, n);
		host_store(&text_tail, text_tail + n);
	}
	if (lost != said) {
		n = scnprintf(line, sizeof(line), "ring3: %u bytes of the log lost here\n", lost - said);
		ring3_host_stderr(line, n);
		said = lost;
	}
}

/* Called by KEEP of vCPU 0, on its own stack. */
void ring3_errands(void)
{
	carry_signals();
	carry_text();
}
