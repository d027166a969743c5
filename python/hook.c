/* SPDX-License-Identifier: MIT */
/*
 * Every Python call passes tickmap_evaluate, so it must be cheap, and it must
 * leave no frame of its own: it ends in a jump to the trampoline. Whatever
 * needs a local variable's address stays in functions that are not inlined,
 * because such a variable would turn the jump into a call.
 *
 * The trampoline of a code object is kept in its co_extra, which is read here
 * directly (the accessor would double the cost).
 */
#include "hook.h"

#include "calibrate.h"
#include "forked.h"
#include "functions.h"
#include "guard.h"
#include "inlined.h"

/* Bit 0 of a kept entry: calls must be shown to inlined.c. Code that has no
 * trampoline keeps the address of `straight` instead. */
#define CONCERNS_INLINING ((uintptr_t)1)

static struct {
	_PyFrameEvalFunction below; /* the evaluator we stand before */
	Py_ssize_t index;	    /* our place in co_extra; -1: none yet */
	Py_ssize_t direct_index;    /* the same if it may be read directly */
	struct tickmap_frame_layout layout;
	PyInterpreterState *interp;
	int active;
	int buried;    /* switched off while another tool stood over us */
	int suspended; /* calls now running that took the hook out */
} hook = { .index = -1, .direct_index = PY_SSIZE_T_MAX };

GATE_DEFINE(extra_gate);
GATE_DEFINE(suspend_gate);

struct code_extra {
	Py_ssize_t size;
	void *slots[1];
};

static inline uintptr_t kept_entry(const tickmap_frame *frame)
{
	PyObject *object = tickmap_frame_object(frame, hook.layout.code);

	if (UNLIKELY(Py_TYPE(object) != &PyCode_Type))
		return 0;
	struct code_extra *extra = __atomic_load_n(
		&((PyCodeObject *)object)->co_extra, __ATOMIC_ACQUIRE);
	if (UNLIKELY(!extra || extra->size <= hook.direct_index))
		return 0;
	return (uintptr_t)__atomic_load_n(&extra->slots[hook.direct_index],
					  __ATOMIC_ACQUIRE);
}

static PyObject *straight(PyThreadState *tstate, tickmap_frame *frame,
			  int throwflag, _PyFrameEvalFunction evaluator)
{
	return evaluator(tstate, frame, throwflag);
}

static uintptr_t entry_new(PyObject *object)
{
	PyCodeObject *code = (PyCodeObject *)object;
	tickmap_entry entry = tickmap_function_entry(code);
	uintptr_t value = (uintptr_t)(entry ? entry : straight);

	if (entry && tickmap_inlined_concerns(code))
		value |= CONCERNS_INLINING;
	SET_EXCEPTION_ASIDE(pending);
	GATE_ENTER(extra_gate);
	if (set_extra(object, hook.index, (void *)value) < 0)
		PyErr_Clear(); /* out of memory: tried again at the next call */
	GATE_LEAVE(extra_gate);
	PUT_EXCEPTION_BACK(pending);
	return value;
}

/* The entry of this frame's function, made if it is not there yet. */
static NOINLINE tickmap_entry entry_of(const tickmap_frame *frame)
{
	PyObject *object = tickmap_frame_object(frame, hook.layout.code);
	void *kept = NULL;

	if (!object || !PyCode_Check(object))
		return straight;
	if (get_extra(object, hook.index, &kept) < 0)
		return straight;
	uintptr_t value = kept ? (uintptr_t)kept : entry_new(object);
	if (value & CONCERNS_INLINING) {
		tickmap_inlined_call(frame, &hook.layout);
		value &= ~CONCERNS_INLINING;
	}
	return (tickmap_entry)value;
}

static PyObject *tickmap_evaluate(PyThreadState *, tickmap_frame *, int);

static void suspend(void)
{
	GATE_ENTER(suspend_gate);
	hook.suspended++;
	if (_PyInterpreterState_GetEvalFrameFunc(hook.interp) ==
	    tickmap_evaluate)
		_PyInterpreterState_SetEvalFrameFunc(hook.interp, hook.below);
	GATE_LEAVE(suspend_gate);
}

static void resume(void)
{
	GATE_ENTER(suspend_gate);
	if (--hook.suspended == 0 && hook.active &&
	    _PyInterpreterState_GetEvalFrameFunc(hook.interp) == hook.below)
		_PyInterpreterState_SetEvalFrameFunc(hook.interp,
						     tickmap_evaluate);
	GATE_LEAVE(suspend_gate);
}

/*
 * The part of the stack that is ours is used up. The hook is taken out for the
 * length of this call, so that the calls it makes cost no C stack, as in the
 * plain interpreter. Other threads' calls go unseen meanwhile.
 */
static NOINLINE PyObject *evaluate_unhooked(PyThreadState *tstate,
					    tickmap_frame *frame, int throwflag)
{
	suspend();
	int taken = tickmap_stack_clamp(tstate);
	PyObject *result = hook.below(tstate, frame, throwflag);
	tickmap_stack_unclamp(tstate, taken);
	resume();
	return result;
}

