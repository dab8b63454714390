// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/tx.h"

#include <rte_cycles.h>

#include "chain/lookalike.h"
#include "chain/frame_builder.h"
#include "chain/tx_buffer.h"
#include "chain/repack.h"
#include "chain/trace_hooks.h"

void cv_tx_drop(struct cv_burst *burst, struct cv_port_counters *counters, enum cv_drop_reason why)
{
	if (cv_trace_is_on())
		cv_trace_dropped(burst->views, burst->n, why);
	cv_count(&counters->drops[why], burst->n);
	rte_pktmbuf_free_bulk(burst->buffers.buffers, burst->buffers.n);
}

// The next hops of a burst's packets.
static void find_next_hops(struct cv_tx *tx, const struct cv_burst *burst, uint16_t *next_hops)
{
	uint32_t keys[CV_BURST_MAX];

	if (tx->table == NULL)
		memset(next_hops, 0xff, burst->n * sizeof(next_hops[0])); // CV_NEXT_HOP_NONE
	for (unsigned at = 0; tx->table != NULL && at < burst->n; at += CV_BURST_MAX) {
		uint16_t n = (uint16_t)RTE_MIN(burst->n - at, (unsigned)CV_BURST_MAX);

		for (unsigned i = 0; i < n; i++)
			keys[i] = cv_next_hop_key_of(&burst->views[at + i]);
		cv_next_hop_find(tx->table, keys, next_hops + at, n);
		if (CV_UNLIKELY(cv_next_hop_spreads(tx->table)))
			cv_next_hop_choose(tx->table, &burst->views[at], next_hops + at, n);
	}
}

// Would aggregating these packets cost more than it saves? So it is where all are so long that too
// few share a frame, and all may be sent as they are.
static bool not_worth_aggregating(
	const struct cv_tx *tx, const struct cv_burst *burst, const uint16_t *next_hops)
{
	uint8_t first = burst->views[0].out;

	for (unsigned i = 0; i < burst->n; i++) {
		const struct cv_next_hop *to;

		if (next_hops[i] == CV_NEXT_HOP_NONE) {
			if (CV_UNLIKELY(cv_lookalike(tx, &burst->views[i])))
				return false;
			continue;
		}
		to = &tx->next_hops[next_hops[i]];
		if (cv_view_packet_len(&burst->views[i]) <= to->outer.share_max ||
			to->port != first || cv_lookalike_to(tx, &burst->views[i], next_hops[i]))
			return false;
	}
	return true;
}

// Would a next hop take one of a burst's packets for a convoy? fast_path: all are untagged IPv4.
static CV_HOT bool has_lookalike_to(
	const struct cv_tx *tx, const struct cv_burst *burst, uint16_t next_hop, bool fast_path)
{
	const rte_be16_t port = tx->next_hops[next_hop].outer.udp_port;
	const unsigned dport = CV_ETHER_LEN + CV_IPV4_LEN + 2;
	unsigned i = 0;

	// Most are told by two bytes, which are where they are in all of them.
	if (CV_LIKELY(fast_path && burst->shortest >= dport + 2))
		while (i < burst->n && cv_load_be16(burst->views[i].data + dport) != port)
			i++;
	for (; i < burst->n; i++)
		if (CV_UNLIKELY(cv_lookalike_to(tx, &burst->views[i], next_hop)))
			return true;
	return false;
}

// The same where all go to one next hop: the shortest decides.
static bool burst_not_worth_aggregating(
	const struct cv_tx *tx, const struct cv_burst *burst, uint16_t next_hop, bool fast_path)
{
	const struct cv_next_hop *to = &tx->next_hops[next_hop];

	return burst->shortest > to->outer.share_max && to->port == burst->views[0].out &&
	       !has_lookalike_to(tx, burst, next_hop, fast_path);
}

