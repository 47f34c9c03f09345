// SPDX-License-Identifier: GPL-2.0
/*
 * plant.c - a fault on request: `ring3_plant=leak` on the kernel's command line
 *
 * lkdtm plants the other kinds of faults that the debug flavour detects (tests/debug), but no leak.
 */
#define pr_fmt(fmt) "ring3: " fmt

#include <linux/init.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>

#define LEAKS		10
#define LEAK_BYTES	300

static bool leak __initdata;

static int __init set_plant(char *what)
{
	if (strcmp(what, "leak"))
		return 0;	/* shown as unknown */
	leak = true;
	return 1;
}
__setup("ring3_plant=", set_plant);

/* Each pointer is overwritten by the next one, and the last one by NULL. */
static noinline void plant_leaks(void)
{
	void *volatile p = NULL;
	int i;

	for (i = 0; i < LEAKS; i++)
		p = kmalloc(LEAK_BYTES, GFP_KERNEL);
	if (!p)
		pr_err("nothing to leak\n");
	p = NULL;
	pr_notice("planted %d leaks of %d bytes\n", LEAKS, LEAK_BYTES);
}

static int __init plant(void)
{
	if (leak)
		plant_leaks();
	return 0;
}
late_initcall(plant);
