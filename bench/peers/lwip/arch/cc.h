/* SPDX-License-Identifier: GPL-2.0 */
/* What lwIP wants to know about the compiler. */
#ifndef ARCH_CC_H
#define ARCH_CC_H

#include <stdio.h>
#include <stdlib.h>

#define LWIP_RAND()		((u32_t)random())
#define LWIP_PLATFORM_DIAG(x)	do { printf x; } while (0)
#define LWIP_PLATFORM_ASSERT(x)	do { fprintf(stderr, "lwip: %s\n", x); abort(); } while (0)

#endif
