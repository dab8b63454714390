// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/reconnecting_port.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_pause.h>

#include "dpdk/compat.h"
#include "packet/compiler.h"
#include "port/port_log.h"
#include "port/socket_path.h"
#include "port/unmap_guard.h"
#include "port/vhost_relay.h"

#define ATTEMPT_MS 50 // between two checks whether a peer is there
#define HANDSHAKE_MS 300 // a device whose link is not up by then is tried anew

// DPDK's memif server frees its listening socket's interrupt handle without taking it from the
// interrupt thread.
static bool interrupt_left;

bool cv_port_eal_may_end(void)
{
	return !interrupt_left;
}

// The device may be used until leave(), unless the answer is false.
static CV_INLINE bool enter(struct cv_reconnecting_port *reconnecting, struct cv_device_user *user)
{
	// Sequentially consistent, as revoke_device() is: either the connection thread sees busy
	// and waits, or usable is seen to be 0 here.
	__atomic_store_n(&user->busy, 1, __ATOMIC_SEQ_CST);
	return CV_LIKELY(__atomic_load_n(&reconnecting->usable, __ATOMIC_SEQ_CST) > 0);
}

static CV_INLINE void leave(struct cv_device_user *user)
{
	// Pairs with the acquire load in revoke_device(): what was done with the device is done.
	__atomic_store_n(&user->busy, 0, __ATOMIC_RELEASE);
}

static uint16_t rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_reconnecting_port *reconnecting = (struct cv_reconnecting_port *)port;
	struct cv_device_user *user = &reconnecting->users[queue];
	uint16_t received = 0;

	if (enter(reconnecting, user))
		received = rte_eth_rx_burst(reconnecting->dev.id, queue, packets, n);
	leave(user);
	return received;
}

static uint16_t tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_reconnecting_port *reconnecting = (struct cv_reconnecting_port *)port;
	struct cv_device_user *user = &reconnecting->users[reconnecting->dev.rx_queues + tx_queue];
	uint16_t queue = tx_queue;
	uint16_t sent = 0;

	if (enter(reconnecting, user)) {
		if (reconnecting->locks != NULL) {
			queue = tx_queue % reconnecting->dev.tx_queues_there;
			rte_spinlock_lock(&reconnecting->locks[queue]);
		}
		sent = rte_eth_tx_burst(reconnecting->dev.id, queue, packets, n);
		if (reconnecting->locks != NULL)
			rte_spinlock_unlock(&reconnecting->locks[queue]);
	}
	leave(user);
	return sent;
}

static struct cv_device_user *info_user(const struct cv_reconnecting_port *reconnecting)
{
	return &reconnecting->users[reconnecting->dev.rx_queues + reconnecting->senders];
}

static json_t *info(const struct cv_port *port)
{
	// Nothing that anybody else can see changes.
	struct cv_reconnecting_port *reconnecting = (struct cv_reconnecting_port *)(uintptr_t)port;
	json_t *object;

	pthread_mutex_lock(&reconnecting->info_lock);
	if (enter(reconnecting, info_user(reconnecting))) {
		object = cv_ethdev_info(&reconnecting->dev);
	} else {
		object = json_object();
		json_object_set_new(object, "link", json_string("down"));
	}
	leave(info_user(reconnecting));
	pthread_mutex_unlock(&reconnecting->info_lock);
	json_object_set_new(object, "peers",
		json_integer((json_int_t)__atomic_load_n(&reconnecting->peers, __ATOMIC_RELAXED)));
	return object;
}

