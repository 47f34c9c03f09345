// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * sample - in which layer of the network stack the machine's time goes
 *
 *	sample IMAGE GATE PROGRAM [ARGUMENT...]
 *
 * While PROGRAM runs, every CPU is asked RATE times a second where it is. The host's
 * kernel and a node's are the same source, so a function's name tells its layer for both:
 * the table below. The program's output is passed on; where it says "trips N", the time
 * of each layer is added, in ns for each of the N: all CPUs together, waiting included.
 *
 * With the variable SAMPLE_LIST, "LAYER FUNCTION" of each sample is added to that file.
 *
 * Probe points in the code would be exact, but one costs more than a layer takes: a
 * breakpoint is a trap of a microsecond, and the host can't patch the text of a node, which
 * is shared memory. Asking now and then costs the same wherever the answer lies.
 */
#include "wire.h"
#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define RATE		10000		/* Hz, of each CPU */
#define RING_PAGES	256		/* of samples, for each CPU; a power of two */
#define CPUS_MAX	256
#define SAMPLES_MAX	(1 << 21)
#define NODES_MAX	256

enum layer {
	PROGRAM, ENTRY, SOCKET, TRANSPORT, IP, DEVICE, DRIVER, RECEIVE, MEMORY, WAKE, WAIT, OTHER,
	LAYERS
};
static const char *const names[LAYERS] = {
	"program", "entry", "socket", "transport", "ip", "device", "driver", "receive", "memory",
	"wake", "wait", "other",
};

