// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// libconvoy_vhost.so: preloaded under a program that moves a guest's packets with rte_vhost (a
// virtual switch, testpmd). What the guest sends reaches the program in convoys; convoys that the
// program sends reach the guest packet by packet. CONVOY_VHOST says how, in the words of `convoy
// preload ethdev`; without a next hop nothing is gathered, and convoys are still taken apart.
//
// Stands in front of rte_vhost_{dequeue,enqueue}_burst; learns of devices and of every change by
// wrapping the callbacks that the program registers. Devices whose guest negotiated what our vring
// does not do (offloads, an IOMMU) are left to rte_vhost from beginning to end: never are both used
// on one queue.
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_version.h>
#include <rte_vhost.h>

#include "../ethdev/config.h"
#include "flow.h"
#include "vhost_device.h"
#include "walk.h"

#define EXPORT __attribute__((visibility("default")))
#define ABI "DPDK_23" // of DPDK 22.11
#define ENV "CONVOY_VHOST"
#define BURST 64 // frames moved in one go
#define VIEWS (256 + CV_CONVOY_PACKETS_MAX)
#define PATHS_MAX 256
#define ATTEMPTS 256 // to put the rest of a convoy

#define BIT(n) (1ull << (n))
#define NOT_OURS                                                                               \
	(BIT(VIRTIO_NET_F_CSUM) | BIT(VIRTIO_NET_F_GUEST_CSUM) | BIT(VIRTIO_NET_F_HOST_TSO4) | \
		BIT(VIRTIO_NET_F_HOST_TSO6) | BIT(VIRTIO_NET_F_HOST_UFO) |                     \
		BIT(VIRTIO_NET_F_GUEST_TSO4) | BIT(VIRTIO_NET_F_GUEST_TSO6) |                  \
		BIT(VIRTIO_NET_F_GUEST_UFO) | BIT(33)) // VIRTIO_F_IOMMU_PLATFORM

// A connection.
struct device {
	struct cv_vhost vhost;
	const struct rte_vhost_device_ops *program; // what the program registered
	bool ours; // atomic; else rte_vhost's
	// Written by the program's threads, without a lock: said at the connection's end.
	uint64_t frames, convoys; // to the program; the convoys among them
	uint64_t opened; // convoys taken apart
	uint64_t cut; // packets of convoys that the guest had no room for; lost
};

static struct {
	char *path;
	const struct rte_vhost_device_ops *program;
} paths[PATHS_MAX];

static struct device *devices[RTE_MAX_VHOST_DEVICE]; // atomic
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of paths
static struct cv_ethdev_config config;
static struct cv_outer outer; // convoys to the program; len 0: none
static rte_be16_t udp_port;

static uint16_t (*real_dequeue)(
	int vid, uint16_t queue, struct rte_mempool *pool, struct rte_mbuf **packets, uint16_t n);
static uint16_t (*real_enqueue)(int vid, uint16_t queue, struct rte_mbuf **packets, uint16_t n);
static int (*real_register)(const char *path, const struct rte_vhost_device_ops *ops);
static int (*real_stats)(int vid, uint16_t queue, struct rte_vhost_stat *stats, unsigned n);

__attribute__((noreturn)) static void refuse(const char *what, const char *why)
{
	fprintf(stderr, "convoy: vhost: %s%s\n", what, why);
	exit(2);
}

static void *find(const char *name)
{
	void *found = dlvsym(RTLD_NEXT, name, ABI);

	if (found == NULL)
		refuse(name, "@" ABI ": not there: this library is for programs that are linked "
			     "with the shared libraries of DPDK 22.11");
	return found;
}

__attribute__((constructor)) static void begin(void)
{
	struct cv_error error = {""};

	real_dequeue = find("rte_vhost_dequeue_burst");
	real_enqueue = find("rte_vhost_enqueue_burst");
	real_register = find("rte_vhost_driver_callback_register");
	real_stats = find("rte_vhost_vring_stats_get");
	if (cv_ethdev_config_read(&config, getenv(ENV), &error) != 0 ||
		(config.fixed && cv_outer_set(&outer, &config.next_hop, &error) != 0)) {
		// It names the variable of the other library.
		const size_t other = strlen(CV_ETHDEV_ENV);

		refuse(ENV, strncmp(error.text, CV_ETHDEV_ENV, other) == 0 ? error.text + other
									   : error.text);
	}
	udp_port = rte_cpu_to_be_16(config.port);
	fprintf(stderr,
		"convoy: vhost: rte_vhost_dequeue_burst, rte_vhost_enqueue_burst of %s: %s, UDP "
		"port %u, MTU %u\n",
		rte_version(),
		outer.len > 0 ? "guests' packets leave in convoys, convoys are taken apart"
			      : "convoys are taken apart; no next hop: none are made",
		config.port, config.mtu);
}

