// SPDX-License-Identifier: GPL-2.0
/* SO_RCVBUF and SO_SNDBUF: doubled, with a floor and a ceiling. */
#include "oracle.h"

int main(void)
{
	static const int values[] = { 0, 1, 1000, 2304, 4096, 65536, 200000, -1, INT32_MAX };
	int max[2] = { 0, 0 };
	const char *files[2] = { "/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max" };
	static const int names[2] = { SO_RCVBUF, SO_SNDBUF };

	for (int s = 0; s < 2; s++) {
		int fd = must(socket(AF_INET, s ? SOCK_STREAM : SOCK_DGRAM, 0));

		for (int n = 0; n < 2; n++) {
			FILE *f = fopen(files[n], "r");

			need(f && fscanf(f, "%d", &max[n]) == 1);
			fclose(f);
			for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
				int r = set_int(fd, SOL_SOCKET, names[n], values[v]);
				int e = errno, now = int_option(fd, SOL_SOCKET, names[n]);

				/* Ceilings are a matter of configuration: say which rule holds. */
				if (r)
					say("%s %d: %s", n ? "snd" : "rcv", values[v], ename(e));
				else if (values[v] >= 0 && values[v] <= 65536)
					say("%s %d: %d", n ? "snd" : "rcv", values[v], now);
				else
					say("%s %d: %s", n ? "snd" : "rcv", values[v],
					    now == 2 * max[n] ? "twice the maximum" :
					    now == 2 * values[v] ? "twice" : "other");
			}
		}
	}
	return 0;
}
