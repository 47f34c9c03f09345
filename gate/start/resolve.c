// SPDX-License-Identifier: GPL-2.0
/*
 * resolve.c - finds the file that is run in the end, and checks it
 *
 * program_probe() checks whether a file can be run, with execve's errno; the gate calls it before an exec as well,
 * so that a failing execve can return to its caller. program_resolve() follows #! lines. loader.c maps the result.
 */
#include "start/elf.h"

#define SCRIPT_LINE	256	/* BINPRM_BUF_SIZE */
#define SCRIPT_DEPTH	5	/* as binfmt_script: ELOOP beyond */
#define PHDRS_MAX	128
#define PHDRS_BYTES	(PHDRS_MAX * sizeof(Elf64_Phdr))
#define INTERP_MAX	4096

static long read_at(int fd, void *buf, size_t n, u64 at)
{
	long ret = host_syscall4(__NR_pread64, fd, (long)buf, n, at);

	return ret < 0 ? ret : ret == (long)n ? 0 : -ENOEXEC;
}

static long probe_regular(int fd, struct stat *st)
{
	long ret = host_syscall2(__NR_fstat, fd, (long)st);

	if (ret)
		return ret;
	return (st->st_mode & 0170000) == 0100000 ? 0 : -EACCES;
}

/* The checks that do not read the file. */
static long probe_file(int fd, const char *path, char why[WHY_BYTES])
{
	struct host_statfs fs = { 0 };
	struct stat st;
	long ret = probe_regular(fd, &st);

	if (ret)
		return ret;
	if (!host_syscall2(__NR_fstatfs, fd, (long)&fs) && (fs.flags & HOST_NOEXEC))
		return -EACCES;
	ret = host_syscall4(__NR_faccessat2, fd, (long)"", 1 /* X_OK */,
			    AT_EMPTY_PATH | AT_EACCESS);
	if (ret == -ENOSYS)
		ret = 0;
	if (ret)
		return ret;
	if ((((st.st_mode & S_ISUID) && st.st_uid != host_syscall0(__NR_geteuid)) ||
	     ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	      st.st_gid != host_syscall0(__NR_getegid))) &&
	    !(fs.flags & HOST_NOSUID) && !cred_host_ignores_set_id(&st)) {
		gate_format(why, WHY_BYTES,
			    "%s is set-user-ID or set-group-ID; such programs do not run on a node", path);
		return -EPERM;
	}
	return 0;
}

static long probe_elf(int fd, const char *path, const Elf64_Ehdr *eh, char why[WHY_BYTES])
{
	const char *what = NULL;

	(void)fd;
	if (eh->e_ident[EI_CLASS] == ELFCLASS32)
		what = eh->e_machine == EM_X86_64 ? "an x32 program" : "a 32-bit program";
	else if (eh->e_machine != EM_X86_64)
		what = "a program for another processor";
	if (what) {
		gate_format(why, WHY_BYTES, "%s is %s; ring3 runs 64-bit x86-64 programs only",
			    path, what);
		return -ENOEXEC;
	}
	if ((eh->e_type != ET_EXEC && eh->e_type != ET_DYN) ||
	    eh->e_phentsize != sizeof(Elf64_Phdr) || !eh->e_phnum || eh->e_phnum > PHDRS_MAX)
		return -ENOEXEC;
	return 0;
}

/* Returns n bytes of the file at `at': from the head if that has them, else read into `more'. NULL: -ENOEXEC. */
static const void *take(int fd, struct image_file *f, long have, size_t n, u64 at, size_t more)
{
	if (at <= (u64)have && n <= have - at)
		return f->head + at;
	if (!f->more)
		f->more = gate_pages(PHDRS_BYTES + INTERP_MAX);
	if (!f->more || read_at(fd, f->more + more, n, at))
		return NULL;
	return f->more + more;
}

void elf_forget(struct image_file *f)
{
	if (f->more)
		gate_pages_free(f->more, PHDRS_BYTES + INTERP_MAX);
	f->more = NULL;
}

static long read_head(int fd, struct image_file *f)
{
	f->have = host_syscall4(__NR_pread64, fd, (long)f->head, sizeof(f->head), 0);
	return f->have < 0 ? f->have : 0;
}