/* Before 3.11 every Python call takes C stack, with or without a hook; and an
 * evaluator of somebody else's must not be taken out. */
static int calls_can_be_inlined(void)
{
	return PY_VERSION_HEX >= 0x030B0000 &&
	       hook.below == _PyEval_EvalFrameDefault;
}

static NOINLINE PyObject *evaluate_uncommon(PyThreadState *tstate,
					    tickmap_frame *frame, int throwflag)
{
	if (!hook.active) /* a tool put over us still calls us */
		return hook.below(tstate, frame, throwflag);
	tickmap_forked_call();
	if (tickmap_stack.span == 0)
		tickmap_stack_find();
	if (!tickmap_stack_has_room()) {
		if (calls_can_be_inlined())
			return evaluate_unhooked(tstate, frame, throwflag);
		return hook.below(tstate, frame, throwflag);
	}
	return entry_of(frame)(tstate, frame, throwflag, hook.below);
}

static NOINLINE PyObject *evaluate_concerned(PyThreadState *tstate,
					     tickmap_frame *frame,
					     int throwflag, uintptr_t entry)
{
	tickmap_inlined_call(frame, &hook.layout);
	entry &= ~CONCERNS_INLINING;
	return ((tickmap_entry)entry)(tstate, frame, throwflag, hook.below);
}

static PyObject *tickmap_evaluate(PyThreadState *tstate, tickmap_frame *frame,
				  int throwflag)
{
	uintptr_t entry = kept_entry(frame);

	if (UNLIKELY(entry == 0 || !tickmap_stack_has_room() || !hook.active))
		return evaluate_uncommon(tstate, frame, throwflag);
	if (UNLIKELY(entry & CONCERNS_INLINING))
		return evaluate_concerned(tstate, frame, throwflag, entry);
	return ((tickmap_entry)entry)(tstate, frame, throwflag, hook.below);
}

/* The interpreter is gone, and with it the meaning of our index. */
static void forget_interpreter(void)
{
	hook.active = 0;
	hook.index = -1;
	hook.direct_index = PY_SSIZE_T_MAX;
	hook.interp = NULL;
	hook.below = NULL;
	hook.buried = 0;
	hook.suspended = 0;
}

/* May the slot be read directly? Ask the accessor and ourselves. */
static int reads_directly(PyObject *code)
{
	static char mark;

	if (set_extra(code, hook.index, &mark) < 0) {
		PyErr_Clear();
		return 0;
	}
	struct code_extra *extra = ((PyCodeObject *)code)->co_extra;
	int found = extra && extra->size > hook.index &&
		    extra->slots[hook.index] == &mark;
	if (set_extra(code, hook.index, NULL) < 0)
		PyErr_Clear();
	return found;
}

/* Once per interpreter: co_extra has 255 places, and none is given back. */
static int prepare(PyInterpreterState *interp)
{
	if (hook.index >= 0)
		return 0;
	if (tickmap_calibrate(interp, &hook.layout) < 0)
		return -1;
	PyObject *code = Py_CompileString("0", "<tickmap>", Py_eval_input);
	if (!code)
		return -1;
	if (Py_AtExit(forget_interpreter) < 0) {
		Py_DECREF(code);
		PyErr_SetString(PyExc_RuntimeError,
				"too many functions to call at exit");
		return -1;
	}
	hook.index = request_extra_index(NULL);
	if (hook.index < 0) {
		Py_DECREF(code);
		PyErr_SetString(PyExc_RuntimeError,
				"other tools have used up co_extra");
		return -1;
	}
	hook.interp = interp;
	if (reads_directly(code))
		hook.direct_index = hook.index;
	Py_DECREF(code);
	return 0;
}

static void put_on_top(PyInterpreterState *interp)
{
	_PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interp);

	if (now == tickmap_evaluate)
		return;
	/* Taken out for a deep call: its return brings us back. */
	if (hook.suspended > 0)
		return;
	/* The tool over us still calls us: over it we would make a loop. */
	if (hook.buried && now != hook.below)
		return;
	hook.below = now;
	hook.buried = 0;
	_PyInterpreterState_SetEvalFrameFunc(interp, tickmap_evaluate);
}

int tickmap_hook_install(void)
{
	PyInterpreterState *interp = PyThreadState_Get()->interp;

	if (interp != PyInterpreterState_Main())
		return 0;
	if (hook.active)
		return 1;
	if (prepare(interp) < 0)
		return -1;
	put_on_top(interp);
	hook.active = 1;
	tickmap_inlined_sweep();
	return 1;
}

void tickmap_hook_remove(void)
{
	if (!hook.active ||
	    PyThreadState_Get()->interp != PyInterpreterState_Main())
		return;
	hook.active = 0;
	if (hook.suspended > 0)
		return;
	hook.buried = _PyInterpreterState_GetEvalFrameFunc(hook.interp) !=
		      tickmap_evaluate;
	if (!hook.buried)
		_PyInterpreterState_SetEvalFrameFunc(hook.interp, hook.below);
}

int tickmap_hook_is_active(void)
{
	return hook.active &&
	       PyThreadState_Get()->interp == PyInterpreterState_Main();
}
