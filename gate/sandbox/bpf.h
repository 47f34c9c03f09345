/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bpf.h - runs classic BPF as seccomp allows it
 */
#ifndef GATE_BPF_H
#define GATE_BPF_H

#include "host.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

/*
 * The result of the program for this call. The host's kernel has accepted the program, so each jump and load is
 * valid. *args is set if the result depends on more than number and architecture.
 */
u32 bpf_run(const struct sock_filter *code, const struct seccomp_data *data, bool *args);

#endif /* GATE_BPF_H */
