/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_UACCESS_H
#define _ASM_RING3_UACCESS_H

/*
 * Every touch of a program's memory goes through here (DESIGN rule 2).
 *
 * Kernel and program share one address space, so a copy is a copy; two things
 * are special. The memory belongs to the process of the task's own thread: when
 * another process drives, ring3_user_reach() has that thread take over first. And
 * a bad pointer faults as SIGSEGV on the host, whose handler (in the gate) asks
 * the image's exception table where to go on.
 */
#include <linux/compiler.h>
#include <linux/sched.h>
#include <asm/asm.h>
#include <asm/extable.h>
#include <asm/irqwords.h>
#include <ring3/ring3_space.h>

bool ring3_user_reach(void);

/* A pointer into any node's region is not a program's memory. */
static inline int ring3_access_ok(unsigned long addr, unsigned long size)
{
	unsigned long end = addr + size;

	if (unlikely(end < addr || end > TASK_SIZE_MAX))
		return 0;
	return end <= RING3_SPACE_BASE || addr >= RING3_SPACE_END;
}
#define __access_ok(ptr, size)	ring3_access_ok((unsigned long)(ptr), (size))

static __always_inline bool ring3_user_begin(void)
{
	if (likely(ring3_driving == (unsigned long)current->thread.tb))
		return true;
	return ring3_user_reach();
}

#define __ring3_get(x, ptr, insn, size, reg, err)			\
	asm volatile("1:	" insn " %[mem],%" reg "[val]\n"	\
		     "2:\n"						\
		     ".pushsection .text.fixup,\"ax\"\n"		\
		     "3:	mov %[efault],%[ret]\n"			\
		     "	xor %k[val],%k[val]\n"				\
		     "	jmp 2b\n"					\
		     ".popsection\n"					\
		     _ASM_EXTABLE_UA(1b, 3b)				\
		     : [ret] "+r" (err), [val] "=q" (x)			\
		     : [mem] "m" (*(const size __force *)(ptr)),	\
		       [efault] "i" (-EFAULT))

#define __ring3_put(x, ptr, insn, size, reg, err)			\
	asm volatile("1:	" insn " %" reg "[val],%[mem]\n"	\
		     "2:\n"						\
		     ".pushsection .text.fixup,\"ax\"\n"		\
		     "3:	mov %[efault],%[ret]\n"			\
		     "	jmp 2b\n"					\
		     ".popsection\n"					\
		     _ASM_EXTABLE_UA(1b, 3b)				\
		     : [ret] "+r" (err), [mem] "=m" (*(size __force *)(ptr)) \
		     : [val] "q" (x), [efault] "i" (-EFAULT))

static __always_inline int __get_user_fn(size_t size, const void __user *from, void *to)
{
	int err = 0;

	if (!ring3_user_begin())
		return -EFAULT;
	switch (size) {
	case 1: { u8 v; __ring3_get(v, from, "movb", u8, "b", err); *(u8 *)to = v; break; }
	case 2: { u16 v; __ring3_get(v, from, "movw", u16, "w", err); *(u16 *)to = v; break; }
	case 4: { u32 v; __ring3_get(v, from, "movl", u32, "k", err); *(u32 *)to = v; break; }
	case 8: { u64 v; __ring3_get(v, from, "movq", u64, "q", err); *(u64 *)to = v; break; }
	default: BUILD_BUG();
	}
	return err;
}
#define __get_user_fn(sz, u, k)	__get_user_fn(sz, u, k)

static __always_inline int __put_user_fn(size_t size, void __user *to, void *from)
{
	int err = 0;

	if (!ring3_user_begin())
		return -EFAULT;
	switch (size) {
	case 1: __ring3_put(*(u8 *)from, to, "movb", u8, "b", err); break;
	case 2: __ring3_put(*(u16 *)from, to, "movw", u16, "w", err); break;
	case 4: __ring3_put(*(u32 *)from, to, "movl", u32, "k", err); break;
	case 8: __ring3_put(*(u64 *)from, to, "movq", u64, "q", err); break;
	default: BUILD_BUG();
	}
	return err;
}
#define __put_user_fn(sz, u, k)	__put_user_fn(sz, u, k)

/* Returns the number of bytes not copied. arch/ring3/x86_64/usercopy.S */
unsigned long ring3_copy(void *to, const void *from, unsigned long n);
unsigned long ring3_clear(void *to, unsigned long n);

static __always_inline unsigned long __must_check
raw_copy_from_user(void *to, const void __user *from, unsigned long n)
{
	if (!ring3_user_begin())
		return n;
	return ring3_copy(to, (const void __force *)from, n);
}

static __always_inline unsigned long __must_check
raw_copy_to_user(void __user *to, const void *from, unsigned long n)
{
	if (!ring3_user_begin())
		return n;
	return ring3_copy((void __force *)to, from, n);
}

static inline unsigned long __must_check __clear_user(void __user *to, unsigned long n)
{
	if (!ring3_user_begin())
		return n;
	return ring3_clear((void __force *)to, n);
}
#define __clear_user __clear_user

/* Kernel addresses that may be bad (bpf_probe_read and the like). */
#define __get_kernel_nofault(dst, src, type, err_label)			\
do {									\
	int __kr_err = 0;						\
	type __kr_v;							\
	if (ring3_copy(&__kr_v, (const void *)(src), sizeof(type)))	\
		__kr_err = -EFAULT;					\
	if (__kr_err)							\
		goto err_label;						\
	*(type *)(dst) = __kr_v;					\
} while (0)

#define __put_kernel_nofault(dst, src, type, err_label)			\
do {									\
	if (ring3_copy((void *)(dst), (const void *)(src), sizeof(type)))	\
		goto err_label;						\
} while (0)

#define INLINE_COPY_FROM_USER
#define INLINE_COPY_TO_USER

#include <asm-generic/uaccess.h>

#endif
