// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any packets to the functions of NSH: one that forwards, proxies and decapsulates, a function that sees
// what is inside and makes it longer or shorter, one that forwards what comes back, and one that
// encapsulates what is no NSH. Whatever comes: packets are conserved; what leaves with NSH has a sound
// one, and a sound transport if that is new; every buffer comes back.
//
// Input: for each packet, 1 byte: how its first bytes are made, so that it is found at all (RAW, or one of the
// transports with a header whose path is in the table); 1 byte: its length; then its bytes.
#include <string.h>

#include "nf/nsh/header.h"
#include "tests/fuzz/function_fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char table[] =
	"{\"paths\": [{\"path\": 1, \"index\": 4, \"mac\": \"02:00:00:00:00:09\"},"
	"{\"path\": 1, \"index\": 3, \"action\": \"proxy\"},"
	"{\"path\": 1, \"index\": 2, \"mac\": \"02:00:00:00:00:09\", \"dev\": \"c\","
	"  \"vxlan_gpe\": {\"src\": \"10.0.0.1\", \"dst\": \"10.0.0.2\", \"vni\": 5}},"
	"{\"path\": 1, \"index\": 1, \"action\": \"decapsulate\"},"
	"{\"path\": 1, \"index\": 0, \"mac\": \"02:00:00:00:00:09\","
	"  \"vxlan_gpe\": {\"src\": \"::1\", \"dst\": \"::2\", \"vni\": 5}}],"
	" \"not_nsh\": \"pass\", \"oam\": \"forward\"}";
static const char encap[] =
	"{\"rules\": [{\"match\": {\"proto\": 17}, \"path\": 1, \"mac\": \"02:00:00:00:00:09\"},"
	"{\"path\": 1, \"index\": 3, \"mac\": \"02:00:00:00:00:09\","
	" \"tlvs\": [{\"metadata_class\": 1, \"type\": 1, \"value\": \"00\"}],"
	" \"vxlan_gpe\": {\"src\": \"::1\", \"dst\": \"::2\", \"vni\": 5}}]}";
static const uint16_t mtus[RIG_PORTS] = {1500, 1500, 1500, 1500};

// Transports by the first byte; a header of path 1 follows all but RAW.
enum { RAW, ETHERNET, TAGGED, VXLAN, VXLAN_V6, KINDS };

static struct rte_mempool *pool;
static struct function_rig rig;
static struct cv_nf_counters counters[4];
static struct cv_step steps[4];

// It knows nothing of NSH. It may see anything, and makes it longer or shorter.
static uint16_t resize(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = CV_NEXT;
		if (view[i].len < CV_ETHER_LEN || view[i].proto == CV_PROTO_NSH)
			continue;
		if (view[i].data[0] & 4) {
			uint8_t *at = cv_nf_append(worker, &view[i], 9);

			if (at != NULL)
				memset(at, 0x11, 9);
		} else if (view[i].before > 0) {
			cv_nf_trim(worker, &view[i], 3);
		}
	}
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct cv_nf *nsh, *encaps;
	void *instance;

	pool = fuzz_begin((*argv)[0], "nsh");
	nsh = cv_nf_find("nsh");
	encaps = cv_nf_find("nsh_encap");
	instance = fuzz_function(nsh, table, mtus);
	steps[0] = (struct cv_step){
		.process = nsh->process, .instance = instance, .counters = &counters[0]};
	steps[1] = (struct cv_step){.process = resize, .counters = &counters[1]};
	steps[2] = steps[0];
	steps[2].counters = &counters[2];
	steps[3] = (struct cv_step){.process = encaps->process,
		.instance = fuzz_function(encaps, encap, mtus),
		.counters = &counters[3]};
	rig_begin(&rig, nsh, instance, pool);
	rig.path = (struct cv_path){.length = 4, .steps = steps};
	return 0;
}

// The last function gives every packet a header.
static void check(const struct rig_out *out)
{
	struct cv_view view = {.before = 0};
	unsigned at;

	cv_view_set(&view, (uint8_t *)out->bytes, out->len);
	at = cv_nsh_find(&view);
	must(at != 0, "it has NSH");
	must(cv_nsh_len(out->bytes + at, out->len - at) != 0, "its header is sound");
	must(out->bytes[0] == 2 && out->bytes[5] == 9, "it goes to a next hop");
	if (view.proto != CV_PROTO_IPV6)
		return;
	must(cv_ipv6_check((const struct cv_ipv6 *)(out->bytes + view.l3), view.len - view.l3),
		"the tunnel's header is sound");
	must(rte_be_to_cpu_16(((const struct cv_ipv6 *)(out->bytes + view.l3))->payload_len) ==
			out->len - CV_ETHER_LEN - CV_IPV6_LEN,
		"its length is that of the packet");
}

static uint16_t prefix(uint8_t kind, uint8_t *at)
{
	static const uint8_t macs_[12] = {2, 0, 0, 0, 0, 1, 2};
	static const uint8_t ipv4[] = {0x45, [8] = 64, 17, [12] = 10, 0, 0, 1, 10, 0, 0, 2};
	static const uint8_t ipv6[40] = {0x60, [6] = 17, 64, [23] = 1, [39] = 2};
	static const uint8_t udp[16] = {0, 9, 0x12, 0xb6, [8] = 0x0c, [11] = 4, [14] = 5};
	uint16_t len = 14;

	memcpy(at, macs_, 12);
	memcpy(at + 12, (uint8_t[]){0x89, 0x4f}, 2);
	if (kind == TAGGED) {
		memcpy(at + 12, (uint8_t[]){0x81, 0, 0, 5, 0x89, 0x4f}, 6);
		len = 18;
	} else if (kind == VXLAN) {
		memcpy(at + 12, (uint8_t[]){8, 0}, 2);
		memcpy(at + 14, ipv4, sizeof(ipv4));
		memcpy(at + 34, udp, sizeof(udp));
		len = 50;
	} else if (kind == VXLAN_V6) {
		memcpy(at + 12, (uint8_t[]){0x86, 0xdd}, 2);
		memcpy(at + 14, ipv6, sizeof(ipv6));
		memcpy(at + 54, udp, sizeof(udp));
		len = 70;
	}
	return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned seen = rig.outs;

	while (size >= 2) {
		const uint16_t len = (uint16_t)RTE_MIN((size_t)data[1], size - 2);
		const uint8_t kind = data[0] % KINDS;
		uint8_t packet[512];
		uint16_t at = 0;

		if (kind != RAW)
			at = prefix(kind, packet);
		memcpy(packet + at, data + 2, len);
		if (kind != RAW && len >= CV_NSH_LEN) // path 1, and one of the indices
			memcpy(packet + at + 4, (uint8_t[]){0, 0, 1, (data[0] / KINDS) % 6}, 4);
		rig_receive(&rig, 0, packet, at + len);
		data += 2 + len;
		size -= 2u + len;
		for (; seen < rig.outs; seen++)
			check(&rig.out[seen % RIG_OUT_MAX]);
	}
	uint64_t gone = 0;

	for (unsigned i = 0; i < RTE_DIM(counters); i++)
		for (unsigned why = 0; why < CV_DROPS_MAX; why++)
			gone += counters[i].drops[why];
	must(rig.received == rig.outs + gone, "packets are conserved");
	must(rte_mempool_in_use_count(pool) == 0, "buffers come back");
	return 0;
}
