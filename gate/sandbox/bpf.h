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
 * The program's result for this call. It is one that the host's kernel has accepted, so that
 * every jump and load is good. *args: set if the result depends on more than number and architecture.
 */
u32 bpf_run(const struct sock_filter *code, const struct seccomp_data *data, bool *args);

#endif /* GATE_BPF_H */
