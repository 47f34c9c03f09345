// SPDX-License-Identifier: GPL-2.0
/* paths.c - the network's files, by every way there is to them */
#include "t.h"
#include <dirent.h>
#include <sys/uio.h>

static void head(const char *path, int n)
{
	char buf[400];
	int fd = open(path, O_RDONLY), k;

	if (fd < 0) {
		printf("%s: %s\n", path, strerrorname_np(errno));
		return;
	}
	k = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[k > 0 ? k : 0] = 0;
	if (strlen(buf) > (size_t)n)
		buf[n] = 0;
	printf("%s: %s\n", path, buf);
}

int main(void)
{
	struct dirent *d;
	struct stat st;
	char buf[100] = "", own[64];
	int fd, dir, lo_seen = 0;
	DIR *dp;

	head("/proc/net/dev", 20);
	head("/proc/self/net/dev", 20);
	head("//proc/./net/dev", 20);
	snprintf(own, sizeof(own), "/proc/%d/net/dev", getpid());
	T(open(own, O_RDONLY) >= 0);
	head("/proc/net/nosuch", 20);
	head("/proc/sys/net/ipv4/ip_default_ttl", 20);
	T(access("/proc/sys/net/ipv4/ip_forward", W_OK) == 0);
	T(access("/proc/net/tcp", F_OK));
	T(stat("/proc/net", &st));
	T(S_ISDIR(st.st_mode));
	T(lstat("/proc/net", &st));
	T(S_ISLNK(st.st_mode));
	T(readlink("/proc/net", buf, sizeof(buf)));
	printf("%s\n", buf);
	head("/sys/class/net/lo/type", 20);
	head("/sys/class/net/lo/address", 30);
	head("/sys/class/net/lo/../lo/mtu", 30);
	head("/sys/devices/virtual/net/lo/ifindex", 30);
	memset(buf, 0, sizeof(buf));
	T(readlink("/sys/class/net/lo", buf, sizeof(buf)));
	printf("%s\n", buf);
	dp = opendir("/sys/class/net");
	while (dp && (d = readdir(dp)))
		lo_seen += !strcmp(d->d_name, "lo");
	T(lo_seen);
	T(fd = openat(dirfd(dp), "lo/type", O_RDONLY) >= 0);
	T(fstatat(dirfd(dp), "lo", &st, 0));
	T(faccessat(dirfd(dp), "nosuch", F_OK, 0));
	closedir(dp);

	dir = open("/proc/self", O_RDONLY);
	T(openat(dir, "net/dev", O_RDONLY) >= 0);
	T(chdir("/proc/sys/net/ipv4"));
	head("ip_default_ttl", 10);
	T(chdir("/sys/class"));
	head("net/lo/type", 10);
	T(chdir("/"));
	head("proc/net/dev", 20);

	fd = open("/proc/net/dev", O_RDONLY);
	T(lseek(fd, 10, SEEK_SET));
	T(fstat(fd, &st));
	T(st.st_size);
	T(readv(fd, &(struct iovec){ buf, 5 }, 1));
	T(pread(fd, buf, 6, 0));
	buf[6] = 0;
	printf("%s\n", buf);
	T(write(fd, "x", 1));
	T(open("/proc/net/dev", O_RDONLY | O_DIRECTORY));
	T(open("/proc/net/dev", O_WRONLY | O_CREAT | O_EXCL, 0600));
	T(open("/dev/net/tun", O_RDWR) >= 0);
	return 0;
}
