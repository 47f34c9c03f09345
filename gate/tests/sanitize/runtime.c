// SPDX-License-Identifier: GPL-2.0
/*
 * runtime.c - what AddressSanitizer and UBSan call, for a program that has no libc
 *
 * The gate is compiled as the kernel is for KASAN, so that each access asks one of the functions here.
 * Shadow, one byte for eight, is there for the gate's own range of addresses; what lies elsewhere is
 * the program's or the node's, and not judged. Stacks and global variables get their red zones from
 * the compiler, the heap's from the wrappers below (the linker's --wrap), which also look at what
 * string functions and copies from and to the program do in the gate's memory.
 *
 * A report is a line on stderr and in the file SANITIZE_REPORT; then the process ends with status 99.
 */
#include "../../gate.h"
#include "../../internal.h"

#define SHADOW_OFFSET	0x100000000000UL	/* as in the Makefile */
#define RANGE		(RING3_SPACE_BASE - RING3_GATE_BASE)
#define STATUS		99
#define RED_ZONE	32			/* on both sides of what the heap gives */
#define QUARANTINE	512			/* blocks that are not given again yet */

/* Any value from 0x80 on forbids all eight bytes; the compiler writes f1 to f8 for stacks. */
#define BAD_HEAP	0xfa
#define BAD_FREED	0xfd
#define BAD_GLOBAL	0xf9
#define BAD_STACK_MIN	0xf1
#define BAD_STACK_MAX	0xf8

void planted(const char *what);
void __real_gate_start(u64 *sp) __attribute__((noreturn));
void __real_gate_child_start(void *child) __attribute__((noreturn));
void *__real_gate_alloc(size_t size);
void __real_gate_free(void *p);
long __real_gate_copy_in(void *dst, const void *user, size_t n);
long __real_gate_strncpy_in(char *dst, const void *user, size_t size);
long __real_gate_copy_out(void *user, const void *src, size_t n);
void *__real_memcpy(void *d, const void *s, size_t n);
void *__real_memmove(void *d, const void *s, size_t n);
void *__real_memset(void *d, int c, size_t n);

static bool ready;

/* Reporting, without anything of the gate's that could itself be reported. */

struct line {
	char text[400];
	size_t n;
};

static void put(struct line *l, const char *s)
{
	while (*s && l->n < sizeof(l->text) - 1)
		l->text[l->n++] = *s++;
}

