// SPDX-License-Identifier: GPL-2.0
/*
 * irq.c - interrupts are bits in region->pending
 *
 * Any thread may set a bit (the keeper, a poller, KEEP for a peer's doorbell), with a locked OR. The driver serves
 * it when interrupts are enabled. A port registers a handler. A port in shared memory also names two words, by
 * which the idle loop sees new packets without a system call.
 */
#include <linux/errno.h>
#include <linux/hardirq.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/kernel.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <asm/irq_regs.h>
#include <asm/ring3_poll.h>
#include <asm/ring3.h>
#include "../turn/turn.h"
#include "../vcpu/vcpu.h"

static struct {
	void (*handler)(void *arg);
	void *arg;
	unsigned long count;
} ports[RING3_PORTS_MAX];

/* Ports in shared memory. Host threads without the vCPU read this: `used` is set last. */
static struct {
	const u32 *head, *tail;
	u32 *armed, *doorbell;
	u32 *cpu;		/* see ring3_poll_cpus() */
	const u32 *peer_cpu;
	const u32 *taken;	/* see ring3_poll_room() */
	const u32 *wanted;
	u32 *waiting;
	u32 rung;		/* value of the doorbell at the last look */
	u32 used;
} polls[RING3_PORTS_MAX];
static u32 polls_max;

/* Ports whose edge was consumed while input was left, as pending bits: ring3_poll_owe(). */
static u32 owed;

static unsigned long timer_count;

void ring3_irq_register(unsigned int port, void (*handler)(void *), void *arg)
{
	ports[port].arg = arg;
	WRITE_ONCE(ports[port].handler, handler);
}

void ring3_irq_unregister(unsigned int port)
{
	WRITE_ONCE(ports[port].handler, NULL);
}

/*
 * Does a thread poll this port's descriptor? If none does, the descriptor stays readable: a poller must not ask for
 * it.
 */
bool ring3_irq_wanted(unsigned int port)
{
	return READ_ONCE(ports[port].handler);
}

void ring3_irq_raise(unsigned int port)
{
	host_or(&ring3_pending, RING3_IRQ_PORT(port));
}

static void handle(u32 bits)
{
	unsigned int port;

	if (unlikely(bits & owed))
		host_andnot(&owed, bits);
	if (bits & RING3_IRQ_TIMER) {
		timer_count++;
		ring3_timer_irq();
	}
	if (bits & RING3_IRQ_WORK)
		ring3_poll_later();
	if (IS_ENABLED(CONFIG_RING3_SIM)) {
		if (bits & RING3_IRQ_SLEEPER)
			turn_admit();
		bits &= ~(RING3_IRQ_SLEEPER | RING3_IRQ_WAITER);
	}
	if (bits & (RING3_IRQ_SLEEPER | RING3_IRQ_WAITER))
		WRITE_ONCE(*ring3_yield_word(), 1);
	/* The owner before may have erased WAITERS as it released the vCPU, and the present one has to know. */
	if (bits & RING3_IRQ_SLEEPER)
		r3_keep_waiters(&ring3_this_vcpu->owner);
	if (IS_ENABLED(CONFIG_SMP) && (bits & (RING3_IRQ_RESCHED | RING3_IRQ_CALL)))
		ring3_handle_ipi(bits);
	for (bits >>= 8, port = 0; bits; bits >>= 1, port++) {
		void (*handler)(void *) = READ_ONCE(ports[port].handler);

		if ((bits & 1) && handler) {
			ports[port].count++;
			handler(ports[port].arg);
		}
	}
}

/* Called when interrupts are enabled and some are pending. */
void ring3_irq_run(void)
{
	static struct pt_regs none;
	struct pt_regs *old;
	u32 bits;

	do {
		arch_local_irq_disable();
		bits = host_xchg(&ring3_pending, 0);
		if (bits) {
			/* The tick skips its work if there are no registers. */
			old = set_irq_regs(&none);
			trace_hardirqs_off();
			irq_enter();
			handle(bits);
			irq_exit();
			trace_hardirqs_on();
			set_irq_regs(old);
		}
		WRITE_ONCE(ring3_irq_enabled, 1);
		barrier();
	} while (READ_ONCE(ring3_pending));
}

/* See asm/preempt.h. */
void ring3_irq_look(void)
{
	if (unlikely(READ_ONCE(ring3_pending)) && !irqs_disabled())
		ring3_irq_run();
}

