// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// DPDK 22.11 with the names of 24.11.
#ifndef CV_DPDK_22_11_COMPAT_H
#define CV_DPDK_22_11_COMPAT_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <rte_lcore.h>
#include <rte_lpm6.h>
#include <rte_telemetry.h>
#include <rte_thread.h>

#define CV_DPDK_VHOST_THREAD "vhost-events"

// Members that are not there: rte_eth_fp_ops has no recycle_rx_descriptors_refill,
// recycle_tx_mbufs_reuse, tx_queue_count; rte_vhost_device_ops has no guest_notify.
#define CV_DPDK_NO_RECYCLING
#define CV_DPDK_NO_GUEST_NOTIFY

struct rte_ipv6_addr {
	uint8_t a[RTE_LPM6_IPV6_ADDR_SIZE];
};

static inline int cv_22_11_lpm6_add(struct rte_lpm6 *lpm, const struct rte_ipv6_addr *address,
	uint8_t length, uint32_t next_hop)
{
	return rte_lpm6_add(lpm, address->a, length, next_hop);
}
#define rte_lpm6_add cv_22_11_lpm6_add

static inline int cv_22_11_lpm6_delete(
	struct rte_lpm6 *lpm, const struct rte_ipv6_addr *address, uint8_t length)
{
	return rte_lpm6_delete(lpm, address->a, length);
}
#define rte_lpm6_delete cv_22_11_lpm6_delete

static inline int cv_22_11_lpm6_is_rule_present(struct rte_lpm6 *lpm,
	const struct rte_ipv6_addr *address, uint8_t length, uint32_t *next_hop)
{
	return rte_lpm6_is_rule_present(lpm, address->a, length, next_hop);
}
#define rte_lpm6_is_rule_present cv_22_11_lpm6_is_rule_present

static inline int cv_22_11_lpm6_lookup_bulk(
	const struct rte_lpm6 *lpm, struct rte_ipv6_addr *addresses, int32_t *next_hops, unsigned n)
{
	return rte_lpm6_lookup_bulk_func(
		lpm, (uint8_t(*)[RTE_LPM6_IPV6_ADDR_SIZE])addresses, next_hops, n);
}
#define rte_lpm6_lookup_bulk_func cv_22_11_lpm6_lookup_bulk

static inline int rte_tel_data_add_dict_uint(
	struct rte_tel_data *data, const char *name, uint64_t value)
{
	return rte_tel_data_add_dict_u64(data, name, value);
}

// rte_ctrl_thread_create() wants a function that returns a pointer.
struct cv_22_11_thread {
	rte_thread_func function;
	void *argument;
};

static inline void *cv_22_11_thread_run(void *argument)
{
	struct cv_22_11_thread thread = *(struct cv_22_11_thread *)argument;

	free(argument);
	return (void *)(uintptr_t)thread.function(thread.argument);
}

static inline int rte_thread_create_control(
	rte_thread_t *id, const char *name, rte_thread_func function, void *argument)
{
	struct cv_22_11_thread *thread = malloc(sizeof(*thread));
	pthread_t posix;
	int rc;

	if (thread == NULL)
		return -ENOMEM;
	*thread = (struct cv_22_11_thread){function, argument};
	rc = rte_ctrl_thread_create(&posix, name, NULL, cv_22_11_thread_run, thread);
	if (rc == 0)
		id->opaque_id = (uintptr_t)posix;
	else
		free(thread);
	return rc;
}

#endif
