// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "convoy/walk.h"

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "convoy/may_be.h"
#include "packet/checksum.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/udp.h"

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
	[CV_CONVOY_BAD_CODEC] = "bad_codec",
	[CV_CONVOY_WRONG_DICTIONARY] = "wrong_dictionary",
	[CV_CONVOY_BAD_BLOCK] = "bad_block",
	[CV_CONVOY_BAD_FRAGMENT] = "bad_fragment",
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
	if (!cv_convoy_ipv4(&ip) || is->udp.dport != port)
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
	if (!cv_convoy_ipv6(&ip) || is->udp.dport != port)
		return CV_CONVOY_NOT_A_CONVOY;
	is->ip_len = sizeof(ip) + rte_be_to_cpu_16(ip.payload_len);
	is->header = sizeof(ip);
	return CV_CONVOY_OK;
}

// The second word of a view, behind data: what the views of packets of one length share, which is
// all but the EtherType.
static CV_INLINE uint64_t shared_word(const struct cv_view *frame, uint16_t len)
{
	static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "words are composed here");
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
#ifdef __SSE4_1__
// A length and the packet's EtherType are the ends of 16 bytes, and so long is a view: one load, one
// comparison and one store do for a packet, as long as all have the first one's EtherType.
static CV_INLINE bool walk_equal(struct cv_view *views, const struct cv_view *frame, uint8_t *at,
	unsigned count, uint16_t len)
{
	const rte_be16_t proto = cv_load_be16(at + CV_CONVOY_PREFIX_LEN + 12);
	const uint64_t word = shared_word(frame, len);
	const __m128i step = _mm_set_epi64x(0, CV_CONVOY_PREFIX_LEN + len);
	const __m128i first = _mm_insert_epi16(_mm_cvtsi32_si128(rte_cpu_to_be_16(len)), proto, 7);
	__m128i differ = _mm_setzero_si128();
	__m128i view = _mm_set_epi64x((int64_t)(word | (uint64_t)proto << 32),
		(int64_t)(uintptr_t)(at + CV_CONVOY_PREFIX_LEN));

	static_assert(CV_CONVOY_PREFIX_LEN + CV_CONVOY_PACKET_MIN == sizeof(view), "as loaded");
	for (unsigned i = 0; i < count; i++) {
		__m128i begin = _mm_loadu_si128((const __m128i *)at);

		differ = _mm_or_si128(differ, _mm_xor_si128(begin, first));
		_mm_storeu_si128((__m128i *)&views[i], view);
		view = _mm_add_epi64(view, step);
		at += CV_CONVOY_PREFIX_LEN + len;
	}
	if (CV_UNLIKELY(_mm_extract_epi16(differ, 0) != 0))
		return false;
	if (CV_UNLIKELY(_mm_extract_epi16(differ, 7) != 0 || proto == CV_PROTO_VLAN ||
			proto == CV_PROTO_QINQ))
		for (unsigned i = 0; i < count; i++)
			show(&views[i], views[i].data, word);
	return true;
}
#else
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
#endif

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

// Fast path: the headers of an IPv4 frame without options, validated at once. False: not such a
// frame, or not a good one; then read_headers() decides.
#ifdef __SSE4_1__
static CV_INLINE bool read_fast_path(
	struct cv_convoy *convoy, const struct cv_view *frame, rte_be16_t port)
{
	const uint32_t headers = CV_IPV4_LEN + CV_UDP_LEN + CV_CONVOY_LEN;
	// Version and header length; more fragments, offset; protocol. Then port; version and type.
	const __m128i known_low =
		_mm_set_epi8(0, 0, 0, 0, 0, 0, -1, 0, -1, 0x3f, 0, 0, 0, 0, 0, -1);
	const __m128i low_is =
		_mm_set_epi8(0, 0, 0, 0, 0, 0, IPPROTO_UDP, 0, 0, 0, 0, 0, 0, 0, 0, 0x45);
	const __m128i known_high = _mm_set_epi16(0, 0xff, 0, 0, -1, 0, 0, 0);
	const __m128i high_is = _mm_set_epi16(
		0, CV_CONVOY_VERSION << 4 | CV_CONVOY_ETHERNET, 0, 0, (int16_t)port, 0, 0, 0);
	const uint32_t room = (uint32_t)(frame->len - frame->l3);
	const uint8_t *at = frame->data + frame->l3;
	__m128i low, high, wrong, sums;
	uint32_t count;
	uint64_t sum;

	static_assert(2 * sizeof(low) == CV_IPV4_LEN + CV_UDP_LEN + CV_CONVOY_LEN, "as loaded");
	if (CV_UNLIKELY(frame->proto != CV_PROTO_IPV4 || room < headers + CV_CONVOY_PREFIX_LEN))
		return false;
	low = _mm_loadu_si128((const __m128i *)at);
	high = _mm_loadu_si128((const __m128i *)(at + sizeof(low)));
	// What was read is validated, and not read again.
	__asm__("" : "+x"(low), "+x"(high));

