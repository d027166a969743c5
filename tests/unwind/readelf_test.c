/* SPDX-License-Identifier: MIT */
/* Every row of every FDE of real files against binutils' reading of them. */
#include "tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const files[] = {
	"/proc/self/exe",
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib64/ld-linux-x86-64.so.2",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
	"/usr/bin/python3",
};
enum { FILES = sizeof(files) / sizeof(files[0]), COLUMNS = 32 };

static const char *const reg_names[TICKMAP_REGS] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra",
};

/* What the second reader said of one row. */
struct row {
	uint64_t at;
	char cfa[24];
	char column[COLUMNS][24];
};

struct comparison {
	struct tickmap_cfi *cfi;
	int64_t skew; /* a lie that must be found */
	uint64_t fde_start, fde_end;
	size_t columns;
	int column_reg[COLUMNS];
	bool have_row;
	struct row row; /* the one whose end is not known yet */
	size_t rows, equal, expressions;
	bool in_fde, fde_has_rows;
	size_t plain; /* FDEs that readelf shows no row of */
	size_t complaints;
};

static int reg_of(const char *name)
{
	for (int i = 0; i < TICKMAP_REGS; i++) {
		if (!strcmp(name, reg_names[i]))
			return i;
	}
	return -1;
}

static bool same_register(const struct tickmap_rule *rule, int reg,
			  const char *said)
{
	int32_t offset = rule->reg[reg].offset;
	char text[24];

	switch (rule->reg[reg].kind) {
	case TICKMAP_RULE_SAME:
		/* readelf says u where nothing has been said yet. */
		return !strcmp(said, "s") ||
		       (!strcmp(said, "u") && reg != TICKMAP_RIP);
	case TICKMAP_RULE_UNDEFINED:
		return !strcmp(said, "u");
	case TICKMAP_RULE_OFFSET:
		snprintf(text, sizeof(text), "c%+d", offset);
		return !strcmp(said, text);
	case TICKMAP_RULE_VAL_OFFSET:
		snprintf(text, sizeof(text), "v%+d", offset);
		return !strcmp(said, text);
	case TICKMAP_RULE_REGISTER:
		snprintf(text, sizeof(text), "r%d", offset);
		return !strcmp(said, text);
	case TICKMAP_RULE_EXPRESSION:
		return !strcmp(said, "exp");
	default:
		return !strcmp(said, "vexp");
	}
}

static bool same_rule(const struct comparison *c,
		      const struct tickmap_rule *rule)
{
	char cfa[24] = "exp";

	if (!rule->cfa_is_expression)
		snprintf(cfa, sizeof(cfa), "%s%+" PRId64,
			 reg_names[rule->cfa_register],
			 rule->cfa_offset + c->skew);
	if (strcmp(cfa, c->row.cfa))
		return false;
	for (size_t i = 0; i < c->columns; i++) {
		if (c->column_reg[i] >= 0 &&
		    !same_register(rule, c->column_reg[i], c->row.column[i]))
			return false;
	}
	return true;
}

/* The row waiting is complete: it ends where the next one starts. */
static void compare_row(struct comparison *c, uint64_t end)
{
	struct tickmap_rule rule;

	if (!c->have_row)
		return;
	c->have_row = false;
	if (end <= c->row.at) /* two rows for one place: the last one holds */
		return;
	c->rows++;
	bool equal =
		tickmap_cfi_rule(c->cfi, c->row.at, &rule) == TICKMAP_CFI_OK &&
		same_rule(c, &rule);
	equal = equal && rule.start == c->row.at && rule.end == end;
	/* The last byte of the row is still in it. */
	struct tickmap_rule last;
	equal = equal &&
		tickmap_cfi_rule(c->cfi, end - 1, &last) == TICKMAP_CFI_OK &&
		last.start == rule.start &&
		last.function_start == c->fde_start &&
		last.function_end == c->fde_end;
	c->equal += equal;
	c->expressions += equal && rule.cfa_is_expression;
	if (!equal && !c->skew && c->complaints++ < 10)
		print_message("  differs at %#" PRIx64 ": cfa %s\n", c->row.at,
			      c->row.cfa);
}

static void read_header_line(struct comparison *c, char *line)
{
	char *save, *word = strtok_r(line, " \n", &save);

	c->columns = 0;
	strtok_r(NULL, " \n", &save); /* CFA */
	while (word && c->columns < COLUMNS &&
	       (word = strtok_r(NULL, " \n", &save)))
		c->column_reg[c->columns++] = reg_of(word);
}

