// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Neighbours whose MAC addresses are learned by ARP (RFC 826) and neighbour discovery (RFC 4861),
// both with the latter's reachability states (section 7.3.2):
//
//   incomplete  asked for; packets wait
//   reachable   heard from in the last 15 to 45 s: packets go straight on
//   stale       longer ago: the next packet goes on, and makes it
//   delay       if nothing is heard for 5 s, it is
//   probe       asked itself, once a second, three times, and then is
//   failed      the next packet makes it incomplete
//
// Packets read adjacencies (adjacency.h), without a lock. Everything else is the slow path's: under
// one lock, bounded, by whichever worker has reason to. Times are in TSC ticks, given by the caller.
#ifndef CV_NEIGHBOUR_TABLE_H
#define CV_NEIGHBOUR_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_spinlock.h>

#include "nf/router/adjacency.h"
#include "packet/prefix.h"

#define CV_NEIGHBOURS_MAX (1u << 16) // that a table may have room for
#define CV_NEIGHBOUR_NONE UINT32_MAX
#define CV_NEIGHBOUR_PROBES 3 // MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT, RFC 4861 section 10
#define CV_NEIGHBOUR_TAGS_MAX 8 // bytes of two VLAN tags

enum cv_neighbour_state {
	CV_NEIGHBOUR_FREE,
	CV_NEIGHBOUR_INCOMPLETE,
	CV_NEIGHBOUR_REACHABLE,
	CV_NEIGHBOUR_STALE,
	CV_NEIGHBOUR_DELAY,
	CV_NEIGHBOUR_PROBE,
	CV_NEIGHBOUR_FAILED,
	CV_NEIGHBOUR_STATES,
};

extern const char *const cv_neighbour_state_names[CV_NEIGHBOUR_STATES];

struct cv_neighbour_key {
	struct cv_address address;
	uint8_t port;
};

// The VLAN tags of the packet that a neighbour was first asked for with: it is asked with the same.
struct cv_neighbour_tags {
	uint8_t len; // 0, 4 or 8
	uint8_t bytes[CV_NEIGHBOUR_TAGS_MAX];
};

struct cv_neighbour_entry {
	uint32_t version; // odd while the key changes
	uint8_t state; // enum cv_neighbour_state; written under the lock
	uint8_t probes; // sent in this state
	bool pinned; // a route's next hop: never forgotten
	struct cv_neighbour_tags tags;
	struct cv_neighbour_key key;
	uint64_t due; // TSC ticks: when the state ends
	uint64_t since; // TSC ticks: of the state
};

// What is to be sent, or said, because of a neighbour. A copy: the neighbour may have changed.
enum cv_neighbour_what {
	CV_NEIGHBOUR_NOTHING,
	CV_NEIGHBOUR_ASK_ALL, // a broadcast, or a solicited-node group
	CV_NEIGHBOUR_ASK_IT, // at the address that is known
};

struct cv_neighbour_event {
	enum cv_neighbour_what what;
	uint8_t mac[CV_MAC_LEN]; // of CV_NEIGHBOUR_ASK_IT
	struct cv_neighbour_key key;
	struct cv_neighbour_tags tags;
};

// What becomes of a packet to a neighbour.
enum cv_neighbour_use {
	CV_NEIGHBOUR_GO, // with the adjacency's MAC address
	CV_NEIGHBOUR_WAIT, // until the address is known
	CV_NEIGHBOUR_NO_ROOM, // the table is full of others
};

// How something was heard of a neighbour.
struct cv_neighbour_heard {
	bool has_mac;
	uint8_t mac[CV_MAC_LEN];
	bool create; // it has asked for one of our addresses
	bool advertised; // else it asked
	bool solicited, override; // of an advertisement, as RFC 4861 section 7.2.5 has them
};

// A port, once it is open.
struct cv_neighbour_port {
	uint8_t mac[CV_MAC_LEN];
	uint16_t mtu;
};

