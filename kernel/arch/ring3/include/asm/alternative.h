/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_ALTERNATIVE_H
#define _ASM_RING3_ALTERNATIVE_H

#ifndef __ASSEMBLY__
#include <linux/stringify.h>
#endif
#include <asm/asm.h>

/* No instruction is patched by CPU feature: the image is shared text. */
#ifdef CONFIG_SMP
#define LOCK_PREFIX_HERE	""
#define LOCK_PREFIX		"lock; "
#else
#define LOCK_PREFIX_HERE	""
#define LOCK_PREFIX		""
#endif

#define ALTERNATIVE(oldinstr, newinstr, feature)	oldinstr
#define alternative(oldinstr, newinstr, feature)	\
	asm volatile (oldinstr : : : "memory")

#endif
