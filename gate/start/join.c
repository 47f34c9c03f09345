// SPDX-License-Identifier: GPL-2.0
/*
 * join.c - joins a node (struct ring3_join_request)
 *
 * A new program: one message each way over the node's socket; the reply carries descriptors. After an exec: the
 * descriptors are still at their reserved numbers, and the head of the region has all that the reply said.
 */
#include "internal.h"
#include "tuning.h"
#include <linux/if_xdp.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/un.h>

#define REGION_PROT	(PROT_READ | PROT_WRITE)
#define HOST_SOCK_SEQPACKET	5
#define HOST_SOL_SOCKET		1
#define HOST_SCM_RIGHTS		1
#define HOST_SO_PEERCRED	17
#define FDS_BEFORE_PORTS	2	/* the region, the socket to the keeper */
#ifndef MADV_DONTDUMP
#define MADV_DONTDUMP	16	/* asm-generic/mman-common.h */
#endif
#define HOST_MSG_CMSG_CLOEXEC	0x40000000

static void map_at(u64 at, u64 size, int prot, int fd, u64 offset)
{
	long p = host_syscall6(__NR_mmap, at, size, prot, MAP_SHARED | MAP_FIXED_NOREPLACE, fd,
			       offset);

	if (p == -ENOMEM)
		gate_die(125, "cannot map %lu MiB of the node's memory below this limit of address space (ulimit -v): raise it, or make the node smaller with --mem",
			 (unsigned long)(size >> 20));
	if ((u64)p != at)
		gate_die(125, "cannot map the node's memory at 0x%lx (error %ld)",
			 (unsigned long)at, HOST_IS_ERR(p) ? -p : 0L);
}

static void map_region(u64 base, u64 size, u64 text_start, u64 text_end)
{
	int fd = gate_fd(GATE_FD_REGION);
	struct ring3_region *region;

	map_at(base, text_start, REGION_PROT, fd, 0);
	map_at(base + text_start, text_end - text_start, PROT_READ | PROT_EXEC, fd, text_start);
	map_at(base + text_end, size - text_end, REGION_PROT, fd, text_end);
	/*
	 * The kernel patches its own branches through this mapping, in whichever process it does so. Made now:
	 * later it could be refused.
	 */
	map_at(base + RING3_ALIAS_OFFSET + text_start, text_end - text_start, REGION_PROT, fd, text_start);
	/* A core file would contain all of it, and the host would allocate each page for that. */
	host_syscall3(__NR_madvise, base, size, MADV_DONTDUMP);
	host_syscall3(__NR_madvise, base + RING3_ALIAS_OFFSET + text_start, text_end - text_start, MADV_DONTDUMP);
	region = (struct ring3_region *)base;
	gate.region = region;
	gate.sim = region->flavour == RING3_FLAVOUR_SIM;
	gate.text_start = base + text_start;
	gate.text_end = base + text_end;
	gate.enter = base + region->enter;
	gate.fixup = (void *)(base + region->fixup);
}

/*
 * The rings of a removed interface can't be mapped any more. The port is useless then, but the node is not: the
 * kernel finds zeroed pages, and sees that they are not its rings.
 */
static void map_xdp(u64 at, int fd)
{
	static const struct {
		u32 at, size;
		u64 offset;
	} rings[] = {
		{ RING3_XDP_RX, RING3_XDP_RXTX_BYTES, XDP_PGOFF_RX_RING },
		{ RING3_XDP_TX, RING3_XDP_RXTX_BYTES, XDP_PGOFF_TX_RING },
		{ RING3_XDP_FILL, RING3_XDP_UMEM_BYTES, XDP_UMEM_PGOFF_FILL_RING },
		{ RING3_XDP_COMPLETION, RING3_XDP_UMEM_BYTES, XDP_UMEM_PGOFF_COMPLETION_RING },
	};
	int i, flags = MAP_SHARED | MAP_FIXED_NOREPLACE;

	for (i = 0; i < RING3_XDP_RINGS; i++) {
		u64 to = at + rings[i].at * RING3_XDP_STRIDE;
		long p = host_syscall6(__NR_mmap, to, rings[i].size, REGION_PROT, flags, fd,
				       rings[i].offset);

		if (p == -EBUSY)
			p = host_syscall6(__NR_mmap, to, rings[i].size, REGION_PROT,
					  flags | MAP_ANONYMOUS, -1, 0);
		if ((u64)p != to)
			gate_die(125, "cannot map the rings of an xdp port (error %ld)",
				 HOST_IS_ERR(p) ? -p : 0L);
	}
}

/* Maps a port's memory: a link's file, or the rings of an AF_XDP socket. */
static void map_port(u32 index, int fd)
{
	u64 at = (u64)gate.region + RING3_LINK_OFFSET + index * RING3_LINK_STRIDE;
	struct stat st;

	if (host_syscall2(__NR_fstat, fd, (long)&st))
		gate_die(125, "port %u came without its memory", index);
	if ((st.st_mode & S_IFMT) == S_IFSOCK)
		map_xdp(at, fd);
	else
		map_at(at, page_align(st.st_size), REGION_PROT, fd, 0);
	gate.links |= 1UL << index;
}

