/* SPDX-License-Identifier: MIT */
/*
 * What kind of recording it is: a file, a directory of files, a pipe that has
 * to be kept first; with a header or, as perf writes to pipes, without.
 */
#include "capture/perfdata_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HEADER_SIZE_V1 = 72, /* without features */
	WINDOW_SIZE = 256 * 1024,
};

int tickmap_perfdata_view(struct tickmap_perfdata *d, uint64_t offset,
			  size_t size, const uint8_t **ret_bytes,
			  size_t *ret_size, struct tickmap_error *err)
{
	uint64_t skip = offset - d->window_at;

	if (offset < d->window_at || skip > d->window_used ||
	    size > d->window_used - skip) {
		d->window_at = offset;
		d->window_used = 0;
		skip = 0;
		while (d->window_used < WINDOW_SIZE) {
			ssize_t n =
				pread(d->stream->fd, d->window + d->window_used,
				      WINDOW_SIZE - d->window_used,
				      (off_t)(offset + d->window_used));
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return tickmap_fail_os(err, errno,
						       "cannot read");
			if (n == 0)
				break;
			d->window_used += (size_t)n;
		}
	}
	*ret_bytes = d->window + skip;
	*ret_size = d->window_used - (size_t)skip;
	if (*ret_size > size)
		*ret_size = size;
	return TICKMAP_OK;
}

void tickmap_perfdata_enter(struct tickmap_perfdata *d, size_t stream)
{
	d->stream = &d->streams.items[stream];
	d->at = d->stream->data.offset;
	d->window_at = d->window_used = 0;
	d->lost_sync = false;
	d->doubtful = d->read_again = d->counted = 0;
	tickmap_perfdata_end_unpacking(d);
}

void tickmap_perfdata_rewind(struct tickmap_perfdata *d)
{
	tickmap_perfdata_enter(d, 0);
	memset(&d->failure, 0, sizeof(d->failure));
	d->skipped = 0;
	d->done = false;
}

/* ---- Files ---- */

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

static int copy_all(int from, int to)
{
	enum { BLOCK = 65536 };
	uint8_t *block = malloc(BLOCK);
	ssize_t n = block ? 0 : -1;

	while (block) {
		n = read(from, block, BLOCK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (write_all(to, block, (size_t)n)) {
			n = -1;
			break;
		}
	}
	int saved = errno;
	free(block);
	errno = saved;
	return n < 0 ? -1 : 0;
}

int tickmap_perfdata_spool(int fd, int *ret_fd, struct tickmap_error *err)
{
	const char *dir = getenv("TMPDIR");
	char name[4096];

	if (snprintf(name, sizeof(name), "%s/tickmap-XXXXXX",
		     dir && *dir ? dir : "/tmp") >= (int)sizeof(name))
		return tickmap_fail(err, TICKMAP_E_LIMIT, 0,
				    "TMPDIR is too long");
	int out = mkostemp(name, O_CLOEXEC);
	if (out < 0)
		return tickmap_fail_os(err, errno,
				       "cannot make a file in TMPDIR");
	unlink(name);
	if (copy_all(fd, out) || lseek(out, 0, SEEK_SET) < 0) {
		int status = tickmap_fail_os(err, errno,
					     "cannot copy what comes in");
		close(out);
		return status;
	}
	*ret_fd = out;
	return TICKMAP_OK;
}

static int add_stream(struct tickmap_perfdata *d, int fd, const char *path,
		      struct tickmap_error *err)
{
	struct stat st;
	char *copy = strdup(path);
	struct perfdata_stream *s = copy ? tickmap_vec_push(&d->streams) : NULL;

	if (!s) {
		free(copy);
		close(fd);
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	}
	*s = (struct perfdata_stream) { .fd = fd, .path = copy };
	if (fstat(fd, &st))
		return tickmap_fail_os(err, errno, "cannot stat");
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) &&
	    !S_ISSOCK(st.st_mode))
		return tickmap_fail(err, TICKMAP_E_UNSUPPORTED, 0,
				    "neither a file nor a pipe");
	if (!S_ISREG(st.st_mode)) {
		int kept;
		int status = tickmap_perfdata_spool(fd, &kept, err);
		if (status)
			return status;
		close(fd);
		s->fd = kept;
		if (fstat(kept, &st))
			return tickmap_fail_os(err, errno, "cannot stat");
	}
	s->file_size = (uint64_t)st.st_size;
	return TICKMAP_OK;
}

