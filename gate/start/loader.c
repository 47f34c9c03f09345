// SPDX-License-Identifier: GPL-2.0
/*
 * loader.c - maps a program as the kernel's exec would: the ELF file and its interpreter
 *
 * Every failure ends the process: after the host's exec there is no caller to return to. resolve.c has checked
 * before the exec all that can be known then.
 */
#include "start/elf.h"

#define PIE_BASE	0x555555554000UL	/* as the kernel's ELF_ET_DYN_BASE on x86-64 */
#define PIE_RANDOM_BITS	28
#define BRK_RANDOM	(32UL << 20)

static u64 round_down(u64 x, u64 align)
{
	return x & ~(align - 1);
}

static int prot_of(u32 flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
	       (flags & PF_X ? PROT_EXEC : 0);
}

/* For the two random addresses of a program: its own and its heap's. */
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
 * Zeroes the rest of the last page of the file's bytes (ld.so's first malloc relies on that), and maps the rest of
 * bss.
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

/* The first segment if no page is free between the segments, as in today's programs; else NULL. */
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
 * First reserves the whole range of addresses, so that the segments stay together. If there are no gaps, the first
 * segment reserves it, which saves a mapping. Returns the address.
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
 * Maps all PT_LOADs; returns the offset to add to the file's addresses. `at` 0: the host chooses. `text`:
 * PROT_WRITE if patch_start() will write to the text and then remove that permission.
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

/*
 * Maps the file whose code runs first; its text stays writable if patch_start() will write to it. Returns the same
 * as map_elf().
 */
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
	if (elf_look(p->fd, p->path, f, why))
		gate_die(126, "%s: %s", p->path, why[0] ? why : "the file has changed or cannot be read");
	/* A PIE without an interpreter is most likely an interpreter itself (ld.so): any address will do. */
	if (f->interp)
		bias = map_elf(p->fd, p->path, f, PIE_BASE + c.program, 0);
	else
		bias = map_first(p, f, p->fd, p->path, 0, false);
	note_layout(p, f, bias, c.heap);
	if (f->interp) {
		fd = elf_open(f->interp);
		gate_format(interp, sizeof(interp), "%s", f->interp);
		elf_forget(f);
		if (fd < 0 || elf_read(fd, interp, f, why))
			gate_die(126, "%s: the interpreter %s cannot be read", p->path, interp);
		p->interp_base = map_first(p, f, fd, interp, 0, true);
		p->entry = f->eh.e_entry + p->interp_base;
		host_syscall1(__NR_close, fd);
	}
	elf_forget(f);
}
