/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SETUP_H
#define _ASM_RING3_SETUP_H

#define COMMAND_LINE_SIZE	512

#endif
