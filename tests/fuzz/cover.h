/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cover.h - a small coverage-guided fuzzer, for code compiled with GCC's
 * -fsanitize-coverage=trace-pc
 *
 * The compiler calls __sanitizer_cov_trace_pc() at each edge. An input that reaches edges,
 * or counts of them, that none did before is kept and changed further. The input that
 * runs lies in a file, so that it is there when the program is not any more.
 *
 *	PROGRAM --corpus DIR [--seconds N] [--seed N] [--save] [--drop]
 *		--save adds what it keeps to DIR, --drop removes from there what reaches nothing new
 *	PROGRAM --run FILE					one input again
 *
 * The user defines fuzz_one(data, len), and maybe FUZZ_WORDS, an array of strings of which
 * inputs are likely to be made.
 */
#ifndef FUZZ_COVER_H
#define FUZZ_COVER_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PLAIN		__attribute__((no_sanitize_coverage, no_sanitize("address", "undefined")))
#define EDGES		(1u << 16)
#define INPUT_MAX	1024u
#define CORPUS_MAX	4096u

static void fuzz_one(const uint8_t *data, size_t len);

static uint8_t edges[EDGES];	/* of the running input */
static uint8_t seen[EDGES];	/* bits of counts (1, 2, 4-7, ...) that any input had */
static uintptr_t last_pc;

PLAIN void __sanitizer_cov_trace_pc(void)
{
	uintptr_t pc = (uintptr_t)__builtin_return_address(0);
	uint8_t *e = &edges[(pc ^ last_pc >> 1 ^ pc >> 16) % EDGES];

	*e += *e != 255;
	last_pc = pc;
}

struct input {
	uint32_t len;
	uint8_t data[INPUT_MAX];
};

static struct input *corpus[CORPUS_MAX];
static uint32_t corpus_used;
static struct input *now;	/* mapped from a file */
static uint64_t cover_rng = 1;

PLAIN static uint32_t dice(uint32_t sides)
{
	cover_rng ^= cover_rng >> 12;
	cover_rng ^= cover_rng << 25;
	cover_rng ^= cover_rng >> 27;
	return (uint32_t)((cover_rng * 0x2545f4914f6cdd1dULL) >> 33) % sides;
}

PLAIN static bool is_news(void)
{
	bool news = false;
	uint32_t i;

	for (i = 0; i < EDGES; i++) {
		uint8_t n = edges[i], bucket;

		if (!n)
			continue;
		bucket = n < 4 ? (uint8_t)(1u << (n - 1)) : n < 8 ? 8 : n < 16 ? 16 : n < 64 ? 32 :
			 n < 255 ? 64 : 128;
		if (!(seen[i] & bucket)) {
			seen[i] |= bucket;
			news = true;
		}
	}
	return news;
}

PLAIN static bool run(void)
{
	memset(edges, 0, sizeof(edges));
	last_pc = 0;
	fuzz_one(now->data, now->len);
	return is_news();
}

PLAIN static void keep(void)
{
	struct input *it;

	if (corpus_used == CORPUS_MAX)
		return;
	it = malloc(sizeof(*it));
	memcpy(it, now, sizeof(*it));
	corpus[corpus_used++] = it;
}

PLAIN static void mutate(void)
{
	static const uint8_t odd[] = { 0, 1, 2, 63, 64, 65, 127, 128, 255 };
	uint32_t turns = 1u << dice(5), at, n;
	const struct input *other;

	while (turns--) {
		at = now->len ? dice(now->len) : 0;
		n = 1 + dice(8);
#ifdef FUZZ_WORDS
		if (!dice(4)) {		/* a word, put in or over what is there */
			const char *word = FUZZ_WORDS[dice(sizeof(FUZZ_WORDS) / sizeof(FUZZ_WORDS[0]))];
			uint32_t len = (uint32_t)strlen(word), move = dice(2) ? len : 0;

			if (now->len + len <= INPUT_MAX) {
				memmove(now->data + at + move, now->data + at, now->len - at);
				memcpy(now->data + at, word, len);
				now->len = move || at + len > now->len ? (move ? now->len + len : at + len) : now->len;
			}
			continue;
		}
#endif
		switch (dice(7)) {
		case 0:
			now->data[at] ^= (uint8_t)(1u << dice(8));
			break;
		case 1:
			now->data[at] = odd[dice(sizeof(odd))];
			break;
		case 2:
			now->data[at] = (uint8_t)dice(256);
			break;
		case 3:		/* insert */
			if (now->len + n <= INPUT_MAX) {
				memmove(now->data + at + n, now->data + at, now->len - at);
				now->len += n;
				while (n--)
					now->data[at + n] = (uint8_t)dice(256);
			}
			break;
		case 4:		/* remove */
			if (at + n <= now->len) {
				memmove(now->data + at, now->data + at + n, now->len - at - n);
				now->len -= n;
			}
			break;
		case 5:		/* a piece of another, or of itself */
			other = corpus[dice(corpus_used)];
			n = other->len ? dice(other->len) : 0;
			if (at + other->len - n <= INPUT_MAX) {
				memcpy(now->data + at, other->data + n, other->len - n);
				if (now->len < at + other->len - n)
					now->len = at + other->len - n;
			}
			break;
		default:
			if (now->len < INPUT_MAX)
				now->data[now->len++] = (uint8_t)dice(256);
		}
	}
}

