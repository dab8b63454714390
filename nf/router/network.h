// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A router's life in its networks: its own addresses, the neighbours that it learns, packets that
// wait for them, what it answers and what it tells senders. All of it is the slow path: the packets
// that router.c's loop does not send straight on.
//
//   answer.c   what is for the router itself: ARP, neighbour discovery, echo requests
//   tell.c     ICMP errors, and how what the router makes is sent
//   onward.c   what goes on, but not straight on: to neighbours that are asked for, in fragments,
//              by one of several next hops; waiting; timers
#ifndef CV_NETWORK_H
#define CV_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/nf.h"
#include "nf/router/fib.h"
#include "nf/router/neighbour_table.h"
#include "nf/token_bucket.h"
#include "nf/router/validate.h"
#include "packet/icmp.h"

#define CV_WAIT_PACKETS 256u // packets of a worker that wait for neighbours
#define CV_WAIT_BYTES (512u << 10) // of these packets
#define CV_WAIT_EACH 64u // packets for one neighbour

// A packet that waits for a neighbour's address.
struct cv_router_waiting {
	struct cv_held held;
	struct cv_neighbour_key key;
	uint32_t at; // the neighbour's entry
	uint64_t since; // TSC ticks
};

// What waited when another instance took the place of this one.
struct cv_router_left {
	uint32_t count;
	struct cv_router_waiting waiting[CV_WAIT_PACKETS];
};

// What all workers together have counted.
struct cv_network_counted {
	uint64_t errors_sent, errors_limited, solicitations, answered, fragmented, conflicts;
};

// What one worker has, for itself alone. Counters are read by others.
struct cv_network_worker {
	struct cv_token_bucket errors; // that may be sent
	uint64_t next_tick; // TSC ticks
	uint64_t next_announcement;
	uint32_t changes; // of the neighbour table when waiting packets were looked at
	uint32_t waiting_count;
	uint32_t waiting_bytes;
	uint16_t ip_id;
	uint16_t announcements_left; // of the first worker that runs the function
	uint64_t errors_sent, errors_limited, solicitations, answered, fragmented, conflicts;
	uint64_t to_kernel, from_kernel; // packets
	uint8_t *waits; // for each neighbour, how many packets
	struct cv_router_left *left; // of the instance before; NULL: nothing, or taken over
	struct cv_router_waiting waiting[CV_WAIT_PACKETS];
} __rte_cache_aligned;

struct cv_kernel;

struct cv_network {
	const struct cv_fib *const *fib; // which changes where routes are mirrored
	struct cv_kernel *kernel; // whose routes these are; NULL: nobody's
	struct cv_own_address *own; // in the order of the configuration
	size_t owns;
	unsigned ports_count;
	struct cv_neighbour_port port[CV_PORTS_MAX];
	uint8_t link_local[CV_PORTS_MAX][16]; // of each port with an IPv6 address; else zero
	uint64_t hz; // TSC ticks per second
	struct cv_neighbour_table table;
	unsigned workers;
	uint32_t announced; // whether a worker has taken that upon itself
	struct cv_network_counted counted; // by the instances before
	struct cv_network_worker *worker; // by index
};

// The life of a router whose routes have addresses. Returns NULL: no memory. It takes the table over
// as it is.
struct cv_network *cv_network_create(const struct cv_routes *routes,
	const struct cv_fib *const *fib, struct cv_neighbour_table *table,
	const struct cv_routes_config *config, const struct cv_nf_env *env);
void cv_network_start(struct cv_network *network, const struct cv_nf_env *env);
void cv_network_destroy(struct cv_network *network);

// Before its first packet: the neighbours that another one knows, whose place it takes.
void cv_network_copy_neighbours(struct cv_network *network, const struct cv_network *running);
// Once that has seen its last packet: its counters, and what waits.
void cv_network_inherit(struct cv_network *network, struct cv_network *before);

void cv_network_tick(struct cv_network *network, struct cv_nf_worker *worker);
// Adds what is known to the function's own info.
void cv_network_info(const struct cv_network *network, json_t *info);

// Its own addresses: struct cv_nf's claims().
size_t cv_network_claims(const struct cv_network *network, struct cv_nf_claim *claims, size_t max);