/* The longest beginning of a function's name decides. */
static const struct {
	const char *begin;
	enum layer layer;
} layers[] = {
	{ "entry_SYSCALL", ENTRY }, { "do_syscall_64", ENTRY }, { "syscall_", ENTRY },
	{ "x64_sys_call", ENTRY }, { "__x64_sys", ENTRY }, { "ring3_enter", ENTRY },
	{ "ring3_exit", ENTRY }, { "ring3_task_main", ENTRY }, { "ring3_service", ENTRY },
	{ "exit_to_user", ENTRY }, { "irqentry_", ENTRY },
	{ "__rseq", ENTRY }, { "rseq", ENTRY }, { "asm_", ENTRY },

	{ "__sys_send", SOCKET }, { "__sys_recv", SOCKET }, { "sock", SOCKET },
	{ "__sock", SOCKET }, { "sk_", SOCKET }, { "__sk_", SOCKET }, { "lock_sock", SOCKET },
	{ "release_sock", SOCKET }, { "inet_send", SOCKET }, { "inet_recv", SOCKET },
	{ "move_addr", SOCKET }, { "fdget", SOCKET }, { "__fget", SOCKET }, { "fget", SOCKET },
	{ "fput", SOCKET }, { "import_", SOCKET }, { "security_socket", SOCKET },
	{ "__get_user", SOCKET }, { "__put_user", SOCKET }, { "ksys_", SOCKET },
	{ "__import", SOCKET }, { "security_sock", SOCKET },
	{ "vfs_", SOCKET }, { "do_iter_readv", DRIVER }, { "do_sys_poll", DRIVER }, { "____sys", SOCKET }, { "___sys", SOCKET },

	{ "udp", TRANSPORT }, { "__udp", TRANSPORT }, { "tcp", TRANSPORT },
	{ "__tcp", TRANSPORT }, { "__skb_recv_udp", TRANSPORT }, { "skb_consume_udp", TRANSPORT },
	{ "first_packet_length", TRANSPORT }, { "__inet_lookup", TRANSPORT },
	{ "inet_csk", TRANSPORT }, { "__skb_try_recv", TRANSPORT }, { "csum_", TRANSPORT },
	{ "__skb_checksum", TRANSPORT }, { "skb_checksum", TRANSPORT },

	{ "ip_", IP }, { "__ip_", IP }, { "fib_", IP }, { "__fib", IP }, { "inet_", IP },
	{ "__inet", IP }, { "ipv4_", IP }, { "rt_", IP }, { "dst_", IP }, { "nf_", IP },
	{ "ip4_", IP }, { "icmp", IP }, { "raw_", IP },

	{ "dev_", DEVICE }, { "__dev_", DEVICE }, { "neigh", DEVICE }, { "eth_", DEVICE },
	{ "validate_xmit", DEVICE }, { "sch_", DEVICE }, { "pfifo", DEVICE }, { "qdisc", DEVICE },
	{ "__qdisc", DEVICE }, { "noop_", DEVICE }, { "netdev_", DEVICE }, { "netif_skb", DEVICE },

	{ "veth", DRIVER }, { "tun_", DRIVER }, { "tap_", DRIVER }, { "ring3_link", DRIVER },
	{ "ring3_net", DRIVER }, { "ring3_port", DRIVER }, { "r3", DRIVER }, { "link_", DRIVER },
	{ "ring3_tap", DRIVER }, { "xmit_", DRIVER }, { "loopback", DRIVER },

	{ "netif_rx", RECEIVE }, { "__netif", RECEIVE }, { "netif_receive", RECEIVE },
	{ "napi", RECEIVE }, { "__napi", RECEIVE }, { "net_rx", RECEIVE }, { "process_backlog", RECEIVE },
	{ "enqueue_to_backlog", RECEIVE }, { "gro_", RECEIVE }, { "dev_gro", RECEIVE },
	{ "skb_gro", RECEIVE }, { "inet_gro", RECEIVE }, { "udp_gro", RECEIVE },
	{ "handle_softirqs", RECEIVE }, { "__do_softirq", RECEIVE }, { "do_softirq", RECEIVE },
	{ "__local_bh", RECEIVE }, { "__raise_softirq", RECEIVE }, { "raise_softirq", RECEIVE },
	{ "net_tx", RECEIVE }, { "__udp4_gro", RECEIVE },

	{ "kmem_", MEMORY }, { "kmalloc", MEMORY }, { "__kmalloc", MEMORY }, { "kfree", MEMORY },
	{ "__alloc_skb", MEMORY }, { "alloc_skb", MEMORY }, { "skb_", MEMORY }, { "__skb", MEMORY },
	{ "consume_skb", MEMORY }, { "__consume", MEMORY }, { "memcpy", MEMORY }, { "memset", MEMORY },
	{ "memmove", MEMORY }, { "copy", MEMORY }, { "_copy", MEMORY }, { "__copy", MEMORY },
	{ "rep_", MEMORY }, { "page_", MEMORY }, { "__alloc_pages", MEMORY }, { "free_", MEMORY },
	{ "__slab", MEMORY }, { "___slab", MEMORY }, { "__memcg", MEMORY }, { "obj_cgroup", MEMORY },
	{ "napi_consume", MEMORY }, { "napi_alloc", MEMORY }, { "__build_skb", MEMORY },
	{ "build_skb", MEMORY }, { "simple_copy", MEMORY }, { "__check_object", MEMORY },
	{ "ring3_copy", MEMORY }, { "ring3_rx_copy", MEMORY }, { "__virt_addr_valid", MEMORY },
	{ "refill_", MEMORY }, { "get_page", MEMORY }, { "__free", MEMORY },

	{ "try_to_wake", WAKE }, { "ttwu", WAKE }, { "__wake", WAKE }, { "wake_", WAKE },
	{ "autoremove_wake", WAKE }, { "receiver_wake", WAKE }, { "default_wake", WAKE },
	{ "sock_def_readable", WAKE }, { "ep_", WAKE }, { "enqueue_", WAKE }, { "dequeue_", WAKE },
	{ "select_task", WAKE }, { "select_idle", WAKE }, { "schedule", WAKE }, { "__schedule", WAKE },
	{ "pick_", WAKE }, { "__pick", WAKE }, { "put_prev", WAKE }, { "set_next", WAKE },
	{ "update_", WAKE }, { "__update", WAKE }, { "finish_task", WAKE }, { "__switch_to", WAKE },
	{ "switch_", WAKE }, { "prepare_to_wait", WAKE }, { "finish_wait", WAKE },
	{ "__skb_wait", WAKE }, { "futex", WAKE }, { "__futex", WAKE }, { "resched", WAKE },
	{ "native_smp_send", WAKE }, { "ct_", WAKE }, { "tick_", WAKE }, { "hrtimer", WAKE },
	{ "__hrtimer", WAKE }, { "sched_", WAKE }, { "x2apic", WAKE }, { "native_write_msr", WAKE },
	/* Where interrupts are on again a sample comes that was due before: mostly a wake-up's. */
	{ "_raw_spin_unlock_irq", WAKE }, { "ring3_host_syscall", WAKE },
	{ "place_", WAKE }, { "avg_", WAKE }, { "reweight", WAKE }, { "psi_", WAKE },
	{ "flush_smp", WAKE }, { "nohz", WAKE }, { "get_nohz", WAKE }, { "menu_", WAKE },
	{ "available_idle", WAKE }, { "do_idle", WAKE }, { "cpuidle", WAKE }, { "do_futex", WAKE },

	{ "default_idle", WAIT }, { "pv_native_safe_halt", WAIT }, { "native_safe_halt", WAIT },
	{ "acpi_", WAIT }, { "cpu_idle_poll", WAIT }, { "haltpoll", WAIT }, { "poll_idle", WAIT },
	{ "arch_cpu_idle", WAIT }, { "ring3_idle", WAIT }, { "host_poll", WAIT },
	{ "ring3_poll", WAIT }, { "ring3_spin", WAIT }, { "ring3_vcpu", WAIT },
	{ "host_acquire", WAIT }, { "ring3_clock", WAIT }, { "clock_read", WAIT },
	{ "do_sched_yield", WAIT }, { "__x64_sys_sched_yield", WAIT }, { "yield_task", WAIT },
	{ "default_idle_call", WAIT }, { "mwait", WAIT }, { "intel_idle", WAIT },
};

