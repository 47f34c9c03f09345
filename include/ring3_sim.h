/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_sim.h - a node in virtual time (flavour 2 of the image)
 *
 * A thread of such a node keeps the vCPU while it is in user code, so that one of them runs at a time. These calls are
 * there in this flavour only; in others they are -ENOSYS.
 */
#ifndef RING3_SIM_H
#define RING3_SIM_H

#define RING3_FLAVOUR_SIM	2u

/*
 * RING3_NR_TURN(): the first call of a thread that CLONE has made a task for. It waits until the thread has the vCPU, and
 * returns 0.
 *
 * RING3_NR_BEGIN(thread, tid): for the thread that has made another: the host has given it that number. Its task goes on
 * when the scheduler chooses it, and hands the vCPU to the new thread. -ESRCH: there is no such task.
 */

#endif /* RING3_SIM_H */
