// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "shared/member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "socket/receive.h"

#define RETRY_MS 50
#define RELEASE_MS 10
#define MBUF_BYTES (RTE_CACHE_LINE_SIZE + sizeof(struct rte_mbuf)) // with the mempool's header
#define FREE 64 // buffers at a time

#define OF(pointer, member)                                              \
	((struct cv_shared_member *)(void *)((char *)(pointer)-offsetof( \
		struct cv_shared_member, member)))

struct cv_shared_member {
	struct cv_endpoint endpoint;
	struct cv_loop_watch watch; // of the owner's socket
	struct cv_loop_timer release;
	unsigned users; // ports
	struct cv_shared_port *ports[CV_SHARED_LINKS];
	char last_refusal[128]; // reported once
	bool welcome; // the memory is there
	struct cv_shared_layout layout;
	struct cv_shared_memory memory;
	struct cv_shared_buffers buffers;
	void *mbufs; // mapped
	size_t mbufs_bytes;
	struct cv_shared_queue returns,
		supply; // the locks are of whoever frees, and makes, packets
	struct cv_shared_member *next;
};

// The members of this process; by its main thread.
static struct cv_shared_member *members;

// The mempool of a member's mbufs, as the mempool library calls it.

static int ops_alloc(struct rte_mempool *pool)
{
	(void)pool;
	return 0;
}

static void ops_free(struct rte_mempool *pool)
{
	(void)pool;
}

static void give_back(struct cv_shared_member *member, struct rte_mbuf *const *mbufs, unsigned n)
{
	struct cv_shared_queue *returns = &member->returns;
	uint32_t numbers[FREE];

	for (unsigned i = 0; i < n; i++)
		numbers[i] = cv_shared_number(&member->buffers, mbufs[i]);

	// It holds all buffers there are; if not, the owner is not in its senses.
	if (returns->access.ready && !returns->broken && cv_shared_free_slots(returns, n) >= n) {
		cv_shared_put(returns, mbufs, numbers, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		__atomic_store_n(&member->buffers.marks[numbers[i]], 0, __ATOMIC_RELAXED);
}

static int ops_enqueue(struct rte_mempool *pool, void *const *objects, unsigned n)
{
	struct cv_shared_member *member = pool->pool_config;
	struct rte_mbuf *mbufs[FREE];

	if (member->buffers.pool == NULL)
		return 0; // it is being made
	rte_spinlock_lock(&member->returns.access.lock);
	for (unsigned done = 0; done < n;) {
		unsigned count = 0;

		for (; done < n && count < FREE; done++) {
			mbufs[count] = objects[done];
			cv_mbuf_set(mbufs[count++], RTE_PKTMBUF_HEADROOM, CV_SHARED_PACKET_MIN);
		}
		give_back(member, mbufs, count);
	}
	rte_spinlock_unlock(&member->returns.access.lock);
	return 0;
}

static int ops_dequeue(struct rte_mempool *pool, void **objects, unsigned n)
{
	(void)pool;
	(void)objects;
	(void)n;
	return -ENOBUFS;
}

static unsigned ops_count(const struct rte_mempool *pool)
{
	(void)pool;
	return 0;
}

static const struct rte_mempool_ops ops = {
	.name = "convoy_shared",
	.alloc = ops_alloc,
	.free = ops_free,
	.enqueue = ops_enqueue,
	.dequeue = ops_dequeue,
	.get_count = ops_count,
};

RTE_MEMPOOL_REGISTER_OPS(ops);

static void make_mbuf(struct rte_mempool *pool, void *own, void *object, unsigned number)
{
	struct cv_shared_member *member = own;
	struct rte_mbuf *mbuf = object;

	memset(mbuf, 0, sizeof(*mbuf));
	mbuf->buf_addr = member->buffers.data + (uint64_t)number * member->buffers.data_stride;
	rte_mbuf_iova_set(mbuf, (rte_iova_t)(uintptr_t)mbuf->buf_addr);
	mbuf->buf_len = (uint16_t)member->buffers.room;
	mbuf->pool = pool;
	cv_mbuf_set(mbuf, RTE_PKTMBUF_HEADROOM, 0);
	// One behind the other, as they are counted.
	if (object != (void *)cv_shared_mbuf(&member->buffers, number))
		member->buffers.count = 0;
}

// Makes an mbuf for each of the owner's buffers. False: there is no memory.
static bool make_mbufs(struct cv_shared_member *member)
{
	const struct cv_shared_layout *layout = &member->layout;
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = (uint16_t)layout->room};
	const size_t bytes = (size_t)layout->buffers * MBUF_BYTES;
	char name[RTE_MEMPOOL_NAMESIZE];
	static unsigned made;
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "shared%u", made++);
	member->mbufs = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (member->mbufs == MAP_FAILED) {
		member->mbufs = NULL;
		return false;
	}
	member->mbufs_bytes = bytes;
	pool = rte_mempool_create_empty(name, layout->buffers, sizeof(struct rte_mbuf), 0,
		sizeof(private), SOCKET_ID_ANY,
		RTE_MEMPOOL_F_NO_IOVA_CONTIG | RTE_MEMPOOL_F_NO_SPREAD);
	if (pool == NULL)
		return false;
	rte_pktmbuf_pool_init(pool, &private);
	member->buffers =
		(struct cv_shared_buffers){.mbufs = (uint8_t *)member->mbufs + pool->header_size,
			.data = member->memory.data + layout->data + layout->first,
			.mbuf_stride = MBUF_BYTES,
			.data_stride = layout->stride,
			.count = layout->buffers,
			.room = layout->room,
			.reciprocal = cv_shared_reciprocal(MBUF_BYTES)};
	if (rte_mempool_set_ops_byname(pool, ops.name, member) == 0 &&
		rte_mempool_populate_iova(pool, member->mbufs, (rte_iova_t)(uintptr_t)member->mbufs,
			bytes, NULL, NULL) == (int)layout->buffers)
		rte_mempool_obj_iter(pool, make_mbuf, member);
	else
		member->buffers.count = 0;
	if (member->buffers.count == 0) {
		rte_mempool_free(pool);
		return false;
	}
	member->buffers.pool = pool;
	return true;
}