static void read_row(struct comparison *c, char *line)
{
	char *save, *word = strtok_r(line, " \n", &save);
	uint64_t at = strtoull(word, NULL, 16);

	compare_row(c, at);
	c->have_row = true;
	c->row.at = at;
	word = strtok_r(NULL, " \n", &save);
	snprintf(c->row.cfa, sizeof(c->row.cfa), "%s", word ? word : "");
	for (size_t i = 0; i < c->columns; i++) {
		word = strtok_r(NULL, " \n", &save);
		if (word && word[0] == '(') /* "r5 (rdi)" is one column */
			word = strtok_r(NULL, " \n", &save);
		snprintf(c->row.column[i], sizeof(c->row.column[i]), "%s",
			 word ? word : "");
	}
}

/* An FDE without rows has nothing but its CIE's for all of its range. */
static void end_fde(struct comparison *c)
{
	struct tickmap_rule rule;

	compare_row(c, c->fde_end);
	if (!c->in_fde || c->fde_has_rows || c->fde_start == c->fde_end)
		return;
	c->plain++;
	assert_int_equal(tickmap_cfi_rule(c->cfi, c->fde_start, &rule),
			 TICKMAP_CFI_OK);
	assert_int_equal(rule.start, c->fde_start);
	assert_int_equal(rule.end, c->fde_end);
}

/* frames-interp: a line for each CIE and FDE, a head, and the rows. */
static void read_output(struct comparison *c, FILE *out)
{
	char line[1024];

	while (fgets(line, sizeof(line), out)) {
		const char *pc = strstr(line, " pc=");
		if (strstr(line, ".debug_frame section"))
			break;
		if (strstr(line, " CIE ") || strstr(line, " FDE ")) {
			end_fde(c);
			c->fde_has_rows = false;
			c->in_fde =
				pc && sscanf(pc, " pc=%" SCNx64 "..%" SCNx64,
					     &c->fde_start, &c->fde_end) == 2;
		} else if (!c->in_fde) {
			continue;
		} else if (strstr(line, "LOC")) {
			read_header_line(c, line);
		} else if (isxdigit((unsigned char)line[0]) &&
			   strlen(line) > 18 && line[16] == ' ') {
			c->fde_has_rows = true;
			read_row(c, line);
		}
	}
	end_fde(c);
}

static struct comparison compare(const char *path, bool with_hdr, int64_t skew)
{
	struct file_tables tables;
	struct comparison c = { .skew = skew };
	char real[512], command[600];
	FILE *out;

	ssize_t length = readlink(path, real, sizeof(real) - 1);
	if (strcmp(path, "/proc/self/exe") || length < 0)
		snprintf(real, sizeof(real), "%s", path);
	else
		real[length] = '\0';
	if (!file_tables_load(&tables, real, with_hdr))
		return c;
	c.cfi = &tables.cfi;
	snprintf(command, sizeof(command),
		 "LC_ALL=C readelf --debug-dump=frames-interp '%s' "
		 "2>/dev/null",
		 real);
	out = popen(command, "r");
	if (out) {
		read_output(&c, out);
		pclose(out);
	}
	file_tables_free(&tables);
	return c;
}

static void need_readelf(void)
{
	if (system("readelf --version >/dev/null 2>&1")) {
		print_message("skipped: no readelf here\n");
		skip();
	}
}

static void compare_all(bool with_hdr)
{
	size_t rows = 0;

	need_readelf();
	for (size_t i = 0; i < FILES; i++) {
		struct comparison c = compare(files[i], with_hdr, 0);
		print_message("%s: %zu of %zu rows equal, %zu by expression, "
			      "%zu plain functions\n",
			      files[i], c.equal, c.rows, c.expressions,
			      c.plain);
		assert_int_equal(c.equal, c.rows);
		rows += c.rows;
	}
	assert_true(rows > 1000);
}

static void rules_found_by_the_header_are_those_of_readelf(void **state)
{
	(void)state;
	compare_all(true);
}

static void rules_found_by_an_own_index_are_those_of_readelf(void **state)
{
	(void)state;
	compare_all(false);
}

static void a_frame_address_off_by_one_word_would_be_seen(void **state)
{
	(void)state;
	need_readelf();
	struct comparison c = compare(files[1], true, 8);
	assert_true(c.rows > 1000);
	assert_true(c.equal <= c.rows / 100); /* expressions have no offset */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			rules_found_by_the_header_are_those_of_readelf),
		cmocka_unit_test(
			rules_found_by_an_own_index_are_those_of_readelf),
		cmocka_unit_test(a_frame_address_off_by_one_word_would_be_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
