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

#endif
