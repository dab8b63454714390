// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "shared/owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket/receive.h"

#define BACKLOG 8
#define ACCEPT_MS 100 // when none can be taken, for want of descriptors
#define SERVE 64 // buffers of a member at a time
#define SUPPLY 512 // that a member has to make packets of
#define SERVE_MS 10 // where nobody polls
#define SERVE_MOST 64 // times; of 256 buffers of each member
#define OWN_BUFFERS 8191
#define OWN_CACHE 256

#define OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

// The owners of this process; by its main thread.
static struct cv_shared_owner *owners;

static int number_of(const struct cv_shared_one *one)
{
	return (int)(one - one->owner->members);
}

static void refuse(struct cv_shared_one *one, const char *why)
{
	struct cv_shared_message message = {.type = CV_SHARED_REFUSED};
	struct cv_shared_port *port = one->owner->first;

	if (one->refused)
		return;
	one->refused = true;
	snprintf(message.why, sizeof(message.why), "%s", why);
	cv_socket_send(one->watch.fd, &message, sizeof(message));
	// It hangs up once it uses nothing of the pool any more.
	shutdown(one->watch.fd, SHUT_WR);
	port->refused(port->context, why);
}

static void send_to(struct cv_shared_one *one, const struct cv_shared_message *message)
{
	if (!one->refused && cv_socket_send(one->watch.fd, message, sizeof(*message)) != 0)
		refuse(one, "it does not read what it is told");
}

static bool is_complete(const struct cv_shared_joined *link)
{
	return link->seats[0] != CV_SHARED_NOBODY && link->seats[1] != CV_SHARED_NOBODY;
}

static void clear_ring(struct cv_shared_ring *ring)
{
	__atomic_store_n(&ring->tail, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->upto, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->head, 0, __ATOMIC_RELAXED);
}

// Both ends are there and neither uses it: they may.
static void link_up(struct cv_shared_owner *owner, struct cv_shared_joined *link)
{
	const uint32_t number = (uint32_t)(link - owner->links);
	const struct cv_shared_layout *layout = &owner->pool->layout;

	for (unsigned side = 0; side < 2; side++)
		clear_ring(cv_shared_link(layout, owner->pool->base, number, side));
	link->up = link->used = true;
	for (unsigned side = 0; side < 2; side++) {
		struct cv_shared_message message = {.type = CV_SHARED_UP, .link = number};

		memcpy(message.named.name, link->name, sizeof(link->name));
		message.named.side = side;
		if (link->seats[side] == CV_SHARED_HERE)
			cv_shared_port_up(link->ports[side], layout, owner->pool->base,
				&owner->pool->buffers, number, side);
		else
			send_to(&owner->members[link->seats[side]], &message);
	}
}

// One end is gone: the other stops. What the rings hold is taken back once it has.
static void leave(struct cv_shared_owner *owner, struct cv_shared_joined *link, unsigned side)
{
	const int other = link->seats[!side];
	const struct cv_shared_message down = {
		.type = CV_SHARED_DOWN, .link = (uint32_t)(link - owner->links)};

	link->seats[side] = CV_SHARED_NOBODY;
	link->ports[side] = NULL;
	link->stops[side] = false;
	if (link->up && other == CV_SHARED_HERE) {
		cv_shared_port_down(link->ports[!side]);
	} else if (link->up && other >= 0) {
		link->stops[!side] = true;
		send_to(&owner->members[other], &down);
	}
	link->up = false;
}

static bool somebody_is_to_stop(const struct cv_shared_owner *owner)
{
	bool stops = false;

	for (unsigned i = 0; i < CV_SHARED_LINKS; i++)
		stops |= owner->links[i].stops[0] || owner->links[i].stops[1];
	return stops;
}

// Notes what lies in a ring whose two ends are used by nobody.
static void note_ring(
	struct cv_shared_owner *owner, const struct cv_shared_ring *ring, uint32_t slots)
{
	const uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	const uint32_t upto = __atomic_load_n(&ring->upto, __ATOMIC_ACQUIRE);
	const uint32_t count = upto - head;

