// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/hook.h"

#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "dpdk/compat.h"
#include "preload/ethdev/receive.h"
#include "preload/ethdev/report.h"
#include "preload/ethdev/send.h"
#include "preload/dpdk/host.h"

#define EXPORT __attribute__((visibility("default")))
#define NAME "ethdev"
#define TX_DESCRIPTORS 1024 // where the driver chooses
#define BUFFERS_SPARE 768 // in the mempool's caches, and being filled

struct rx_hook {
	struct cv_rx_queue queue;
	const struct rte_eth_fp_ops *driver;
};

struct tx_hook {
	struct cv_tx_queue queue;
	const struct rte_eth_fp_ops *driver;
};

struct port {
	bool hooked;
	uint16_t rx_queues, tx_queues; // made; as many as the port ever had
	uint16_t rx_live, tx_live; // of the last start
	struct rte_eth_fp_ops driver; // what was there
	struct rx_hook *rx[RTE_MAX_QUEUES_PER_PORT];
	struct tx_hook *tx[RTE_MAX_QUEUES_PER_PORT];
	struct rte_mempool *filled_from[RTE_MAX_QUEUES_PER_PORT];
	uint16_t tx_descriptors[RTE_MAX_QUEUES_PER_PORT];
	const struct cv_return_next_hops *returns[RTE_MAX_QUEUES_PER_PORT];
	_Atomic bool speaks; // convoys came that were sent to it
	struct rte_mempool *buffers;
	uint32_t buffers_size;
};

static struct cv_ethdev_config settings;
static struct cv_outer fixed; // the next hop, if one is given
static _Atomic bool any_convoys; // some were received
static struct port *ports[RTE_MAX_ETHPORTS];
static struct cv_headroom headers;

static int (*real_start)(uint16_t port);
static int (*real_stop)(uint16_t port);
static int (*real_rx_setup)(uint16_t port, uint16_t queue, uint16_t descriptors, unsigned socket,
	const struct rte_eth_rxconf *config, struct rte_mempool *pool);
static int (*real_tx_setup)(uint16_t port, uint16_t queue, uint16_t descriptors, unsigned socket,
	const struct rte_eth_txconf *config);

__attribute__((constructor)) static void load(void)
{
	struct cv_error error = {0};

	cv_host_check(NAME);
	real_start = cv_host_function(NAME, "rte_eth_dev_start");
	real_stop = cv_host_function(NAME, "rte_eth_dev_stop");
	real_rx_setup = cv_host_function(NAME, "rte_eth_rx_queue_setup");
	real_tx_setup = cv_host_function(NAME, "rte_eth_tx_queue_setup");
	if (cv_ethdev_config_read(&settings, CV_ETHDEV_ENV, getenv(CV_ETHDEV_ENV), &error) < 0 ||
		(settings.fixed && cv_outer_set(&fixed, &settings.next_hop, &error) < 0))
		cv_host_refuse(NAME, "%s", error.text);
	if (settings.wait_ns > 0 || settings.across)
		cv_host_refuse(
			NAME, CV_ETHDEV_ENV ": wait=: nothing waits here, only under a switch");
	if (settings.networks[0] != '\0')
		cv_host_refuse(NAME,
			CV_ETHDEV_ENV ": network=: ports lead to networks here, only switches "
				      "have guests beside them");
	cv_report_begin(&settings);
}

static struct port *port_of(uint16_t id)
{
	if (id >= RTE_MAX_ETHPORTS)
		return NULL;
	if (ports[id] == NULL)
		ports[id] = calloc(1, sizeof(*ports[id]));
	return ports[id];
}

EXPORT int rte_eth_rx_queue_setup(uint16_t id, uint16_t queue, uint16_t descriptors,
	unsigned socket, const struct rte_eth_rxconf *config, struct rte_mempool *pool)
{
	struct port *port = port_of(id);

	if (port != NULL && queue < RTE_MAX_QUEUES_PER_PORT)
		port->filled_from[queue] = pool;
	return real_rx_setup(id, queue, descriptors, socket, config, pool);
}

EXPORT int rte_eth_tx_queue_setup(uint16_t id, uint16_t queue, uint16_t descriptors,
	unsigned socket, const struct rte_eth_txconf *config)
{
	struct port *port = port_of(id);

	if (port != NULL && queue < RTE_MAX_QUEUES_PER_PORT)
		port->tx_descriptors[queue] = descriptors;
	return real_tx_setup(id, queue, descriptors, socket, config);
}

// What shares the queues' data with receiving and sending.

static uint32_t rx_queue_count(void *arg)
{
	struct rx_hook *hook = arg;

	return hook->driver->rx_queue_count(hook->queue.driver) + cv_receive_held(&hook->queue);
}