static struct device *device_of(int vid)
{
	return vid >= 0 && vid < RTE_MAX_VHOST_DEVICE
		       ? __atomic_load_n(&devices[vid], __ATOMIC_ACQUIRE)
		       : NULL;
}

// NULL: rte_vhost's.
static CV_INLINE struct device *ours(int vid, uint16_t queue)
{
	struct device *device = device_of(vid);

	return device != NULL && __atomic_load_n(&device->ours, __ATOMIC_RELAXED) &&
			       queue < 2 * device->vhost.pairs
		       ? device
		       : NULL;
}

static enum rte_vhost_msg_result before_message(int vid, void *message)
{
	struct device *device = device_of(vid);

	if (device != NULL)
		cv_vhost_pause(&device->vhost);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static enum rte_vhost_msg_result after_message(int vid, void *message)
{
	struct device *device = device_of(vid);

	if (device != NULL)
		cv_vhost_resume(&device->vhost);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static struct device *make_device(int vid)
{
	static const struct rte_vhost_user_extern_ops around = {before_message, after_message};
	struct device *device = calloc(1, sizeof(*device));
	char path[PATH_MAX];

	if (device == NULL || rte_vhost_get_ifname(vid, path, sizeof(path)) != 0)
		refuse("a device", ": no memory for it, or it has no name");
	device->vhost.vid = vid;
	device->vhost.pairs = CV_VHOST_PAIRS_MAX;
	memccpy(device->vhost.path, path, '\0', sizeof(device->vhost.path) - 1); // for messages
	if (cv_vhost_make_queues(&device->vhost) != 0)
		refuse(path, ": no memory for its queues");
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < PATHS_MAX && paths[i].path != NULL; i++) {
		if (strcmp(paths[i].path, path) == 0)
			device->program = paths[i].program;
	}
	pthread_mutex_unlock(&lock);
	__atomic_store_n(&devices[vid], device, __ATOMIC_RELEASE);
	rte_vhost_extern_callback_register(vid, &around, NULL);
	return device;
}

static int new_connection(int vid)
{
	struct device *device = make_device(vid);

	return device->program != NULL && device->program->new_connection != NULL
		       ? device->program->new_connection(vid)
		       : 0;
}

static int new_device(int vid)
{
	struct device *device = device_of(vid);
	uint64_t features = 0;

	rte_vhost_get_negotiated_features(vid, &features);
	if (features & NOT_OURS) {
		fprintf(stderr,
			"convoy: vhost: %s: left to rte_vhost: its guest negotiated offloads "
			"(features 0x%" PRIx64 "); turn them off there to have convoys\n",
			device->vhost.path, features);
	} else {
		device->vhost.running = true;
		__atomic_store_n(&device->ours, true, __ATOMIC_RELEASE);
		cv_vhost_resume(&device->vhost);
	}
	return device->program->new_device != NULL ? device->program->new_device(vid) : 0;
}

static void destroy_device(int vid)
{
	struct device *device = device_of(vid);

	cv_vhost_pause(&device->vhost);
	device->vhost.running = false;
	if (device->program->destroy_device != NULL)
		device->program->destroy_device(vid);
	// The program's threads have left it.
	__atomic_store_n(&device->ours, false, __ATOMIC_RELEASE);
}

static int queue_changed(int vid, uint16_t queue, int enable)
{
	struct device *device = device_of(vid);

	if (queue < 2 * device->vhost.pairs) {
		device->vhost.enabled[queue] = enable;
		cv_vhost_pause(&device->vhost);
		cv_vhost_resume(&device->vhost);
	}
	return device->program->vring_state_changed != NULL
		       ? device->program->vring_state_changed(vid, queue, enable)
		       : 0;
}

static int features_changed(int vid, uint64_t features)
{
	const struct device *device = device_of(vid);

	return device->program->features_changed != NULL
		       ? device->program->features_changed(vid, features)
		       : 0;
}

static void report(const struct device *device)
{
	uint64_t packets[2] = {0};

	for (uint16_t i = 0; i < 2 * device->vhost.pairs; i++)
		packets[i % 2] += device->vhost.queues[i].vring.counters.packets;
	fprintf(stderr,
		"convoy: vhost: %s: %" PRIu64 " packets from the guest in %" PRIu64
		" frames, %" PRIu64 " of them convoys; %" PRIu64 " packets to it, out of %" PRIu64
		" convoys and others; %" PRIu64 " lost, there was no room\n",
		device->vhost.path, packets[1], device->frames, device->convoys, packets[0],
		device->opened, device->cut);
}

static void destroy_connection(int vid)
{
	struct device *device = device_of(vid);

	if (device->program->destroy_connection != NULL)
		device->program->destroy_connection(vid);
	report(device);
	// A thread of the program's may still look at it for a moment: it is not freed.
	__atomic_store_n(&devices[vid], NULL, __ATOMIC_RELEASE);
}

static void guest_notified(int vid)
{
	const struct device *device = device_of(vid);

	if (device != NULL && device->program->guest_notified != NULL)
		device->program->guest_notified(vid);
}

EXPORT int rte_vhost_driver_callback_register(
	const char *path, const struct rte_vhost_device_ops *const ops)
{
	static const struct rte_vhost_device_ops wrapped = {
		.new_device = new_device,
		.destroy_device = destroy_device,
		.vring_state_changed = queue_changed,
		.features_changed = features_changed,
		.new_connection = new_connection,
		.destroy_connection = destroy_connection,
		.guest_notified = guest_notified,
	};
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < PATHS_MAX && paths[i].path != NULL; i++) {
		if (strcmp(paths[i].path, path) == 0)
			break;
	}
	if (i < PATHS_MAX) {
		if (paths[i].path == NULL)
			paths[i].path = strdup(path);
		paths[i].program = ops;
	}
	pthread_mutex_unlock(&lock);
	if (i == PATHS_MAX) {
		fprintf(stderr, "convoy: vhost: %s: left to rte_vhost: more than %d sockets\n",
			path, PATHS_MAX);
		return real_register(path, ops);
	}
	return real_register(path, &wrapped);
}

