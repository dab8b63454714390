// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What AES-GCM costs for packets in the first cache, in TSC ticks per packet: by the library's call for
// each, and as a burst of 32, which has short ones go four at once (nf/vpn/gcm_rows.h).
//
//   bench-cipher [PASSES]        3000
//
// Prints one JSON object: {"schema": "convoy.bench.cipher/1", "four_at_once": whether this processor can,
// "results": [{"key_bits", "bytes": to be encrypted, "alone", "encrypt", "decrypt": the least of the
// passes}]}. "alone" is the library's, encrypting.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "nf/vpn/cipher.h"

#define BURST 32
#define ROOM 2048
#define PASSES_MAX 10000000
#define WITH_BYTES 8 // SPI and sequence number

static uint8_t bytes[BURST][ROOM];
static struct cv_cipher_packet packets[BURST];

static void one_by_one(const struct cv_cipher *cipher)
{
	for (unsigned i = 0; i < BURST; i++)
		cv_cipher_run(cipher, packets[i].data, packets[i].len, packets[i].nonce,
			packets[i].with, WITH_BYTES, packets[i].tag);
}

static void together(const struct cv_cipher *cipher)
{
	cv_cipher_run_many(cipher, packets, BURST, WITH_BYTES);
}

static void time_it(
	void (*run)(const struct cv_cipher *cipher), const struct cv_cipher *cipher, double *least)
{
	const uint64_t begin = rte_rdtsc_precise();

	run(cipher);
	*least = fmin(*least, (double)(rte_rdtsc_precise() - begin) / BURST);
}

static void measure(const struct cv_cipher *seals, const struct cv_cipher *opens, unsigned key_bits,
	uint32_t len, long passes, const char *comma)
{
	double alone = INFINITY, encrypt = INFINITY, decrypt = INFINITY;

	for (unsigned i = 0; i < BURST; i++)
		packets[i] = (struct cv_cipher_packet){
			.data = bytes[i] + 16, .tag = bytes[i] + 16 + len, .len = len};
	for (long i = 0; i < passes; i++) {
		time_it(one_by_one, seals, &alone);
		time_it(together, seals, &encrypt);
		time_it(together, opens, &decrypt);
	}
	printf("%s{\"key_bits\": %u, \"bytes\": %u, \"alone\": %.1f, \"encrypt\": %.1f, "
	       "\"decrypt\": %.1f}",
		comma, key_bits, len, alone, encrypt, decrypt);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {16, 48, 64, 112, 128, 240, 256, 512, 1400};
	static const uint8_t key[CV_GCM_KEY_MAX];
	static struct cv_cipher seals, opens;
	const char *comma = "";
	char *end = NULL;
	const long passes = argc > 1 ? strtol(argv[1], &end, 10) : 3000;

	if (argc > 2 || (end != NULL && *end != '\0') || passes < 1 || passes > PASSES_MAX) {
		fprintf(stderr, "bench-cipher: give passes: 1 to %d\n", PASSES_MAX);
		return 2;
	}
	for (size_t len = 16; len <= sizeof(key); len += 16) {
		if (!cv_cipher_make(&seals, key, len, true) ||
			!cv_cipher_make(&opens, key, len, false)) {
			fprintf(stderr, "bench-cipher: no cipher on this processor\n");
			return 1;
		}
		if (len == 16)
			printf("{\"schema\": \"convoy.bench.cipher/1\", \"four_at_once\": %s, "
			       "\"results\": [",
				seals.rows.rounds != 0 ? "true" : "false");
		for (size_t i = 0; i < RTE_DIM(sizes); i++) {
			measure(&seals, &opens, (unsigned)len * 8, sizes[i], passes, comma);
			comma = ", ";
		}
	}
	puts("]}");
	return 0;
}