static void check_up(const char *name)
{
	u32 state = READ_ONCE(gate.region->state);

	if (state == RING3_POISONED)
		gate_die(125, "node %s has failed (%s): take it down and up again", name,
			 gate.region->poison);
	/* A background child executes a program while its node ends: not an error. */
	if (state == RING3_DOWN)
		gate_die(125, "node %s was taken down", name);
	if (state != RING3_UP)
		gate_die(125, "node %s is not up", name);
}

/* A sandboxed program may not connect: the keeper, its parent, has left it one end of a socket pair ("fd:N"). */
#define JOIN_FD		"fd:"

/* It was there when the command looked for it, and the program's parent may be on it. */
static void __attribute__((noreturn)) die_gone(const char *path, long ret)
{
	gate_die(125, "the node at %s has just ended, or never was (error %ld): `ring3 ls' says why one ended", path, -ret);
}

static bool is_given(const char *path)
{
	return !strncmp(path, JOIN_FD, sizeof(JOIN_FD) - 1);
}

static long connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = 1 /* AF_UNIX */ };
	long fd, ret;

	if (is_given(path)) {
		const char *end;

		return gate_strtou(path + sizeof(JOIN_FD) - 1, 10, &end);
	}
	if (strlen(path) >= sizeof(addr.sun_path))
		gate_die(125, "%s: the path of the node's socket is too long", path);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = host_syscall3(__NR_socket, 1, HOST_SOCK_SEQPACKET | O_CLOEXEC, 0);
	if (fd < 0)
		gate_die(125, "cannot make a unix socket (error %ld)", -fd);
	ret = host_syscall3(__NR_connect, fd, (long)&addr, sizeof(addr));
	if (ret == -ECONNREFUSED || ret == -ENOENT)
		die_gone(path, ret);
	if (ret)
		gate_die(125, "no node answers at %s (error %ld): is it up? `ring3 ls' shows them",
			 path, -ret);
	return fd;
}

/* A stopped keeper answers when it is continued: tells the user, and waits. */
static void wait_for_keeper(int sock)
{
	struct pollfd fd = { .fd = sock, .events = POLLIN };
	struct { s32 pid; u32 uid, gid; } peer;
	u32 len = sizeof(peer);
	bool said = false;
	char state;

	if (host_syscall5(__NR_getsockopt, sock, HOST_SOL_SOCKET, HOST_SO_PEERCRED, (long)&peer, (long)&len))
		return;
	for (;;) {
		struct timespec turn = { .tv_nsec = JOIN_LOOK_NS };	/* the host writes the remaining time here */

		if (host_syscall5(__NR_ppoll, (long)&fd, 1, (long)&turn, 0, 8))
			return;
		state = process_state(peer.pid);
		if (said || (state != 'T' && state != 't'))
			continue;
		gate_warn("the node's process %d is stopped: `kill -CONT %d' lets it go on, `ring3 down' ends it; still waiting",
			  peer.pid, peer.pid);
		said = true;
	}
}

/* Returns the number of descriptors. -ETIMEDOUT: the request came too late for the keeper, which takes another. */
static int receive(const char *path, int sock, struct ring3_join_reply *reply,
		   int fds[FDS_BEFORE_PORTS + RING3_PORTS_MAX])
{
	union {
		struct host_cmsghdr head;
		char space[sizeof(struct host_cmsghdr) + (FDS_BEFORE_PORTS + RING3_PORTS_MAX + 1) * 4];
	} control;
	struct iovec iov = { .iov_base = reply, .iov_len = sizeof(*reply) };
	struct host_msghdr msg = {
		.iov = &iov, .iovlen = 1,
		.control = &control, .controllen = sizeof(control),
	};
	long n = host_syscall3(__NR_recvmsg, sock, (long)&msg, HOST_MSG_CMSG_CLOEXEC);
	int count = 0;

	/* The keeper ends, and has or has not taken the request. */
	if (!n || n == -ECONNRESET)
		die_gone(path, n);
	if (n < (long)offsetof(struct ring3_join_reply, message[sizeof(reply->message)]) || reply->magic != RING3_JOIN_MAGIC)
		gate_die(125, "the node gave no sensible answer (%ld bytes): is it of this version of ring3?",
			 n);
	/* These fields are at the same offsets in every version. */
	if (reply->status == -ETIMEDOUT && !is_given(path))
		return -ETIMEDOUT;
	if (reply->status) {
		reply->message[sizeof(reply->message) - 1] = 0;
		gate_die(125, "%s", reply->message);
	}
	if (reply->abi != RING3_ABI || n != sizeof(*reply))
		gate_die(125, "the node has another contract than this gate (%x, not %x): build both from one source with `make', then take the node down and up",
			 reply->abi, RING3_ABI);
	if (msg.controllen >= sizeof(control.head) && control.head.level == HOST_SOL_SOCKET &&
	    control.head.type == HOST_SCM_RIGHTS)
		count = (control.head.len - sizeof(control.head)) / 4;
	if (count > FDS_BEFORE_PORTS + RING3_PORTS_MAX)
		count = FDS_BEFORE_PORTS + RING3_PORTS_MAX;
	memcpy(fds, &control.head + 1, count * 4);
	return count;
}

