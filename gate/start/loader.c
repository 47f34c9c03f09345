// SPDX-License-Identifier: GPL-2.0
/*
 * loader.c - maps a program as the kernel's exec would
 *
 * program_probe() says whether a file can be run here, with execve's errno;
 * the gate before an exec uses it as well, so that a failing execve still returns
 * to its caller. program_resolve() follows #! lines, program_map() maps the
 * ELF file and its interpreter. Past the checks every failure ends the process:
 * after the host's exec there is nothing to return to.
 */
#include "internal.h"

#define SCRIPT_LINE	256	/* BINPRM_BUF_SIZE */
#define SCRIPT_DEPTH	5	/* as binfmt_script: ELOOP beyond */
#define PIE_BASE	0x555555554000UL	/* as the kernel's ELF_ET_DYN_BASE on x86-64 */
#define PIE_RANDOM_BITS	28
#define BRK_RANDOM	(32UL << 20)
#define PHDRS_MAX	128
#define PHDRS_BYTES	(PHDRS_MAX * sizeof(Elf64_Phdr))
#define INTERP_MAX	4096

static long read_at(int fd, void *buf, size_t n, u64 at)
{
	long ret = host_syscall4(__NR_pread64, fd, (long)buf, n, at);

	return ret < 0 ? ret : ret == (long)n ? 0 : -ENOEXEC;
}

