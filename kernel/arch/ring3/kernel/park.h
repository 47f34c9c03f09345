/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RING3_KERNEL_PARK_H
#define RING3_KERNEL_PARK_H

#include <ring3/ring3.h>

long ring3_sys_park(int fd, u64 key);
long ring3_sys_unpark(u64 key, int to, unsigned int flags);
long ring3_sys_grab(int pid, int fd, int to);

#endif
