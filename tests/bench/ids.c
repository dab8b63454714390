// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ids, and what it cannot be faster than: hs_scan() with the same patterns on the same payloads, and
// nothing else. Payloads are words of random letters; so are patterns, each of 6 to 15 letters that are
// nobody's word. One payload in 50 has a pattern in it, which the rule lets pass and counts.
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_prefetch.h>

#include "chain/nf.h"
#include "nf/ids/database.h"
#include "tests/bench/bench.h"

#define IP_AT 14
#define UDP_AT 34
#define PAYLOAD_AT 42
#define MATCHING 50 // one payload in so many

static uint64_t scramble(uint64_t i)
{
	i += 0x9e3779b97f4a7c15;
	i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9;
	i = (i ^ (i >> 27)) * 0x94d049bb133111eb;
	return i ^ (i >> 31);
}

// A pattern, with a zero behind it.
static void pattern(unsigned i, char text[16])
{
	uint64_t number = scramble(i ^ 0x7061747465726e);
	const unsigned letters = 6 + number % 10;

	for (unsigned at = 0; at < letters; at++) {
		number = scramble(number);
		text[at] = (char)('a' + number % 26);
	}
	text[letters] = '\0';
}

// A UDP packet with words in it. The Ethernet and IP headers are there.
static void write_payload(uint64_t i, unsigned patterns, uint8_t *frame, uint16_t bytes)
{
	uint64_t number = scramble(i ^ 0x696473);
	uint16_t udp[4] = {0, 0, rte_cpu_to_be_16((uint16_t)(bytes - UDP_AT))};
	char text[16];

	frame[IP_AT + 9] = IPPROTO_UDP;
	udp[0] = udp[1] = (uint16_t)(number | 1);
	memcpy(frame + UDP_AT, udp, sizeof(udp));
	for (unsigned at = PAYLOAD_AT; at < bytes; at++) {
		number = scramble(number);
		frame[at] = number % 6 == 0 ? ' ' : (uint8_t)('a' + (number >> 8) % 26);
	}
	if (i % MATCHING != 0)
		return;
	pattern((unsigned)(number % patterns), text);
	memcpy(frame + PAYLOAD_AT + number % 100, text, strlen(text));
}

#define WRITER(patterns)                                                         \
	static void write_##patterns(uint64_t i, uint8_t *frame, uint16_t bytes) \
	{                                                                        \
		write_payload(i, patterns, frame, bytes);                        \
	}
WRITER(100)
WRITER(2000)
WRITER(10000)

// A file of rules that is in no folder.
static int rules_file(unsigned patterns, struct cv_error *error)
{
	const int fd = memfd_create("rules", MFD_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(dup(fd), "w");

	if (file == NULL) {
		cv_error_set(error, "no file for rules");
		return -1;
	}
	for (unsigned i = 0; i < patterns; i++) {
		char text[16];

		pattern(i, text);
		fprintf(file, "alert udp any any -> any any (content:\"%s\"; sid:%u;)\n", text,
			i + 1);
	}
	fclose(file);
	return fd;
}

static int create_ids(struct bench_subject *subject, const char *path, struct cv_error *error)
{
	json_t *config = json_pack("{s:s}", "rules_file", path);
	const int rc = bench_path_create_of(subject, "ids", config, error);

	json_decref(config);
	return rc;
}

struct raw {
	struct cv_ids_rules rules;
	struct cv_ids_database database;
	hs_scratch_t *scratch;
	uint64_t matches;
};

static int count_match(
	unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *matches)
{
	++*(uint64_t *)matches;
	return 0;
}

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct raw *raw = state;

	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], uint8_t *));
	for (uint16_t i = 0; i < n; i++)
		hs_scan(raw->database.hs, rte_pktmbuf_mtod_offset(packets[i], char *, PAYLOAD_AT),
			packets[i]->data_len - PAYLOAD_AT, 0, raw->scratch, count_match,
			&raw->matches);
	return n;
}

static void destroy(void *state)
{
	struct raw *raw = state;

	hs_free_scratch(raw->scratch);
	cv_ids_database_free(&raw->database);
	cv_ids_rules_free(&raw->rules);
	free(raw);
}

static int create_raw(struct bench_subject *subject, const char *path, struct cv_error *error)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	struct cv_ids_problem problem = {""};
	uint32_t wrong;

	if (raw == NULL ||
		cv_ids_rules_read(&raw->rules, path, "raw-ids", NULL, false, error) != 0 ||
		cv_ids_database_make(
			&raw->database, &raw->rules, CV_IDS_UDP, false, &wrong, &problem) != 0 ||
		hs_alloc_scratch(raw->database.hs, &raw->scratch) != HS_SUCCESS) {
		cv_error_set(error, "no database: %s", problem.text);
		if (raw != NULL)
			destroy(raw);
		return -1;
	}
	*subject = (struct bench_subject){.run = run, .destroy = destroy, .state = raw};
	return 0;
}

int bench_ids_create(
	struct bench_subject *subject, unsigned patterns, bool raw, struct cv_error *error)
{
	const int fd = rules_file(patterns, error);
	char path[32];
	int rc;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = raw ? create_raw(subject, path, error) : create_ids(subject, path, error);
	close(fd);
	subject->write = patterns <= 100 ? write_100 : patterns <= 2000 ? write_2000 : write_10000;
	return rc;
}
