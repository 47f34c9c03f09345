/* SPDX-License-Identifier: GPL-2.0 */
/* elf.h - the head of an ELF file, between resolve.c and loader.c */
#ifndef GATE_ELF_H
#define GATE_ELF_H

#include "internal.h"

int elf_open(const char *path);
/* Reads the file's head and looks at it; elf_forget() when it went well. */
long elf_read(int fd, const char *path, struct image_file *f, char why[WHY_BYTES]);
/* The second half of that, where the head has been read. */
long elf_look(int fd, const char *path, struct image_file *f, char why[WHY_BYTES]);
void elf_forget(struct image_file *f);

#endif
