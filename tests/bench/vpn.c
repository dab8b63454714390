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

#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "chain/path.h"
#include "chain/rx.h"
#include "nf/vpn/cipher.h"
#include "tests/bench/bench.h"

#define IP_AT 14
#define TRAILER_BYTES 2 // padding's length, next header

#define SA                                                          \
	"out 256 policy all local 192.0.2.1 peer 198.51.100.1 key " \
	"000102030405060708090a0b0c0d0e0f10111213"

// A file that nobody else can read, and that is in no folder.
static int secret_file(const char *sa, struct cv_error *error)
{
	const int fd = memfd_create("sas", MFD_CLOEXEC);

	if (fd < 0 || fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
		write(fd, sa, strlen(sa)) != (ssize_t)strlen(sa)) {
		cv_error_set(error, "no file for associations");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static json_t *config_of(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return json_pack("{s[s] s[{ss s{}}] ss}", "outside", "right", "policies", "name", "all",
		"match", "sa_file", path);
}

int bench_vpn_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	const int fd = secret_file(SA, error);
	json_t *config;
	int rc;

	if (fd < 0)
		return -1;
	config = config_of(fd);
	rc = bench_path_create_of(subject, "vpn", config, error);
	json_decref(config);
	close(fd);
	subject->uses_up = true;
	return rc;
}

// vpn that aggregates, without its path, which would free the packets that others took in.
struct aggregating {
	struct cv_step step;
	struct cv_path path;
	struct cv_path_worker worker;
	struct cv_burst burst;
	struct cv_nf_counters counters;
	struct cv_port_counters port_counters;
	struct rte_mempool *pool; // the packets' own buffers are too small for many
	uint64_t busy;
};

static uint16_t run_aggregating(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct aggregating *vpn = state;
	uint8_t verdicts[CV_BURST_MAX];
	uint16_t through = 0;
	uint64_t then;

	cv_burst_load(&vpn->burst, packets, n, 0, 1, &vpn->port_counters);
	vpn->worker.burst = &vpn->burst;
	then = rte_rdtsc();
	vpn->worker.nf.now = then;
	vpn->step.process(vpn->step.instance, &vpn->worker.nf, vpn->burst.views, verdicts, n);
	vpn->busy += rte_rdtsc() - then;
	for (uint16_t i = 0; i < n; i++) {
		through += verdicts[i] == CV_NEXT || verdicts[i] == CV_ABSORBED;
		rte_pktmbuf_free(vpn->worker.moved[i]);
		vpn->worker.moved[i] = NULL;
	}
	vpn->worker.moved_count = 0;
	return through;
}

static uint64_t busy_aggregating(const void *state)
{
	return ((const struct aggregating *)state)->busy;
}

static void destroy_aggregating(void *state)
{
	struct aggregating *vpn = state;

	if (vpn->step.instance != NULL)
		cv_nf_destroy(cv_nf_find("vpn"), vpn->step.instance);
	rte_mempool_free(vpn->pool);
	free(vpn);
}

int bench_vpn_aggfrag_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	static const char *const ports[] = {"left", "right"};
	static const uint8_t macs[][6] = {{2, 0xc0, 0x17, 0, 0, 0}, {2, 0xc0, 0x17, 0, 0, 1}};
	static const uint16_t mtus[] = {1500, 1500};
	const struct cv_nf_env env = {.name = "vpn",
		.workers = 1,
		.macs = macs,
		.socket = -1,
		.ports = ports,
		.mtus = mtus,
		.ports_count = RTE_DIM(ports)};
	const struct cv_nf *nf = cv_nf_find("vpn");
	const int fd = secret_file(SA " aggregate yes", error);
	struct aggregating *vpn;
	json_t *config;

	if (fd < 0)
		return -1;
	config = config_of(fd);
	vpn = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*vpn), RTE_CACHE_LINE_SIZE));
	if (vpn != NULL) {
		memset(vpn, 0, sizeof(*vpn));
		vpn->step = (struct cv_step){.process = nf->process, .counters = &vpn->counters};
		vpn->step.instance = cv_nf_create(nf, config, &env, error);
		vpn->pool = rte_pktmbuf_pool_create(
			"aggregates", 255, 32, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	}
	json_decref(config);
	close(fd);
	if (vpn == NULL || vpn->step.instance == NULL || vpn->pool == NULL) {
		if (vpn != NULL)
			destroy_aggregating(vpn);
		cv_error_set(error, "vpn-aggfrag: no memory");
		return -1;
	}
	cv_nf_start(nf, vpn->step.instance, &env);
	vpn->path = (struct cv_path){.length = 1, .steps = &vpn->step};
	vpn->worker.path = &vpn->path;
	vpn->worker.step = &vpn->step;
	vpn->worker.pool = vpn->pool;
	*subject = (struct bench_subject){.run = run_aggregating,
		.busy = busy_aggregating,
		.destroy = destroy_aggregating,
		.state = vpn,
		.uses_up = true};
	return 0;
}

struct raw {
	struct cv_cipher cipher;
	uint64_t sequence;
};

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	struct raw *raw = state;
	const uint8_t with[8] = {0};
	uint8_t nonce[CV_CIPHER_ROOM], tag[CV_GCM_TAG_LEN];

	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], uint8_t *));
	for (uint16_t i = 0; i < n; i++) {
		uint8_t *data = rte_pktmbuf_mtod(packets[i], uint8_t *) + IP_AT;
		const uint32_t inner = packets[i]->data_len - IP_AT;

		cv_cipher_nonce(nonce, 0, raw->sequence++);
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