static int is_part(const struct dirent *e)
{
	return !strncmp(e->d_name, "data.", 5) && e->d_name[5] &&
	       strspn(e->d_name + 5, "0123456789") == strlen(e->d_name + 5);
}

/* The data.N beside a directory's `data`. One that cannot be opened is lost,
 * but the others are not. */
static int add_parts(struct tickmap_perfdata *d, struct tickmap_error *err)
{
	struct dirent **names = NULL;
	int count = scandir(d->path, &names, is_part, versionsort);
	int status = TICKMAP_OK;

	for (int i = 0; i < count; i++) {
		char *path = NULL;
		if (!status &&
		    asprintf(&path, "%s/%s", d->path, names[i]->d_name) < 0)
			status = tickmap_fail(err, TICKMAP_E_NOMEM, 0,
					      "out of memory");
		int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
			      : -1;
		if (fd >= 0)
			status = add_stream(d, fd, path, err);
		else if (path)
			tickmap_perfdata_note(d, TICKMAP_E_OS, 0,
					      "a part of the recording cannot "
					      "be opened");
		if (fd >= 0 && !status) {
			struct perfdata_stream *s =
				&d->streams.items[d->streams.count - 1];
			s->data.size = s->file_size;
			s->open_ended = d->streams.items[0].open_ended;
		}
		free(path);
		free(names[i]);
	}
	free(names);
	return status;
}

static int open_first(struct tickmap_perfdata *d, bool *ret_directory,
		      struct tickmap_error *err)
{
	struct stat st;
	char *path = NULL;

	*ret_directory = false;
	if (!strcmp(d->path, "-")) {
		int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? tickmap_fail_os(err, errno,
						"cannot read standard input")
			      : add_stream(d, fd, d->path, err);
	}
	if (!stat(d->path, &st) && S_ISDIR(st.st_mode)) {
		*ret_directory = true;
		if (asprintf(&path, "%s/data", d->path) < 0)
			return tickmap_fail(err, TICKMAP_E_NOMEM, 0,
					    "out of memory");
	}
	int fd = open(path ? path : d->path, O_RDONLY | O_CLOEXEC);
	int status = fd < 0 ? tickmap_fail_os(err, errno,
					      path ? "cannot open `data` in it"
						   : "cannot open")
			    : add_stream(d, fd, path ? path : d->path, err);
	free(path);
	return status;
}

/* ---- The header ---- */

static int read_sections(struct tickmap_perfdata *d, struct tickmap_bytes *b,
			 uint64_t header_size, struct tickmap_error *err)
{
	struct perfdata_stream *s = d->stream;

	d->attr_entry_size = tickmap_u64(b);
	d->attrs_section.offset = tickmap_u64(b);
	d->attrs_section.size = tickmap_u64(b);
	s->data.offset = tickmap_u64(b);
	s->data.size = tickmap_u64(b);
	tickmap_take(b, PERFDATA_SECTION_SIZE); /* event types, unused */
	if (b->failed || header_size < HEADER_SIZE_V1)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, b->size,
				    "file ends inside its header");
	for (unsigned i = 0; i < PERFDATA_FEATURE_WORDS; i++)
		d->feature_bits[i] = header_size >= PERFDATA_HEADER_SIZE
					     ? tickmap_u64(b)
					     : 0;
	if (d->attrs_section.offset > s->file_size)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED,
				    d->attrs_section.offset,
				    "file ends before its events");
	if (s->data.offset > s->file_size)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, s->data.offset,
				    "file ends before its data");
	uint64_t there = s->file_size - s->data.offset;
	s->open_ended = !s->data.size;
	s->cut_short = s->data.size > there;
	d->finished = !s->open_ended;
	if (s->open_ended || s->cut_short)
		s->data.size = there;
	return tickmap_perfdata_read_attrs(d, err);
}