static int rx_descriptor_status(void *arg, uint16_t offset)
{
	struct rx_hook *hook = arg;

	return hook->driver->rx_descriptor_status(hook->queue.driver, offset);
}

static int tx_descriptor_status(void *arg, uint16_t offset)
{
	struct tx_hook *hook = arg;

	return hook->driver->tx_descriptor_status(hook->queue.driver, offset);
}

static uint16_t tx_prepare(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct tx_hook *hook = arg;

	return hook->driver->tx_pkt_prepare(hook->queue.driver, mbufs, n);
}

#ifndef CV_DPDK_NO_RECYCLING
static int tx_queue_count(void *arg)
{
	struct tx_hook *hook = arg;

	return hook->driver->tx_queue_count(hook->queue.driver);
}

// Nothing is handed from what a driver has sent to what it will receive: those are convoys of ours.

static uint16_t reuse_none(void *tx, struct rte_eth_recycle_rxq_info *info)
{
	(void)tx;
	(void)info;
	return 0;
}

static void refill_none(void *rx, uint16_t n)
{
	(void)rx;
	(void)n;
}
#endif

// Memory that outlives DPDK's: the counters are read when the program ends.
static void *make(size_t size)
{
	const size_t line = RTE_CACHE_LINE_SIZE;
	void *memory = aligned_alloc(line, (size + line - 1) / line * line);

	if (memory != NULL)
		memset(memory, 0, size);
	return memory;
}

static bool make_buffers(struct port *port, uint16_t id, uint16_t queues)
{
	uint32_t size = BUFFERS_SPARE, room;
	char name[RTE_MEMPOOL_NAMESIZE];

	for (uint16_t i = 0; i < queues; i++)
		size += port->tx_descriptors[i] != 0 ? port->tx_descriptors[i] : TX_DESCRIPTORS;
	if (port->buffers_size >= size)
		return true;
	// One of before may still be with the driver: it is left to it.
	snprintf(name, sizeof(name), "cv_buf_%u_%u", id, size);
	room = RTE_PKTMBUF_HEADROOM + CV_ETHER_LEN + 2 * CV_VLAN_LEN + settings.mtu;
	port->buffers = rte_pktmbuf_pool_create(
		name, size, 256, 0, RTE_ALIGN(room, 64), rte_eth_dev_socket_id(id));
	port->buffers_size = port->buffers != NULL ? size : 0;
	return port->buffers != NULL;
}

static bool make_rx(struct port *port, uint16_t id, uint16_t i, const struct rte_ether_addr *mac,
	const struct rte_eth_fp_ops *driver)
{
	struct cv_rx_queue *queue;

	if (port->rx[i] == NULL)
		port->rx[i] = make(sizeof(*port->rx[i]));
	if (port->rx[i] == NULL)
		return false;
	queue = &port->rx[i]->queue;
	cv_receive_clear(queue);
	port->rx[i]->driver = driver;
	queue->driver = driver->rxq.data[i];
	queue->receive = driver->rx_pkt_burst;
	queue->config = &settings;
	queue->from.queue = i;
	queue->from.port = id;
	memcpy(queue->mac, mac->addr_bytes, sizeof(queue->mac));
	queue->any_convoys = &any_convoys;
	queue->speaks = &port->speaks;
	port->returns[i] = &queue->returns;
	queue->port = rte_cpu_to_be_16(settings.port);
	queue->headroom.headroom = settings.mode == CV_ETHDEV_AUTO ? &headers : NULL;
	queue->sets = NULL;
	if (settings.mode != CV_ETHDEV_COPY && port->filled_from[i] != NULL)
		queue->sets = cv_mbuf_set_pool_get(port->filled_from[i]);
	return true;
}

static bool make_tx(struct port *port, uint16_t id, uint16_t i, const struct rte_eth_fp_ops *driver)
{
	struct cv_tx_queue *queue;

	if (port->tx[i] == NULL)
		port->tx[i] = make(sizeof(*port->tx[i]));
	if (port->tx[i] == NULL)
		return false;
	queue = &port->tx[i]->queue;
	port->tx[i]->driver = driver;
	queue->driver = driver->txq.data[i];
	queue->send = driver->tx_pkt_burst;
	queue->port = id;
	queue->udp_port = rte_cpu_to_be_16(settings.port);
	queue->fixed = settings.fixed ? &fixed : NULL;
	queue->returns = port->returns;
	queue->returns_count = port->rx_queues;
	queue->convoys = &any_convoys;
	queue->speaks = &port->speaks;
	queue->headroom = settings.mode == CV_ETHDEV_AUTO ? &headers : NULL;
	queue->buffers = port->buffers;
	return true;
}

