// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Addresses and ports as rules write them: any, lists, negation, variables. The same words are kept
// once, however many rules have them.
#ifndef CV_IDS_NET_H
#define CV_IDS_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "packet/prefix.h"

#define CV_IDS_NETS_MAX 1024 // prefixes, or ranges, of one list
#define CV_IDS_NESTING_MAX 8 // of lists and variables

struct cv_ids_problem;

struct cv_ids_addresses {
	struct cv_ids_addresses *next;
	char *words;
	unsigned in_count, out_count; // that belong to it; that do not. No in: all do
	struct cv_prefix prefix[]; // those in, then those out
};

struct cv_ids_ports {
	struct cv_ids_ports *next;
	char *words;
	unsigned count;
	struct {
		uint16_t first, last;
	} range[]; // ascending
};

struct cv_ids_nets {
	struct cv_ids_addresses *addresses;
	struct cv_ids_ports *ports;
};

// Reads words; NULL in *of: any. Returns 0, -EINVAL or -ENOTSUP with the problem set, or -ENOMEM.
int cv_ids_addresses_read(struct cv_ids_nets *nets, const char *words, const json_t *variables,
	const struct cv_ids_addresses **of, struct cv_ids_problem *problem);
int cv_ids_ports_read(struct cv_ids_nets *nets, const char *words, const json_t *variables,
	const struct cv_ids_ports **of, struct cv_ids_problem *problem);
void cv_ids_nets_free(struct cv_ids_nets *nets);

// Whether an address of 4 or 16 bytes, in network order, belongs to a list.
bool cv_ids_addresses_have(const struct cv_ids_addresses *of, const uint8_t *address, bool v6);
// Whether a port, in host order, does.
bool cv_ids_ports_have(const struct cv_ids_ports *of, uint16_t port);

#endif
