// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ICMP errors of functions that know no routes: back by the port, and to the MAC address, that the packet
// came from.
#ifndef CV_TELL_H
#define CV_TELL_H

#include "chain/nf.h"
#include "nf/token_bucket.h"
#include "packet/ether.h"
#include "packet/icmp.h"

struct cv_teller {
	uint8_t macs[CV_PORTS_MAX][CV_MAC_LEN]; // of ports
	struct cv_teller_worker {
		struct cv_token_bucket errors; // that may be sent
		uint64_t sent; // read by others
	} __rte_cache_aligned worker[CV_WORKERS_MAX];
};

// When ports are known; rate is errors per second and worker.
void cv_teller_start(struct cv_teller *teller, const struct cv_nf_env *env, uint32_t rate);

// Tells the sender of an IP packet, whose header is sound and at the view's layer 3, what became of it, if
// that is allowed: from an address of its IP version (4 or 16 bytes) that is the node's.
void cv_teller_tell(struct cv_teller *teller, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_icmp_error *error, const uint8_t *source);

uint64_t cv_teller_sent(const struct cv_teller *teller);

#endif
