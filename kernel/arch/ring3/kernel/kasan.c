// SPDX-License-Identifier: GPL-2.0
/* kasan.c - the shadow memory is part of the region, so nothing is allocated: asm/kasan.h */
#include <linux/init.h>
#include <linux/kasan.h>
#include <linux/printk.h>
#include <linux/sched/task.h>
#include <asm/ring3.h>

/* The shadow of all memory outside of the region; an access of 16 bytes reads two. */
const u8 ring3_kasan_outside[2];

void __init kasan_init(void)
{
	/* Reports begin here. */
	init_task.kasan_depth = 0;
	pr_info("KernelAddressSanitizer initialized: %llu MiB of shadow\n",
		(u64)KASAN_SHADOW_SIZE >> 20);
}
