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
#include "deep.h"
#include "farewell.h"
#include "forked.h"
#include "functions.h"
#include "guard.h"
#include "inlined.h"
#include "native.h"
#include "switching.h"

/* Bit 0 of a kept entry: calls must be shown to inlined.c. Code that has no
 * trampoline keeps the address of `straight` instead. */
#define CONCERNS_INLINING ((uintptr_t)1)

static struct {
	_PyFrameEvalFunction below; /* the evaluator we stand before */
	Py_ssize_t index;	    /* our place in co_extra; -1: none yet */
	/* The same while calls are to be seen and it may be read directly;
	 * else beyond every size, which sends calls the slow way. */
	Py_ssize_t direct_index;
	int reads_directly;
	struct tickmap_frame_layout layout;
	PyInterpreterState *interp;
	int active;
	int buried; /* switched off while another tool stood over us */
	int aside;  /* switched off until another evaluator is gone */
	int preparing;
	int suspended; /* calls now running that took the hook out */
} hook = { .index = -1, .direct_index = PY_SSIZE_T_MAX };

GATE_DEFINE(extra_gate);

struct code_extra {
	Py_ssize_t size;
	void *slots[1];
};

/*
 * What is kept for this frame's code, or 0. Other than in entry_of, the frame
 * is believed to hold a code object where every frame of this version does:
 * direct_index is only set where calibration has found it there.
 */
static inline uintptr_t kept_entry(const tickmap_frame *frame)
{
	const PyCodeObject *code = tickmap_frame_code(frame);
	struct code_extra *extra =
		__atomic_load_n(&code->co_extra, __ATOMIC_ACQUIRE);
	Py_ssize_t index =
		__atomic_load_n(&hook.direct_index, __ATOMIC_RELAXED);

	if (UNLIKELY(!extra || extra->size <= index))
		return 0;
	return (uintptr_t)__atomic_load_n(&extra->slots[index],
					  __ATOMIC_ACQUIRE);
}

static PyObject *straight(PyThreadState *tstate, tickmap_frame *frame,
			  int throwflag, _PyFrameEvalFunction evaluator)
{
	return evaluator(tstate, frame, throwflag);
}

/*
 * The accessor makes a new block as long as all tools' indexes need, and when
 * the code dies each tool's function is called for its place, used or not.
 * Some do not expect that, or are gone by then: ours is as long as we need.
 */
