/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks of any perf.data: what a tool of its own starts with.
 *
 *	cc read_recording.c $(pkg-config --cflags --libs tickmap)
 *	./a.out perf.data
 */
#include <inttypes.h>
#include <stdio.h>
#include <tickmap/recording.h>

/* How many records of each type there are. */
static int count_events(struct tickmap_recording *recording)
{
	uint64_t counts[128] = { 0 };
	struct tickmap_recording_event event;
	char message[300];
	int status;

	while ((status = tickmap_recording_next_event(
			recording, &event, message, sizeof(message))) == 1)
		counts[event.type < 127 ? event.type : 127]++;
	if (status < 0)
		fprintf(stderr, "%s\n", message);
	for (int type = 0; type < 128; type++)
		if (counts[type])
			fprintf(stderr, "type %d: %" PRIu64 "\n", type,
				counts[type]);
	return status;
}

static int print_samples(struct tickmap_recording *recording)
{
	struct tickmap_recording_sample sample;
	int status;

	while ((status = tickmap_recording_next_sample(recording, &sample)) ==
	       1) {
		printf("%s", sample.comm);
		for (size_t i = sample.frame_count; i-- > 0;)
			printf(";%s", sample.frames[i].name);
		printf(" 1\n");
	}
	return status;
}

int main(int argc, char **argv)
{
	struct tickmap_recording *recording;
	struct tickmap_recording_quality quality;
	const char *finding;
	char message[300];

	if (argc != 2) {
		fprintf(stderr, "usage: read_recording perf.data\n");
		return 2;
	}
	if (tickmap_recording_open(argv[1], NULL, &recording, message,
				   sizeof(message)) < 0) {
		fprintf(stderr, "%s\n", message);
		return 3;
	}
	count_events(recording);
	int status = print_samples(recording);
	if (!status)
		status = tickmap_recording_quality(recording, &quality);
	if (!status)
		fprintf(stderr, "%" PRIu64 " samples, %" PRIu64 " lost\n",
			quality.samples, quality.lost);
	for (size_t i = 0; (finding = tickmap_recording_finding(recording, i));
	     i++)
		fprintf(stderr, "%s\n", finding);
	tickmap_recording_close(recording);
	return status < 0 ? 4 : 0;
}