static long look_at_headers(int fd, const char *path, struct image_file *f, char why[WHY_BYTES])
{
	const Elf64_Phdr *ph;
	long have = f->have, ret;

	if (have < (long)sizeof(f->eh))
		return -ENOEXEC;
	memcpy(&f->eh, f->head, sizeof(f->eh));
	if (memcmp(f->eh.e_ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	ret = probe_elf(fd, path, &f->eh, why);
	if (ret)
		return ret;
	f->ph = take(fd, f, f->eh.e_phoff & 7 ? 0 : have, f->eh.e_phnum * sizeof(f->ph[0]),
		     f->eh.e_phoff, 0);
	if (!f->ph)
		return -ENOEXEC;
	for (ph = f->ph; ph < f->ph + f->eh.e_phnum; ph++) {
		if (ph->p_type != PT_INTERP || f->interp)
			continue;
		if (ph->p_filesz < 2 || ph->p_filesz > INTERP_MAX)
			return -ENOEXEC;
		f->interp = take(fd, f, have, ph->p_filesz, ph->p_offset, PHDRS_BYTES);
		if (!f->interp || f->interp[ph->p_filesz - 1])
			return -ENOEXEC;
	}
	return 0;
}

/* Checks the ELF headers and reads the interpreter's name, after read_head(); call elf_forget() if it succeeds. */
long elf_look(int fd, const char *path, struct image_file *f, char why[WHY_BYTES])
{
	long ret;

	f->interp = NULL;
	f->more = NULL;
	ret = look_at_headers(fd, path, f, why);
	if (ret)
		elf_forget(f);
	return ret;
}

long elf_read(int fd, const char *path, struct image_file *f, char why[WHY_BYTES])
{
	long ret = read_head(fd, f);

	return ret ? ret : elf_look(fd, path, f, why);
}

/* O_NONBLOCK: a FIFO fails at once. */
int elf_open(const char *path)
{
	return gate_open_for_exec(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Splits "#! interp arg" in line; arg is "" if there is none. */
static long parse_script(char *line, char **interp, char **arg)
{
	char *p = line + 2, *end;

	end = strchr(p, '\n');
	if (!end)
		end = p + strlen(p);
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = 0;
	while (*p == ' ' || *p == '\t')
		p++;
	if (!*p)
		return -ENOEXEC;
	*interp = p;
	while (*p && *p != ' ' && *p != '\t')
		p++;
	if (*p)
		*p++ = 0;
	while (*p == ' ' || *p == '\t')
		p++;
	*arg = p;
	return 0;
}

static bool is_script(const struct image_file *f)
{
	return f->have >= 2 && f->head[0] == '#' && f->head[1] == '!';
}

static char *first_line(struct image_file *f)
{
	f->head[f->have < SCRIPT_LINE ? f->have : SCRIPT_LINE] = 0;
	return f->head;
}

/* Errors as of load_elf_binary(). Set-id bits are ignored. */
static long probe_interpreter_at(int fd)
{
	char why[WHY_BYTES];
	struct stat st;
	Elf64_Ehdr eh;
	long ret = probe_regular(fd, &st);

	if (ret)
		return ret;
	ret = host_syscall4(__NR_pread64, fd, (long)&eh, sizeof(eh), 0);
	if (ret != sizeof(eh))
		return ret < 0 ? ret : -EIO;
	return memcmp(eh.e_ident, ELFMAG, SELFMAG) || probe_elf(fd, "", &eh, why) ? -ELIBBAD : 0;
}

static long probe_interpreter(const char *path)
{
	long ret = host_syscall4(__NR_faccessat2, AT_FDCWD, (long)path, 5 /* R_OK | X_OK */, AT_EACCESS);
	int fd;

	if (ret && ret != -ENOSYS)
		return ret;
	fd = elf_open(path);
	if (fd < 0)
		return fd;
	ret = probe_interpreter_at(fd);
	host_syscall1(__NR_close, fd);
	return ret;
}

static long probe_program(int fd, const char *path, struct image_file *f, char why[WHY_BYTES])
{
	long ret = elf_look(fd, path, f, why);

	if (ret)
		return ret;
	if (f->interp) {
		ret = probe_interpreter(f->interp);
		if (ret)
			gate_format(why, WHY_BYTES, "%s needs the interpreter %s, which cannot be run",
				    path, f->interp);
	}
	elf_forget(f);
	return ret;
}

static long probe_depth(int fd, const char *path, bool closes, char why[WHY_BYTES], int depth)
{
	long ret = probe_file(fd, path, why);
	char *interp, *arg;
	struct image_file f;
	int sub;

	if (!ret)
		ret = read_head(fd, &f);
	if (ret)
		return ret;
	if (is_script(&f)) {
		ret = parse_script(first_line(&f), &interp, &arg);
		if (ret)
			return ret;
		if (closes)
			return -ENOENT;		/* as on Linux: its interpreter could not read it */
		if (depth == SCRIPT_DEPTH)
			return -ELOOP;
		sub = elf_open(interp);
		if (sub < 0)
			return sub;
		ret = probe_depth(sub, interp, false, why, depth + 1);
		host_syscall1(__NR_close, sub);
		return ret;
	}
	return probe_program(fd, path, &f, why);
}

long program_probe(int fd, const char *path, bool closes, char why[WHY_BYTES])
{
	why[0] = 0;
	return probe_depth(fd, path, closes, why, 0);
}

static char *copy_string(const char *s)
{
	char *p = gate_alloc(strlen(s) + 1);

	if (!p)
		gate_die(125, "out of memory");
	return memcpy(p, s, strlen(s) + 1);
}

/* probed: program_probe() has just accepted the file. */
long program_resolve(struct program *p, bool probed, char why[WHY_BYTES])
{
	long ret = probed ? 0 : program_probe(p->fd, p->path, false, why);
	char *interp, *arg, **argv;

	if (ret)
		return ret;
	for (;;) {
		int extra, i;

		ret = read_head(p->fd, &p->file);
		if (ret || !is_script(&p->file))
			return ret;
		ret = parse_script(first_line(&p->file), &interp, &arg);
		if (ret)
			return ret;
		/* argv[0] is replaced by: interpreter, its argument, the script's path */
		extra = *arg ? 3 : 2;
		argv = gate_alloc((p->argc + extra + 1) * sizeof(*argv));
		if (!argv)
			return -ENOMEM;
		argv[0] = copy_string(interp);
		if (*arg)
			argv[1] = copy_string(arg);
		argv[extra - 1] = (char *)p->path;
		if (p->execfn && p->path == p->execfn)
			argv[extra - 1] = copy_string(p->execfn);
		for (i = 1; i < p->argc; i++)
			argv[extra - 1 + i] = p->argv[i];
		p->argc = p->argc ? p->argc + extra - 1 : extra;
		p->argv = argv;
		p->path = argv[0];
		host_syscall1(__NR_close, p->fd);
		p->fd = elf_open(p->path);
		if (p->fd < 0)
			return p->fd;
	}
}
