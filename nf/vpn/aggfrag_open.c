// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Inbound AGGFRAG payloads (RFC 9347 sections 2.2 and 6.1). Payloads are not reordered: of a packet that is
// cut in pieces all must come one behind the other, but for payloads that are padding alone; else what is
// there of it is dropped. Whole packets are delivered in any order.
#include <string.h>

#include <rte_malloc.h>

#include "nf/vpn/aggfrag.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"

#define SUBTYPE 0
#define TYPE_PAD 0 // the first four bits of a block
#define TYPE_IPV4 4
#define TYPE_IPV6 6

// Packets that were taken out and that policy has not seen.
struct opening {
	const struct cv_vpn *vpn;
	struct cv_nf_worker *worker;
	const struct cv_view *outer;
	const struct cv_sa *sa;
	uint64_t sequence;
	uint8_t verdict; // CV_ABSORBED, or of what went wrong first
	uint16_t count, packets;
	struct cv_view views[CV_BURST_MAX];
};

bool cv_aggfrag_make(const struct cv_sa *sa, int socket)
{
	if (!sa->outbound && sa->state->aggfrag == NULL)
		sa->state->aggfrag = rte_zmalloc_socket(
			"vpn", sizeof(*sa->state->aggfrag), RTE_CACHE_LINE_SIZE, socket);
	return sa->outbound || sa->state->aggfrag != NULL;
}

static void went_wrong(struct opening *opening, enum cv_vpn_drop why)
{
	if (opening->verdict == CV_ABSORBED)
		opening->verdict = CV_DROP(why);
}

// The length that a packet's header says; 0: too little of it is there.
static CV_INLINE uint32_t length_of(const uint8_t *ip, uint32_t len)
{
	if (ip[0] >> 4 == TYPE_IPV4)
		return len < 4 ? 0 : (uint32_t)rte_be_to_cpu_16(cv_load_be16(ip + 2));
	return len < 6 ? 0 : CV_IPV6_LEN + (uint32_t)rte_be_to_cpu_16(cv_load_be16(ip + 4));
}

static CV_INLINE bool is_sound(const uint8_t *ip, uint16_t len)
{
	if (ip[0] >> 4 == TYPE_IPV4)
		return len >= CV_IPV4_LEN && cv_ipv4_check((const struct cv_ipv4 *)ip, len) != 0;
	return cv_ipv6_check((const struct cv_ipv6 *)ip, len);
}

// Policy lets in what came by this association, or not.
static void flush(struct opening *opening)
{
	const struct cv_vpn *vpn = opening->vpn;
	uint32_t rule[CV_BURST_MAX];

	cv_firewall_table_find(&vpn->inbound.table, opening->views, rule, opening->count);
	for (uint16_t i = 0; i < opening->count; i++)
		if (CV_UNLIKELY(rule[i] != opening->sa->policy))
			cv_nf_drop_originated(
				opening->worker, opening->views[i].data, CV_VPN_WRONG_POLICY);
	opening->packets += opening->count;
	opening->count = 0;
}

// Makes a packet of one inside, of which all bytes are there.
static CV_INLINE void deliver(struct opening *opening, const uint8_t *ip, uint16_t len)
{
	const struct cv_view *outer = opening->outer;
	const bool v6 = ip[0] >> 4 == TYPE_IPV6;
	const rte_be16_t type = v6 ? CV_PROTO_IPV6 : CV_PROTO_IPV4;
	const uint16_t l3 = outer->l3;
	uint8_t *frame;

	if (CV_UNLIKELY(!is_sound(ip, len))) {
		went_wrong(opening, CV_VPN_BAD_HEADER);
		return;
	}
	frame = len > UINT16_MAX - l3 ? NULL
				      : cv_nf_originate(opening->worker, (uint16_t)(l3 + len),
						outer->in, outer->out, CV_NF_BEHIND);
	if (CV_UNLIKELY(frame == NULL)) {
		went_wrong(opening, CV_VPN_NO_ROOM);
		return;
	}
	memcpy(frame, outer->data, l3 - sizeof(type));
	memcpy(frame + l3 - sizeof(type), &type, sizeof(type));
	memcpy(frame + l3, ip, len);
	opening->views[opening->count++] = (struct cv_view){.data = frame,
		.len = (uint16_t)(l3 + len),
		.l3 = (uint8_t)l3,
		.proto = type,
		.in = outer->in,
		.out = outer->out};
	if (opening->count == CV_BURST_MAX)
		flush(opening);
}

// Pairs with has_partial(), which looks without the lock.
static void set_have(struct cv_aggfrag *partial, uint16_t have)
{
	__atomic_store_n(&partial->have, have, __ATOMIC_RELAXED);
}

static bool has_partial(const struct cv_aggfrag *partial)
{
	return __atomic_load_n(&partial->have, __ATOMIC_RELAXED) != 0;
}

static void lose(struct cv_aggfrag *partial)
{
	if (partial->have == 0)
		return;
	set_have(partial, 0);
	__atomic_store_n(&partial->lost, partial->lost + 1, __ATOMIC_RELAXED);
}

