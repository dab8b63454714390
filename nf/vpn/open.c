// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Inbound (RFC 4303 section 3.4): the association of each ESP packet, its sequence number, decryption, the
// packet inside, and whether policy lets it in by this association (RFC 4301 section 5.2). Steps go over the
// burst, so that packets in a row of one association share a lock.
#include <string.h>

#include "nf/strip.h"
#include "nf/vpn/aggfrag.h"
#include "nf/vpn/ecn.h"
#include "nf/vpn/vpn.h"
#include "packet/ipv6.h"
#include "packet/udp.h"

#define ESP_LEAST (CV_ESP_LEN + CV_ESP_ALIGN + CV_GCM_TAG_LEN)
#define KEEPALIVE 0xff // RFC 3948 section 2.3

// A packet that is, or was, ESP.
struct arrival {
	const struct cv_sa *sa;
	uint64_t sequence;
	uint16_t at; // its place in the burst
	uint16_t esp; // where ESP begins, from the view's data
	uint16_t len; // bytes of ESP
	uint8_t class; // of the outer header
};

// The outer header as far as it matters.
struct outer {
	struct cv_address to, from;
	uint16_t l4, len; // where what it carries is, from the IP header, and how long
	uint8_t proto, class;
	bool fragment;
};

static CV_INLINE bool is_same(const struct cv_address *a, const struct cv_address *b)
{
	uint64_t x[2], y[2];

	memcpy(x, a->bytes, sizeof(x));
	memcpy(y, b->bytes, sizeof(y));
	return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0 && a->v6 == b->v6;
}

static bool is_local(const struct cv_vpn *vpn, const struct cv_address *address)
{
	for (unsigned i = 0; i < vpn->locals; i++)
		if (is_same(&vpn->local[i], address))
			return true;
	return false;
}

// False: it is no sound IP packet.
static CV_INLINE bool read_outer(const struct cv_view *view, struct outer *outer)
{
	const uint8_t *at = view->data + view->l3;
	const uint16_t room = view->len - view->l3;

	memset(outer, 0, sizeof(*outer));
	if (view->proto == CV_PROTO_IPV4) {
		const struct cv_ipv4 *ip = (const struct cv_ipv4 *)at;

		outer->l4 = cv_ipv4_check(ip, room);
		if (outer->l4 == 0)
			return false;
		memcpy(outer->to.bytes, &ip->dst, sizeof(ip->dst));
		memcpy(outer->from.bytes, &ip->src, sizeof(ip->src));
		outer->len = rte_be_to_cpu_16(ip->total_len) - outer->l4;
		outer->proto = ip->proto;
		outer->class = ip->tos;
		outer->fragment = (ip->fragment & (CV_IPV4_MF | CV_IPV4_OFFSET)) != 0;
		return true;
	}
	if (view->proto != CV_PROTO_IPV6 || !cv_ipv6_check((const struct cv_ipv6 *)at, room))
		return false;
	outer->to.v6 = outer->from.v6 = true;
	memcpy(outer->to.bytes, ((const struct cv_ipv6 *)at)->dst, 16);
	memcpy(outer->from.bytes, ((const struct cv_ipv6 *)at)->src, 16);
	outer->l4 = CV_IPV6_LEN;
	outer->len = rte_be_to_cpu_16(((const struct cv_ipv6 *)at)->payload_len);
	outer->proto = ((const struct cv_ipv6 *)at)->next;
	outer->class = (uint8_t)(at[0] << 4 | at[1] >> 4);
	// A fragment of ESP is known by the header behind the fragment's.
	outer->fragment = outer->proto == IPPROTO_FRAGMENT && outer->len >= 8;
	if (outer->fragment)
		outer->proto = at[CV_IPV6_LEN];
	return true;
}

// What a packet in UDP to the tunnels' port is. CV_NEXT: ESP, which begins behind the UDP header.
enum in_udp { UDP_ESP, UDP_OTHER, UDP_KEEPALIVE };

static enum in_udp read_udp(const struct cv_vpn *vpn, const uint8_t *l4, struct outer *outer)
{
	const struct cv_udp *udp = (const struct cv_udp *)l4;
	uint32_t spi;

