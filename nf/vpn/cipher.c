// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/vpn/cipher.h"

#include <pthread.h>

static IMB_MGR *library; // of the process; nothing of it is written once it is made

static void make_library(void)
{
	IMB_ARCH chosen;

	library = alloc_mb_mgr(0);
	if (library != NULL)
		init_mb_mgr_auto(library, &chosen);
}

bool cv_cipher_make(struct cv_cipher *cipher, const uint8_t *key, size_t len, bool encrypts)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_library);
	if (library == NULL || library->gcm128_enc == NULL)
		return false;
	if (len == IMB_GCM_128_KEY_LEN) {
		IMB_AES128_GCM_PRE(library, key, &cipher->schedule);
		cipher->run = encrypts ? library->gcm128_enc : library->gcm128_dec;
	} else {
		IMB_AES256_GCM_PRE(library, key, &cipher->schedule);
		cipher->run = encrypts ? library->gcm256_enc : library->gcm256_dec;
	}
	return true;
}
