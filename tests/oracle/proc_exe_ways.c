// SPDX-License-Identifier: GPL-2.0
/* /proc/self/exe is the program by all ways that lead there: calls, folders, threads, other processes. */
#include "oracle.h"
#include <linux/openat2.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/xattr.h>
#include <utime.h>

static struct stat own;

static void same(const char *how, int fd)
{
	struct stat st;

	if (fd < 0) {
		say("%s: %s", how, ename(errno));
		return;
	}
	must(fstat(fd, &st));
	say("%s: %s", how, st.st_dev == own.st_dev && st.st_ino == own.st_ino ? "the program" :
	    S_ISLNK(st.st_mode) ? "a link" : "another file");
	close(fd);
}

static void same_stat(const char *how, int ret, const struct stat *st)
{
	if (ret)
		say("%s: %s", how, ename(errno));
	else
		say("%s: %s", how, st->st_dev == own.st_dev && st->st_ino == own.st_ino ? "the program" : "another file");
}

static void same_text(const char *how, long n, char *text, const char *want)
{
	text[n > 0 ? n : 0] = 0;
	say("%s: %s", how, n < 0 ? ename(errno) : !strncmp(text, want, n) && (n == 10 || !want[n]) ? "its name" : "another name");
}

static int openat2_with(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags, .resolve = resolve };

	return syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static void handles(int dir, const char *path, int flags)
{
	struct { struct file_handle h; unsigned char b[128]; } a = { .h.handle_bytes = 128 }, b = a;
	char name[4096] = "";
	int id;

	must(readlink("/proc/self/exe", name, sizeof(name) - 1));
	if (name_to_handle_at(dir, path, &a.h, &id, flags) || name_to_handle_at(AT_FDCWD, name, &b.h, &id, 0))
		say("name_to_handle_at: %s", ename(errno));
	else
		say("name_to_handle_at: %s", memcmp(&a, &b, sizeof(a)) ? "another file" : "the program");
}

static void mounts(const char *there)
{
	T(mount("/proc/self/exe", there, "", MS_BIND, ""));
	same("mounted", open(there, O_RDONLY));
	T(umount2(there, MNT_DETACH));
	must(chdir("/proc/self"));
	T(mount("exe", there, "", MS_BIND, ""));
	same("mounted from there", open(there, O_RDONLY));
	T(umount2(there, MNT_DETACH));
}

static void *in_thread(void *arg)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%ld/exe", getpid(), syscall(SYS_gettid));
	same("by a thread's folder", open(path, O_RDONLY));
	same("thread-self", open("/proc/thread-self/exe", O_RDONLY));
	return arg;
}

