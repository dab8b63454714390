// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/plug_port.h"

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

#define ATTEMPT_MS 50 // between two looks whether a peer is there
#define HANDSHAKE_MS 300 // a device whose link is not up by then is tried anew

// DPDK's memif server frees its listening socket's interrupt handle without taking it from the
// interrupt thread.
static bool interrupt_left;

bool cv_port_eal_may_end(void)
{
	return !interrupt_left;
}

// The device may be used until leave(), unless the answer is false.
static CV_INLINE bool enter(struct cv_plug_port *plug, struct cv_plug_user *user)
{
	// Sequentially consistent, as take_away() is: either the keeper sees busy and waits, or
	// usable is seen to be 0 here.
	__atomic_store_n(&user->busy, 1, __ATOMIC_SEQ_CST);
	return CV_LIKELY(__atomic_load_n(&plug->usable, __ATOMIC_SEQ_CST) > 0);
}

static CV_INLINE void leave(struct cv_plug_user *user)
{
	// Pairs with the acquire load in take_away(): what was done with the device is done.
	__atomic_store_n(&user->busy, 0, __ATOMIC_RELEASE);
}

static uint16_t rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_plug_port *plug = (struct cv_plug_port *)port;
	struct cv_plug_user *user = &plug->users[queue];
	uint16_t received = 0;

	if (enter(plug, user))
		received = rte_eth_rx_burst(plug->dev.id, queue, packets, n);
	leave(user);
	return received;
}

static uint16_t tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct cv_plug_port *plug = (struct cv_plug_port *)port;
	struct cv_plug_user *user = &plug->users[plug->dev.rx_queues + tx_queue];
	uint16_t queue = tx_queue;
	uint16_t sent = 0;

	if (enter(plug, user)) {
		if (plug->locks != NULL) {
			queue = tx_queue % plug->dev.tx_queues_there;
			rte_spinlock_lock(&plug->locks[queue]);
		}
		sent = rte_eth_tx_burst(plug->dev.id, queue, packets, n);
		if (plug->locks != NULL)
			rte_spinlock_unlock(&plug->locks[queue]);
	}
	leave(user);
	return sent;
}

static struct cv_plug_user *info_user(const struct cv_plug_port *plug)
{
	return &plug->users[plug->dev.rx_queues + plug->senders];
}

static json_t *info(const struct cv_port *port)
{
	// Nothing that anybody else can see changes.
	struct cv_plug_port *plug = (struct cv_plug_port *)(uintptr_t)port;
	json_t *object;

	pthread_mutex_lock(&plug->info_lock);
	if (enter(plug, info_user(plug))) {
		object = cv_ethdev_info(&plug->dev);
	} else {
		object = json_object();
		json_object_set_new(object, "link", json_string("down"));
	}
	leave(info_user(plug));
	pthread_mutex_unlock(&plug->info_lock);
	json_object_set_new(object, "peers",
		json_integer((json_int_t)__atomic_load_n(&plug->peers, __ATOMIC_RELAXED)));
	return object;
}

// Waits a while, or until the port is stopped. Returns whether it is.
static bool pause_or_quit(struct cv_plug_port *plug, unsigned ms)
{
	struct timespec until;
	bool quit;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ms * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&plug->lock);
	while (!plug->quit &&
		pthread_cond_timedwait(&plug->changed, &plug->lock, &until) != ETIMEDOUT)
		;
	quit = plug->quit;
	pthread_mutex_unlock(&plug->lock);
	return quit;
}