	for (uint32_t i = 0; count <= slots && i < count; i++) {
		const uint32_t number = (uint32_t)__atomic_load_n(
			&ring->slots[(head + i) & (slots - 1)], __ATOMIC_RELAXED);

		if (number < owner->pool->layout.buffers)
			owner->lost[number] = 1;
	}
}

static void note_member(struct cv_shared_owner *owner, unsigned number)
{
	const struct cv_shared_layout *layout = &owner->pool->layout;
	const uint8_t *marks = cv_shared_marks(layout, owner->pool->base, number);
	struct cv_shared_ring *returns = cv_shared_returns(layout, owner->pool->base, number);
	struct cv_shared_ring *supply = cv_shared_supply(layout, owner->pool->base, number);

	for (uint32_t i = 0; i < layout->buffers; i++)
		owner->lost[i] |= __atomic_load_n(&marks[i], __ATOMIC_RELAXED) != 0;
	note_ring(owner, returns, layout->return_slots);
	note_ring(owner, supply, CV_SHARED_SLOTS);
}

static bool has_members(const struct cv_shared_owner *owner)
{
	bool has = false;

	for (unsigned i = 0; i < CV_SHARED_MEMBERS; i++)
		has |= owner->members[i].watch.fd >= 0;
	return has;
}

static bool take_back(struct cv_shared_owner *owner, uint32_t number)
{
	const struct cv_shared_buffers *buffers = &owner->pool->buffers;
	struct rte_mbuf *mbuf = cv_shared_mbuf(buffers, number);

	if (__atomic_load_n(&buffers->marks[number], __ATOMIC_RELAXED) != 0)
		return false;
	__atomic_store_n(&buffers->marks[number], 1, __ATOMIC_RELAXED);
	cv_mbuf_set(mbuf, RTE_PKTMBUF_HEADROOM, 0);
	rte_mempool_put(buffers->pool, mbuf);
	return true;
}

// Takes back what those had that are gone, all at once: a buffer may be in several of their places.
// Nobody uses their rings and marks any more.
static void recover(struct cv_shared_owner *owner)
{
	const uint32_t count = owner->pool->layout.buffers;
	bool alone = true;

	memset(owner->lost, 0, count);
	for (unsigned i = 0; i < CV_SHARED_MEMBERS; i++) {
		struct cv_shared_one *one = &owner->members[i];

		if (!one->gone)
			continue;
		note_member(owner, i);
		memset(cv_shared_marks(&owner->pool->layout, owner->pool->base, i), 0, count);
		one->gone = false;
	}
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++) {
		struct cv_shared_joined *link = &owner->links[i];

		for (unsigned side = 0; link->used && !link->up && side < 2; side++)
			note_ring(owner,
				cv_shared_link(&owner->pool->layout, owner->pool->base, i, side),
				CV_SHARED_SLOTS);
		link->used = link->up;
		alone &= !link->up;
	}
	for (uint32_t i = 0; i < count; i++)
		if (owner->lost[i] != 0)
			__atomic_fetch_add(
				&owner->recovered, take_back(owner, i), __ATOMIC_RELAXED);
	// What a member lost that wrote garbage.
	for (uint32_t i = 0; alone && !has_members(owner) && i < count; i++)
		if (take_back(owner, i)) {
			__atomic_fetch_add(&owner->recovered, 1, __ATOMIC_RELAXED);
			__atomic_fetch_add(&owner->strays, 1, __ATOMIC_RELAXED);
		}
}

// After anybody has come, gone or stopped.
static void settle(struct cv_shared_owner *owner)
{
	bool due = false;

	if (somebody_is_to_stop(owner))
		return;
	for (unsigned i = 0; i < CV_SHARED_MEMBERS; i++)
		due |= owner->members[i].gone;
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++)
		due |= owner->links[i].used && !owner->links[i].up;
	if (due)
		recover(owner);
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++) {
		struct cv_shared_joined *link = &owner->links[i];

		if (!link->up && is_complete(link))
			link_up(owner, link);
		else if (link->seats[0] == CV_SHARED_NOBODY && link->seats[1] == CV_SHARED_NOBODY)
			link->name[0] = '\0';
	}
}

