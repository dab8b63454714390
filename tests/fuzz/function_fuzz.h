// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What fuzzers of functions share: the runtime's start, an environment of four ports, an instance.
#ifndef CV_FUNCTION_FUZZ_H
#define CV_FUNCTION_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>

#include "tests/support/function_rig.h"

static const uint8_t fuzz_macs[RIG_PORTS][6] = {{2, 1}, {2, 2}, {2, 3}, {2, 4}};

static inline void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

// Starts the EAL without files or hugepages. Returns a pool of packets.
static inline struct rte_mempool *fuzz_begin(char *program, const char *name)
{
	char prefix[64];
	char *eal[] = {program, "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m",
		"256", "-l", "0", "--log-level=error", prefix};
	struct rte_mempool *pool;

	snprintf(prefix, sizeof(prefix), "--file-prefix=cv-fuzz-%s", name);
	must(rte_eal_init(sizeof(eal) / sizeof(eal[0]), eal) >= 0, "the EAL starts");
	pool = rte_pktmbuf_pool_create(name, 1023, 0, 0, 4096, SOCKET_ID_ANY);
	must(pool != NULL, "there is a pool");
	return pool;
}

// Makes and starts a function of JSON text, with ports a to d of these MTUs.
static inline void *fuzz_function(const struct cv_nf *nf, const char *text, const uint16_t *mtus)
{
	static const char *const ports[RIG_PORTS] = {"a", "b", "c", "d"};
	const struct cv_nf_env env = {.name = "fuzzed",
		.workers = 1,
		.socket = -1,
		.ports = ports,
		.macs = fuzz_macs,
		.mtus = mtus,
		.ports_count = RIG_PORTS};
	json_t *config = json_loads(text, 0, NULL);
	struct cv_error error = {""};
	void *instance;

	must(nf != NULL && config != NULL, "there is such a function");
	instance = cv_nf_create(nf, config, &env, &error);
	must(instance != NULL, error.text);
	cv_nf_start(nf, instance, &env);
	json_decref(config);
	return instance;
}

#endif
