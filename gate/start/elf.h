/* SPDX-License-Identifier: GPL-2.0 */
/* elf.h - the head of an ELF file, between resolve.c and loader.c */
#ifndef GATE_ELF_H
#define GATE_ELF_H

#include "internal.h"

int elf_open(const char *path);
/* Reads and checks the head of the file; call elf_forget() if it succeeds. */
long elf_read(int fd, const char *path, struct image_file *f, char why[WHY_BYTES]);
/* The second half of elf_read(), after the head has been read. */
long elf_look(int fd, const char *path, struct image_file *f, char why[WHY_BYTES]);
void elf_forget(struct image_file *f);

#endif
