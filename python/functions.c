/* SPDX-License-Identifier: MIT */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

#include "publish.h"

/* Some 120 MB of trampolines: past this a program makes up new names in a
 * loop, and more of them would tell nobody anything. */
enum { MOST_FUNCTIONS = 1 << 20 };

struct function {
	uint64_t hash;
	size_t name_length;
	char *name; /* NULL: an unused place */
	int line;
	const uint8_t *entry;
};

/* Open addressing; the capacity is a power of two. Under the publish lock. */
static struct {
	struct function *places;
	size_t capacity;
	size_t count;
} table;

static uint64_t hash_of(const char *name, size_t length, int line)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint32_t)line;

	for (size_t i = 0; i < length; i++) {
		hash ^= (uint8_t)name[i];
		hash *= UINT64_C(0x100000001b3);
	}
	return hash ^ (hash >> 32);
}

static struct function *place_of(uint64_t hash, const char *name, size_t length,
				 int line)
{
	size_t mask = table.capacity - 1;

	for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
		struct function *place = &table.places[i];

		if (!place->name ||
		    (place->hash == hash && place->line == line &&
		     place->name_length == length &&
		     memcmp(place->name, name, length) == 0))
			return place;
	}
}

static int table_grow(void)
{
	size_t old_capacity = table.capacity;
	struct function *old = table.places;
	size_t capacity = old_capacity ? old_capacity * 2 : 1024;
	struct function *places = calloc(capacity, sizeof(*places));

	if (!places)
		return -1;
	table.places = places;
	table.capacity = capacity;
	for (size_t i = 0; i < old_capacity; i++) {
		struct function *f = &old[i];

		if (f->name)
			*place_of(f->hash, f->name, f->name_length, f->line) =
				*f;
	}
	free(old);
	return 0;
}

static const uint8_t *entry_for(const char *name, size_t length,
				const char *file, int line)
{
	if (table.count >= table.capacity / 2 && table_grow() != 0 &&
	    table.count + 1 >= table.capacity)
		return NULL;
	uint64_t hash = hash_of(name, length, line);
	struct function *place = place_of(hash, name, length, line);
	if (place->name)
		return place->entry;
	if (table.count >= MOST_FUNCTIONS)
		return NULL;
	char *kept = malloc(length + 1);
	if (!kept)
		return NULL;
	const uint8_t *entry =
		tickmap_publish_function(name, length, file, line);
	if (!entry) {
		free(kept);
		return NULL;
	}
	memcpy(kept, name, length);
	kept[length] = '\0';
	*place = (struct function) { hash, length, kept, line, entry };
	table.count++;
	return entry;
}

/*
 * The bytes of a str that need not be valid text: file names hold undecodable
 * bytes as lone surrogates, and a program may make up others.
 */
static PyObject *bytes_of(PyObject *text)
{
	if (!text || !PyUnicode_Check(text))
		return PyBytes_FromString("?");
	PyObject *bytes =
		PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
	if (bytes)
		return bytes;
	PyErr_Clear();
	return PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
}

static PyObject *qualified_name(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030B0000
	return code->co_qualname;
#else
	return code->co_name;
#endif
}

tickmap_entry tickmap_function_entry(PyCodeObject *code)
{
	SET_EXCEPTION_ASIDE(pending);
	const uint8_t *entry = NULL;
	PyObject *name = bytes_of(qualified_name(code));
	PyObject *file = name ? bytes_of(code->co_filename) : NULL;
	PyObject *label =
		file ? PyBytes_FromFormat("py::%s:%s", PyBytes_AS_STRING(name),
					  PyBytes_AS_STRING(file))
		     : NULL;
	if (label) {
		tickmap_publish_lock();
		entry = entry_for(PyBytes_AS_STRING(label),
				  (size_t)PyBytes_GET_SIZE(label),
				  PyBytes_AS_STRING(file),
				  code->co_firstlineno);
		tickmap_publish_unlock();
	}
	Py_XDECREF(label);
	Py_XDECREF(file);
	Py_XDECREF(name);
	PyErr_Clear();
	PUT_EXCEPTION_BACK(pending);
	return (tickmap_entry)(uintptr_t)entry;
}

size_t tickmap_function_count(void)
{
	tickmap_publish_lock();
	size_t count = table.count;
	tickmap_publish_unlock();
	return count;
}