	wrong = _mm_or_si128(_mm_xor_si128(_mm_and_si128(low, known_low), low_is),
		_mm_xor_si128(_mm_and_si128(high, known_high), high_is));
	sums = _mm_add_epi64(_mm_unpacklo_epi32(low, _mm_setzero_si128()),
		_mm_unpackhi_epi32(low, _mm_setzero_si128()));
	sum = (uint64_t)_mm_cvtsi128_si64(sums) + (uint64_t)_mm_extract_epi64(sums, 1) +
	      (uint32_t)_mm_cvtsi128_si32(high);
	count = (uint32_t)_mm_extract_epi8(high, 13);
	if (CV_UNLIKELY(
		    !_mm_testz_si128(wrong, wrong) || sum % 0xffff != 0 || count == 0 ||
		    rte_be_to_cpu_16((uint16_t)_mm_extract_epi16(low, 1)) != room ||
		    rte_be_to_cpu_16((uint16_t)_mm_extract_epi16(high, 4)) != room - CV_IPV4_LEN))
		return false;
	convoy->data = frame->data;
	convoy->len = frame->len;
	convoy->packets_at = (uint16_t)(frame->l3 + headers);
	convoy->nfi = rte_be_to_cpu_16((uint16_t)_mm_extract_epi16(high, 7));
	convoy->sport = (rte_be16_t)_mm_extract_epi16(high, 2);
	convoy->count = (uint8_t)count;
	return true;
}
#else
static CV_INLINE bool read_fast_path(
	struct cv_convoy *convoy, const struct cv_view *frame, rte_be16_t port)
{
	return false;
}
#endif

// The headers of any frame of a type.
static CV_INLINE enum cv_convoy_reason read_typed(
	struct cv_convoy *convoy, const struct cv_view *frame, rte_be16_t port, uint8_t type)
{
	struct datagram is = {.room = (uint32_t)(frame->len - frame->l3)};
	uint8_t *at = frame->data + frame->l3;
	struct cv_convoy_header header;
	enum cv_convoy_reason reason;
	uint32_t room;

	if (frame->proto == CV_PROTO_IPV4)
		reason = read_ipv4(&is, at, port);
	else if (frame->proto == CV_PROTO_IPV6)
		reason = read_ipv6(&is, at, port);
	else
		reason = CV_CONVOY_NOT_A_CONVOY;
	if (reason != CV_CONVOY_OK)
		return reason;

	if (is.ip_len < is.header + CV_UDP_LEN + CV_CONVOY_LEN)
		return CV_CONVOY_BAD_LENGTH;
	if (is.ip_len > is.room)
		return CV_CONVOY_TRUNCATED;
	if (is.ip_len < is.room)
		return CV_CONVOY_TRAILING_BYTES;
	if (rte_be_to_cpu_16(is.udp.len) != is.ip_len - is.header)
		return CV_CONVOY_BAD_LENGTH;
	at += is.header + CV_UDP_LEN;
	memcpy(&header, at, sizeof(header));
	CV_COPIED();
	if (header.version_type >> 4 != CV_CONVOY_VERSION)
		return CV_CONVOY_BAD_VERSION;
	if ((header.version_type & 15) != type)
		return CV_CONVOY_BAD_TYPE;
	at += sizeof(header);
	room = is.ip_len - is.header - CV_UDP_LEN - sizeof(header);
	if ((header.count == 0 && type != CV_CONVOY_FRAGMENTS) ||
		(type == CV_CONVOY_ETHERNET && room < CV_CONVOY_PREFIX_LEN))
		return CV_CONVOY_BAD_COUNT;

	convoy->data = frame->data;
	convoy->len = frame->len;
	convoy->packets_at = (uint16_t)(at - frame->data);
	convoy->nfi = rte_be_to_cpu_16(header.nfi);
	convoy->sport = is.udp.sport;
	convoy->count = header.count;
	return CV_CONVOY_OK;
}

// Not inlined: what it needs is not paid for where it is not needed.
static CV_NOINLINE enum cv_convoy_reason read_headers(
	struct cv_convoy *convoy, const struct cv_view *frame, rte_be16_t port)
{
	return read_typed(convoy, frame, port, CV_CONVOY_ETHERNET);
}

CV_HOT enum cv_convoy_reason cv_convoy_walk(struct cv_convoy *convoy, struct cv_view *views,
	const struct cv_view *frame, rte_be16_t port)
{
	uint32_t room;
	uint16_t first;
	uint8_t *at;

	if (CV_UNLIKELY(!read_fast_path(convoy, frame, port))) {
		enum cv_convoy_reason reason = read_headers(convoy, frame, port);

		if (reason != CV_CONVOY_OK)
			return reason;
	}
	at = frame->data + convoy->packets_at;
	room = frame->len - (uint32_t)convoy->packets_at;
	first = load_once(at);
	convoy->each = first;
	if (convoy->count * (CV_CONVOY_PREFIX_LEN + (uint32_t)first) == room &&
		first >= CV_CONVOY_PACKET_MIN && walk_equal(views, frame, at, convoy->count, first))
		return CV_CONVOY_OK;
	convoy->each = 0;
	return walk_each(views, frame, at, convoy->count, room);
}

enum cv_convoy_reason cv_convoy_walk_compressed(
	struct cv_convoy *convoy, const struct cv_view *frame, rte_be16_t port)
{
	return read_typed(convoy, frame, port, CV_CONVOY_COMPRESSED);
}

enum cv_convoy_reason cv_convoy_walk_fragments_header(
	struct cv_convoy *convoy, const struct cv_view *frame, rte_be16_t port)
{
	return read_typed(convoy, frame, port, CV_CONVOY_FRAGMENTS);
}
