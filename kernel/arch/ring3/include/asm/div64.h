/* SPDX-License-Identifier: GPL-2.0 */
#include "../../../x86/include/asm/div64.h"