struct symbol {
	uint64_t at;
	char *name;
};

struct table {
	struct symbol *of;
	size_t n, max;
};

static struct {
	uint64_t ip;
	uint32_t pid, tid;
} samples[SAMPLES_MAX];
static size_t taken;
static int lost;	/* whether the rings were too small */

static struct node {
	uint64_t from, to;	/* the region's addresses */
} nodes[NODES_MAX];
static int node_count;

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Lines "ADDRESS TYPE NAME", as of nm and /proc/kallsyms; functions only. */
static struct table read_symbols(FILE *f, const char *what)
{
	struct table t = { 0 };
	char line[512], type, name[256];
	unsigned long at;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %c %255s", &at, &type, name) != 3 || tolower(type) != 't')
			continue;
		if (t.n == t.max) {
			t.max = t.max ? 2 * t.max : 4096;
			t.of = realloc(t.of, t.max * sizeof(*t.of));
			if (!t.of)
				die("realloc");
		}
		t.of[t.n++] = (struct symbol){ at, strdup(name) };
	}
	if (!t.n || !t.of[t.n - 1].at) {
		fprintf(stderr, "%s: no symbols to be read\n", what);
		exit(1);
	}
	qsort(t.of, t.n, sizeof(*t.of), by_address);
	return t;
}

static struct table symbols_of(const char *program)
{
	char command[512];
	struct table t;
	FILE *f;

	snprintf(command, sizeof(command), "nm '%s'", program);
	f = popen(command, "r");
	t = read_symbols(f, program);
	pclose(f);
	return t;
}

