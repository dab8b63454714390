// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a function may do with its packets beyond giving verdicts and rewriting them: make them longer or
// shorter, make new ones, and keep some for later. The words are DPDK's (prepend, adj, append, trim).
//
// A function calls these from its process() and tick() only, with the worker that it was given.
// Everything is bounded, and counted by the path: received + originated = sent + dropped +
// absorbed + held.
#ifndef CV_NF_WORKER_H
#define CV_NF_WORKER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "packet/compiler.h"
#include "packet/view.h"

struct cv_path;

// Where a packet goes that a function makes, or gives back.
enum cv_nf_way {
	CV_NF_BEHIND, // through the functions behind this one, and on as their packets do
	CV_NF_BY_PORT, // out by its port, past all functions
};

// A packet that a function keeps: in a buffer of its own. The function bounds how many, and for how
// long; each goes back by cv_nf_release() or cv_nf_drop_held(), to the worker that it came from.
struct cv_held {
	struct rte_mbuf *buffer;
	const struct cv_path *path; // where it was taken from
	uint16_t step;
	uint8_t in, out; // as the view had them; the function may change out
	uint8_t before;
};

// What runs a function: one of the node's workers.
struct cv_nf_worker {
	unsigned index; // less than the environment's workers
	uint64_t now; // TSC ticks, when the burst came to the function
	// For the calls below: the burst's packets, and the buffers of all, where each is alone in its own and
	// none was copied out; NULL: it is not so.
	const struct cv_view *first;
	unsigned count;
	struct rte_mbuf *const *alone;
	bool resized; // some packet of the burst is not as long as it was
};

// Whether a buffer is one packet's, whole, in memory of its own.
static CV_INLINE bool cv_nf_is_own(const struct rte_mbuf *buffer)
{
	return rte_mbuf_refcnt_read(buffer) == 1 && RTE_MBUF_DIRECT(buffer) && buffer->nb_segs == 1;
}

// The buffer of a packet of the burst that is alone in it, with nothing hidden before it, as most are. NULL: any
// other.
static CV_INLINE struct rte_mbuf *cv_nf_alone(
	const struct cv_nf_worker *worker, const struct cv_view *view)
{
	if (CV_UNLIKELY(worker->alone == NULL || view->before != 0))
		return NULL;
	assert(view >= worker->first && view < worker->first + worker->count);
	return worker->alone[view - worker->first];
}

// Makes room for so many bytes before, or behind, a packet. Returns where it begins, or where the new
// bytes do; NULL: there is no room or no buffer, and nothing has changed. A packet that shares a
// buffer is copied out of it; its neighbours stay where they are. The new bytes are undefined: write
// them, then call cv_view_parse() if headers have changed.
uint8_t *cv_nf_prepend(struct cv_nf_worker *worker, struct cv_view *view, uint16_t bytes);
uint8_t *cv_nf_append(struct cv_nf_worker *worker, struct cv_view *view, uint16_t bytes);

// Both at once, or neither. Returns where the packet begins now, or NULL. _any: the long way, for packets that
// are not alone in a buffer with room.
uint8_t *cv_nf_enclose_any(
	struct cv_nf_worker *worker, struct cv_view *view, uint16_t front, uint16_t back);
static CV_INLINE uint8_t *cv_nf_enclose(
	struct cv_nf_worker *worker, struct cv_view *view, uint16_t front, uint16_t back)
{
	struct rte_mbuf *buffer = cv_nf_alone(worker, view);
	uint32_t begin;

	if (CV_UNLIKELY(buffer == NULL))
		return cv_nf_enclose_any(worker, view, front, back);
	begin = (uint32_t)(view->data - (const uint8_t *)buffer->buf_addr);
	if (CV_UNLIKELY(!cv_nf_is_own(buffer) || begin < front ||
			begin + view->len + back > buffer->buf_len))
		return cv_nf_enclose_any(worker, view, front, back);
	view->data -= front;
	view->len += front + back;
	buffer->data_off = (uint16_t)(begin - front);
	buffer->pkt_len = buffer->data_len = view->len;
	worker->resized = true;
	return view->data;
}

// Takes bytes away from a packet's beginning (adj), or from its end (trim). False, and nothing has
// changed: fewer than an Ethernet header would be left. It stays in its buffer.
bool cv_nf_adj(struct cv_nf_worker *worker, struct cv_view *view, uint16_t bytes);
bool cv_nf_trim(struct cv_nf_worker *worker, struct cv_view *view, uint16_t bytes);

// Both at once, or neither.
bool cv_nf_cut(struct cv_nf_worker *worker, struct cv_view *view, uint16_t front, uint16_t back);

// Takes a packet's first bytes, a tunnel's headers, out of sight of the functions behind: they stay before
// it in its buffer, and it leaves with them. If the packet becomes longer or shorter, the lengths in them
// follow, which are those of an IP and a UDP header or none. False, and nothing has changed: more than 255
// would be hidden, or fewer than an Ethernet header left. cv_nf_show() shows all that is hidden.
bool cv_nf_hide(struct cv_nf_worker *worker, struct cv_view *view, uint16_t bytes);
void cv_nf_show(struct cv_nf_worker *worker, struct cv_view *view);

// A new packet of len bytes, at least an Ethernet header, which came in by a port and will leave by
// another. Returns its bytes, to be written before process() or tick() returns; NULL: no buffer, too
// long, or too many wait already.
uint8_t *cv_nf_originate(
	struct cv_nf_worker *worker, uint16_t len, uint8_t in, uint8_t out, enum cv_nf_way way);

// Drops a packet that was made in this call of process() or tick(), by its bytes, for the reason of this
// index in the function's list.
void cv_nf_drop_originated(struct cv_nf_worker *worker, const uint8_t *packet, unsigned reason);

// Keeps a packet, whose verdict must be CV_HELD then. False: no buffer, it may not be.
bool cv_nf_hold(struct cv_nf_worker *worker, const struct cv_view *view, struct cv_held *held);

// A held packet's view, to look at it or to write to it.
struct cv_view cv_nf_held_view(const struct cv_held *held);

// A new packet of len bytes, as cv_nf_originate(), that goes where a held packet would; before that one
// is given back.
uint8_t *cv_nf_originate_beside(
	struct cv_nf_worker *worker, const struct cv_held *held, uint16_t len, enum cv_nf_way way);

// Takes bytes away from a held packet's end. False: it does not have so many.
bool cv_nf_trim_held(const struct cv_held *held, uint16_t bytes);

// Gives a held packet back. False: too many wait already, and it is still held.
bool cv_nf_release(struct cv_nf_worker *worker, const struct cv_held *held, enum cv_nf_way way);

// Drops a held packet, for the reason of this index in the function's list.
void cv_nf_drop_held(struct cv_nf_worker *worker, const struct cv_held *held, unsigned reason);

// Frees a held packet of a function that is being destroyed: it stays counted as held.
void cv_nf_free_held(const struct cv_held *held);

#endif
