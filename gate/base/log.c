// SPDX-License-Identifier: GPL-2.0
/*
 * log.c - one-line messages on stderr
 */
#include "gate.h"

bool gate_debug;

static void say(const char *fmt, va_list ap)
{
	char line[512];
	int n = gate_format(line, sizeof(line), "ring3: ");

	n += gate_vformat(line + n, sizeof(line) - n - 1, fmt, ap);
	line[n++] = '\n';
	host_syscall3(__NR_write, 2, (long)line, n);
}

void gate_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void gate_die(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	for (;;)
		host_syscall1(__NR_exit_group, code);
}
