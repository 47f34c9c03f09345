// SPDX-License-Identifier: GPL-2.0
/* Processes that splice from one TCP socket into pipes at once: each byte goes to one of them, once. */
#include "splice_movers.h"

int main(void)
{
	return move(false, true, 16u << 20);
}
