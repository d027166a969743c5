/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include <execinfo.h>

static size_t glibc(void **ips, size_t max)
{
	return (size_t)backtrace(ips, (int)max);
}

const struct peer peers[] = { { "glibc_backtrace", glibc }, { NULL, NULL } };
