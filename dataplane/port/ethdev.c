// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/ethdev.h"

#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>

#include "port/packet_pool.h"

#define DESCRIPTORS 1024

static int is_library(struct dl_phdr_info *info, size_t size, void *name)
{
	return strstr(info->dlpi_name, name) != NULL;
}

// True if the library of a driver is in this process: DPDK loads its plug-ins when the EAL starts.
static bool driver_is_loaded(const char *driver)
{
	char library[64];

	// Only virtio's library is not called as its device is.
	snprintf(library, sizeof(library), "librte_%s.so",
		strcmp(driver, "net_virtio_user") == 0 ? "net_virtio" : driver);
	return dl_iterate_phdr(is_library, library) != 0;
}

static int refuse_no_driver(const char *driver, struct cv_error *error)
{
	cv_error_set(error,
		"DPDK's driver %s is not there; install it (Debian: apt-get install "
		"librte-meta-net)",
		driver);
	return -ENODEV;
}

// Finds the device that was just probed.
static int find_device(struct cv_ethdev *dev, struct cv_error *error)
{
	struct rte_dev_iterator iterator;
	char name[sizeof(dev->devargs)];
	uint16_t id;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(dev->devargs, ","), dev->devargs);
	if (rte_eth_dev_get_port_by_name(name, &dev->id) == 0)
		return 0;
	RTE_ETH_FOREACH_MATCHING_DEV(id, dev->devargs, &iterator)
	{
		rte_eth_iterator_cleanup(&iterator);
		dev->id = id;
		return 0;
	}
	cv_error_set(error, "device %s was found, but it is not a network device", name);
	return -ENODEV;
}

int cv_ethdev_check(const struct cv_ethdev *dev, struct cv_error *error)
{
	if (dev->driver != NULL && !driver_is_loaded(dev->driver))
		return refuse_no_driver(dev->driver, error);
	return cv_packet_pool_fits(dev->pool, dev->mtu, error) ? 0 : -EINVAL;
}

static int check_fits(
	const struct cv_ethdev *dev, const struct rte_eth_dev_info *info, struct cv_error *error)
{
	if (dev->mtu > info->max_mtu || dev->mtu < info->min_mtu) {
		cv_error_set(error, "mtu: %u: the device (%s) can do %u to %u", dev->mtu,
			info->driver_name, info->min_mtu, info->max_mtu);
		return -EINVAL;
	}
	if (dev->rx_queues > info->max_rx_queues) {
		cv_error_set(error, "queues: %u: the device (%s) has %u", dev->rx_queues,
			info->driver_name, info->max_rx_queues);
		return -EINVAL;
	}
	return 0;
}

