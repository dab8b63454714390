// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/nf_worker.h"

#include <assert.h>

#include "chain/path.h"
#include "chain/trace_hooks.h"
#include "packet/checksum.h"

#define PREFIX_LEN CV_CONVOY_PREFIX_LEN

static struct cv_path_worker *path_worker(struct cv_nf_worker *worker)
{
	return (struct cv_path_worker *)RTE_PTR_SUB(worker, offsetof(struct cv_path_worker, nf));
}

// The buffer of one packet of the burst; shared: of others as well.
static struct rte_mbuf *buffer_of(
	const struct cv_path_worker *worker, const struct cv_view *view, bool *shared)
{
	const struct cv_buffers *buffers = &worker->burst->buffers;
	unsigned at = (unsigned)(view - worker->burst->views);
	unsigned b = 0;

	assert(at < worker->burst->n);
	*shared = false;
	if (worker->moved[at] != NULL)
		return worker->moved[at];
	if (buffers->n == worker->burst->n)
		return buffers->buffers[at];
	while (at >= buffers->views[b])
		at -= buffers->views[b++];
	*shared = buffers->views[b] > 1;
	return buffers->buffers[b];
}

// May a packet become longer in its buffer, by so many bytes on either side?
static bool has_room(
	const struct rte_mbuf *buffer, const struct cv_view *view, uint16_t front, uint16_t back)
{
	const uint8_t *begin = buffer->buf_addr;
	const uint8_t *packet = cv_view_packet(view);

	return cv_nf_is_own(buffer) && packet - begin >= front &&
	       begin + buffer->buf_len - (packet + cv_view_packet_len(view)) >= back;
}

// A packet in a new buffer, with so much room on either side. NULL: there is none.
static struct rte_mbuf *copy_out(
	struct cv_path_worker *worker, const struct cv_view *view, uint16_t front, uint16_t back)
{
	const uint32_t len = cv_view_packet_len(view);
	const uint32_t at = RTE_MAX((uint32_t)front, (uint32_t)RTE_PKTMBUF_HEADROOM);
	struct rte_mbuf *copy;
	uint8_t *packet;

	copy = rte_pktmbuf_alloc(worker->pool);
	if (copy == NULL)
		return NULL;
	if (at + len + back > copy->buf_len) {
		rte_pktmbuf_free(copy);
		return NULL;
	}
	packet = (uint8_t *)copy->buf_addr + at;
	memcpy(packet, cv_view_packet(view), len);
	cv_buffer_set(copy, packet, len);
	cv_count(&worker->step->counters->copied_out, 1);
	return copy;
}

// The packet's buffer, with so much room on either side: it may be a new one.
static struct rte_mbuf *make_room(
	struct cv_path_worker *worker, struct cv_view *view, uint16_t front, uint16_t back)
{
	struct rte_mbuf *buffer, *copy;
	unsigned at;
	bool shared;

	if (worker->burst == NULL || cv_view_packet_len(view) + front + back > UINT16_MAX)
		return NULL;
	at = (unsigned)(view - worker->burst->views);
	buffer = buffer_of(worker, view, &shared);
	if (!shared && has_room(buffer, view, front, back))
		return buffer;
	copy = copy_out(worker, view, front, back);
	if (copy == NULL)
		return NULL;
	view->data = rte_pktmbuf_mtod(copy, uint8_t *) + view->before;
	if (worker->moved[at] == NULL)
		worker->moved_count++;
	else
		rte_pktmbuf_free(worker->moved[at]);
	worker->moved[at] = copy;
	worker->nf.alone = NULL;
	worker->nf.resized = true;
	return copy;
}

static void add_be16(uint8_t *at, int more)
{
	rte_be16_t value = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(cv_load_be16(at)) + more));

	memcpy(at, &value, sizeof(value));
}

// The lengths in a tunnel's outer headers follow those of the packet inside. Whoever hid them took
// them for such: unfragmented IP and UDP, whose checksum was cleared; else they have no lengths.
static void resize_tunnel(const struct cv_view *view, int more)
{
	struct cv_view outer;
	uint8_t *ip;
	unsigned header;

	cv_view_set(&outer, cv_view_packet(view), (uint16_t)cv_view_packet_len(view));
	ip = outer.data + outer.l3;
	if (outer.proto == CV_PROTO_IPV4) {
		rte_be16_t zero = 0, sum;

		header = (ip[0] & 0xfu) * 4;
		add_be16(ip + 2, more);
		memcpy(ip + 10, &zero, sizeof(zero));
		sum = cv_checksum(ip, header);
		memcpy(ip + 10, &sum, sizeof(sum));
	} else if (outer.proto == CV_PROTO_IPV6) {
		header = 40;
		add_be16(ip + 4, more);
	} else {
		return;
	}
	add_be16(ip + header + 4, more);
}