// Of a burst that leaves by one port and none of which has a next hop: must some be dropped?
static CV_INLINE bool has_lookalike(const struct cv_tx *tx, const struct cv_burst *burst)
{
	if (CV_LIKELY(tx->convoy_ports[burst->views[0].out] == 0))
		return false;
	for (unsigned i = 0; i < burst->n; i++)
		if (CV_UNLIKELY(cv_lookalike(tx, &burst->views[i])))
			return true;
	return false;
}

static void count_unaggregated(struct cv_tx *tx, const uint16_t *next_hops, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (next_hops[i] != CV_NEXT_HOP_NONE)
			cv_count(&tx->next_hop_counters[next_hops[i]].sizes[1], 1);
}

// What is set in the second word of all of a burst's views, and of any: all of its fields bit by bit.
static CV_HOT void combine(const struct cv_burst *burst, struct cv_view *all, struct cv_view *any)
{
	// Two views at a time; the first words are of no use.
	typedef uint64_t pair __attribute__((vector_size(32)));
	const struct cv_view *views = burst->views;
	pair ones = {~0ull, ~0ull, ~0ull, ~0ull}, bits = {0};
	uint64_t word, all_bits, any_bits;

	for (unsigned i = 0; i + 1u < burst->n; i += 2) {
		const pair next = *(const pair *)(const void *)&views[i];

		ones &= next;
		bits |= next;
	}
	memcpy(&word, &views[burst->n - 1u].len, sizeof(word));
	all_bits = ones[1] & ones[3] & word;
	any_bits = bits[1] | bits[3] | word;
	memcpy(&all->len, &all_bits, sizeof(word));
	memcpy(&any->len, &any_bits, sizeof(word));
}

// What is known of a burst as a whole.
struct summary {
	bool same_port; // all leave by the first one's port, which takes them as they are
	bool fast_path; // all are untagged IPv4
	uint32_t bytes; // of all of them, with the tunnels before them
};

static CV_INLINE struct summary summarize(const struct cv_tx *tx, const struct cv_burst *burst)
{
	struct summary summary = {.bytes = burst->bytes};
	struct cv_view all, any;

	combine(burst, &all, &any);
	if (CV_UNLIKELY(any.before != 0))
		for (unsigned i = 0; i < burst->n; i++)
			summary.bytes += burst->views[i].before;
	summary.same_port =
		all.out == any.out && burst->longest <= cv_frame_max(tx->ports[all.out]);
	summary.fast_path = all.proto == CV_PROTO_IPV4 && any.proto == CV_PROTO_IPV4 &&
			    all.l3 == CV_ETHER_LEN && any.l3 == CV_ETHER_LEN && any.before == 0;
	return summary;
}

// A burst that leaves by a port where everything goes to one next hop.
static void tx_to_next_hop(
	struct cv_tx *tx, struct cv_burst *burst, uint16_t next_hop, const struct summary *summary)
{
	uint8_t out = burst->views[0].out;
	uint16_t n = burst->n;

	if (cv_trace_is_on())
		cv_trace_next_hops(tx->table, burst, NULL, next_hop);
	if (burst_not_worth_aggregating(tx, burst, next_hop, summary->fast_path)) {
		cv_builder_close_port(tx, out);
		if (cv_tx_buffer_send_burst(tx, out, burst, summary->bytes)) {
			cv_count(&tx->next_hop_counters[next_hop].sizes[1], n);
			return;
		}
	}
	cv_repack_to(tx, burst, next_hop);
}

// A burst whose packets' next hops, if they have any, differ.
static void tx_by_next_hop(struct cv_tx *tx, struct cv_burst *burst, const struct summary *summary)
{
	uint8_t first = burst->views[0].out;
	uint16_t next_hops[CV_BURST_VIEWS];
	uint16_t n = burst->n;

	find_next_hops(tx, burst, next_hops);
	if (cv_trace_is_on())
		cv_trace_next_hops(tx->table, burst, next_hops, CV_NEXT_HOP_NONE);
	if (summary->same_port && not_worth_aggregating(tx, burst, next_hops)) {
		cv_builder_close_port(tx, first);
		if (cv_tx_buffer_send_burst(tx, first, burst, summary->bytes)) {
			count_unaggregated(tx, next_hops, n);
			return;
		}
	}
	cv_repack(tx, burst, next_hops);
}

