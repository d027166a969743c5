/* SPDX-License-Identifier: MIT */
/*
 * Names come from files that may be hostile: a short C++ name can unfold to
 * gigabytes by its back references, and a long one recurse as deep as it is
 * long. The depth is limited by libiberty itself, the length of the output
 * here.
 */
#include "symbolize/symbolize.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum {
	RAW_LIMIT = 64 * 1024,
	OUT_LIMIT = 64 * 1024,
	/*
	 * libiberty refuses C++ names of more than half of its recursion limit
	 * in bytes, though real ones are longer. Without its limit a name this
	 * long takes at most some 3 MB of stack.
	 */
	CPP_SHORT = DEMANGLE_RECURSION_LIMIT / 2,
	CPP_LIMIT = 4096,
};

struct output {
	char *bytes;
	size_t size, capacity;
	jmp_buf too_much;
};

static void append(const char *bytes, size_t size, void *context)
{
	struct output *out = context;

	if (!size)
		return;
	if (size > OUT_LIMIT - out->size)
		/* The callback cannot say stop. What is left behind is stack
		 * alone: the callback variants allocate nothing. */
		longjmp(out->too_much, 1);
	if (out->size + size + 1 > out->capacity) {
		size_t capacity = 2 * (out->size + size) + 64;
		char *grown = realloc(out->bytes, capacity);
		if (!grown)
			longjmp(out->too_much, 2);
		out->bytes = grown;
		out->capacity = capacity;
	}
	memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
}

static bool unfold(struct output *out, const char *raw, size_t length)
{
	int options = DMGL_PARAMS | DMGL_ANSI;

	/* Old Rust names look like C++ ones with a hash as the last part. */
	if (rust_demangle_callback(raw, options, append, out))
		return true;
	out->size = 0;
	if (length > CPP_LIMIT || strncmp(raw, "_R", 2) == 0)
		return false;
	if (length >= CPP_SHORT)
		options |= DMGL_NO_RECURSE_LIMIT;
	return cplus_demangle_v3_callback(raw, options, append, out);
}

/* False: not such a name, or too large. */
static bool unfold_limited(struct output *out, const char *raw, size_t length)
{
	if (setjmp(out->too_much))
		return false;
	return unfold(out, raw, length);
}

static bool looks_mangled(const char *name)
{
	return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0 ||
	       strncmp(name, "_GLOBAL_", 8) == 0;
}

char *tickmap_demangle(const char *raw_name)
{
	static const char plt[] = "@plt";
	struct output out = { 0 };
	size_t length = strlen(raw_name);
	bool is_plt;
	char *raw;

	if (!looks_mangled(raw_name) || length > RAW_LIMIT)
		return strdup(raw_name);
	is_plt = length > strlen(plt) &&
		 strcmp(raw_name + length - strlen(plt), plt) == 0;
	if (is_plt)
		length -= strlen(plt);
	raw = strndup(raw_name, length);
	if (!raw)
		return NULL;
	bool done = unfold_limited(&out, raw, length);
	free(raw);
	if (!done || !out.size || memchr(out.bytes, 0, out.size)) {
		free(out.bytes);
		return strdup(raw_name);
	}
	if (is_plt) {
		if (out.capacity - out.size < sizeof(plt)) {
			char *grown =
				realloc(out.bytes, out.size + sizeof(plt));
			if (!grown) {
				free(out.bytes);
				return NULL;
			}
			out.bytes = grown;
		}
		memcpy(out.bytes + out.size, plt, strlen(plt));
		out.size += strlen(plt);
	}
	out.bytes[out.size] = '\0';
	return out.bytes;
}
