/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_CURRENT_H
#define _ASM_RING3_CURRENT_H

#ifndef __ASSEMBLY__
#include <asm/stack.h>

#define get_current()	(ring3_stack()->task)
#define current		get_current()
#endif

#endif
