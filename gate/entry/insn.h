/* SPDX-License-Identifier: GPL-2.0 */
/*
 * insn.h - where instructions begin and end
 *
 * Who includes this has u8 and bool, from host.h or from the libc (tests/insn.c).
 */
#ifndef GATE_INSN_H
#define GATE_INSN_H

#define INSN_BYTES_MAX	15U

/* Bytes of the instruction at `code`, of which `avail` may be read. 0: it is none, or cut off. */
unsigned int gate_insn_length(const u8 *code, unsigned long avail);

/* Is text[at] certainly the first byte of an instruction? `size`: bytes in `text`. */
bool gate_insn_find(const u8 *text, unsigned long size, unsigned long at);

#endif
