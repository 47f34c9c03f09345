/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RING3_KERNEL_CRED_H
#define RING3_KERNEL_CRED_H

#include <ring3/ring3.h>

struct task_struct;

long ring3_sys_newuser(void);
long ring3_sys_ids(u64 uid, u64 suid, u64 gid, u64 sgid);
void ring3_map_user_ns(struct task_struct *task);
long ring3_exec_creds(void);
long ring3_sys_file_caps(u64 permitted, u64 inheritable, bool effective);

#endif
