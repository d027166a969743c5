/* SPDX-License-Identifier: MIT */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

#include "publish.h"

/* Some 70 MB, half of it trampolines: past this a program makes up new names in
 * a loop, and more of them would tell nobody anything. */
enum { MOST_FUNCTIONS = 1 << 18 };

/* Bytes of a name, and of a file's. What is longer was made by a program, and
 * a map must hold many. */
enum { LONGEST_PART = 16 * 1024 };

struct function {
	uint64_t hash;
	size_t name_length;
	char *name;	/* NULL: an unused place */
	size_t file_at; /* where in the name the file begins */
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
	*place = (struct function) {
		.hash = hash,
		.name_length = length,
		.name = kept,
		.file_at = length - strlen(file),
		.line = line,
		.entry = entry,
	};
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

static void append(char **at, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		(*at)[i] = bytes[i] ? bytes[i] : '?'; /* a NUL would end it */
	*at += length;
}

static size_t cut(PyObject *bytes)
{
	size_t length = (size_t)PyBytes_GET_SIZE(bytes);

	return length < LONGEST_PART ? length : LONGEST_PART;
}

/* py::NAME:FILE. *ret_file is in it. */
static PyObject *label_of(PyObject *name, PyObject *file, const char **ret_file)
{
	size_t length = 4 + cut(name) + 1 + cut(file);
	PyObject *label = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length);

	if (!label)
		return NULL;
	char *at = PyBytes_AS_STRING(label);
	append(&at, "py::", 4);
	append(&at, PyBytes_AS_STRING(name), cut(name));
	append(&at, ":", 1);
	*ret_file = at;
	append(&at, PyBytes_AS_STRING(file), cut(file));
	return label;
}

tickmap_entry tickmap_function_entry(PyCodeObject *code)
{
	SET_EXCEPTION_ASIDE(pending);
	const uint8_t *entry = NULL;
	const char *file_part = NULL;
	PyObject *name = bytes_of(qualified_name(code));
	PyObject *file = name ? bytes_of(code->co_filename) : NULL;
	PyObject *label = file ? label_of(name, file, &file_part) : NULL;
	if (label) {
		tickmap_publish_lock();
		entry = entry_for(PyBytes_AS_STRING(label),
				  (size_t)PyBytes_GET_SIZE(label), file_part,
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

void tickmap_functions_publish_again(void)
{
	tickmap_publish_lock();
	for (size_t i = 0; i < table.capacity; i++) {
		const struct function *f = &table.places[i];

		if (f->name)
			tickmap_publish_again(f->entry, f->name, f->name_length,
					      f->name + f->file_at, f->line);
	}
	tickmap_publish_unlock();
}

size_t tickmap_function_count(void)
{
	tickmap_publish_lock();
	size_t count = table.count;
	tickmap_publish_unlock();
	return count;
}
