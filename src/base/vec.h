/* SPDX-License-Identifier: MIT */
/*
 * A growing array: TICKMAP_VEC(struct thing) things = { 0 };
 * Pointers into it die at the next push. Free with tickmap_vec_free.
 */
#ifndef TICKMAP_BASE_VEC_H
#define TICKMAP_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define TICKMAP_VEC(type)                                                      \
	struct {                                                               \
		type *items;                                                   \
		size_t count;                                                  \
		size_t capacity;                                               \
	}

/* Make room for `want` elements. False when memory or the size type ends. */
bool tickmap_vec_grow(void *items, size_t *capacity, size_t want,
		      size_t element);

/* Gives back what is more than `count` elements; that may fail, unseen. */
void tickmap_vec_shrink(void *items, size_t *capacity, size_t count,
			size_t element);

#define tickmap_vec_fit(v)                                                     \
	tickmap_vec_shrink(&(v)->items, &(v)->capacity, (v)->count,            \
			   sizeof(*(v)->items))

#define tickmap_vec_reserve(v, want)                                           \
	((want) <= (v)->capacity ||                                            \
	 tickmap_vec_grow(&(v)->items, &(v)->capacity, (want),                 \
			  sizeof(*(v)->items)))

/* A pointer to a new last element with undefined content, or NULL. */
#define tickmap_vec_push(v)                                                    \
	(tickmap_vec_reserve((v), (v)->count + 1) ? &(v)->items[(v)->count++]  \
						  : NULL)

#define tickmap_vec_free(v)                                                    \
	do {                                                                   \
		free((v)->items);                                              \
		(v)->items = NULL;                                             \
		(v)->count = (v)->capacity = 0;                                \
	} while (0)

#endif
