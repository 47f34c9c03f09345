// SPDX-License-Identifier: GPL-2.0
/* Processes that splice from one pipe into TCP sockets at once: each byte goes to one of them, once. */
#include "splice_movers.h"

int main(void)
{
	return move(true, true, 16u << 20);
}