static bool link_is_up(const struct cv_plug_port *plug)
{
	struct rte_eth_link link = {0};

	// Reads what the driver's interrupt thread noted last.
	return rte_eth_link_get_nowait(plug->dev.id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

static void give(struct cv_plug_port *plug)
{
	__atomic_fetch_add(&plug->usable, 1, __ATOMIC_SEQ_CST);
}

// Nobody uses the device any more when this returns.
static void take_away(struct cv_plug_port *plug)
{
	__atomic_fetch_sub(&plug->usable, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i <= plug->dev.rx_queues + plug->senders; i++) {
		// Pairs with the release store in leave().
		while (__atomic_load_n(&plug->users[i].busy, __ATOMIC_ACQUIRE) != 0)
			sched_yield();
	}
}

// As unmap_guard.h wants it.
static void step_aside(void *argument, bool pause)
{
	if (pause)
		take_away(argument);
	else
		give(argument);
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
// Where attaching waits for a peer, nobody else is kept waiting.
static pthread_mutex_t coming_or_going = PTHREAD_MUTEX_INITIALIZER;

static int attach(struct cv_plug_port *plug, struct cv_error *error)
{
	const bool alone = plug->mode != CV_PLUG_LISTENS;
	int rc;

	if (alone)
		pthread_mutex_lock(&coming_or_going);
	rc = cv_ethdev_attach(&plug->dev, error);
	if (alone)
		pthread_mutex_unlock(&coming_or_going);
	return rc;
}

static void detach(struct cv_plug_port *plug)
{
	pthread_mutex_lock(&coming_or_going);
	cv_ethdev_detach(&plug->dev);
	pthread_mutex_unlock(&coming_or_going);
}

// Attaches and starts a device. False: no peer now, or it left again.
static bool plug_in(struct cv_plug_port *plug)
{
	struct cv_error why = {""};

	if (plug->mode == CV_PLUG_CONNECTS && !cv_socket_is_alive(plug->path))
		return false;
	if (plug->mode == CV_PLUG_LISTENS && cv_socket_claim(plug->path, &why) != 0)
		return false;
	if (!plug->dev.attached && attach(plug, &why) != 0) {
		if (plug->mode == CV_PLUG_LISTENS)
			unlink(plug->path);
		return false;
	}
	cv_ethdev_mac(&plug->dev, plug->mac_wanted, plug->port.mac);
	if (cv_ethdev_start(&plug->dev, &why) == 0)
		return true;
	detach(plug);
	return false;
}

static void unplug(struct cv_plug_port *plug)
{
	take_away(plug);
	// When a peer goes, DPDK's virtio-user tidies up a little later, by an alarm.
	wait_for_interrupt_thread();
	detach(plug);
}

// Waits until the peer is gone, or the port is stopped. Returns whether it is stopped.
static bool watch(struct cv_plug_port *plug)
{
	bool was_up = false;
	bool quit;

	for (unsigned ms = 0;; ms += 10) {
		bool up = link_is_up(plug);

		if (up && !was_up) {
			__atomic_fetch_add(&plug->peers, 1, __ATOMIC_RELAXED);
			cv_port_log(&plug->port, "peer connected");
		}
		if (!up && was_up)
			cv_port_log(&plug->port, "peer gone");
		if (!up && plug->mode != CV_PLUG_STAYS && (was_up || ms > HANDSHAKE_MS))
			return false;
		was_up = up;
		quit = pause_or_quit(plug, 10);
		if (quit)
			return true;
	}
}

static uint32_t keep(void *argument)
{
	struct cv_plug_port *plug = argument;
	bool quit = false;

	if (!plug->dev.attached || plug->mode == CV_PLUG_STAYS)
		cv_port_log(&plug->port, "waits for a peer at %s", plug->path);
	while (!quit) {
		if (plug_in(plug)) {
			give(plug);
			quit = watch(plug);
			unplug(plug);
		} else {
			quit = pause_or_quit(plug, ATTEMPT_MS);
		}
	}
	return 0;
}

static int start(struct cv_port *port, struct cv_error *error)
{
	struct cv_plug_port *plug = (struct cv_plug_port *)port;
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "port-%.10s", port->name);
	plug->quit = false;
	rc = rte_thread_create_control(&plug->keeper, name, keep, plug);
	if (rc != 0)
		cv_error_set(error, "no thread to keep the connection: %s", strerror(-rc));
	plug->has_keeper = rc == 0;
	return rc;
}

// Where the keeper waits for a peer inside the driver, only a peer can end that.
static void play_peer(const struct cv_plug_port *plug)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", plug->path);
	// Nobody there, or somebody else already: both end the wait.
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		errno = 0;
	close(fd);
}

static void stop(struct cv_port *port)
{
	struct cv_plug_port *plug = (struct cv_plug_port *)port;

	if (!plug->has_keeper)
		return;
	pthread_mutex_lock(&plug->lock);
	plug->quit = true;
	pthread_cond_broadcast(&plug->changed);
	pthread_mutex_unlock(&plug->lock);
	for (;;) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 1;
		if (plug->mode == CV_PLUG_LISTENS &&
			__atomic_load_n(&plug->usable, __ATOMIC_SEQ_CST) <= 0)
			play_peer(plug);
		if (pthread_timedjoin_np((pthread_t)plug->keeper.opaque_id, NULL, &until) == 0)
			break;
	}
	plug->has_keeper = false;
}

