// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// ICMP and ICMPv6: RFC 7915 sections 4.2, 4.3, 5.2 and 5.3. An error is made anew around the beginning of the
// packet that it is about, which is translated as it would be here. What an error has behind that (RFC 4884)
// is left out.
#include "nf/nat64/nat64.h"

#define HEADER 8
#define NONE 0xff // a field that the other header lacks

// Types.
enum {
	ECHO_REPLY = 0,
	UNREACHABLE = 3,
	ECHO_REQUEST = 8,
	TIME_EXCEEDED = 11,
	PARAMETER = 12,
	UNREACHABLE_V6 = 1,
	TOO_BIG_V6 = 2,
	TIME_EXCEEDED_V6 = 3,
	PARAMETER_V6 = 4,
	ECHO_REQUEST_V6 = 128,
	ECHO_REPLY_V6 = 129,
};

// Codes.
enum {
	PROTOCOL_UNREACHABLE = 2,
	FRAGMENTATION_NEEDED = 4,
	NEXT_HEADER_V6 = 1, // of a parameter problem: not recognized
};

#define NEXT_HEADER_AT_V6 6

struct kind {
	uint8_t type, code;
};

// Of unreachable destinations, by code. Type 0: the other protocol has none; or it is made otherwise.
static const struct kind unreachable_to_v6[16] = {
	[0] = {UNREACHABLE_V6, 0},
	[1] = {UNREACHABLE_V6, 0},
	[2] = {PARAMETER_V6, NEXT_HEADER_V6},
	[3] = {UNREACHABLE_V6, 4},
	[4] = {TOO_BIG_V6, 0},
	[5] = {UNREACHABLE_V6, 0},
	[6] = {UNREACHABLE_V6, 0},
	[7] = {UNREACHABLE_V6, 0},
	[8] = {UNREACHABLE_V6, 0},
	[9] = {UNREACHABLE_V6, 1},
	[10] = {UNREACHABLE_V6, 1},
	[11] = {UNREACHABLE_V6, 0},
	[12] = {UNREACHABLE_V6, 0},
	[13] = {UNREACHABLE_V6, 1},
	[15] = {UNREACHABLE_V6, 1},
};
static const uint8_t unreachable_to_v4[5] = {1, 10, 1, 1, 3}; // codes

// The fields that parameter problems point to, by byte.
static const uint8_t pointer_to_v6[20] = {
	0, 1, 4, 4, NONE, NONE, NONE, NONE, 7, 6, NONE, NONE, 8, 8, 8, 8, 24, 24, 24, 24};

static uint8_t pointer_to_v4(uint32_t at)
{
	static const uint8_t first[8] = {0, 1, NONE, NONE, 2, 2, 9, 8};

	if (at < 8)
		return first[at];
	return at < 24 ? 12 : at < 40 ? 16 : NONE;
}

static void put_be32(uint8_t *at, uint32_t value)
{
	const rte_be32_t word = rte_cpu_to_be_32(value);

	memcpy(at, &word, sizeof(word));
}

static uint32_t get_be32(const uint8_t *at)
{
	rte_be32_t word;

	memcpy(&word, at, sizeof(word));
	return rte_be_to_cpu_32(word);
}

static uint16_t get_be16(const uint8_t *at)
{
	return rte_be_to_cpu_16(cv_load_be16(at));
}

// RFC 1191 section 7: what a router that tells no MTU may have meant.
static unsigned plateau_under(unsigned len)
{
	static const uint16_t plateaus[] = {32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296};

	for (unsigned i = 0; i < RTE_DIM(plateaus); i++)
		if (plateaus[i] < len)
			return plateaus[i];
	return 68;
}

static void echo(uint8_t *at, unsigned len, uint8_t type, uint8_t proto, bool to_v6,
	const struct cv_nat64_ends *ends)
{
	// ICMPv6's checksum is over addresses, length and protocol as well.
	const uint64_t pseudo = cv_nat64_sum_ipv6(ends) + len + proto;
	const unsigned old = get_be16(at), new = (unsigned)type << 8 | at[1];

	cv_nat64_checksum_update(at + 2,
		to_v6 ? cv_nat64_delta(old, new + pseudo) : cv_nat64_delta(old + pseudo, new),
		false);
	at[0] = type;
}

