/* SPDX-License-Identifier: GPL-2.0 */
/*
 * insn.h - where instructions begin and end
 *
 * The includer provides u8 and bool, from host.h or from the libc (tests/insn.c).
 */
#ifndef GATE_INSN_H
#define GATE_INSN_H

#define INSN_BYTES_MAX	15U

/* Length of the instruction at `code`, of which `avail` bytes may be read. 0: no instruction, or cut off. */
unsigned int gate_insn_length(const u8 *code, unsigned long avail);

/* True if text[at] is certainly the first byte of an instruction. `size`: bytes in `text`. */
bool gate_insn_find(const u8 *text, unsigned long size, unsigned long at);

#endif