static int configure(struct cv_ethdev *dev, struct cv_error *error)
{
	struct rte_eth_conf conf = {0};
	uint16_t rx_slots = DESCRIPTORS, tx_slots = DESCRIPTORS;
	struct rte_eth_dev_info info;
	int socket = rte_eth_dev_socket_id(dev->id);
	int rc;

	rc = rte_eth_dev_info_get(dev->id, &info);
	if (rc != 0)
		goto fail;
	rc = check_fits(dev, &info, error);
	if (rc != 0)
		return rc;
	dev->tx_queues_there = RTE_MIN(dev->tx_queues, info.max_tx_queues);
	if (dev->set_mtu)
		conf.rxmode.mtu = dev->mtu;
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	conf.intr_conf.lsc = (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
	if (dev->rx_queues > 1 && info.flow_type_rss_offloads != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads &
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP);
	}
	rc = rte_eth_dev_configure(dev->id, dev->rx_queues, dev->tx_queues_there, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(dev->id, &rx_slots, &tx_slots);
	for (uint16_t i = 0; rc == 0 && i < dev->rx_queues; i++)
		rc = rte_eth_rx_queue_setup(dev->id, i, rx_slots, socket, NULL, dev->pool);
	for (uint16_t i = 0; rc == 0 && i < dev->tx_queues_there; i++)
		rc = rte_eth_tx_queue_setup(dev->id, i, tx_slots, socket, NULL);
	if (rc == 0)
		return 0;
fail:
	cv_error_set(error, "the device could not be configured: %s; DPDK's lines above say more",
		rte_strerror(-rc));
	return rc;
}

// A virtual device is made on its bus: rte_dev_probe() takes no more than 127 bytes of arguments, and
// a path alone may have as many.
static int probe(const char *devargs)
{
	const size_t length = strcspn(devargs, ",");
	char name[sizeof(((struct cv_ethdev *)NULL)->devargs)];

	if (strncmp(devargs, "net_", 4) != 0 && strncmp(devargs, "eth_", 4) != 0)
		return rte_dev_probe(devargs);
	snprintf(name, sizeof(name), "%.*s", (int)length, devargs);
	return rte_vdev_init(name, devargs[length] == ',' ? devargs + length + 1 : NULL);
}

int cv_ethdev_attach(struct cv_ethdev *dev, struct cv_error *error)
{
	int rc;

	rc = cv_ethdev_check(dev, error);
	if (rc != 0)
		return rc;
	rc = probe(dev->devargs);
	if (rc != 0) {
		cv_error_set(error,
			"device %s could not be attached: %s; DPDK's lines above say more",
			dev->devargs,
			rc == -EEXIST ? "there is one of that name" : rte_strerror(-rc));
		return rc;
	}
	rc = find_device(dev, error);
	if (rc != 0)
		return rc;
	dev->attached = true;
	rc = configure(dev, error);
	if (rc != 0)
		cv_ethdev_detach(dev);
	return rc;
}

static void note_passed(void *passed)
{
	__atomic_store_n((bool *)passed, true, __ATOMIC_RELEASE);
}

// A driver puts off work of a peer's end to DPDK's interrupt thread (virtio-user: an alarm of 1 us
// that still uses the device). Alarms run in the order of their times: when ours has run, so have
// those before it, and the device may be closed.
static void let_interrupts_end(void)
{
	const uint64_t deadline = rte_rdtsc() + rte_get_tsc_hz(); // were this that thread itself
	static bool passed;

	__atomic_store_n(&passed, false, __ATOMIC_RELEASE);
	if (rte_eal_alarm_set(1000, note_passed, &passed) != 0)
		return;
	// Pairs with the store in note_passed(), on the interrupt thread.
	while (!__atomic_load_n(&passed, __ATOMIC_ACQUIRE) && rte_rdtsc() < deadline)
		sched_yield();
}

void cv_ethdev_detach(struct cv_ethdev *dev)
{
	struct rte_eth_dev_info info;
	bool known;

	if (!dev->attached)
		return;
	dev->attached = false;
	known = rte_eth_dev_info_get(dev->id, &info) == 0;
	rte_eth_dev_stop(dev->id);
	let_interrupts_end();
	rte_eth_dev_close(dev->id);
	if (known && info.device != NULL)
		rte_dev_remove(info.device);
}

int cv_ethdev_start(struct cv_ethdev *dev, struct cv_error *error)
{
	int rc = rte_eth_dev_start(dev->id);

	if (rc != 0) {
		cv_error_set(error,
			"the device could not be started: %s; DPDK's lines above say more",
			rte_strerror(-rc));
		return rc;
	}
	// A chain is between hosts, not one of them. Devices that cannot do it see everything anyway.
	rte_eth_promiscuous_enable(dev->id);
	return 0;
}

void cv_ethdev_mac(const struct cv_ethdev *dev, bool wanted, uint8_t mac[6])
{
	struct rte_ether_addr address;

	if (wanted) {
		memcpy(&address, mac, sizeof(address));
		// A device that cannot change it is promiscuous anyway.
		rte_eth_dev_default_mac_addr_set(dev->id, &address);
	} else if (rte_eth_macaddr_get(dev->id, &address) == 0 &&
		   !rte_is_zero_ether_addr(&address)) {
		memcpy(mac, &address, sizeof(address));
	}
}

json_t *cv_ethdev_info(const struct cv_ethdev *dev)
{
	json_t *object = json_object();
	struct rte_eth_stats stats;
	struct rte_eth_link link;

	if (!dev->attached) {
		json_object_set_new(object, "link", json_string("down"));
		return object;
	}
	if (rte_eth_link_get_nowait(dev->id, &link) == 0)
		json_object_set_new(object, "link",
			json_string(link.link_status == RTE_ETH_LINK_UP ? "up" : "down"));
	if (rte_eth_stats_get(dev->id, &stats) != 0)
		return object;
	json_object_set_new(object, "rx_pkts", json_integer((json_int_t)stats.ipackets));
	json_object_set_new(object, "tx_pkts", json_integer((json_int_t)stats.opackets));
	json_object_set_new(object, "rx_missed_pkts", json_integer((json_int_t)stats.imissed));
	json_object_set_new(object, "rx_errors", json_integer((json_int_t)stats.ierrors));
	json_object_set_new(object, "tx_errors", json_integer((json_int_t)stats.oerrors));
	json_object_set_new(object, "rx_no_buffer", json_integer((json_int_t)stats.rx_nombuf));
	return object;
}