static struct cv_shared_joined *find_link(struct cv_shared_owner *owner, const char *name)
{
	struct cv_shared_joined *spare = NULL;

	for (unsigned i = 0; i < CV_SHARED_LINKS; i++) {
		struct cv_shared_joined *link = &owner->links[i];

		if (strcmp(link->name, name) == 0)
			return link;
		// One whose rings still hold something is not made another one.
		if (spare == NULL && link->name[0] == '\0' && !link->used)
			spare = link;
	}
	return spare;
}

// NULL: done; else why not.
static const char *take_seat(
	struct cv_shared_owner *owner, const char *name, int who, struct cv_shared_port *port)
{
	struct cv_shared_joined *link = find_link(owner, name);
	unsigned side;

	if (link == NULL)
		return "there are 64 links already";
	if (link->name[0] == '\0')
		*link = (struct cv_shared_joined){.seats = {CV_SHARED_NOBODY, CV_SHARED_NOBODY}};
	side = link->seats[0] != CV_SHARED_NOBODY;
	if (link->seats[side] != CV_SHARED_NOBODY)
		return "the link has two ends already";
	snprintf(link->name, sizeof(link->name), "%s", name);
	link->seats[side] = who;
	link->ports[side] = port;
	settle(owner);
	return NULL;
}

static void member_gone(struct cv_shared_one *one)
{
	struct cv_shared_owner *owner = one->owner;
	const int number = number_of(one);

	cv_loop_unwatch(&one->watch);
	close(one->watch.fd);
	one->watch.fd = -1;
	__atomic_fetch_and(&owner->there, ~(1u << number), __ATOMIC_RELAXED);
	cv_shared_revoke(&one->returns);
	cv_shared_revoke(&one->supply);
	one->gone = one->welcome;
	one->welcome = one->refused = false;
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++)
		for (unsigned side = 0; side < 2; side++)
			if (owner->links[i].seats[side] == number)
				leave(owner, &owner->links[i], side);
	settle(owner);
}

static void take_returns(struct cv_shared_one *one, struct rte_mempool *pool)
{
	struct rte_mbuf *mbufs[SERVE];
	uint16_t n;

	// A member does not decide how long this takes.
	for (unsigned i = 0; i < 4; i++) {
		n = cv_shared_take(&one->returns, mbufs, SERVE);
		rte_mempool_put_bulk(pool, (void **)mbufs, n);
		if (n < SERVE)
			break;
	}
}

static void give_supply(struct cv_shared_one *one, struct rte_mempool *pool)
{
	const struct cv_shared_owner *owner = one->owner;
	struct rte_mbuf *mbufs[SERVE];
	uint32_t numbers[SERVE];

	if (cv_shared_free_slots(&one->supply, CV_SHARED_SLOTS - SUPPLY + SERVE) <
			CV_SHARED_SLOTS - SUPPLY + SERVE ||
		rte_mempool_get_bulk(pool, (void **)mbufs, SERVE) != 0)
		return;
	for (unsigned i = 0; i < SERVE; i++) {
		cv_mbuf_set(mbufs[i], RTE_PKTMBUF_HEADROOM, CV_SHARED_PACKET_MIN);
		numbers[i] = cv_shared_number(&owner->pool->buffers, mbufs[i]);
	}
	cv_shared_put(&one->supply, mbufs, numbers, SERVE);
}

