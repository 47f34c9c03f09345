/* SPDX-License-Identifier: GPL-2.0 */
#include <asm-generic/bitops/arch_hweight.h>
