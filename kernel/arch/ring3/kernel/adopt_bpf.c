// SPDX-License-Identifier: GPL-2.0
/*
 * adopt_bpf.c - the registers of those who die, from the host's BPF
 *
 * A program at the host's tracepoint sched_process_exit reads the registers with which the dying
 * thread last left user mode. Of those who were in this node's text or in the gate, it puts them into a ring
 * buffer, on which the adopter sleeps. It takes CAP_BPF and CAP_PERFMON, and costs nothing until a
 * thread ends (0.3 us then). Threads of another pid namespace than the adopter's are not seen.
 *
 * Another one, at signal_generate, tells of signals that stop: adopt_trace.c sees to the threads that they stop in kernel code.
 *
 * Two nodes may lie at the same address: who does not hold a vCPU of this one is no business of ours.
 */
#include <linux/errno.h>
#include <linux/filter.h>
#include <linux/kernel.h>
#include <linux/mman.h>
#include <uapi/linux/bpf.h>
#include <linux/signal_types.h>
#include <asm/ring3.h>
#include <asm/sections.h>
#include <asm/unistd.h>
#include "adopt.h"

#define RING_BYTES	(64UL << 10)
#define RING_HEAD	8		/* of a record: length, flags; then what is in it */
#define RING_BUSY	(1U << 31)
#define RING_DISCARD	(1U << 30)

/* On the program's stack, below the frame pointer. */
#define DEATH		(-(int)sizeof(struct ring3_death))
#define REGS		(DEATH + (int)offsetof(struct ring3_death, regs))
#define NUMBERS		(DEATH - 8)	/* struct bpf_pidns_info */
#define REG(field)	(REGS + (int)offsetof(struct ring3_regs, field))
#define CALL(id)	BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##id)

static unsigned long ring_consumer(void)
{
	return adopt_memory() + ADOPT_RING_AT;
}

static long bpf(int cmd, union bpf_attr *attr)
{
	return ring3_host_syscall(__NR_bpf, cmd, (long)attr, sizeof(*attr), 0, 0, 0);
}