static void serve(struct cv_shared_owner *owner)
{
	const uint32_t there = __atomic_load_n(&owner->there, __ATOMIC_RELAXED);
	struct rte_mempool *const pool = owner->pool->buffers.pool;

	for (uint32_t left = there; left != 0; left &= left - 1) {
		struct cv_shared_one *one = &owner->members[__builtin_ctz(left)];

		// One worker is enough.
		if (!rte_spinlock_trylock(&one->returns.access.lock))
			continue;
		if (one->returns.access.ready && !one->returns.broken)
			take_returns(one, pool);
		rte_spinlock_unlock(&one->returns.access.lock);
		if (!rte_spinlock_trylock(&one->supply.access.lock))
			continue;
		if (one->supply.access.ready && !one->supply.broken)
			give_supply(one, pool);
		rte_spinlock_unlock(&one->supply.access.lock);
	}
}

// Workers may receive from no port here, and send nothing as long as no buffer comes back.
static void serve_unpolled(struct cv_loop_timer *timer)
{
	struct cv_shared_owner *owner = OF(timer, struct cv_shared_owner, serve);

	if (!__atomic_exchange_n(&owner->polled, false, __ATOMIC_RELAXED))
		for (unsigned i = 0; i < SERVE_MOST; i++)
			serve(owner);
	if (__atomic_load_n(&owner->there, __ATOMIC_RELAXED) != 0)
		cv_loop_timer_set(timer, SERVE_MS);
}

static void give_memory(struct cv_shared_one *one)
{
	struct cv_shared_owner *owner = one->owner;
	const struct cv_shared_pool *pool = owner->pool;
	const unsigned number = (unsigned)number_of(one);
	const struct cv_shared_layout *layout = &pool->layout;
	const struct cv_shared_message welcome = {
		.type = CV_SHARED_WELCOME,
		.welcome = {CV_SHARED_VERSION, number, layout->buffers, layout->stride,
			layout->first, layout->room},
	};
	struct cv_shared_ring *returns = cv_shared_returns(layout, pool->base, number);
	struct cv_shared_ring *supply = cv_shared_supply(layout, pool->base, number);

	clear_ring(returns);
	clear_ring(supply);
	one->welcome = true;
	cv_shared_grant(&one->returns, returns, layout->return_slots, &pool->buffers);
	cv_shared_grant(&one->supply, supply, CV_SHARED_SLOTS, &pool->buffers);
	__atomic_fetch_or(&owner->there, 1u << number, __ATOMIC_RELAXED);
	__atomic_fetch_add(&owner->members_came, 1, __ATOMIC_RELAXED);
	serve_unpolled(&owner->serve);
	if (cv_socket_send_with(one->watch.fd, &welcome, sizeof(welcome), pool->file) != 0)
		refuse(one, "it does not read what it is told");
}

static void stopped(struct cv_shared_one *one, uint32_t number)
{
	struct cv_shared_joined *link = &one->owner->links[number];

	for (unsigned side = 0; side < 2; side++)
		if (link->seats[side] == number_of(one))
			link->stops[side] = false;
	settle(one->owner);
}

static void handle(struct cv_shared_one *one, const struct cv_shared_message *message)
{
	const char *why = NULL;

	if (message->type == CV_SHARED_HELLO && !one->welcome)
		give_memory(one);
	else if (message->type == CV_SHARED_JOIN && one->welcome)
		why = take_seat(one->owner, message->named.name, number_of(one), NULL);
	else if (message->type == CV_SHARED_STOPPED && one->welcome)
		stopped(one, message->link);
	else
		why = "a message that is not due";
	if (why != NULL)
		refuse(one, why);
}

static void message_came(struct cv_loop_watch *watch, uint32_t events)
{
	struct cv_shared_one *one = OF(watch, struct cv_shared_one, watch);
	struct cv_socket_fds fds = {0};
	struct cv_error error = {""};
	union {
		struct cv_shared_message message;
		uint8_t bytes[CV_SHARED_MESSAGE_BYTES + 1]; // one too many would be seen
	} got = {0};
	const int rc = cv_socket_receive(watch->fd, &got, sizeof(got), &fds);
	const unsigned count = fds.count;

	(void)events;
	cv_socket_fds_close(&fds);
	if (rc == -EAGAIN)
		return;
	if (rc == 0 || rc == -ECONNRESET || rc == -EPIPE)
		member_gone(one);
	else if (rc < 0 || cv_shared_message_check(&got.message, rc, count, &error) != 0)
		refuse(one, rc < 0 ? "its messages cannot be received" : error.text);
	else if (!one->refused)
		handle(one, &got.message);
}

