/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_smp.h - a node with several vCPUs (flavour 1 of the image)
 *
 * vCPU 0 is region->vcpu[0]; the others lie elsewhere in the region, in a list by ring3_vcpu.next that begins
 * there, ended by 0 (as in the up flavour, which has that one only). All that
 * ring3.h says of the vCPU holds for each.
 *
 * Each vCPU needs a thread in its KEEP from the time on
 * when boot holds vCPU 0, entered with driver_thread[0] for vCPU 0 and driver_thread[1 + n] for
 * vCPU n. The links are the business of vCPU 0's. The kernel's command line says how many there
 * are: "ring3_cpus=N".
 */
#ifndef RING3_SMP_H
#define RING3_SMP_H

#include "ring3.h"

#define RING3_VCPUS_MAX		3	/* driver_thread[] has no more */

/* pending: from another vCPU. */
#define RING3_IRQ_RESCHED	(1u << 2)	/* another task is to run */
#define RING3_IRQ_CALL		(1u << 3)	/* a function is to be called */

#endif /* RING3_SMP_H */