// What each port takes in: with addresses, frames to its own.
void cv_network_matches(const struct cv_network *network, struct cv_mac_match *match);

// The verdict of a packet that does not go straight on: verdict is its headers'; adjacency is what it
// leads to if that is CV_NEXT, and then its TTL is one less already.
uint8_t cv_network_process(struct cv_network *network, struct cv_nf_worker *worker,
	struct cv_view *view, uint8_t verdict, uint32_t adjacency);

// What is below is for the files of this folder.

// Packets that waited in the instance before wait on, by the worker.
void cv_network_wait_on(struct cv_network *network, struct cv_nf_worker *worker);

// One packet on the slow path.
struct cv_router_packet {
	struct cv_network *network;
	struct cv_nf_worker *worker;
	struct cv_view *view;
};

static inline struct cv_network_worker *cv_network_worker_of(
	const struct cv_network *network, const struct cv_nf_worker *worker)
{
	return &network->worker[worker->index];
}

static inline const struct cv_fib *cv_network_fib(const struct cv_network *network)
{
	// Pairs with the release store in route_mirror.c.
	return __atomic_load_n(network->fib, __ATOMIC_ACQUIRE);
}

// Counts one more, for readers that may be an update behind.
static inline void cv_network_count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

static inline uint8_t *cv_router_l3(const struct cv_view *view)
{
	return view->data + view->l3;
}

struct cv_address cv_router_address(bool v6, const void *bytes);

// Whether an address is the router's own, on a port.
bool cv_network_own(
	const struct cv_network *network, const struct cv_address *address, unsigned port);

// Whether packets to an address are for the router: its own, or the kernel's on any interface.
bool cv_network_local(const struct cv_network *network, const struct cv_address *address);

// Whether an address is that of a possible neighbour on a port.
bool cv_network_on_link(
	const struct cv_network *network, const struct cv_address *address, unsigned port);

// The own address to send from by a port, to an address: of its network if there is one. NULL: none.
const uint8_t *cv_network_source(
	const struct cv_network *network, unsigned port, const struct cv_address *to);

// answer.c: the verdict of a packet to one of the router's addresses.
uint8_t cv_network_answer_arp(struct cv_router_packet packet);
uint8_t cv_network_answer_ip(struct cv_router_packet packet);
// Of an IPv6 packet to a group or from or to a link-local address; verdict if it is none of ours.
uint8_t cv_network_answer_link(struct cv_router_packet packet, uint8_t verdict);
// Tells the links that the router is there (RFC 5227 section 2.3, RFC 4861 section 7.2.6).
void cv_network_announce(struct cv_network *network, struct cv_nf_worker *worker);

// tell.c: tells a packet's sender what became of it, if that is allowed.
void cv_network_tell(struct cv_router_packet packet, enum cv_icmp_reason reason, uint32_t value);
// Refuses a packet of TCP to an own address, whose header is at l4 of the IP packet, with a reset. It
// counts as an error, and is limited as these are.
void cv_network_refuse(struct cv_router_packet packet, uint16_t l4);
// Makes a frame of a port, with the tags given; returns where its layer 3, of len bytes, begins, or
// NULL: there is no room.
uint8_t *cv_network_make(struct cv_network *network, struct cv_nf_worker *worker,
	const struct cv_neighbour_tags *tags, unsigned port, const uint8_t *mac, rte_be16_t type,
	uint16_t len);
// Asks for a neighbour's address, if the event says so.
void cv_network_ask(struct cv_network *network, struct cv_nf_worker *worker,
	const struct cv_neighbour_event *event);
struct cv_neighbour_tags cv_network_tags(const struct cv_view *view);

enum cv_resolved {
	CV_RESOLVED,
	CV_ASKED, // the next hop's address is not known yet
	CV_NOWHERE, // it leads to no neighbour
};

// onward.c: the adjacency that something for an address goes by.
enum cv_resolved cv_network_resolve(struct cv_router_packet packet, const struct cv_address *to,
	struct cv_adjacency *adjacency);
uint8_t cv_network_onward(struct cv_router_packet packet, uint32_t adjacency);
void cv_network_release(struct cv_network *network, struct cv_nf_worker *worker);

// Gives back the hop that was taken from a packet's TTL: an error shows it as it came.
void cv_network_restore_ttl(const struct cv_view *view);

#endif