static int keep_in_own_block(PyCodeObject *code, uintptr_t value)
{
#ifdef TICKMAP_OWN_EXTRA_BLOCK
	void *none = NULL;

	if (!hook.reads_directly || code->co_extra)
		return 0;
	size_t slots = (size_t)hook.index + 1;
	struct code_extra *extra =
		PyMem_Calloc(1, offsetof(struct code_extra, slots) +
					slots * sizeof(extra->slots[0]));
	if (!extra)
		return 0;
	extra->size = hook.index + 1;
	extra->slots[hook.index] = (void *)value;
	if (__atomic_compare_exchange_n(&code->co_extra, &none, extra, 0,
					__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return 1;
	PyMem_Free(extra);
	return 0;
#else
	(void)code;
	(void)value;
	return 0;
#endif
}

static void keep_entry(PyCodeObject *code, uintptr_t value)
{
	if (keep_in_own_block(code, value))
		return;
	SET_EXCEPTION_ASIDE(pending);
	GATE_ENTER(extra_gate);
	if (set_extra((PyObject *)code, hook.index, (void *)value) < 0)
		PyErr_Clear(); /* out of memory: tried again at the next call */
	GATE_LEAVE(extra_gate);
	PUT_EXCEPTION_BACK(pending);
}

static uintptr_t entry_new(PyObject *object)
{
	PyCodeObject *code = (PyCodeObject *)object;
	tickmap_entry entry = tickmap_function_entry(code);
	uintptr_t value = (uintptr_t)(entry ? entry : straight);

	if (entry && tickmap_inlined_concerns(code))
		value |= CONCERNS_INLINING;
	keep_entry(code, value);
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

static int is_active(void)
{
	return __atomic_load_n(&hook.active, __ATOMIC_RELAXED);
}

static _PyFrameEvalFunction below(void)
{
	return __atomic_load_n(&hook.below, __ATOMIC_RELAXED);
}

static void suspend(void)
{
	tickmap_changing_begin();
	hook.suspended++;
	tickmap_stack.suspended++;
	if (_PyInterpreterState_GetEvalFrameFunc(hook.interp) ==
	    tickmap_evaluate)
		tickmap_set_evaluator(hook.interp, hook.below);
	tickmap_changing_end();
}

static void put_back_unless_suspended(void)
{
	if (hook.suspended == 0 && hook.active &&
	    _PyInterpreterState_GetEvalFrameFunc(hook.interp) == hook.below)
		tickmap_set_evaluator(hook.interp, tickmap_evaluate);
}

static void resume(void)
{
	tickmap_changing_begin();
	hook.suspended--;
	tickmap_stack.suspended--;
	put_back_unless_suspended();
	tickmap_changing_end();
	if (hook.suspended == 0)
		tickmap_inlined_keep_again();
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
	tickmap_deep_begin(tstate, frame, &hook.layout);
	int taken = tickmap_stack_clamp(tstate);
	PyObject *result = below()(tstate, frame, throwflag);
	tickmap_stack_unclamp(tstate, taken);
	resume();
	return result;
}

/* Before 3.11 every Python call takes C stack, with or without a hook; and an
 * evaluator of somebody else's must not be taken out. */
static int calls_can_be_inlined(void)
{
	return PY_VERSION_HEX >= 0x030B0000 &&
	       below() == _PyEval_EvalFrameDefault;
}

static inline int has_room(const PyThreadState *tstate)
{
	return tickmap_stack_has_room() && tickmap_c_calls_are_left(tstate);
}

static NOINLINE PyObject *evaluate_uncommon(PyThreadState *tstate,
					    tickmap_frame *frame, int throwflag)
{
	if (!is_active()) /* a tool put over us still calls us */
		return below()(tstate, frame, throwflag);
	tickmap_forked_call();
	if (tickmap_stack.span == 0)
		tickmap_stack_find();
	if (!has_room(tstate)) {
		if (calls_can_be_inlined())
			return evaluate_unhooked(tstate, frame, throwflag);
		return below()(tstate, frame, throwflag);
	}
	return entry_of(frame)(tstate, frame, throwflag, below());
}

static NOINLINE PyObject *evaluate_concerned(PyThreadState *tstate,
					     tickmap_frame *frame,
					     int throwflag, uintptr_t entry)
{
	tickmap_inlined_call(frame, &hook.layout);
	return ((tickmap_entry)entry)(tstate, frame, throwflag, below());
}

static PyObject *tickmap_evaluate(PyThreadState *tstate, tickmap_frame *frame,
				  int throwflag)
{
	uintptr_t entry = kept_entry(frame);

	if (UNLIKELY(entry == 0 || !has_room(tstate)))
		return evaluate_uncommon(tstate, frame, throwflag);
	if (UNLIKELY(entry & CONCERNS_INLINING)) {
		entry &= ~CONCERNS_INLINING;
		if (!tickmap_inlined_is_kept(frame, &hook.layout))
			return evaluate_concerned(tstate, frame, throwflag,
						  entry);
	}
	return ((tickmap_entry)entry)(tstate, frame, throwflag, below());
}

static void set_active(int active)
{
	__atomic_store_n(&hook.active, active, __ATOMIC_RELAXED);
	__atomic_store_n(&hook.direct_index,
			 active && hook.reads_directly ? hook.index
						       : PY_SSIZE_T_MAX,
			 __ATOMIC_RELAXED);
}

/* The interpreter is gone, and with it the meaning of our index. */
static void forget_interpreter(void)
{
	tickmap_farewell();
	tickmap_inlined_forget();
	set_active(0);
	hook.index = -1;
	hook.reads_directly = 0;
	hook.interp = NULL;
	hook.below = NULL;
	hook.buried = 0;
	hook.aside = 0;
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

/* What ends an interpreter or splits it is told to us. */
static int watch_interpreter(void)
{
	if (Py_AtExit(forget_interpreter) == 0)
		return tickmap_forked_watch_interpreter();
	PyErr_SetString(PyExc_RuntimeError,
			"too many functions to call at exit");
	return -1;
}

/* Once per interpreter: co_extra has 255 places, and none is given back. */
static int prepare_anew(PyInterpreterState *interp)
{
	if (tickmap_calibrate(interp, &hook.layout) < 0)
		return -1;
	PyObject *code = Py_CompileString("0", "<tickmap>", Py_eval_input);
	if (!code)
		return -1;
	if (watch_interpreter() < 0) {
		Py_DECREF(code);
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
	hook.reads_directly = reads_directly(code) &&
			      hook.layout.code == TICKMAP_FRAME_CODE_WORD;
	Py_DECREF(code);
	return 0;
}

/* What is run here may run a finalizer, which may want to switch as well. */
static int prepare(PyInterpreterState *interp)
{
	if (hook.index >= 0)
		return 0;
	if (hook.preparing) {
		PyErr_SetString(PyExc_RuntimeError,
				"tickmap is being activated already");
		return -1;
	}
	hook.preparing = 1;
	int result = prepare_anew(interp);
	hook.preparing = 0;
	return result;
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
	__atomic_store_n(&hook.below, now, __ATOMIC_RELAXED);
	hook.buried = 0;
	tickmap_set_evaluator(interp, tickmap_evaluate);
}

static int install(PyInterpreterState *interp)
{
	if (hook.active)
		return 1;
	if (prepare(interp) < 0)
		return -1;
	set_active(1);
	put_on_top(interp);
	hook.aside = 0;
	tickmap_inlined_sweep();
	tickmap_native_watch();
	return 1;
}

int tickmap_hook_install(void)
{
	PyInterpreterState *interp = PyThreadState_Get()->interp;

	if (interp != PyInterpreterState_Main())
		return 0;
	tickmap_switching_begin();
	int result = install(interp);
	tickmap_switching_end();
	return result;
}

static void take_off(void)
{
	if (hook.suspended > 0)
		return;
	hook.buried = _PyInterpreterState_GetEvalFrameFunc(hook.interp) !=
		      tickmap_evaluate;
	if (!hook.buried)
		tickmap_set_evaluator(hook.interp, hook.below);
}

void tickmap_hook_remove(void)
{
	if (PyThreadState_Get()->interp != PyInterpreterState_Main())
		return;
	tickmap_switching_begin();
	hook.aside = 0;
	if (hook.active) {
		/* In this order: between the two, a call that found us there
		 * and inactive would have to do without its trampoline, which
		 * pays for it where C recursion is counted. */
		take_off();
		set_active(0);
		tickmap_inlined_sweep_back();
	}
	tickmap_switching_end();
}

int tickmap_hook_is_active(void)
{
	return is_active() &&
	       PyThreadState_Get()->interp == PyInterpreterState_Main();
}

void tickmap_hook_forked(void)
{
	GATE_RESET(extra_gate);
	hook.suspended = tickmap_stack.suspended;
}

void tickmap_hook_in_child(void)
{
	if (hook.interp == PyThreadState_Get()->interp)
		put_back_unless_suspended();
}

int tickmap_hook_step_aside(void)
{
	if (!tickmap_hook_is_active())
		return 0;
	tickmap_switching_begin();
	tickmap_hook_remove();
	hook.aside = 1;
	tickmap_switching_end();
	return 1;
}

void tickmap_hook_come_back(void)
{
	if (hook.aside && tickmap_hook_install() < 0)
		PyErr_Clear();
}
