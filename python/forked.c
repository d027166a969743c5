/* SPDX-License-Identifier: MIT */
#include "forked.h"

#include <pthread.h>
#include <stdlib.h>

#include "functions.h"
#include "guard.h"

static int first_call;

/* The thread that forked is the only one here. */
static void in_child(void)
{
	first_call = 1;
	/* Its next call goes the uncommon way, which finds the span anew. */
	tickmap_stack.span = 0;
}

int tickmap_forked_watch(void)
{
	static int watching;

	if (watching || getenv("TICKMAP_FOLLOWED"))
		return 0;
	int error = pthread_atfork(NULL, NULL, in_child);
	watching = error == 0;
	return error;
}

void tickmap_forked_call(void)
{
	if (__atomic_load_n(&first_call, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&first_call, 0, __ATOMIC_RELAXED))
		tickmap_functions_publish_again();
}
