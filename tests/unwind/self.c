/* SPDX-License-Identifier: MIT */
#include "self.h"

#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void add_table(struct self_modules *modules, struct self_module *module,
		      const struct dl_phdr_info *info, const ElfW(Phdr) * eh)
{
	const uint8_t *hdr = (const uint8_t *)(info->dlpi_addr + eh->p_vaddr);
	int32_t to_frame;

	/* Linkers write a pc-relative sdata4 behind the four encodings. */
	memcpy(&to_frame, hdr + 4, sizeof(to_frame));
	if (hdr[1] != 0x1b)
		return;
	uint64_t frame = (uint64_t)(hdr + 4) + (uint64_t)(int64_t)to_frame;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;
		if (ph->p_type != PT_LOAD || frame < start ||
		    frame - start >= ph->p_memsz)
			continue;
		/* The section's end is not known: the terminator is. */
		module->cfi.eh_frame = (const uint8_t *)frame;
		module->cfi.eh_frame_at = frame;
		module->cfi.eh_frame_size = ph->p_memsz - (frame - start);
		module->cfi.hdr = modules->without_hdr ? NULL : hdr;
		module->cfi.hdr_at = (uint64_t)hdr;
		module->cfi.hdr_size = eh->p_memsz;
		tickmap_cfi_init(&module->cfi);
		module->table = true;
	}
}

static int add_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct self_modules *modules = context;
	struct self_module *module;

	(void)size;
	if (modules->count == SELF_MODULES)
		return 1;
	module = &modules->module[modules->count++];
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		if (ph->p_type == PT_GNU_EH_FRAME)
			add_table(modules, module, info, ph);
		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) ||
		    module->ranges == SELF_RANGES)
			continue;
		module->start[module->ranges] = info->dlpi_addr + ph->p_vaddr;
		module->end[module->ranges] =
			module->start[module->ranges] + ph->p_memsz;
		module->ranges++;
	}
	return 0;
}

static bool find(void *context, uint64_t avma,
		 struct tickmap_unwind_module *ret_module)
{
	struct self_modules *modules = context;

	for (unsigned i = 0; i < modules->count; i++) {
		struct self_module *module = &modules->module[i];
		for (unsigned r = 0; r < module->ranges; r++) {
			if (avma < module->start[r] || avma >= module->end[r])
				continue;
			ret_module->cfi = module->table ? &module->cfi : NULL;
			ret_module->bias = 0;
			ret_module->frame_pointer = module->frame_pointer;
			return true;
		}
	}
	return false;
}

void self_modules_load(struct self_modules *modules)
{
	bool without_hdr = modules->without_hdr;

	*modules = (struct self_modules) { .without_hdr = without_hdr };
	modules->space.key = 1;
	modules->space.context = modules;
	modules->space.find = find;
	dl_iterate_phdr(add_object, modules);
}

struct self_module *self_modules_add(struct self_modules *modules,
				     const void *code, size_t size)
{
	struct self_module *module = &modules->module[modules->count++];

	*module = (struct self_module) { 0 };
	module->start[0] = (uint64_t)code;
	module->end[0] = (uint64_t)code + size;
	module->ranges = 1;
	modules->space.key++;
	return module;
}

void self_modules_free(struct self_modules *modules)
{
	for (unsigned i = 0; i < modules->count; i++) {
		if (modules->module[i].table)
			tickmap_cfi_done(&modules->module[i].cfi);
	}
}

uint64_t self_stack_end(void)
{
	pthread_attr_t attr;
	void *start = NULL;
	size_t size = 0;

	if (pthread_getattr_np(pthread_self(), &attr))
		return 0;
	pthread_attr_getstack(&attr, &start, &size);
	pthread_attr_destroy(&attr);
	return (uint64_t)start + size;
}

/* By hand: an address sanitizer must not mind reading other frames. */
__attribute__((no_sanitize("address"))) void
self_copy_stack(struct capture *capture, uint64_t sp, uint64_t end)
{
	size_t size = end > sp ? (size_t)(end - sp) : 0;
	const volatile uint64_t *from = (const volatile uint64_t *)sp;

	if (size > capture->room)
		size = capture->room;
	uint64_t *to = (uint64_t *)(void *)capture->stack;
	for (size_t i = 0; i < size / sizeof(*to); i++)
		to[i] = from[i];
	capture->input.stack = capture->stack;
	capture->input.stack_size = size & ~(sizeof(*to) - 1);
	capture->input.stack_at = sp;
}

__attribute__((noinline)) void self_capture(struct capture *capture)
{
	uint64_t *regs = capture->input.regs;
	uint64_t end =
		capture->stack_end ? capture->stack_end : self_stack_end();

	memset(regs, 0, sizeof(capture->input.regs));
	__asm__ volatile("movq %%rbx, 24(%0)\n\t"
			 "movq %%rbp, 48(%0)\n\t"
			 "movq %%rsp, 56(%0)\n\t"
			 "movq %%r12, 96(%0)\n\t"
			 "movq %%r13, 104(%0)\n\t"
			 "movq %%r14, 112(%0)\n\t"
			 "movq %%r15, 120(%0)\n\t"
			 "leaq 0f(%%rip), %%rax\n"
			 "0:\n\t"
			 "movq %%rax, 128(%0)"
			 :
			 : "r"(regs)
			 : "rax", "memory");
	self_copy_stack(capture, regs[TICKMAP_RSP], end);
	capture->reference_count = backtrace(capture->reference, SELF_FRAMES);
	/* A sanitizer puts a frame of its own before this function. */
	while (capture->reference_count > 1 &&
	       capture->reference[1] != __builtin_return_address(0))
		memmove(&capture->reference[0], &capture->reference[1],
			(size_t)--capture->reference_count *
				sizeof(capture->reference[0]));
}
