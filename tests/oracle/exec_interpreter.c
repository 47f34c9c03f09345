// SPDX-License-Identifier: GPL-2.0
/* Programs and scripts whose interpreter is not one: the exec fails, and comes back. */
#include "oracle.h"
#include <elf.h>
#include <stddef.h>
#include <sys/un.h>

static char dir[] = "/tmp/oracle-interp.XXXXXX";

/* A program that names `interp', and has nothing else. */
static void program(const char *interp)
{
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph[2];
		char interp[128];
	} f = {
		.eh = {
			.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
			.e_phoff = sizeof(f.eh), .e_ehsize = sizeof(f.eh),
			.e_phentsize = sizeof(f.ph[0]), .e_phnum = 2,
		},
		.ph = {
			{ .p_type = PT_INTERP, .p_offset = offsetof(typeof(f), interp), .p_filesz = strlen(interp) + 1 },
			{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = sizeof(f), .p_memsz = sizeof(f), .p_align = 4096 },
		},
	};
	int fd = must(open("program", O_CREAT | O_WRONLY | O_TRUNC, 0755));

	strcpy(f.interp, interp);
	must(write(fd, &f, sizeof(f)));
	must(close(fd));
}

static void script(const char *interp)
{
	int fd = must(open("script", O_CREAT | O_WRONLY | O_TRUNC, 0755));

	dprintf(fd, "#!%s\n", interp);
	must(close(fd));
}

static void child(const char *what, const char *path)
{
	int s;

	fflush(stdout);
	if (!must(fork())) {
		alarm(3);
		execl(path, path, NULL);
		say("%s: %s", what, ename(errno));
		fflush(stdout);
		_exit(1);
	}
	must(wait(&s));
	if (!WIFEXITED(s) || WEXITSTATUS(s) != 1)
		say("%s: status %x", what, s);
}

static void make(const char *path, mode_t mode, const void *data, size_t len)
{
	int fd = must(open(path, O_CREAT | O_WRONLY | O_TRUNC, 0755));

	must(write(fd, data, len));
	must(fchmod(fd, mode));
	must(close(fd));
}

static void both(const char *what, const char *interp, bool directly)
{
	char words[128];

	program(interp);
	snprintf(words, sizeof(words), "a program, %s", what);
	child(words, "./program");
	if (!directly)
		return;
	script(interp);
	snprintf(words, sizeof(words), "a script, %s", what);
	child(words, "./script");
	snprintf(words, sizeof(words), "itself, %s", what);
	child(words, interp);
}

int main(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "./socket" };
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_AARCH64, .e_version = EV_CURRENT,
		.e_phoff = sizeof(eh), .e_ehsize = sizeof(eh), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
	};
	char text[512];

	need(mkdtemp(dir));
	must(chdir(dir));
	memset(text, 'x', sizeof(text));
	must(mkfifo("fifo", 0755));
	must(mkdir("dir", 0755));
	must(bind(must(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&name, sizeof(name)));
	make("plain", 0644, "#!/bin/sh\n", 10);
	make("text", 0755, text, sizeof(text));
	make("short", 0755, text, 20);
	make("empty", 0755, text, 0);
	memcpy(text, &eh, sizeof(eh));
	make("other", 0755, text, sizeof(text));
	both("a FIFO", "./fifo", true);
	both("a directory", "./dir", true);
	both("a socket", "./socket", true);
	both("a device", "/dev/null", true);
	both("not executable", "./plain", true);
	both("nothing", "./nothing", true);
	both("text", "./text", false);
	both("a short file", "./short", false);
	both("an empty file", "./empty", false);
	both("for another processor", "./other", false);
	for (const char *all = "fifo\0socket\0plain\0text\0short\0empty\0other\0program\0script\0"; *all; all += strlen(all) + 1)
		unlink(all);
	rmdir("dir");
	rmdir(dir);
	return 0;
}
