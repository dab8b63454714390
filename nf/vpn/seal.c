// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Outbound (RFC 4303 section 3.3): policy, ESP in tunnel mode, an outer header (RFC 4301 section 5.1.2, RFC
// 6040). Packets of a burst are prepared one by one; then those in a row that have one association get
// their sequence numbers at once, and are encrypted.
#include <string.h>

#include "nf/vpn/aggfrag.h"
#include "nf/vpn/seal.h"
#include "packet/ipv4_fragment.h"

#define IPV6_MTU_LEAST 1280u // RFC 8200 section 5
#define IPV4_MTU_LEAST 68u // RFC 791 section 3.2
#define LATER_MAX 512u // fragments of a burst, but for the first of each packet: 8 of each

uint8_t cv_vpn_tell_and_drop(
	const struct out *out, enum cv_vpn_drop why, enum cv_icmp_reason reason, uint32_t value)
{
	const struct cv_icmp_error error = {.reason = reason, .value = value};
	const struct cv_view *view = out->view;
	const bool v6 = view->proto == CV_PROTO_IPV6;
	const uint8_t *ip = view->data + view->l3;

	// Where the tunnel's own address is of the other version it speaks for the destination.
	cv_teller_tell(&out->vpn->teller, out->worker, view, &error,
		out->sa->local.v6 == v6 ? out->sa->local.bytes : ip + (v6 ? 24 : 16));
	return CV_DROP(why);
}

// The longest packet inside that a packet outside of so many bytes has room for.
static uint32_t inner_mtu(const struct cv_sa *sa, uint32_t mtu)
{
	const uint32_t least = front_of(sa) + CV_ESP_TRAILER_LEN + CV_GCM_TAG_LEN;

	return mtu < least + CV_ESP_ALIGN
		       ? 0
		       : ((mtu - front_of(sa) - CV_GCM_TAG_LEN) & ~(CV_ESP_ALIGN - 1u)) -
				 CV_ESP_TRAILER_LEN;
}

// What encloses a packet inside of inner->len bytes, whose front, of so many, begins at `to`.
static CV_INLINE void enclose(struct prepared *packet, const struct cv_sa *sa, uint8_t *to,
	const struct inner *inner, unsigned front, const bool plain)
{
	const unsigned padding = padding_of(inner->len);
	uint8_t *end = to + front + inner->len;

	packet->sa = sa;
	packet->ip = to;
	packet->clear = (uint16_t)(inner->len + padding + CV_ESP_TRAILER_LEN);
	write_outer(packet, sa, inner, front + inner->len + back_of(inner->len), plain);
	for (unsigned i = 0; i < padding; i++)
		*end++ = (uint8_t)(i + 1);
	end[0] = (uint8_t)padding;
	end[1] = inner->v6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
}

static void write_checksum_udp6(uint8_t *to, uint32_t len)
{
	struct cv_udp *udp = (struct cv_udp *)(to + CV_IPV6_LEN);
	uint64_t sum = cv_checksum_add(0, to + 8, 32) + rte_cpu_to_be_16(IPPROTO_UDP) + udp->len;

	udp->checksum = (rte_be16_t)~cv_checksum_fold(
		cv_checksum_add(sum, (uint8_t *)udp, len - CV_IPV6_LEN));
	if (udp->checksum == 0)
		udp->checksum = 0xffff;
}