int main(int argc, char **argv)
{
	char name[4096] = "", text[4096], path[64], dir[] = "/tmp/oracle-exe.XXXXXX", there[128];
	int self = must(open("/proc/self", O_RDONLY | O_DIRECTORY)), proc = must(open("/proc", O_PATH)), fd, i, s;
	struct stat st;
	struct statx sx;
	pthread_t t;
	pid_t pid;

	alarm(30);
	must(readlink("/proc/self/exe", name, sizeof(name) - 1));
	must(stat(name, &own));
	if (argc == 2) {
		say("executed %s", argv[1]);
		return 0;
	}
	if (argc == 3) {
		mounts(argv[2]);
		return 0;
	}

	same("openat2", openat2_with(AT_FDCWD, "/proc/self/exe", O_RDONLY, 0));
	same("openat2 O_PATH", openat2_with(self, "exe", O_PATH, 0));
	same("openat2 O_NOFOLLOW", openat2_with(self, "exe", O_PATH | O_NOFOLLOW, 0));
	same("openat2 NO_MAGICLINKS", openat2_with(self, "exe", O_RDONLY, RESOLVE_NO_MAGICLINKS));
	same("openat2 NO_SYMLINKS", openat2_with(self, "exe", O_RDONLY, RESOLVE_NO_SYMLINKS));
	same("openat2 BENEATH", openat2_with(self, "exe", O_RDONLY, RESOLVE_BENEATH));
	same("openat2 IN_ROOT", openat2_with(self, "exe", O_RDONLY, RESOLVE_IN_ROOT));
	same("openat2 NO_XDEV", openat2_with(self, "exe", O_RDONLY, RESOLVE_NO_XDEV));
	same("open O_PATH", open("/proc/self/exe", O_PATH));
	same("open O_NOFOLLOW", open("/proc/self/exe", O_PATH | O_NOFOLLOW));
	same("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/proc/self/exe", 0));
	same("open_tree, from a folder", syscall(SYS_open_tree, self, "exe", 0));
	same("open_tree NOFOLLOW", syscall(SYS_open_tree, self, "exe", AT_SYMLINK_NOFOLLOW));
	same("openat", openat(self, "exe", O_RDONLY));
	same("openat, more of it", openat(proc, "self/exe", O_RDONLY));
	same("openat, dots", openat(self, "./../self/task/../exe", O_RDONLY));
	same("double slash", open("/proc//self/exe", O_RDONLY));
	same("a slash behind", open("/proc/self/exe/", O_RDONLY));
	snprintf(path, sizeof(path), "/proc/%d/exe", getpid());
	same("by number", open(path, O_RDONLY));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/exe", getpid(), getpid());
	same("by the first thread's number", open(path, O_RDONLY));
	must(pthread_create(&t, NULL, in_thread, NULL));
	pthread_join(t, NULL);

	same_stat("fstatat", fstatat(self, "exe", &st, 0), &st);
	say("fstatat NOFOLLOW: %d", !fstatat(self, "exe", &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode));
	s = statx(self, "exe", 0, STATX_INO, &sx);
	say("statx: %s", s ? ename(errno) : sx.stx_ino == own.st_ino ? "the program" : "another file");
	handles(AT_FDCWD, "/proc/self/exe", AT_SYMLINK_FOLLOW);
	handles(self, "exe", AT_SYMLINK_FOLLOW);
	T(faccessat(self, "exe", X_OK, 0));

	fd = must(open("/proc/self/exe", O_PATH | O_NOFOLLOW));
	same_text("readlinkat, a link's own", readlinkat(fd, "", text, sizeof(text) - 1), text, name);
	close(fd);
	same_text("readlinkat", readlinkat(self, "exe", text, sizeof(text) - 1), text, name);
	same_text("readlink by the thread's number", readlink(path, text, sizeof(text) - 1), text, name);
	same_text("readlink, little room", readlinkat(self, "exe", text, 10), text, name);

	must(chdir("/proc/self"));
	same("from there", open("exe", O_RDONLY));
	same_stat("stat from there", stat("exe", &st), &st);
	same_text("readlink from there", readlink("exe", text, sizeof(text) - 1), text, name);
	fd = inotify_init();
	must(inotify_add_watch(fd, "exe", IN_OPEN));
	close(must(open(name, O_RDONLY)));
	say("inotify: %s", read(fd, text, sizeof(text)) > 0 ? "the program was opened" : "?");
	must(chdir("/"));

	pid = must(fork());
	if (!pid) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d", pid);
	fd = must(open(path, O_PATH));
	same("another's, by its folder", openat(fd, "exe", O_RDONLY));
	same_text("readlinkat of another's", readlinkat(fd, "exe", text, sizeof(text) - 1), text, name);
	snprintf(path, sizeof(path), "%d/task/%d/exe", pid, pid);
	same("another's, by its thread", openat2_with(proc, path, O_RDONLY, 0));
	close(fd);
	kill(pid, SIGKILL);
	must(waitpid(pid, &s, 0));

	must(mkdtemp(dir) ? 0 : -1);
	snprintf(there, sizeof(there), "%s/linked", dir);
	if (linkat(AT_FDCWD, "/proc/self/exe", AT_FDCWD, there, AT_SYMLINK_FOLLOW) && errno == EXDEV)
		say("linkat: the program");	/* as the host says: on another file system than /tmp */
	else
		same("linkat", open(there, O_RDONLY));
	unlink(there);
	snprintf(there, sizeof(there), "%s/bound", dir);
	close(must(open(there, O_CREAT | O_WRONLY, 0600)));
	fflush(stdout);
	if (!must(fork())) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			skip("no mount namespace");
		/* The running program is of the new namespace only after an exec. */
		execl(name, "x", "mount", there, NULL);
		_exit(1);
	}
	must(wait(&s));
	unlink(there);
	rmdir(dir);

	for (i = 0; i < 3; i++) {
		fflush(stdout);
		if (!must(fork())) {
			must(fchdir(self));
			if (i == 0)
				syscall(SYS_execveat, proc, "self/exe", (char *[]){ "x", "from a folder", NULL }, environ, 0);
			else if (i == 1)
				execl("exe", "x", "from there", NULL);
			else
				fexecve(must(openat2_with(proc, "thread-self/exe", O_RDONLY | O_CLOEXEC, 0)),
					(char *[]){ "x", "by its descriptor", NULL }, environ);
			say("%s", ename(errno));
			fflush(stdout);
			_exit(1);
		}
		must(wait(&s));
		N(WEXITSTATUS(s));
	}
	return 0;
}
