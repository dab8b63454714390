// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Outbound AGGFRAG payloads (RFC 9347): packets of a burst that have one association are put into one ESP
// packet, in the buffer of the first of them, as many as the MTU lets. Nothing waits for the next burst.
// What does not fit alone is cut into pieces, which are new packets and go behind the burst with numbers
// in a row.
#include <string.h>

#include "nf/vpn/aggfrag.h"
#include "nf/vpn/seal.h"

#define PIECES_MAX CV_BURST_MAX // of one packet

// The packets of a burst that have one association.
struct sealing {
	struct cv_vpn *vpn;
	struct cv_nf_worker *worker;
	struct cv_view *view; // of the burst
	uint8_t *verdict;
	const struct cv_sa *sa;
	uint32_t room; // bytes of blocks that an ESP packet has room for
	uint16_t members; // at so many places, which fit
	uint16_t member[CV_BURST_MAX];
	uint16_t member_len[CV_BURST_MAX]; // of the packet inside
	uint16_t longs; // and at so many, which do not
	uint16_t is_long[CV_BURST_MAX];
	uint16_t long_len[CV_BURST_MAX];
	struct prepared packets[CV_BURST_MAX];
	uint16_t count;
};

static CV_INLINE unsigned front(const struct cv_sa *sa)
{
	return front_of(sa) + CV_AGGFRAG_HEADER_LEN;
}

// What it takes to seal so many bytes of blocks, behind them.
static CV_INLINE unsigned back(uint32_t len)
{
	return back_of(CV_AGGFRAG_HEADER_LEN + len);
}

static uint32_t room_of(const struct cv_vpn *vpn, const struct cv_sa *sa)
{
	const uint32_t least = front(sa) + CV_ESP_TRAILER_LEN + CV_GCM_TAG_LEN;

	// An ESP payload and its trailer are whole words.
	return vpn->mtu < least + CV_ESP_ALIGN
		       ? 0
		       : ((vpn->mtu - front_of(sa) - CV_GCM_TAG_LEN) & ~(CV_ESP_ALIGN - 1u)) -
				 CV_ESP_TRAILER_LEN - CV_AGGFRAG_HEADER_LEN;
}

// Looks at a packet, takes a hop, and takes it into account.
static CV_INLINE void take_in(struct sealing *sealing, uint16_t at)
{
	struct cv_view *view = &sealing->view[at];
	const struct out out = {sealing->vpn, sealing->worker, view, sealing->sa};
	uint8_t *ip = view->data + view->l3;
	struct inner inner;

	if (CV_UNLIKELY(!read_inner(view, &inner))) {
		sealing->verdict[at] = CV_DROP(CV_VPN_BAD_HEADER);
		return;
	}
	if (CV_UNLIKELY(hops_of(ip, inner.v6) <= 1)) {
		sealing->verdict[at] =
			cv_vpn_tell_and_drop(&out, CV_VPN_TTL_EXPIRED, CV_ICMP_TIME_EXCEEDED, 0);
		return;
	}
	take_hop(ip, inner.v6);
	if (CV_LIKELY(inner.len <= sealing->room)) {
		sealing->member_len[sealing->members] = inner.len;
		sealing->member[sealing->members++] = at;
	} else {
		sealing->long_len[sealing->longs] = inner.len;
		sealing->is_long[sealing->longs++] = at;
	}
}

// May b be in the ESP packet that a becomes?
static CV_INLINE bool may_share(const struct cv_view *a, const struct cv_view *b)
{
	return a->out == b->out && a->l3 == b->l3 && b->before == 0 &&
	       (a->l3 == CV_ETHER_LEN ||
		       memcmp(a->data + 12, b->data + 12, a->l3 - CV_ETHER_LEN) == 0);
}

// Writes the Ethernet header's type, what is before the blocks, and what is behind them.
static CV_INLINE void enclose(const struct sealing *sealing, struct prepared *packet, uint8_t *ip,
	uint16_t len, uint16_t offset)
{
	static const struct inner inner = {.len = 0}; // nothing is copied from those inside
	const struct cv_sa *sa = sealing->sa;
	const rte_be16_t type = sa->local.v6 ? CV_PROTO_IPV6 : CV_PROTO_IPV4;
	const uint32_t header = rte_cpu_to_be_32(offset);
	const unsigned padding = padding_of(CV_AGGFRAG_HEADER_LEN + len);
	uint8_t *end = ip + front(sa) + len;

	memcpy(ip - sizeof(type), &type, sizeof(type));
	packet->sa = sa;
	packet->ip = ip;
	packet->clear = (uint16_t)(CV_AGGFRAG_HEADER_LEN + len + padding + CV_ESP_TRAILER_LEN);
	write_outer(packet, sa, &inner, front(sa) + len + back(len), false);
	memcpy(ip + front_of(sa), &header, sizeof(header));
	for (unsigned i = 0; i < padding; i++)
		*end++ = (uint8_t)(i + 1);
	end[0] = (uint8_t)padding;
	end[1] = CV_AGGFRAG_PROTO;
}

