// SPDX-License-Identifier: GPL-2.0
/*
 * link_wake.c - does every sleeper of a link get woken, in every order of stores?
 *
 * Theory of operation
 * -------------------
 * The sleep flags of a link are Dekker's problem: each side stores, then loads what the other
 * stores. On x86 a store waits in its CPU's buffer while later loads go ahead, so a
 * barrier that is missing shows once in millions of rounds, or never on the machine of
 * who looks. Here the driver's own link_ring.h runs on a model of two CPUs with store buffers:
 * each access is a step, and so is a buffer's oldest store reaching memory. All orders of
 * steps are tried, each from the beginning (a schedule is the list of its choices), which
 * is some thousands.
 *
 * What must not be: the sleeper saw nothing and sleeps, and the waker saw no sleeper.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static uint32_t cpu_load(uint32_t *word);
static void cpu_store(uint32_t *word, uint32_t value);
static uint32_t cpu_xchg(uint32_t *word, uint32_t value);
static void cpu_mb(void);

/* x86 keeps loads in order, and stores: acquire and release are plain there. */
#define link_load(p)		cpu_load(p)
#define link_load_acquire(p)	cpu_load(p)
#define link_store(p, v)	cpu_store(p, v)
#define link_store_release(p, v) cpu_store(p, v)
#define link_mb()		cpu_mb()
#define link_xchg(p, v)		cpu_xchg(p, v)
#include "link_ring.h"

#define SIZE	LINK_RING_MIN
#define DEPTH	8		/* records; any depth has the same steps */
#define STORES	16		/* a CPU has at most so many under way here */
#define STEPS	64		/* of one schedule */
#define STACK	(64 * 1024)	/* bytes */

struct cpu {
	ucontext_t context;
	void (*run)(void);
	bool done;
	unsigned int stores;
	struct { uint32_t *word, value; } store[STORES];
	char stack[STACK];
};

static struct cpu cpus[2];
static struct cpu *now;		/* NULL: no model, while things are set up */
static ucontext_t scheduler;

static void step(void)
{
	swapcontext(&now->context, &scheduler);
}

static void drain(struct cpu *cpu)
{
	*cpu->store[0].word = cpu->store[0].value;
	memmove(cpu->store, cpu->store + 1, --cpu->stores * sizeof(cpu->store[0]));
}

static void drain_all(struct cpu *cpu)
{
	while (cpu->stores)
		drain(cpu);
}

static uint32_t cpu_load(uint32_t *word)
{
	unsigned int i;

	if (!now)
		return *word;
	step();
	for (i = now->stores; i--;)
		if (now->store[i].word == word)
			return now->store[i].value;
	return *word;
}

static void cpu_store(uint32_t *word, uint32_t value)
{
	if (!now) {
		*word = value;
		return;
	}
	step();
	if (now->stores == STORES)
		abort();
	now->store[now->stores].word = word;
	now->store[now->stores++].value = value;
}

static void cpu_mb(void)
{
	if (!now)
		return;
	step();
	drain_all(now);
}

static uint32_t cpu_xchg(uint32_t *word, uint32_t value)
{
	uint32_t old;

	step();
	drain_all(now);
	old = *word;
	*word = value;
	return old;
}

/* ---- the two ends, as link.c has them */

static struct ring3_ring ring;
static r3_u8 *data;
static uint32_t flag;
static struct link_tx tx;
static struct link_rx rx;
static bool slept, woken;

static void set_up(r3_u32 full)
{
	memset(&ring, 0, sizeof(ring));
	flag = 0;
	slept = false;
	woken = false;
	link_tx_open(&tx, &ring, data, SIZE);
	link_rx_open(&rx, &ring, data, SIZE);
	if (link_tx_room(&tx, 60) != LINK_OK)
		abort();
	while (full && link_tx_room(&tx, LINK_FRAME_MAX) == LINK_OK && !link_tx_deep(&tx, DEPTH)) {
		link_tx_reserve(&tx, full);
		link_tx_commit(&tx, full);
		link_tx_publish(&tx);
	}
}

