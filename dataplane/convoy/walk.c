// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <assert.h>
#include <stddef.h>

#include "walk.h"

#include "checksum.h"
#include "ipv4.h"
#include "ipv6.h"
#include "udp.h"

const char *const cv_convoy_reason_names[CV_CONVOY_REASONS] = {
	[CV_CONVOY_OK] = "ok",
	[CV_CONVOY_NOT_A_CONVOY] = "not_a_convoy",
	[CV_CONVOY_FRAGMENTED] = "fragmented",
	[CV_CONVOY_BAD_CHECKSUM] = "bad_checksum",
	[CV_CONVOY_TRUNCATED] = "truncated",
	[CV_CONVOY_BAD_LENGTH] = "bad_length",
	[CV_CONVOY_TRAILING_BYTES] = "trailing_bytes",
	[CV_CONVOY_BAD_VERSION] = "bad_version",
	[CV_CONVOY_BAD_TYPE] = "bad_type",
	[CV_CONVOY_BAD_COUNT] = "bad_count",
	[CV_CONVOY_RUNT_PACKET] = "runt_packet",
};

// A length, read once: see CV_COPIED.
static CV_INLINE uint16_t load_once(const uint8_t *at)
{
	uint16_t value = cv_load_be16(at);

	__asm__("" : "+r"(value));
	return rte_be_to_cpu_16(value);
}

// Where the UDP header is, and what the IP header says of its length; copies.
struct datagram {
	uint32_t room; // bytes of the frame from layer 3 on
	uint32_t ip_len; // of the IP packet
	uint32_t header; // bytes of the IP header
	struct cv_udp udp;
};

// The headers are copied one by one: a copy that is read in other pieces than it was written in
// waits for its own stores.
static CV_INLINE enum cv_convoy_reason read_ipv4(
	struct datagram *is, const uint8_t *l3, rte_be16_t port)
{
	struct cv_ipv4 ip;

	if (CV_UNLIKELY(is->room < sizeof(ip) + sizeof(is->udp)))
		return CV_CONVOY_NOT_A_CONVOY;
	memcpy(&ip, l3, sizeof(ip));
	memcpy(&is->udp, l3 + sizeof(ip), sizeof(is->udp));
	CV_COPIED();
	// Options and later fragments: whatever it carries, we did not send it.
	if (ip.version_ihl != 0x45 || ip.proto != CV_IPPROTO_UDP || ip.fragment & CV_IPV4_OFFSET ||
		is->udp.dport != port)
		return CV_CONVOY_NOT_A_CONVOY;
	if (CV_UNLIKELY(ip.fragment & CV_IPV4_MF))
		return CV_CONVOY_FRAGMENTED;
	if (CV_UNLIKELY(!cv_ipv4_checksum_ok20(&ip)))
		return CV_CONVOY_BAD_CHECKSUM;
	is->ip_len = rte_be_to_cpu_16(ip.total_len);
	is->header = sizeof(ip);
	return CV_CONVOY_OK;
}

static CV_INLINE enum cv_convoy_reason read_ipv6(
	struct datagram *is, const uint8_t *l3, rte_be16_t port)
{
	struct cv_ipv6 ip;

	if (CV_UNLIKELY(is->room < sizeof(ip) + sizeof(is->udp)))
		return CV_CONVOY_NOT_A_CONVOY;
	memcpy(&ip, l3, sizeof(ip));
	memcpy(&is->udp, l3 + sizeof(ip), sizeof(is->udp));
	CV_COPIED();
	if (*(const uint8_t *)&ip >> 4 != 6 || ip.next != CV_IPPROTO_UDP || is->udp.dport != port)
		return CV_CONVOY_NOT_A_CONVOY;
	is->ip_len = sizeof(ip) + rte_be_to_cpu_16(ip.payload_len);
	is->header = sizeof(ip);
	return CV_CONVOY_OK;
}

// The second word of a view, behind data: what the views of packets of one length share, which is
// all but the EtherType.
static CV_INLINE uint64_t shared_word(const struct cv_view *frame, uint16_t len)
{
	static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "words are put together here");
	static_assert(offsetof(struct cv_view, len) == 8 && offsetof(struct cv_view, l3) == 10 &&
			      offsetof(struct cv_view, before) == 11 &&
			      offsetof(struct cv_view, proto) == 12 &&
			      offsetof(struct cv_view, in) == 14 &&
			      offsetof(struct cv_view, out) == 15,
		"as shared_word() and show() have them");
	return len | (uint64_t)CV_ETHER_LEN << 16 | (uint64_t)frame->in << 48 |
	       (uint64_t)frame->out << 56;
}