/* The checks that need no look into the file. */
static long probe_file(int fd, const char *path, char why[WHY_BYTES])
{
	struct host_statfs fs = { 0 };
	struct stat st;
	long ret = host_syscall2(__NR_fstat, fd, (long)&st);

	if (ret)
		return ret;
	if ((st.st_mode & 0170000) != 0100000)
		return -EACCES;
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

/* n bytes at `at': of what was read of the file's head, or else of the file, at `more'. NULL: -ENOEXEC. */
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

static void forget_elf(struct image_file *f)
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

/* Headers and the interpreter's name of an ELF file, after read_head(); forget_elf() when it went well. */
static long look_at_elf(int fd, const char *path, struct image_file *f, char why[WHY_BYTES])
{
	long ret;

	f->interp = NULL;
	f->more = NULL;
	ret = look_at_headers(fd, path, f, why);
	if (ret)
		forget_elf(f);
	return ret;
}

static long read_elf(int fd, const char *path, struct image_file *f, char why[WHY_BYTES])
{
	long ret = read_head(fd, f);

	return ret ? ret : look_at_elf(fd, path, f, why);
}

/* O_NONBLOCK: a FIFO is refused, not waited for. */
static int open_program(const char *path)
{
	return gate_open_for_exec(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Splits "#! interp arg" in line; arg is "" where there is none. */
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

/* With the errors of load_elf_binary(). Set-id bits mean nothing here. */
static long probe_interpreter_at(int fd)
{
	char why[WHY_BYTES];
	Elf64_Ehdr eh;
	struct stat st;
	long ret = host_syscall2(__NR_fstat, fd, (long)&st);

	if (ret)
		return ret;
	if ((st.st_mode & 0170000) != 0100000)
		return -EACCES;
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
	fd = open_program(path);
	if (fd < 0)
		return fd;
	ret = probe_interpreter_at(fd);
	host_syscall1(__NR_close, fd);
	return ret;
}

static long probe_program(int fd, const char *path, struct image_file *f, char why[WHY_BYTES])
{
	long ret = look_at_elf(fd, path, f, why);

	if (ret)
		return ret;
	if (f->interp) {
		ret = probe_interpreter(f->interp);
		if (ret)
			gate_format(why, WHY_BYTES, "%s needs the interpreter %s, which cannot be run",
				    path, f->interp);
	}
	forget_elf(f);
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
			return -ENOENT;		/* as Linux: its interpreter could not read it */
		if (depth == SCRIPT_DEPTH)
			return -ELOOP;
		sub = open_program(interp);
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

/* probed: program_probe() has been happy with it a moment ago. */
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
		/* argv[0] gives way to: interpreter, its argument, the script's path */
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
		p->fd = open_program(p->path);
		if (p->fd < 0)
			return p->fd;
	}
}

/* ---- mapping ---- */

static u64 round_down(u64 x, u64 align)
{
	return x & ~(align - 1);
}

static int prot_of(u32 flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
	       (flags & PF_X ? PROT_EXEC : 0);
}

/* For the two addresses of a program that are random: its own and its heap's. */
struct chances {
	u64 program, heap;
};

static struct chances chances(void)
{
	struct chances c = { 0 };

	if (!gate.sim && !(host_syscall1(__NR_personality, 0xffffffff) & 0x0040000 /* ADDR_NO_RANDOMIZE */))
		host_syscall3(__NR_getrandom, (long)&c, sizeof(c), 0);
	c.program = (c.program & ((1UL << PIE_RANDOM_BITS) - 1)) << 12;
	c.heap = page_start(c.heap % BRK_RANDOM);
	return c;
}

static void must_map(const char *path, long got, u64 want)
{
	if (HOST_IS_ERR(got))
		gate_die(126, "cannot map %s (error %ld)", path, -got);
	if (want && (u64)got != want)
		gate_die(126, "cannot map %s: its address 0x%lx is taken", path, (unsigned long)want);
}

/*
 * Zeroes what follows the file's bytes in the last page, all of it (ld.so's first malloc counts
 * on that), and maps the rest of bss.
 */
static void map_bss(const char *path, u64 start, u64 end, int prot)
{
	u64 whole = page_align(start);

	if ((prot & PROT_WRITE) && whole > start)
		memset((void *)start, 0, whole - start);
	if (end > whole)
		must_map(path, host_syscall6(__NR_mmap, whole, page_align(end) - whole, prot,
					     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), whole);
}

/* Segments leave no page between them, as those of today's programs: the first, or NULL. */
static const Elf64_Phdr *contiguous(const struct image_file *f)
{
	const Elf64_Phdr *first = NULL, *ph;
	u64 end = 0;

	for (ph = f->ph; ph < f->ph + f->eh.e_phnum; ph++) {
		if (ph->p_type != PT_LOAD || !ph->p_memsz)
			continue;
		if (first ? page_start(ph->p_vaddr) != end : !ph->p_filesz)
			return NULL;
		if (!first)
			first = ph;
		end = page_align(ph->p_vaddr + ph->p_memsz);
	}
	return first;
}

/*
 * Holds the whole range of addresses first, so that the parts stay together; where there is nothing
 * between them, by the first part, which makes one mapping less. Returns where it is.
 */
static u64 map_whole(int fd, const char *path, const Elf64_Phdr *first, u64 at, u64 size, u64 align,
		     bool fixed)
{
	int flags = MAP_PRIVATE | (fixed ? MAP_FIXED_NOREPLACE : 0);
	u64 start;
	long got;

	if (first)
		got = host_syscall6(__NR_mmap, at, size, prot_of(first->p_flags), flags, fd,
				    page_start(first->p_offset));
	else
		got = host_syscall6(__NR_mmap, at, size + align - GATE_PAGE, PROT_NONE,
				    flags | MAP_ANONYMOUS, -1, 0);
	must_map(path, got, fixed ? at : 0);
	start = round_down(got + align - 1, align);
	if (start > (u64)got)
		host_syscall2(__NR_munmap, got, start - got);
	if (got + align - GATE_PAGE > start)
		host_syscall2(__NR_munmap, start + size, got + align - GATE_PAGE - start);
	return start;
}

static bool is_text(const Elf64_Phdr *ph)
{
	return ph->p_type == PT_LOAD && (ph->p_flags & PF_X) && !(ph->p_flags & PF_W);
}

/*
 * Maps all PT_LOADs; returns what to add to the file's addresses. `at`: 0 lets the host choose. `text`:
 * PROT_WRITE where patch_start() will write to it and then take that away.
 */
static u64 map_elf(int fd, const char *path, const struct image_file *f, u64 at, int text)
{
	u64 low = ~0UL, high = 0, align = GATE_PAGE, bias, size;
	bool fixed = f->eh.e_type == ET_EXEC;
	const Elf64_Phdr *first = contiguous(f);
	int i;

	for (i = 0; i < f->eh.e_phnum; i++) {
		const Elf64_Phdr *ph = &f->ph[i];

		if (ph->p_type != PT_LOAD || !ph->p_memsz)
			continue;
		if (page_start(ph->p_vaddr) < low)
			low = page_start(ph->p_vaddr);
		if (ph->p_vaddr + ph->p_memsz > high)
			high = ph->p_vaddr + ph->p_memsz;
		if (!fixed && ph->p_align > align && !(ph->p_align & (ph->p_align - 1)))
			align = ph->p_align;
	}
	if (low >= high || high > RING3_GATE_BASE)
		gate_die(126, "%s has no sensible segments", path);
	size = page_align(high) - low;
	if (align > GATE_PAGE || (first && text && is_text(first)))
		first = NULL;
	bias = map_whole(fd, path, first, fixed ? low : round_down(at, align), size, align, fixed) - low;
	for (i = 0; i < f->eh.e_phnum; i++) {
		const Elf64_Phdr *ph = &f->ph[i];
		u64 addr = ph->p_vaddr + bias, file_end = addr + ph->p_filesz;
		int prot = prot_of(ph->p_flags);

		if (ph->p_type != PT_LOAD || !ph->p_memsz)
			continue;
		if (is_text(ph))
			prot |= text;
		if (ph->p_filesz && ph != first)
			must_map(path, host_syscall6(__NR_mmap, page_start(addr),
						     file_end - page_start(addr), prot,
						     MAP_PRIVATE | MAP_FIXED, fd,
						     page_start(ph->p_offset)), page_start(addr));
		if (ph->p_memsz > ph->p_filesz)
			map_bss(path, ph->p_filesz ? file_end : page_start(addr),
				addr + ph->p_memsz, prot);
	}
	return bias;
}

static void note_layout(struct program *p, const struct image_file *f, u64 bias, u64 heap)
{
	int i;

	p->start_code = ~0UL;
	for (i = 0; i < f->eh.e_phnum; i++) {
		const Elf64_Phdr *ph = &f->ph[i];
		u64 start = ph->p_vaddr + bias, end = start + ph->p_filesz;

		if (ph->p_type == PT_PHDR)
			p->phdr = start;
		if (ph->p_type == PT_GNU_STACK)
			p->exec_stack = ph->p_flags & PF_X;
		if (ph->p_type != PT_LOAD)
			continue;
		if (f->eh.e_phoff >= ph->p_offset &&
		    f->eh.e_phoff < ph->p_offset + ph->p_filesz && !p->phdr)
			p->phdr = f->eh.e_phoff - ph->p_offset + start;
		if (start < p->start_code)
			p->start_code = start;
		if (start > p->start_data)
			p->start_data = start;
		if ((ph->p_flags & PF_X) && end > p->end_code)
			p->end_code = end;
		if (end > p->end_data)
			p->end_data = end;
		if (start + ph->p_memsz > p->brk)
			p->brk = start + ph->p_memsz;
	}
	p->brk = page_align(p->brk) + heap;
	p->phnum = f->eh.e_phnum;
	p->exec_entry = p->entry = f->eh.e_entry + bias;
}

/* Maps what runs first, and leaves its text open where patch_start() will write to it. Returns what map_elf() does. */
static u64 map_first(struct program *p, const struct image_file *f, int fd, const char *path, u64 at,
		     bool interp)
{
	const Elf64_Phdr *text = NULL;
	struct stat st;
	int i, n = 0;
	u64 bias;

	p->has_interp = interp;
	for (i = 0; i < f->eh.e_phnum; i++) {
		if (is_text(&f->ph[i])) {
			text = &f->ph[i];
			n++;
		}
	}
	if (n == 1 && !host_syscall2(__NR_fstat, fd, (long)&st)) {
		p->first.key = (((st.st_dev * 31 + st.st_ino) * 31 + st.st_size) * 31 +
				st.st_mtime) * 1000003 + st.st_mtime_nsec + 1;
		p->first.open = cpuid_knows(p->first.key);
		if (interp)
			p->first.open |= patch_knows(p->first.key);
	}
	bias = map_elf(fd, path, f, at, p->first.open ? PROT_WRITE : 0);
	if (p->first.key) {
		p->first.start = text->p_vaddr + bias;
		p->first.end = p->first.start + text->p_filesz;
	}
	return bias;
}

void program_map(struct program *p)
{
	struct image_file *f = &p->file;
	char why[WHY_BYTES], interp[256];
	struct chances c = chances();
	u64 bias;
	long fd;

	why[0] = 0;
	if (look_at_elf(p->fd, p->path, f, why))
		gate_die(126, "%s: %s", p->path, why[0] ? why : "the file has changed or cannot be read");
	/* Without an interpreter a PIE is most likely one itself (ld.so): anywhere. */
	if (f->interp)
		bias = map_elf(p->fd, p->path, f, PIE_BASE + c.program, 0);
	else
		bias = map_first(p, f, p->fd, p->path, 0, false);
	note_layout(p, f, bias, c.heap);
	if (f->interp) {
		fd = open_program(f->interp);
		gate_format(interp, sizeof(interp), "%s", f->interp);
		forget_elf(f);
		if (fd < 0 || read_elf(fd, interp, f, why))
			gate_die(126, "%s: the interpreter %s cannot be read", p->path, interp);
		p->interp_base = map_first(p, f, fd, interp, 0, true);
		p->entry = f->eh.e_entry + p->interp_base;
		host_syscall1(__NR_close, fd);
	}
	forget_elf(f);
}