// A packet is so many bytes longer, and shown so by its view.
static void resized(struct cv_path_worker *worker, const struct cv_view *view,
	struct rte_mbuf *buffer, bool shared, int more)
{
	if (view->before > 0)
		resize_tunnel(view, more);
	if (shared) {
		rte_be16_t prefix = rte_cpu_to_be_16((uint16_t)cv_view_packet_len(view));

		memcpy(cv_view_packet(view) - PREFIX_LEN, &prefix, sizeof(prefix));
	} else {
		cv_buffer_set(buffer, cv_view_packet(view), cv_view_packet_len(view));
	}
	worker->nf.resized = true;
}

uint8_t *cv_nf_enclose_any(
	struct cv_nf_worker *nf_worker, struct cv_view *view, uint16_t front, uint16_t back)
{
	struct cv_path_worker *worker = path_worker(nf_worker);
	struct rte_mbuf *buffer = make_room(worker, view, front, back);

	if (buffer == NULL)
		return NULL;
	memmove(cv_view_packet(view) - front, cv_view_packet(view), view->before);
	view->data -= front;
	view->len += front + back;
	resized(worker, view, buffer, false, front + back);
	return view->data;
}

uint8_t *cv_nf_prepend(struct cv_nf_worker *worker, struct cv_view *view, uint16_t bytes)
{
	return cv_nf_enclose(worker, view, bytes, 0);
}

uint8_t *cv_nf_append(struct cv_nf_worker *worker, struct cv_view *view, uint16_t bytes)
{
	uint8_t *data = cv_nf_enclose(worker, view, 0, bytes);

	return data == NULL ? NULL : data + view->len - bytes;
}

static CV_NOINLINE void shrink_any(
	struct cv_path_worker *worker, struct cv_view *view, uint16_t front, uint16_t back)
{
	bool shared;
	struct rte_mbuf *buffer = buffer_of(worker, view, &shared);

	memmove(cv_view_packet(view) + front, cv_view_packet(view), view->before);
	view->data += front;
	view->len -= front + back;
	cv_view_parse(view);
	resized(worker, view, buffer, shared, -(int)(front + back));
}

static CV_INLINE bool shrink(
	struct cv_path_worker *worker, struct cv_view *view, uint16_t front, uint16_t back)
{
	struct rte_mbuf *buffer;

	if (worker->burst == NULL || view->len < front + back + CV_ETHER_LEN)
		return false;
	buffer = cv_nf_alone(&worker->nf, view);
	if (CV_UNLIKELY(buffer == NULL)) {
		shrink_any(worker, view, front, back);
		return true;
	}
	cv_view_set(view, view->data + front, (uint16_t)(view->len - front - back));
	cv_buffer_set(buffer, view->data, view->len);
	worker->nf.resized = true;
	return true;
}

bool cv_nf_adj(struct cv_nf_worker *worker, struct cv_view *view, uint16_t bytes)
{
	return shrink(path_worker(worker), view, bytes, 0);
}

bool cv_nf_trim(struct cv_nf_worker *worker, struct cv_view *view, uint16_t bytes)
{
	return shrink(path_worker(worker), view, 0, bytes);
}

bool cv_nf_cut(struct cv_nf_worker *worker, struct cv_view *view, uint16_t front, uint16_t back)
{
	return shrink(path_worker(worker), view, front, back);
}

bool cv_nf_hide(struct cv_nf_worker *nf_worker, struct cv_view *view, uint16_t bytes)
{
	if (view->before + bytes > UINT8_MAX || view->len < bytes + CV_ETHER_LEN)
		return false;
	view->data += bytes;
	view->len -= bytes;
	view->before += (uint8_t)bytes;
	cv_view_parse(view);
	nf_worker->resized = true; // as far as functions see
	return true;
}

void cv_nf_show(struct cv_nf_worker *nf_worker, struct cv_view *view)
{
	view->len += view->before;
	view->data -= view->before;
	view->before = 0;
	cv_view_parse(view);
	nf_worker->resized = true;
}

// Puts a packet at the end of those that wait. step: of a path, to go on with.
static void wait_for(struct cv_path_worker *worker, const struct cv_held *packet, uint16_t step,
	enum cv_nf_way way)
{
	struct cv_waiting *to = &worker->waiting[worker->waiting_count++];

	*to = (struct cv_waiting){.packet = *packet, .step = step};
	if (way == CV_NF_BY_PORT) {
		to->packet.path = NULL;
		to->step = 0;
	}
}

static uint16_t next_step(const struct cv_path_worker *worker)
{
	return (uint16_t)(worker->step - worker->path->steps + 1);
}

// Makes a packet that goes on from a step of like's path, and waits for that.
static uint8_t *originate(struct cv_path_worker *worker, const struct cv_held *like, uint16_t step,
	uint16_t len, enum cv_nf_way way)
{
	struct cv_held packet = *like;
	uint8_t *data;

	if (len < CV_ETHER_LEN || worker->waiting_count == CV_WAITING_MAX)
		return NULL;
	packet.buffer = rte_pktmbuf_alloc(worker->pool);
	if (packet.buffer == NULL)
		return NULL;
	data = (uint8_t *)rte_pktmbuf_append(packet.buffer, len);
	if (data == NULL) {
		rte_pktmbuf_free(packet.buffer);
		return NULL;
	}
	memset(data, 0, len);
	wait_for(worker, &packet, step, way);
	cv_count(&worker->step->counters->originated, 1);
	return data;
}