static void accept_member(struct cv_loop_watch *watch, uint32_t events)
{
	struct cv_shared_owner *owner = OF(watch, struct cv_shared_owner, listener);
	const int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	unsigned i = 0;

	(void)events;
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		// It waits there, and would wake us again at once.
		cv_loop_unwatch(watch);
		cv_loop_timer_set(&owner->retry, ACCEPT_MS);
		return;
	}
	while (i < CV_SHARED_MEMBERS && (owner->members[i].watch.fd >= 0 || owner->members[i].gone))
		i++;
	if (i == CV_SHARED_MEMBERS) {
		close(fd);
		return;
	}
	owner->members[i].watch = (struct cv_loop_watch){fd, message_came};
	if (cv_loop_watch(&owner->members[i].watch, EPOLLIN) != 0) {
		close(fd);
		owner->members[i].watch.fd = -1;
	}
}

static void accept_again(struct cv_loop_timer *timer)
{
	struct cv_shared_owner *owner = OF(timer, struct cv_shared_owner, retry);

	if (cv_loop_watch(&owner->listener, EPOLLIN) != 0)
		cv_loop_timer_set(&owner->retry, ACCEPT_MS);
}

static int listen_at_path(struct cv_shared_owner *owner, const char *path, struct cv_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int rc = 0;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	memcpy(owner->path, address.sun_path, sizeof(owner->path));
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
		listen(fd, BACKLOG) != 0)
		rc = -errno;
	owner->listener = (struct cv_loop_watch){fd, accept_member};
	if (rc == 0)
		return 0;
	cv_error_set(error, "path: %s: cannot listen there: %s", path, strerror(-rc));
	if (fd >= 0)
		close(fd);
	return rc;
}

static void free_owner(struct cv_shared_owner *owner)
{
	rte_mempool_free(owner->own);
	free(owner->lost);
	free(owner);
}

static struct cv_shared_owner *make(struct rte_mempool *pool, struct cv_error *error)
{
	struct cv_shared_owner *owner = aligned_alloc(64, RTE_ALIGN(sizeof(*owner), 64));
	char name[RTE_MEMPOOL_NAMESIZE];
	static unsigned made;

	if (owner == NULL)
		return NULL;
	memset(owner, 0, sizeof(*owner));
	owner->pool = cv_shared_pool_of(pool);
	if (owner->pool == NULL) {
		snprintf(name, sizeof(name), "owned%u", made++);
		owner->own = cv_shared_pool_create(
			name, OWN_BUFFERS, OWN_CACHE, rte_pktmbuf_data_room_size(pool), error);
		owner->pool = owner->own != NULL ? cv_shared_pool_of(owner->own) : NULL;
	}
	if (owner->pool != NULL)
		owner->lost = malloc(owner->pool->layout.buffers);
	if (owner->lost == NULL) {
		free_owner(owner);
		return NULL;
	}
	owner->retry.due = accept_again;
	owner->serve.due = serve_unpolled;
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++)
		owner->links[i].seats[0] = owner->links[i].seats[1] = CV_SHARED_NOBODY;
	for (unsigned i = 0; i < CV_SHARED_MEMBERS; i++) {
		owner->members[i].owner = owner;
		owner->members[i].watch.fd = -1;
	}
	return owner;
}

struct call {
	struct cv_shared_owner *owner;
	struct cv_shared_port *port;
	const char *why;
};

static void begin(void *argument)
{
	struct call *call = argument;
	struct cv_shared_owner *owner = call->owner;

	if (owner->first == NULL) {
		owner->first = call->port;
		accept_again(&owner->retry);
	}
	call->why = take_seat(owner, call->port->link, CV_SHARED_HERE, call->port);
}

static struct cv_shared_port *any_port(const struct cv_shared_owner *owner)
{
	struct cv_shared_port *port = NULL;

