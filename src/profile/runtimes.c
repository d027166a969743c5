/* SPDX-License-Identifier: MIT */
/*
 * What to type so that a runtime publishes its code: said for processes that
 * were sampled in generated code and published none. Runtimes are known by the
 * files that they map.
 */
#include "profile/load.h"

#include <stdio.h>
#include <string.h>

/* `file`: the name of a mapped file, or its beginning, if it ends in '*'. */
static const struct runtime {
	const char *file, *hint;
} runtimes[] = {
	{ "node", "node: start it with --perf-prof" },
	{ "nodejs", "nodejs: start it with --perf-prof" },
	{ "deno", "deno: start it with --v8-flags=--perf-prof" },
	{ "chrome",
	  "chrome: start it with --no-sandbox --js-flags=--perf-prof" },
	{ "chromium",
	  "chromium: start it with --no-sandbox --js-flags=--perf-prof" },
	{ "electron",
	  "electron: start it with --no-sandbox --js-flags=--perf-prof" },
	{ "bun", "bun: start it with BUN_JSC_useJITDump=1 in its environment" },
	{ "libjavascriptcoregtk-*",
	  "WebKit: start it with JSC_useJITDump=1 in its environment" },
	{ "libJavaScriptCore.*",
	  "WebKit: start it with JSC_useJITDump=1 in its environment" },
	{ "libjvm.so",
	  "java: start it with -XX:+PreserveFramePointer "
	  "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit, or type "
	  "`jcmd PID Compiler.perfmap` while it runs" },
	{ "beam.smp", "erl: start it with +JPperf true" },
	{ "libcoreclr.so",
	  "dotnet: start it with DOTNET_PerfMapEnabled=1 in its environment" },
	{ "mono", "mono: start it with --jitmap" },
	{ "mono-sgen", "mono: start it with --jitmap" },
	{ "libmonosgen-*", "mono: start it with --jitmap" },
	{ "opcache.so", "php: start it with -d opcache.jit_debug=32" },
	{ "llvmjit.so", "postgres: start it with -c jit_profiling_support=on" },
	{ "libQt5Qml.*",
	  "Qt: start it with QV4_PROFILE_WRITE_PERF_MAP=1 in its environment" },
	{ "libQt6Qml.*",
	  "Qt: start it with QV4_PROFILE_WRITE_PERF_MAP=1 in its environment" },
	{ "libguile-*", "guile: start it with GUILE_JIT_LOG=1" },
	{ "wasmtime", "wasmtime: start it with run --profile=jitdump" },
	{ "qemu-*", "qemu: start it with -perfmap (8.0 and newer)" },
};

static const struct runtime *runtime_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		const char *file = runtimes[i].file;
		size_t length = strlen(file);
		if (file[length - 1] == '*' ? !strncmp(name, file, length - 1)
					    : !strcmp(name, file))
			return &runtimes[i];
	}
	return NULL;
}

/*
 * Of each pid: the last runtime that it mapped (it may have been another
 * program before), whether a jitdump of it is known, and from whom it was
 * forked, packed into a number.
 */
enum { MARKED = 1 << 8, PARENT_SHIFT = 32 };

static const struct runtime *runtime_in(const uint64_t *known)
{
	unsigned number = known && !(*known & MARKED) ? *known & 0xff : 0;

	return number ? &runtimes[number - 1] : NULL;
}

static void note(const struct tickmap_loader *loader,
		 const struct tickmap_side *e, uint64_t *known)
{
	if (e->kind == TICKMAP_SIDE_FORK) {
		if (!e->exec && e->ppid != e->pid)
			*known = (uint32_t)*known | (uint64_t)e->ppid
							    << PARENT_SHIFT;
		return;
	}
	const struct tickmap_loaded_map *map = &loader->maps.items[e->map];
	const struct runtime *r = runtime_of(
		tickmap_string(loader->profile->strings, map->path, NULL));
	if (map->marker)
		*known |= MARKED;
	if (r)
		*known = (*known & ~UINT64_C(0xff)) |
			 (uint64_t)(r - runtimes + 1);
}

static bool note_all(const struct tickmap_loader *loader,
		     struct tickmap_table *known)
{
	for (size_t i = 0; i < loader->side.count; i++) {
		const struct tickmap_side *e = &loader->side.items[i];
		if (e->kind != TICKMAP_SIDE_FORK && e->kind != TICKMAP_SIDE_MAP)
			continue;
		uint64_t *of_pid = tickmap_table_put(known, e->pid);
		if (!of_pid)
			return false;
		note(loader, e, of_pid);
	}
	return true;
}

static bool add(struct tickmap_profile *profile, const char *hint)
{
	tickmap_str text = tickmap_intern_cstr(profile->strings, hint);

	for (size_t i = 0; i < profile->hints.count; i++)
		if (profile->hints.items[i] == text)
			return true;
	tickmap_str *added = tickmap_vec_push(&profile->hints);
	if (added)
		*added = text;
	return added;
}

static bool write_hint(struct tickmap_loader *loader,
		       const struct tickmap_table *of_pid, uint32_t pid)
{
	const uint64_t *known = tickmap_table_get(of_pid, pid);
	const struct runtime *r = runtime_in(known);
	char hint[320];

	/* A child may map nothing of its own. */
	if (!r && known && !(*known & MARKED) && *known >> PARENT_SHIFT)
		r = runtime_in(
			tickmap_table_get(of_pid, *known >> PARENT_SHIFT));
	if (!r)
		return true;
	snprintf(hint, sizeof(hint), "%s; then its generated code has names",
		 r->hint);
	return add(loader->profile, hint);
}

bool tickmap_runtimes_write_hints(struct tickmap_loader *loader)
{
	const struct tickmap_table *silent = &loader->silent;
	struct tickmap_table of_pid = { 0 };
	bool good = !silent->count || note_all(loader, &of_pid);

	for (size_t i = 0; good && i < silent->capacity; i++)
		if (tickmap_table_is_used(silent, i))
			good = write_hint(loader, &of_pid,
					  (uint32_t)silent->slots[i].key);
	tickmap_table_free(&of_pid);
	return good;
}