static long load(int ring, u64 dev, u64 ino)
{
	const u64 gate = RING3_GATE_BASE, space = RING3_SPACE_BASE, start = (u64)_stext, end = (u64)_etext;
	const struct bpf_insn program[] = {
		CALL(get_current_task_btf),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		CALL(task_pt_regs),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, REGS),
		BPF_MOV64_IMM(BPF_REG_2, sizeof(struct ring3_regs)),
		CALL(probe_read_kernel),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 34),				/* 8: out */
		BPF_LDX_MEM(BPF_DW, BPF_REG_6, BPF_REG_10, REG(ip)),
		BPF_LD_IMM64(BPF_REG_1, start),					/* 10, 11 */
		BPF_JMP_REG(BPF_JLT, BPF_REG_6, BPF_REG_1, 3),			/* 12: gate? */
		BPF_LD_IMM64(BPF_REG_1, end),
		BPF_JMP_REG(BPF_JLT, BPF_REG_6, BPF_REG_1, 9),			/* 15: ours */
		BPF_LD_IMM64(BPF_REG_1, gate),					/* 16 */
		BPF_JMP_REG(BPF_JLT, BPF_REG_6, BPF_REG_1, 24),			/* 18: out */
		BPF_LD_IMM64(BPF_REG_1, space),
		BPF_JMP_REG(BPF_JGE, BPF_REG_6, BPF_REG_1, 21),			/* 21: out */
		/* Not who exits. */
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_10, REG(orig_ax)),	/* 22 */
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, __NR_exit, 19),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, __NR_exit_group, 18),		/* 24 */
		BPF_LD_IMM64(BPF_REG_1, dev),					/* 25: ours */
		BPF_LD_IMM64(BPF_REG_2, ino),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, NUMBERS),
		BPF_MOV64_IMM(BPF_REG_4, 8),
		CALL(get_ns_current_pid_tgid),					/* 32 */
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 9),				/* 33: out */
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_10, NUMBERS),		/* pid, tgid: as tid, pid */
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_1, DEATH),
		BPF_LD_IMM64_RAW(BPF_REG_1, BPF_PSEUDO_MAP_FD, ring),		/* 36, 37 */
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, DEATH),
		BPF_MOV64_IMM(BPF_REG_3, sizeof(struct ring3_death)),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		CALL(ringbuf_output),						/* 42 */
		BPF_MOV64_IMM(BPF_REG_0, 0),					/* 43: out */
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.insns = (unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (unsigned long)"GPL",
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

/*
 * Tells of signals that stop: to whom they go is not known here. Any record that is in the ring tells of them, too: so
 * many such signals leave room for deaths.
 */
static long load_stops(int ring)
{
	const struct bpf_insn program[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 0),			/* the tracepoint's first argument */
		BPF_JMP_IMM(BPF_JLT, BPF_REG_6, SIGSTOP, 14),			/* 1: out */
		BPF_JMP_IMM(BPF_JGT, BPF_REG_6, SIGTTOU, 13),			/* 2: out */
		BPF_LD_IMM64_RAW(BPF_REG_1, BPF_PSEUDO_MAP_FD, ring),		/* 3, 4 */
		BPF_MOV64_IMM(BPF_REG_2, BPF_RB_AVAIL_DATA),
		CALL(ringbuf_query),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 8),				/* 7: out */
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
		BPF_LD_IMM64_RAW(BPF_REG_1, BPF_PSEUDO_MAP_FD, ring),		/* 9, 10 */
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_IMM(BPF_REG_3, 8),
		BPF_MOV64_IMM(BPF_REG_4, 0),					/* 14 */
		CALL(ringbuf_output),
		BPF_MOV64_IMM(BPF_REG_0, 0),					/* 16: out */
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.insns = (unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (unsigned long)"GPL",
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

static long attach(const char *tracepoint, long program)
{
	union bpf_attr attr = {
		.raw_tracepoint = { .name = (unsigned long)tracepoint, .prog_fd = program },
	};

	return program < 0 ? program : bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

/* The ring buffer's descriptor; those of the attachments stay open. */
long ring3_adopt_bpf_start(void)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_RINGBUF, .max_entries = RING_BYTES };
	unsigned long at = ring_consumer();
	u64 ns[18];			/* struct stat of the host: st_dev, st_ino, ... */
	long ring, ret;

	ret = ring3_host_syscall(__NR_stat, (long)"/proc/self/ns/pid", (long)ns, 0, 0, 0, 0);
	if (ret)
		return ret;
	ring = bpf(BPF_MAP_CREATE, &attr);
	if (ring < 0)
		return ring;
	ret = ring3_host_syscall(__NR_mmap, at, PAGE_SIZE, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED_NOREPLACE, ring, 0);
	if (ret < 0)
		return ret;
	ret = ring3_host_syscall(__NR_mmap, at + PAGE_SIZE, PAGE_SIZE + 2 * RING_BYTES, PROT_READ,
				 MAP_SHARED | MAP_FIXED_NOREPLACE, ring, PAGE_SIZE);
	if (ret < 0)
		return ret;
	ret = attach("sched_process_exit", load(ring, ns[0], ns[1]));
	if (ret < 0)
		return ret;
	/* Without it a program that is stopped from outside may hold the node up, and no more. */
	attach("signal_generate", load_stops(ring));
	return ring;
}

bool ring3_adopt_bpf_next(struct ring3_death *death)
{
	unsigned long *taken = (unsigned long *)ring_consumer();
	unsigned long *made = (void *)taken + PAGE_SIZE, at;
	void *data = (void *)made + PAGE_SIZE;
	u32 *head, len;

	for (;;) {
		at = READ_ONCE(*taken);
		if (at == __atomic_load_n(made, __ATOMIC_ACQUIRE))
			return false;
		head = data + (at & (RING_BYTES - 1));
		len = host_load(head);
		if (len & RING_BUSY)
			return false;
		if (!(len & RING_DISCARD)) {
			memset(death, 0, sizeof(*death));
			memcpy(death, (void *)head + RING_HEAD, min_t(u32, len, sizeof(*death)));
		}
		__atomic_store_n(taken, at + round_up((len & ~RING_DISCARD) + RING_HEAD, 8), __ATOMIC_SEQ_CST);
		if (!(len & RING_DISCARD))
			return true;
	}
}
