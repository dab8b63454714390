// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/depart.h"
#include "chain/lookalike.h"
#include "chain/open_frame.h"
#include "chain/outbox.h"
#include "chain/repack.h"

void cv_depart_drop(struct cv_burst *burst, struct cv_port_counters *counters, enum cv_hop_drop why)
{
	cv_count(&counters->drops[why], burst->n);
	rte_pktmbuf_free_bulk(burst->buffers.buffers, burst->buffers.n);
}

// The next hops of a burst's packets.
static void find_hops(struct cv_depart *depart, const struct cv_burst *burst, uint16_t *hops)
{
	uint32_t keys[CV_BURST_MAX];

	if (depart->table == NULL)
		memset(hops, 0xff, burst->n * sizeof(hops[0])); // CV_NEXT_HOP_NONE
	for (unsigned at = 0; depart->table != NULL && at < burst->n; at += CV_BURST_MAX) {
		uint16_t n = (uint16_t)RTE_MIN(burst->n - at, (unsigned)CV_BURST_MAX);

		for (unsigned i = 0; i < n; i++)
			keys[i] = cv_next_hop_key_of(&burst->views[at + i]);
		cv_next_hop_find(depart->table, keys, hops + at, n);
	}
}

// Would it cost more than it saves to have these packets travel together? Where all of them are so long
// that too few share a frame, and may travel as they are.
static bool better_alone(
	const struct cv_depart *depart, const struct cv_burst *burst, const uint16_t *hops)
{
	uint8_t first = burst->views[0].out;

	for (unsigned i = 0; i < burst->n; i++) {
		const struct cv_next_hop *to;

		if (hops[i] == CV_NEXT_HOP_NONE) {
			if (CV_UNLIKELY(cv_lookalike(depart, &burst->views[i])))
				return false;
			continue;
		}
		to = &depart->hops[hops[i]];
		if (cv_view_packet_len(&burst->views[i]) <= to->outer.share_max ||
			to->port != first || cv_lookalike_to(depart, &burst->views[i], hops[i]))
			return false;
	}
	return true;
}

// Would a next hop take one of a burst's packets for a convoy? usual: all are untagged IPv4.
static CV_HOT bool has_lookalike_to(
	const struct cv_depart *depart, const struct cv_burst *burst, uint16_t hop, bool usual)
{
	const rte_be16_t port = depart->hops[hop].outer.udp_port;
	const unsigned dport = CV_ETHER_LEN + CV_IPV4_LEN + 2;
	unsigned i = 0;

	// Most are told by two bytes, which are where they are in all of them.
	if (CV_LIKELY(usual && burst->shortest >= dport + 2))
		while (i < burst->n && cv_load_be16(burst->views[i].data + dport) != port)
			i++;
	for (; i < burst->n; i++)
		if (CV_UNLIKELY(cv_lookalike_to(depart, &burst->views[i], hop)))
			return true;
	return false;
}

// The same where all go to one next hop: the shortest decides.
static bool all_better_alone(
	const struct cv_depart *depart, const struct cv_burst *burst, uint16_t hop, bool usual)
{
	const struct cv_next_hop *to = &depart->hops[hop];

	return burst->shortest > to->outer.share_max && to->port == burst->views[0].out &&
	       !has_lookalike_to(depart, burst, hop, usual);
}

// Of a burst that leaves by one port and none of which has a next hop: must some be dropped?
static CV_INLINE bool has_lookalike(const struct cv_depart *depart, const struct cv_burst *burst)
{
	if (CV_LIKELY(depart->convoy_ports[burst->views[0].out] == 0))
		return false;
	for (unsigned i = 0; i < burst->n; i++)
		if (CV_UNLIKELY(cv_lookalike(depart, &burst->views[i])))
			return true;
	return false;
}

static void count_alone(struct cv_depart *depart, const uint16_t *hops, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (hops[i] != CV_NEXT_HOP_NONE)
			cv_count(&depart->hop_counters[hops[i]].sizes[1], 1);
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
	bool alike; // all leave by the first one's port, which takes them as they are
	bool usual; // all are untagged IPv4
	uint32_t bytes; // of all of them, with the tunnels before them
};

static CV_INLINE struct summary summarize(
	const struct cv_depart *depart, const struct cv_burst *burst)
{
	struct summary summary = {.bytes = burst->bytes};
	struct cv_view all, any;

	combine(burst, &all, &any);
	if (CV_UNLIKELY(any.before != 0))
		for (unsigned i = 0; i < burst->n; i++)
			summary.bytes += burst->views[i].before;
	summary.alike =
		all.out == any.out && burst->longest <= cv_frame_max(depart->ports[all.out]);
	summary.usual = all.proto == CV_PROTO_IPV4 && any.proto == CV_PROTO_IPV4 &&
			all.l3 == CV_ETHER_LEN && any.l3 == CV_ETHER_LEN && any.before == 0;
	return summary;
}

// A burst that leaves by a port where everything goes to one next hop.
static void depart_to(struct cv_depart *depart, struct cv_burst *burst, uint16_t hop,
	const struct summary *summary)
{
	uint8_t out = burst->views[0].out;
	uint16_t n = burst->n;

	if (all_better_alone(depart, burst, hop, summary->usual)) {
		cv_frame_close_port(depart, out);
		if (cv_outbox_send_burst(depart, out, burst, summary->bytes)) {
			cv_count(&depart->hop_counters[hop].sizes[1], n);
			return;
		}
	}
	cv_repack_to(depart, burst, hop);
}

// A burst whose packets' next hops, if they have any, differ.
static void depart_by_hop(
	struct cv_depart *depart, struct cv_burst *burst, const struct summary *summary)
{
	uint8_t first = burst->views[0].out;
	uint16_t hops[CV_BURST_VIEWS];
	uint16_t n = burst->n;

	find_hops(depart, burst, hops);
	if (summary->alike && better_alone(depart, burst, hops)) {
		cv_frame_close_port(depart, first);
		if (cv_outbox_send_burst(depart, first, burst, summary->bytes)) {
			count_alone(depart, hops, n);
			return;
		}
	}
	cv_repack(depart, burst, hops);
}

void cv_depart(struct cv_depart *depart, struct cv_burst *burst)
{
	uint8_t first = burst->views[0].out;
	uint16_t only = CV_NEXT_HOP_NONE;
	struct summary summary;
	bool leads;

	if (depart->next_hops != NULL && depart->table == NULL) {
		depart->table = cv_next_hops_table(depart->next_hops);
		depart->hops = cv_next_hop_at(depart->table, 0);
	}
	summary = summarize(depart, burst);
	leads = depart->table != NULL && cv_next_hop_leads(depart->table, first);
	if (CV_LIKELY(summary.alike && !leads && !has_lookalike(depart, burst)) &&
		CV_LIKELY(cv_outbox_send_burst(depart, first, burst, summary.bytes)))
		return;
	if (summary.alike && leads)
		only = cv_next_hop_only(depart->table, first);
	if (only != CV_NEXT_HOP_NONE)
		depart_to(depart, burst, only, &summary);
	else
		depart_by_hop(depart, burst, &summary);
}

void cv_depart_flush(struct cv_depart *depart)
{
	for (unsigned i = 0; i < depart->open_count; i++) {
		cv_frame_close(depart, depart->open[i]);
		depart->frames[depart->open[i]].listed = false;
	}
	depart->open_count = 0;
	for (unsigned i = 0; i < depart->ports_count; i++)
		cv_outbox_flush(depart, (uint8_t)i);
	if (depart->next_hops != NULL) {
		depart->table = NULL;
		cv_next_hops_done(depart->next_hops, depart->lane);
	}
}
