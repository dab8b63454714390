// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What DPDK's own libraries do between threads, told to ThreadSanitizer: Debian's are not
// instrumented, and what happens in them would be missing between a thread that gives something and
// the one that gets it. This library stands between a program and DPDK; it adds nothing that is not
// so. Linked in builds with -Db_sanitize=thread only.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/tsan_interface.h>

#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mempool.h>
#include <rte_ring.h>

// Calls DPDK's function of the name of the one that this is in.
#define REAL(function) ((__typeof__(&function))real(#function))

static void *real(const char *name)
{
	void *at = dlsym(RTLD_NEXT, name);

	if (at == NULL)
		abort();
	return at;
}

// A pool's ring: who takes a buffer from it comes after who put it there.

static rte_mempool_enqueue_t pool_enqueue[RTE_MEMPOOL_MAX_OPS_IDX];
static rte_mempool_dequeue_t pool_dequeue[RTE_MEMPOOL_MAX_OPS_IDX];

static int enqueue(struct rte_mempool *pool, void *const *objects, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		__tsan_release(objects[i]);
	return pool_enqueue[pool->ops_index](pool, objects, n);
}

static int dequeue(struct rte_mempool *pool, void **objects, unsigned n)
{
	const int rc = pool_dequeue[pool->ops_index](pool, objects, n);

	for (unsigned i = 0; rc == 0 && i < n; i++)
		__tsan_acquire(objects[i]);
	return rc;
}

int rte_mempool_set_ops_byname(struct rte_mempool *pool, const char *name, void *config)
{
	const int rc = REAL(rte_mempool_set_ops_byname)(pool, name, config);
	struct rte_mempool_ops *ops = &rte_mempool_ops_table.ops[pool->ops_index];

	if (rc != 0 || ops->enqueue == enqueue)
		return rc;
	pool_enqueue[pool->ops_index] = ops->enqueue;
	pool_dequeue[pool->ops_index] = ops->dequeue;
	ops->enqueue = enqueue;
	ops->dequeue = dequeue;
	return 0;
}

// The heap has a lock.

static char heap;

void *rte_malloc_socket(const char *type, size_t size, unsigned align, int socket)
{
	void *memory = REAL(rte_malloc_socket)(type, size, align, socket);

	__tsan_acquire(&heap);
	return memory;
}

void *rte_malloc(const char *type, size_t size, unsigned align)
{
	return rte_malloc_socket(type, size, align, SOCKET_ID_ANY);
}

void *rte_zmalloc_socket(const char *type, size_t size, unsigned align, int socket)
{
	void *memory = REAL(rte_zmalloc_socket)(type, size, align, socket);

	__tsan_acquire(&heap);
	return memory;
}

void *rte_zmalloc(const char *type, size_t size, unsigned align)
{
	return rte_zmalloc_socket(type, size, align, SOCKET_ID_ANY);
}

void *rte_calloc(const char *type, size_t n, size_t size, unsigned align)
{
	return rte_zmalloc_socket(type, n * size, align, SOCKET_ID_ANY);
}

void rte_free(void *memory)
{
	__tsan_release(&heap);
	REAL(rte_free)(memory);
}

// A port of net_ring: who receives a packet comes after who put it into the ring, and the other way
// round. A queue of the driver begins with its ring.

static eth_rx_burst_t ring_rx;
static eth_tx_burst_t ring_tx;

static uint16_t rx_of_ring(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint16_t got = ring_rx(queue, mbufs, n);

	__tsan_acquire((void *)&(*(struct rte_ring **)queue)->prod.tail);
	return got;
}

static uint16_t tx_to_ring(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	__tsan_release((void *)&(*(struct rte_ring **)queue)->prod.tail);
	return ring_tx(queue, mbufs, n);
}

int rte_eth_dev_start(uint16_t port)
{
	const int rc = REAL(rte_eth_dev_start)(port);
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port];
	struct rte_eth_dev_info info;

	if (rc != 0 || rte_eth_dev_info_get(port, &info) != 0 ||
		strcmp(info.driver_name, "net_ring") != 0)
		return rc;
	if (ring_rx == NULL) { // all its ports have the same
		ring_rx = ops->rx_pkt_burst;
		ring_tx = ops->tx_pkt_burst;
	}
	if (ops->rx_pkt_burst != ring_rx) // it runs already
		return 0;
	ops->rx_pkt_burst = rx_of_ring;
	ops->tx_pkt_burst = tx_to_ring;
	return 0;
}

// Who sees that a worker has ended comes after all that it did. (That it comes after who launched it
// is seen: there is a pipe between them.)

static struct launched {
	lcore_function_t *run;
	void *argument;
} launched[RTE_MAX_LCORE];

static int run(void *argument)
{
	struct launched *one = argument;
	const int rc = one->run(one->argument);

	__tsan_release(one);
	return rc;
}

int rte_eal_remote_launch(lcore_function_t *function, void *argument, unsigned lcore)
{
	launched[lcore] = (struct launched){function, argument};
	return REAL(rte_eal_remote_launch)(run, &launched[lcore], lcore);
}

int rte_eal_wait_lcore(unsigned lcore)
{
	const int rc = REAL(rte_eal_wait_lcore)(lcore);

	__tsan_acquire(&launched[lcore]);
	return rc;
}

enum rte_lcore_state_t rte_eal_get_lcore_state(unsigned lcore)
{
	const enum rte_lcore_state_t state = REAL(rte_eal_get_lcore_state)(lcore);

	if (state == WAIT)
		__tsan_acquire(&launched[lcore]);
	return state;
}
