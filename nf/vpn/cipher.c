// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/vpn/cipher.h"

#include <pthread.h>

#include <rte_common.h>

static IMB_MGR *library; // of the process; nothing of it is written once it is made

static void make_library(void)
{
	IMB_ARCH chosen;

	library = alloc_mb_mgr(0);
	if (library != NULL)
		init_mb_mgr_auto(library, &chosen);
}

#ifdef CV_HAVE_GCM_ROWS
static bool knows_rows(void)
{
	const uint64_t needed = IMB_FEATURE_AVX512_SKX | IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ;

	return (library->features & needed) == needed && __builtin_cpu_supports("avx512bw");
}

// Whether rows make of packets of each length what the library makes of them: that its schedule is FIPS 197's
// is not promised.
static bool are_equal(const struct cv_cipher *cipher)
{
	for (uint32_t len = 1; len <= CV_GCM_ROWS_MAX; len++) {
		uint8_t data[16 + CV_GCM_ROWS_MAX], alone[16 + CV_GCM_ROWS_MAX];
		uint8_t tag[CV_GCM_TAG_LEN], tag_alone[CV_GCM_TAG_LEN];
		struct cv_cipher_packet packet = {.data = data + 16, .tag = tag, .len = len};

		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (uint8_t)(i * len);
		memcpy(alone, data, sizeof(data));
		cv_cipher_put(packet.nonce, UINT64_C(0x0123456789abcdef), len);
		cv_cipher_put(packet.with, len, 0);
		cv_gcm_rows_run(&cipher->rows, cipher->schedule.expanded_keys, cipher->encrypts,
			&packet, 1, 8);
		cv_cipher_run(cipher, alone + 16, len, packet.nonce, packet.with, 8, tag_alone);
		if (memcmp(data, alone, sizeof(data)) != 0 || !cv_cipher_same_tag(tag, tag_alone))
			return false;
	}
	return true;
}
#endif

static void make_rows(struct cv_cipher *cipher, unsigned rounds)
{
	cipher->rows.rounds = 0;
#ifdef CV_HAVE_GCM_ROWS
	if (!knows_rows())
		return;
	cv_gcm_rows_make(&cipher->rows, cipher->schedule.expanded_keys, rounds);
	if (!are_equal(cipher))
		cipher->rows.rounds = 0;
#else
	RTE_SET_USED(rounds);
#endif
}

bool cv_cipher_make(struct cv_cipher *cipher, const uint8_t *key, size_t len, bool encrypts)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const bool is_128 = len == IMB_GCM_128_KEY_LEN;

	pthread_once(&once, make_library);
	if (library == NULL || library->gcm128_enc == NULL)
		return false;
	if (is_128) {
		IMB_AES128_GCM_PRE(library, key, &cipher->schedule);
		cipher->run = encrypts ? library->gcm128_enc : library->gcm128_dec;
	} else {
		IMB_AES256_GCM_PRE(library, key, &cipher->schedule);
		cipher->run = encrypts ? library->gcm256_enc : library->gcm256_dec;
	}
	cipher->encrypts = encrypts;
	make_rows(cipher, is_128 ? 10 : 14);
	return true;
}

static CV_INLINE void run_one(
	const struct cv_cipher *cipher, const struct cv_cipher_packet *packet, uint32_t with_len)
{
	cv_cipher_run(cipher, packet->data, packet->len, packet->nonce, packet->with, with_len,
		packet->tag);
}

#ifdef CV_HAVE_GCM_ROWS
// How many packets from here on are better off in rows. Four take as long as four of the longest of them: two
// that have more than two rows would take longer than one by one.
static CV_INLINE unsigned count_short(const struct cv_cipher_packet *packet, uint16_t n)
{
	unsigned count = 0, rest;

	while (count < n && packet[count].len <= CV_GCM_ROWS_MAX)
		count++;
	rest = count % 4;
	if (rest == 1 || rest == 2)
		for (unsigned i = count - rest; i < count; i++)
			if (packet[i].len > 112)
				return count - rest;
	return count;
}
#endif

void cv_cipher_run_many(const struct cv_cipher *cipher, const struct cv_cipher_packet *packet,
	uint16_t n, uint32_t with_len)
{
	uint16_t i = 0;

	while (i < n) {
#ifdef CV_HAVE_GCM_ROWS
		const unsigned count =
			cipher->rows.rounds == 0 ? 0 : count_short(&packet[i], n - i);

		if (CV_LIKELY(count > 0)) {
			cv_gcm_rows_run(&cipher->rows, cipher->schedule.expanded_keys,
				cipher->encrypts, &packet[i], count, with_len);
			i += count;
			continue;
		}
#endif
		run_one(cipher, &packet[i++], with_len);
	}
}