// The packet gets its sequence number, and its outer header becomes whole, but for a checksum of UDP; *clear is
// what will be encrypted.
static CV_INLINE void number(
	const struct prepared *packet, uint64_t sequence, struct cv_cipher_packet *clear)
{
	const struct cv_sa *sa = packet->sa;
	const struct cv_sa_state *state = sa->state;
	struct cv_ipv4 *ip = (struct cv_ipv4 *)packet->ip;
	uint8_t *esp = packet->ip + sa->header_len;
	const uint64_t iv = rte_cpu_to_be_64(state->first_iv + sequence);
	const rte_be32_t spi = rte_cpu_to_be_32(sa->spi);
	const rte_be32_t low = rte_cpu_to_be_32((uint32_t)sequence);
	const uint64_t head = (uint64_t)low << 32 | spi;
	rte_be16_t id;

	memcpy(esp, &head, sizeof(head));
	memcpy(esp + 8, &iv, sizeof(iv));
	clear->data = esp + CV_ESP_LEN;
	clear->len = packet->clear;
	clear->tag = clear->data + clear->len;
	cv_cipher_nonce(clear->nonce, state->salt, iv);
	if (CV_UNLIKELY(sa->esn))
		cv_cipher_put(clear->with,
			(uint64_t)rte_cpu_to_be_32((uint32_t)(sequence >> 32)) << 32 | spi, low);
	else
		cv_cipher_put(clear->with, head, 0);
	if (sa->local.v6)
		return;
	id = packet->has_id ? rte_cpu_to_be_16((uint16_t)sequence) : 0;
	ip->id = id;
	ip->checksum = (rte_be16_t)~cv_checksum_fold(packet->sum + id);
}

static uint8_t refusal_drop(enum cv_sa_refusal refusal)
{
	return refusal == CV_SA_EXPIRED ? CV_DROP(CV_VPN_EXPIRED)
					: CV_DROP(CV_VPN_SEQUENCE_OVERFLOW);
}

// Packets in a row that have one association. The cipher reads in one piece what was written in several: by then
// that has left the store buffer, or it would wait for it.
static CV_INLINE void finish_row(const struct prepared *packet, uint16_t n, uint8_t *verdict)
{
	const struct cv_sa *sa = packet[0].sa;
	struct cv_cipher_packet clear[CV_BURST_MAX];
	uint16_t bytes[CV_BURST_MAX], granted;
	enum cv_sa_refusal refusal;
	uint64_t first;

	for (uint16_t i = 0; i < n; i++)
		bytes[i] = packet[i].clear;
	granted = cv_sa_reserve(sa, bytes, n, &first, &refusal);
	for (uint16_t i = 0; i < granted; i++)
		number(&packet[i], first + i, &clear[i]);
	cv_cipher_run_many(&sa->state->cipher, clear, granted, cv_sa_with_len(sa));
	for (uint16_t i = 0; sa->local.v6 && sa->udp != 0 && i < granted; i++)
		write_checksum_udp6(packet[i].ip,
			sa->header_len + CV_ESP_LEN + packet[i].clear + CV_GCM_TAG_LEN);
	for (uint16_t i = granted; i < n; i++)
		verdict[packet[i].at] = refusal_drop(refusal);
}

void cv_vpn_finish_row(const struct prepared *packet, uint16_t n, uint8_t *verdict)
{
	if (n > 0)
		finish_row(packet, n, verdict);
}

// Fragments but for the first of each packet: they leave behind the burst, so they get their numbers behind it,
// or a peer whose window is small would take them for old.
struct later {
	uint16_t count;
	struct prepared packets[LATER_MAX];
	uint8_t *frames[LATER_MAX];
};

static CV_NOINLINE void finish_later(struct cv_nf_worker *worker, struct later *later)
{
	uint8_t verdict[LATER_MAX];

	for (uint16_t i = 0, end; i < later->count; i = end) {
		for (end = i; end < later->count && end - i < CV_BURST_MAX &&
			      later->packets[end].sa == later->packets[i].sa;
			end++) {
			later->packets[end].at = end;
			verdict[end] = CV_NEXT;
		}
		finish_row(&later->packets[i], (uint16_t)(end - i), verdict);
	}
	for (uint16_t i = 0; i < later->count; i++)
		if (verdict[i] != CV_NEXT) // it is not encrypted
			cv_nf_drop_originated(worker, later->frames[i], verdict[i] - CV_DROP(0));
}