/* The function that holds an address; NULL before the first. */
static const char *function(const struct table *t, uint64_t at)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (t->of[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? t->of[low - 1].name : NULL;
}

static enum layer layer_of(const char *name)
{
	enum layer found = OTHER;
	size_t best = 0;

	for (size_t i = 0; name && i < sizeof(layers) / sizeof(layers[0]); i++) {
		size_t n = strlen(layers[i].begin);

		if (n > best && !strncmp(name, layers[i].begin, n)) {
			best = n;
			found = layers[i].layer;
		}
	}
	return found;
}

static struct node *node_at(uint64_t at)
{
	for (int i = 0; i < node_count; i++)
		if (at >= nodes[i].from && at <= nodes[i].to)
			return &nodes[i];
	return NULL;
}

/* Adds what a process maps of a node's region; the parts of one follow each other. */
static void add_maps(FILE *maps)
{
	char line[512];

	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		struct node *n;

		if (!strstr(line, "/memfd:ring3:") || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		n = node_at(from);
		if (n && to > n->to)
			n->to = to;
		else if (!n && node_count < NODES_MAX)
			nodes[node_count++] = (struct node){ from, to };
	}
}

/* Where the regions of nodes lie, by the processes that have them. */
static void find_nodes(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	char path[300];
	FILE *f;

	while (d && (e = readdir(d))) {
		if (!isdigit(e->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/maps", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		add_maps(f);
		fclose(f);
	}
	if (d)
		closedir(d);
}

static struct perf_event_mmap_page *open_cpu(int cpu)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NS / RATE,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
	};
	int fd = syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	void *ring;

	if (fd < 0)
		die("perf_event_open");
	ring = mmap(NULL, (RING_PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		die("mmap of perf's ring");
	return ring;
}

/* Whether a process takes part: a program of the bench, a keeper, or the host's own part. */
static int takes_part(uint32_t pid)
{
	static const char *const known[] = { "pingpong", "ring3", "ksoftirqd" };
	static unsigned char seen[1 << 22];	/* 1: takes part, 2: does not */
	char path[64], comm[32] = "";
	FILE *f;

	if (!pid)
		return 1;
	if (pid >= sizeof(seen))
		return 0;
	if (seen[pid])
		return seen[pid] == 1;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "r");
	if (f && !fgets(comm, sizeof(comm), f))
		comm[0] = 0;
	if (f)
		fclose(f);
	seen[pid] = 2;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strncmp(comm, known[i], strlen(known[i])))
			seen[pid] = 1;
	return seen[pid] == 1;
}

/* Takes what is in the ring. */
static void drain(struct perf_event_mmap_page *p)
{
	char *data = (char *)p + 4096, record[256];
	uint64_t size = RING_PAGES * 4096, head = __atomic_load_n(&p->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = p->data_tail;

	while (tail < head) {
		struct perf_event_header h;

		for (size_t i = 0; i < sizeof(h); i++)
			((char *)&h)[i] = data[(tail + i) % size];
		for (size_t i = 0; i < h.size && i < sizeof(record); i++)
			record[i] = data[(tail + i) % size];
		tail += h.size;
		if (h.type == PERF_RECORD_LOST)
			lost = 1;
		if (h.type != PERF_RECORD_SAMPLE)
			continue;
		if (taken == SAMPLES_MAX)
			continue;
		memcpy(&samples[taken], record + sizeof(h), sizeof(samples[0]));
		taken += takes_part(samples[taken].pid);
	}
	__atomic_store_n(&p->data_tail, tail, __ATOMIC_RELEASE);
}

/* Adds up the layers and prints them, for each round trip. */
static void judge(const char *image, const char *gate, double trips)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	struct table host = read_symbols(f, "/proc/kallsyms"), node = { 0 }, front = { 0 };
	size_t count[LAYERS] = { 0 };
	const char *file = getenv("SAMPLE_LIST");
	FILE *list = file ? fopen(file, "a") : NULL;

	if (node_count) {
		node = symbols_of(image);
		front = symbols_of(gate);
	}
	for (size_t i = 0; i < taken; i++) {
		uint64_t ip = samples[i].ip;
		struct node *in = node_at(ip);
		enum layer layer = PROGRAM;
		const char *name = NULL;

		if (ip >> 63)
			layer = layer_of(name = function(&host, ip));
		else if (in)
			layer = layer_of(name = function(&node, ip - in->from));
		else if (node_count && ip >= front.of[0].at && ip <= front.of[front.n - 1].at)
			layer = ENTRY;
		count[layer]++;
		if (list && name)
			fprintf(list, "%s %s%s\n", names[layer], in ? "node:" : "host:", name);
	}
	if (list)
		fclose(list);
	for (int i = 0; i < LAYERS; i++)
		out(names[i], count[i] * (double)(NS / RATE) / trips);
}

int main(int argc, char **argv)
{
	struct perf_event_mmap_page *ring[CPUS_MAX];
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), ends[2], status;
	char text[4096], *said;
	double trips = 0;
	size_t n = 0;
	pid_t pid;

	if (argc < 4 || cpus > CPUS_MAX) {
		fprintf(stderr, "usage: see the head of sample.c\n");
		return 2;
	}
	if (pipe2(ends, O_CLOEXEC))
		die("pipe");
	find_nodes();
	for (int i = 0; i < cpus; i++)
		ring[i] = open_cpu(i);
	pid = fork();
	if (!pid) {
		dup2(ends[1], 1);
		execvp(argv[3], argv + 3);
		die(argv[3]);
	}
	close(ends[1]);
	for (;;) {
		struct pollfd p = { .fd = ends[0], .events = POLLIN };
		ssize_t got;

		poll(&p, 1, 50);
		for (int i = 0; i < cpus; i++)
			drain(ring[i]);
		if (!p.revents)
			continue;
		got = read(ends[0], text + n, sizeof(text) - 1 - n);
		if (got <= 0)
			break;
		n += got;
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	text[n] = 0;
	fputs(text, stdout);
	said = strstr(text, "trips ");
	if (said)
		trips = atof(said + 6);
	if (trips <= 0) {
		fprintf(stderr, "the program did not say how many trips it made\n");
		return 1;
	}
	if (lost || taken == SAMPLES_MAX) {
		fprintf(stderr, "samples were lost\n");
		return 1;
	}
	judge(argv[1], argv[2], trips);
	return 0;
}
