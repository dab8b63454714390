// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind pcap: receives the packets of a capture file once (read), and writes what it is sent into
// another (write). Without read it receives nothing and ends at once; without write it swallows.
//
// The whole capture is checked before anything starts; then it is streamed, so that its size does
// not matter. A packet that came from a capture is written with the time it had there, every
// other with the time at which it was sent. Each burst is in the file when tx returns: a killed
// node leaves a readable capture of all that had left.
//
// Hosts capture before their network card cuts and after it has joined: frames of up to 64 KiB are
// common. One that does not fit into a buffer of the node's gets a long one, so that functions see
// it in one piece. What is longer than LONG_BYTES comes in several segments.
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_mbuf_dyn.h>
#include <rte_spinlock.h>

#include "capture/capture.h"
#include "port/kind.h"
#include "port/packet_pool.h"
#include "port/port_log.h"
#include "stats/counter.h"

#define LONG_BYTES UINT16_MAX // the most that a buffer, and a packet's view, can have
#define LONG_BUFFERS 256 // where all are under way, the capture waits

struct pcap_port {
	struct cv_port port;
	struct rte_mempool *pool;
	struct cv_capture *in; // NULL: none
	struct cv_capture_packet next; // read, but not yet received
	bool has_next;
	// Written by the worker that receives, read by others: relaxed atomics.
	bool at_end;
	bool damaged; // the capture changed after it was checked
	rte_spinlock_t lock; // of all below: senders share the file
	struct cv_capture_writer *out; // NULL: none
	// Written with the lock held, read by others: relaxed atomics.
	int write_error; // the first -errno of a write, 0: none
	uint64_t written;
	uint8_t linear[CV_CAPTURE_LONGEST]; // for packets of several segments
};

// Where a packet from a capture carries its time, and the flag that says that it does.
static int time_offset = -1;
static uint64_t time_flag;

// For frames that no buffer of the node's can hold. It stays until the process ends: when a port
// is closed, others may still have packets of it.
static struct rte_mempool *long_pool;

// Says whether path can be created or emptied, without doing it.
static int check_writable(const char *path, struct cv_error *error)
{
	char parent[PATH_MAX];
	struct stat st;

	if (snprintf(parent, sizeof(parent), "%s", path) >= (int)sizeof(parent)) {
		cv_error_set(error, "write: %.64s...: is too long", path);
		return -EINVAL;
	}
	if (stat(path, &st) == 0) {
		if (!S_ISREG(st.st_mode)) {
			cv_error_set(error, "write: %s: is not a regular file; name another", path);
			return -EINVAL;
		}
		if (access(path, W_OK) != 0) {
			cv_error_set(error, "write: %s: %s; let this user write it", path,
				strerror(errno));
			return -EINVAL;
		}
		return 0;
	}
	if (access(dirname(parent), W_OK | X_OK) != 0) {
		cv_error_set(error, "write: %s: its directory: %s; make it, or let this user write",
			path, strerror(errno));
		return -EINVAL;
	}
	return 0;
}

struct config {
	const char *read, *write; // NULL: not given
};

static const struct cv_param params[] = {
	{"read", CV_FILE, CV_AT(struct config, read)},
	{"write", CV_TEXT, CV_AT(struct config, write)},
	{0},
};

