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
 * RING3_NR_CLONE leaves in the new thread's ret the number that the host is to give it (clone3()'s set_tid).
 *
 * RING3_NR_BEGIN(thread, tid): for the thread that has made another: the host has given it that number. Its task goes on
 * when the scheduler chooses it, and hands the vCPU to the new thread. -ESRCH: there is no such task.
 *
 * RING3_NR_EXIT(code, clear, left): zeroes the word `clear' of the program's, and wakes who waits there. Nobody else of the
 * node runs until the host has zeroed the word `left' of the region (set_tid_address()), and has forgotten the thread's number.
 *
 * RING3_NR_PIPE(first, second, flags): pipe2(), whose ends get these numbers, which are free in the node's table. In every flavour.
 *
 * RING3_NR_FUTEX_PAGE(which, page, object, index): the next futex calls of this task mean by the page at that address page
 * `index' of a shared object. `which' is 0 or 1; page 0 takes it back.
 */

#endif /* RING3_SIM_H */
