// SPDX-License-Identifier: GPL-2.0
/*
 * rings ROUNDS [SEED] - a guest that is hostile: it drives its virtio network card by itself, with nonsense in the queues.
 *
 * It takes the card from its kernel, sets the two queues up as the specification has it, and fills tables and rings with
 * addresses out of memory, lengths that overflow, chains that go in circles, and indices that jump. Then it gives the card
 * back. It runs in the guest (tests/guest/build). What the device writes lands in pages of its own.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICES		"/sys/bus/pci/devices"
#define PAGE		4096
#define VENDOR		0x1af4	/* virtio (virtio 1.2, 4.1.2) */
#define CAP_VENDOR	9
#define QUEUE		256

/* virtio 1.2, 4.1.4.3: offsets in the common configuration */
enum {
	FEATURE_SELECT = 8, FEATURE = 12, DEVICE_SELECT = 0, DEVICE_FEATURE = 4, STATUS = 20, SELECT = 22, SIZE = 24,
	VECTOR = 26, ENABLE = 28, NOTIFY_OFF = 30, DESC = 32, DRIVER = 40, DEVICE = 48,
};

static char device[300];
static volatile uint8_t *common, *notify;
static uint32_t notify_multiplier;
static uint64_t seed = 1;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t rnd(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static void put(const char *file, const char *text)
{
	char path[400];
	int fd;

	snprintf(path, sizeof(path), "%s", file);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static volatile uint8_t *map(int bar, uint32_t offset)
{
	char path[400];
	uint8_t *at;
	int fd;

	snprintf(path, sizeof(path), "%s/resource%d", device, bar);
	fd = open(path, O_RDWR | O_SYNC);
	if (fd < 0)
		die(path);
	at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		die("mmap of a BAR");
	close(fd);
	return at + offset;
}

/* The card, without a driver, and its registers. */
static const char *take(void)
{
	static char name[256];
	uint8_t config[256];
	struct dirent *entry;
	char path[400];
	DIR *dir = opendir(DEVICES);
	uint16_t command;
	int fd, cap;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), DEVICES "/%s/config", entry->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, config, sizeof(config)) < 64)
			continue;
		close(fd);
		if (config[0] + config[1] * 256 == VENDOR)
			break;
	}
	if (!dir || !entry)
		die("no virtio card");
	snprintf(name, sizeof(name), "%s", entry->d_name);
	snprintf(device, sizeof(device), DEVICES "/%s", name);
	put("/sys/bus/pci/drivers/virtio-pci/unbind", name);
	snprintf(path, sizeof(path), "%s/enable", device);
	put(path, "1");
	/* Memory, and being a bus master. */
	snprintf(path, sizeof(path), "%s/config", device);
	fd = open(path, O_RDWR);
	command = config[4] | config[5] << 8 | 6;
	if (fd < 0 || pread(fd, config, sizeof(config), 0) != sizeof(config) || pwrite(fd, &command, 2, 4) != 2)
		die("the card's configuration");
	close(fd);
	for (cap = config[0x34]; cap; cap = config[cap + 1]) {
		uint32_t offset;

		if (config[cap] != CAP_VENDOR)
			continue;
		memcpy(&offset, config + cap + 8, 4);
		if (config[cap + 3] == 1 && !common)
			common = map(config[cap + 4], offset);
		if (config[cap + 3] == 2 && !notify) {
			memcpy(&notify_multiplier, config + cap + 16, 4);
			notify = map(config[cap + 4], offset);
		}
	}
	if (!common || !notify)
		die("the card's capabilities");
	return name;
}

/* A page of the guest's memory, and where that is. */
static void *page(uint64_t *physical)
{
	uint8_t *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry;

	if (at == MAP_FAILED || fd < 0 || pread(fd, &entry, 8, (uintptr_t)at / PAGE * 8) != 8 || !(entry << 9))
		die("a page's address");
	close(fd);
	*physical = (entry & ((1ULL << 55) - 1)) * PAGE;
	return at;
}

#define REG(type, offset)	(*(volatile type *)(common + (offset)))

static uint32_t feature(int word)
{
	REG(uint32_t, DEVICE_SELECT) = word;
	return REG(uint32_t, DEVICE_FEATURE);
}

