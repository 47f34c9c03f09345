// SPDX-License-Identifier: GPL-2.0
/*
 * console.c - the kernel log: read by `ring3 log`, or with "ring3_console" on the command line written to the
 * keeper's stderr as it is made
 */
#include <linux/console.h>
#include <linux/init.h>
#include <linux/kmsg_dump.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <asm/ring3.h>
#include "errand.h"

static void console_write(struct console *con, const char *s, unsigned int n)
{
	ring3_console_put(s, n);
}

static struct console ring3_con = {
	.name	= "ring3",
	.write	= console_write,
	.flags	= CON_PRINTBUFFER | CON_ENABLED | CON_ANYTIME,
	.index	= -1,
};

void __init ring3_console_init(void);
void __init ring3_console_init(void)
{
	register_console(&ring3_con);
}

long ring3_sys_log_read(char __user *buf, size_t len, u64 __user *seq)
{
	struct kmsg_dump_iter iter;
	size_t done = 0, n;
	char *line;
	long ret = 0;
	u64 from;

	if (get_user(from, seq))
		return -EFAULT;
	line = kmalloc(1024, GFP_KERNEL);
	if (!line)
		return -ENOMEM;
	kmsg_dump_rewind(&iter);
	if (iter.cur_seq < from)
		iter.cur_seq = from;
	for (;;) {
		u64 at = iter.cur_seq;

		if (!kmsg_dump_get_line(&iter, true, line, 1024, &n))
			break;
		if (done + n > len) {
			iter.cur_seq = at;
			break;
		}
		if (copy_to_user(buf + done, line, n)) {
			ret = -EFAULT;
			break;
		}
		done += n;
	}
	kfree(line);
	if (!ret && put_user(iter.cur_seq, seq))
		ret = -EFAULT;
	return ret ?: done;
}