void cv_tx_burst(struct cv_tx *tx, struct cv_burst *burst)
{
	uint8_t first = burst->views[0].out;
	uint16_t single_next_hop = CV_NEXT_HOP_NONE;
	struct summary summary;
	bool has_next_hop;

	if (tx->next_hop_rcu != NULL && tx->table == NULL) {
		tx->changes = cv_next_hop_rcu_changes(tx->next_hop_rcu);
		tx->table = cv_next_hop_rcu_table(tx->next_hop_rcu);
		tx->next_hops = cv_next_hop_at(tx->table, 0);
	}
	summary = summarize(tx, burst);
	has_next_hop = tx->table != NULL && cv_next_hop_of_port_exists(tx->table, first);
	if (CV_LIKELY(summary.same_port && !has_next_hop && !has_lookalike(tx, burst)) &&
		CV_LIKELY(cv_tx_buffer_send_burst(tx, first, burst, summary.bytes)))
		return;
	if (summary.same_port && has_next_hop)
		single_next_hop = cv_next_hop_of_port(tx->table, first);
	if (single_next_hop != CV_NEXT_HOP_NONE)
		tx_to_next_hop(tx, burst, single_next_hop, &summary);
	else
		tx_by_next_hop(tx, burst, &summary);
}

// Bytes that the shortest packet takes in a frame: one with less room is full.
#define PACKET_BYTES_MIN (CV_CONVOY_PREFIX_LEN + 60u)

// May the frame to a next hop stay over another poll iteration, as long as the one that ends now?
static bool may_wait(struct cv_tx *tx, uint16_t next_hop, uint64_t begun)
{
	struct cv_frame_builder *builder = &tx->builders[next_hop];
	const uint64_t wait = tx->next_hops[next_hop].wait;
	uint64_t now;

	if (CV_LIKELY(wait == 0) || builder->buffer == NULL || builder->rest ||
		builder->frame.room < PACKET_BYTES_MIN)
		return false;
	if (builder->due == 0)
		builder->due = begun + wait;
	now = rte_rdtsc();
	return now + (now - begun) < builder->due;
}

// Closes the frames being built, all or those that may not wait. Returns whether there were any.
static bool close_frames(struct cv_tx *tx, uint64_t begun)
{
	// The writer of the table waits for this worker, and traced packets end with their iteration.
	const bool all = begun == CV_TX_ALL ||
			 cv_next_hop_rcu_changes(tx->next_hop_rcu) != tx->changes ||
			 (cv_trace_is_on() && cv_trace_has_packets());
	const unsigned count = tx->building_count;
	unsigned waiting = 0;

	for (unsigned i = 0; i < count; i++) {
		const uint16_t next_hop = tx->building[i];

		if (!all && may_wait(tx, next_hop, begun)) {
			tx->building[waiting++] = next_hop;
			continue;
		}
		cv_builder_close(tx, next_hop);
		tx->builders[next_hop].listed = false;
	}
	tx->building_count = waiting;
	return waiting < count;
}

bool cv_tx_flush(struct cv_tx *tx, uint64_t begun)
{
	const bool closed = tx->building_count > 0 && close_frames(tx, begun);

	for (unsigned i = 0; i < tx->ports_count; i++)
		cv_tx_buffer_flush(tx, (uint8_t)i);
	if (tx->next_hop_rcu != NULL && !cv_tx_waits(tx)) {
		tx->table = NULL;
		cv_next_hop_rcu_quiescent(tx->next_hop_rcu, tx->tx_queue);
	}
	return closed;
}
