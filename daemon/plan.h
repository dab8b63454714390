// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The plan (docs/plan.md) as C sees it: read, checked whole, names resolved to indices. A plan
// that cv_plan_read returns can be built; only what the machine refuses can still go wrong.
#ifndef CV_PLAN_H
#define CV_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "chain/nf.h"
#include "daemon/openflow/server.h"
#include "daemon/standby/config.h"
#include "daemon/plan_next_hop.h"
#include "flow/limits.h"
#include "packet/error.h"
#include "port/port.h"
#include "port/socket_access.h"

#define CV_NAME_MAX 32 // bytes of a name with its NUL
#define CV_CHAINS_MAX 128 // chains of one node
#define CV_FUNCTIONS_MAX 1024
#define CV_STAGES_MAX 1024
#define CV_PATH_MAX 32 // functions in a row

struct cv_plan_function {
	const char *name;
	const struct cv_nf *nf;
	const json_t *config;
	unsigned outputs_count;
	const char *outputs[CV_OUTPUTS_MAX]; // names
	const char *output_chains[CV_OUTPUTS_MAX]; // their names
	unsigned output_to[CV_OUTPUTS_MAX]; // their indices
};

struct cv_plan_chain {
	const char *name;
	int32_t nfi; // it takes convoys to this NFI-ID; -1: packets by match
	struct cv_plan_scid match; // CV_SCID_NONE: what no other chain of its port matches
	bool from_outputs; // its packets come from functions' outputs, not from a port
	bool in_turn; // workers that share it get bursts in turn, not packets by flow
	unsigned in, out; // ports; in is 0 where there is none
};

struct cv_plan_stage {
	unsigned worker, chain;
	int source_ring; // index, -1: from queue of the chain's port in, from outputs, or handed over
	bool moves; // its queue may go to other workers while packets flow
	bool spare; // what it is on another worker than its own: polled once the queue is there
	bool handed; // its packets come from other workers, which received them
	uint16_t queue;
	int sink_ring; // index, -1: out of the node
	unsigned path[CV_PATH_MAX]; // functions
	unsigned path_length;
};

struct cv_plan_worker {
	unsigned core;
	unsigned idle; // enum cv_worker_idle
};

struct cv_plan {
	json_t *json; // owns every string and config below
	struct cv_port_config *ports[CV_PORTS_MAX];
	const struct cv_plan *ports_of; // whose they were when this one was read; NULL: its own
	bool ports_lent; // another plan owns them
	const char *port_names[CV_PORTS_MAX];
	struct cv_plan_convoys port_convoys[CV_PORTS_MAX];
	unsigned ports_count;
	bool convoys; // some port carries them
	struct cv_plan_next_hop next_hops[CV_NEXT_HOPS_MAX];
	unsigned next_hops_count;
	struct cv_plan_function functions[CV_FUNCTIONS_MAX];
	unsigned functions_count;
	struct cv_plan_chain chains[CV_CHAINS_MAX];
	unsigned chains_count;
	struct cv_plan_stage stages[CV_STAGES_MAX];
	unsigned stages_count; // with the spare ones, which are the last
	unsigned spare_count;
	struct cv_plan_worker workers[CV_WORKERS_MAX];
	unsigned workers_count;
	const char *rings[2 * CV_STAGES_MAX]; // names
	unsigned rings_count;
	struct cv_flow_limits flows;
	bool hugepages;
	unsigned memory_mb;
	struct cv_socket_access telemetry; // of the sockets that the node is read by
	struct cv_socket_access control; // of the one that it is changed by
	struct cv_of_config openflow; // no controllers and no socket: nobody
	struct cv_standby_config standby; // no key_file: none
	const char *run_as; // NULL: stays who it is
};

// Reads and checks a plan: path, or "-" for standard input. Needs no EAL and starts nothing.
// Functions' own configuration is checked later, by their create(). Returns NULL with error set.
struct cv_plan *cv_plan_read(const char *path, struct cv_error *error);

// The same from memory: text of length bytes, called name in errors.
struct cv_plan *cv_plan_parse(
	const char *text, size_t length, const char *name, struct cv_error *error);

// A plan that is to take the place of one that runs, with its ports and workers: after is read, and
// refused where it differs in what stays as it is as long as the node runs. Functions that are in both
// keep their order. The ports belong to the running plan until cv_plan_take_ports(). NULL with error set.
struct cv_plan *cv_plan_read_next(
	const struct cv_plan *running, const json_t *after, struct cv_error *error);
void cv_plan_take_ports(struct cv_plan *plan, struct cv_plan *from);

void cv_plan_free(struct cv_plan *plan);

#endif