// No packet lies in it any more.
static void forget_memory(struct cv_shared_member *member)
{
	cv_shared_revoke(&member->returns);
	rte_mempool_free(member->buffers.pool);
	if (member->mbufs != NULL)
		munmap(member->mbufs, member->mbufs_bytes);
	member->mbufs = NULL;
	member->buffers = (struct cv_shared_buffers){0};
	cv_shared_memory_unmap(&member->memory);
	member->welcome = false;
}

// Buffers of the owner's that packets here lie in.
static bool has_buffers(const struct cv_shared_member *member)
{
	for (uint32_t i = 0; i < member->buffers.count; i++)
		if (__atomic_load_n(&member->buffers.marks[i], __ATOMIC_RELAXED) != 0)
			return true;
	return false;
}

static void stop_all(struct cv_shared_member *member)
{
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++)
		if (member->ports[i] != NULL)
			cv_shared_port_down(member->ports[i]);
	cv_shared_revoke(&member->supply);
}

static void release(struct cv_loop_timer *timer)
{
	struct cv_shared_member *member = OF(timer, release);

	if (member->welcome && has_buffers(member)) {
		cv_loop_timer_set(timer, RELEASE_MS);
		return;
	}
	if (member->welcome)
		forget_memory(member);
	cv_endpoint_drop(&member->endpoint); // not before: the owner then takes everything back
}

// The owner is gone, or we go from him.
static void hang_up(struct cv_shared_member *member)
{
	cv_loop_unwatch(&member->watch);
	member->watch.fd = -1;
	stop_all(member);
	release(&member->release);
}

static void refused(struct cv_shared_member *member, const char *why)
{
	// It comes again and again.
	if (strncmp(member->last_refusal, why, sizeof(member->last_refusal) - 1) == 0)
		return;
	snprintf(member->last_refusal, sizeof(member->last_refusal), "%.*s",
		(int)sizeof(member->last_refusal) - 1, why);
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++) {
		if (member->ports[i] == NULL)
			continue;
		member->ports[i]->refused(member->ports[i]->context, why);
		return;
	}
}

static int join(struct cv_shared_member *member, const struct cv_shared_port *port)
{
	struct cv_shared_message message = {.type = CV_SHARED_JOIN};

	memcpy(message.named.name, port->link, sizeof(port->link));
	return cv_socket_send(member->watch.fd, &message, sizeof(message));
}

