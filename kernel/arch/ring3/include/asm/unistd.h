/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_UNISTD_H
#define _ASM_RING3_UNISTD_H

#include <uapi/asm/unistd.h>
#include <asm/unistd_64.h>

#define NR_syscalls	(__NR_syscalls)

#define __ARCH_WANT_NEW_STAT
#define __ARCH_WANT_SYS_ALARM
#define __ARCH_WANT_SYS_FADVISE64
#define __ARCH_WANT_SYS_GETHOSTNAME
#define __ARCH_WANT_SYS_GETPGRP
#define __ARCH_WANT_SYS_LLSEEK
#define __ARCH_WANT_SYS_NICE
#define __ARCH_WANT_SYS_OLDUMOUNT
#define __ARCH_WANT_SYS_PAUSE
#define __ARCH_WANT_SYS_SIGNAL
#define __ARCH_WANT_SYS_TIME
#define __ARCH_WANT_SYS_UTIME
#define __ARCH_WANT_SYS_CLONE

#endif