	if (outer->len < CV_UDP_LEN + 1 || outer->fragment ||
		udp->dport != rte_cpu_to_be_16(vpn->udp_port) ||
		rte_be_to_cpu_16(udp->len) > outer->len ||
		rte_be_to_cpu_16(udp->len) < CV_UDP_LEN + 1)
		return UDP_OTHER;
	outer->len = rte_be_to_cpu_16(udp->len) - CV_UDP_LEN;
	outer->l4 += CV_UDP_LEN;
	if (outer->len == 1 && l4[CV_UDP_LEN] == KEEPALIVE)
		return UDP_KEEPALIVE;
	if (outer->len < sizeof(spi))
		return UDP_OTHER;
	memcpy(&spi, l4 + CV_UDP_LEN, sizeof(spi));
	return spi == 0 ? UDP_OTHER : UDP_ESP; // 0: a message of IKE
}

// Whose packet it is. CV_NEXT with an association: ESP that may be opened; without: none for us.
static CV_INLINE uint8_t find(
	const struct cv_vpn *vpn, const struct cv_view *view, struct arrival *arrival)
{
	const uint8_t *ip = view->data + view->l3;
	const struct cv_sa *sa;
	struct outer outer;
	uint32_t spi;

	arrival->sa = NULL;
	if (!read_outer(view, &outer))
		return CV_NEXT;
	if (outer.proto == IPPROTO_UDP) {
		switch (read_udp(vpn, ip + outer.l4, &outer)) {
		case UDP_KEEPALIVE:
			return is_local(vpn, &outer.to) ? CV_ABSORBED : CV_NEXT;
		case UDP_OTHER:
			return CV_NEXT;
		case UDP_ESP:
			break;
		}
	} else if (outer.proto != IPPROTO_ESP) {
		return CV_NEXT;
	}
	if (CV_UNLIKELY(outer.fragment))
		return is_local(vpn, &outer.to) ? CV_DROP(CV_VPN_FRAGMENT) : CV_NEXT;
	if (CV_UNLIKELY(outer.len < ESP_LEAST ||
			(outer.len - CV_ESP_LEN - CV_GCM_TAG_LEN) % CV_ESP_ALIGN != 0))
		return is_local(vpn, &outer.to) ? CV_DROP(CV_VPN_BAD_ESP) : CV_NEXT;
	memcpy(&spi, ip + outer.l4, sizeof(spi));
	sa = cv_vpn_find(vpn, rte_be_to_cpu_32(spi));
	if (CV_UNLIKELY(sa == NULL || !is_same(&sa->local, &outer.to) ||
			(sa->has_peer && !is_same(&sa->peer, &outer.from))))
		return is_local(vpn, &outer.to) ? CV_DROP(CV_VPN_NO_SA) : CV_NEXT;
	arrival->sa = sa;
	arrival->esp = view->l3 + outer.l4;
	arrival->len = outer.len;
	arrival->class = outer.class;
	return CV_NEXT;
}

// The sequence numbers of packets in a row, and whether they are worth a decryption.
static CV_INLINE void check_numbers(
	const struct cv_view *view, struct arrival *arrival, uint16_t n, uint8_t *verdict)
{
	const struct cv_sa *sa = arrival[0].sa;
	struct cv_sa_state *state = sa->state;
	bool expired;
	rte_be32_t low;

	rte_spinlock_lock(&state->lock);
	expired = cv_sa_is_over(sa, true);
	for (uint16_t i = 0; i < n; i++) {
		struct arrival *one = &arrival[i];

		memcpy(&low, view[one->at].data + one->esp + sizeof(low), sizeof(low));
		one->sequence = sa->esn ? cv_replay_extend(
						  &state->replay, sa->window, rte_be_to_cpu_32(low))
					: rte_be_to_cpu_32(low);
		if (CV_UNLIKELY(!cv_replay_is_new(&state->replay, sa->window, one->sequence))) {
			__atomic_store_n(&state->replayed, state->replayed + 1, __ATOMIC_RELAXED);
			verdict[one->at] = CV_DROP(CV_VPN_REPLAYED);
		} else if (CV_UNLIKELY(expired)) {
			verdict[one->at] = CV_DROP(CV_VPN_EXPIRED);
		}
	}
	rte_spinlock_unlock(&state->lock);
}

// What of a packet is to be decrypted.
static CV_INLINE void read_sealed(
	const struct cv_view *view, const struct arrival *arrival, struct cv_cipher_packet *sealed)
{
	const struct cv_sa *sa = arrival->sa;
	const uint8_t *esp = view->data + arrival->esp;
	const rte_be32_t high = rte_cpu_to_be_32((uint32_t)(arrival->sequence >> 32));
	uint64_t head, iv;

	memcpy(&head, esp, sizeof(head));
	memcpy(&iv, esp + sizeof(head), sizeof(iv));
	sealed->data = view->data + arrival->esp + CV_ESP_LEN;
	sealed->len = arrival->len - CV_ESP_LEN - CV_GCM_TAG_LEN;
	cv_cipher_nonce(sealed->nonce, sa->state->salt, iv);
	if (sa->esn)
		cv_cipher_put(sealed->with, (uint64_t)high << 32 | (uint32_t)head, head >> 32);
	else
		cv_cipher_put(sealed->with, head, 0);
}