// Writes fragment number i, from 1, as a packet of its own that has no number yet. False: no room.
static bool make_fragment(const struct out *out, const struct inner *whole,
	const struct cv_ipv4_fragments *parts, uint16_t i, struct later *later)
{
	const struct cv_view *view = out->view;
	const struct inner inner = {.len = cv_ipv4_fragment_len(parts, i), .class = whole->class};
	const rte_be16_t type = out->sa->local.v6 ? CV_PROTO_IPV6 : CV_PROTO_IPV4;
	uint8_t *frame;

	if (later->count == LATER_MAX)
		return false;
	frame = cv_nf_originate(out->worker,
		(uint16_t)(view->l3 + front_of(out->sa) + inner.len + back_of(inner.len)), view->in,
		view->out, CV_NF_BEHIND);
	if (frame == NULL)
		return false;
	memcpy(frame, view->data, view->l3);
	memcpy(frame + view->l3 - sizeof(type), &type, sizeof(type));
	cv_ipv4_fragment((const struct cv_ipv4 *)(view->data + view->l3), parts, i,
		frame + view->l3 + front_of(out->sa));
	enclose(&later->packets[later->count], out->sa, frame + view->l3, &inner, front_of(out->sa),
		false);
	later->frames[later->count++] = frame;
	return true;
}

// A packet that is too long becomes its first fragment; the others leave behind the burst. What was made
// before something failed is sent, too: it is of no use, and does no harm.
static uint8_t fragment(
	const struct out *out, struct inner *inner, uint32_t mtu, struct later *later)
{
	struct cv_view *view = out->view;
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(view->data + view->l3);
	struct cv_ipv4_fragments parts;

	cv_ipv4_fragments(ip, (uint16_t)mtu, &parts);
	if (parts.count == 0 || view->before != 0)
		return CV_DROP(CV_VPN_TOO_BIG);
	take_hop((uint8_t *)ip, false);
	for (uint16_t i = 1; i < parts.count; i++)
		if (!make_fragment(out, inner, &parts, i, later))
			return CV_DROP(CV_VPN_NO_ROOM);
	cv_ipv4_fragment_first(ip, &parts);
	inner->len = parts.first_len;
	return CV_NEXT;
}

// A packet that does not fit. CV_NEXT: its first fragment does.
static uint8_t shorten(const struct out *out, struct inner *inner, struct later *later)
{
	const uint32_t mtu = inner_mtu(out->sa, out->vpn->mtu);

	if (inner->df) {
		// What every link carries cannot be made smaller.
		if (mtu < (inner->v6 ? IPV6_MTU_LEAST : IPV4_MTU_LEAST))
			return CV_DROP(CV_VPN_TOO_BIG);
		return cv_vpn_tell_and_drop(out, CV_VPN_TOO_BIG, CV_ICMP_TOO_BIG, mtu);
	}
	return mtu < IPV4_MTU_LEAST ? CV_DROP(CV_VPN_TOO_BIG) : fragment(out, inner, mtu, later);
}

// A packet that is too long. CV_NEXT: it has become its first fragment, of *len bytes.
static CV_NOINLINE uint8_t shorten_to(
	const struct out *out, struct inner inner, uint16_t *len, struct later *later)
{
	const uint8_t verdict = shorten(out, &inner, later);

	*len = inner.len;
	return verdict;
}