static void put_number(struct line *l, u64 v, u32 base)
{
	char digits[24];
	int n = sizeof(digits) - 1;

	digits[n] = 0;
	do {
		digits[--n] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	put(l, base == 16 ? "0x" : "");
	put(l, digits + n);
}

static void __attribute__((noreturn)) finish(struct line *l)
{
	long fd = host_syscall4(__NR_openat, AT_FDCWD, (long)SANITIZE_REPORT,
				O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	l->text[l->n++] = '\n';
	host_syscall3(__NR_write, 2, (long)l->text, l->n);
	if (fd >= 0)
		host_syscall3(__NR_write, fd, (long)l->text, l->n);
	for (;;)
		host_syscall1(__NR_exit_group, STATUS);
}

/* AddressSanitizer */

static u8 *shadow(u64 at)
{
	return (u8 *)((at >> 3) + SHADOW_OFFSET);
}

static bool judged(u64 at, u64 n)
{
	return ready && at - RING3_GATE_BASE < RANGE && n <= RANGE - (at - RING3_GATE_BASE);
}

static bool byte_is_bad(u64 at)
{
	u8 s = *shadow(at);

	return s && (s >= 0x80 || (at & 7) >= s);
}

static void __attribute__((noreturn)) access_report(u64 at, u64 n, bool write, u64 from, u64 bad)
{
	struct line l = { .n = 0 };
	u8 s = *shadow(bad);

	put(&l, "AddressSanitizer: ");
	/* Where less than eight bytes may be touched, the next byte of shadow tells of what. */
	if (s < 0x80)
		s = *shadow(bad + 8);
	put(&l, s == BAD_FREED ? "use after free" : s == BAD_HEAP ? "heap overflow" :
	    s == BAD_GLOBAL ? "global overflow" :
	    s >= BAD_STACK_MIN && s <= BAD_STACK_MAX ? "stack overflow" : "bad access");
	put(&l, write ? ": write of " : ": read of ");
	put_number(&l, n, 10);
	put(&l, " bytes at ");
	put_number(&l, at, 16);
	put(&l, " from ");
	put_number(&l, from, 16);
	finish(&l);
}

static void check(u64 at, u64 n, bool write, u64 from)
{
	u64 end = at + n;

	if (!n || !judged(at, n))
		return;
	for (u64 p = at; p < end; p = (p | 7) + 1) {
		u64 last = (p | 7) < end - 1 ? (p | 7) : end - 1;

		/* Within eight bytes the good ones come first. */
		if (byte_is_bad(last))
			access_report(at, n, write, from, last);
	}
}

#define CALLER	((u64)__builtin_return_address(0))
#define SIZED(n)								\
	void __asan_load##n##_noabort(u64 at) { check(at, n, false, CALLER); }	\
	void __asan_store##n##_noabort(u64 at) { check(at, n, true, CALLER); }
SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)
SIZED(16)
void __asan_loadN_noabort(u64 at, u64 n) { check(at, n, false, CALLER); }
void __asan_storeN_noabort(u64 at, u64 n) { check(at, n, true, CALLER); }

/* Begins and ends at multiples of eight, but for the end of what is good. */
static void mark(u64 at, u64 n, u8 value)
{
	for (u64 p = at & ~7UL; p < at + n; p += 8)
		*shadow(p) = value;
}

static void allow(u64 at, u64 n)
{
	mark(at, n & ~7UL, 0);
	if (n & 7)
		*shadow(at + n) = n & 7;
}

/* Frames that are left by a jump leave their red zones behind: those above this one. */
static void forget_frames(u64 from, u64 to)
{
	for (u64 p = from & ~7UL; p < to && judged(p, 8); p += 8) {
		u8 *s = shadow(p);

		if (*s >= BAD_STACK_MIN && *s <= BAD_STACK_MAX)
			*s = 0;
	}
}

void __asan_handle_no_return(void)
{
	u64 sp = (u64)__builtin_frame_address(0);

	forget_frames(sp, sp + ALTSTACK_BYTES);
}

/* Stacks are pooled (area.c), and who exits or is replaced by an exec leaves its frames. */
void __wrap_gate_child_start(void *child)
{
	u64 top = (u64)child + sizeof(struct gate_regs) + GATE_PAGE;

	forget_frames(top - 2 * GATE_PAGE - GATE_STACK_BYTES - ALTSTACK_BYTES, top);
	__real_gate_child_start(child);
}

struct global {
	u64 at, size, size_with_zone;
	const char *name, *file;
	u64 dynamic, location, odr;
};

void __asan_register_globals(struct global *g, u64 count)
{
	for (; count--; g++) {
		mark(g->at, g->size_with_zone, BAD_GLOBAL);
		allow(g->at, g->size);
	}
}

void __asan_unregister_globals(struct global *g, u64 count)
{
}

/* The heap */

struct front {			/* in the red zone before what is given */
	u64 size;
	u8 rest[RED_ZONE - sizeof(u64)];
};

static void *quarantine[QUARANTINE];
static u32 quarantine_at;

void *__wrap_gate_alloc(size_t size)
{
	size_t room = (size + 7) & ~7UL;
	struct front *f = __real_gate_alloc(sizeof(*f) + room + RED_ZONE);

	if (!f)
		return NULL;
	/* It may lie anywhere when the gate's range is used up. */
	f->size = size;
	if (judged((u64)f, sizeof(*f) + room + RED_ZONE)) {
		mark((u64)f, sizeof(*f) + room + RED_ZONE, BAD_HEAP);
		allow((u64)(f + 1), size);
	}
	return f + 1;
}

void __wrap_gate_free(void *p)
{
	struct front *f = p;
	u64 whole;

	if (!p)
		return;
	check((u64)p, 1, true, CALLER);		/* given back twice */
	f--;
	whole = sizeof(*f) + ((f->size + 7) & ~7UL) + RED_ZONE;
	if (judged((u64)f, whole))
		mark((u64)f, whole, BAD_FREED);
	p = __atomic_exchange_n(&quarantine[__atomic_fetch_add(&quarantine_at, 1, __ATOMIC_RELAXED) % QUARANTINE],
				f, __ATOMIC_ACQ_REL);
	if (!p)
		return;
	f = p;
	whole = sizeof(*f) + ((f->size + 7) & ~7UL) + RED_ZONE;
	if (judged((u64)f, whole))
		mark((u64)f, whole, 0);
	__real_gate_free(f);
}

/* Accesses that compiled code does not make itself. */

long __wrap_gate_copy_in(void *dst, const void *user, size_t n)
{
	check((u64)dst, n, true, CALLER);
	return __real_gate_copy_in(dst, user, n);
}

long __wrap_gate_strncpy_in(char *dst, const void *user, size_t size)
{
	check((u64)dst, size, true, CALLER);
	return __real_gate_strncpy_in(dst, user, size);
}

long __wrap_gate_copy_out(void *user, const void *src, size_t n)
{
	check((u64)src, n, false, CALLER);
	return __real_gate_copy_out(user, src, n);
}

void *__wrap_memcpy(void *d, const void *s, size_t n)
{
	check((u64)s, n, false, CALLER);
	check((u64)d, n, true, CALLER);
	return __real_memcpy(d, s, n);
}

void *__wrap_memmove(void *d, const void *s, size_t n)
{
	check((u64)s, n, false, CALLER);
	check((u64)d, n, true, CALLER);
	return __real_memmove(d, s, n);
}

void *__wrap_memset(void *d, int c, size_t n)
{
	check((u64)d, n, true, CALLER);
	return __real_memset(d, c, n);
}

/* UBSan: what it hands over begins with where in the source it was. */

struct where {
	const char *file;
	u32 line, column;
};

static void __attribute__((noreturn)) undefined(const struct where *at, const char *what)
{
	struct line l = { .n = 0 };

	put(&l, "UBSan: ");
	put(&l, what);
	put(&l, " at ");
	put(&l, at->file ? at->file : "?");
	put(&l, ":");
	put_number(&l, at->line, 10);
	put(&l, ":");
	put_number(&l, at->column, 10);
	finish(&l);
}

#define UNDEFINED(name, what)							\
	void __ubsan_handle_##name(const struct where *at) { undefined(at, what); }	\
	void __ubsan_handle_##name##_abort(const struct where *at) { undefined(at, what); }
UNDEFINED(add_overflow, "signed overflow of +")
UNDEFINED(sub_overflow, "signed overflow of -")
UNDEFINED(mul_overflow, "signed overflow of *")
UNDEFINED(negate_overflow, "signed overflow of unary -")
UNDEFINED(divrem_overflow, "division")
UNDEFINED(shift_out_of_bounds, "shift")
UNDEFINED(out_of_bounds, "index out of bounds")
UNDEFINED(builtin_unreachable, "unreachable code")
UNDEFINED(missing_return, "no return")
UNDEFINED(vla_bound_not_positive, "length of an array")
UNDEFINED(load_invalid_value, "value that its type lacks")
UNDEFINED(type_mismatch_v1, "null or unfit pointer")
UNDEFINED(nonnull_arg, "null argument")
UNDEFINED(invalid_builtin, "argument of a builtin")
UNDEFINED(pointer_overflow, "pointer overflow")

void __ubsan_handle_nonnull_return_v1(const void *data, const struct where *at)
{
	undefined(at, "null returned");
}

/* Before anything that is instrumented: the shadow, and what global variables have. */

extern void (*const gate_init_start[])(void), (*const gate_init_end[])(void);

void __wrap_gate_start(u64 *sp)
{
	u64 from = (u64)shadow(RING3_GATE_BASE), to = (u64)shadow(RING3_SPACE_BASE);
	char **envp = (char **)(sp + sp[0] + 2);

	if (host_syscall6(__NR_mmap, from, to - from, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != (long)from) {
		static const struct where nowhere = { "no room for the shadow", 0, 0 };

		undefined(&nowhere, "nothing");
	}
	for (void (*const *init)(void) = gate_init_start; init < gate_init_end; init++)
		(*init)();
	ready = true;
	for (; *envp; envp++) {
		const char *name = "GATE_PLANTED=", *at = *envp;

		while (*name && *name == *at)
			name++, at++;
		if (!*name)
			planted(at);
	}
	__real_gate_start(sp);
}
