// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any packets to the two ends of tunnels: from outside whole frames, or ESP packets that are authentic
// whatever is inside; from inside any. Whatever comes: packets are conserved, every buffer comes back, what
// is delivered is a sound IP packet, and what is sealed at one end is opened at the other.
//
// Input: for each packet, 1 byte: how it comes; 1 byte: its length; then its bytes. How: 0x80 from outside;
// then 0x40: they are encrypted, as ESP of the association that the lowest bit says.
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nf/vpn/vpn.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "tests/fuzz/function_fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INSIDE 0 // ports
#define OUTSIDE 1
#define KEY "000102030405060708090a0b0c0d0e0f10111213"
#define SPI 258

static const char sas[] = "out 256 policy udp local 192.0.2.1 peer 192.0.2.2 key " KEY "\n"
			  "out 257 policy rest local 2001:db8::1 peer 2001:db8::2 udp 4500 esn yes"
			  " key " KEY "\n"
			  "in 256 policy udp local 192.0.2.2 window 64 key " KEY "\n"
			  "in 257 policy rest local 2001:db8::2 esn yes key " KEY "\n"
			  // What is encrypted here has associations, and numbers, of its own.
			  "in 258 policy udp local 192.0.2.2 window 64 key " KEY "\n"
			  "in 259 policy rest local 192.0.2.2 key " KEY "\n";
static const char config[] =
	"{\"outside\": [\"b\"], \"sa_file\": \"%s\", \"icmp_rate\": 1000000, \"policies\": ["
	"{\"name\": \"udp\", \"match\": {\"proto\": \"udp\"}},"
	"{\"match\": {\"proto\": \"tcp\"}, \"action\": \"bypass\"},"
	"{\"match\": {\"proto\": \"sctp\"}, \"action\": \"discard\"},"
	"{\"name\": \"rest\", \"match\": {}}]}";
static const uint16_t mtus[RIG_PORTS] = {576, 576, 576, 576};

static struct rte_mempool *pool;
static struct function_rig rig;
static struct cv_vpn *vpn;
static struct cv_cipher cipher;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct cv_nf *nf = cv_nf_find("vpn");
	const int fd = memfd_create("sas", MFD_CLOEXEC);
	char path[32], text[1024];

	pool = fuzz_begin((*argv)[0], "vpn");
	must(write(fd, sas, sizeof(sas) - 1) > 0, "there is memory");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(text, sizeof(text), config, path);
	vpn = fuzz_function(nf, text, mtus);
	cipher = vpn->sa[0].state->cipher;
	rig_begin(&rig, nf, vpn, pool);
	return 0;
}

// Every input begins alike: no number was used.
static void begin(void)
{
	for (size_t i = 0; i < vpn->sas; i++) {
		vpn->sa[i].state->sequence = 0;
		vpn->sa[i].state->replay = (struct cv_replay){.top = 0};
	}
}

// Encrypts bytes behind the headers of an IPv4 packet. Returns the frame's length.
static uint16_t encrypt(uint8_t *frame, const uint8_t *bytes, uint16_t len, uint32_t spi)
{
	static uint32_t sequence;
	static const uint8_t ether[] = {2, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 7, 8, 0};
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(frame + sizeof(ether));
	uint8_t *esp = frame + sizeof(ether) + CV_IPV4_LEN;
	uint8_t nonce[CV_GCM_NONCE_LEN] = {0x10, 0x11, 0x12, 0x13};
	const rte_be32_t words[] = {rte_cpu_to_be_32(spi), rte_cpu_to_be_32(++sequence % 4096)};
	const uint16_t total = CV_IPV4_LEN + CV_ESP_LEN + len + CV_GCM_TAG_LEN;

	memset(frame, 0, sizeof(ether) + CV_IPV4_LEN + CV_ESP_LEN);
	memcpy(frame, ether, sizeof(ether));
	*ip = (struct cv_ipv4){.version_ihl = 0x45,
		.tos = bytes[0],
		.total_len = rte_cpu_to_be_16(total),
		.ttl = 9,
		.proto = IPPROTO_ESP,
		.src = RTE_BE32(0xc0000201),
		.dst = RTE_BE32(0xc0000202)};
	ip->checksum = cv_checksum((uint8_t *)ip, CV_IPV4_LEN);
	memcpy(esp, words, sizeof(words));
	memcpy(esp + CV_ESP_LEN, bytes, len);
	cv_cipher_run(&cipher, esp + CV_ESP_LEN, len, nonce, esp, 8, esp + CV_ESP_LEN + len);
	return (uint16_t)(sizeof(ether) + total);
}

static bool is_sound(const struct cv_view *view)
{
	const uint8_t *ip = view->data + view->l3;
	const uint16_t room = view->len - view->l3;

	if (view->proto == CV_PROTO_IPV6)
		return cv_ipv6_check((const struct cv_ipv6 *)ip, room);
	return view->proto == CV_PROTO_IPV4 && cv_ipv4_check((const struct cv_ipv4 *)ip, room) != 0;
}

// What was sealed is opened by the other end, which is the same function.
static void open_again(const struct rig_out *sealed)
{
	const unsigned outs = rig.outs;

	rig_receive(&rig, OUTSIDE, sealed->bytes, sealed->len);
	must(rig.outs == outs + 1, "what was sealed is opened");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	while (size >= 2) {
		const uint16_t len = (uint16_t)RTE_MIN((size_t)data[1], size - 2);
		const bool outside = data[0] & 0x80;
		const bool encrypted = outside && (data[0] & 0x40) && len > 0;
		const unsigned before = rig.outs;
		uint8_t frame[2048];
		uint16_t frame_len = len;

		if (encrypted)
			frame_len = encrypt(frame, data + 2, len, SPI + (data[0] & 1));
		else
			memcpy(frame, data + 2, len);
		rig_receive(&rig, outside ? OUTSIDE : INSIDE, frame, frame_len);
		if (encrypted && rig.outs > before) {
			struct rig_out *out = &rig.out[before % RIG_OUT_MAX];
			struct cv_view view = {.before = 0};

			cv_view_set(&view, out->bytes, out->len);
			must(is_sound(&view), "what is delivered is sound");
		}
		for (unsigned i = before, end = rig.outs; !outside && i < end; i++) {
			const struct rig_out out = rig.out[i % RIG_OUT_MAX];

			if (out.port == OUTSIDE && out.len > len)
				open_again(&out);
		}
		data += 2 + len;
		size -= 2u + len;
	}
	must(rig_conserved(&rig), "packets are conserved");
	must(rte_mempool_in_use_count(pool) == 0, "buffers come back");
	return 0;
}