	for (unsigned i = 0; i < CV_SHARED_LINKS; i++)
		for (unsigned side = 0; side < 2; side++)
			port = owner->links[i].ports[side] != NULL ? owner->links[i].ports[side]
								   : port;
	return port;
}

static void end(void *argument)
{
	struct call *call = argument;
	struct cv_shared_owner *owner = call->owner;

	cv_shared_port_down(call->port);
	for (unsigned i = 0; i < CV_SHARED_LINKS; i++)
		for (unsigned side = 0; side < 2; side++)
			if (owner->links[i].ports[side] == call->port)
				leave(owner, &owner->links[i], side);
	if (owner->users > 0) {
		if (owner->first == call->port)
			owner->first = any_port(owner);
		settle(owner);
		return;
	}
	cv_loop_timer_stop(&owner->retry);
	cv_loop_timer_stop(&owner->serve);
	cv_loop_unwatch(&owner->listener);
	unlink(owner->path);
	close(owner->listener.fd);
	for (unsigned i = 0; i < CV_SHARED_MEMBERS; i++) {
		if (owner->members[i].watch.fd < 0)
			continue;
		cv_loop_unwatch(&owner->members[i].watch);
		close(owner->members[i].watch.fd);
	}
}

static void close_owner(struct cv_shared_owner *owner, struct cv_shared_port *port)
{
	struct call call = {owner, port, NULL};

	owner->users--;
	cv_loop_run(end, &call);
	if (owner->users == 0) {
		struct cv_shared_owner **at = &owners;

		while (*at != owner)
			at = &(*at)->next;
		*at = owner->next;
		free_owner(owner);
	}
	cv_loop_release();
}

static struct cv_shared_owner *find_owner(const char *path)
{
	struct cv_shared_owner *owner = owners;

	while (owner != NULL && strcmp(owner->path, path) != 0)
		owner = owner->next;
	return owner;
}

bool cv_shared_owner_is_here(const char *path)
{
	return find_owner(path) != NULL;
}

int cv_shared_owner_open(struct cv_shared_owner **result, const char *path,
	struct rte_mempool *pool, struct cv_shared_port *port, struct cv_error *error)
{
	struct cv_shared_owner *owner = find_owner(path);
	struct call call;
	int rc = cv_loop_hold(error);

	if (rc != 0)
		return rc;
	if (owner == NULL) {
		owner = make(pool, error);
		rc = owner == NULL ? -ENOMEM : listen_at_path(owner, path, error);
		if (rc != 0) {
			if (owner != NULL)
				free_owner(owner);
			cv_loop_release();
			return rc;
		}
		owner->next = owners;
		owners = owner;
	}
	owner->users++;
	call = (struct call){owner, port, NULL};
	cv_loop_run(begin, &call);
	*result = owner;
	if (call.why == NULL)
		return 0;
	cv_error_set(error, "link: %s: %s; give it another name", port->link, call.why);
	close_owner(owner, port);
	return -EINVAL;
}

void cv_shared_owner_close(struct cv_shared_owner *owner, struct cv_shared_port *port)
{
	close_owner(owner, port);
}

void cv_shared_owner_polls(struct cv_shared_owner *owner)
{
	if (CV_UNLIKELY(!__atomic_load_n(&owner->polled, __ATOMIC_RELAXED)))
		__atomic_store_n(&owner->polled, true, __ATOMIC_RELAXED);
	serve(owner);
}

void cv_shared_owner_sends(struct cv_shared_owner *owner)
{
	if (CV_UNLIKELY(!__atomic_load_n(&owner->polled, __ATOMIC_RELAXED)))
		serve(owner);
}

uint32_t cv_shared_owner_given(const struct cv_shared_owner *owner)
{
	uint32_t given = 0;

	for (uint32_t i = 0; i < owner->pool->layout.buffers; i++)
		given += __atomic_load_n(&owner->pool->marks[i], __ATOMIC_RELAXED) == 0;
	return given;
}