/* A frame comes while its reader goes to sleep. */
static void sends(void)
{
	link_tx_reserve(&tx, 60);
	link_tx_commit(&tx, 60);
	link_tx_publish(&tx);
	woken = link_take_flag(&flag);
}

static void waits_for_frame(void)
{
	struct ring3_record *rec;
	r3_u32 len;

	link_set_flag(&flag, 1);
	slept = link_rx_peek(&rx, &rec, &len) == LINK_EMPTY;
}

/* Room is given back while the sender goes to sleep. */
static void reads(void)
{
	struct ring3_record *rec;
	r3_u32 len;

	while (link_rx_peek(&rx, &rec, &len) == LINK_OK)
		link_rx_consume(&rx);
	link_rx_publish(&rx);
	woken = link_take_waiting(&rx, &flag);
}

static void waits_for_room(void)
{
	link_set_flag(&flag, link_tx_half(&tx, DEPTH));
	slept = link_tx_room(&tx, LINK_FRAME_MAX) == LINK_EMPTY || link_tx_deep(&tx, DEPTH);
}

/* ---- all orders of their steps */

static void enter(void)
{
	now->run();
	now->done = true;
	swapcontext(&now->context, &scheduler);
}

static void boot(struct cpu *cpu, void (*run)(void))
{
	cpu->run = run;
	cpu->done = false;
	cpu->stores = 0;
	getcontext(&cpu->context);
	cpu->context.uc_stack.ss_sp = cpu->stack;
	cpu->context.uc_stack.ss_size = sizeof(cpu->stack);
	makecontext(&cpu->context, enter, 0);
}

/*
 * One schedule: at each step the choice[at]-th of what can be done (first CPU, second CPU, either's
 * buffer). Beyond `chosen` it is the first; choices[] says how many there were.
 */
static unsigned int one(unsigned int *choice, unsigned int *choices, unsigned int chosen)
{
	unsigned int at, i, n, can[4];

	for (at = 0;; at++) {
		n = 0;
		for (i = 0; i < 2; i++) {
			if (!cpus[i].done)
				can[n++] = i;
			if (cpus[i].stores)
				can[n++] = 2 + i;
		}
		if (!n)
			return at;
		if (at == STEPS)
			abort();
		if (at >= chosen)
			choice[at] = 0;
		choices[at] = n;
		i = can[choice[at]];
		if (i >= 2) {
			drain(&cpus[i - 2]);
			continue;
		}
		now = &cpus[i];
		swapcontext(&scheduler, &now->context);
		now = NULL;
	}
}

/* `full`: of frames of so many bytes */
static bool all(const char *name, r3_u32 full, void (*waker)(void), void (*sleeper)(void))
{
	unsigned int choice[STEPS], choices[STEPS], length = 0;
	unsigned int lost = 0, runs = 0, sleeps = 0, wakes = 0;

	do {
		set_up(full);
		boot(&cpus[0], waker);
		boot(&cpus[1], sleeper);
		length = one(choice, choices, length);
		lost += slept && !woken;
		sleeps += slept;
		wakes += woken;
		runs++;
		/* The last choice that has a next one takes it. */
		while (length && choice[length - 1] + 1 == choices[length - 1])
			length--;
		if (length)
			choice[length - 1]++;
	} while (length);
	/* Both have to have happened, or nothing was looked at. */
	if (lost || !sleeps || !wakes || sleeps == runs) {
		printf("FAIL link_wake %s: of %u orders %u sleep, %u wake, %u sleep for good\n",
		       name, runs, sleeps, wakes, lost);
		return false;
	}
	printf("ok link_wake %s\n", name);
	return true;
}

int main(void)
{
	bool ok;

	data = aligned_alloc(64, SIZE);
	ok = all("reader", 0, sends, waits_for_frame);
	ok &= all("sender", 60000, reads, waits_for_room);
	ok &= all("sender of many", 60, reads, waits_for_room);
	return !ok;
}
