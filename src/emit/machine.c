/* SPDX-License-Identifier: MIT */
/* What the library has to know of the machine that it runs on. */
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

void tickmap_emit_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}