struct queue {
	struct { uint64_t address; uint32_t len; uint16_t flags, next; } *table;
	uint16_t *avail;	/* flags, index, ring */
	uint8_t *used;
	uint64_t at[3];
};

static struct queue queues[2];
static uint64_t own[8];		/* pages that may be read and written */

static uint64_t address(void)
{
	switch (rnd(8)) {
	case 0: return rnd(1ULL << 40) | 1ULL << 40;
	case 1: return ~0ULL - rnd(PAGE * 2);
	case 2: return (256ULL << 20) - rnd(2);		/* the end of its memory */
	default: return own[rnd(8)] + rnd(PAGE);
	}
}

static uint32_t len(void)
{
	switch (rnd(6)) {
	case 0: return 0;
	case 1: return ~0U - rnd(16);
	case 2: return 65536 + rnd(65536);
	default: return rnd(64);	/* in the page, mostly */
	}
}

static void fill(struct queue *queue)
{
	int i;

	for (i = 0; i < QUEUE; i++) {
		uint64_t at = address();
		uint32_t bytes = len();

		/* What the device may write stays in the page, so that this guest lives. */
		if (at < 256ULL << 20 && at % PAGE + bytes > PAGE)
			bytes = PAGE - at % PAGE;
		queue->table[i].address = at;
		queue->table[i].len = bytes;
		queue->table[i].flags = rnd(4) ? rnd(4) : rnd(65536);
		queue->table[i].next = rnd(4) ? rnd(QUEUE) : rnd(65536);
		queue->avail[2 + i] = rnd(8) ? rnd(QUEUE) : rnd(65536);
	}
	queue->avail[0] = rnd(2);
}

static void round_of_nonsense(void)
{
	int i, j;

	REG(uint8_t, STATUS) = 0;
	for (i = 0; REG(uint8_t, STATUS) && i < 1000; i++)
		usleep(1000);
	REG(uint8_t, STATUS) = 1;
	REG(uint8_t, STATUS) = 3;
	for (i = 0; i < 2; i++) {
		uint32_t offered = feature(i);

		REG(uint32_t, FEATURE_SELECT) = i;
		/* Of the second word VERSION_1 alone; of the first whatever, but no control queue, which is QEMU's. */
		REG(uint32_t, FEATURE) = i ? offered & 1 : offered & (uint32_t)rnd(1ULL << 32) & ~(1U << 17 | 0x1fU << 18);
	}
	REG(uint8_t, STATUS) = 11;
	for (i = 0; i < 2; i++) {
		fill(&queues[i]);
		queues[i].avail[1] = rnd(QUEUE);
		memset(queues[i].used, 0, PAGE);
		REG(uint16_t, SELECT) = i;
		REG(uint16_t, SIZE) = QUEUE;
		REG(uint64_t, DESC) = queues[i].at[0];
		REG(uint64_t, DRIVER) = queues[i].at[1];
		REG(uint64_t, DEVICE) = queues[i].at[2];
		REG(uint16_t, ENABLE) = 1;
	}
	REG(uint8_t, STATUS) = 15;
	for (i = 0; i < 8; i++) {
		for (j = 0; j < 2; j++) {
			REG(uint16_t, SELECT) = j;
			*(volatile uint16_t *)(notify + REG(uint16_t, NOTIFY_OFF) * notify_multiplier) = j;
			queues[j].avail[1] += rnd(4) ? rnd(QUEUE) : rnd(65536);
			if (!rnd(3))
				fill(&queues[j]);
		}
		usleep(500);
	}
}

int main(int argc, char **argv)
{
	int i, rounds = argc > 1 ? atoi(argv[1]) : 100;
	const char *name = take();

	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10) | 1;
	for (i = 0; i < 2; i++) {
		queues[i].table = page(&queues[i].at[0]);
		queues[i].avail = page(&queues[i].at[1]);
		queues[i].used = page(&queues[i].at[2]);
	}
	for (i = 0; i < 8; i++)
		page(&own[i]);
	for (i = 0; i < rounds; i++)
		round_of_nonsense();
	REG(uint8_t, STATUS) = 0;
	put("/sys/bus/pci/drivers/virtio-pci/bind", name);
	printf("RINGS %d rounds\n", rounds);
	return 0;
}
