// SPDX-License-Identifier: GPL-2.0
/*
 * xdp_prog INTERFACE native|generic drop PROTOCOL
 * xdp_prog INTERFACE native|generic answer
 * xdp_prog INTERFACE native|generic redirect PROTOCOL TO MAC
 *
 * Puts an XDP program on an interface, says `ready`, and takes it off when it ends: at the end of standard input. The
 * program drops IPv4 packets of a protocol; answers pings (XDP_TX); or sends packets of a protocol out of interface TO,
 * to MAC. What else comes it passes on. The instructions are made here, so that no compiler for them is needed.
 */
#include "oracle.h"
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stddef.h>
#include <sys/syscall.h>

#define INSN(c, d, s, o, i)	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define LOAD(size, d, s, o)	INSN(BPF_LDX | BPF_MEM | (size), d, s, o, 0)
#define STORE(size, d, s, o)	INSN(BPF_STX | BPF_MEM | (size), d, s, o, 0)
#define STORE_IMM(size, d, o, i) INSN(BPF_ST | BPF_MEM | (size), d, 0, o, i)
#define MOV(d, s)		INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define ALU_IMM(op, d, i)	INSN(BPF_ALU64 | (op) | BPF_K, d, 0, 0, i)
#define ADD(d, s)		INSN(BPF_ALU64 | BPF_ADD | BPF_X, d, s, 0, 0)
#define BE16(d)			INSN(BPF_ALU | BPF_END | BPF_TO_BE, d, 0, 0, 16)
#define CALL(f)			INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT			INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Their targets are set once the end is known. */
#define IF_BEYOND(d, s)		INSN(BPF_JMP | BPF_JGT | BPF_X, d, s, 0, 0)
#define UNLESS(d, i)		INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, 0, i)

static struct bpf_insn code[64];
static int n;

#define EMIT(insn)		(code[n++] = (insn))

/* Lets what is no IPv4 packet of that protocol, or too short, go to `pass`. Register 2 is the packet. */
static void select_packets(int protocol)
{
	EMIT(LOAD(BPF_W, 2, 1, offsetof(struct xdp_md, data)));
	EMIT(LOAD(BPF_W, 3, 1, offsetof(struct xdp_md, data_end)));
	EMIT(MOV(4, 2));
	EMIT(ALU_IMM(BPF_ADD, 4, 42));
	EMIT(IF_BEYOND(4, 3));
	EMIT(LOAD(BPF_H, 5, 2, 12));
	EMIT(UNLESS(5, htons(0x0800)));
	EMIT(LOAD(BPF_B, 5, 2, 23));
	EMIT(UNLESS(5, protocol));
}

static void swap(int size, int a, int b)
{
	EMIT(LOAD(size, 0, 2, a));
	EMIT(LOAD(size, 5, 2, b));
	EMIT(STORE(size, 2, 0, b));
	EMIT(STORE(size, 2, 5, a));
}

/* An echo request becomes the reply: type 8 is 0, and its checksum larger by as much. */
static void answer(void)
{
	EMIT(LOAD(BPF_B, 5, 2, 34));
	EMIT(UNLESS(5, 8));
	swap(BPF_W, 0, 6);
	swap(BPF_H, 4, 10);
	swap(BPF_W, 26, 30);
	EMIT(STORE_IMM(BPF_B, 2, 34, 0));
	EMIT(LOAD(BPF_H, 0, 2, 36));
	EMIT(BE16(0));
	EMIT(ALU_IMM(BPF_ADD, 0, 0x800));
	EMIT(MOV(5, 0));
	EMIT(ALU_IMM(BPF_RSH, 5, 16));
	EMIT(ALU_IMM(BPF_AND, 0, 0xffff));
	EMIT(ADD(0, 5));
	EMIT(BE16(0));
	EMIT(STORE(BPF_H, 2, 0, 36));
	EMIT(ALU_IMM(BPF_MOV, 0, XDP_TX));
	EMIT(EXIT);
}

static void redirect(const char *to, const char *mac)
{
	unsigned char m[6];
	uint32_t front;
	uint16_t back;

	need(sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2, m + 3, m + 4, m + 5) == 6);
	memcpy(&front, m, 4);
	memcpy(&back, m + 4, 2);
	EMIT(STORE_IMM(BPF_W, 2, 0, (int)front));
	EMIT(STORE_IMM(BPF_H, 2, 4, back));
	need(if_nametoindex(to));
	EMIT(ALU_IMM(BPF_MOV, 1, (int)if_nametoindex(to)));
	EMIT(ALU_IMM(BPF_MOV, 2, 0));
	EMIT(CALL(BPF_FUNC_redirect));
	EMIT(EXIT);
}

static void pass(void)
{
	int i;

	for (i = 0; i < n; i++)
		if (code[i].code == (BPF_JMP | BPF_JGT | BPF_X) || code[i].code == (BPF_JMP | BPF_JNE | BPF_K))
			code[i].off = n - i - 1;
	EMIT(ALU_IMM(BPF_MOV, 0, XDP_PASS));
	EMIT(EXIT);
}

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int main(int argc, char **argv)
{
	static char said[65536];
	union bpf_attr load = {}, attach = {};
	char byte;
	int prog;

	need(argc > 3 && if_nametoindex(argv[1]));
	if (!strcmp(argv[3], "drop")) {
		need(argc == 5);
		select_packets(atoi(argv[4]));
		EMIT(ALU_IMM(BPF_MOV, 0, XDP_DROP));
		EMIT(EXIT);
	} else if (!strcmp(argv[3], "redirect")) {
		need(argc == 7);
		select_packets(atoi(argv[4]));
		redirect(argv[5], argv[6]);
	} else {
		select_packets(IPPROTO_ICMP);
		answer();
	}
	pass();

	load.prog_type = BPF_PROG_TYPE_XDP;
	load.insns = (uintptr_t)code;
	load.insn_cnt = n;
	load.license = (uintptr_t)"GPL";
	load.log_buf = (uintptr_t)said;
	load.log_size = sizeof(said);
	load.log_level = 1;
	prog = bpf(BPF_PROG_LOAD, &load);
	if (prog < 0) {
		perror("BPF_PROG_LOAD");
		fputs(said, stderr);
		return 1;
	}
	attach.link_create.prog_fd = prog;
	attach.link_create.target_ifindex = if_nametoindex(argv[1]);
	attach.link_create.attach_type = BPF_XDP;
	attach.link_create.flags = strcmp(argv[2], "native") ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	if (bpf(BPF_LINK_CREATE, &attach) < 0) {
		perror("BPF_LINK_CREATE");
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