PLAIN static void load(const char *path)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		return;
	now->len = (uint32_t)fread(now->data, 1, INPUT_MAX, f);
	fclose(f);
}

PLAIN static void save(const char *folder)
{
	char path[4200];
	uint64_t sum = 0xcbf29ce484222325ULL;
	uint32_t i;
	FILE *f;

	for (i = 0; i < now->len; i++)
		sum = (sum ^ now->data[i]) * 0x100000001b3ULL;
	snprintf(path, sizeof(path), "%s/%08x", folder, (uint32_t)sum);
	f = fopen(path, "wb");
	if (f) {
		fwrite(now->data, 1, now->len, f);
		fclose(f);
	}
}

PLAIN static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

PLAIN static int cover_main(int argc, char **argv)
{
	const char *folder = NULL, *file = NULL;
	double seconds = 10, start = seconds_now();
	uint64_t runs = 0, seed = 1;
	char path[4200], last[4200];
	struct dirent *entry;
	bool save_it = false, drop_it = false;
	uint32_t loaded = 0;
	DIR *dir;
	int i, fd;

	for (i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";

		if (!strcmp(argv[i], "--save") || !strcmp(argv[i], "--drop")) {
			save_it |= argv[i][2] == 's';
			drop_it |= argv[i][2] == 'd';
			continue;
		}
		if (!strcmp(argv[i], "--corpus"))
			folder = value;
		else if (!strcmp(argv[i], "--run"))
			file = value;
		else if (!strcmp(argv[i], "--seconds"))
			seconds = atof(value);
		else if (!strcmp(argv[i], "--seed"))
			seed = strtoull(value, NULL, 0);
		else
			return fprintf(stderr, "usage: see tests/fuzz/cover.h\n"), 2;
		i++;
	}
	snprintf(last, sizeof(last), "%s.input", argv[0]);
	fd = file ? -1 : open(last, O_RDWR | O_CREAT, 0600);
	/* A second one of the same name would change the input under the first: what is UTF-8 when it is judged, is none then. */
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB))
		return fprintf(stderr, "%s: another run of this fuzzer uses it\n", last), 2;
	if (fd >= 0 && ftruncate(fd, sizeof(*now)))
		return perror(last), 2;
	now = mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE,
		   fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (now == MAP_FAILED)
		return perror("mmap"), 2;
	if (file) {
		load(file);
		/* As it was left by a crash: the length comes first. */
		if (strstr(file, ".input") && now->len >= 4) {
			uint32_t len;

			memcpy(&len, now->data, 4);
			memmove(now->data, now->data + 4, INPUT_MAX - 4);
			now->len = len < INPUT_MAX ? len : INPUT_MAX;
		}
		run();
		return 0;
	}
	cover_rng = seed * 0x9e3779b97f4a7c15ULL | 1;
	memset(now, 0, sizeof(*now));
	run();
	keep();
	dir = folder ? opendir(folder) : NULL;
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] == '.')
			continue;
		load(path);
		if (run())
			keep();
		else if (drop_it)
			unlink(path);
		loaded++;
	}
	if (dir)
		closedir(dir);
	for (; seconds_now() - start < seconds; runs++) {
		memcpy(now, corpus[dice(corpus_used)], sizeof(*now));
		mutate();
		if (run()) {
			keep();
			if (save_it && folder)
				save(folder);
		}
	}
	printf("%llu runs, %u inputs loaded, %u kept\n", (unsigned long long)runs, loaded, corpus_used);
	unlink(last);
	return 0;
}

#endif
