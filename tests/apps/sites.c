// SPDX-License-Identifier: GPL-2.0
/*
 * sites - calls the host from SITES places in turn, ROUNDS times each
 *
 * Sites that take turns to trap: the gate must not forget one because of the others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SITES	400
#define ROUNDS	200

/* SITES functions of 16 bytes: getuid(). */
extern const char sites[];
asm("	.balign 16\n"
    "sites:\n"
    "	.rept 400\n"
    "	mov $102, %eax\n"
    "	syscall\n"
    "	ret\n"
    "	.balign 16\n"
    "	.endr\n");

int main(void)
{
	unsigned int uid = getuid(), i, round;

	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < SITES; i++)
			if (((unsigned int (*)(void))(sites + 16 * i))() != uid)
				return 1;
	printf("%d calls\n", SITES * ROUNDS);
	return 0;
}
