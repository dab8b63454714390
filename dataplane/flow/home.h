// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Homes: where several workers share the flows of a chain, each flow has one worker that keeps it.
// It is known from any packet of the flow, and of its answers, as the port gave it:
//
//   - by a keyed hash of addresses, ports and protocol that is the same for both directions;
//   - where a function rewrites them, as that function says (home() in flow/flow.h);
//   - an ICMP error by the answers to the packet inside of it;
//   - a non-first fragment, which has no ports, as its first one, if that came by the same queue
//     before; else by its addresses, and the flow path of that worker drops it;
//   - what is of no flow (not IP, broken) stays where it came in.
//
// Nobody can choose the worker of his flows: the hash has a key of its own for each start.
#ifndef CV_FLOW_HOME_H
#define CV_FLOW_HOME_H

#include <stdint.h>

#include "chain/nf.h"
#include "flow/flow.h"
#include "flow/hash.h"

// Which workers share flows.
struct cv_flow_homes {
	struct cv_flow_secret secret;
	uint8_t workers[CV_WORKERS_MAX];
	unsigned count;
};

// What one worker finds homes with. It remembers first fragments.
struct cv_flow_home;
struct cv_flow_zone;
struct cv_ring;

// nf, instance: who rewrites addresses or ports; NULL: nobody. to: its rings to the others, by worker;
// NULL: it reads no flows of others. homes and these must live as long. NULL: no memory.
struct cv_flow_home *cv_flow_home_create(const struct cv_flow_homes *homes, unsigned self,
	const struct cv_nf *nf, const void *instance, uint64_t tsc_hz, struct cv_ring *const *to);
void cv_flow_home_destroy(struct cv_flow_home *home);

// Who rewrites: the instance, or NULL. It is another from now on: by the worker, or while it does not run.
const void *cv_flow_home_instance(const struct cv_flow_home *home);
void cv_flow_home_replace(struct cv_flow_home *home, const void *instance);

// The flows of a worker are in this zone, for paths that begin with its functions. Another's: what is
// settled of them is done here from now on (flow/foreign.h). Its own: packets are looked up in them first.
// NULL: in none, and all that is another's is handed over. By the worker itself, or while it does not run.
void cv_flow_home_read(struct cv_flow_home *home, unsigned worker, struct cv_flow_zone *zone);

// The worker of each of n packets; returns how many are to go to others. struct cv_handoff's home().
uint16_t cv_flow_home_find(void *home, struct cv_view *views, uint8_t *workers, uint16_t n);

#endif
