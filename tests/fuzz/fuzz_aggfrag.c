// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// AGGFRAG payloads of a peer that has the key and lies. Whatever comes: packets are conserved, every buffer
// comes back, and what is delivered is a sound IP packet of the policy's, as long as it says.
//
// Input: for each payload, 1 byte: by how much its sequence number is higher than the one before, less 8 (1
// is added, so that 8 is the next); 1 byte: its length; then its bytes.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nf/vpn/aggfrag.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "tests/fuzz/function_fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUTSIDE 1 // a port
#define SPI 256
#define NEXT 8
#define ETHER_LEN 14

static const char sas[] = "in 256 policy all local 192.0.2.2 aggregate yes window 64"
			  " key 000102030405060708090a0b0c0d0e0f10111213\n";
static const char config[] = "{\"outside\": [\"b\"], \"sa_file\": \"%s\", \"policies\": ["
			     "{\"match\": {\"src\": \"10.9.0.0/16\"}, \"action\": \"bypass\"},"
			     "{\"name\": \"all\", \"match\": {}}]}";
static const uint16_t mtus[RIG_PORTS] = {1500, 1500, 1500, 1500};

static struct rte_mempool *pool;
static struct function_rig rig;
static struct cv_vpn *vpn;
static struct cv_cipher cipher;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct cv_nf *nf = cv_nf_find("vpn");
	const int fd = memfd_create("sas", MFD_CLOEXEC);
	char path[32], text[1024];

	pool = fuzz_begin((*argv)[0], "aggfrag");
	must(write(fd, sas, sizeof(sas) - 1) > 0, "there is memory");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(text, sizeof(text), config, path);
	vpn = fuzz_function(nf, text, mtus);
	rig_begin(&rig, nf, vpn, pool);
	must(cv_cipher_make(&cipher,
		     (const uint8_t *)"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d"
				      "\x0e\x0f",
		     16, true),
		"there is a cipher");
	return 0;
}

// Encrypts a payload in an IPv4 packet. Returns the frame's length.
static uint16_t encrypt(uint8_t *frame, const uint8_t *payload, uint16_t len, uint32_t sequence)
{
	static const uint8_t ether[ETHER_LEN] = {2, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 7, 8, 0};
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(frame + ETHER_LEN);
	uint8_t *esp = frame + ETHER_LEN + CV_IPV4_LEN, *clear = esp + CV_ESP_LEN;
	uint8_t nonce[CV_GCM_NONCE_LEN] = {0x10, 0x11, 0x12, 0x13};
	const rte_be32_t words[] = {rte_cpu_to_be_32(SPI), rte_cpu_to_be_32(sequence)};
	const uint8_t padding = -(len + CV_ESP_TRAILER_LEN) & (CV_ESP_ALIGN - 1);
	uint16_t total;

	memset(frame, 0, ETHER_LEN + CV_IPV4_LEN + CV_ESP_LEN);
	memcpy(frame, ether, sizeof(ether));
	memcpy(esp, words, sizeof(words));
	memcpy(clear, payload, len);
	for (uint8_t i = 0; i < padding; i++)
		clear[len++] = i + 1;
	clear[len++] = padding;
	clear[len++] = CV_AGGFRAG_PROTO;
	total = CV_IPV4_LEN + CV_ESP_LEN + len + CV_GCM_TAG_LEN;
	*ip = (struct cv_ipv4){.version_ihl = 0x45,
		.total_len = rte_cpu_to_be_16(total),
		.ttl = 9,
		.proto = IPPROTO_ESP,
		.src = RTE_BE32(0xc0000201),
		.dst = RTE_BE32(0xc0000202)};
	ip->checksum = cv_checksum((uint8_t *)ip, CV_IPV4_LEN);
	cv_cipher_run(&cipher, clear, len, nonce, esp, 8, clear + len);
	return ETHER_LEN + total;
}

static void check_delivered(struct rig_out *out)
{
	struct cv_view view = {.before = 0};
	const uint8_t *ip = out->bytes + ETHER_LEN;
	const uint16_t room = out->len - ETHER_LEN;

	cv_view_set(&view, out->bytes, out->len);
	if (view.proto == CV_PROTO_IPV6) {
		must(cv_ipv6_check((const struct cv_ipv6 *)ip, room) &&
				CV_IPV6_LEN + rte_be_to_cpu_16(cv_load_be16(ip + 4)) == room,
			"an IPv6 packet is sound");
		return;
	}
	must(view.proto == CV_PROTO_IPV4 && cv_ipv4_check((const struct cv_ipv4 *)ip, room) != 0 &&
			rte_be_to_cpu_16(cv_load_be16(ip + 2)) == room,
		"an IPv4 packet is sound");
	must(ip[16] != 10 || ip[17] != 9, "another policy's packet stays out");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cv_sa_state *state = vpn->sa[0].state;
	uint32_t sequence = 100;

	state->replay = (struct cv_replay){.top = 0};
	state->aggfrag->have = 0;
	while (size >= 2) {
		const uint16_t len = (uint16_t)RTE_MIN((size_t)data[1], size - 2);
		const unsigned before = rig.outs;
		uint8_t frame[2048];

		sequence += 1 + data[0] % 32 - NEXT;
		rig_receive(&rig, OUTSIDE, frame, encrypt(frame, data + 2, len, sequence));
		for (unsigned i = before; i < rig.outs; i++)
			check_delivered(&rig.out[i % RIG_OUT_MAX]);
		data += 2 + len;
		size -= 2u + len;
	}
	must(rig_conserved(&rig), "packets are conserved");
	must(rte_mempool_in_use_count(pool) == 0, "buffers come back");
	return 0;
}