// Waits a while, or until the flag is set. Returns whether it is.
static bool wait_until(struct cv_reconnecting_port *reconnecting, const bool *flag, unsigned ms)
{
	struct timespec until;
	bool is_set;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ms * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&reconnecting->lock);
	while (!*flag && pthread_cond_clockwait(&reconnecting->changed, &reconnecting->lock,
				 CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		;
	is_set = *flag;
	pthread_mutex_unlock(&reconnecting->lock);
	return is_set;
}

static void set(struct cv_reconnecting_port *reconnecting, bool *what)
{
	pthread_mutex_lock(&reconnecting->lock);
	*what = true;
	pthread_cond_broadcast(&reconnecting->changed);
	pthread_mutex_unlock(&reconnecting->lock);
}

static bool link_is_up(const struct cv_reconnecting_port *reconnecting)
{
	struct rte_eth_link link = {0};

	// Reads what the driver's interrupt thread noted last.
	return rte_eth_link_get_nowait(reconnecting->dev.id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

static void grant_device(struct cv_reconnecting_port *reconnecting)
{
	__atomic_fetch_add(&reconnecting->usable, 1, __ATOMIC_SEQ_CST);
}

// Nobody uses the device any more when this returns.
static void revoke_device(struct cv_reconnecting_port *reconnecting)
{
	__atomic_fetch_sub(&reconnecting->usable, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i <= reconnecting->dev.rx_queues + reconnecting->senders; i++) {
		// Pairs with the release store in leave().
		while (__atomic_load_n(&reconnecting->users[i].busy, __ATOMIC_ACQUIRE) != 0)
			sched_yield();
	}
}

// As unmap_guard.h wants it.
static void quiesce(void *argument, bool pause)
{
	if (pause)
		revoke_device(argument);
	else
		grant_device(argument);
}

static void set_flag(void *flag)
{
	__atomic_store_n((bool *)flag, true, __ATOMIC_RELEASE);
}

// Waits until the interrupt thread has done what it had to do by now. Two alarms one after the
// other: the first can come in the same loop iteration as the news that its list has changed, and
// before it.
static void wait_for_interrupt_thread(void)
{
	static bool come; // one waits at a time, and never on a stack that may be gone
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&one);
	for (int attempt = 0; attempt < 2; attempt++) {
		come = false;
		if (rte_eal_alarm_set(10, set_flag, &come) != 0)
			break;
		while (!__atomic_load_n(&come, __ATOMIC_ACQUIRE))
			sched_yield();
	}
	pthread_mutex_unlock(&one);
}

// One device comes or goes at a time: neither DPDK's list of devices nor memif's of sockets can
// take two threads at once (memif then leaves half a device behind, whose name stays taken).
static pthread_mutex_t coming_or_going = PTHREAD_MUTEX_INITIALIZER;

static int attach(struct cv_reconnecting_port *reconnecting, struct cv_error *error)
{
	int rc;

	pthread_mutex_lock(&coming_or_going);
	rc = cv_ethdev_attach(&reconnecting->dev, error);
	pthread_mutex_unlock(&coming_or_going);
	if (rc == 0 && reconnecting->relay != NULL)
		cv_vhost_relay_agreed(reconnecting->relay);
	return rc;
}

static void detach(struct cv_reconnecting_port *reconnecting)
{
	pthread_mutex_lock(&coming_or_going);
	cv_ethdev_detach(&reconnecting->dev);
	pthread_mutex_unlock(&coming_or_going);
}

static bool has_peer(const struct cv_reconnecting_port *reconnecting)
{
	switch (reconnecting->mode) {
	case CV_RECONNECT_RELAYED:
		return cv_vhost_relay_has_peer(reconnecting->relay);
	case CV_RECONNECT_CONNECTS:
		return cv_socket_is_alive(reconnecting->path);
	default:
		return true;
	}
}

// A peer that leaves too soon fails one time; what fails again is logged, and only then.
static void note_failure(struct cv_reconnecting_port *reconnecting, const struct cv_error *why)
{
	char hint[64] = "";

	if (strcmp(reconnecting->failed.text, why->text) != 0) {
		reconnecting->failed = *why;
		reconnecting->failed_times = 0;
	}
	if (reconnecting->failed_times == 2 || ++reconnecting->failed_times < 2)
		return;
	// The driver is kept from saying more. Most often the peer has fewer queues.
	if (reconnecting->dev.rx_queues > 1)
		snprintf(hint, sizeof(hint), "; does the peer have %u pairs of queues?",
			reconnecting->dev.rx_queues);
	cv_port_log(&reconnecting->port, "no device for its peer: %.*s%s",
		(int)strcspn(why->text, ";"), why->text, hint);
}

// Attaches and starts a device. False: no peer now, or it left again.
static bool connect_device(struct cv_reconnecting_port *reconnecting)
{
	struct cv_error why = {""};

	if (!has_peer(reconnecting))
		return false;
	if (!reconnecting->dev.attached && attach(reconnecting, &why) != 0)
		goto fail;
	cv_ethdev_mac(&reconnecting->dev, reconnecting->mac_wanted, reconnecting->port.mac);
	if (cv_ethdev_start(&reconnecting->dev, &why) == 0)
		return true;
	detach(reconnecting);
fail:
	note_failure(reconnecting, &why);
	if (reconnecting->relay != NULL)
		cv_vhost_relay_cut(reconnecting->relay);
	return false;
}

static void disconnect_device(struct cv_reconnecting_port *reconnecting)
{
	revoke_device(reconnecting);
	// When a peer goes, DPDK's virtio-user tidies up a little later, by an alarm.
	wait_for_interrupt_thread();
	detach(reconnecting);
}

// Waits until the peer is gone, or the port is stopped. Returns whether it is stopped.
static bool watch(struct cv_reconnecting_port *reconnecting)
{
	bool was_up = false;
	bool quit;

	for (unsigned ms = 0;; ms += 10) {
		bool up = link_is_up(reconnecting);

		if (up && !was_up) {
			__atomic_fetch_add(&reconnecting->peers, 1, __ATOMIC_RELAXED);
			cv_port_log(&reconnecting->port, "peer connected");
			reconnecting->failed.text[0] = '\0';
		}
		if (!up && was_up)
			cv_port_log(&reconnecting->port, "peer gone");
		if (!up && reconnecting->mode != CV_RECONNECT_STAYS &&
			(was_up || ms > HANDSHAKE_MS))
			return false;
		was_up = up;
		quit = wait_until(reconnecting, &reconnecting->quit, 10);
		if (quit)
			return true;
	}
}

static uint32_t run_connections(void *argument)
{
	struct cv_reconnecting_port *reconnecting = argument;
	bool waits = !reconnecting->dev.attached || reconnecting->mode == CV_RECONNECT_STAYS;
	bool announced = false, quit = false;

	while (!quit) {
		if (waits && !announced)
			cv_port_log(
				&reconnecting->port, "waits for a peer at %s", reconnecting->path);
		announced |= waits;
		if (connect_device(reconnecting)) {
			grant_device(reconnecting);
			quit = watch(reconnecting);
			disconnect_device(reconnecting);
		} else {
			quit = wait_until(reconnecting, &reconnecting->quit, ATTEMPT_MS);
		}
		// The one that was there at first came to nothing.
		waits = __atomic_load_n(&reconnecting->peers, __ATOMIC_RELAXED) == 0;
	}
	set(reconnecting, &reconnecting->ended);
	return 0;
}

static int start(struct cv_port *port, struct cv_error *error)
{
	struct cv_reconnecting_port *reconnecting = (struct cv_reconnecting_port *)port;
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "port-%.10s", port->name);
	reconnecting->quit = false;
	reconnecting->ended = false;
	rc = rte_thread_create_control(
		&reconnecting->connection_thread, name, run_connections, reconnecting);
	if (rc != 0)
		cv_error_set(error, "no thread to keep the connection: %s", strerror(-rc));
	reconnecting->has_connection_thread = rc == 0;
	return rc;
}

static void stop(struct cv_port *port)
{
	struct cv_reconnecting_port *reconnecting = (struct cv_reconnecting_port *)port;

	if (!reconnecting->has_connection_thread)
		return;
	set(reconnecting, &reconnecting->quit);
	// It may wait inside the driver for a peer that does not answer.
	while (!wait_until(reconnecting, &reconnecting->ended, 1000))
		if (reconnecting->relay != NULL)
			cv_vhost_relay_cut(reconnecting->relay);
	rte_thread_join(reconnecting->connection_thread, NULL);
	reconnecting->has_connection_thread = false;
}

static void free_port(struct cv_reconnecting_port *reconnecting)
{
	free(reconnecting->users);
	free(reconnecting->locks);
	reconnecting->users = NULL;
	reconnecting->locks = NULL;
}

static void close_port(struct cv_port *port)
{
	struct cv_reconnecting_port *reconnecting = (struct cv_reconnecting_port *)port;

	stop(port);
	detach(reconnecting);
	cv_vhost_relay_close(reconnecting->relay);
	cv_unmap_guard_remove(reconnecting);
	wait_for_interrupt_thread();
	if (reconnecting->mode == CV_RECONNECT_STAYS)
		interrupt_left = true;
	pthread_mutex_destroy(&reconnecting->lock);
	pthread_mutex_destroy(&reconnecting->info_lock);
	pthread_cond_destroy(&reconnecting->changed);
	free_port(reconnecting);
	free(reconnecting);
}

static int allocate(struct cv_reconnecting_port *reconnecting)
{
	const size_t users = reconnecting->dev.rx_queues + reconnecting->senders + 1u;

	reconnecting->users =
		aligned_alloc(RTE_CACHE_LINE_SIZE, users * sizeof(*reconnecting->users));
	if (reconnecting->users == NULL)
		return -ENOMEM;
	memset(reconnecting->users, 0, users * sizeof(*reconnecting->users));
	if (reconnecting->senders <= reconnecting->dev.tx_queues)
		return 0;
	reconnecting->locks = calloc(reconnecting->dev.tx_queues, sizeof(*reconnecting->locks));
	return reconnecting->locks != NULL ? 0 : -ENOMEM;
}

int cv_reconnecting_port_open(struct cv_reconnecting_port *reconnecting,
	const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_port *port = &reconnecting->port;
	int rc;

	// DPDK's virtio-user writes to its socket when it stops, even if the peer is gone.
	signal(SIGPIPE, SIG_IGN);
	// And both drivers complain of every step that a peer's end takes. The port says what
	// matters, once.
	rte_log_set_level_pattern("pmd.net.virtio.*", RTE_LOG_CRIT);
	rte_log_set_level_pattern("pmd.net.memif", RTE_LOG_CRIT);
	reconnecting->dev.tx_queues = reconnecting->dev.rx_queues;
	reconnecting->dev.mtu = port->mtu;
	reconnecting->dev.set_mtu = args->config->mtu_given;
	reconnecting->dev.pool = args->pool;
	reconnecting->senders = args->senders;
	reconnecting->mac_wanted = true; // the same for every device that comes
	rc = cv_ethdev_check(&reconnecting->dev, error);
	if (rc != 0)
		return rc;
	if (reconnecting->mode == CV_RECONNECT_STAYS) {
		rc = cv_socket_claim(reconnecting->path, error);
		if (rc != 0)
			return rc;
	}
	rc = allocate(reconnecting);
	if (rc == 0)
		rc = cv_unmap_guard_add(quiesce, reconnecting);
	// What can be wrong with the device is said now, if it does not have to wait for a peer.
	if (rc == 0 && has_peer(reconnecting))
		rc = attach(reconnecting, error);
	if (rc != 0) {
		cv_unmap_guard_remove(reconnecting);
		free_port(reconnecting);
		return rc;
	}
	pthread_mutex_init(&reconnecting->info_lock, NULL);
	pthread_mutex_init(&reconnecting->lock, NULL);
	pthread_cond_init(&reconnecting->changed, NULL);
	port->rx = rx;
	port->tx = tx;
	port->info = info;
	port->start = start;
	port->stop = stop;
	port->close = close_port;
	port->rx_queues = reconnecting->dev.rx_queues;
	return 0;
}
