// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A port: where packets enter and leave the node. Every kind is behind the same few calls; what a
// kind needs to know is in its part of the plan (docs/plan.md) and is checked here.
//
// Life: cv_port_config_read (no side effect, no EAL needed) -> open -> start -> rx/tx -> stop -> close.
#ifndef CV_PORT_H
#define CV_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "packet/error.h"
#include "packet/view.h"
#include "port/buffers.h"
#include "port/log_limit.h"

struct cv_port_handover;

struct cv_port {
	// Receives up to n packets of a queue; they belong to the caller. 0: nothing there now.
	// Called by one worker per queue. A packet that does not fit into one buffer may come in
	// several segments (a jumbo frame, a long packet of a capture).
	uint16_t (*rx)(struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n);
	// Sends the first packets of the n that the port has room for and returns how many; these
	// belong to the port, the rest stays with the caller. tx_queue is the sender's own index, <
	// senders given to open: where the device has fewer queues, senders share them under a
	// lock.
	uint16_t (*tx)(
		struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n);
	// Instead of rx, where a port copies anyway: receives packets one behind the other into few
	// buffers. Fills in up to n <= CV_VIEWS_MAX views (as cv_view_set does; in and out are the
	// caller's to set) and the buffers that hold them, in one segment each. Returns the number
	// of views; the buffers belong to the caller. No packet is shorter than an Ethernet header,
	// for it might share a convoy with others. Each frame comes by one of the two, in the
	// order of arrival, whichever is called. May be NULL.
	uint16_t (*rx_views)(struct cv_port *port, uint16_t queue, struct cv_view *views,
		uint16_t n, struct cv_buffers *buffers);
	// Instead of tx: copies the first packets of n views that there is room for and returns how
	// many. A packet is cv_view_packet(view), which is more than the view where a tunnel was
	// taken off. The buffers that they lie in stay the caller's. Lanes as for tx. May be NULL.
	uint16_t (*tx_views)(
		struct cv_port *port, uint16_t tx_queue, const struct cv_view *views, uint16_t n);
	// True once rx will never return a packet again (a capture at its end). NULL: endless.
	bool (*ended)(const struct cv_port *port);
	// Link state, peer, device counters as a new JSON object, for telemetry; may be NULL.
	json_t *(*info)(const struct cv_port *port);
	// By cv_port_start() and cv_port_stop(). May be NULL.
	int (*start)(struct cv_port *port, struct cv_error *error);
	void (*stop)(struct cv_port *port);
	void (*close)(struct cv_port *port); // frees the port too
	// How it goes over to another process (port/handover.h); NULL: it cannot.
	const struct cv_port_handover *handover;

	const char *kind;
	char name[32];
	uint8_t mac[6]; // from the plan, else the device's, else 02:c0:17:00:00:INDEX
	uint16_t rx_queues; // that this port really has
	uint16_t mtu; // bytes of layer 3
	// It gives packets away in their buffers, without a copy, if each has one of its own.
	bool sends_buffers;
	int socket; // NUMA node, -1: none in particular
	struct cv_log_limit log; // cv_port_log()'s
};

// What a port needs of the process once it is open and started.
struct cv_port_needs {
	uint64_t capabilities; // a bit each
	bool interface; // asks the kernel about interfaces, by sockets
	bool bpf; // takes a program back at the end
	bool pci; // the EAL must be started without --no-pci
	bool drivers; // it is a device of DPDK's: the EAL must be started with drivers
	// A device, the kernel or another process reads packets where they lie, rather than a copy:
	// they must then lie in DPDK's own memory (packet_pool.h).
	bool shared_packets;
	// Other processes have the node's buffers mapped (shared/pool.h), where no device needs them.
	bool shared_pool;
};

struct cv_port_kind; // kind.h

// A port that can be opened.
struct cv_port_config {
	const struct cv_port_kind *kind;
	json_t *json; // owns the strings
	const char *name; // at most 31 bytes
	const char *socket_path; // NULL: it has no socket
	uint16_t mtu; // bytes of layer 3
	uint16_t queues; // 1 for a kind that has but one
	uint8_t mac[6];
	bool mtu_given, mac_given; // in the plan
	// It finds room for frames of any length by itself, rather than in buffers that are as long
	// as its mtu.
	bool any_length;
	bool adopts; // another process hands it over: nothing is opened that others see
	// Another port of the node has needs.shared_packets: what this one receives must lie in the pool.
	bool own_packets;
	struct cv_port_needs needs;
	void *own; // the kind's struct
};

// Reads and checks one element of the plan's ports: kind, keys, types, ranges, files that must exist
// (a capture is read to its end), socket paths that must fit (107 bytes). Returns NULL with error
// set: "KEY: VALUE: what is wrong; the fix", here and below: the caller puts in front of it which
// port of which plan that is. cv_port_config_free() afterwards; an open port does not need it.
struct cv_port_config *cv_port_config_read(const json_t *json, struct cv_error *error);
void cv_port_config_free(struct cv_port_config *config); // may be NULL

// index numbers the ports of the node, senders counts those who will send, pool feeds received
// packets. Needs the EAL. Returns NULL with error set.
struct cv_port *cv_port_open(const struct cv_port_config *config, unsigned index, uint16_t senders,
	struct rte_mempool *pool, struct cv_error *error);

// Packets may come and go from now on; no worker uses the port any more. 0, or -errno with error set.
static inline int cv_port_start(struct cv_port *port, struct cv_error *error)
{
	return port->start == NULL ? 0 : port->start(port, error);
}

static inline void cv_port_stop(struct cv_port *port)
{
	if (port->stop != NULL)
		port->stop(port);
}

// False once a port was closed whose driver leaves something with the EAL's interrupt thread
// (DPDK 22.11's memif server does): rte_eal_cleanup() would unmap what that thread still reads, and
// may crash the process. Then exit without it.
bool cv_port_eal_may_end(void);

#endif