// Puts one packet into the tunnel, but for its number and encryption. plain: sa->plain is known to be set.
static CV_INLINE uint8_t prepare(struct cv_vpn *vpn, struct cv_nf_worker *worker,
	struct cv_view *view, const struct cv_sa *sa, struct prepared *packet, struct later *later,
	const bool plain)
{
	const rte_be16_t type = !plain && sa->local.v6 ? CV_PROTO_IPV6 : CV_PROTO_IPV4;
	const unsigned front = plain ? CV_IPV4_LEN + CV_ESP_LEN : front_of(sa), l3 = view->l3;
	struct inner inner;
	uint8_t *data;

	if (CV_UNLIKELY(!read_inner(view, &inner)))
		return CV_DROP(CV_VPN_BAD_HEADER);
	if (CV_UNLIKELY(hops_of(view->data + l3, inner.v6) <= 1)) {
		const struct out out = {vpn, worker, view, sa};

		return cv_vpn_tell_and_drop(&out, CV_VPN_TTL_EXPIRED, CV_ICMP_TIME_EXCEEDED, 0);
	}
	if (CV_UNLIKELY(front + inner.len + back_of(inner.len) > vpn->mtu)) {
		const struct out out = {vpn, worker, view, sa};
		uint16_t len;
		const uint8_t verdict = shorten_to(&out, inner, &len, later);

		if (verdict != CV_NEXT)
			return verdict;
		inner.len = len;
	} else {
		take_hop(view->data + l3, inner.v6);
	}
	if (view->len - l3 > inner.len && // padding, or what became other fragments
		!cv_nf_trim(worker, view, (uint16_t)(view->len - l3 - inner.len)))
		return CV_DROP(CV_VPN_NO_ROOM);
	data = cv_nf_enclose(worker, view, (uint16_t)front, (uint16_t)back_of(inner.len));
	if (CV_UNLIKELY(data == NULL))
		return CV_DROP(CV_VPN_NO_ROOM);
	cv_move_ethernet(data, data + front, l3);
	memcpy(data + l3 - sizeof(type), &type, sizeof(type));
	enclose(packet, sa, data + l3, &inner, front, plain);
	view->proto = type; // all that differs: reading it back would wait for the line
	return CV_NEXT;
}

static bool is_ip(const struct cv_view *view)
{
	return view->proto == CV_PROTO_IPV4 || view->proto == CV_PROTO_IPV6;
}

CV_HOT uint16_t cv_vpn_seal(struct cv_vpn *vpn, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	struct prepared packets[CV_BURST_MAX];
	uint16_t apart[CV_BURST_MAX]; // of associations that aggregate
	uint32_t rule[CV_BURST_MAX];
	uint16_t count = 0, aparts = 0, others = 0;
	struct later later;

	later.count = 0;
	// Packets grow into lines before and behind that nobody has touched yet.
	for (uint16_t i = 0; vpn->has_plain && i < n; i++) {
		CV_PREFETCH_WRITE(view[i].data - CV_ESP_LEN - CV_IPV4_LEN);
		CV_PREFETCH_WRITE(view[i].data + view[i].len + CV_GCM_TAG_LEN);
	}
	cv_choice_find(&vpn->outbound, worker, view, rule, n);
	for (uint16_t i = 0; i < n; i++) {
		const struct cv_vpn_policy *policy = &vpn->policy[rule[i]];

		verdict[i] = CV_NEXT;
		if (policy->action == CV_VPN_BYPASS || !is_ip(&view[i]))
			continue;
		if (policy->action == CV_VPN_DISCARD) {
			verdict[i] = CV_DROP(CV_VPN_DISCARDED);
		} else if (policy->out == NULL) {
			verdict[i] = CV_DROP(CV_VPN_NO_SA);
		} else if (policy->out->aggregate) {
			apart[aparts++] = i;
		} else {
			packets[count].at = i;
			verdict[i] = policy->out->plain
					     ? prepare(vpn, worker, &view[i], policy->out,
						       &packets[count], &later, true)
					     : prepare(vpn, worker, &view[i], policy->out,
						       &packets[count], &later, false);
			count += verdict[i] == CV_NEXT;
		}
	}
	for (uint16_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && packets[end].sa == packets[i].sa; end++)
			;
		finish_row(&packets[i], (uint16_t)(end - i), verdict);
	}
	if (CV_UNLIKELY(later.count > 0))
		finish_later(worker, &later);
	if (aparts > 0)
		cv_aggfrag_seal(vpn, worker, view, rule, apart, aparts, verdict);
	for (uint16_t i = 0; i < n; i++)
		others += verdict[i] != CV_NEXT;
	return others;
}