// Queues that cannot have views: their packets are copied.
static void tell_of_copies(const struct port *port, uint16_t id, uint16_t queues)
{
	uint16_t without = 0;

	for (uint16_t i = 0; i < queues; i++)
		without += port->rx[i]->queue.sets == NULL;
	if (without > 0 && settings.mode != CV_ETHDEV_COPY)
		fprintf(stderr,
			"convoy: ethdev: port %u: packets of %u receive queue(s) are copied: there "
			"is "
			"no memory for views, or more than %d mempools\n",
			id, without, CV_MBUF_SET_POOLS_MAX);
}

// A member that is not named here is cleared: the driver's would take our queues for its own.
static void put_in_place(struct port *port, struct rte_eth_fp_ops *at)
{
	const struct rte_eth_fp_ops *driver = &port->driver;

	*at = (struct rte_eth_fp_ops){
		.rxq = {(void **)port->rx, driver->rxq.clbk},
		.txq = {(void **)port->tx, driver->txq.clbk},
		.rx_pkt_burst = cv_receive,
		.tx_pkt_burst = cv_send,
		.rx_queue_count = driver->rx_queue_count != NULL ? rx_queue_count : NULL,
		.rx_descriptor_status =
			driver->rx_descriptor_status != NULL ? rx_descriptor_status : NULL,
		.tx_descriptor_status =
			driver->tx_descriptor_status != NULL ? tx_descriptor_status : NULL,
		.tx_pkt_prepare = driver->tx_pkt_prepare != NULL ? tx_prepare : NULL,
#ifndef CV_DPDK_NO_RECYCLING
		.tx_queue_count = driver->tx_queue_count != NULL ? tx_queue_count : NULL,
		.recycle_tx_mbufs_reuse = reuse_none,
		.recycle_rx_descriptors_refill = refill_none,
#endif
	};
}

static void hook(uint16_t id)
{
	struct rte_eth_fp_ops *at = &rte_eth_fp_ops[id];
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac = {{0}};
	struct port *port = port_of(id);
	bool made;

	if (id < 64 && !(settings.ports >> id & 1))
		return;
	if (port == NULL || rte_eth_dev_info_get(id, &info) != 0)
		cv_host_refuse(NAME, "port %u: no information about it", id);
	rte_eth_macaddr_get(id, &mac); // all 0 if it has none
	if (!cv_return_name_register())
		fputs("convoy: ethdev: no room in mbufs for where a packet came from: copied "
		      "packets go only to a next hop that is given\n",
			stderr);
	port->driver = *at;
	made = make_buffers(port, id, info.nb_tx_queues);
	for (uint16_t i = 0; made && i < info.nb_rx_queues; i++)
		made = make_rx(port, id, i, &mac, &port->driver);
	port->rx_queues = RTE_MAX(port->rx_queues, info.nb_rx_queues);
	for (uint16_t i = 0; made && i < info.nb_tx_queues; i++)
		made = make_tx(port, id, i, &port->driver);
	if (!made)
		cv_host_refuse(NAME,
			"port %u: no memory for buffers: give the program more (-m, hugepages), or "
			"its queues fewer descriptors",
			id);
	port->tx_queues = RTE_MAX(port->tx_queues, info.nb_tx_queues);
	port->hooked = true;
	put_in_place(port, at);
	cv_report_hooked(id, &info);
	tell_of_copies(port, id, info.nb_rx_queues);
}

EXPORT int rte_eth_dev_start(uint16_t id)
{
	const bool hooked = id < RTE_MAX_ETHPORTS && rte_eth_fp_ops[id].rx_pkt_burst == cv_receive;
	int status = real_start(id);

	// A port that runs already is left as it is.
	if (status == 0 && !(hooked && rte_eth_fp_ops[id].rx_pkt_burst == cv_receive))
		hook(id);
	return status;
}

// The real one takes our functions out. What the queues hold is lost, as what a driver holds is.
EXPORT int rte_eth_dev_stop(uint16_t id)
{
	struct port *port = id < RTE_MAX_ETHPORTS ? ports[id] : NULL;
	int status = real_stop(id);

	for (uint16_t i = 0; port != NULL && i < port->rx_queues; i++)
		cv_receive_clear(&port->rx[i]->queue);
	return status;
}

bool cv_hook_counts(uint16_t id, struct cv_rx_counts *rx, struct cv_tx_counts *tx)
{
	const struct port *port = id < RTE_MAX_ETHPORTS ? ports[id] : NULL;

	memset(rx, 0, sizeof(*rx));
	memset(tx, 0, sizeof(*tx));
	if (port == NULL || !port->hooked)
		return false;
	for (uint16_t i = 0; i < port->rx_queues; i++)
		cv_rx_counts_add(rx, &port->rx[i]->queue.counts);
	for (uint16_t i = 0; i < port->tx_queues; i++)
		cv_tx_counts_add(tx, &port->tx[i]->queue.counts);
	return true;
}
