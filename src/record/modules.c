/* SPDX-License-Identifier: MIT */
#include "record/modules.h"

#include "base/table.h"
#include "base/vec.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { KEPT_MAX = 256 };

struct tickmap_modules {
	TICKMAP_VEC(struct tickmap_module *) all;
	struct tickmap_table by_identity; /* hash -> index + 1 */
	size_t kept, kept_max;		  /* descriptors */
};

struct tickmap_modules *tickmap_modules_new(void)
{
	struct tickmap_modules *modules = calloc(1, sizeof(*modules));
	struct rlimit files;

	if (modules && !getrlimit(RLIMIT_NOFILE, &files))
		modules->kept_max = files.rlim_cur < 4 * KEPT_MAX
					    ? files.rlim_cur / 4
					    : KEPT_MAX;
	return modules;
}

void tickmap_modules_free(struct tickmap_modules *modules)
{
	if (!modules)
		return;
	for (size_t i = 0; i < modules->all.count; i++) {
		struct tickmap_module *m = modules->all.items[i];
		if (m->has_cfi)
			tickmap_cfi_done(&m->cfi);
		tickmap_elf_close(m->elf);
		if (m->fd >= 0)
			close(m->fd);
		free(m->path);
		free(m);
	}
	tickmap_vec_free(&modules->all);
	tickmap_table_free(&modules->by_identity);
	free(modules);
}

/* python3, python3.11, python3.13t, libpython3.11.so.1.0, pypy3 */
static bool is_python_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (!strncmp(name, "libpython", 9) || !strncmp(name, "libpypy", 7))
		return true;
	if (!strncmp(name, "pypy", 4))
		return true;
	if (strncmp(name, "python", 6))
		return false;
	return name[6] == '\0' || (name[6] >= '0' && name[6] <= '9');
}

uint32_t tickmap_modules_of(struct tickmap_modules *modules,
			    const struct tickmap_mmap_record *mmap)
{
	uint64_t device =
		mmap->build_id_size ? 0 : makedev(mmap->maj, mmap->min);
	uint64_t inode = mmap->build_id_size ? 0 : mmap->ino;
	uint64_t key = tickmap_mix(device ^ tickmap_mix(inode)) ^
		       tickmap_hash(mmap->path, strlen(mmap->path));
	uint64_t *slot = tickmap_table_put(&modules->by_identity, key);

	if (!slot)
		return UINT32_MAX;
	if (*slot)
		return (uint32_t)(*slot - 1);

	struct tickmap_module *m = calloc(1, sizeof(*m));
	char *path = strdup(mmap->path);
	struct tickmap_module **at =
		m && path ? tickmap_vec_push(&modules->all) : NULL;
	if (!at) {
		free(m);
		free(path);
		return UINT32_MAX;
	}
	m->path = path;
	m->fd = -1;
	m->device = device;
	m->inode = inode;
	m->python = is_python_file(path);
	*at = m;
	*slot = modules->all.count;
	return (uint32_t)(*slot - 1);
}

struct tickmap_module *tickmap_modules_at(struct tickmap_modules *modules,
					  uint32_t index)
{
	return modules->all.items[index];
}

uint32_t tickmap_modules_count(const struct tickmap_modules *modules)
{
	return (uint32_t)modules->all.count;
}

/* An open file that is really the mapped one, or -1. Overlay file systems show
 * another device in mappings than in stat: there the inode alone decides. */
static int open_same(const char *path, const struct tickmap_module *m)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    (m->inode && st.st_ino != m->inode)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Through the process's root, or, of a program that was replaced, itself. */
static int open_mapped(const struct tickmap_module *m, pid_t pid)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, m->path);
	fd = open_same(path, m);
	if (fd < 0)
		fd = open_same(m->path, m);
	if (fd < 0 && m->inode) {
		snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
		fd = open_same(path, m);
	}
	return fd;
}

static void open_file(struct tickmap_modules *modules, struct tickmap_module *m,
		      pid_t pid)
{
	int fd = open_mapped(m, pid);

	if (fd < 0)
		return;
	if (tickmap_elf_open_fd(fd, &m->elf, NULL))
		m->elf = NULL;
	if (m->elf && modules->kept < modules->kept_max) {
		m->fd = fd;
		modules->kept++;
	} else {
		close(fd);
	}
}

bool tickmap_modules_read(struct tickmap_modules *modules, uint32_t index,
			  uint64_t file_offset, void *out, size_t size)
{
	const struct tickmap_module *m = modules->all.items[index];
	int fd = m->fd;

	if (fd < 0 && m->path[0] == '/')
		fd = open_same(m->path, m);
	if (fd < 0)
		return false;
	ssize_t n = pread(fd, out, size, (off_t)file_offset);
	if (fd != m->fd)
		close(fd);
	return n == (ssize_t)size;
}

static void open_vdso(struct tickmap_module *m)
{
	const unsigned char *image =
		(const unsigned char *)getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr header;

	if (!image)
		return;
	/* The image ends with its section headers. */
	memcpy(&header, image, sizeof(header));
	size_t size =
		header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
	if (tickmap_elf_open_memory(image, size, &m->elf, NULL))
		m->elf = NULL;
}

static void read_unwind_sections(struct tickmap_module *m)
{
	struct tickmap_elf_section frame, hdr;

	if (tickmap_elf_machine(m->elf) != EM_X86_64)
		return;
	frame = tickmap_elf_section(m->elf, ".eh_frame");
	hdr = tickmap_elf_section(m->elf, ".eh_frame_hdr");
	if (!frame.size)
		return;
	m->cfi = (struct tickmap_cfi) {
		.eh_frame = frame.bytes,
		.eh_frame_size = frame.size,
		.eh_frame_at = frame.svma,
		.hdr = hdr.size ? hdr.bytes : NULL,
		.hdr_size = hdr.size,
		.hdr_at = hdr.svma,
	};
	tickmap_cfi_init(&m->cfi);
	m->has_cfi = true;
}

struct tickmap_module *tickmap_modules_open(struct tickmap_modules *modules,
					    uint32_t index, pid_t pid)
{
	struct tickmap_module *m = modules->all.items[index];

	if (m->tried)
		return m;
	m->tried = true;
	if (!strcmp(m->path, "[vdso]"))
		open_vdso(m);
	else if (m->path[0] == '/')
		open_file(modules, m, pid);
	if (!m->elf)
		return m;
	m->build_id_size = tickmap_elf_build_id(m->elf, m->build_id);
	read_unwind_sections(m);
	tickmap_elf_release_file(m->elf); /* descriptors may be few */
	return m;
}
