/* SPDX-License-Identifier: MIT */
#include "deep.h"

#include "inlined.h"

#if PY_VERSION_HEX >= 0x030B0000 && !defined(Py_GIL_DISABLED)

#include <opcode.h>
#include <string.h>

/* A recursion that takes more calls to come round is helped in part. */
enum { MOST_CALLS = 32 };

/* Instructions whose first cache entry counts down to the next look. */
static int learns(uint8_t opcode)
{
	switch (opcode) {
#if PY_VERSION_HEX < 0x030E0000
	case BINARY_SUBSCR:
#else
	case BINARY_OP:
	case CALL_KW:
#endif
#if PY_VERSION_HEX >= 0x030C0000
	case CALL:
	case FOR_ITER:
	case LOAD_ATTR:
	case SEND:
#endif
		return 1;
	}
	return 0;
}

#if PY_VERSION_HEX < 0x030C0000
/* What looks has an opcode of its own. */
static uint8_t looking(uint8_t opcode)
{
	return opcode == BINARY_SUBSCR ? BINARY_SUBSCR_ADAPTIVE : opcode;
}

static int is_of_tools(uint8_t opcode)
{
	(void)opcode;
	return 0;
}
#else
static uint8_t looking(uint8_t opcode)
{
	return opcode;
}

/* Put there by sys.monitoring, or by the optimiser. */
static int is_of_tools(uint8_t opcode)
{
#ifdef ENTER_EXECUTOR
	if (opcode == ENTER_EXECUTOR)
		return 1;
#endif
	return opcode >= MIN_INSTRUMENTED_OPCODE;
}
#endif

/* The instruction there as it was compiled: what has been learnt is undone, and
 * cache entries are 0. */
static uint8_t compiled_instruction(PyCodeObject *code, int at)
{
	PyObject *compiled = PyCode_GetCode(code);
	uint8_t opcode = 0;

	if (!compiled)
		PyErr_Clear();
	else if (at < PyBytes_GET_SIZE(compiled))
		opcode = (uint8_t)PyBytes_AS_STRING(compiled)[at];
	Py_XDECREF(compiled);
	return opcode;
}

/*
 * What was learnt about other functions holds. Where one that is kept from
 * being inlined is called, something was learnt that does not.
 */
static void look_again(PyCodeObject *code, int at, int is_kept)
{
	uint8_t *instruction = (uint8_t *)code->co_code_adaptive + at;
	uint16_t counter;

	if (at < 0 || is_of_tools(*instruction))
		return;
	memcpy(&counter, instruction + 2, sizeof(counter));
	if (!is_kept && (!learns(*instruction) || counter == 0))
		return;
	uint8_t compiled = compiled_instruction(code, at);
	if (!learns(compiled))
		return;
	*instruction = looking(compiled);
	counter = 0;
	memcpy(instruction + 2, &counter, sizeof(counter));
}

/*
 * One call that is being made: who makes it, and of whom. The frames of 3.11
 * are walked beside the interpreter's objects for them, which do not say what
 * function they run.
 */
struct call {
	PyFrameObject *caller;
	PyCodeObject *code;
	int at;
	PyObject *concerned; /* of the callee: what inlined.c keeps, or NULL */
	const tickmap_frame *raw;
};

#if PY_VERSION_HEX < 0x030C0000
enum { PREVIOUS = 6 };

static const tickmap_frame *raw_first(PyThreadState *tstate)
{
	return tstate->cframe->current_frame;
}

/* NULL if the two walks have parted. */
static const tickmap_frame *raw_same(const tickmap_frame *raw,
				     PyCodeObject *code)
{
	return raw && tickmap_frame_code(raw) == code ? raw : NULL;
}

static const tickmap_frame *raw_back(const tickmap_frame *raw)
{
	return raw ? ((tickmap_frame *const *)raw)[PREVIOUS] : NULL;
}

static PyObject *concerned_by_caller(const struct call *call,
				     const struct tickmap_frame_layout *layout)
{
	if (!call->raw || layout->function < 0)
		return NULL;
	return Py_NewRef(tickmap_frame_object(call->raw, layout->function));
}
#else
static const tickmap_frame *raw_first(PyThreadState *tstate)
{
	(void)tstate;
	return NULL;
}