// The payload of the packet inside, of which n bytes are there: its checksum follows its addresses, as far as it
// is there. False: an error about an error is none.
static bool inside(uint8_t *l4, unsigned n, unsigned len, uint8_t proto, bool to_v6,
	const struct cv_nat64_ends *ends)
{
	const uint64_t v4 = (uint64_t)ends->src + ends->dst, v6 = cv_nat64_sum_ipv6(ends);
	const unsigned at = cv_nat64_checksum_at(proto);
	const bool udp = proto == IPPROTO_UDP;

	if (proto == (to_v6 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) {
		const uint8_t request = to_v6 ? ECHO_REQUEST : ECHO_REQUEST_V6;
		const uint8_t reply = to_v6 ? ECHO_REPLY : ECHO_REPLY_V6;

		if (n < HEADER || (l4[0] != request && l4[0] != reply))
			return false;
		if (to_v6)
			echo(l4, len, l4[0] == request ? ECHO_REQUEST_V6 : ECHO_REPLY_V6,
				IPPROTO_ICMPV6, true, ends);
		else
			echo(l4, len, l4[0] == request ? ECHO_REQUEST : ECHO_REPLY, IPPROTO_ICMPV6,
				false, ends);
		return true;
	}
	if (at != 0 && n >= at + 2 && !(udp && cv_load_be16(l4 + at) == 0))
		cv_nat64_checksum_update(
			l4 + at, to_v6 ? cv_nat64_delta(v4, v6) : cv_nat64_delta(v6, v4), udp);
	return true;
}

// The address that stands for another, which may be a client's: nobody becomes one by an error.
static bool known_to_ipv6(const struct cv_nat64 *nat64, uint32_t ipv4, struct cv_nat64_ipv6 *ipv6)
{
	if (nat64->clients != NULL && cv_nat64_clients_have(nat64->clients, ipv4))
		return cv_nat64_clients_to_ipv6(nat64->clients, ipv4, ipv6);
	return cv_nat64_to_ipv6(&nat64->map, ipv4, ipv6);
}

static bool known_to_ipv4(const struct cv_nat64 *nat64, struct cv_nat64_ipv6 ipv6, uint32_t *ipv4)
{
	return cv_nat64_to_ipv4(&nat64->map, ipv6, ipv4) ||
	       (nat64->clients != NULL && cv_nat64_clients_to_ipv4(nat64->clients, ipv6, ipv4));
}

// Translates the packet inside of an error, of which n bytes are there. Returns how many out got, at most
// room; 0: it cannot be.
static unsigned inside_to_ipv6(
	const struct cv_nat64 *nat64, const uint8_t *in, unsigned n, uint8_t *out, unsigned room)
{
	const struct cv_ipv4 *ip = (const struct cv_ipv4 *)in;
	struct cv_nat64_ends ends;
	struct cv_nat64_head head;
	unsigned header, total, put;

	if (n < CV_IPV4_LEN || in[0] >> 4 != 4)
		return 0;
	header = cv_ipv4_header_len(ip);
	total = rte_be_to_cpu_16(ip->total_len);
	ends.src = rte_be_to_cpu_32(ip->src);
	ends.dst = rte_be_to_cpu_32(ip->dst);
	if (header < CV_IPV4_LEN || header > n || total < header ||
		cv_nat64_is_foreign(ip->proto, false) ||
		!known_to_ipv6(nat64, ends.src, &ends.src6) ||
		!cv_nat64_to_ipv6(&nat64->map, ends.dst, &ends.dst6))
		return 0;
	head = (struct cv_nat64_head){
		.class = ip->tos & nat64->class_mask,
		.hops = ip->ttl,
		.proto = ip->proto == IPPROTO_ICMP ? IPPROTO_ICMPV6 : ip->proto,
		.payload = (uint16_t)(total - header),
		.fragment = cv_nat64_fragment_of_ipv4(ip),
	};
	put = cv_nat64_write_ipv6(out, &head, &ends);
	n = RTE_MIN(n, total) - header;
	n = RTE_MIN(n, room - put);
	memcpy(out + put, in + header, n);
	if (head.fragment.offset == 0 &&
		!inside(out + put, n, head.payload, ip->proto, true, &ends))
		return 0;
	return put + n;
}

static unsigned inside_to_ipv4(const struct cv_nat64 *nat64, const uint8_t *in, unsigned n,
	uint8_t *out, unsigned room, bool *is_fragment)
{
	const struct cv_ipv6 *ip = (const struct cv_ipv6 *)in;
	struct cv_nat64_chain chain;
	struct cv_nat64_ends ends;
	struct cv_nat64_head head;
	unsigned total;

	if (n < CV_IPV6_LEN || in[0] >> 4 != 6)
		return 0;
	total = CV_IPV6_LEN + rte_be_to_cpu_16(ip->payload_len);
	n = RTE_MIN(n, total);
	ends.src6 = cv_nat64_load(ip->src);
	ends.dst6 = cv_nat64_load(ip->dst);
	if (!cv_nat64_chain_read(in, n, &chain) || total - chain.upper > UINT16_MAX - CV_IPV4_LEN ||
		!cv_nat64_to_ipv4(&nat64->map, ends.src6, &ends.src) ||
		!known_to_ipv4(nat64, ends.dst6, &ends.dst))
		return 0;
	head = (struct cv_nat64_head){
		.class = (uint8_t)(in[0] << 4 | in[1] >> 4) & nat64->class_mask,
		.hops = ip->hop_limit,
		.proto = chain.proto == IPPROTO_ICMPV6 ? IPPROTO_ICMP : chain.proto,
		.payload = (uint16_t)(total - chain.upper),
		.fragment = cv_nat64_fragment_of_ipv6(in, &chain),
	};
	head.df = !head.fragment.given && CV_IPV4_LEN + head.payload > CV_NAT64_MAY_FRAGMENT_MAX;
	*is_fragment = head.fragment.given;
	cv_nat64_write_ipv4(out, &head, &ends);
	n = RTE_MIN(n - chain.upper, room - CV_IPV4_LEN);
	memcpy(out + CV_IPV4_LEN, in + chain.upper, n);
	if (head.fragment.offset == 0 &&
		!inside(out + CV_IPV4_LEN, n, head.payload, chain.proto, false, &ends))
		return 0;
	return CV_IPV4_LEN + n;
}

// The header of an error for IPv6, but for its checksum. False: there is none.
static bool header_to_v6(
	const struct cv_nat64_job *job, const uint8_t *at, unsigned len, uint8_t *out)
{
	const unsigned next_mtu = job->nat64->mtus[job->view->out];
	const unsigned last_mtu = job->nat64->mtus[job->view->in];
	const uint8_t code = at[1];
	struct kind kind = {0};
	uint32_t value = 0;

	if (at[0] == UNREACHABLE && code < RTE_DIM(unreachable_to_v6))
		kind = unreachable_to_v6[code];
	else if (at[0] == TIME_EXCEEDED)
		kind = (struct kind){TIME_EXCEEDED_V6, code};
	else if (at[0] == PARAMETER && (code == 0 || code == 2))
		kind = (struct kind){PARAMETER_V6, 0};
	if (kind.type == TOO_BIG_V6) {
		value = get_be16(at + 6);
		if (value == 0 && len >= HEADER + CV_IPV4_LEN)
			value = plateau_under(get_be16(at + HEADER + 2));
		value = RTE_MIN(value, last_mtu) + CV_NAT64_GROWTH;
		value = RTE_MIN(value, next_mtu);
		value = RTE_MAX(value, (uint32_t)CV_IPV6_MTU_LEAST);
	} else if (at[0] == PARAMETER) {
		value = at[4] < RTE_DIM(pointer_to_v6) ? pointer_to_v6[at[4]] : NONE;
		if (value == NONE)
			return false;
	} else if (kind.type == PARAMETER_V6) {
		value = NEXT_HEADER_AT_V6;
	}
	out[0] = kind.type;
	out[1] = kind.code;
	memset(out + 2, 0, 2);
	put_be32(out + 4, value);
	return kind.type != 0;
}

// The same for IPv4. What is too big for an MTU of IPv4 depends on the packet inside.
static bool header_to_v4(
	const struct cv_nat64_job *job, const uint8_t *at, bool is_fragment, uint8_t *out)
{
	const unsigned next_mtu = job->nat64->mtus[job->view->out];
	const unsigned last_mtu = job->nat64->mtus[job->view->in];
	const unsigned more = CV_NAT64_GROWTH + (is_fragment ? CV_IPV6_FRAGMENT_LEN : 0);
	const uint8_t code = at[1];
	uint32_t value;

	memset(out, 0, HEADER);
	if (at[0] == UNREACHABLE_V6 && code < RTE_DIM(unreachable_to_v4)) {
		out[0] = UNREACHABLE;
		out[1] = unreachable_to_v4[code];
	} else if (at[0] == TIME_EXCEEDED_V6) {
		out[0] = TIME_EXCEEDED;
		out[1] = code;
	} else if (at[0] == PARAMETER_V6 && code == NEXT_HEADER_V6) {
		out[0] = UNREACHABLE;
		out[1] = PROTOCOL_UNREACHABLE;
	} else if (at[0] == PARAMETER_V6 && code == 0) {
		out[0] = PARAMETER;
		out[4] = pointer_to_v4(get_be32(at + 4));
		return out[4] != NONE;
	} else if (at[0] == TOO_BIG_V6) {
		value = get_be32(at + 4);
		value = RTE_MIN(value, last_mtu);
		value = value < 68 + more ? 68 : value - more;
		value = RTE_MIN(value, next_mtu);
		out[0] = UNREACHABLE;
		out[1] = FRAGMENTATION_NEEDED;
		put_be32(out + 4, value & UINT16_MAX);
	} else {
		return false;
	}
	return true;
}

// The bytes of an error that are of the packet inside: without an extension behind it.
static unsigned inside_len(unsigned len, unsigned stated)
{
	return stated == 0 ? len - HEADER : RTE_MIN(len - HEADER, stated);
}

enum cv_nat64_message cv_nat64_icmp_to_icmpv6(const struct cv_nat64_job *job, uint8_t *at,
	unsigned len, const struct cv_nat64_ends *ends, uint8_t *out, unsigned *out_len)
{
	unsigned n;

	if (len < HEADER)
		return CV_NAT64_MESSAGE_BAD;
	if (at[0] == ECHO_REQUEST || at[0] == ECHO_REPLY) {
		echo(at, len, at[0] == ECHO_REQUEST ? ECHO_REQUEST_V6 : ECHO_REPLY_V6,
			IPPROTO_ICMPV6, true, ends);
		return CV_NAT64_ECHO;
	}
	if (!header_to_v6(job, at, len, out))
		return CV_NAT64_MESSAGE_NONE;
	if (cv_checksum_fold(cv_checksum_add(0, at, len)) != 0xffff)
		return CV_NAT64_MESSAGE_BAD;
	n = inside_to_ipv6(job->nat64, at + HEADER, inside_len(len, at[5] * 4u), out + HEADER,
		CV_NAT64_ERROR_MAX - HEADER);
	*out_len = HEADER + n;
	return n == 0 ? CV_NAT64_MESSAGE_NONE : CV_NAT64_ERROR;
}

enum cv_nat64_message cv_nat64_icmpv6_to_icmp(const struct cv_nat64_job *job, uint8_t *at,
	unsigned len, const struct cv_nat64_ends *ends, uint8_t *out, unsigned *out_len)
{
	bool is_fragment, may_extend;
	uint64_t sum;
	unsigned n;

	if (len < HEADER)
		return CV_NAT64_MESSAGE_BAD;
	if (at[0] == ECHO_REQUEST_V6 || at[0] == ECHO_REPLY_V6) {
		echo(at, len, at[0] == ECHO_REQUEST_V6 ? ECHO_REQUEST : ECHO_REPLY, IPPROTO_ICMPV6,
			false, ends);
		return CV_NAT64_ECHO;
	}
	sum = rte_cpu_to_be_16(cv_checksum_fold(cv_nat64_sum_ipv6(ends) + len + IPPROTO_ICMPV6));
	if (cv_checksum_fold(cv_checksum_add(sum, at, len)) != 0xffff)
		return CV_NAT64_MESSAGE_BAD;
	may_extend = at[0] == UNREACHABLE_V6 || at[0] == TIME_EXCEEDED_V6;
	n = inside_to_ipv4(job->nat64, at + HEADER, inside_len(len, may_extend ? at[4] * 8u : 0),
		out + HEADER, CV_ICMPV4_ERROR_MAX - CV_IPV4_LEN - HEADER, &is_fragment);
	*out_len = HEADER + n;
	return n == 0 || !header_to_v4(job, at, is_fragment, out) ? CV_NAT64_MESSAGE_NONE
								  : CV_NAT64_ERROR;
}
