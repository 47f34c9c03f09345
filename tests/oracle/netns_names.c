// SPDX-License-Identifier: GPL-2.0
/* The steps of ip-netns(8): names in /run/netns, and a /sys for the network inside. */
#include "rtnl.h"
#include <dirent.h>
#include <sys/mount.h>
#include <sys/statfs.h>

static void list(const char *dir)
{
	struct dirent **d;
	int i, total = scandir(dir, &d, NULL, alphasort), n = 0;

	if (total < 0) {
		say("%s: %s", dir, ename(errno));
		return;
	}
	for (i = 0; i < total; i++) {
		/* Modules of the host put files of their own among the links. */
		if (d[i]->d_name[0] != '.' && strcmp(d[i]->d_name, "bonding_masters")) {
			say("%s: %s", dir, d[i]->d_name);
			n++;
		}
		free(d[i]);
	}
	free(d);
	say("%s: %d entries", dir, n);
}

int main(void)
{
	struct statfs st;
	int old, fd;

	/* Nothing of this is to be seen outside. */
	must(unshare(CLONE_NEWNS));
	must(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	must(mount("run", "/run", "tmpfs", 0, NULL));
	list("/run/netns");
	T(mkdir("/run/netns", 0755));
	T(mkdir("/run/netns", 0755));
	T(mount("", "/run/netns", "none", MS_REC | MS_SHARED, NULL));
	T(mount("/run/netns", "/run/netns", "none", MS_BIND | MS_REC, NULL));
	T(mount("", "/run/netns", "none", MS_REC | MS_SHARED, NULL));

	/* add */
	fd = T(open("/run/netns/blue", O_RDONLY | O_CREAT | O_EXCL, 0) >= 0);
	T(open("/run/netns/blue", O_RDONLY | O_CREAT | O_EXCL, 0));
	old = own_netns();
	T(unshare(CLONE_NEWNET));
	T(mount("/proc/self/ns/net", "/run/netns/blue", "none", MS_BIND, NULL));
	T(rtnl_veth("va", "vb", IFLA_NET_NS_FD, old));
	T(setns(old, CLONE_NEWNET));
	list("/run/netns");
	list("/var/run/netns/");
	say("links %s", links());
	must(statfs("/run/netns/blue", &st));
	N(st.f_type == 0x6e736673);	/* NSFS_MAGIC */

	/* exec */
	fd = must(open("/run/netns/blue", O_RDONLY | O_CLOEXEC));
	say("another %d", !same_netns(fd, old));
	T(rtnl_move("vb", IFLA_NET_NS_FD, fd));
	T(setns(fd, CLONE_NEWNET));
	say("links %s", links());
	T(unshare(CLONE_NEWNS));
	T(mount("", "/", "none", MS_REC | MS_SLAVE, NULL));
	T(umount2("/sys", MNT_DETACH));
	T(mount("blue", "/sys", "sysfs", 0, NULL));
	list("/sys/class/net");
	T(setns(old, CLONE_NEWNET));
	list("/sys/class/net");

	/* del */
	T(rmdir("/run/netns"));
	T(umount2("/run/netns/blue", MNT_DETACH));
	T(umount2("/run/netns/blue", MNT_DETACH));
	T(unlink("/run/netns/blue"));
	T(unlink("/run/netns/blue"));
	list("/run/netns");
	T(open("/run/netns/blue", O_RDONLY));
	return 0;
}
