/* SPDX-License-Identifier: MIT */
/* EM_* of this process. */
#include "internal.h"

uint32_t tickmap_emit_native_machine(void)
{
#if defined(__x86_64__)
	return EMIT_EM_X86_64;
#elif defined(__aarch64__)
	return EMIT_EM_AARCH64;
#elif defined(__riscv)
	return EMIT_EM_RISCV;
#elif defined(__s390__)
	return 22;
#elif defined(__i386__)
	return 3;
#elif defined(__arm__)
	return 40;
#elif defined(__powerpc64__)
	return 21;
#elif defined(__loongarch__)
	return 258;
#else
#error "which EM_* is this?"
#endif
}