static int check(struct cv_port_config *port, struct cv_error *error)
{
	const struct config *config = port->own;
	const char *read = config->read;
	const char *write = config->write;
	struct cv_error why = {""};
	struct stat a, b;

	if (read == NULL && write == NULL) {
		cv_error_set(error, "read, write: both are missing; give one of them or both");
		return -EINVAL;
	}
	if (read != NULL && cv_capture_check(read, NULL, &why) != 0) {
		cv_error_set(error, "read: %s", why.text);
		return -EINVAL;
	}
	if (write == NULL)
		return 0;
	if (check_writable(write, error) != 0)
		return -EINVAL;
	if (read != NULL && stat(read, &a) == 0 && stat(write, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino) {
		cv_error_set(error, "write: %s: is the file that is read; name another", write);
		return -EINVAL;
	}
	return 0;
}

// An empty packet with room for len bytes in one piece, if there is such a buffer.
static struct rte_mbuf *make_room(struct rte_mempool *pool, uint32_t len)
{
	const uint32_t room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	struct rte_mbuf *packet;

	if (len <= room || len > LONG_BYTES)
		return rte_pktmbuf_alloc(pool);
	packet = rte_pktmbuf_alloc(long_pool);
	if (packet != NULL) // the longest have less headroom than others, or none
		packet->data_off = RTE_MIN(packet->data_off, (uint16_t)(packet->buf_len - len));
	return packet;
}

// Copies captured bytes into a packet, of several segments if they do not fit into one. NULL: there
// are no buffers now.
static struct rte_mbuf *make_packet(
	struct rte_mempool *pool, const uint8_t *data, uint32_t len, uint64_t time_ns)
{
	struct rte_mbuf *first = make_room(pool, len);
	struct rte_mbuf *last = first;

	if (first == NULL)
		return NULL;
	*RTE_MBUF_DYNFIELD(first, time_offset, uint64_t *) = time_ns;
	first->ol_flags |= time_flag;
	for (;;) {
		const uint16_t here = (uint16_t)RTE_MIN(len, (uint32_t)rte_pktmbuf_tailroom(last));
		struct rte_mbuf *more;

		memcpy(rte_pktmbuf_mtod(last, uint8_t *), data, here);
		last->data_len = here;
		data += here;
		len -= here;
		if (last != first)
			first->nb_segs++;
		first->pkt_len += here;
		if (len == 0)
			return first;
		more = rte_pktmbuf_alloc(pool);
		if (more == NULL) {
			rte_pktmbuf_free(first);
			return NULL;
		}
		last->next = more;
		last = more;
	}
}

static uint16_t rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	struct pcap_port *pcap = (struct pcap_port *)port;
	struct cv_capture_packet *next = &pcap->next;
	uint16_t done;

	if (queue != 0 || pcap->at_end)
		return 0;
	for (done = 0; done < n; done++) {
		if (!pcap->has_next) {
			int rc = cv_capture_next(pcap->in, next, NULL);

			if (rc != 1) {
				__atomic_store_n(&pcap->damaged, rc < 0, __ATOMIC_RELAXED);
				__atomic_store_n(&pcap->at_end, true, __ATOMIC_RELAXED);
				break;
			}
			pcap->has_next = true;
		}
		packets[done] = make_packet(pcap->pool, next->data, next->captured, next->time_ns);
		if (packets[done] == NULL) // no buffers: again when some came back
			break;
		pcap->has_next = false;
	}
	return done;
}

static uint16_t rx_nothing(
	struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void note_write_error(struct pcap_port *pcap, int rc)
{
	if (rc == 0 || pcap->write_error != 0)
		return;
	__atomic_store_n(&pcap->write_error, rc, __ATOMIC_RELAXED);
	// The one line that a worker ever writes: the file will not get everything.
	cv_port_log(&pcap->port, "cannot write: %s; packets wait, then drop", strerror(-rc));
}

static uint16_t tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct pcap_port *pcap = (struct pcap_port *)port;
	const uint64_t now = now_ns();
	uint16_t done;
	int rc = 0;

	rte_spinlock_lock(&pcap->lock);
	for (done = 0; done < n && rc == 0; done++) {
		const struct rte_mbuf *packet = packets[done];
		struct cv_capture_packet record = {
			.time_ns = now,
			.captured = RTE_MIN(packet->pkt_len, (uint32_t)sizeof(pcap->linear)),
			.wire = packet->pkt_len,
		};

		if ((packet->ol_flags & time_flag) != 0)
			record.time_ns = *RTE_MBUF_DYNFIELD(packet, time_offset, const uint64_t *);
		record.data = rte_pktmbuf_read(packet, 0, record.captured, pcap->linear);
		rc = cv_capture_append(pcap->out, &record);
	}
	if (rc != 0)
		done--; // the one that failed stays with the caller
	else
		rc = cv_capture_flush(pcap->out); // what cannot be written now is held
	note_write_error(pcap, rc);
	cv_count(&pcap->written, done);
	rte_spinlock_unlock(&pcap->lock);
	rte_pktmbuf_free_bulk(packets, done);
	return done;
}

static uint16_t tx_nowhere(
	struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	rte_pktmbuf_free_bulk(packets, n);
	return n;
}

static bool ended(const struct cv_port *port)
{
	const struct pcap_port *pcap = (const struct pcap_port *)port;

	return __atomic_load_n(&pcap->at_end, __ATOMIC_RELAXED);
}