static int take_memory(struct cv_shared_member *member, const struct cv_shared_message *message,
	int fd, struct cv_error *error)
{
	const unsigned number = message->welcome.member;
	int rc = 0;

	member->layout = (struct cv_shared_layout){.buffers = message->welcome.buffers,
		.stride = message->welcome.stride,
		.first = message->welcome.first,
		.room = message->welcome.room};
	if (!cv_shared_layout_make(&member->layout))
		return -EPROTO;
	rc = cv_shared_memory_map(&member->memory, fd, 0, member->layout.size, error);
	if (rc != 0)
		return rc;
	if (!make_mbufs(member)) {
		forget_memory(member);
		cv_error_set(error, "no memory for %u mbufs", member->layout.buffers);
		return -ENOMEM;
	}
	member->buffers.marks = cv_shared_marks(&member->layout, member->memory.data, number);
	member->welcome = true;
	cv_shared_grant(&member->returns,
		cv_shared_returns(&member->layout, member->memory.data, number),
		member->layout.return_slots, &member->buffers);
	cv_shared_grant(&member->supply,
		cv_shared_supply(&member->layout, member->memory.data, number), CV_SHARED_SLOTS,
		&member->buffers);
	for (unsigned i = 0; rc == 0 && i < CV_SHARED_LINKS; i++)
		if (member->ports[i] != NULL)
			rc = join(member, member->ports[i]);
	return rc;
}

static int link_up(struct cv_shared_member *member, const struct cv_shared_message *message)
{
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++) {
		struct cv_shared_port *port = member->ports[i];

		if (port == NULL || strcmp(port->link, message->named.name) != 0 ||
			cv_shared_is_up(port))
			continue;
		member->last_refusal[0] = '\0';
		cv_shared_port_up(port, &member->layout, member->memory.data, &member->buffers,
			message->link, message->named.side);
		return 0;
	}
	return 0; // its port was closed meanwhile
}

static int link_down(struct cv_shared_member *member, uint32_t link)
{
	const struct cv_shared_message stopped = {.type = CV_SHARED_STOPPED, .link = link};

	for (unsigned i = 0; i < CV_SHARED_LINKS; i++)
		if (member->ports[i] != NULL && cv_shared_is_up(member->ports[i]) &&
			member->ports[i]->number == link)
			cv_shared_port_down(member->ports[i]);
	return cv_socket_send(member->watch.fd, &stopped, sizeof(stopped));
}

static int handle(struct cv_shared_member *member, const struct cv_shared_message *message,
	struct cv_socket_fds *fds, struct cv_error *error)
{
	switch (message->type) {
	case CV_SHARED_WELCOME:
		return member->welcome ? -EPROTO : take_memory(member, message, fds->fds[0], error);
	case CV_SHARED_UP:
		return member->welcome ? link_up(member, message) : -EPROTO;
	case CV_SHARED_DOWN:
		return member->welcome ? link_down(member, message->link) : -EPROTO;
	case CV_SHARED_REFUSED:
		cv_error_set(error, "%s", message->why);
		return -ECONNREFUSED;
	default:
		return -EPROTO;
	}
}

static void message_came(struct cv_loop_watch *watch, uint32_t events)
{
	struct cv_shared_member *member = OF(watch, watch);
	struct cv_socket_fds fds = {0};
	struct cv_error error = {""};
	union {
		struct cv_shared_message message;
		uint8_t bytes[CV_SHARED_MESSAGE_BYTES + 1]; // one too many would be seen
	} got = {0};
	int rc = cv_socket_receive(watch->fd, &got, sizeof(got), &fds);

	(void)events;
	if (rc == -EAGAIN)
		return;
	if (rc > 0)
		rc = cv_shared_message_check(&got.message, rc, fds.count, &error);
	else if (rc == 0)
		rc = -ECONNRESET;
	if (rc == 0)
		rc = handle(member, &got.message, &fds, &error);
	cv_socket_fds_close(&fds);
	if (rc == 0)
		return;
	if (rc == -EPROTO && error.text[0] == '\0')
		cv_error_set(&error, "a message that is not due");
	if (error.text[0] != '\0')
		refused(member, error.text);
	hang_up(member);
}

static int connected(struct cv_endpoint *endpoint, int fd)
{
	const struct cv_shared_message hello = {
		.type = CV_SHARED_HELLO, .hello = {CV_SHARED_VERSION}};
	struct cv_shared_member *member = OF(endpoint, endpoint);
	const int rc = cv_socket_send(fd, &hello, sizeof(hello));

	if (rc != 0)
		return rc;
	member->watch = (struct cv_loop_watch){fd, message_came};
	return cv_loop_watch(&member->watch, EPOLLIN);
}