// Decrypts those of packets in a row that are worth it.
static CV_INLINE void decrypt(
	const struct cv_view *view, const struct arrival *arrival, uint16_t n, uint8_t *verdict)
{
	const struct cv_sa *sa = arrival[0].sa;
	struct cv_cipher_packet sealed[CV_BURST_MAX];
	uint8_t tag[CV_BURST_MAX][CV_GCM_TAG_LEN];
	uint16_t at[CV_BURST_MAX], count = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (CV_UNLIKELY(verdict[arrival[i].at] != CV_NEXT))
			continue;
		read_sealed(&view[arrival[i].at], &arrival[i], &sealed[count]);
		sealed[count].tag = tag[count];
		at[count++] = arrival[i].at;
	}
	cv_cipher_run_many(&sa->state->cipher, sealed, count, cv_sa_with_len(sa));
	for (uint16_t i = 0; i < count; i++)
		if (CV_UNLIKELY(!cv_cipher_same_tag(tag[i], sealed[i].data + sealed[i].len)))
			verdict[at[i]] = CV_DROP(CV_VPN_BAD_TAG);
}

// Of packets in a row the authentic ones take their places in the window. Another worker, or this burst, may
// have had the same number meanwhile.
static CV_INLINE void take_numbers(const struct arrival *arrival, uint16_t n, uint8_t *verdict)
{
	const struct cv_sa *sa = arrival[0].sa;
	const bool limited = cv_sa_is_limited(sa);
	struct cv_sa_state *state = sa->state;
	uint64_t packets = 0, bytes = 0, replayed = 0, bad_tags = 0;

	rte_spinlock_lock(&state->lock);
	for (uint16_t i = 0; i < n; i++) {
		const struct arrival *one = &arrival[i];

		bad_tags += verdict[one->at] == CV_DROP(CV_VPN_BAD_TAG);
		if (CV_UNLIKELY(verdict[one->at] != CV_NEXT))
			continue;
		if (CV_UNLIKELY(!cv_replay_is_new(&state->replay, sa->window, one->sequence))) {
			verdict[one->at] = CV_DROP(CV_VPN_REPLAYED);
			replayed++;
			continue;
		}
		if (CV_UNLIKELY(limited) &&
			!cv_sa_takes(sa, state->packets + packets, state->bytes + bytes)) {
			verdict[one->at] = CV_DROP(CV_VPN_EXPIRED);
			continue;
		}
		cv_replay_note(&state->replay, one->sequence);
		packets++;
		bytes += one->len - CV_ESP_LEN - CV_GCM_TAG_LEN;
	}
	__atomic_store_n(&state->packets, state->packets + packets, __ATOMIC_RELAXED);
	__atomic_store_n(&state->bytes, state->bytes + bytes, __ATOMIC_RELAXED);
	if (CV_UNLIKELY((replayed | bad_tags) != 0)) {
		__atomic_store_n(&state->replayed, state->replayed + replayed, __ATOMIC_RELAXED);
		__atomic_store_n(&state->bad_tags, state->bad_tags + bad_tags, __ATOMIC_RELAXED);
	}
	rte_spinlock_unlock(&state->lock);
}

// Whether the padding of so many decrypted bytes is as RFC 4303 section 2.4 has it.
static CV_INLINE bool is_padding(const uint8_t *clear, uint16_t len, unsigned padding)
{
	const uint8_t *at;
	uint8_t differ = 0;

	if (CV_UNLIKELY(padding > len - (unsigned)CV_ESP_TRAILER_LEN))
		return false;
	at = clear + len - CV_ESP_TRAILER_LEN - padding;
	for (unsigned i = 0; i < padding; i++)
		differ |= (uint8_t)(at[i] ^ (i + 1));
	return differ == 0;
}

// The packet inside is all that is left. What is between it and the padding hides how long it is (RFC 4303
// section 2.7).
static CV_INLINE uint8_t expose(const struct cv_vpn *vpn, struct cv_nf_worker *worker,
	struct cv_view *view, const struct arrival *arrival)
{
	const uint16_t inside = arrival->esp + CV_ESP_LEN;
	const uint16_t clear = arrival->len - CV_ESP_LEN - CV_GCM_TAG_LEN;
	uint8_t *ip = view->data + inside;
	const uint8_t padding = ip[clear - 2], next = ip[clear - 1];
	const bool v6 = next == IPPROTO_IPV6;
	uint16_t len, room;

