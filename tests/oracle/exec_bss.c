// SPDX-License-Identifier: GPL-2.0
/* A program with a segment that has nothing of the file and begins within a page. */
#include "oracle.h"
#include <elf.h>

static const struct {
	Elf64_Ehdr e;
	Elf64_Phdr p[2];
	unsigned char code[64];
} program = {
	.e = {
		.e_ident = "\177ELF\2\1\1", .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = 1,
		.e_entry = 0x400000 + sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr),
		.e_phoff = sizeof(Elf64_Ehdr), .e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2,
	},
	.p = {
		{ PT_LOAD, PF_R | PF_X, 0, 0x400000, 0x400000, 0x200, 0x200, 0x1000 },
		{ PT_LOAD, PF_R | PF_W, 0x200, 0x401200, 0x401200, 0, 0x100, 0x1000 },
	},
	.code = {
		0xc7, 4, 0x25, 0, 0x12, 0x40, 0, 7, 0, 0, 0,	/* movl $7, 0x401200 */
		0x8b, 0x3c, 0x25, 0, 0x12, 0x40, 0,		/* movl 0x401200, %edi */
		0xb8, 60, 0, 0, 0, 0x0f, 5,			/* exit */
	},
};

int main(void)
{
	char name[] = "/tmp/oracle-bss.XXXXXX";
	int fd = must(mkstemp(name)), s;

	must(write(fd, &program, sizeof(program)));
	must(ftruncate(fd, 0x200));
	must(fchmod(fd, 0755));
	close(fd);
	if (!must(fork())) {
		execl(name, name, NULL);
		_exit(99);
	}
	must(wait(&s));
	unlink(name);
	say("%s %d", WIFEXITED(s) ? "exit" : "signal", WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s));
	return 0;
}
