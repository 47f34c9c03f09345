/* SPDX-License-Identifier: GPL-2.0 */
#include "../../../x86/include/asm/signal.h"
