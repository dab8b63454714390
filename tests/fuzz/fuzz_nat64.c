// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any IPv4 and IPv6 packets to nat64, with hosts of a table and of a prefix. Whatever comes: packets are
// conserved; what was translated has a sound header of the other version and fits its port; an ICMP message that
// is made anew has a right checksum; every buffer comes back.
//
// Input: for each packet, 1 byte: 0x80: all bytes of a frame, else 0x40: IPv6, 0x20: it keeps addresses and
// lengths as they are, 0x1f: the length, in units of 8 bytes; then its bytes, from the IP header.
#include <string.h>

#include "packet/icmp.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "tests/fuzz/function_fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MTU 1500
static const char config[] =
	"{\"prefix\": \"2001:db8:100::/40\", \"hosts\": [\"10.0.0.0/8\"], \"eam\": [{\"ipv4\":"
	"\"192.0.2.0/24\", \"ipv6\": \"2001:db9::/120\"}], \"source\": \"203.0.113.1\","
	"\"source_ipv6\": \"2001:dba::1\", \"icmp_rate\": 1000000, \"clients\": \"100.64.0.0/30\"}";
static const uint16_t mtus[RIG_PORTS] = {MTU, MTU, MTU, MTU};

static struct rte_mempool *pool;
static struct function_rig rig;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct cv_nf *nf = cv_nf_find("nat64");

	pool = fuzz_begin((*argv)[0], "nat64");
	rig_begin(&rig, nf, fuzz_function(nf, config, mtus), pool);
	return 0;
}

// Whether an IP packet is sound, whose bytes are those of the frame.
static bool is_sound(const struct cv_view *view)
{
	const uint8_t *ip = view->data + view->l3;
	const uint16_t room = view->len - view->l3;

	if (view->proto == CV_PROTO_IPV6)
		return cv_ipv6_check((const struct cv_ipv6 *)ip, room) &&
		       CV_IPV6_LEN + rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len) ==
			       room;
	return cv_ipv4_check((const struct cv_ipv4 *)ip, room) == CV_IPV4_LEN &&
	       rte_be_to_cpu_16(((const struct cv_ipv4 *)ip)->total_len) == room;
}

// The checksum of what is no echo message, which was made anew.
static bool is_right(const uint8_t *ip, uint16_t len)
{
	if (ip[0] >> 4 == 6)
		return ip[6] != IPPROTO_ICMPV6 || ip[40] >= 128 || cv_icmpv6_checksum_ok(ip);
	return ip[9] != IPPROTO_ICMP || (ip[6] & 0x3f) != 0 || ip[7] != 0 || ip[20] == 0 ||
	       ip[20] == 8 || cv_checksum_fold(cv_checksum_add(0, ip + 20, len - 20u)) == 0xffff;
}

static void check(const struct rig_out *out, const uint8_t *packet, uint16_t len)
{
	struct cv_view view = {.before = 0}, came = {.before = 0};

	cv_view_set(&view, (uint8_t *)out->bytes, out->len);
	cv_view_set(&came, (uint8_t *)packet, len);
	if (out->port == 0) {
		must(view.proto == came.proto && is_sound(&view), "an error is sound");
		return;
	}
	if (view.proto == came.proto) {
		must(out->len == len && memcmp(out->bytes, packet, len) == 0, "it is unchanged");
		return;
	}
	must(view.l3 == came.l3, "tags stay");
	must(view.proto == CV_PROTO_IPV4 || view.proto == CV_PROTO_IPV6, "it is IP");
	must(is_sound(&view), "it is sound");
	must(is_right(view.data + view.l3, view.len - view.l3), "its checksum is right");
	must(view.len - view.l3 <= MTU, "it fits");
}

// A packet with addresses that are translated and lengths that fit.
static void complete(uint8_t *ip, uint16_t len, bool v6)
{
	if (v6) {
		ip[0] = 0x60 | (ip[0] & 15);
		ip[4] = (uint8_t)((len - CV_IPV6_LEN) >> 8);
		ip[5] = (uint8_t)(len - CV_IPV6_LEN);
		memcpy(ip + 8,
			ip[15] & 1 ? "\x20\x01\x0d\xb9\0\0\0\0\0\0\0\0\0\0\0"
				   : "\x20\x01\x0d\xb8\x01\x0a\0\0\0\0\0\0\0\0\0",
			15);
		if (ip[23] & 2) // a client
			ip[11] = 0xbb;
		memcpy(ip + 24, "\x20\x01\x0d\xb8\x01\x0a\0\0\0", 9);
		return;
	}
	ip[0] = 0x40 | (ip[0] & 1 ? 5 + (ip[0] & 3) : 5);
	ip[2] = (uint8_t)(len >> 8);
	ip[3] = (uint8_t)len;
	ip[12] = 10;
	if (ip[19] & 1)
		memcpy(ip + 16, "\xc0\0\2", 3);
	else if (ip[19] & 2)
		memcpy(ip + 16, "\x64\x40\0", 3);
	else
		ip[16] = 10;
	memset(ip + 10, 0, 2);
	memcpy(ip + 10, &(rte_be16_t){cv_checksum(ip, (ip[0] & 15) * 4u)}, 2);
	if (ip[9] == IPPROTO_ICMP && (ip[0] & 15) == 5 && len > 28 && ip[20] != 8) {
		memset(ip + 22, 0, 2);
		memcpy(ip + 22, &(rte_be16_t){cv_checksum(ip + 20, len - 20u)}, 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t ether[] = {2, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 7, 8, 0};
	static const uint8_t v6_type[] = {0x86, 0xdd};
	unsigned seen = rig.outs;

	while (size >= 1) {
		const bool raw = data[0] & 0x80, v6 = data[0] & 0x40, kept = data[0] & 0x20;
		const uint16_t least = v6 ? CV_IPV6_LEN : 32;
		uint16_t len = (uint16_t)RTE_MIN((data[0] & 0x1fu) * 8, size - 1);
		uint8_t packet[2048] = {0}, *ip = packet + sizeof(ether);
		const uint16_t eaten = len;

		memcpy(packet, ether, sizeof(ether));
		if (v6)
			memcpy(packet + 12, v6_type, sizeof(v6_type));
		memcpy(raw ? packet : ip, data + 1, len);
		if (!raw && !kept) {
			len = RTE_MAX(len, least);
			if (len > 200) // as long as it becomes too long
				len = (uint16_t)(1200 + 2 * ip[eaten - 1]);
			complete(ip, len, v6);
			if (v6 && ip[6] == IPPROTO_ICMPV6 && len > 48 && ip[40] < 128)
				cv_icmpv6_checksum_set(ip);
		}
		len += raw ? 0 : sizeof(ether);
		rig_receive(&rig, 0, packet, len);
		for (; seen < rig.outs; seen++)
			check(&rig.out[seen % RIG_OUT_MAX], packet, len);
		data += 1 + eaten;
		size -= 1u + eaten;
	}
	must(rig_conserved(&rig), "packets are conserved");
	must(rte_mempool_in_use_count(pool) == 0, "buffers come back");
	return 0;
}