// One view, in two stores instead of seven; the packet is there, all len >= CV_CONVOY_PACKET_MIN
// bytes of it.
static CV_INLINE void show(struct cv_view *view, uint8_t *packet, uint64_t word)
{
	rte_be16_t proto = cv_load_be16(packet + 12);

	word |= (uint64_t)proto << 32;
	view->data = packet;
	memcpy(&view->len, &word, sizeof(word));
	if (CV_UNLIKELY(proto == CV_PROTO_VLAN || proto == CV_PROTO_QINQ))
		cv_view_set(view, packet, (uint16_t)word);
}

// Where all packets are as long as the first, no address waits for the length before it: nothing
// but that guess is in the way of all loads at once. True if the guess was right.
static CV_INLINE bool walk_equal(struct cv_view *views, const struct cv_view *frame, uint8_t *at,
	unsigned count, uint16_t len)
{
	const uint64_t word = shared_word(frame, len);
	unsigned differ = 0;

	for (unsigned i = 0; i < count; i++) {
		differ |= load_once(at) ^ len;
		show(&views[i], at + CV_CONVOY_PREFIX_LEN, word);
		at += CV_CONVOY_PREFIX_LEN + len;
	}
	return differ == 0;
}

static CV_INLINE enum cv_convoy_reason walk_each(struct cv_view *views, const struct cv_view *frame,
	uint8_t *at, unsigned count, uint32_t room)
{
	for (unsigned i = 0; i < count; i++) {
		uint16_t len;

		if (CV_UNLIKELY(room < CV_CONVOY_PREFIX_LEN))
			return CV_CONVOY_BAD_COUNT;
		len = load_once(at);
		at += CV_CONVOY_PREFIX_LEN;
		room -= CV_CONVOY_PREFIX_LEN;
		if (CV_UNLIKELY(len < CV_CONVOY_PACKET_MIN))
			return CV_CONVOY_RUNT_PACKET;
		if (CV_UNLIKELY(len > room))
			return CV_CONVOY_BAD_LENGTH;
		show(&views[i], at, shared_word(frame, len));
		at += len;
		room -= len;
	}
	return room == 0 ? CV_CONVOY_OK : CV_CONVOY_TRAILING_BYTES;
}

CV_HOT enum cv_convoy_reason cv_convoy_walk(struct cv_convoy *convoy, struct cv_view *views,
	const struct cv_view *frame, rte_be16_t port)
{
	struct datagram is = {.room = (uint32_t)(frame->len - frame->l3)};
	uint8_t *at = frame->data + frame->l3;
	struct cv_convoy_header header;
	enum cv_convoy_reason reason;
	uint32_t room;
	uint16_t first;

	if (CV_LIKELY(frame->proto == CV_PROTO_IPV4))
		reason = read_ipv4(&is, at, port);
	else if (frame->proto == CV_PROTO_IPV6)
		reason = read_ipv6(&is, at, port);
	else
		reason = CV_CONVOY_NOT_A_CONVOY;
	if (reason != CV_CONVOY_OK)
		return reason;

	if (CV_UNLIKELY(is.ip_len < is.header + CV_UDP_LEN + CV_CONVOY_LEN))
		return CV_CONVOY_BAD_LENGTH;
	if (CV_UNLIKELY(is.ip_len > is.room))
		return CV_CONVOY_TRUNCATED;
	if (CV_UNLIKELY(is.ip_len < is.room))
		return CV_CONVOY_TRAILING_BYTES;
	if (CV_UNLIKELY(rte_be_to_cpu_16(is.udp.len) != is.ip_len - is.header))
		return CV_CONVOY_BAD_LENGTH;
	at += is.header + CV_UDP_LEN;
	memcpy(&header, at, sizeof(header));
	CV_COPIED();
	if (CV_UNLIKELY(header.version_type >> 4 != CV_CONVOY_VERSION))
		return CV_CONVOY_BAD_VERSION;
	if (CV_UNLIKELY((header.version_type & 15) != CV_CONVOY_ETHERNET))
		return CV_CONVOY_BAD_TYPE;
	at += sizeof(header);
	room = is.ip_len - is.header - CV_UDP_LEN - sizeof(header);
	if (CV_UNLIKELY(header.count == 0 || room < CV_CONVOY_PREFIX_LEN))
		return CV_CONVOY_BAD_COUNT;

	convoy->data = frame->data;
	convoy->len = frame->len;
	convoy->packets_at = (uint16_t)(at - frame->data);
	convoy->nfi = rte_be_to_cpu_16(header.nfi);
	convoy->sport = is.udp.sport;
	convoy->count = header.count;

	first = load_once(at);
	convoy->each = first;
	if (header.count * (CV_CONVOY_PREFIX_LEN + (uint32_t)first) == room &&
		first >= CV_CONVOY_PACKET_MIN && walk_equal(views, frame, at, header.count, first))
		return CV_CONVOY_OK;
	convoy->each = 0;
	return walk_each(views, frame, at, header.count, room);
}
