// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One DPDK device: attached by its arguments, configured, started, stopped, detached. The ports
// that are devices are made of it.
#ifndef CV_ETHDEV_H
#define CV_ETHDEV_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <rte_ethdev.h>
#include <rte_spinlock.h>

#include "port/kind.h"

struct cv_ethdev {
	// What is wanted; stays as it is.
	const char *driver; // "net_vhost": for the error text if it is not installed; NULL: any
	char devargs[512]; // as --vdev and --allow take them; the device's name stands first
	uint16_t rx_queues;
	uint16_t tx_queues; // at most
	uint16_t mtu;
	bool set_mtu; // the device must be told; else it need not know
	bool any_mtu; // it has none of its own: it is never told
	struct rte_mempool *pool;

	// What there is.
	bool attached;
	uint16_t id; // DPDK's port number
	uint16_t tx_queues_there; // 1 to tx_queues
};

// What can be checked without attaching: the driver is there, frames fit into buffers. 0 or -errno.
int cv_ethdev_check(const struct cv_ethdev *dev, struct cv_error *error);

// Attaches and configures the device, with RSS where it has several queues. 0, or -errno with
// error set; nothing is left behind then.
int cv_ethdev_attach(struct cv_ethdev *dev, struct cv_error *error);

// Stops and detaches. Nobody may use the device any more. Nothing happens if it is not attached.
void cv_ethdev_detach(struct cv_ethdev *dev);

int cv_ethdev_start(struct cv_ethdev *dev, struct cv_error *error);

// Gives the device the address, if it has another and can change it; takes the device's over
// where wanted says so.
void cv_ethdev_mac(const struct cv_ethdev *dev, bool wanted, uint8_t mac[6]);

// Link and counters as a new object; counters of a device that is not attached are missing.
json_t *cv_ethdev_info(const struct cv_ethdev *dev);

// A port that is this device from open to close. Fills in port's calls. 0 or -errno, error set.
// struct cv_ethdev_port begins with the struct cv_port; the kind's size is its size.
#define CV_ETHDEV_SENDERS_MAX 64
struct cv_ethdev_port {
	struct cv_port port;
	struct cv_ethdev dev;
	const char *peer; // what to call the other side in log lines; NULL: log no links
	bool up; // what was logged last; atomic
	rte_spinlock_t locks[CV_ETHDEV_SENDERS_MAX]; // one for each queue that senders share
};

// dev: filled in but for mtu, tx_queues and pool, which come from port and args.
int cv_ethdev_port_open(
	struct cv_ethdev_port *port, const struct cv_port_args *args, struct cv_error *error);

#endif