static json_t *info(const struct cv_port *port)
{
	const struct pcap_port *pcap = (const struct pcap_port *)port;
	const int error = __atomic_load_n(&pcap->write_error, __ATOMIC_RELAXED);
	json_t *object = json_object();

	if (pcap->in != NULL) {
		// Another thread's counters: each is right by itself, or a moment old.
		const struct cv_capture_summary *read = cv_capture_read_so_far(pcap->in);

		json_object_set_new(
			object, "read_pkts", json_integer((json_int_t)cv_counted(&read->packets)));
		json_object_set_new(
			object, "read_bytes", json_integer((json_int_t)cv_counted(&read->bytes)));
		json_object_set_new(
			object, "read_cut_pkts", json_integer((json_int_t)cv_counted(&read->cut)));
		json_object_set_new(object, "ended", json_boolean(ended(port)));
		json_object_set_new(object, "damaged",
			json_boolean(__atomic_load_n(&pcap->damaged, __ATOMIC_RELAXED)));
	}
	if (pcap->out != NULL) {
		json_object_set_new(object, "written_pkts",
			json_integer((json_int_t)cv_counted(&pcap->written)));
		if (error != 0)
			json_object_set_new(object, "write_error", json_string(strerror(-error)));
	}
	return object;
}

static void stop(struct cv_port *port)
{
	struct pcap_port *pcap = (struct pcap_port *)port;

	if (pcap->damaged)
		cv_port_log(port, "the capture that it read was changed meanwhile, and is damaged");
	rte_spinlock_lock(&pcap->lock);
	if (pcap->out != NULL)
		note_write_error(pcap, cv_capture_flush(pcap->out));
	rte_spinlock_unlock(&pcap->lock);
}

static void close_port(struct cv_port *port)
{
	struct pcap_port *pcap = (struct pcap_port *)port;
	struct cv_error why = {""};

	cv_capture_close(pcap->in);
	if (cv_capture_finish(pcap->out, &why) != 0)
		cv_port_log(port, "%s", why.text);
	free(port);
}

// Makes the pool of long buffers, once. Opening ports is one thread's.
static int need_long_pool(struct cv_error *error)
{
	if (long_pool == NULL)
		long_pool = cv_packet_pool_create(
			"long_packets", LONG_BUFFERS - 1, 0, LONG_BYTES, true);
	if (long_pool != NULL)
		return 0;
	cv_error_set(error,
		"read: no memory for %u buffers of %u bytes for long frames: %s; raise memory.mb "
		"(a "
		"plan's eal.memory_mb)",
		LONG_BUFFERS, LONG_BYTES, rte_strerror(rte_errno));
	return -ENOMEM;
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct pcap_port *pcap = (struct pcap_port *)port;
	const struct config *config = args->config->own;
	const char *read = config->read;
	const char *write = config->write;
	struct cv_error why = {""};

	if (time_offset < 0 && rte_mbuf_dyn_rx_timestamp_register(&time_offset, &time_flag) != 0) {
		cv_error_set(error, "no room in the packets for their time: %s",
			rte_strerror(rte_errno));
		return -ENOMEM;
	}
	if (read != NULL) {
		if (need_long_pool(error) != 0)
			return -ENOMEM;
		pcap->in = cv_capture_open(read, &why);
		if (pcap->in == NULL) {
			cv_error_set(error, "read: %s", why.text);
			return -EINVAL;
		}
	}
	if (write != NULL) {
		pcap->out = cv_capture_create(write, &why);
		if (pcap->out == NULL) {
			cv_error_set(error, "write: %s", why.text);
			cv_capture_close(pcap->in);
			return -EINVAL;
		}
	}
	rte_spinlock_init(&pcap->lock);
	pcap->pool = args->pool;
	pcap->at_end = pcap->in == NULL;
	port->rx = pcap->in != NULL ? rx : rx_nothing;
	port->tx = pcap->out != NULL ? tx : tx_nowhere;
	port->ended = ended;
	port->info = info;
	port->stop = stop;
	port->close = close_port;
	port->rx_queues = 1;
	return 0;
}

const struct cv_port_kind cv_port_pcap = {
	.name = "pcap",
	.params = params,
	.config_size = sizeof(struct config),
	.mtu = CV_PORT_ANY_MTU,
	.any_length = true,
	.check = check,
	.open = open_port,
	.size = sizeof(struct pcap_port),
};
