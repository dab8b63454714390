// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A port whose device lives only while its peer does: virtio-user and memif. DPDK's drivers for
// these cannot connect again, or want the other side to be there first, or say nothing when it
// goes. So the port stays, and a connection thread attaches a fresh device whenever
// the peer is there and detaches it when the peer is gone. Meanwhile rx and tx move nothing.
//
// Costs one locked instruction for each rx or tx call, that is for each burst.
#ifndef CV_RECONNECTING_PORT_H
#define CV_RECONNECTING_PORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include <rte_thread.h>

#include "port/ethdev.h"

// Set by whoever is using the device just now; one cache line for each queue and each sender.
struct cv_device_user {
	_Alignas(RTE_CACHE_LINE_SIZE) uint32_t busy;
};

enum cv_reconnect_mode {
	CV_RECONNECT_CONNECTS, // attaching or starting connects to the peer, which listens at path
	CV_RECONNECT_RELAYED, // attaching or starting connects to the relay, where the peer is
	CV_RECONNECT_STAYS, // the device listens at path by itself, to one peer after the other
};

struct cv_reconnecting_port {
	struct cv_port port;
	struct cv_ethdev dev;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	enum cv_reconnect_mode mode;
	struct cv_vhost_relay *relay; // NULL: there is none
	bool mac_wanted;

	int usable; // atomic: the device may be used if this is above 0
	uint16_t senders;
	struct cv_device_user *users; // of each queue, of each sender, and of info
	rte_spinlock_t *locks; // of each queue that senders share; NULL: none are shared
	pthread_mutex_t info_lock; // info has one user

	rte_thread_t connection_thread;
	bool has_connection_thread;
	pthread_mutex_t lock; // of the three below
	pthread_cond_t changed;
	bool quit; // it is to end
	bool ended;
	uint64_t peers; // how often a peer came; atomic
	struct cv_error failed; // why the device could not be had, last
	unsigned failed_times; // for that, one after the other
};

// reconnecting->dev: driver, devargs and rx_queues filled in; reconnecting->path, mode and relay,
// too. 0 or -errno. The port closes the relay, but not after an error.
int cv_reconnecting_port_open(struct cv_reconnecting_port *reconnecting,
	const struct cv_port_args *args, struct cv_error *error);

#endif
