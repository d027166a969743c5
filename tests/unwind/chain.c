/* SPDX-License-Identifier: MIT */
/*
 * Built with -O2 -fomit-frame-pointer: frames of all shapes that a compiler
 * makes, each of which notes whom it will return to.
 */
#include "self.h"

#include <alloca.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

static volatile unsigned sink;

static void next(struct chain *chain, unsigned depth);

static void note(struct chain *chain, void *return_address)
{
	chain->expected[chain->depth++] = return_address;
}

#define NOTE(chain) note(chain, __builtin_return_address(0))

static NOINLINE void plain(struct chain *chain, unsigned depth)
{
	NOTE(chain);
	next(chain, depth);
	sink++;
}

/* Keeps every preserved register in use across the call. */
static NOINLINE void busy(struct chain *chain, unsigned depth)
{
	unsigned a = sink + 1, b = sink * 3, c = sink ^ depth, d = sink << 2,
		 e = sink >> 1, f = sink - depth;

	NOTE(chain);
	next(chain, depth);
	sink = a ^ (b + c) ^ (d * e) ^ f;
	next(chain, 0);
	sink += a * b * c * d * e * f;
}

static NOINLINE void with_alloca(struct chain *chain, unsigned depth)
{
	size_t size = 16 + depth * 24;
	char *room = alloca(size);

	NOTE(chain);
	memset(room, (int)depth, size);
	next(chain, depth);
	sink += (unsigned char)room[size - 1];
}

static NOINLINE void aligned(struct chain *chain, unsigned depth)
{
	_Alignas(64) char room[128];

	NOTE(chain);
	memset(room, (int)depth, sizeof(room));
	next(chain, depth);
	sink += (unsigned char)room[depth % sizeof(room)];
}

/* Realigned, with arguments on the stack: gcc keeps a pointer to them. */
static NOINLINE unsigned drap(struct chain *chain, unsigned depth, unsigned a,
			      unsigned b, unsigned c, unsigned d, unsigned e,
			      unsigned f)
{
	_Alignas(64) char room[128];
	char *more = alloca(depth * 8 + 16);

	NOTE(chain);
	memset(room, (int)depth, sizeof(room));
	memset(more, (int)depth, 16);
	next(chain, depth);
	sink += (unsigned char)room[e % sizeof(room)] +
		(unsigned char)more[f % 16];
	return a + b + c + d + e + f;
}

static NOINLINE unsigned variadic(struct chain *chain, unsigned depth, ...)
{
	va_list list;
	unsigned sum = 0;

	NOTE(chain);
	va_start(list, depth);
	next(chain, depth);
	for (unsigned i = 0; i < 8; i++)
		sum += va_arg(list, unsigned);
	va_end(list);
	return sum;
}

static NOINLINE void large(struct chain *chain, unsigned depth)
{
	volatile char room[9000];

	NOTE(chain);
	room[depth] = (char)depth;
	next(chain, depth);
	sink += (unsigned)room[depth];
}

static NOINLINE void next(struct chain *chain, unsigned depth)
{
	if (!depth) {
		if (chain->leaf) {
			void (*leaf)(void *) = chain->leaf;
			NOTE(chain);
			chain->leaf = NULL;
			leaf(chain->context);
			sink++;
		}
		return;
	}
	NOTE(chain);
	depth--;
	chain->seed = chain->seed * 1103515245u + 12345u;
	switch (chain->seed >> 16 & 7) {
	case 0:
		busy(chain, depth);
		break;
	case 1:
		with_alloca(chain, depth);
		break;
	case 2:
		aligned(chain, depth);
		break;
	case 3:
		sink += drap(chain, depth, 1, 2, 3, 4, 5, 6);
		break;
	case 4:
		sink += variadic(chain, depth, 1, 2, 3, 4, 5, 6, 7, 8);
		break;
	case 5:
		large(chain, depth);
		break;
	default:
		plain(chain, depth);
	}
	sink++;
}

void chain_run(struct chain *chain, unsigned depth)
{
	chain->depth = 0;
	next(chain, depth);
	sink++;
}

static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

unsigned chain_work(unsigned rounds)
{
	char text[128];
	int numbers[24];
	unsigned sum = 0;

	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < 24; i++)
			numbers[i] = (int)(i * 7919 % 31) - (int)round;
		qsort(numbers, 24, sizeof(numbers[0]), compare);
		snprintf(text, sizeof(text), "%d %s %.3f %p", numbers[3],
			 "text", (double)numbers[5] / 3, (void *)&sum);
		char *copy = strdup(text);
		if (copy) {
			char *rest, *word = strtok_r(copy, " ", &rest);
			for (; word; word = strtok_r(NULL, " ", &rest))
				sum += (unsigned)strlen(word);
		}
		free(copy);
		void *large_room = malloc(300000);
		free(large_room);
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		sum += strtol("1234", NULL, 10) == 1234;
		sum += bsearch(&numbers[4], numbers, 24, sizeof(numbers[0]),
			       compare) != NULL;
	}
	return sum;
}
