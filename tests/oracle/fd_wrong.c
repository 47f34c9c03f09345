// SPDX-License-Identifier: GPL-2.0
/* Socket calls on files and on closed numbers; file calls on sockets. */
#include "oracle.h"
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/vfs.h>

int main(void)
{
	int file = must(open("/dev/null", O_RDWR)), pipes[2], gone = must(dup(0)), s = bound(AF_INET, SOCK_DGRAM);
	int path = must(open("/", O_PATH));
	int all[6];
	char b[16];
	struct stat st;
	struct statfs fs;
	socklen_t len = 16;
	struct msghdr m = { 0 };

	must(pipe(pipes));
	close(gone);
	all[0] = file;
	all[1] = pipes[0];
	all[2] = gone;
	all[3] = -1;
	all[4] = path;
	all[5] = 100000;
	for (int i = 0; i < 6; i++) {
		int fd = all[i];

		say("case %d", i);
		T(listen(fd, 1));
		T(accept(fd, NULL, NULL));
		T(send(fd, "x", 1, 0));
		T(recv(fd, b, 1, MSG_DONTWAIT));
		T(sendmsg(fd, &m, 0));
		T(recvmsg(fd, &m, MSG_DONTWAIT));
		T(shutdown(fd, 0));
		T(getsockname(fd, (void *)b, &len));
		T(setsockopt(fd, SOL_SOCKET, SO_DEBUG, b, 4));
		T(epoll_ctl(fd, EPOLL_CTL_ADD, s, (void *)b));
	}
	say("files' calls on a socket");
	T(lseek(s, 0, SEEK_SET));
	T(ftruncate(s, 0));
	T(fsync(s));
	T(fdatasync(s));
	T(fallocate(s, 0, 0, 1));
	T(posix_fadvise(s, 0, 0, 0));
	T(flock(s, LOCK_EX | LOCK_NB));
	T(fchdir(s));
	T(fchmod(s, 0600));
	T(syscall(SYS_getdents64, s, b, 16));
	T(readahead(s, 0, 1));
	T(fstat(s, &st));
	say("socket %d size %ld links %ld block %ld", S_ISSOCK(st.st_mode), (long)st.st_size,
	    (long)st.st_nlink, (long)st.st_blksize);
	T(fstatfs(s, &fs));
	say("type %#lx", (long)fs.f_type);
	T(mmap(NULL, 4096, PROT_READ, MAP_SHARED, s, 0) == MAP_FAILED ? -1 : 0);
	T(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, s, 0) == MAP_FAILED ? -1 : 0);
	T(openat(s, "x", O_RDONLY));
	T(syncfs(s));
	T(timerfd_settime(s, 0, &(struct itimerspec){}, NULL));
	T(ioctl(s, FIOQSIZE, b));
	return 0;
}
