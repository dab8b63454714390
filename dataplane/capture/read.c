// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <pcap/pcap.h>

#include "stats/counter.h"

struct cv_capture {
	pcap_t *pcap;
	char *path;
	struct cv_capture_summary read;
	int failed; // -EINVAL once a packet could not be read
	struct cv_error why;
};

// Opens a regular file that is not empty, or says why not.
static FILE *open_file(const char *path, struct cv_error *error)
{
	struct stat st;
	FILE *file;

	// Before fopen, which would wait for the other end of a FIFO.
	if (stat(path, &st) != 0) {
		cv_error_set(error, "%s: %s; name a capture file that exists and can be read", path,
			strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		cv_error_set(error, "%s: is %s; name a pcap or pcapng file", path,
			S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
		return NULL;
	}
	if (st.st_size == 0) {
		cv_error_set(error,
			"%s: is empty, without even a capture's header; capture it again", path);
		return NULL;
	}
	file = fopen(path, "rbe");
	if (file == NULL)
		cv_error_set(error, "%s: %s; let this user read it", path, strerror(errno));
	return file;
}

static pcap_t *open_pcap(const char *path, FILE *file, struct cv_error *error)
{
	char text[PCAP_ERRBUF_SIZE] = "";
	const char *name;
	pcap_t *pcap;
	int link;

	pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, text);
	if (pcap == NULL) {
		fclose(file);
		cv_error_set(error,
			"%s: is not a capture that can be read (%s); name a pcap or pcapng file, "
			"uncompressed",
			path, text);
		return NULL;
	}
	link = pcap_datalink(pcap);
	if (link != DLT_EN10MB) {
		name = pcap_datalink_val_to_name(link);
		cv_error_set(error,
			"%s: holds packets of link type %s (%d), not Ethernet; capture on an "
			"Ethernet interface (on Linux not on 'any')",
			path, name != NULL ? name : "unknown", link);
		pcap_close(pcap);
		return NULL;
	}
	return pcap;
}

struct cv_capture *cv_capture_open(const char *path, struct cv_error *error)
{
	struct cv_capture *capture;
	pcap_t *pcap;
	FILE *file;

	file = open_file(path, error);
	if (file == NULL)
		return NULL;
	pcap = open_pcap(path, file, error);
	if (pcap == NULL)
		return NULL;
	capture = calloc(1, sizeof(*capture));
	if (capture != NULL)
		capture->path = strdup(path);
	if (capture == NULL || capture->path == NULL) {
		cv_error_set(error, "%s: out of memory", path);
		pcap_close(pcap);
		free(capture);
		return NULL;
	}
	capture->pcap = pcap;
	return capture;
}

static int fail(struct cv_capture *capture, struct cv_error *error)
{
	const uint64_t whole = capture->read.packets;

	if (capture->failed == 0) {
		capture->failed = -EINVAL;
		cv_error_set(&capture->why,
			"%s: packet %llu is cut off or damaged (%s); capture again, or keep the "
			"%llu packets before it: tcpdump -r %s -c %llu -w NEW.pcap",
			capture->path, (unsigned long long)whole + 1, pcap_geterr(capture->pcap),
			(unsigned long long)whole, capture->path, (unsigned long long)whole);
	}
	cv_error_set(error, "%s", capture->why.text);
	return capture->failed;
}

int cv_capture_next(
	struct cv_capture *capture, struct cv_capture_packet *packet, struct cv_error *error)
{
	struct cv_capture_summary *read = &capture->read;
	struct pcap_pkthdr *header;
	const u_char *data;
	int rc;

	if (capture->failed != 0)
		return fail(capture, error);
	rc = pcap_next_ex(capture->pcap, &header, &data);
	if (rc == PCAP_ERROR_BREAK) // libpcap's name for the end of a file
		return 0;
	if (rc != 1)
		return fail(capture, error);
	// With nanosecond precision tv_usec holds nanoseconds.
	packet->time_ns = (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec;
	packet->data = data;
	packet->captured = header->caplen;
	packet->wire = header->len;

	if (read->packets == 0)
		read->first_ns = packet->time_ns;
	read->last_ns = packet->time_ns;
	cv_count(&read->packets, 1);
	cv_count(&read->bytes, packet->captured);
	cv_count(&read->cut, packet->captured < packet->wire);
	if (packet->captured > read->longest)
		read->longest = packet->captured;
	return 1;
}

const struct cv_capture_summary *cv_capture_read_so_far(const struct cv_capture *capture)
{
	return &capture->read;
}

void cv_capture_close(struct cv_capture *capture)
{
	if (capture == NULL)
		return;
	pcap_close(capture->pcap);
	free(capture->path);
	free(capture);
}

int cv_capture_check(const char *path, struct cv_capture_summary *summary, struct cv_error *error)
{
	struct cv_capture *capture = cv_capture_open(path, error);
	struct cv_capture_packet packet;
	int rc;

	if (capture == NULL)
		return -EINVAL;
	do
		rc = cv_capture_next(capture, &packet, error);
	while (rc == 1);
	if (summary != NULL)
		*summary = capture->read;
	cv_capture_close(capture);
	return rc;
}
