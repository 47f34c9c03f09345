/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
#include "../../../../x86/include/uapi/asm/siginfo.h"