int ring3_poll_add(unsigned int port, const u32 *head, const u32 *tail,
		   u32 *armed, u32 *doorbell)
{
	if (port >= RING3_PORTS_MAX || polls[port].used)
		return -EBUSY;
	polls[port].head = head;
	polls[port].tail = tail;
	polls[port].armed = armed;
	polls[port].doorbell = doorbell;
	polls[port].cpu = NULL;
	polls[port].wanted = NULL;
	host_store(&polls[port].used, 1);
	if (polls_max < port + 1)
		host_store(&polls_max, port + 1);
	/* KEEP has to learn of the new doorbell; until then every packet rings. */
	host_store(armed, 1);
	ring3_kick(&ring3_region.vcpu[0]);
	return 0;
}

void ring3_poll_del(unsigned int port)
{
	host_store(&polls[port].used, 0);
	ring3_kick(&ring3_region.vcpu[0]);
}

/* True if the port is in shared memory. */
bool ring3_poll_watches(unsigned int port)
{
	return host_load(&polls[port].used);
}

void ring3_poll_later(void)
{
	WRITE_ONCE(ring3_this_vcpu->polled, READ_ONCE(ring3_this_vcpu->polled) | R3_EXIT_POLL);
}

void ring3_poll_cpus(unsigned int port, u32 *ours, const u32 *theirs)
{
	polls[port].peer_cpu = theirs;
	host_store(&polls[port].cpu, ours);
}

void ring3_poll_room(unsigned int port, const u32 *taken, const u32 *wanted, u32 *waiting)
{
	polls[port].taken = taken;
	polls[port].waiting = waiting;
	host_store(&polls[port].wanted, wanted);
}

/*
 * The position of the far side that the port's sender waits for, in the format of the word `waiting'; 0: it does
 * not wait.
 */
static u32 room_wanted(u32 i)
{
	const u32 *wanted = host_load(&polls[i].wanted);

	return wanted ? READ_ONCE(*wanted) : 0;
}

static bool has_room(u32 i)
{
	u32 at = room_wanted(i);

	return at && (s32)(host_load(polls[i].taken) - (at & ~1U)) >= 0;
}

void ring3_poll_owe(unsigned int port)
{
	host_or(&owed, RING3_IRQ_PORT(port));
	ring3_poll_later();
}

static bool has_rdpid;

static int __init look_for_rdpid(void)
{
	const u32 LEAF = 7, RDPID = 1 << 22;
	u32 a = 0, b, c = 0, d;

	asm("cpuid" : "+a" (a), "=b" (b), "+c" (c), "=d" (d));
	if (a < LEAF)
		return 0;
	a = LEAF;
	c = 0;
	asm("cpuid" : "+a" (a), "=b" (b), "+c" (c), "=d" (d));
	has_rdpid = c & RDPID;
	return 0;
}
early_initcall(look_for_rdpid);

/* The host CPU of this thread, plus 1. IA32_TSC_AUX is cpu | node << 12. `rdtscp` waits for all loads before it. */
u32 ring3_host_cpu(void)
{
	unsigned long aux;

	if (likely(READ_ONCE(has_rdpid)))
		asm volatile("rdpid %0" : "=r" (aux));
	else
		asm volatile("rdtscp" : "=c" (aux) : : "rax", "rdx");
	return (aux & 0xfff) + 1;
}

/* Tells peers the CPU of this thread. True if one of them is on the same CPU, so that it can't run now. */
bool ring3_poll_beside_peer(void)
{
	u32 i, n = READ_ONCE(polls_max), here = ring3_host_cpu();
	bool beside = false;

	for (i = 0; i < n; i++) {
		u32 *cpu = host_load(&polls[i].cpu);

		if (!polls[i].used || !cpu)
			continue;
		if (READ_ONCE(*cpu) != here)
			WRITE_ONCE(*cpu, here);
		if (READ_ONCE(*polls[i].peer_cpu) == here)
			beside = true;
	}
	return beside;
}

/*
 * Ports whose ring is not empty, whose sender has got the room that it waits for, whose doorbell was rung for
 * another reason (the peer came or went), or that were marked for rescan; as pending bits.
 */
