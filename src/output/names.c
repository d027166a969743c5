/* SPDX-License-Identifier: MIT */
#include "output/names.h"

#include "base/table.h"
#include "output/output.h"
#include "unwind/unwind.h"

#include <inttypes.h>
#include <string.h>

void tickmap_text_add(struct tickmap_text *text, const char *bytes,
		      size_t length)
{
	size_t count = text->bytes.count;

	if (text->failed || length > SIZE_MAX - count ||
	    !tickmap_vec_reserve(&text->bytes, count + length)) {
		text->failed = true;
		return;
	}
	if (length)
		memcpy(text->bytes.items + count, bytes, length);
	text->bytes.count = count + length;
}

void tickmap_text_add_clean(struct tickmap_text *text, const char *bytes,
			    size_t length, bool folded)
{
	size_t start = text->bytes.count;

	tickmap_text_add(text, bytes, length);
	for (size_t i = start; i < text->bytes.count; i++) {
		char *c = &text->bytes.items[i];

		if (*c == ';' && folded)
			*c = ':';
		else if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	}
}

void tickmap_text_add_name(struct tickmap_text *text,
			   const struct tickmap_profile *profile,
			   uint32_t frame, unsigned flags)
{
	const struct tickmap_frame *f = &profile->frames.items[frame];
	size_t length;
	const char *name = tickmap_string(profile->strings, f->name, &length);

	tickmap_text_add_clean(text, name, length, flags & TICKMAP_NAME_FOLDED);
	if (tickmap_profile_needs_line(profile, frame)) {
		char line[16];
		int n = snprintf(line, sizeof(line), ":%" PRIu32, f->line);

		tickmap_text_add(text, line, (size_t)n);
	}
	if (flags & TICKMAP_NAME_KERNEL_SUFFIX &&
	    f->kind == TICKMAP_FRAME_KERNEL)
		tickmap_text_add(text, "_[k]", 4);
}

void tickmap_output_frame_name(const struct tickmap_profile *profile,
			       uint32_t frame, bool kernel_suffix, FILE *out)
{
	struct tickmap_text text = { 0 };

	tickmap_text_add_name(
		&text, profile, frame,
		TICKMAP_NAME_FOLDED |
			(kernel_suffix ? TICKMAP_NAME_KERNEL_SUFFIX : 0));
	fwrite(text.bytes.items, 1, text.bytes.count, out);
	tickmap_vec_free(&text.bytes);
}

tickmap_str *tickmap_names_folded(const struct tickmap_profile *profile,
				  struct tickmap_strings *strings)
{
	struct tickmap_text text = { 0 };
	size_t count = profile->frames.count;
	tickmap_str *ids = calloc(count + 1, sizeof(*ids));

	for (size_t i = 0; ids && i < count; i++) {
		text.bytes.count = 0;
		tickmap_text_add_name(&text, profile, (uint32_t)i,
				      TICKMAP_NAME_FOLDED |
					      TICKMAP_NAME_KERNEL_SUFFIX);
		ids[i] = tickmap_intern(strings, text.bytes.items,
					text.bytes.count);
	}
	if (text.failed || tickmap_strings_failed(strings)) {
		free(ids);
		ids = NULL;
	}
	tickmap_vec_free(&text.bytes);
	return ids;
}

static bool same_function(const struct tickmap_frame *a,
			  const struct tickmap_frame *b)
{
	return a->name == b->name && a->dso == b->dso && a->file == b->file &&
	       a->line == b->line && a->inlined == b->inlined;
}

uint32_t *tickmap_names_functions(const struct tickmap_profile *profile)
{
	const struct tickmap_frame *frames = profile->frames.items;
	size_t count = profile->frames.count;
	uint32_t *first = calloc(count + 1, sizeof(*first));
	struct tickmap_table table = { 0 };

	for (size_t i = 0; first && i < count; i++) {
		const struct tickmap_frame *f = &frames[i];
		uint64_t key = tickmap_mix((uint64_t)f->name << 32 | f->dso) ^
			       tickmap_mix((uint64_t)f->file << 32 | f->line);
		uint64_t *slot;

		while ((slot = tickmap_table_get(&table, key)) &&
		       !same_function(&frames[*slot], f))
			key++;
		if (!slot) {
			slot = tickmap_table_put(&table, key);
			if (!slot) {
				free(first);
				first = NULL;
				break;
			}
			*slot = i;
		}
		first[i] = (uint32_t)*slot;
	}
	tickmap_table_free(&table);
	return first;
}

const char *tickmap_names_end_word(unsigned end)
{
	static const char *const words[TICKMAP_END_COUNT] = {
		[TICKMAP_END_COMPLETE] = "complete",
		[TICKMAP_END_STACK_SHORT] = "stack-short",
		[TICKMAP_END_NO_RULE] = "no-rule",
		[TICKMAP_END_BAD_RULE] = "bad-rule",
		[TICKMAP_END_BAD_STACK] = "bad-stack",
		[TICKMAP_END_NO_CODE] = "no-code",
		[TICKMAP_END_TOO_DEEP] = "too-deep",
		[TICKMAP_END_NO_REGISTERS] = "no-registers",
	};

	if (end == TICKMAP_TRUNCATED_NOT_UNWOUND)
		return "not-unwound";
	if (end == TICKMAP_TRUNCATED_DEFERRED)
		return "deferred";
	return end < TICKMAP_END_COUNT ? words[end] : "unknown";
}

const char *tickmap_names_end_text(unsigned end)
{
	if (end == TICKMAP_TRUNCATED_NOT_UNWOUND)
		return "stack bytes that were not unwound";
	if (end == TICKMAP_TRUNCATED_DEFERRED)
		return "user part that was deferred and never told";
	return tickmap_unwind_end_text(end);
}
