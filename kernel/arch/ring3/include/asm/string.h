/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_STRING_H
#define _ASM_RING3_STRING_H

/* arch/ring3/x86_64/memory.S */
#define __HAVE_ARCH_MEMCPY
extern void *memcpy(void *to, const void *from, __kernel_size_t len);
extern void *__memcpy(void *to, const void *from, __kernel_size_t len);
#define __HAVE_ARCH_MEMSET
extern void *memset(void *s, int c, __kernel_size_t n);
extern void *__memset(void *s, int c, __kernel_size_t n);
#define __HAVE_ARCH_MEMMOVE
extern void *memmove(void *dest, const void *src, __kernel_size_t count);
extern void *__memmove(void *dest, const void *src, __kernel_size_t count);

#if defined(CONFIG_KASAN) && !defined(__SANITIZE_ADDRESS__)
/* Code that is not instrumented uses the functions that are not: mm/kasan has those that are. */
#define memcpy(dst, src, len)	__memcpy(dst, src, len)
#define memmove(dst, src, len)	__memmove(dst, src, len)
#define memset(s, c, n)		__memset(s, c, n)
#ifndef __NO_FORTIFY
#define __NO_FORTIFY		/* it names them too */
#endif
#endif

#endif
