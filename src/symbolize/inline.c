/* SPDX-License-Identifier: MIT */
/* Address in a file -> the functions that were inlined there. */
#include "symbolize/internal.h"

static struct tickmap_dwarf *dwarf_of(struct tickmap_symbolizer *symbolizer,
				      struct dso *dso)
{
	const char *path;

	tickmap_dso_open(symbolizer, dso);
	if (dso->dwarf_opened || dso->reason != TICKMAP_SYMBOL_FOUND)
		return dso->dwarf;
	dso->dwarf_opened = true;
	path = tickmap_string(symbolizer->strings, dso->path, NULL);
	dso->dwarf =
		tickmap_dwarf_open(dso->elf, *path == '/' ? path : NULL, "");
	return dso->dwarf;
}

static tickmap_str intern(struct tickmap_symbolizer *symbolizer,
			  const char *text)
{
	return text && *text ? tickmap_intern_cstr(symbolizer->strings, text)
			     : 0;
}

/* Reading and demangling once for each function is enough. */
static struct tickmap_source_frame
function_of(struct tickmap_symbolizer *symbolizer, struct dso *dso,
	    uint64_t key)
{
	struct tickmap_source_frame frame = { 0 }, *kept;
	struct tickmap_dwarf_function f;
	uint64_t *slot = tickmap_table_put(&dso->functions, key);

	if (slot && *slot)
		return dso->function_names.items[*slot - 1];
	tickmap_dwarf_function(dso->dwarf, key, &f);
	const char *raw = f.linkage_name ? f.linkage_name : f.name;
	frame.raw_name = intern(symbolizer, raw);
	if (frame.raw_name)
		frame.name = tickmap_readable_name(symbolizer, raw);
	frame.file = intern(symbolizer, f.file);
	frame.line = f.line;
	kept = slot ? tickmap_vec_push(&dso->function_names) : NULL;
	if (kept) {
		*kept = frame;
		*slot = dso->function_names.count;
	}
	return frame;
}

/* A call happens in the frame outside of the scope that it was inlined as. */
static void find_places(struct tickmap_symbolizer *symbolizer, struct dso *dso,
			uint64_t svma, const struct tickmap_dwarf_scope *scopes,
			struct tickmap_source_frame *frames, size_t count)
{
	const char *file = NULL;
	uint32_t line = 0;

	tickmap_dwarf_line(dso->dwarf, svma, &file, &line);
	for (size_t i = 0; i < count; i++) {
		struct tickmap_source_frame *frame = &frames[count - 1 - i];
		frame->at_file = intern(symbolizer, file);
		frame->at_line = line;
		if (!frame->inlined)
			break;
		file = tickmap_dwarf_call_file(dso->dwarf, &scopes[i]);
		line = scopes[i].call_line;
	}
}

size_t tickmap_symbolize_inlined(struct tickmap_symbolizer *symbolizer,
				 uint32_t dso, uint64_t svma, bool places,
				 struct tickmap_source_frame *ret_frames,
				 size_t room)
{
	struct dso *d = dso < symbolizer->dsos.count
				? &symbolizer->dsos.items[dso]
				: NULL;
	struct tickmap_dwarf_scope scopes[TICKMAP_DWARF_SCOPES];
	struct tickmap_dwarf *dwarf = d ? dwarf_of(symbolizer, d) : NULL;
	enum tickmap_dwarf_reason reason;
	size_t count, out = 0;

	if (!dwarf || !room)
		return 0;
	count = tickmap_dwarf_scopes(dwarf, svma, scopes, TICKMAP_DWARF_SCOPES,
				     &reason);
	d->split |= reason == TICKMAP_DWARF_SPLIT;
	if (count && scopes[count - 1].inlined)
		ret_frames[out++] = (struct tickmap_source_frame) { 0 };
	if (out + count > room)
		return 0;
	for (size_t i = count; i-- > 0;) {
		ret_frames[out] =
			function_of(symbolizer, d, scopes[i].function);
		ret_frames[out++].inlined = scopes[i].inlined;
	}
	if (!out && places)
		ret_frames[out++] = (struct tickmap_source_frame) { 0 };
	if (places)
		find_places(symbolizer, d, svma, scopes, ret_frames, out);
	return out;
}

bool tickmap_symbolizer_is_split(const struct tickmap_symbolizer *symbolizer,
				 uint32_t dso)
{
	return dso < symbolizer->dsos.count &&
	       symbolizer->dsos.items[dso].split;
}