// A payload that goes on with the packet begun before: so many blocks' bytes, of which `offset` ought to be its.
static void go_on(struct opening *opening, struct cv_aggfrag *partial, const uint8_t *blocks,
	uint16_t len, uint16_t offset)
{
	const uint16_t more = RTE_MIN(len, offset), beyond = offset - more;
	uint32_t length;

	if (more > CV_AGGFRAG_INNER_MAX - partial->have) {
		went_wrong(opening, CV_VPN_TOO_BIG);
		lose(partial);
		return;
	}
	memcpy(partial->bytes + partial->have, blocks, more);
	set_have(partial, partial->have + more);
	length = length_of(partial->bytes, partial->have);
	if (length > CV_AGGFRAG_INNER_MAX) {
		went_wrong(opening, CV_VPN_TOO_BIG);
		lose(partial);
	} else if (beyond > 0 && (length == 0 || (uint32_t)partial->have + beyond == length)) {
		partial->next = opening->sequence + 1;
	} else if (beyond == 0 && length == partial->have) {
		deliver(opening, partial->bytes, partial->have);
		set_have(partial, 0);
	} else {
		went_wrong(opening, CV_VPN_BAD_BLOCK);
		lose(partial);
	}
}

// What a payload says of the packet begun before. False: nothing else is in it.
static bool take_head(struct opening *opening, const uint8_t *blocks, uint16_t len, uint16_t offset)
{
	struct cv_aggfrag *partial = opening->sa->state->aggfrag;
	bool more = true;

	if (CV_LIKELY(!has_partial(partial))) {
		if (offset > 0) // its beginning was lost
			went_wrong(opening, CV_VPN_OUT_OF_SEQUENCE);
		return true;
	}
	rte_spinlock_lock(&opening->sa->state->lock);
	if (partial->have == 0 || partial->next != opening->sequence) {
		lose(partial);
		if (offset > 0)
			went_wrong(opening, CV_VPN_OUT_OF_SEQUENCE);
	} else if (offset > 0) {
		go_on(opening, partial, blocks, len, offset);
	} else if (len > 0 && blocks[0] >> 4 == TYPE_PAD) {
		partial->next++;
		more = false;
	} else {
		went_wrong(opening, CV_VPN_BAD_BLOCK);
		lose(partial);
	}
	rte_spinlock_unlock(&opening->sa->state->lock);
	return more;
}

// A packet of which the payload has the beginning.
static void take_tail(struct opening *opening, const uint8_t *ip, uint16_t len, uint32_t length)
{
	struct cv_aggfrag *partial = opening->sa->state->aggfrag;

	if (length > CV_AGGFRAG_INNER_MAX) {
		went_wrong(opening, CV_VPN_TOO_BIG);
		return;
	}
	rte_spinlock_lock(&opening->sa->state->lock);
	lose(partial);
	memcpy(partial->bytes, ip, len); // shorter than length, or than a header
	set_have(partial, len);
	partial->next = opening->sequence + 1;
	rte_spinlock_unlock(&opening->sa->state->lock);
}

// Blocks that begin in this payload.
static CV_INLINE void take_blocks(struct opening *opening, const uint8_t *at, uint16_t len)
{
	while (len > 0 && at[0] >> 4 != TYPE_PAD) { // padding reaches to the end
		const bool v6 = at[0] >> 4 == TYPE_IPV6;
		uint32_t length;

		if (CV_UNLIKELY(!v6 && at[0] >> 4 != TYPE_IPV4)) {
			went_wrong(opening, CV_VPN_BAD_BLOCK);
			return;
		}
		length = length_of(at, len);
		if (CV_UNLIKELY(len < (v6 ? 6 : 4) || length > len)) {
			take_tail(opening, at, len, length);
			return;
		}
		if (CV_UNLIKELY(length < (v6 ? CV_IPV6_LEN : CV_IPV4_LEN))) {
			went_wrong(opening, CV_VPN_BAD_BLOCK);
			return;
		}
		deliver(opening, at, (uint16_t)length);
		at += length;
		len -= (uint16_t)length;
	}
}

uint8_t cv_aggfrag_open(const struct cv_vpn *vpn, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_sa *sa, uint64_t sequence,
	const uint8_t *payload, uint16_t len)
{
	struct opening opening;
	uint16_t offset;

	if (CV_UNLIKELY(view->before != 0)) // there is no packet in this tunnel any more
		return CV_DROP(CV_VPN_NO_ROOM);
	if (CV_UNLIKELY(len < CV_AGGFRAG_HEADER_LEN))
		return CV_DROP(CV_VPN_BAD_BLOCK);
	if (CV_UNLIKELY(payload[0] != SUBTYPE))
		return CV_DROP(CV_VPN_UNKNOWN_SUBTYPE);
	opening.vpn = vpn;
	opening.worker = worker;
	opening.outer = view;
	opening.sa = sa;
	opening.sequence = sequence;
	opening.verdict = CV_ABSORBED;
	opening.count = opening.packets = 0;
	offset = rte_be_to_cpu_16(cv_load_be16(payload + 2));
	payload += CV_AGGFRAG_HEADER_LEN;
	len -= CV_AGGFRAG_HEADER_LEN;
	if (take_head(&opening, payload, len, offset) && offset < len)
		take_blocks(&opening, payload + offset, len - offset);
	flush(&opening);
	__atomic_fetch_add(&sa->state->aggfrag->packets, opening.packets, __ATOMIC_RELAXED);
	return opening.verdict;
}