	if (CV_UNLIKELY(!is_padding(ip, clear, padding)))
		return CV_DROP(CV_VPN_BAD_ESP);
	if (next == IPPROTO_NONE) // a packet that hides how much is sent
		return CV_ABSORBED;
	if (CV_UNLIKELY(arrival->sa->aggregate))
		return next != CV_AGGFRAG_PROTO
			       ? CV_DROP(CV_VPN_BAD_ESP)
			       : cv_aggfrag_open(vpn, worker, view, arrival->sa, arrival->sequence,
					 ip, clear - CV_ESP_TRAILER_LEN - padding);
	if (CV_UNLIKELY(next != IPPROTO_IPIP && !v6))
		return CV_DROP(CV_VPN_BAD_ESP);
	room = clear - CV_ESP_TRAILER_LEN - padding;
	if (CV_UNLIKELY(v6 ? !cv_ipv6_check((const struct cv_ipv6 *)ip, room)
			   : cv_ipv4_check((const struct cv_ipv4 *)ip, room) == 0))
		return CV_DROP(CV_VPN_BAD_HEADER);
	if (CV_UNLIKELY(!cv_ecn_apply(arrival->class, ip, v6)))
		return CV_DROP(CV_VPN_CONGESTED);
	len = v6 ? CV_IPV6_LEN + rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len)
		 : rte_be_to_cpu_16(((const struct cv_ipv4 *)ip)->total_len);
	if (CV_UNLIKELY(!cv_strip_to_ip(worker, view, inside, view->len - inside - len,
		    v6 ? CV_PROTO_IPV6 : CV_PROTO_IPV4)))
		return CV_DROP(CV_VPN_BAD_HEADER);
	return CV_NEXT;
}

// What policy says of a packet that came by an association, or by none.
static CV_INLINE uint8_t check_policy(
	const struct cv_vpn *vpn, const struct cv_view *view, const struct cv_sa *sa, uint32_t rule)
{
	if (sa != NULL)
		return sa->policy == rule ? CV_NEXT : CV_DROP(CV_VPN_WRONG_POLICY);
	if (view->proto != CV_PROTO_IPV4 && view->proto != CV_PROTO_IPV6)
		return CV_NEXT;
	switch (vpn->policy[rule].action) {
	case CV_VPN_BYPASS:
		return CV_NEXT;
	case CV_VPN_PROTECT:
		return CV_DROP(CV_VPN_UNPROTECTED);
	case CV_VPN_DISCARD:
		break;
	}
	return CV_DROP(CV_VPN_DISCARDED);
}

// Decrypts, and takes what is inside out.
static CV_INLINE void open_rows(const struct cv_vpn *vpn, struct cv_nf_worker *worker,
	struct cv_view *view, struct arrival *arrival, uint16_t count, uint8_t *verdict)
{
	for (uint16_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && arrival[end].sa == arrival[i].sa; end++)
			;
		check_numbers(view, &arrival[i], end - i, verdict);
		decrypt(view, &arrival[i], end - i, verdict);
		take_numbers(&arrival[i], end - i, verdict);
	}
	for (uint16_t i = 0; i < count; i++)
		if (CV_LIKELY(verdict[arrival[i].at] == CV_NEXT))
			verdict[arrival[i].at] =
				expose(vpn, worker, &view[arrival[i].at], &arrival[i]);
}

CV_HOT uint16_t cv_vpn_open(struct cv_vpn *vpn, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct arrival arrivals[CV_BURST_MAX];
	const struct cv_sa *by[CV_BURST_MAX]; // that packets came by; NULL: none
	uint32_t rule[CV_BURST_MAX];
	uint16_t count = 0, others = 0;

	for (uint16_t i = 0; i < n; i++) {
		arrivals[count].at = i;
		verdict[i] = find(vpn, &view[i], &arrivals[count]);
		by[i] = arrivals[count].sa;
		count += by[i] != NULL;
	}
	open_rows(vpn, worker, view, arrivals, count, verdict);
	cv_firewall_table_find(&vpn->inbound.table, view, rule, n);
	for (uint16_t i = 0; i < n; i++) {
		if (CV_LIKELY(verdict[i] == CV_NEXT))
			verdict[i] = check_policy(vpn, &view[i], by[i], rule[i]);
		others += verdict[i] != CV_NEXT;
	}
	return others;
}
