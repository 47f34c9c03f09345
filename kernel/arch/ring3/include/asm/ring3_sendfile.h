/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SENDFILE_H
#define _ASM_RING3_SENDFILE_H

#include <linux/types.h>

/* RING3_NR_SENDFILE, see include/ring3.abi. */
long ring3_sys_sendfile(int out, int in, s64 pos, u64 count, u32 flags, s64 __user *ugot);

#endif