u32 ring3_poll_ready(void)
{
	u32 i, bell, n = READ_ONCE(polls_max), ready = host_load(&owed);

	for (i = 0; i < n; i++) {
		if (!polls[i].used)
			continue;
		bell = host_load(polls[i].doorbell);
		if (bell != READ_ONCE(polls[i].rung)) {
			WRITE_ONCE(polls[i].rung, bell);
			ready |= RING3_IRQ_PORT(i);
		}
		if (host_load(polls[i].head) != READ_ONCE(*polls[i].tail) || has_room(i))
			ready |= RING3_IRQ_PORT(i);
	}
	return ready;
}

void ring3_poll_disarm(void)
{
	u32 i, n = READ_ONCE(polls_max);

	for (i = 0; i < n; i++)
		if (polls[i].used && READ_ONCE(*polls[i].armed))
			host_store(polls[i].armed, 0);
}

bool ring3_poll_unarmed(void)
{
	u32 i, n = READ_ONCE(polls_max);

	if (host_load(&owed))
		return true;
	for (i = 0; i < n; i++)
		if (polls[i].used && !host_load(polls[i].armed))
			return true;
	return false;
}

/* A number that changes when packets of peers are taken. */
u32 ring3_poll_taken(void)
{
	u32 i, n = READ_ONCE(polls_max), sum = 0;

	for (i = 0; i < n; i++)
		if (polls[i].used)
			sum += host_load(polls[i].tail);
	return sum;
}

/* Asks peers to ring from now on, for packets and for room; returns what came in meanwhile. */
u32 ring3_poll_arm(void)
{
	u32 i, at, n = READ_ONCE(polls_max);
	bool any = false, waits = false;

	for (i = 0; i < n; i++) {
		if (polls[i].used) {
			host_store(polls[i].armed, 1);
			any = true;
		}
	}
	if (!any)
		return host_load(&owed);
	host_fence();		/* link_tx_wait(), and the far side's link_take_flag() */
	for (i = 0; i < n; i++) {
		at = polls[i].used ? room_wanted(i) : 0;
		if (at) {
			host_store(polls[i].waiting, at);
			waits = true;
		}
	}
	if (waits)
		host_fence();	/* the far side's link_take_waiting() */
	return ring3_poll_ready();
}

/*
 * For KEEP, after a ring or a time-out: the ports with input. A ring has cleared `armed`. If there is no driver,
 * KEEP arms again; otherwise the driver does so when it leaves, since peers need not ring for what it will see
 * anyway. KEEP does not arm either if programs have made calls lately (keep_watches): their next calls look at the
 * links.
 */
u32 ring3_poll_check(void)
{
	struct ring3_vcpu *vcpu = &ring3_region.vcpu[0];
	u32 owner = host_load(&vcpu->owner);

	if (owner & RING3_OWNER_POLLING)
		return 0;
	if (!owner && !vcpu_cpu(vcpu)->keep_watches)
		return ring3_poll_arm();
	if (!(READ_ONCE(vcpu->polled) & R3_EXIT_POLL) && ring3_poll_unarmed())
		return ring3_poll_ready() | RING3_IRQ_WORK;
	return ring3_poll_ready();
}

/*
 * For a watcher (vcpu/idle.c). If the vCPU is free, it arms the ports that have rung itself. If not, it asks the
 * driver to look at them.
 */
u32 ring3_poll_watched(void)
{
	struct ring3_vcpu *vcpu = &ring3_region.vcpu[0];
	u32 owner = host_load(&vcpu->owner);

	if (owner & RING3_OWNER_POLLING)
		return 0;
	if ((READ_ONCE(vcpu->polled) & R3_EXIT_POLL) || !ring3_poll_unarmed())
		return ring3_poll_ready();
	return owner ? ring3_poll_ready() | RING3_IRQ_WORK : ring3_poll_arm();
}

int ring3_poll_doorbells(u32 **words, u32 *values, int max)
{
	u32 i, n = host_load(&polls_max);
	int count = 0;

	for (i = 0; i < n && count < max; i++) {
		if (host_load(&polls[i].used)) {
			words[count] = polls[i].doorbell;
			values[count++] = host_load(polls[i].doorbell);
		}
	}
	return count;
}

int arch_show_interrupts(struct seq_file *p, int prec)
{
	int i;

	seq_printf(p, "%*s: %10lu   timer\n", prec, "TMR", timer_count);
	for (i = 0; i < RING3_PORTS_MAX; i++)
		if (ports[i].handler)
			seq_printf(p, "%*s%d: %10lu   port\n", prec - 1, "P", i, ports[i].count);
	return 0;
}

void __init init_IRQ(void)
{
}
