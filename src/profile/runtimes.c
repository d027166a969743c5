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

uint8_t tickmap_runtime_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		const char *file = runtimes[i].file;
		size_t length = strlen(file);
		if (file[length - 1] == '*' ? !strncmp(name, file, length - 1)
					    : !strcmp(name, file))
			return (uint8_t)(i + 1);
	}
	return 0;
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

/* A process's own, or its parent's: a child may map nothing. */
static uint8_t runtime_in(const struct tickmap_loader *loader,
			  const struct tickmap_process *process)
{
	if (process->marked || process->runtime ||
	    process->parent == TICKMAP_NONE)
		return process->marked ? 0 : process->runtime;
	process = &loader->processes.items[process->parent];
	return process->marked ? 0 : process->runtime;
}

bool tickmap_runtimes_write_hints(struct tickmap_loader *loader)
{
	bool good = true;

	for (size_t i = 0; good && i < loader->processes.count; i++) {
		const struct tickmap_process *p = &loader->processes.items[i];
		uint8_t runtime = p->silent ? runtime_in(loader, p) : 0;
		char hint[320];
		if (!runtime)
			continue;
		snprintf(hint, sizeof(hint),
			 "%s; then its generated code has names",
			 runtimes[runtime - 1].hint);
		good = add(loader->profile, hint);
	}
	return good;
}
