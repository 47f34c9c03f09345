// SPDX-License-Identifier: GPL-2.0
/*
 * image.c - calls into the image
 */
#include "internal.h"
#include "ring3_lock.h"

#ifdef GATE_NO_NODE
/* The test build has no image: tasks come from the heap, and there is nothing else. */
static long image_enter(long nr, long a, long b, long c, long d, long e, long f,
			struct ring3_thread *t)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)t;
	gate_thread()->inside = 0;
	switch (nr) {
	case RING3_NR_CLONE:
		return (long)null_thread_new();
	case RING3_NR_EXIT:
	case RING3_NR_EXIT_GROUP:
	case RING3_NR_EXEC:
		return 0;
	}
	return -ENOSYS;
}
#else
#define image_enter gate_enter_raw
#endif

/*
 * Marks the thread as inside the image. If another thread ends the process, this one parks here instead. See
 * stop.c.
 */
static void go_inside(void)
{
	struct ring3_thread *t = gate_thread();

	do {
		WRITE_ONCE(t->inside, 1);
		barrier();
	} while (unlikely(READ_ONCE(gate_stopper)) && stop_entering(t));
}

/*
 * One call of the program may need several calls into the image. The image interrupts a task's wait once for each
 * signal. A signal that arrived during a call that does not wait has used up that one time, but is still noted: so
 * the gate sets RING3_WORD_SIGNAL again.
 */
static void ask_again(struct ring3_thread *t)
{
	if (unlikely(READ_ONCE(t->sigpending)))
		r3_word_set(&t->word, RING3_WORD_SIGNAL);
}

long image_call(long nr, long a, long b, long c, long d, long e, long f)
{
	struct ring3_thread *t = gate_thread();
	long ret;

	go_inside();
	ask_again(t);
	ret = image_enter(nr, a, b, c, d, e, f, t);
	if (unlikely(READ_ONCE(gate_tcb()->stop)))
		stop_park();
	if (unlikely(READ_ONCE(t->nsig)))
		signal_drain_node();
	if (unlikely(ret == -EIO))
		end_look();
	if (unlikely(ret == -ERESTART_RESTARTBLOCK)) {
		gate_tcb()->restart_node = 1;
		gate_tcb()->restart.go_on = NULL;
	}
	return ret;
}

/* As image_call, for another thread's block on which no thread runs yet. */
long image_call_as(struct ring3_thread *t, long nr, long a)
{
	go_inside();
	return image_enter(nr, a, 0, 0, 0, 0, 0, t);
}

/*
 * True if the call was cut short by an event that the program does not see: a stop that was cancelled, or a signal
 * without a handler. A call that holds something it might not get a second time keeps that and is repeated at once.
 */
bool gate_call_goes_on(long ret)
{
	return unlikely(ret == -ERESTARTSYS || ret == -ERESTARTNOINTR) && !signal_pending(gate_tcb());
}
