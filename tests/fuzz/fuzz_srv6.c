// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any packets to the functions of SRv6: one with a SID of each behaviour, and behind it one that encapsulates
// what is left. Whatever comes: packets are conserved; ICMPv6 errors are sound and go back; what leaves
// encapsulated has a sound header with as many segments as there should be; every buffer comes back.
//
// Input: for each packet, 1 byte: the SID that it is sent to, and whether it begins with a segment routing
// header; 1 byte: its length; then its bytes, behind the IPv6 header. Or, with the highest bit, all bytes of
// a frame.
#include <string.h>

#include "nf/srv6/header.h"
#include "packet/icmp.h"
#include "tests/fuzz/function_fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIDS 8
#define MAC ", \"mac\": \"02:00:00:00:00:09\"}"

static const char sids[] = "{\"icmp_rate\": 1000000, \"sids\": [{\"sid\": \"2001:db8::1\"},"
			   "{\"sid\": \"2001:db8::2\", \"behaviour\": \"end-x\"" MAC ","
			   "{\"sid\": \"2001:db8::3\", \"behaviour\": \"end-dx2\"},"
			   "{\"sid\": \"2001:db8::4\", \"behaviour\": \"end-dx4\"" MAC ","
			   "{\"sid\": \"2001:db8::5\", \"behaviour\": \"end-dx6\"" MAC ","
			   "{\"sid\": \"2001:db8::6\", \"behaviour\": \"end-dt4\"},"
			   "{\"sid\": \"2001:db8::7\", \"behaviour\": \"end-dt6\"},"
			   "{\"sid\": \"2001:db8::8\", \"behaviour\": \"end-dt46\"}]}";
static const char encap[] =
	"{\"source\": \"2001:db8::9\", \"icmp_rate\": 1000000, \"rules\": ["
	"{\"match\": {\"proto\": 17}, \"segments\": [\"2001:db8:1::1\", \"2001:db8:1::2\"]},"
	"{\"match\": {\"proto\": 6}, \"behaviour\": \"encaps-red\", \"segments\":"
	"  [\"2001:db8:1::1\"]" MAC ","
	"{\"behaviour\": \"encaps-l2\", \"segments\": [\"2001:db8:1::1\", \"2001:db8:1::2\"]}]}";
static const uint16_t mtus[RIG_PORTS] = {1500, 1500, 1500, 1500};

static struct rte_mempool *pool;
static struct function_rig rig;
static struct cv_nf_counters counters[2];
static struct cv_step steps[2];

static struct cv_step make(const char *name, const char *text, struct cv_nf_counters *counter)
{
	const struct cv_nf *nf = cv_nf_find(name);
	void *instance = fuzz_function(nf, text, mtus);

	return (struct cv_step){.process = nf->process, .instance = instance, .counters = counter};
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	pool = fuzz_begin((*argv)[0], "srv6");
	steps[0] = make("srv6", sids, &counters[0]);
	steps[1] = make("srv6_encap", encap, &counters[1]);
	rig_begin(&rig, cv_nf_find("srv6"), steps[0].instance, pool);
	rig.path = (struct cv_path){.length = 2, .steps = steps};
	return 0;
}

static void check(const struct rig_out *out)
{
	struct cv_view view = {.before = 0};
	struct cv_srv6 headers;
	const uint8_t *ip;
	const struct cv_srh *srh;

	cv_view_set(&view, (uint8_t *)out->bytes, out->len);
	ip = view.data + view.l3;
	must(view.proto == CV_PROTO_IPV6, "it is IPv6");
	must(cv_ipv6_check((const struct cv_ipv6 *)ip, view.len - view.l3), "its header is sound");
	if (out->port == 0) {
		must(ip[6] == IPPROTO_ICMPV6 && cv_icmpv6_checksum_ok(ip), "its checksum too");
		must(ip[CV_IPV6_LEN] < 128, "it is an error");
		return;
	}
	must(cv_srv6_read(ip, &headers), "its headers fit");
	must(view.len == view.l3 + CV_IPV6_LEN +
				 rte_be_to_cpu_16(((const struct cv_ipv6 *)ip)->payload_len),
		"its length is that of the packet");
	srh = (const struct cv_srh *)(ip + headers.srh);
	if (headers.srh == 0) // reduced
		must(ip[6] == 4 || ip[6] == 41, "there is a packet inside");
	else
		must(srh->left == 1 && srh->last == 1 && srh->len == 4, "it has two segments");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t ether[] = {2, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 7, 0x86, 0xdd};
	unsigned seen = rig.outs;
	uint64_t gone = 0, made = 0;

	while (size >= 2) {
		const uint16_t len = (uint16_t)RTE_MIN((size_t)data[1], size - 2);
		uint8_t packet[512] = {0};
		struct cv_ipv6 *ip = (struct cv_ipv6 *)(packet + sizeof(ether));
		uint16_t at = 0;

		if (!(data[0] & 0x80)) {
			memcpy(packet, ether, sizeof(ether));
			ip->version_class_flow = RTE_BE32(0x60000000);
			ip->payload_len = rte_cpu_to_be_16(len);
			ip->hop_limit = data[0] & 0x40 ? 64 : 1;
			ip->next = data[0] & 0x20 && len > 0 ? data[2] : IPPROTO_ROUTING;
			memcpy(ip->src, (uint8_t[16]){0x20, 1, 0xd, 0xb8, 7, [15] = 1}, 16);
			memcpy(ip->dst,
				(uint8_t[16]){0x20, 1, 0xd, 0xb8, [15] = 1 + data[0] % SIDS}, 16);
			at = sizeof(ether) + CV_IPV6_LEN;
		}
		memcpy(packet + at, data + 2, len);
		if (!(data[0] & 0xa0) && len > 2)
			packet[at + 2] = CV_SRH_TYPE;
		rig_receive(&rig, 0, packet, at + len);
		data += 2 + len;
		size -= 2u + len;
		for (; seen < rig.outs; seen++)
			check(&rig.out[seen % RIG_OUT_MAX]);
	}
	for (unsigned i = 0; i < RTE_DIM(counters); i++) {
		made += counters[i].originated;
		for (unsigned why = 0; why < CV_DROPS_MAX; why++)
			gone += counters[i].drops[why];
	}
	must(rig.received + made == rig.outs + gone, "packets are conserved");
	must(rte_mempool_in_use_count(pool) == 0, "buffers come back");
	return 0;
}
