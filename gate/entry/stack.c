// SPDX-License-Identifier: GPL-2.0
/*
 * stack.c - the program's first stack, and what the host's /proc shows of it
 *
 * The strings of arguments and environment stay where the host put them, so that a program can overwrite its argv
 * to set a title. Only the vectors are built anew, below them. A script's arguments change, so their strings are
 * copied, too.
 */
#include "internal.h"
#include <asm/hwcap2.h>
#include <linux/auxvec.h>
#include <linux/elf.h>
#include <linux/prctl.h>

#define RANDOM_BYTES	16	/* at AT_RANDOM */
#define AUX_MAX		32	/* a kernel has 25 */
#define ARGS_FEW	32	/* up to so many need no allocation */

static u64 env_end(char **envp)
{
	u64 end = 0;

	for (; *envp; envp++)
		end = (u64)*envp + strlen(*envp) + 1;
	return end;
}

/* The host's auxiliary vector, with the program's values in place of the gate's. */
static u32 aux_build(u64 *out, const u64 *host, const struct program *p, u64 execfn)
{
	u32 n = 0;

	for (; host[0] != AT_NULL && n < AUX_MAX - 1; host += 2) {
		u64 value = host[1];

		if (gate.sim && !sim_cpu_aux(host[0], &value))
			continue;
		switch (host[0]) {
		case AT_PHDR:
			value = p->phdr;
			break;
		case AT_PHENT:
			value = sizeof(Elf64_Phdr);
			break;
		case AT_PHNUM:
			value = p->phnum;
			break;
		case AT_BASE:
			value = p->interp_base;
			break;
		case AT_ENTRY:
			value = p->exec_entry;
			break;
		case AT_EXECFN:
			value = execfn;
			break;
		case AT_HWCAP2:
			own_gs_possible = value & HWCAP2_FSGSBASE;
			value &= ~HWCAP2_FSGSBASE;	/* so it asks for a GS base, where it would write it: own_gs.c */
			break;
		case AT_SYSINFO_EHDR:
			if (gate.sim)
				continue;	/* the vDSO would tell the host's time */
			break;
		case AT_RANDOM:
			if (gate.sim)
				image_call3(__NR_getrandom, value, RANDOM_BYTES, 0);
			break;
		}
		out[2 * n] = host[0];
		out[2 * n++ + 1] = value;
	}
	out[2 * n] = AT_NULL;
	out[2 * n + 1] = 0;
	return n + 1;
}

static u64 push_string(u64 sp, const char *s)
{
	size_t n = strlen(s) + 1;

	memcpy((void *)(sp - n), s, n);
	return sp - n;
}

/* Tells the host what it shows as brk, /proc/PID/cmdline, environ, stat and auxv, if it lets us. */
static void tell_host(const struct program *p, u64 args, u64 args_end, char **envp, u64 *aux,
		      u32 naux)
{
	struct prctl_mm_map map = {
		.start_code = p->start_code,
		.end_code = p->end_code,
		.start_data = p->start_data,
		.end_data = p->end_data,
		.start_brk = p->brk,
		.brk = p->brk,
		.start_stack = p->sp,
		.arg_start = args,
		.arg_end = args_end,
		.env_start = *envp ? (u64)*envp : args_end,
		.env_end = *envp ? env_end(envp) : args_end,
		.auxv = (__u64 *)aux,
		.auxv_size = naux * 16,
		.exe_fd = -1,
	};
	long ret = host_syscall5(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, (long)&map, sizeof(map), 0);

	if (ret)
		gate_log("PR_SET_MM_MAP: error %ld; the heap stays beside the gate", -ret);
}

void program_stack(struct program *p, char **envp, u64 *auxv, u64 sp)
{
	bool moved = p->path != p->execfn;	/* a script: its arguments are copied */
	u64 aux[2 * AUX_MAX], execfn, args, args_end, *word;
	char *few[ARGS_FEW], **arg_at = few;
	u32 nenv = 0, naux, i;

	while (envp[nenv])
		nenv++;
	sp &= ~15UL;
	execfn = (u64)p->execfn;
	if (p->argc > ARGS_FEW)
		arg_at = gate_alloc(p->argc * sizeof(*arg_at));
	if (!arg_at)
		gate_die(125, "out of memory");
	memcpy(arg_at, p->argv, p->argc * sizeof(*arg_at));
	if (moved) {
		args_end = sp;
		for (i = p->argc; i--;) {
			sp = push_string(sp, p->argv[i]);
			arg_at[i] = (char *)sp;
		}
		args = sp;
	} else {
		args = p->argc ? (u64)arg_at[0] : sp;
		args_end = p->argc ? (u64)arg_at[p->argc - 1] + strlen(arg_at[p->argc - 1]) + 1 : sp;
	}
	/* The name may be in the gate's memory; the program expects it on its stack. */
	sp = push_string(sp, p->execfn);
	execfn = sp;
	naux = aux_build(aux, auxv, p, execfn);
	sp = (sp - 8 * (1 + p->argc + 1 + nenv + 1 + 2 * naux)) & ~15UL;
	p->sp = sp;
	word = (u64 *)sp;
	*word++ = p->argc;
	for (i = 0; i < (u32)p->argc; i++)
		*word++ = (u64)arg_at[i];
	*word++ = 0;
	for (i = 0; i < nenv; i++)
		*word++ = (u64)envp[i];
	*word++ = 0;
	memcpy(word, aux, naux * 16);
	if (arg_at != few)
		gate_free(arg_at);
	tell_host(p, args, args_end, envp, word, naux);
	if (p->exec_stack)
		host_syscall3(__NR_mprotect, page_start(sp), GATE_PAGE,
			      PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN);
}