static void free_port(struct cv_plug_port *plug)
{
	free(plug->users);
	free(plug->locks);
	plug->users = NULL;
	plug->locks = NULL;
}

static void close_port(struct cv_port *port)
{
	struct cv_plug_port *plug = (struct cv_plug_port *)port;

	stop(port);
	detach(plug);
	cv_unmap_guard_remove(plug);
	wait_for_interrupt_thread();
	if (plug->mode == CV_PLUG_STAYS)
		interrupt_left = true;
	pthread_mutex_destroy(&plug->lock);
	pthread_mutex_destroy(&plug->info_lock);
	pthread_cond_destroy(&plug->changed);
	free_port(plug);
	free(plug);
}

static int allocate(struct cv_plug_port *plug)
{
	const size_t users = plug->dev.rx_queues + plug->senders + 1u;

	plug->users = aligned_alloc(RTE_CACHE_LINE_SIZE, users * sizeof(*plug->users));
	if (plug->users == NULL)
		return -ENOMEM;
	memset(plug->users, 0, users * sizeof(*plug->users));
	if (plug->senders <= plug->dev.tx_queues)
		return 0;
	plug->locks = calloc(plug->dev.tx_queues, sizeof(*plug->locks));
	return plug->locks != NULL ? 0 : -ENOMEM;
}

int cv_plug_port_open(
	struct cv_plug_port *plug, const struct cv_port_args *args, struct cv_error *error)
{
	struct cv_port *port = &plug->port;
	pthread_condattr_t monotonic;
	int rc;

	// DPDK's virtio-user writes to its socket when it stops, even if the peer is gone.
	signal(SIGPIPE, SIG_IGN);
	// And both drivers complain of every step that a peer's end takes. The port says what
	// matters, once.
	rte_log_set_level_pattern("pmd.net.virtio.*", RTE_LOG_CRIT);
	rte_log_set_level_pattern("pmd.net.memif", RTE_LOG_CRIT);
	plug->dev.tx_queues = plug->dev.rx_queues;
	plug->dev.mtu = port->mtu;
	plug->dev.set_mtu = json_object_get(args->config, "mtu") != NULL;
	plug->dev.pool = args->pool;
	plug->senders = args->senders;
	plug->mac_wanted = true; // the same for every device that comes
	rc = cv_ethdev_check(&plug->dev, error);
	if (rc != 0)
		return rc;
	if (plug->mode != CV_PLUG_CONNECTS) {
		rc = cv_socket_claim(plug->path, error);
		if (rc != 0)
			return rc;
	}
	rc = allocate(plug);
	if (rc == 0)
		rc = cv_unmap_guard_add(step_aside, plug);
	// What can be wrong with the device is said now, if it does not have to wait for a peer.
	if (rc == 0 && plug->mode != CV_PLUG_LISTENS &&
		(plug->mode == CV_PLUG_STAYS || cv_socket_is_alive(plug->path)))
		rc = attach(plug, error);
	if (rc != 0) {
		cv_unmap_guard_remove(plug);
		free_port(plug);
		return rc;
	}
	pthread_mutex_init(&plug->info_lock, NULL);
	pthread_mutex_init(&plug->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&plug->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	port->rx = rx;
	port->tx = tx;
	port->info = info;
	port->start = start;
	port->stop = stop;
	port->close = close_port;
	port->rx_queues = plug->dev.rx_queues;
	return 0;
}
