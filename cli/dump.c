/* SPDX-License-Identifier: MIT */
/* tickmap dump: every record of a code map, one a line. */
#include "args.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli.h"
#include "codemap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OPT_JSON = 1, OPT_LINES };

static const struct tickmap_option options[] = {
	{ OPT_JSON, "json", 0, NULL, "one JSON object a line", false },
	{ OPT_LINES, "lines", 0, NULL,
	  "every line entry of a debug record, not just their number", false },
};

static const struct tickmap_command command = {
	.name = "dump",
	.operands = "FILE",
	.summary = "Prints every record of a jitdump or perf map.",
	.notes = "What FILE is is told from its content, not from its name; - "
		 "is standard input. Places that are no record, and what else "
		 "is odd, stand between the records as findings: see `tickmap "
		 "lint`. Exits with 3 if FILE is no code map.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

struct dump {
	bool json, lines, map;
	uint64_t entries;		/* and records */
	struct tickmap_jitdump *reader; /* of a jitdump */
	bool has_header;		/* it is printed */
};

static const char *const names[] = { "LOAD", "MOVE", "DEBUG_INFO", "CLOSE",
				     "UNWINDING_INFO" };

/* Control bytes would end the line, or speak to the terminal. */
static void print_raw(const char *bytes, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t step = tickmap_utf8_length(bytes + i, length - i);
		unsigned char c = (unsigned char)bytes[i];
		bool control = c < 0x20 || c == 0x7f ||
			       (step == 2 && c == 0xc2 &&
				(unsigned char)bytes[i + 1] < 0xa0);
		if (!step || control)
			printf("\\x%02x", c);
		else
			fwrite(bytes + i, 1, step, stdout);
		i += step && !control ? step : 1;
	}
}

static void print_lines(struct tickmap_code_lines lines)
{
	struct tickmap_code_line line;

	while (tickmap_code_lines_next(&lines, &line)) {
		printf(" 0x%" PRIx64 "=", line.avma);
		print_raw(line.file ? line.file : "?",
			  line.file ? line.file_length : 1);
		printf(":%u:%u", line.line, line.column);
	}
}

static void print_load(const struct tickmap_codemap_record *r, bool map)
{
	if (!map)
		printf(" pid %u tid %u", r->pid, r->tid);
	printf(" avma 0x%" PRIx64 " size 0x%" PRIx64, r->avma, r->code_size);
	if (!map)
		printf(" index %" PRIu64, r->code_index);
	printf(" ");
	print_raw(r->name, r->name_length);
}

static void print_record(const struct dump *dump,
			 const struct tickmap_codemap_record *r)
{
	bool known = r->id <= TICKMAP_RECORD_UNWINDING_INFO;

	printf("0x%" PRIx64 " %s", r->offset,
	       dump->map ? "ENTRY"
	       : known	 ? names[r->id]
			 : "UNKNOWN");
	if (!known)
		printf(" id %u", r->id);
	if (!dump->map)
		printf(" bytes %" PRIu64 "%s time %" PRIu64, r->size,
		       r->cut ? " (cut)" : "", r->when);
	switch (r->id) {
	case TICKMAP_RECORD_LOAD:
		print_load(r, dump->map);
		break;
	case TICKMAP_RECORD_MOVE:
		printf(" pid %u tid %u from 0x%" PRIx64 " to 0x%" PRIx64
		       " size 0x%" PRIx64 " index %" PRIu64,
		       r->pid, r->tid, r->old_avma, r->avma, r->code_size,
		       r->code_index);
		break;
	case TICKMAP_RECORD_DEBUG_INFO:
		printf(" avma 0x%" PRIx64 " entries %" PRIu64, r->avma,
		       r->entry_count);
		if (dump->lines)
			print_lines(r->lines);
		break;
	case TICKMAP_RECORD_UNWINDING_INFO:
		printf(" data %" PRIu64 " header %" PRIu64 " mapped %" PRIu64,
		       r->unwinding_size, r->eh_frame_hdr_size, r->mapped_size);
		break;
	}
	putchar('\n');
}

static void key_u64(struct tickmap_json *out, const char *key, uint64_t value)
{
	tickmap_json_key(out, key);
	tickmap_json_u64(out, value);
}

static void json_lines(struct tickmap_json *out,
		       struct tickmap_code_lines lines)
{
	struct tickmap_code_line line;

	tickmap_json_key(out, "lines");
	tickmap_json_open(out, '[');
	while (tickmap_code_lines_next(&lines, &line)) {
		tickmap_json_open(out, '{');
		key_u64(out, "avma", line.avma);
		key_u64(out, "line", line.line);
		key_u64(out, "column", line.column);
		tickmap_json_key(out, "file");
		if (line.file)
			tickmap_json_string(out, line.file, line.file_length);
		else
			tickmap_json_null(out);
		tickmap_json_close(out, '}');
	}
	tickmap_json_close(out, ']');
}

