// SPDX-License-Identifier: GPL-2.0
/* wait - says "waiting", sleeps in recv() until that fails, and says how. */
#include "oracle.h"

int main(void)
{
	int u = bound(AF_INET, SOCK_DGRAM);
	char b[8];

	say("waiting");
	say("%s", recv(u, b, 8, 0) < 0 ? ename(errno) : "data");
	return 0;
}
