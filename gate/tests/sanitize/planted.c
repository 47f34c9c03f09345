// SPDX-License-Identifier: GPL-2.0
/*
 * planted.c - one fault of each kind, by the value of GATE_PLANTED: the run that looks for faults has
 * to find these first
 */
#include "../../gate.h"

static volatile char around[40];

static u64 hidden(u64 v)
{
	asm volatile("" : "+r"(v));
	return v;
}

static void on_stack(void)
{
	char buf[20];
	volatile char *p = (char *)hidden((u64)buf);

	p[20] = p[0];
}

void planted(const char *what)
{
	volatile char *p = gate_alloc(21);
	char from[64];
	int n = hidden(0x7fffffff);

	memset(from, 0, sizeof(from));
	if (!strcmp(what, "heap"))
		p[hidden(21)] = 1;
	else if (!strcmp(what, "underflow"))
		p[hidden(-1)] = 1;
	else if (!strcmp(what, "memcpy"))
		memcpy((char *)p, from, hidden(22));
	else if (!strcmp(what, "copy"))
		gate_copy_in((char *)p, from, hidden(22));
	else if (!strcmp(what, "global"))
		*(char *)(hidden((u64)around) + 40) = 1;
	else if (!strcmp(what, "stack"))
		on_stack();
	else if (!strcmp(what, "free"))
		gate_free((char *)p), p[0] = 1;
	else if (!strcmp(what, "twice"))
		gate_free((char *)p), gate_free((char *)p);
	else if (!strcmp(what, "shift"))
		n = 1 << hidden(33);
	else if (!strcmp(what, "overflow"))
		n++;
	else if (!strcmp(what, "index"))
		from[0] = from[hidden(64)];
	else
		gate_die(125, "GATE_PLANTED: no such fault: %s", what);
	gate_warn("planted %s was not found (%d %d)", what, n, from[0]);
}
