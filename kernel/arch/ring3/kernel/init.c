// SPDX-License-Identifier: GPL-2.0
/*
 * init.c - pid 1 of a node
 *
 * The kernel starts /init as usual. Its "binary format" is ring3's own: instead of loading a program it turns pid 1
 * into the task of the keeper's main thread. So no generic file needs a patch.
 */
#include <linux/binfmts.h>
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/init_syscalls.h>
#include <linux/kernel.h>
#include <linux/namei.h>
#include <linux/netdevice.h>
#include <linux/pid.h>
#include <linux/resource.h>
#include <linux/file.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/task_work.h>
#include <linux/utsname.h>
#include <asm/ring3.h>
#include <asm/ring3_grow.h>
#include "../clock/clock.h"


/*
 * Signals are delivered on the host, which knows the program's dispositions. In the node every signal has a handler
 * that is never called, so that none is ignored or fatal before it is dequeued. Only SIGCHLD is ignored, so that
 * children leave no zombies.
 */
static void signals_for_host(void)
{
	struct k_sigaction *ka = current->sighand->action;
	int sig;

	for (sig = 1; sig <= _NSIG; sig++)
		ka[sig - 1].sa.sa_handler = (__force __sighandler_t)2UL;
	ka[SIGCHLD - 1].sa.sa_handler = SIG_IGN;
}

static void __ref mount_or_warn(const char *dev, const char *dir, const char *type)
{
	int err = init_mkdir(dir, 0755);

	if (!err || err == -EEXIST)
		err = init_mount((char *)dev, (char *)dir, (char *)type, 0, NULL);
	if (err)
		pr_warn("mount of %s on %s: error %d\n", type, dir, err);
}

static void __ref become_init(void)
{
	struct ring3_thread *tb = &ring3_region.init_thread;

	/* Its thread belongs to vCPU 0. */
	if (IS_ENABLED(CONFIG_SMP))
		set_cpus_allowed_ptr(current, cpumask_of(0));
	mount_or_warn("proc", "/proc", "proc");
	mount_or_warn("sysfs", "/sys", "sysfs");
	if (IS_ENABLED(CONFIG_DEBUG_FS))
		mount_or_warn("debugfs", "/sys/kernel/debug", "debugfs");
	mount_or_warn("tmpfs", "/run", "ramfs");
	mount_or_warn("cgroup2", "/run/cgroup2", "cgroup2");	/* for ip-vrf(8), see gate/path/path.c */
	mount_or_warn("devtmpfs", "/dev", "devtmpfs");
	mount_or_warn("bpf", "/sys/fs/bpf", "bpf");

	down_write(&uts_sem);
	strscpy(init_uts_ns.name.nodename, ring3_region.node_name[0] ?
		ring3_region.node_name : "node", __NEW_UTS_LEN);
	up_write(&uts_sem);

	ring3_clock_sync_now();
	set_task_comm(current, "keeper");
	signals_for_host();
	if (IS_ENABLED(CONFIG_RING3_SIM))
		current->timer_slack_ns = 0;	/* inherited by the tasks of all programs: sleeps are exact */
	current->signal->flags &= ~SIGNAL_UNKILLABLE;
	/* The host allocates descriptor numbers and enforces the program's limit. */
	current->signal->rlim[RLIMIT_NOFILE].rlim_cur = RING3_FDS_MAX;
	current->signal->rlim[RLIMIT_NOFILE].rlim_max = RING3_FDS_MAX;
	current->signal->rlim[RLIMIT_NPROC].rlim_cur = RLIM_INFINITY;
	current->signal->rlim[RLIMIT_NPROC].rlim_max = RLIM_INFINITY;

	tb->self = (unsigned long)tb;
	tb->region = (unsigned long)&ring3_region;
	tb->task = (unsigned long)current;
	tb->image_private[R3T_LINK] = (unsigned long)ring3_threads;
	ring3_threads = tb;
	current->thread.tb = tb;
	current->thread.proc = (struct ring3_proc *)tb->proc;

	ring3_trim();
	host_store(&ring3_region.state, RING3_UP);
	ring3_host_futex_wake(&ring3_region.state, INT_MAX);

	/* boot() is the keeper's first call; this is its result. */
	tb->ret = 0;
	if (ring3_driver == tb) {
		r3t_call(tb) = R3_CALL_DONE;
	} else {
		r3t_call(tb) = R3_CALL_NONE;
		ring3_thread_notify(tb, RING3_WORD_DONE);
	}
	ring3_task_main(tb);
}

static int load_init(struct linux_binprm *bprm)
{
	if (strcmp(bprm->filename, "/init") || current->pid != 1)
		return -ENOEXEC;
	/* Work that the path walk has deferred to the return to user mode. */
	if (task_work_pending(current))
		task_work_run();
	become_init();
	return 0;
}

static struct linux_binfmt ring3_format = {
	.load_binary = load_init,
};

/* Fallback tunnels (sit0, gre0, ...) are not shown, as on a plain host, which has not loaded their modules. */
static int __init no_fallback_tunnels(void)
{
	sysctl_fb_tunnels_only_for_init_net = 2;
	return 0;
}
early_initcall(no_fallback_tunnels);

static int __init ring3_init(void)
{
	struct file *file;

	file = filp_open("/init", O_CREAT | O_WRONLY, 0755);
	if (IS_ERR(file))
		return PTR_ERR(file);
	/* execve() refuses a file that is open for writing. */
	fput(file);
	flush_delayed_fput();
	task_work_run();
	register_binfmt(&ring3_format);
	return 0;
}
late_initcall(ring3_init);
