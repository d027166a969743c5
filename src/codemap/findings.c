/* SPDX-License-Identifier: MIT */
#include "codemap/findings.h"

static const struct tickmap_finding_kind kinds[] = {
#define X(id, severity, what, value, why)                                      \
	{ #id, TICKMAP_##severity, what, value, why },
	TICKMAP_FINDINGS(X)
#undef X
};

const struct tickmap_finding_kind *tickmap_codemap_findings(size_t *ret_count)
{
	*ret_count = sizeof(kinds) / sizeof(kinds[0]);
	return kinds;
}

void tickmap_codemap_find(const struct tickmap_code_handler *handler,
			  enum tickmap_finding_index index, uint64_t offset,
			  uint64_t value)
{
	const struct tickmap_finding_kind *kind = &kinds[index];
	struct tickmap_finding finding = {
		.kind = kind,
		.id = kind->id,
		.what = kind->what,
		.offset = offset,
		.value = value,
		.error = kind->severity == TICKMAP_ERROR,
	};

	if (handler->finding)
		handler->finding(handler->context, &finding);
}