uint8_t *cv_nf_originate(
	struct cv_nf_worker *nf_worker, uint16_t len, uint8_t in, uint8_t out, enum cv_nf_way way)
{
	struct cv_path_worker *worker = path_worker(nf_worker);
	const struct cv_held like = {.path = worker->path, .in = in, .out = out};

	return originate(worker, &like, next_step(worker), len, way);
}

static __rte_noinline void trace_drop(
	const struct cv_path_worker *worker, const struct cv_held *held, unsigned reason)
{
	const struct cv_view view = cv_nf_held_view(held);

	cv_trace_held_dropped(
		worker->path, (unsigned)(worker->step - worker->path->steps), &view, reason);
}

void cv_nf_drop_originated(struct cv_nf_worker *nf_worker, const uint8_t *packet, unsigned reason)
{
	struct cv_path_worker *worker = path_worker(nf_worker);
	unsigned at = worker->waiting_count;
	struct rte_mbuf *buffer;

	do {
		assert(at > worker->waiting_first);
		buffer = worker->waiting[--at].packet.buffer;
	} while (rte_pktmbuf_mtod(buffer, const uint8_t *) != packet);
	if (cv_trace_is_on())
		trace_drop(worker, &worker->waiting[at].packet, reason);
	worker->waiting_count--;
	memmove(&worker->waiting[at], &worker->waiting[at + 1],
		(worker->waiting_count - at) * sizeof(worker->waiting[0]));
	rte_pktmbuf_free(buffer);
	cv_count(&worker->step->counters->drops[reason], 1);
}

uint8_t *cv_nf_originate_beside(struct cv_nf_worker *nf_worker, const struct cv_held *held,
	uint16_t len, enum cv_nf_way way)
{
	return originate(path_worker(nf_worker), held, held->step, len, way);
}

bool cv_nf_trim_held(const struct cv_held *held, uint16_t bytes)
{
	return rte_pktmbuf_trim(held->buffer, bytes) == 0;
}

bool cv_nf_hold(struct cv_nf_worker *nf_worker, const struct cv_view *view, struct cv_held *held)
{
	struct cv_path_worker *worker = path_worker(nf_worker);
	struct rte_mbuf *buffer;
	bool shared;

	if (worker->burst == NULL)
		return false;
	buffer = buffer_of(worker, view, &shared);
	if (shared || rte_mbuf_refcnt_read(buffer) > 1 || !RTE_MBUF_DIRECT(buffer)) {
		buffer = copy_out(worker, view, 0, 0);
		if (buffer == NULL)
			return false;
	} else {
		rte_mbuf_refcnt_update(buffer, 1); // the burst frees its own
	}
	*held = (struct cv_held){
		.buffer = buffer,
		.path = worker->path,
		.step = next_step(worker),
		.in = view->in,
		.out = view->out,
		.before = view->before,
	};
	return true;
}

struct cv_view cv_nf_held_view(const struct cv_held *held)
{
	struct cv_view view = {.in = held->in, .out = held->out};
	uint8_t *data = rte_pktmbuf_mtod(held->buffer, uint8_t *);

	cv_view_set(&view, data + held->before, (uint16_t)(held->buffer->pkt_len - held->before));
	view.before = held->before;
	return view;
}

// Where a held packet goes on: behind the function that held it, which may stand elsewhere in the path
// by now; at its end if it is not there any more.
static uint16_t step_behind(const struct cv_path_worker *worker, const struct cv_held *held)
{
	const struct cv_path *path = held->path;
	const void *instance = worker->step->instance;

	if (CV_LIKELY(
		    held->step <= path->length && path->steps[held->step - 1].instance == instance))
		return held->step;
	for (unsigned i = 0; i < path->length; i++)
		if (path->steps[i].instance == instance)
			return (uint16_t)(i + 1);
	return (uint16_t)path->length;
}

bool cv_nf_release(struct cv_nf_worker *nf_worker, const struct cv_held *held, enum cv_nf_way way)
{
	struct cv_path_worker *worker = path_worker(nf_worker);

	if (worker->waiting_count == CV_WAITING_MAX)
		return false;
	wait_for(worker, held, step_behind(worker, held), way);
	cv_count(&worker->step->counters->released, 1);
	return true;
}

void cv_nf_drop_held(struct cv_nf_worker *nf_worker, const struct cv_held *held, unsigned reason)
{
	struct cv_path_worker *worker = path_worker(nf_worker);

	if (cv_trace_is_on())
		trace_drop(worker, held, reason);
	cv_count(&worker->step->counters->drops[reason], 1);
	cv_count(&worker->step->counters->released, 1);
	cv_nf_free_held(held);
}

void cv_nf_free_held(const struct cv_held *held)
{
	rte_pktmbuf_free(held->buffer);
}
