// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// vpn, which encrypts, and what it cannot be faster than: libipsec-mb's call on the same bytes, and nothing
// else.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_prefetch.h>

#include "chain/nf.h"
#include "nf/vpn/cipher.h"
#include "tests/bench/bench.h"

#define IP_AT 14
#define TRAILER_BYTES 2 // padding's length, next header

static const char sa[] = "out 256 policy all local 192.0.2.1 peer 198.51.100.1 key "
			 "000102030405060708090a0b0c0d0e0f10111213\n";

// A file that nobody else can read, and that is in no folder.
static int secret_file(struct cv_error *error)
{
	const int fd = memfd_create("sas", MFD_CLOEXEC);

	if (fd < 0 || fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
		write(fd, sa, sizeof(sa) - 1) != (ssize_t)sizeof(sa) - 1) {
		cv_error_set(error, "no file for associations");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

int bench_vpn_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	const int fd = secret_file(error);
	char path[32];
	json_t *config;
	int rc;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	config = json_pack("{s[s] s[{ss s{}}] ss}", "outside", "right", "policies", "name", "all",
		"match", "sa_file", path);
	rc = bench_path_create_of(subject, "vpn", config, error);
	json_decref(config);
	close(fd);
	subject->uses_up = true;
	return rc;
}

struct raw {
	struct cv_cipher cipher;
	uint64_t sequence;
};

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct raw *raw = state;
	const uint8_t with[8] = {0};
	uint8_t nonce[CV_GCM_NONCE_LEN] = {0}, tag[CV_GCM_TAG_LEN];

	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], uint8_t *));
	for (uint16_t i = 0; i < n; i++) {
		uint8_t *data = rte_pktmbuf_mtod(packets[i], uint8_t *) + IP_AT;
		const uint32_t inner = packets[i]->data_len - IP_AT;

		memcpy(nonce + CV_GCM_SALT_LEN, &raw->sequence, CV_GCM_IV_LEN);
		raw->sequence++;
		cv_cipher_run(&raw->cipher, data, RTE_ALIGN_CEIL(inner + TRAILER_BYTES, 4u), nonce,
			with, sizeof(with), tag);
	}
	return n;
}

int bench_raw_vpn_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	struct raw *raw =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*raw), RTE_CACHE_LINE_SIZE));
	const uint8_t key[16] = {0};

	if (raw == NULL || !cv_cipher_make(&raw->cipher, key, sizeof(key), true)) {
		cv_error_set(error, "no cipher");
		free(raw);
		return -1;
	}
	raw->sequence = 0;
	*subject = (struct bench_subject){.run = run, .destroy = free, .state = raw};
	return 0;
}