static int read_header(struct tickmap_perfdata *d, struct tickmap_error *err)
{
	const uint8_t *bytes;
	size_t size;
	int status = tickmap_perfdata_view(d, 0, PERFDATA_HEADER_SIZE, &bytes,
					   &size, err);

	if (status)
		return status;
	struct tickmap_bytes b = tickmap_bytes_of(bytes, size);
	/* The magic is a text; the number that it makes tells the order. */
	uint64_t magic = tickmap_u64(&b);
	if (magic != PERFDATA_MAGIC &&
	    magic != __builtin_bswap64(PERFDATA_MAGIC))
		return tickmap_fail(err, TICKMAP_E_FORMAT, 0,
				    b.failed ? "file is too short for perf.data"
				    : !memcmp(bytes, "PERFFILE", 8)
					    ? "perf.data of version 1"
					    : "not a perf.data file");
	b.swap = magic != PERFDATA_MAGIC;
	d->swap = b.swap;
	uint64_t header_size = tickmap_u64(&b);
	if (b.failed || header_size != PERFDATA_PIPE_HEADER_SIZE)
		return read_sections(d, &b, header_size, err);
	d->pipe = d->finished = true;
	d->stream->data.offset = PERFDATA_PIPE_HEADER_SIZE;
	d->stream->data.size = d->stream->file_size - PERFDATA_PIPE_HEADER_SIZE;
	return tickmap_perfdata_read_pipe(d, err);
}

static int open_all(struct tickmap_perfdata *d, struct tickmap_error *err)
{
	bool directory;
	int status = open_first(d, &directory, err);

	if (status)
		return status;
	tickmap_perfdata_enter(d, 0);
	status = read_header(d, err);
	if (status)
		return status;
	if (!d->pipe)
		tickmap_perfdata_read_features(d);
	if (directory)
		status = add_parts(d, err);
	/* Failures of a part's opening outlive this, others come again. */
	struct tickmap_error failure = d->failure;
	tickmap_perfdata_rewind(d);
	if (failure.status == TICKMAP_E_OS)
		d->failure = failure;
	return status;
}

int tickmap_perfdata_open(const char *path, struct tickmap_perfdata **ret_data,
			  struct tickmap_error *err)
{
	struct tickmap_perfdata *d = calloc(1, sizeof(*d));
	int status = TICKMAP_OK;

	if (d) {
		d->path = strdup(path);
		d->window = malloc(WINDOW_SIZE);
	}
	if (!d || !d->path || !d->window)
		status = tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	if (!status)
		status = open_all(d, err);
	if (status) {
		tickmap_error_source(err, path);
		tickmap_perfdata_close(d);
		return status;
	}
	*ret_data = d;
	return TICKMAP_OK;
}

void tickmap_perfdata_close(struct tickmap_perfdata *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->streams.count; i++) {
		close(d->streams.items[i].fd);
		free(d->streams.items[i].path);
	}
	for (unsigned i = 0; i < PERFDATA_TEXT_FEATURES; i++)
		free(d->texts[i]);
	for (size_t i = 0; i < d->build_ids.count; i++)
		free(d->build_ids.items[i].path);
	tickmap_vec_free(&d->streams);
	tickmap_vec_free(&d->build_ids);
	tickmap_table_free(&d->build_id_of_path);
	tickmap_table_free(&d->attr_of_id);
	tickmap_vec_free(&d->attrs);
	ZSTD_freeDCtx(d->zstd);
	free(d->packed_bytes);
	free(d->unpacked);
	free(d->window);
	free(d->path);
	free(d);
}

size_t tickmap_perfdata_attr_count(const struct tickmap_perfdata *d)
{
	return d->attrs.count;
}

const struct tickmap_perfdata_attr *
tickmap_perfdata_attr_at(const struct tickmap_perfdata *d, size_t index)
{
	return &d->attrs.items[index];
}

bool tickmap_perfdata_is_finished(const struct tickmap_perfdata *d)
{
	return d->finished && !d->streams.items[0].cut_short;
}

bool tickmap_perfdata_clock(const struct tickmap_perfdata *d,
			    struct tickmap_perfdata_clock *ret_clock)
{
	*ret_clock = d->clock;
	return d->has_clock;
}

uint64_t tickmap_perfdata_skipped(const struct tickmap_perfdata *d)
{
	return d->skipped;
}
