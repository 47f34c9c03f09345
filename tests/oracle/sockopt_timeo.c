// SPDX-License-Identifier: GPL-2.0
/* SO_RCVTIMEO and SO_SNDTIMEO as values. */
#include "oracle.h"

int main(void)
{
	static const struct timeval values[] = {
		{ 0, 0 }, { 1, 0 }, { 0, 500000 }, { 0, 1000 }, { 0, 999 }, { 0, 1 }, { 3, 123456 },
		{ 0, 1000000 }, { 0, -1 }, { -1, 0 }, { -1, 5 }, { INT64_MAX, 0 }, { 1000000000, 0 },
	};
	int fd = must(socket(AF_INET, SOCK_STREAM, 0));

	for (int n = 0; n < 2; n++) {
		int name = n ? SO_SNDTIMEO : SO_RCVTIMEO;

		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			struct timeval now = { -7, -7 };
			socklen_t len = sizeof(now);
			int r = setsockopt(fd, SOL_SOCKET, name, &values[i], sizeof(values[i]));
			int e = r ? errno : 0;

			must(getsockopt(fd, SOL_SOCKET, name, &now, &len));
			printf("%lld.%06lld: %s, now ", (long long)values[i].tv_sec,
			       (long long)values[i].tv_usec, ename(e));
			if (!e) {
				/* Rounded up to ticks, whose length is the kernel's own affair. */
				long long asked = values[i].tv_sec * 1000000LL + values[i].tv_usec;
				long long is = now.tv_sec * 1000000LL + now.tv_usec;

				say("%s", is >= asked && is < asked + 10000 ? "that or rounded up" :
				    !is ? "none" : "other");
			} else {
				say("as before");
			}
		}
	}
	return 0;
}
