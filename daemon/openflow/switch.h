// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What all controllers of a node share: its flow entries, and the node that they are put into effect
// in. Everything here and in session.h runs in one thread, but the counters, which others may read.
#ifndef CV_OF_SWITCH_H
#define CV_OF_SWITCH_H

#include "daemon/openflow/entries.h"
#include "daemon/openflow/parse.h"
#include "port/openflow_port.h"

#define CV_OF_TABLES_MAX 64
#define CV_OF_NAME_MAX 32 // bytes with the NUL
#define CV_OF_PEERS_MAX 16 // controllers that are connected
#define CV_OF_SESSIONS_MAX (CV_OF_PEERS_MAX + 1) // theirs, and that of frames

// A next hop, as OpenFlow sees it: a port, numbered from 1 by its index.
struct cv_of_port {
	char name[CV_OF_NAME_MAX]; // empty: there is none
	uint8_t mac[6];
	uint16_t nfi;
	uint16_t serial; // another one than that of the next hop that had this index before
	uint64_t packets; // that were sent there
};

// What the node does for us.
struct cv_of_node {
	void *of;
	uint64_t datapath_id;
	const char *version;
	// Flow tables: those of the packets that leave by a port each, by the port's index.
	unsigned tables_count;
	uint8_t ports[CV_OF_TABLES_MAX];
	const char *names[CV_OF_TABLES_MAX];
	struct cv_port *inband[CV_OF_TABLES_MAX]; // of kind openflow: they are sent FLOW_MODs
	unsigned inband_count;
	// Takes the node, for all that follows: nothing of it changes until the end. False: somebody
	// else changes it now.
	bool (*begin)(void *of);
	void (*end)(void *of);
	// The next hop with this index < CV_NEXT_HOPS_MAX. False: there is none.
	bool (*describe)(void *of, uint16_t next_hop, struct cv_of_port *port);
	// Grows when next hops were added, changed or removed.
	uint64_t (*generation)(void *of);
	// The entries have changed: those of the key, or `all`; or groups (key 0, all). 0 or -ENOMEM.
	int (*change)(void *of, uint32_t key, bool all);
	// Returns when packets that come from now on go where the entries say.
	void (*wait)(void *of);
};

struct cv_of_session;

struct cv_of_counters {
	uint64_t changes; // FLOW_MODs that were carried out
	uint64_t refused; // messages answered by an error
	uint64_t connections; // that were ever made
	uint64_t controllers; // that are connected
	uint64_t entries;
	uint64_t frames, frames_refused; // with FLOW_MODs, by ports
};

struct cv_of_switch {
	const struct cv_of_node *node;
	struct cv_of_entries entries;
	struct cv_of_session *sessions[CV_OF_SESSIONS_MAX]; // NULL: none
	bool changed; // since the last barrier
	bool has_generation; // of roles
	uint64_t role_generation;
	uint64_t known; // the generation of next hops that ports are of
	struct cv_of_port ports[CV_NEXT_HOPS_MAX]; // as controllers have been told
	struct cv_of_counters counters;
};

// 0 or -ENOMEM.
int cv_of_switch_init(struct cv_of_switch *of, const struct cv_of_node *node, uint32_t entries_max);
void cv_of_switch_fini(struct cv_of_switch *of);

// Between begin() and end() of the node: tells controllers of next hops that came and went, and
// removes entries of the latter; removes entries whose time has come.
void cv_of_switch_look(struct cv_of_switch *of, uint64_t now_ns);

// The next hop or group that a change names; what it is refused for otherwise.
uint32_t cv_of_switch_resolve(
	const struct cv_of_switch *of, const struct cv_of_to *to, uint16_t *next_hop);

// Adds to a counter that others read.
static inline void cv_of_count(uint64_t *counter, uint64_t more)
{
	__atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

#endif