// Makes one ESP packet of n members, of so many bytes in all. False: there is no room, and nothing changed
// but that padding behind the first is gone.
static CV_INLINE bool pack(struct sealing *sealing, const uint16_t *member, const uint16_t *len,
	uint16_t n, uint16_t sum)
{
	struct cv_view *view = &sealing->view[member[0]];
	const struct cv_sa *sa = sealing->sa;
	const unsigned l3 = view->l3, before = front(sa);
	const uint16_t behind = view->len - l3 - len[0];
	struct prepared *packet = &sealing->packets[sealing->count];
	uint8_t *data, *to;

	if (behind > 0 && !cv_nf_trim(sealing->worker, view, behind))
		return false;
	data = cv_nf_enclose(
		sealing->worker, view, (uint16_t)before, (uint16_t)(sum - len[0] + back(sum)));
	if (CV_UNLIKELY(data == NULL))
		return false;
	to = data + before + l3 + len[0];
	for (uint16_t i = 1; i < n; i++) {
		const struct cv_view *other = &sealing->view[member[i]];

		memcpy(to, other->data + other->l3, len[i]);
		to += len[i];
	}
	cv_move_ethernet(data, data + before, l3);
	enclose(sealing, packet, data + l3, sum, 0);
	view->proto = sa->local.v6 ? CV_PROTO_IPV6 : CV_PROTO_IPV4;
	packet->at = member[0];
	sealing->count++;
	return true;
}

// Packs the members in their order.
static CV_INLINE void pack_members(struct sealing *sealing, uint16_t *leader)
{
	const uint16_t *member = sealing->member, *len = sealing->member_len;

	for (uint16_t i = 0, n; i < sealing->members; i += n) {
		const struct cv_view *first = &sealing->view[member[i]];
		uint32_t sum = len[i];

		for (n = 1; first->before == 0 && i + n < sealing->members; n++) {
			if (sum + len[i + n] > sealing->room ||
				!may_share(first, &sealing->view[member[i + n]]))
				break;
			sum += len[i + n];
		}
		// A buffer may be smaller than the MTU.
		if (CV_UNLIKELY(!pack(sealing, &member[i], &len[i], n, (uint16_t)sum))) {
			n = 1;
			if (!pack(sealing, &member[i], &len[i], 1, len[i]))
				sealing->verdict[member[i]] = CV_DROP(CV_VPN_NO_ROOM);
		}
		for (uint16_t j = 0; j < n; j++)
			leader[i + j] = member[i];
	}
}

// Seals a long packet in pieces, each a packet that is made. What was made before something failed is sent,
// too: the peer drops it. What has no number is not encrypted, and must not leave.
static uint8_t cut(const struct sealing *sealing, const struct cv_view *view, uint16_t len)
{
	const uint8_t *from = view->data + view->l3;
	struct prepared packets[PIECES_MAX] = {{0}};
	uint8_t *frames[PIECES_MAX], verdicts[PIECES_MAX], verdict = CV_ABSORBED;
	uint16_t n = 0;

	if (sealing->room == 0 || len > sealing->room * PIECES_MAX || view->before != 0)
		return CV_DROP(CV_VPN_TOO_BIG);
	for (uint16_t done = 0, piece; done < len; done += piece, n++) {
		piece = (uint16_t)RTE_MIN((uint32_t)len - done, sealing->room);
		frames[n] = cv_nf_originate(sealing->worker,
			(uint16_t)(view->l3 + front(sealing->sa) + piece + back(piece)), view->in,
			view->out, CV_NF_BEHIND);
		if (frames[n] == NULL) {
			verdict = CV_DROP(CV_VPN_NO_ROOM);
			break;
		}
		memcpy(frames[n], view->data, view->l3);
		memcpy(frames[n] + view->l3 + front(sealing->sa), from + done, piece);
		enclose(sealing, &packets[n], frames[n] + view->l3, piece,
			done == 0 ? 0 : len - done);
		packets[n].at = n;
		verdicts[n] = CV_NEXT;
	}
	cv_vpn_finish_row(packets, n, verdicts);
	for (uint16_t i = 0; i < n; i++)
		if (verdicts[i] != CV_NEXT) {
			cv_nf_drop_originated(sealing->worker, frames[i], verdicts[i] - CV_DROP(0));
			verdict = CV_ABSORBED; // its pieces are counted
		}
	return verdict;
}

static CV_INLINE void seal_one(struct sealing *sealing)
{
	uint16_t leader[CV_BURST_MAX];

	pack_members(sealing, leader);
	cv_vpn_finish_row(sealing->packets, sealing->count, sealing->verdict);
	for (uint16_t i = 0; i < sealing->members; i++)
		if (sealing->member[i] != leader[i]) {
			const uint8_t verdict = sealing->verdict[leader[i]];

			sealing->verdict[sealing->member[i]] =
				verdict == CV_NEXT ? CV_ABSORBED : verdict;
		}
	for (uint16_t i = 0; i < sealing->longs; i++)
		sealing->verdict[sealing->is_long[i]] =
			cut(sealing, &sealing->view[sealing->is_long[i]], sealing->long_len[i]);
}

CV_HOT void cv_aggfrag_seal(struct cv_vpn *vpn, struct cv_nf_worker *worker, struct cv_view *view,
	const uint32_t *rule, const uint16_t *at, uint16_t n, uint8_t *verdict)
{
	struct sealing sealing;
	uint64_t left = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1; // a bit each

	sealing.vpn = vpn;
	sealing.worker = worker;
	sealing.view = view;
	sealing.verdict = verdict;
	while (left != 0) {
		const unsigned first = (unsigned)__builtin_ctzll(left);
		const struct cv_sa *sa = vpn->policy[rule[at[first]]].out;

		sealing.sa = sa;
		sealing.room = room_of(vpn, sa);
		sealing.members = sealing.longs = sealing.count = 0;
		for (unsigned i = first; i < n; i++)
			if ((left >> i & 1) != 0 && vpn->policy[rule[at[i]]].out == sa) {
				left &= ~(UINT64_C(1) << i);
				take_in(&sealing, at[i]);
			}
		seal_one(&sealing);
	}
}
