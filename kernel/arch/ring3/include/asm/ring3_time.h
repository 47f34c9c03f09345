/* SPDX-License-Identifier: GPL-2.0 */
/* ring3_time.h - what generic code asks of the clock; see kernel/patches */
#ifndef _ASM_RING3_TIME_H
#define _ASM_RING3_TIME_H

void ring3_time_passed(void);	/* takes a timer interrupt that is due, so that jiffies are what they should be */

#endif