static const tickmap_frame *raw_same(const tickmap_frame *raw,
				     PyCodeObject *code)
{
	(void)code;
	return raw;
}

static const tickmap_frame *raw_back(const tickmap_frame *raw)
{
	return raw;
}

static PyObject *concerned_by_caller(const struct call *call,
				     const struct tickmap_frame_layout *layout)
{
	(void)layout;
	PyObject *names = PyCode_GetVarnames(call->code);
	PyObject *self = names && PyTuple_GET_SIZE(names) > 0
				 ? PyFrame_GetVar(call->caller,
						  PyTuple_GET_ITEM(names, 0))
				 : NULL;
	Py_XDECREF(names);
	if (!self)
		PyErr_Clear();
	return self;
}
#endif

static void call_release(struct call *call)
{
	Py_CLEAR(call->caller);
	Py_CLEAR(call->code);
	Py_CLEAR(call->concerned);
}

static void call_first(struct call *call, PyThreadState *tstate,
		       const tickmap_frame *frame,
		       const struct tickmap_frame_layout *layout)
{
	PyObject *object = tickmap_frame_object(frame, layout->code);

	*call = (struct call) { .caller = PyThreadState_GetFrame(tstate) };
	if (object && PyCode_Check(object) &&
	    tickmap_inlined_concerns((PyCodeObject *)object))
		call->concerned =
			Py_XNewRef(tickmap_inlined_object(frame, layout));
	if (!call->caller)
		return;
	call->code = PyFrame_GetCode(call->caller);
	call->at = PyFrame_GetLasti(call->caller);
	call->raw = raw_same(raw_first(tstate), call->code);
}

/* The call that made this one's caller run. */
static void call_back(struct call *call,
		      const struct tickmap_frame_layout *layout)
{
	struct call back = { .caller = PyFrame_GetBack(call->caller) };

	if (tickmap_inlined_concerns(call->code))
		back.concerned = concerned_by_caller(call, layout);
	if (back.caller) {
		back.code = PyFrame_GetCode(back.caller);
		back.at = PyFrame_GetLasti(back.caller);
		back.raw = raw_same(raw_back(call->raw), back.code);
	}
	call_release(call);
	*call = back;
}

static int is_needed(void)
{
#if PY_VERSION_HEX < 0x030C0000
	return Py_Version < 0x030B0700; /* see inlined.h */
#else
	return 1;
#endif
}

void tickmap_deep_begin(PyThreadState *tstate, const tickmap_frame *frame,
			const struct tickmap_frame_layout *layout)
{
	struct call call;
	const PyCodeObject *first_code; /* compared, not used */
	int first_at;

	if (!is_needed())
		return;
	SET_EXCEPTION_ASIDE(pending);
	call_first(&call, tstate, frame, layout);
	first_code = call.code;
	first_at = call.at;
	for (int i = 0; i < MOST_CALLS && call.caller; i++) {
		if (i > 0 && call.code == first_code && call.at == first_at)
			break; /* it has come round */
		if (call.concerned)
			tickmap_inlined_let(call.concerned);
		look_again(call.code, call.at, call.concerned != NULL);
		call_back(&call, layout);
	}
	call_release(&call);
	PUT_EXCEPTION_BACK(pending);
}

void tickmap_deep_look_again(PyThreadState *tstate)
{
	PyFrameObject *caller = PyThreadState_GetFrame(tstate);

	if (!caller)
		return;
	PyCodeObject *code = PyFrame_GetCode(caller);
	look_again(code, PyFrame_GetLasti(caller), 1);
	Py_DECREF(code);
	Py_DECREF(caller);
}

#else

void tickmap_deep_begin(PyThreadState *tstate, const tickmap_frame *frame,
			const struct tickmap_frame_layout *layout)
{
	(void)tstate;
	(void)frame;
	(void)layout;
}

void tickmap_deep_look_again(PyThreadState *tstate)
{
	(void)tstate;
}

#endif
