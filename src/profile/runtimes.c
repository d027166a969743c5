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

/* The last one that the process mapped: it may have been another program
 * before. NULL: none is known, or a jitdump of it is. */
static const struct runtime *runtime_in(const struct tickmap_loader *loader,
					uint32_t pid, uint32_t *ret_parent)
{
	const struct runtime *found = NULL;

	*ret_parent = 0;
	for (size_t i = 0; i < loader->side.count; i++) {
		const struct tickmap_side *e = &loader->side.items[i];
		if (e->pid != pid)
			continue;
		if (e->kind == TICKMAP_SIDE_FORK && !e->exec && e->ppid != pid)
			*ret_parent = e->ppid;
		if (e->kind != TICKMAP_SIDE_MAP)
			continue;
		const struct tickmap_loaded_map *map =
			&loader->maps.items[e->map];
		if (map->marker)
			return *ret_parent = 0, NULL;
		const struct runtime *r = runtime_of(tickmap_string(
			loader->profile->strings, map->path, NULL));
		found = r ? r : found;
	}
	return found;
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

bool tickmap_runtimes_write_hints(struct tickmap_loader *loader)
{
	const struct tickmap_table *silent = &loader->silent;

	for (size_t i = 0; i < silent->capacity; i++) {
		if (!tickmap_table_is_used(silent, i))
			continue;
		uint32_t pid = (uint32_t)silent->slots[i].key, parent;
		const struct runtime *r = runtime_in(loader, pid, &parent);
		/* A child may map nothing of its own. */
		if (!r && parent)
			r = runtime_in(loader, parent, &parent);
		char hint[320];
		if (!r)
			continue;
		snprintf(hint, sizeof(hint),
			 "%s; then its generated code "
			 "has names",
			 r->hint);
		if (!add(loader->profile, hint))
			return false;
	}
	return true;
}