static void keep(int fd, int slot)
{
	long ret = gate_fd_keep(fd, slot);

	if (ret < 0)
		gate_die(125, "cannot keep descriptor %d open (error %ld)", gate_fd(slot), -ret);
}

/*
 * With kernel.yama.ptrace_scope=1 a process may be traced by its ancestors and by whom it names; the keeper's
 * descendants count as the keeper, and so does the adopter. A child has to say it again.
 */
void node_let_trace(void)
{
	if (READ_ONCE(gate.region->tracer))
		gate.yama = !host_syscall2(__NR_prctl, PR_SET_PTRACER, gate.region->keeper_pid);
}

struct ring3_thread *node_join(const char *path, u64 magic)
{
	struct ring3_join_request request = { .magic = magic, .abi = RING3_ABI };
	struct ring3_join_reply reply;
	int fds[FDS_BEFORE_PORTS + RING3_PORTS_MAX];
	struct ring3_proc *proc;
	u32 i, windows = 0;
	struct ring3_thread *t;
	long sock, ret;
	struct limits_room room;

	if (!path)
		gate_die(125, RING3_ENV_NODE " is not set: use `ring3 run' or `ring3 exec'");
	request.pid = host_syscall0(__NR_getpid);
	do {
		sock = connect_to(path);
		ret = host_syscall6(__NR_sendto, sock, (long)&request, sizeof(request), 0x4000, 0, 0);
		/* A keeper that has closed may have said why before. */
		if (ret != sizeof(request) && ret != -EPIPE && ret != -ECONNRESET)
			gate_die(125, "cannot speak to the node at %s (error %ld)", path, -ret);
		wait_for_keeper(sock);
		ret = receive(path, sock, &reply, fds);
		host_syscall1(__NR_close, sock);
	} while (ret == -ETIMEDOUT);
	if (reply.nports > RING3_PORTS_MAX || ret != (long)reply.nports + FDS_BEFORE_PORTS)
		gate_die(125, "the node sent %ld descriptors for %u ports", ret, reply.nports);
	if (reply.base < RING3_SPACE_BASE || reply.base + RING3_SLOT_SIZE > RING3_SPACE_END)
		gate_die(125, "the node's address 0x%lx is outside ring3's range",
			 (unsigned long)reply.base);

	keep(fds[0], GATE_FD_REGION);
	keep(fds[1], GATE_FD_KEEPER);
	for (i = 0; i < reply.nports; i++)
		windows += reply.ports[i].kind == RING3_PORT_LINK || reply.ports[i].kind == RING3_PORT_XDP;
	limits_room(reply.size, reply.text_end - reply.text_start, windows, &room);
	map_region(reply.base, reply.size, reply.text_start, reply.text_end);
	check_up(reply.node);
	node_let_trace();
	t = (struct ring3_thread *)reply.thread;
	proc = (struct ring3_proc *)t->proc;
	limits_joined(proc, &room);
	for (i = 0; i < RING3_PORTS_MAX; i++)
		proc->port_fd[i] = -1;
	for (i = 0; i < reply.nports; i++) {
		u32 index = reply.ports[i].index;

		if (index >= RING3_PORTS_MAX)
			gate_die(125, "the node has a port of number %u", index);
		keep(fds[FDS_BEFORE_PORTS + i], GATE_FD_PORT + index);
		if (reply.ports[i].kind == RING3_PORT_LINK || reply.ports[i].kind == RING3_PORT_XDP)
			map_port(index, gate_fd(GATE_FD_PORT + index));
		if (reply.ports[i].kind != RING3_PORT_LINK)
			proc->port_fd[index] = gate_fd(GATE_FD_PORT + index);
	}
	return t;
}

/* A word of the region's head; copying the whole struct would touch 66 pages. */
#define HEAD_WORDS	(offsetof(struct ring3_region, tsc_khz) / 8)
#define HEAD(head, field)	((head)[offsetof(struct ring3_region, field) / 8])

struct ring3_thread *node_inherit(u64 thread, u64 links)
{
	u64 head[HEAD_WORDS];
	u32 i;

	if (host_syscall4(__NR_pread64, gate_fd(GATE_FD_REGION), (long)head, sizeof(head), 0) !=
	    sizeof(head))
		gate_die(125, "the node's memory did not come through exec");
	map_region(HEAD(head, base), HEAD(head, size), HEAD(head, text_start), HEAD(head, text_end));
	check_up(gate.region->node_name);
	node_let_trace();
	for (i = 0; i < RING3_PORTS_MAX; i++)
		if (links >> i & 1)
			map_port(i, gate_fd(GATE_FD_PORT + i));
	return (struct ring3_thread *)thread;
}
