/* SPDX-License-Identifier: MIT */
#include "switching.h"

#include <unistd.h>

/* Who has its turn: an identifier of a thread, or 0. */
static unsigned long turn;
static int depth;
static int is_child;

static int is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
	return Py_IsFinalizing();
#else
	return _Py_IsFinalizing();
#endif
}

/*
 * Not a mutex of the system's: a thread that wakes up with one, while the
 * interpreter ends, is ended where it asks for the GIL, and never gives it
 * back.
 */
void tickmap_switching_begin(void)
{
	unsigned long self = PyThread_get_thread_ident();

	if (__atomic_load_n(&turn, __ATOMIC_RELAXED) == self) {
		depth++;
		return;
	}
	for (;;) {
		unsigned long nobody = 0;

		if (__atomic_compare_exchange_n(&turn, &nobody, self, 0,
						__ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			break;
		if (is_finalizing()) { /* all others have been ended */
			__atomic_store_n(&turn, self, __ATOMIC_RELAXED);
			break;
		}
		Py_BEGIN_ALLOW_THREADS usleep(50);
		Py_END_ALLOW_THREADS
	}
	depth = 1;
}

void tickmap_switching_end(void)
{
	if (--depth == 0)
		__atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
}

void tickmap_switching_forked(void)
{
	if (turn != PyThread_get_thread_ident())
		turn = 0;
	is_child = 1;
}

/*
 * 3.13 without a GIL looks at the evaluator (is there one?) and then again, to
 * call it, and does not stop other threads to change it. Compilers make one
 * look of the two, where they optimise: not for debug builds. The way to stop
 * other threads elsewhere is to ask for the collector's objects. Not in a
 * forked child: if a thread of its parent was about to stop the world, it would
 * wait for ever.
 */
#if defined(Py_GIL_DISABLED) && defined(Py_DEBUG) && PY_VERSION_HEX < 0x030E0000
struct change {
	PyInterpreterState *interp;
	_PyFrameEvalFunction evaluator;
};

static int change_while_stopped(PyObject *object, void *opaque)
{
	const struct change *change = opaque;

	(void)object;
	_PyInterpreterState_SetEvalFrameFunc(change->interp, change->evaluator);
	return 0; /* seen enough */
}

void tickmap_set_evaluator(PyInterpreterState *interp,
			   _PyFrameEvalFunction evaluator)
{
	struct change change = { interp, evaluator };

	if (is_child)
		_PyInterpreterState_SetEvalFrameFunc(interp, evaluator);
	else
		PyUnstable_GC_VisitObjects(change_while_stopped, &change);
}
#else
void tickmap_set_evaluator(PyInterpreterState *interp,
			   _PyFrameEvalFunction evaluator)
{
	(void)is_child;
	_PyInterpreterState_SetEvalFrameFunc(interp, evaluator);
}
#endif
