// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "flow/hash.h"

#include <errno.h>
#include <sys/random.h>

int cv_flow_secret_make(struct cv_flow_secret *secret)
{
	if (getrandom(secret->keys, sizeof(secret->keys), 0) != (ssize_t)sizeof(secret->keys))
		return -errno;
	secret->aes = false;
#ifdef CV_HAVE_AES
	secret->aes = __builtin_cpu_supports("aes") && __builtin_cpu_supports("avx2") &&
		      __builtin_cpu_supports("bmi2");
#endif
	return 0;
}

uint64_t cv_flow_hash(const struct cv_flow_secret *secret, const void *key, size_t bytes)
{
#ifdef CV_HAVE_AES
	if (CV_LIKELY(secret->aes))
		return cv_flow_hash_aes(secret, key, bytes);
#endif
	return cv_flow_sip(secret, key, bytes);
}
