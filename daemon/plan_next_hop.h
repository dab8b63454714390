// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Convoys in a plan: which ports carry them, and the next hops that packets are aggregated for.
// The same object sets a next hop while the node runs (docs/convoys.md).
#ifndef CV_PLAN_NEXT_HOP_H
#define CV_PLAN_NEXT_HOP_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/rx.h"
#include "chain/nf.h"
#include "compress/compress.h"
#include "convoy/next_hop.h"
#include "config/params.h"

#define CV_NEXT_HOP_NAME_MAX 32 // bytes with the NUL

// How a port carries convoys.
struct cv_plan_convoys {
	bool carries;
	uint16_t udp_port;
	struct cv_convoy_address address; // none: takes convoys to any address, and sends none
	struct cv_convoy_address senders[CV_CONVOY_SENDERS_MAX]; // that it takes convoys from
	uint8_t senders_count; // 0: from anybody
	bool reassemble; // packets that come in two frames
	struct cv_expander expander; // owned
};

struct cv_plan_next_hop {
	char name[CV_NEXT_HOP_NAME_MAX];
	uint8_t port;
	struct cv_outer_config outer; // but for the source MAC address, which is the port's
	uint32_t wait_ns; // that a frame waits for more packets at most
	uint16_t weight; // among next hops of the same SC-ID
	bool by_addresses; // so are flows told apart that go to one of them
	uint32_t *keys; // of the next-hop table; owned
	unsigned keys_count;
	struct cv_dictionary *dictionary; // owned; NULL: its convoys are not compressed
	struct cv_compressor *compressor; // owned; made of that for the node
};

// What packets of a chain, or for a next hop, are known by.
struct cv_plan_scid {
	enum cv_scid_kind kind; // CV_SCID_NONE: everything else
	uint32_t id; // the VLAN id or VNI
};

// {"vlan": 10}, {"vni": 5000} or {}: a cv_param's read() into a struct cv_plan_scid.
int cv_plan_scid_read(const struct cv_where *at, const char *key, const json_t *value, void *scid);

// One element of the plan's convoys, into that of to which is its port's. 0, or -EINVAL with an
// error.
int cv_plan_convoys_read(const struct cv_where *at, const json_t *object, const char *const *ports,
	unsigned ports_count, struct cv_plan_convoys *to);

// One element of the plan's next_hops, or one that somebody sends to the running node. 0, -ENOMEM, or
// -EINVAL with an error.
int cv_plan_next_hop_read(const struct cv_where *at, const json_t *object, const char *const *ports,
	unsigned ports_count, const struct cv_plan_convoys *convoys, struct cv_plan_next_hop *to);

void cv_plan_convoys_free(struct cv_plan_convoys *convoys);
void cv_plan_next_hop_free(struct cv_plan_next_hop *next_hop);

#endif
