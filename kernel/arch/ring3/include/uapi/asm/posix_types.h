/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
#include <asm/posix_types_64.h>