// A gathered buffer becomes a convoy; one packet alone stays what it is.
static CV_INLINE void finish(
	struct rte_mbuf *mbuf, const struct cv_vring_bin *bin, const struct cv_view *first)
{
	uint32_t len = bin->len;

	if (bin->packets == 1) {
		mbuf->data_off += 2;
		len -= 2;
	} else {
		mbuf->data_off -= outer.len;
		len += outer.len;
		cv_outer_write(&outer, bin->data - outer.len, (uint8_t)bin->packets, bin->len,
			rte_cpu_to_be_16((uint16_t)(CV_CONVOY_SPORT_MIN +
						    (cv_flow_hash(first) & CV_CONVOY_SPORT_MASK))));
	}
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = len;
}

EXPORT uint16_t rte_vhost_dequeue_burst(
	int vid, uint16_t index, struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n)
{
	struct device *device = ours(vid, index);
	struct cv_vring_bin bins[BURST];
	struct cv_view views[VIEWS];
	struct cv_vhost_queue *queue;
	uint16_t ready, used = 0, first = 0;

	if (device == NULL)
		return real_dequeue(vid, index, pool, frames, n);
	queue = &device->vhost.queues[index];
	n = RTE_MIN(n, BURST);
	if (!cv_vhost_enter(queue))
		return 0;
	ready = cv_vring_ready(&queue->vring);
	if (ready > 0) {
		// The packed ring does not say how many there are.
		n = queue->vring.is_packed ? n : RTE_MIN(n, ready);
		if (rte_pktmbuf_alloc_bulk(pool, frames, n) == 0)
			used = n;
	}
	for (uint16_t i = 0; i < used; i++) {
		bins[i].data = rte_pktmbuf_mtod(frames[i], uint8_t *);
		bins[i].room = rte_pktmbuf_tailroom(frames[i]);
		// Not even two fit where nothing is to be gathered.
		bins[i].gather =
			outer.len > 0 ? RTE_MIN(bins[i].room, (uint32_t)outer.frame_max - outer.len)
				      : 0;
	}
	if (used > 0) {
		cv_vring_gather(&queue->vring, views, VIEWS, bins, &used);
		cv_vring_notify(&queue->vring);
	}
	cv_vhost_leave(queue);
	for (uint16_t i = 0; i < used; first += bins[i++].packets) {
		finish(frames[i], &bins[i], &views[first]);
		device->convoys += bins[i].packets > 1;
	}
	device->frames += used;
	if (ready > 0 && used < n)
		rte_pktmbuf_free_bulk(frames + used, n - used);
	return used;
}

