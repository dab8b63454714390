// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What nat.c is told: pools, forwards, which side is outside.
#ifndef CV_NAT_CONFIG_H
#define CV_NAT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "chain/nf.h"

#define CV_NAT_ADDRESSES_MAX 4096 // of the pool
#define CV_NAT_FORWARDS_MAX 65536 // a range of ports counts as so many

enum cv_nat_mapping_mode { CV_NAT_MAPS_ALL, CV_NAT_MAPS_EACH };

// Who may send to an external port.
enum cv_nat_filtering {
	CV_NAT_FROM_ANYWHERE,
	CV_NAT_FROM_PORTS, // that were sent to
	CV_NAT_FROM_ADDRESSES,
};

struct cv_nat_ports {
	uint16_t first, last;
};

// As it is written.
struct cv_nat_config {
	const json_t *outside, *inside, *pool, *forwards;
	struct cv_nat_ports ports;
	uint32_t block_size, blocks_per_subscriber, block_rest_s, mappings;
	enum cv_nat_mapping_mode mapping;
	enum cv_nat_filtering filtering;
	bool hairpinning, share_address;
	const char *block_log;
};

extern const struct cv_param cv_nat_params[];

// Addresses, host order, ascending.
struct cv_nat_prefix {
	uint32_t first, last;
};

struct cv_nat_forward {
	uint8_t proto;
	rte_be32_t external, internal;
	rte_be16_t external_port, internal_port; // 0: of ICMP
};

// As it is used.
struct cv_nat_lists {
	bool outside[CV_PORTS_MAX];
	struct cv_nat_prefix *inside;
	unsigned inside_count;
	rte_be32_t *pool; // ascending
	unsigned pool_count;
	struct cv_nat_forward *forwards; // by external address, protocol and port
	unsigned forwards_count;
};

// Reads the lists and checks that they agree. Returns 0, or a negative errno with error set; what
// was read must be freed either way.
int cv_nat_lists_read(const struct cv_nat_config *config, const struct cv_nf_env *env,
	struct cv_nat_lists *lists, struct cv_error *error);
void cv_nat_lists_free(struct cv_nat_lists *lists);

// The orders of what is sorted: addresses; forwards. For qsort() and bsearch().
int cv_nat_compare_addresses(const void *a, const void *b);
int cv_nat_compare_forwards(const void *a, const void *b);

#endif