static void json_fields(const struct dump *dump, struct tickmap_json *out,
			const struct tickmap_codemap_record *r)
{
	bool code =
		r->id == TICKMAP_RECORD_LOAD || r->id == TICKMAP_RECORD_MOVE;

	if (!dump->map) {
		key_u64(out, "bytes", r->size);
		key_u64(out, "time", r->when);
		tickmap_json_key(out, "cut");
		tickmap_json_bool(out, r->cut);
	}
	if (code && !dump->map) {
		key_u64(out, "pid", r->pid);
		key_u64(out, "tid", r->tid);
		key_u64(out, "index", r->code_index);
	}
	if (r->id == TICKMAP_RECORD_MOVE)
		key_u64(out, "old_avma", r->old_avma);
	if (code || r->id == TICKMAP_RECORD_DEBUG_INFO)
		key_u64(out, "avma", r->avma);
	if (code)
		key_u64(out, "size", r->code_size);
	if (r->id == TICKMAP_RECORD_LOAD) {
		tickmap_json_key(out, "name");
		tickmap_json_string(out, r->name, r->name_length);
	}
	if (r->id == TICKMAP_RECORD_DEBUG_INFO) {
		key_u64(out, "entries", r->entry_count);
		if (dump->lines)
			json_lines(out, r->lines);
	}
	if (r->id == TICKMAP_RECORD_UNWINDING_INFO) {
		key_u64(out, "unwinding_size", r->unwinding_size);
		key_u64(out, "eh_frame_hdr_size", r->eh_frame_hdr_size);
		key_u64(out, "mapped_size", r->mapped_size);
	}
}

static void json_record(const struct dump *dump,
			const struct tickmap_codemap_record *r)
{
	struct tickmap_json out = { .out = stdout };
	bool known = r->id <= TICKMAP_RECORD_UNWINDING_INFO;

	tickmap_json_open(&out, '{');
	tickmap_json_key(&out, "record");
	tickmap_json_text(&out, dump->map ? "ENTRY"
				: known	  ? names[r->id]
					  : "UNKNOWN");
	key_u64(&out, "id", r->id);
	key_u64(&out, "offset", r->offset);
	json_fields(dump, &out, r);
	tickmap_json_close(&out, '}');
	putchar('\n');
}

/* Once it was read; the reader has no record for it. */
static void print_header(struct dump *dump)
{
	const struct tickmap_jitdump_header *h =
		dump->reader ? tickmap_jitdump_header(dump->reader) : NULL;
	struct tickmap_json out = { .out = stdout };

	if (!h || dump->has_header)
		return;
	dump->has_header = true;
	if (!dump->json) {
		printf("0x0 HEADER bytes %u version %u machine %u pid %u time "
		       "%" PRIu64 " flags 0x%" PRIx64 "%s\n",
		       h->size, h->version, h->elf_machine, h->pid,
		       h->timestamp, h->flags,
		       h->swap ? " other byte order" : "");
		return;
	}
	tickmap_json_open(&out, '{');
	tickmap_json_key(&out, "record");
	tickmap_json_text(&out, "HEADER");
	key_u64(&out, "offset", 0);
	key_u64(&out, "bytes", h->size);
	key_u64(&out, "version", h->version);
	key_u64(&out, "elf_machine", h->elf_machine);
	key_u64(&out, "pid", h->pid);
	key_u64(&out, "time", h->timestamp);
	key_u64(&out, "flags", h->flags);
	tickmap_json_key(&out, "swapped");
	tickmap_json_bool(&out, h->swap);
	tickmap_json_close(&out, '}');
	putchar('\n');
}

static void saw_record(void *context,
		       const struct tickmap_codemap_record *record)
{
	struct dump *dump = context;

	print_header(dump);
	dump->entries++;
	if (dump->json)
		json_record(dump, record);
	else
		print_record(dump, record);
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	struct dump *dump = context;
	struct tickmap_json out = { .out = stdout };

	print_header(dump);
	if (!dump->json) {
		printf("0x%" PRIx64 " %s %s: %" PRIu64 "\n", finding->offset,
		       finding->id, finding->what, finding->value);
		return;
	}
	tickmap_json_open(&out, '{');
	tickmap_json_key(&out, "finding");
	tickmap_json_text(&out, finding->id);
	key_u64(&out, "offset", finding->offset);
	key_u64(&out, "value", finding->value);
	tickmap_json_close(&out, '}');
	putchar('\n');
}

static int dump_file(struct dump *dump, const char *path)
{
	struct tickmap_code_handler handler = { .context = dump,
						.finding = saw_finding,
						.record = saw_record };
	struct tickmap_file file;
	int code = tickmap_file_open(&file, path);

	if (code != TICKMAP_EXIT_DONE)
		return code;
	dump->map = file.kind == TICKMAP_FILE_PERFMAP;
	if (file.kind == TICKMAP_FILE_JITDUMP || dump->map)
		code = tickmap_file_feed(&file, &handler, &dump->reader);
	else
		code = tickmap_file_refuse(&file, "dump");
	print_header(dump);
	tickmap_jitdump_free(dump->reader);
	if (code == TICKMAP_EXIT_DONE && dump->map && !dump->entries)
		code = tickmap_file_no_entry(&file);
	tickmap_file_close(&file);
	return code;
}

int tickmap_cmd_dump(int argc, char **argv)
{
	struct tickmap_args args = { &command, argc, argv };
	struct dump dump = { .json = false };

	for (int id; (id = tickmap_args_next(&args)) != TICKMAP_ARGS_END;) {
		switch (id) {
		case OPT_JSON:
			dump.json = true;
			break;
		case OPT_LINES:
			dump.lines = true;
			break;
		default:
			return tickmap_args_exit(id);
		}
	}
	if (!args.operand_count)
		return tickmap_args_usage(&args, "which FILE? a jitdump or "
						 "perf map");
	if (args.operand_count > 1)
		return tickmap_args_usage(&args,
					  "one FILE at a time, please: '%s'",
					  args.operands[1]);
	return dump_file(&dump, args.operands[0]);
}