static void gone(struct cv_endpoint *endpoint)
{
	struct cv_shared_member *member = OF(endpoint, endpoint);

	if (member->watch.fd >= 0)
		cv_loop_unwatch(&member->watch);
	member->watch.fd = -1;
	cv_loop_timer_stop(&member->release);
}

struct call {
	struct cv_shared_member *member;
	struct cv_shared_port *port;
	int rc;
};

static void begin(void *argument)
{
	struct call *call = argument;
	struct cv_shared_member *member = call->member;
	unsigned i = 0;

	while (i < CV_SHARED_LINKS && member->ports[i] != NULL)
		i++;
	call->rc = i < CV_SHARED_LINKS ? 0 : -ENOSPC;
	if (i == CV_SHARED_LINKS)
		return;
	member->ports[i] = call->port;
	if (member->welcome && member->watch.fd >= 0 && join(member, call->port) != 0)
		hang_up(member);
}

static void end(void *argument)
{
	struct call *call = argument;
	struct cv_shared_member *member = call->member;

	cv_shared_port_down(call->port);
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++)
		if (member->ports[i] == call->port)
			member->ports[i] = NULL;
	if (member->users > 0)
		return;
	if (member->watch.fd >= 0)
		cv_loop_unwatch(&member->watch);
	member->watch.fd = -1;
	cv_loop_timer_stop(&member->release);
	stop_all(member);
	if (member->welcome)
		forget_memory(member);
}

static void close_member(struct cv_shared_member *member, struct cv_shared_port *port)
{
	struct call call = {member, port, 0};

	member->users--;
	cv_loop_run(end, &call);
	if (member->users == 0) {
		struct cv_shared_member **at = &members;

		while (*at != member)
			at = &(*at)->next;
		*at = member->next;
		// Not before the memory is forgotten: the owner then takes everything back.
		cv_endpoint_close(&member->endpoint);
		free(member);
	}
	cv_loop_release();
}

static struct cv_shared_member *make(const char *path, struct cv_error *error)
{
	struct cv_shared_member *member = aligned_alloc(64, RTE_ALIGN(sizeof(*member), 64));

	if (member == NULL)
		return NULL;
	memset(member, 0, sizeof(*member));
	snprintf(member->endpoint.path, sizeof(member->endpoint.path), "%s", path);
	member->endpoint.client = true;
	member->endpoint.type = SOCK_SEQPACKET;
	member->endpoint.retry_ms = RETRY_MS;
	member->endpoint.connected = connected;
	member->endpoint.gone = gone;
	member->watch.fd = -1;
	member->release.due = release;
	if (cv_endpoint_open(&member->endpoint, error) == 0)
		return member;
	free(member);
	return NULL;
}

int cv_shared_member_open(struct cv_shared_member **result, const char *path,
	struct cv_shared_port *port, struct cv_error *error)
{
	struct cv_shared_member *member = members;
	struct call call;
	int rc = cv_loop_hold(error);

	if (rc != 0)
		return rc;
	while (member != NULL && strcmp(member->endpoint.path, path) != 0)
		member = member->next;
	if (member == NULL) {
		member = make(path, error);
		if (member == NULL) {
			cv_loop_release();
			return -ENOMEM;
		}
		member->next = members;
		members = member;
	}
	member->users++;
	call = (struct call){member, port, 0};
	cv_loop_run(begin, &call);
	*result = member;
	if (call.rc == 0)
		return 0;
	cv_error_set(error, "path: %s: more than %d links", path, CV_SHARED_LINKS);
	close_member(member, port);
	return call.rc;
}

void cv_shared_member_close(struct cv_shared_member *member, struct cv_shared_port *port)
{
	close_member(member, port);
}

struct rte_mbuf *cv_shared_member_buffer(struct cv_shared_member *member)
{
	struct rte_mbuf *mbuf = NULL;

	if (!cv_revocable_enter(&member->supply.access))
		return NULL;
	if (member->supply.broken || cv_shared_take(&member->supply, &mbuf, 1) == 0)
		mbuf = NULL;
	cv_revocable_leave(&member->supply.access);
	return mbuf;
}
