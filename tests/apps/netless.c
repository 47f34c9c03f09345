// SPDX-License-Identifier: GPL-2.0
/*
 * netless PROGRAM [ARGUMENT]... - runs a program for which the host has no network
 *
 * socket() and socketpair() fail with EXFULL, which no socket has, for each family that is a node's (gate/fd/sock.c). So
 * what works is not served by the host.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_VSOCK, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_ALG, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXFULL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (argc < 2)
		return 2;
	/* As root, without no_new_privs, which the program would see. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("netless: seccomp");
		return 1;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
