// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A port that is one DPDK device from open to close.
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "port/ethdev.h"
#include "port/port_log.h"

static uint16_t rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	return rte_eth_rx_burst(((struct cv_ethdev_port *)port)->dev.id, queue, packets, n);
}

static uint16_t tx_own(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	return rte_eth_tx_burst(((struct cv_ethdev_port *)port)->dev.id, tx_queue, packets, n);
}

static uint16_t tx_shared(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_ethdev_port *ethdev = (struct cv_ethdev_port *)port;
	const uint16_t queue = tx_queue % ethdev->dev.tx_queues_there;
	uint16_t sent;

	rte_spinlock_lock(&ethdev->locks[queue]);
	sent = rte_eth_tx_burst(ethdev->dev.id, queue, packets, n);
	rte_spinlock_unlock(&ethdev->locks[queue]);
	return sent;
}

static json_t *info(const struct cv_port *port)
{
	return cv_ethdev_info(&((const struct cv_ethdev_port *)port)->dev);
}

// Called by the driver's own threads.
static int link_changed(uint16_t id, enum rte_eth_event_type type, void *argument, void *unused)
{
	struct cv_ethdev_port *ethdev = argument;
	struct rte_eth_link link;
	bool up = rte_eth_link_get_nowait(id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;

	if (__atomic_exchange_n(&ethdev->up, up, __ATOMIC_RELAXED) != up)
		cv_port_log(&ethdev->port, "%s %s", ethdev->peer, up ? "connected" : "gone");
	return 0;
}

static int start(struct cv_port *port, struct cv_error *error)
{
	struct cv_ethdev_port *ethdev = (struct cv_ethdev_port *)port;

	return cv_ethdev_start(&ethdev->dev, error);
}

// No callback runs after this, and none begins: the next device of this number has its list.
static void end_callback(struct cv_ethdev_port *ethdev)
{
	if (ethdev->peer == NULL)
		return;
	while (rte_eth_dev_callback_unregister(ethdev->dev.id, RTE_ETH_EVENT_INTR_LSC, link_changed,
		       ethdev) == -EAGAIN) // it runs just now
		sched_yield();
}

static void stop(struct cv_port *port)
{
	struct cv_ethdev_port *ethdev = (struct cv_ethdev_port *)port;

	end_callback(ethdev);
	rte_eth_dev_stop(ethdev->dev.id);
}

static void close_port(struct cv_port *port)
{
	struct cv_ethdev_port *ethdev = (struct cv_ethdev_port *)port;

	end_callback(ethdev);
	cv_ethdev_detach(&ethdev->dev);
	free(port);
}

int cv_ethdev_port_open(
	struct cv_ethdev_port *ethdev, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_port *port = &ethdev->port;
	int rc;

	if (ethdev->dev.tx_queues == 0) {
		ethdev->dev.tx_queues = RTE_MIN(args->senders, CV_ETHDEV_SENDERS_MAX);
		ethdev->dev.tx_queues = RTE_MAX(ethdev->dev.tx_queues, ethdev->dev.rx_queues);
	}
	ethdev->dev.mtu = port->mtu;
	ethdev->dev.set_mtu = args->config->mtu_given && !ethdev->dev.any_mtu;
	ethdev->dev.pool = args->pool;
	rc = cv_ethdev_attach(&ethdev->dev, error);
	if (rc != 0)
		return rc;
	cv_ethdev_mac(&ethdev->dev, args->config->mac_given, port->mac);
	if (ethdev->peer != NULL)
		rte_eth_dev_callback_register(
			ethdev->dev.id, RTE_ETH_EVENT_INTR_LSC, link_changed, ethdev);
	if (ethdev->peer != NULL) // a peer may have been there before the callback was
		link_changed(ethdev->dev.id, RTE_ETH_EVENT_INTR_LSC, ethdev, NULL);
	for (unsigned i = 0; i < CV_ETHDEV_SENDERS_MAX; i++)
		rte_spinlock_init(&ethdev->locks[i]);
	port->rx = rx;
	port->tx = args->senders <= ethdev->dev.tx_queues_there ? tx_own : tx_shared;
	port->info = info;
	port->start = start;
	port->stop = stop;
	port->close = close_port;
	port->rx_queues = ethdev->dev.rx_queues;
	port->socket = rte_eth_dev_socket_id(ethdev->dev.id);
	return 0;
}