// The packets of one frame. Returns how many.
static CV_INLINE unsigned unpack(struct rte_mbuf *frame, struct cv_view *views)
{
	struct cv_convoy convoy;
	struct cv_view whole = {0};

	cv_view_set(&whole, rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len);
	if (cv_convoy_walk(&convoy, views, &whole, udp_port) == CV_CONVOY_OK)
		return convoy.count;
	views[0] = whole;
	return 1;
}

// Puts packets to the guest, of which those before ends[0], ends[1] ... came in one frame each. Where
// a frame fits in part, the guest gets a moment to make room for the rest. Returns how many were put.
static CV_INLINE unsigned put(struct cv_vring *vring, const struct cv_view *views, unsigned count,
	const uint16_t *ends, uint16_t frames)
{
	unsigned took = cv_vring_enqueue(vring, views, (uint16_t)count);
	unsigned end = 0;

	for (uint16_t i = 0; i < frames && took > end; i++)
		end = ends[i];
	for (unsigned attempts = 0; CV_UNLIKELY(took < end) && attempts < ATTEMPTS; attempts++) {
		cv_vring_notify(vring);
		rte_pause();
		took += cv_vring_enqueue(vring, views + took, (uint16_t)(end - took));
	}
	return took;
}

EXPORT uint16_t rte_vhost_enqueue_burst(
	int vid, uint16_t index, struct rte_mbuf **frames, uint16_t n)
{
	struct device *device = ours(vid, index);
	struct cv_view views[VIEWS];
	struct cv_vhost_queue *queue;
	uint16_t sent = 0;

	if (device == NULL)
		return real_enqueue(vid, index, frames, n);
	queue = &device->vhost.queues[index];
	if (!cv_vhost_enter(queue))
		return 0;
	while (sent < n) {
		const uint16_t begin_at = sent;
		unsigned count = 0, took, before;
		uint16_t end = sent;
		uint16_t ends[BURST];

		while (end < n && end - begin_at < BURST &&
			count + CV_CONVOY_PACKETS_MAX <= VIEWS) {
			if (CV_UNLIKELY(frames[end]->nb_segs > 1 &&
					rte_pktmbuf_linearize(frames[end]) != 0))
				break;
			const unsigned packets = unpack(frames[end], views + count);

			device->opened += packets > 1;
			count += packets;
			ends[end++ - begin_at] = (uint16_t)count;
		}
		took = put(&queue->vring, views, count, ends, (uint16_t)(end - begin_at));
		while (sent < end && ends[sent - begin_at] <= took)
			sent++;
		if (sent == end && end > begin_at)
			continue;
		// A convoy that reached the guest in part is gone; the rest of it is lost.
		before = sent > begin_at ? ends[sent - begin_at - 1] : 0;
		if (sent < end && took > before)
			device->cut += ends[sent++ - begin_at] - took;
		break;
	}
	if (sent > 0)
		cv_vring_notify(&queue->vring);
	cv_vhost_leave(queue);
	return sent;
}

// The program's counters of a port come from here: packets, not convoys.
EXPORT int rte_vhost_vring_stats_get(
	int vid, uint16_t index, struct rte_vhost_stat *stats, unsigned n)
{
	struct device *device = ours(vid, index);
	struct rte_vhost_stat_name names[64];
	const int count = real_stats(vid, index, stats, n);
	int named;

	if (device == NULL || stats == NULL || count <= 0)
		return count;
	named = rte_vhost_vring_stats_get_names(vid, index, names, RTE_DIM(names));
	for (int i = 0; i < count && (unsigned)i < n; i++) {
		const struct cv_vring_counters *counters =
			&device->vhost.queues[index].vring.counters;

		if (named <= 0 || stats[i].id >= (uint64_t)RTE_MIN(named, (int)RTE_DIM(names)))
			continue;
		if (strstr(names[stats[i].id].name, "good_packets") != NULL)
			stats[i].value += counters->packets;
		if (strstr(names[stats[i].id].name, "good_bytes") != NULL)
			stats[i].value += counters->bytes;
	}
	return count;
}