struct cv_neighbour_table {
	uint32_t entries_count;
	struct cv_neighbour_entry *entry;
	struct cv_adjacency *adjacency; // of entry i; not owned
	const struct cv_neighbour_port *ports; // by index
	uint32_t *slot; // of the hash table, in buckets of 8: 0, or signature and index + 1
	uint32_t buckets_mask;
	uint64_t key[3]; // random: nobody can choose addresses that collide
	uint64_t hz; // TSC ticks per second

	// Counts what packets may wait for: addresses that came, and hopes that were given up.
	uint32_t changes;

	rte_spinlock_t lock; // of what follows, and of all writes
	uint32_t *free;
	uint32_t free_count;
	uint32_t incomplete; // at most half of the entries
	uint32_t hand; // where the next neighbour to be forgotten is looked for
	uint32_t next_due; // where cv_neighbour_table_expire() goes on
	uint64_t random;
};

// Makes a table of so many entries, 1 to CV_NEIGHBOURS_MAX, whose adjacencies are filled in here; hz:
// TSC ticks per second. seed NULL: the kernel's random numbers. Returns 0 or -ENOMEM.
int cv_neighbour_table_init(struct cv_neighbour_table *table, uint32_t entries,
	struct cv_adjacency *adjacency, uint64_t hz, const uint64_t *seed);
void cv_neighbour_table_free(struct cv_neighbour_table *table);

// The entry of a route's next hop, new if need be: it is not forgotten. CV_NEIGHBOUR_NONE: there is no
// room for it.
uint32_t cv_neighbour_table_pin(
	struct cv_neighbour_table *table, const struct cv_neighbour_key *key);

// No route's next hop any more, and no worker has its place from a table of routes.
void cv_neighbour_table_unpin(struct cv_neighbour_table *table, uint32_t at);

// Before the first packet: the ports are open. ports must outlive the table.
void cv_neighbour_table_start(
	struct cv_neighbour_table *table, const struct cv_neighbour_port *ports);

// Reads without a lock: the entry with this key, or CV_NEIGHBOUR_NONE.
uint32_t cv_neighbour_table_find(
	const struct cv_neighbour_table *table, const struct cv_neighbour_key *key);

// Reads without a lock: copies the adjacency of the neighbour with this key. False: there is none
// that packets may go straight on to.
bool cv_neighbour_table_forward(const struct cv_neighbour_table *table,
	const struct cv_neighbour_key *key, struct cv_adjacency *adjacency);

// A packet is for this neighbour, and must not go straight on. *at is its entry: new if it was not
// known. *event is what is to be sent.
enum cv_neighbour_use cv_neighbour_table_use(struct cv_neighbour_table *table,
	const struct cv_neighbour_key *key, const struct cv_neighbour_tags *tags, uint64_t now,
	uint32_t *at, struct cv_neighbour_event *event);

// Reads without a lock: the key of an entry. False: it has none, or is getting another one.
bool cv_neighbour_table_key(
	const struct cv_neighbour_table *table, uint32_t at, struct cv_neighbour_key *key);

// The state of an entry, and whether it is (still) that of the key. Reads without a lock.
enum cv_neighbour_state cv_neighbour_table_state(
	const struct cv_neighbour_table *table, uint32_t at, const struct cv_neighbour_key *key);

// Something was heard of a neighbour (RFC 826, RFC 4861 sections 7.2.3 and 7.2.5).
void cv_neighbour_table_hear(struct cv_neighbour_table *table, const struct cv_neighbour_key *key,
	const struct cv_neighbour_heard *heard, const struct cv_neighbour_tags *tags, uint64_t now);

// Looks at the next so many entries, and ends the states that are due. Returns how many events, at most
// that many. Another worker is at it: 0.
unsigned cv_neighbour_table_expire(struct cv_neighbour_table *table, uint64_t now, unsigned entries,
	struct cv_neighbour_event *events);

#endif
