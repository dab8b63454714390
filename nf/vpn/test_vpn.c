// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Two nodes' functions, west and east, with tunnels between them: what goes into one comes out of the other,
// and nothing else does. Each packet goes through a path of its own.
#include "tests/support/test_packets.h"

#include <sys/stat.h>

#include "nf/vpn/ecn.h"
#include "nf/vpn/vpn.h"
#include "packet/icmp.h"
#include "tests/support/function_rig.h"
#include "tests/support/test_dir.h"

extern const struct cv_nf cv_nf_vpn;

#define INSIDE 0 // ports
#define OUTSIDE 1
#define K1 "000102030405060708090a0b0c0d0e0f10111213"
#define K2 "202122232425262728292a2b2c2d2e2f30313233"
#define K3 "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f60616263"
#define WEST "198.51.100.1"
#define EAST "203.0.113.1"
#define ETHER_LEN 14

static struct rte_mempool *pool;
static struct function_rig rig;
static char folder[] = "/tmp/convoy-vpn-XXXXXX";

// Writes a file of associations. Returns its path.
static const char *sa_file(const char *name, const char *text)
{
	static char path[2][96];
	static unsigned turn;
	char *to = path[turn++ % 2];
	FILE *file;

	snprintf(to, sizeof(path[0]), "%s/%s", folder, name);
	unlink(to);
	file = fopen(to, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(to, 0600), 0);
	return to;
}

static const char *config_of(const char *policies, const char *sas, const char *more)
{
	static char text[4096];

	snprintf(text, sizeof(text), "{'outside': ['right'], 'policies': [%s], 'sa_file': '%s'%s}",
		policies, sa_file("sas", sas), more);
	return text;
}

static void *make(const char *policies, const char *sas, const char *more)
{
	return packet_nf(&cv_nf_vpn, config_of(policies, sas, more), NULL);
}

#define ALL "{'name': 'all', 'match': {}}"

// A packet through a function. Returns the first that came out; none has length 0.
static struct packet through(void *vpn, unsigned port, const struct packet *packet)
{
	struct packet out = {.len = 0};

	rig_begin(&rig, &cv_nf_vpn, vpn, pool);
	assert_true(rig_receive(&rig, port, packet->bytes, packet->len));
	assert_true(rig_conserved(&rig));
	if (rig.outs > 0) {
		out.len = rig.out[0].len;
		memcpy(out.bytes, rig.out[0].bytes, out.len);
	}
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	return out;
}

// A burst, of packets that pointers lead to.
static void receive(void *vpn, unsigned port, const struct packet *const *packets, uint16_t n)
{
	struct rte_mbuf *mbufs[CV_BURST_MAX];
	struct cv_burst burst;

	rig_begin(&rig, &cv_nf_vpn, vpn, pool);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, mbufs, n), 0);
	for (uint16_t i = 0; i < n; i++)
		memcpy(rte_pktmbuf_append(mbufs[i], (uint16_t)packets[i]->len), packets[i]->bytes,
			packets[i]->len);
	cv_burst_load(&burst, mbufs, n, (uint8_t)port, 1 - (uint8_t)port, &rig.ports[port]);
	rig.received += burst.n;
	cv_path_run(&rig.path, &rig.worker, &burst);
	assert_true(rig_conserved(&rig));
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void expect_drop(const char *what, const char *reason)
{
	for (unsigned why = 0; cv_nf_vpn.drops[why] != NULL; why++)
		if (rig.counters.drops[why] != (strcmp(cv_nf_vpn.drops[why], reason) == 0 ? 1 : 0))
			fail_msg("%s: dropped as %s: %d", what, cv_nf_vpn.drops[why],
				(int)rig.counters.drops[why]);
}

static void expect_packet(const char *what, const struct packet *is, const struct packet *want)
{
	if (is->len != want->len)
		fail_msg("%s: %u bytes, not %u", what, is->len, want->len);
	for (unsigned i = 0; i < want->len; i++)
		if (is->bytes[i] != want->bytes[i])
			fail_msg("%s: byte %u is %02x, not %02x", what, i, is->bytes[i],
				want->bytes[i]);
}

static uint8_t *hex(const char *text, size_t *len)
{
	static uint8_t bytes[4][256];
	static unsigned turn;
	uint8_t *to = bytes[turn++ % 4];

	*len = strlen(text) / 2;
	for (size_t i = 0; i < *len; i++) {
		unsigned byte;

		assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
		to[i] = (uint8_t)byte;
	}
	return to;
}

// Test cases 4 and 16 of the specification of GCM that NIST's SP 800-38D cites, and the first and third of
// draft-mcgrew-gcm-test-01, which are of ESP.
static void known_answers(void **state)
{
	static const struct {
		const char *key, *nonce, *with, *plain, *cipher, *tag;
	} rows[] = {
		{"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
			"feedfacedeadbeeffeedfacedeadbeefabaddad2",
			"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
			"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
			"42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
			"21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
			"5bc94fbc3221a5db94fae95ae7121a47"},
		{"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
			"cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
			"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
			"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
			"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
			"8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
			"76fc6ece0f4e1768cddf8853bb2d551b"},
		{"4c80cdefbb5d10da906ac73c3613a634", "2e443b684956ed7e3b244cfe",
			"000043218765432100000000",
			"45000048699a000080114db7c0a80102c0a801010a9bf15638d30100000100000"
			"0000000045f736970045f756470037369700963796265726369747902646b0000"
			"21000101020201",
			"fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34c"
			"fa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce61"
			"bc17d768fd9732",
			"459018148f6cbe722fd04796562dfdb4"},
		{"abbccddef00112233445566778899aababbccddef00112233445566778899aab",
			"112233440102030405060708", "4a2cbfe300000002",
			"4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee0000000007"
			"002400020bf0000020405b40101040201020201",
			"ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d7637"
			"48a637985771d347f0545659f14e99def842d8e",
			"b335f4eecfdbf831824b4c4915956c96"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct cv_cipher cipher;
		size_t key_len, len, with_len, unused;
		const uint8_t *key = hex(rows[i].key, &key_len), *nonce, *with;
		uint8_t data[256], tag[CV_GCM_TAG_LEN];

		assert_true(cv_cipher_make(&cipher, key, key_len, true));
		nonce = hex(rows[i].nonce, &unused);
		with = hex(rows[i].with, &with_len);
		memcpy(data, hex(rows[i].plain, &len), sizeof(data));
		cv_cipher_run(&cipher, data, (uint32_t)len, nonce, with, (uint32_t)with_len, tag);
		assert_memory_equal(data, hex(rows[i].cipher, &unused), len);
		assert_memory_equal(tag, hex(rows[i].tag, &unused), sizeof(tag));

		key = hex(rows[i].key, &key_len);
		assert_true(cv_cipher_make(&cipher, key, key_len, false));
		nonce = hex(rows[i].nonce, &unused);
		with = hex(rows[i].with, &with_len);
		memset(tag, 0, sizeof(tag));
		cv_cipher_run(&cipher, data, (uint32_t)len, nonce, with, (uint32_t)with_len, tag);
		assert_memory_equal(data, hex(rows[i].plain, &unused), len);
		assert_memory_equal(tag, hex(rows[i].tag, &unused), sizeof(tag));

		if (with_len <= CV_CIPHER_ROOM) { // as a packet of a burst, to be encrypted again
			struct cv_cipher_packet packet = {
				.data = data, .tag = tag, .len = (uint32_t)len};

			key = hex(rows[i].key, &key_len);
			assert_true(cv_cipher_make(&cipher, key, key_len, true));
			memcpy(packet.nonce, hex(rows[i].nonce, &unused), CV_GCM_NONCE_LEN);
			memcpy(packet.with, hex(rows[i].with, &with_len), with_len);
			memset(tag, 0, sizeof(tag));
			cv_cipher_run_many(&cipher, &packet, 1, (uint32_t)with_len);
			assert_memory_equal(data, hex(rows[i].cipher, &unused), len);
			assert_memory_equal(tag, hex(rows[i].tag, &unused), sizeof(tag));
		}
	}
}

// Bursts of packets of any lengths are what the library makes of them one by one, and no byte beside them is
// touched.
static void bursts_are_as_one_by_one(void **state)
{
	enum { PACKETS = 13, ROOM = 16 + 400 + 16 };
	static uint8_t bytes[PACKETS][ROOM], alone[PACKETS][ROOM];
	struct cv_cipher_packet packets[PACKETS];
	uint8_t tags[PACKETS][CV_GCM_TAG_LEN], tag[CV_GCM_TAG_LEN], key[CV_GCM_KEY_MAX];
	struct cv_cipher cipher;

	srandom(1);
	for (unsigned turn = 0; turn < 2000; turn++) {
		const uint16_t n = (uint16_t)(1 + random() % PACKETS);
		const uint32_t with_len = random() % 2 == 0 ? 8 : 12;
		const long longest = random() % 2 == 0 ? 70 : 400;

		for (size_t i = 0; i < sizeof(key); i++)
			key[i] = (uint8_t)random();
		assert_true(cv_cipher_make(
			&cipher, key, random() % 2 == 0 ? 16 : 32, random() % 2 == 0));
		for (uint16_t i = 0; i < n; i++) {
			struct cv_cipher_packet *packet = &packets[i];

			for (size_t j = 0; j < ROOM; j++)
				bytes[i][j] = alone[i][j] = (uint8_t)random();
			*packet = (struct cv_cipher_packet){.data = bytes[i] + 16,
				.tag = tags[i],
				.len = (uint32_t)(1 + random() % longest)};
			for (size_t j = 0; j < CV_GCM_NONCE_LEN; j++)
				packet->nonce[j] = (uint8_t)random();
			for (size_t j = 0; j < with_len; j++)
				packet->with[j] = (uint8_t)random();
		}
		cv_cipher_run_many(&cipher, packets, n, with_len);
		for (uint16_t i = 0; i < n; i++) {
			cv_cipher_run(&cipher, alone[i] + 16, packets[i].len, packets[i].nonce,
				packets[i].with, with_len, tag);
			assert_memory_equal(bytes[i], alone[i], ROOM);
			assert_memory_equal(tags[i], tag, sizeof(tag));
		}
	}
}

// A whole ESP packet that somebody else made, with an extended sequence number: it is authentic, and what
// its trailer says is inside is no IP packet.
static void opens_another_ones_packet(void **state)
{
	struct packet packet = packet_make(
		"ip4 src=" WEST " dst=" EAST " proto=50 hex=00004321000000004956ed7e3b244cfe"
		"fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34"
		"cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce"
		"61bc17d768fd9732459018148f6cbe722fd04796562dfdb4");
	struct cv_vpn *vpn = make(ALL,
		"in 0x4321 policy all local " EAST
		" key 0x4c80cdefbb5d10da906ac73c3613a6342e443b68 esn yes\n",
		"");

	vpn->sa[0].state->replay.top = 0x8765432000000000 + 0xffffffff;
	through(vpn, OUTSIDE, &packet);
	expect_drop("another one's packet", "bad_esp");
	assert_int_equal(vpn->sa[0].state->packets, 1);
	assert_int_equal(vpn->sa[0].state->replay.top, 0x8765432100000000);
	through(vpn, OUTSIDE, &packet);
	expect_drop("again", "replayed");
	cv_nf_destroy(&cv_nf_vpn, vpn);
}

static const struct {
	const char *name, *local, *peer, *more;
	const char *key;
	unsigned header; // bytes
} tunnels[] = {
	{"IPv4", WEST, EAST, "", K1, 20},
	{"IPv4, AES-256, ESN", WEST, EAST, "esn yes", K3, 20},
	{"IPv4, UDP", WEST, EAST, "udp 4500", K1, 28},
	{"IPv6", "2001:db8:1::1", "2001:db8:2::1", "", K1, 40},
	{"IPv6, UDP, ESN", "2001:db8:1::1", "2001:db8:2::1", "udp 4500 esn yes", K3, 48},
};

// The two ends of a tunnel.
static void make_ends(size_t i, struct cv_vpn **west, struct cv_vpn **east)
{
	char out[512], in[512];

	snprintf(out, sizeof(out),
		"# comment\n\nout 4096 policy all local %s peer %s key 0x%s %s\n", tunnels[i].local,
		tunnels[i].peer, tunnels[i].key, tunnels[i].more);
	snprintf(in, sizeof(in), "in\t0x1000 key %s policy all local %s peer %s %s", tunnels[i].key,
		tunnels[i].peer, tunnels[i].local,
		strstr(tunnels[i].more, "esn") != NULL ? "esn yes" : "");
	*west = make(ALL, out, "");
	*east = make(ALL, in, "");
}

static const char *const inners[] = {
	"ip4 src=10.1.0.1 dst=10.2.0.1 ttl=%d tos=9 udp sport=1 dport=2 data=%u",
	"vlan id=7 ip4 src=10.1.0.1 dst=10.2.0.1 ttl=%d tos=9 df=1 tcp data=%u",
	"ip6 src=2001:db8:a::1 dst=2001:db8:b::1 hop=%d tc=9 udp data=%u",
	"qinq id=3 vlan id=7 ip6 src=2001:db8:a::1 dst=2001:db8:b::1 hop=%d tc=9 udp data=%u",
};

static void what_goes_in_comes_out(void **state)
{
	for (size_t i = 0; i < RTE_DIM(tunnels); i++) {
		struct cv_vpn *west, *east;
		uint64_t packets = 0;

		make_ends(i, &west, &east);
		for (size_t k = 0; k < RTE_DIM(inners); k++)
			for (unsigned data = 0; data < 1300; data += data < 20 ? 1 : 97) {
				char text[160];
				struct packet in, out, want, back;

				snprintf(text, sizeof(text), inners[k], 9, data);
				in = packet_make(text);
				snprintf(text, sizeof(text), inners[k], 8, data);
				want = packet_make(text);
				out = through(west, INSIDE, &in);
				if (out.len == 0)
					fail_msg("%s: %s: did not leave", tunnels[i].name, text);
				back = through(east, OUTSIDE, &out);
				expect_packet(text, &back, &want);
				assert_int_equal(east->sa[0].state->packets, ++packets);
			}
		assert_int_equal(west->sa[0].state->packets, packets);
		assert_int_equal(west->sa[0].state->bytes, east->sa[0].state->bytes);
		cv_nf_destroy(&cv_nf_vpn, west);
		cv_nf_destroy(&cv_nf_vpn, east);
	}
}

// Padding behind a short frame is not carried.
static void padding_of_ethernet_goes(void **state)
{
	const struct packet in = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 ttl=9 udp pad=18");
	const struct packet want = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 ttl=8 udp");
	struct cv_vpn *west, *east;
	struct packet out;

	make_ends(0, &west, &east);
	out = through(west, INSIDE, &in);
	assert_int_equal(out.len, ETHER_LEN + 20 + 16 + 28 + 4 + 16);
	memset(out.bytes + out.len, 0, 7);
	out.len += 7;
	out = through(east, OUTSIDE, &out);
	expect_packet("a padded frame", &out, &want);
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// What is to be seen of the outer headers.
static void outer_headers(void **state)
{
	static const struct {
		const char *sa, *in, *header; // the first bytes of layer 3; its checksum is 0
	} rows[] = {
		{"", "ip4 tos=186 df=1 udp data=2",
			"45ba0054000040004032"
			"0000"
			"c6336401cb007101"
			"00001000"
			"00000001"},
		{"dscp 10 ttl 7", "ip4 tos=186 udp data=2",
			"452a005400010000"
			"07320000"
			"c6336401cb007101"
			"00001000"
			"00000001"},
		{"df set", "ip4 udp data=2",
			"45000054000040004032"
			"0000"
			"c6336401cb007101"
			"00001000"
			"00000001"},
		{"df clear", "ip4 df=1 udp data=2",
			"4500005400010000"
			"40320000"
			"c6336401cb007101"
			"00001000"
			"00000001"},
		{"udp 5000", "ip4 df=1 udp data=2",
			"4500005c00004000"
			"40110000"
			"c6336401cb007101"
			"119413880048"
			"0000"
			"00001000"
			"00000001"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const struct packet in = packet_make(rows[i].in);
		struct packet out;
		char sas[256];
		size_t len;
		uint8_t *want = hex(rows[i].header, &len);
		void *vpn;

		snprintf(sas, sizeof(sas),
			"out 4096 policy all local " WEST " peer " EAST " key " K1 " %s",
			rows[i].sa);
		vpn = make(ALL, sas, "");
		out = through(vpn, INSIDE, &in);
		assert_true(cv_ipv4_checksum_ok20((struct cv_ipv4 *)(out.bytes + ETHER_LEN)));
		memset(out.bytes + ETHER_LEN + 10, 0, 2);
		for (size_t at = 0; at < len; at++)
			if (out.bytes[ETHER_LEN + at] != want[at])
				fail_msg("%s: %s: byte %zu is %02x, not %02x", rows[i].sa,
					rows[i].in, at, out.bytes[ETHER_LEN + at], want[at]);
		cv_nf_destroy(&cv_nf_vpn, vpn);
	}
}

// Nothing that was changed on its way, or cut short, comes out.
static void changed_packets_are_dropped(void **state)
{
	for (size_t i = 0; i < RTE_DIM(tunnels); i++) {
		const struct packet in = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 udp data=31");
		const unsigned esp = ETHER_LEN + tunnels[i].header;
		struct cv_vpn *west, *east;
		struct packet sound, bad;

		make_ends(i, &west, &east);
		for (unsigned k = 0; k < 3; k++) // of 3 no changed bit makes 0
			sound = through(west, INSIDE, &in);
		for (unsigned bit = 8 * esp; bit < 8u * sound.len; bit++) {
			bad = sound;
			bad.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			through(east, OUTSIDE, &bad);
			if (rig.outs > 0)
				fail_msg("%s: bit %u changed, and delivered", tunnels[i].name, bit);
		}
		// All but those of the SPI were tried.
		assert_int_equal(east->sa[0].state->bad_tags, 8 * (sound.len - esp - 4));
		for (unsigned len = 0; len < sound.len; len++) {
			bad = sound;
			bad.len = (uint16_t)len;
			through(east, OUTSIDE, &bad);
			for (unsigned k = 0; k < rig.outs; k++)
				if (rig.out[k].len >= ETHER_LEN && rig.out[k].len > len)
					fail_msg("%s: cut to %u and delivered", tunnels[i].name,
						len);
			assert_int_equal(east->sa[0].state->packets, 0);
		}
		// What passed was never opened; the packet itself still is, once.
		bad = through(east, OUTSIDE, &sound);
		assert_int_equal(bad.len, in.len);
		through(east, OUTSIDE, &sound);
		expect_drop("a packet twice", "replayed");
		assert_int_equal(east->sa[0].state->packets, 1);
		assert_int_equal(east->sa[0].state->replayed, 1);
		cv_nf_destroy(&cv_nf_vpn, west);
		cv_nf_destroy(&cv_nf_vpn, east);
	}
}

// A lower half that wraps, duplicates and late packets, in the order of a list.
static void sequence_numbers(void **state)
{
	static const struct {
		uint64_t number;
		const char *drop; // NULL: it comes out
	} rows[] = {{0x80000000, NULL}, {0xfffffff0, NULL}, {0xffffffff, NULL}, {0x100000000, NULL},
		{0xffffffff, "replayed"}, {0x100000000, "replayed"}, {0xfffffffe, NULL},
		{0xfffffffe, "replayed"}, {0x10000003f, NULL}, {0x10000003f, "replayed"},
		// Below the window: taken for the next range, in which they are not authentic.
		{0xffffffff, "bad_tag"}, {0x100000000, "replayed"}, {0x100000001, NULL},
		{0x180000000, NULL}, {0x17fffffc1, NULL}, {0x17fffffc0, "bad_tag"}};
	const struct packet in = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 udp data=31");
	struct cv_vpn *west,
		*east = make(
			ALL, "in 0x1000 policy all local " EAST " window 64 esn yes key " K3, "");
	struct cv_vpn *unused;
	unsigned passed = 0;

	make_ends(1, &west, &unused);
	cv_nf_destroy(&cv_nf_vpn, unused);
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct packet out;

		west->sa[0].state->sequence = rows[i].number - 1;
		out = through(west, INSIDE, &in);
		out = through(east, OUTSIDE, &out);
		if ((out.len == 0) != (rows[i].drop != NULL))
			fail_msg("row %zu: %s", i, out.len == 0 ? "dropped" : "passed");
		if (rows[i].drop != NULL)
			expect_drop("a sequence number", rows[i].drop);
		passed += rows[i].drop == NULL;
		assert_int_equal(east->sa[0].state->packets, passed);
	}
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// The window beside a set of all numbers that came.
static void window_is_a_set(void **state)
{
	static uint8_t came[1 << 16];

	srandom(1);
	for (uint32_t window = 64; window <= CV_REPLAY_WINDOW_MAX; window *= 2) {
		struct cv_replay replay = {.top = 0};
		uint64_t base = 1;

		memset(came, 0, sizeof(came));
		for (unsigned i = 0; i < 200000; i++) {
			const uint64_t number = base + (uint64_t)random() % (2 * window);
			const bool is_new = number > replay.top ||
					    (replay.top - number < window && !came[number % 65536]);

			assert_int_equal(cv_replay_is_new(&replay, window, number), is_new);
			assert_int_equal(cv_replay_extend(&replay, window, (uint32_t)number),
				number + window > replay.top ? number : number | UINT64_C(1) << 32);
			if (is_new) {
				cv_replay_note(&replay, number);
				came[number % 65536] = 1;
			}
			if (random() % 50 == 0) {
				base += (uint64_t)random() % (window / 4);
				for (unsigned k = 0; k < 16384; k++)
					came[(base + 20000 + k) % 65536] = 0;
			}
		}
		assert_false(cv_replay_is_new(&replay, window, 0));
	}
}

static void policies(void **state)
{
	static const char rules[] =
		"{'match': {'proto': 'icmp'}, 'action': 'bypass'},"
		"{'match': {'src': '10.1.9.0/24'}, 'action': 'discard'},"
		"{'name': 'web', 'match': {'dst': '10.2.0.0/16', 'proto': 'tcp', 'dport': 80}},"
		"{'name': 'branch', 'match': {'src': '10.1.0.0/16', 'dst': '10.2.0.0/16'}},"
		"{'name': 'none', 'match': {'dst': '10.3.0.0/16'}}";
	static const char sas[] = "out 4096 policy branch local " WEST " peer " EAST " key " K1
				  "\nout 4097 policy web local " WEST " peer " EAST " key " K2
				  "\nin 4096 policy branch local " EAST " key " K1
				  "\nin 4097 policy web local " EAST " key " K2;
	static const struct {
		const char *in, *drop;
		unsigned port;
		unsigned grows; // bytes
	} rows[] = {
		{"ip4 src=10.1.0.1 dst=10.2.0.1 icmp", NULL, INSIDE, 0},
		{"ip4 src=10.1.9.1 dst=10.2.0.1 udp", "discarded", INSIDE, 0},
		{"ip4 src=10.1.0.1 dst=10.2.0.1 udp", NULL, INSIDE, 36 + 20},
		{"ip4 src=10.7.0.1 dst=10.2.0.1 tcp dport=80", NULL, INSIDE, 36 + 20},
		{"ip4 src=10.7.0.1 dst=10.2.0.1 tcp dport=81", "discarded", INSIDE, 0},
		{"ip4 dst=10.3.0.1 udp", "no_sa", INSIDE, 0},
		{"ip6 udp", "discarded", INSIDE, 0},
		{"type=0806 data=46", NULL, INSIDE, 0},
		{"ip4 src=10.1.0.1 dst=10.2.0.1 sum=1234 udp", "bad_header", INSIDE, 0},
		{"ip4 src=10.1.0.1 dst=10.2.0.1 ttl=1 udp", "ttl_expired", INSIDE, 0},
		{"ip4 src=10.2.0.1 dst=10.1.0.1 icmp", NULL, OUTSIDE, 0},
		{"ip4 src=10.2.0.1 dst=10.1.0.1 udp", "unprotected", OUTSIDE, 0},
		{"ip4 src=10.2.0.1 dst=10.1.9.1 udp", "discarded", OUTSIDE, 0},
		{"ip4 src=10.2.0.1 dst=10.7.0.1 tcp sport=80", "unprotected", OUTSIDE, 0},
		{"ip4 src=10.2.0.1 dst=10.7.0.1 udp", "discarded", OUTSIDE, 0},
		{"type=0806 data=46", NULL, OUTSIDE, 0},
		{"ip4 dst=" EAST " proto=50 data=60", "no_sa", OUTSIDE, 0},
		{"ip4 dst=" EAST " mf=1 proto=50 data=60", "fragment", OUTSIDE, 0},
		{"ip4 dst=" EAST " off=9 proto=50 data=60", "fragment", OUTSIDE, 0},
		{"ip4 dst=" EAST " proto=50 data=30", "bad_esp", OUTSIDE, 0},
		{"ip4 dst=" EAST " proto=50 data=61", "bad_esp", OUTSIDE, 0},
		{"ip4 dst=192.0.2.77 proto=50 data=60", "discarded", OUTSIDE, 0},
		{"ip4 dst=" EAST " udp dport=4500 hex=00000000abcd", "discarded", OUTSIDE, 0},
		{"ip4 dst=" EAST " udp dport=4500 data=61", "bad_esp", OUTSIDE, 0},
		{"ip4 dst=" EAST " udp dport=4501 data=60", "discarded", OUTSIDE, 0},
	};
	const struct packet keepalive =
		packet_make("ip4 dst=" EAST " udp sport=4500 dport=4500 hex=ff");
	void *vpn = make(rules, sas, "");

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const struct packet in = packet_make(rows[i].in);
		const struct packet out = through(vpn, rows[i].port, &in);

		if (rows[i].drop != NULL) {
			expect_drop(rows[i].in, rows[i].drop);
			assert_int_equal(rig.outs, strcmp(rows[i].drop, "ttl_expired") == 0);
		} else if (out.len != in.len + rows[i].grows) {
			fail_msg("%s: %u bytes left, not %u", rows[i].in, out.len,
				in.len + rows[i].grows);
		}
	}
	through(vpn, OUTSIDE, &keepalive);
	assert_int_equal(rig.counters.absorbed, 1);
	cv_nf_destroy(&cv_nf_vpn, vpn);
}

// A peer may send by its association what its policy says, and nothing else.
static void wrong_policy(void **state)
{
	const struct packet in = packet_make("ip4 src=10.2.0.1 dst=10.1.0.1 udp data=4");
	const struct packet other = packet_make("ip4 src=10.2.0.1 dst=10.7.0.1 udp data=4");
	void *west = make(ALL, "out 4096 policy all local " WEST " peer " EAST " key " K1, "");
	void *east =
		make("{'name': 'branch', 'match': {'src': '10.1.0.0/16', 'dst': '10.2.0.0/16'}},"
		     "{'name': 'rest', 'match': {}}",
			"in 4096 policy branch local " EAST " key " K1, "");
	struct packet out = through(west, INSIDE, &in);

	out = through(east, OUTSIDE, &out);
	assert_int_equal(out.len, in.len);
	out = through(west, INSIDE, &other);
	through(east, OUTSIDE, &out);
	expect_drop("another network's packet", "wrong_policy");
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

static void limits_and_overflow(void **state)
{
	const struct packet in = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 udp data=2");
	struct cv_vpn *vpn = make(ALL,
		"out 4096 policy all local " WEST " peer " EAST " key " K1
		" soft-packets 2 hard-packets 3 hard-bytes 1000",
		"");

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(cv_sa_is_over(&vpn->sa[0], false), i >= 2);
		assert_int_not_equal(through(vpn, INSIDE, &in).len, 0);
	}
	through(vpn, INSIDE, &in);
	expect_drop("beyond a limit of packets", "expired");
	vpn->sa[0].state->packets = 0;
	vpn->sa[0].state->bytes = 1000;
	through(vpn, INSIDE, &in);
	expect_drop("beyond a limit of bytes", "expired");
	vpn->sa[0].state->bytes = 0;
	vpn->sa[0].state->sequence = UINT32_MAX - 1;
	assert_int_not_equal(through(vpn, INSIDE, &in).len, 0);
	through(vpn, INSIDE, &in);
	expect_drop("beyond the last number", "sequence_overflow");
	assert_int_equal(vpn->sa[0].state->sequence, UINT32_MAX);
	vpn->sa[0].state->sequence = UINT32_MAX + UINT64_C(5); // as it was left with esn yes
	through(vpn, INSIDE, &in);
	expect_drop("far beyond the last number", "sequence_overflow");
	cv_nf_destroy(&cv_nf_vpn, vpn);
}

static void limits_hold_within_a_burst(void **state)
{
	const struct packet in = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 udp data=2");
	struct cv_vpn *west =
		make(ALL, "out 4096 policy all local " WEST " peer " EAST " key " K1, "");
	struct cv_vpn *east =
		make(ALL, "in 4096 policy all local " EAST " hard-packets 2 key " K1, "");
	struct packet sealed[3];

	for (unsigned i = 0; i < 3; i++)
		sealed[i] = through(west, INSIDE, &in);
	receive(east, OUTSIDE, (const struct packet *[]){&sealed[0], &sealed[1], &sealed[2]}, 3);
	assert_int_equal(rig.outs, 2);
	expect_drop("the third of a burst", "expired");
	assert_int_equal(east->sa[0].state->packets, 2);
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// Senders are told how much fits; what may be fragmented is, before it is encrypted.
static void what_is_too_long(void **state)
{
	static const struct {
		const char *in;
		unsigned mtu; // that the sender is told; 0: it is not told
	} rows[] = {
		{"ip4 src=10.1.0.1 dst=10.2.0.1 df=1 udp data=1419", 1446},
		{"ip6 src=2001:db8:a::1 dst=2001:db8:b::1 udp data=1399", 1446},
	};
	const struct packet fits = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 df=1 udp data=1418");
	const struct packet whole = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 id=5 udp data=1900");
	struct cv_vpn *west, *east;
	struct packet out;
	struct function_rig *sent = malloc(sizeof(*sent));
	unsigned payload = 0;

	make_ends(0, &west, &east);
	out = through(west, INSIDE, &fits);
	assert_int_equal(out.len, ETHER_LEN + 1500);
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const struct packet in = packet_make(rows[i].in);

		out = through(west, INSIDE, &in);
		expect_drop(rows[i].in, "too_big");
		assert_int_equal(rig.out[0].port, INSIDE);
		if (i == 0) {
			assert_int_equal(out.bytes[34], 3);
			assert_int_equal(out.bytes[40] << 8 | out.bytes[41], rows[i].mtu);
			assert_memory_equal(out.bytes + 26, "\xc6\x33\x64\x01", 4);
		} else {
			assert_int_equal(out.bytes[54], 2);
			assert_int_equal(out.bytes[60] << 8 | out.bytes[61], rows[i].mtu);
			assert_true(cv_icmpv6_checksum_ok(out.bytes + ETHER_LEN));
		}
	}
	through(west, INSIDE, &whole);
	*sent = rig;
	assert_int_equal(sent->outs, 2);
	for (unsigned i = 0; i < sent->outs; i++) {
		const uint8_t *ip;

		memcpy(out.bytes, sent->out[i].bytes, sizeof(out.bytes));
		out.len = sent->out[i].len;
		assert_in_range(out.len, 60, ETHER_LEN + 1500);
		out = through(east, OUTSIDE, &out);
		ip = out.bytes + ETHER_LEN;
		assert_int_not_equal(
			cv_ipv4_check((const struct cv_ipv4 *)ip, (uint16_t)(out.len - ETHER_LEN)),
			0);
		assert_int_equal(ip[8], 63);
		assert_int_equal(ip[4] << 8 | ip[5], 5);
		payload += out.len - ETHER_LEN - 20u;
	}
	assert_int_equal(payload, 1908);
	free(sent);
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// A burst of packets that are too long, and of some that are not: all leave in the order of their numbers.
static void fragments_are_numbered_as_they_leave(void **state)
{
	const struct packet whole = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 udp data=1460");
	const struct packet fits = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 udp data=18");
	const struct packet *burst[CV_BURST_MAX];
	struct cv_vpn *west, *east;

	make_ends(0, &west, &east);
	for (unsigned i = 0; i < CV_BURST_MAX; i++)
		burst[i] = i % 8 == 7 ? &fits : &whole;
	receive(west, INSIDE, burst, CV_BURST_MAX);
	assert_int_equal(rig.outs, CV_BURST_MAX + CV_BURST_MAX / 8 * 7);
	for (unsigned i = 0; i < rig.outs; i++)
		assert_int_equal(rig.out[i].bytes[ETHER_LEN + 20 + 7], i + 1);
	// The first fragment gets the last number, the second none.
	west->sa[0].state->sequence = UINT32_MAX - 1;
	through(west, INSIDE, &whole);
	assert_int_equal(rig.outs, 1);
	expect_drop("the second fragment", "sequence_overflow");
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// RFC 6040 figure 4: rows by the codepoint inside, columns by that outside.
static void congestion_marks(void **state)
{
	static const uint8_t table[4][4] = {
		[CV_ECN_NONE] = {[CV_ECN_NONE] = 0,
			[CV_ECN_0] = 0,
			[CV_ECN_1] = 0,
			[CV_ECN_CE] = CV_ECN_DROP},
		[CV_ECN_0] = {[CV_ECN_NONE] = 2, [CV_ECN_0] = 2, [CV_ECN_1] = 1, [CV_ECN_CE] = 3},
		[CV_ECN_1] = {[CV_ECN_NONE] = 1, [CV_ECN_0] = 1, [CV_ECN_1] = 1, [CV_ECN_CE] = 3},
		[CV_ECN_CE] = {[CV_ECN_NONE] = 3, [CV_ECN_0] = 3, [CV_ECN_1] = 3, [CV_ECN_CE] = 3},
	};
	struct cv_vpn *west, *east;

	for (uint8_t inner = 0; inner < 4; inner++)
		for (uint8_t outer = 0; outer < 4; outer++) {
			struct packet v4 = packet_make("ip4 udp data=9"),
				      v6 = packet_make("ip6 udp");
			uint8_t *ip4 = v4.bytes + ETHER_LEN, *ip6 = v6.bytes + ETHER_LEN;
			const uint8_t want = table[inner][outer];

			assert_int_equal(cv_ecn_decapsulate(outer, inner), want);
			ip4[1] = (uint8_t)(0xb8 | inner);
			memset(ip4 + 10, 0, 2);
			memcpy(ip4 + 10, &(uint16_t){cv_checksum(ip4, 20)}, 2);
			ip6[0] = 0x6b;
			ip6[1] = (uint8_t)(0x87 | inner << 4);
			assert_int_equal(cv_ecn_apply(outer, ip4, false), want != CV_ECN_DROP);
			assert_int_equal(cv_ecn_apply(outer, ip6, true), want != CV_ECN_DROP);
			if (want == CV_ECN_DROP)
				continue;
			assert_int_equal(ip4[1], 0xb8 | want);
			assert_true(cv_ipv4_checksum_ok20((struct cv_ipv4 *)ip4));
			assert_int_equal(ip6[0], 0x6b);
			assert_int_equal(ip6[1], 0x87 | want << 4);
		}
	make_ends(3, &west, &east);
	for (unsigned capable = 0; capable < 2; capable++) {
		const struct packet in =
			packet_make(capable ? "ip6 src=2001:db8:a::1 tc=2 udp" : "ip6 udp");
		struct packet out = through(west, INSIDE, &in);

		out.bytes[ETHER_LEN + 1] |= 0x30;
		out = through(east, OUTSIDE, &out);
		if (capable)
			assert_int_equal(out.bytes[ETHER_LEN + 1] & 0x30, 0x30);
		else
			expect_drop("marked, and not capable", "congested");
	}
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// Encrypts bytes as an ESP packet of the first tunnel.
static struct packet encrypted(struct cv_vpn *west, const char *clear, uint32_t number)
{
	struct packet packet;
	char text[1024];
	size_t len;
	uint8_t *esp, nonce[CV_GCM_NONCE_LEN] = {0};
	const uint8_t *bytes = hex(clear, &len);

	snprintf(text, sizeof(text), "ip4 src=" WEST " dst=" EAST " proto=50 data=%zu",
		16 + len + CV_GCM_TAG_LEN);
	packet = packet_make(text);
	esp = packet.bytes + 34;
	memcpy(esp, &(uint32_t){rte_cpu_to_be_32(4096)}, 4);
	memcpy(esp + 4, &(uint32_t){rte_cpu_to_be_32(number)}, 4);
	memcpy(esp + 16, bytes, len);
	memcpy(nonce, &west->sa[0].state->salt, CV_GCM_SALT_LEN);
	memcpy(nonce + CV_GCM_SALT_LEN, esp + 8, CV_GCM_IV_LEN);
	cv_cipher_run(
		&west->sa[0].state->cipher, esp + 16, (uint32_t)len, nonce, esp, 8, esp + 16 + len);
	return packet;
}

// What an authentic packet may have inside, and what not.
static void insides(void **state)
{
#define IP "450000160000000040fd8db5c0000201c6336401aabb"
	static const struct {
		const char *clear, *becomes;
	} rows[] = {
		{IP "0004", "ip4 proto=253 hex=aabb"},
		{IP "010203040404", "ip4 proto=253 hex=aabb"},
		{IP "010203040304", "bad_esp"},
		{IP "01020304050607080804", "ip4 proto=253 hex=aabb"},
		{IP "01020304050607090804", "bad_esp"},
		{IP "aaaaaaaaaaaaaaaa0004", "ip4 proto=253 hex=aabb"},
		{IP "0029", "bad_header"},
		{IP "0011", "bad_esp"},
		{IP "ff04", "bad_esp"},
		{"460000160000000040fd8db5c0000201c6336401aabb0004", "bad_header"},
		{"450000180000000040fd8db3c0000201c6336401aabb0004", "bad_header"},
		{"01020302033b3b3b", "bad_esp"},
		{"0102023b", "absorbed"},
		{"0000003b", "absorbed"},
	};
	struct cv_vpn *west, *east;

	make_ends(0, &west, &east);
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct packet packet;

		assert_int_equal(strlen(rows[i].clear) % 8, 0);
		packet = encrypted(west, rows[i].clear, (uint32_t)i + 1);
		packet = through(east, OUTSIDE, &packet);
		if (strcmp(rows[i].becomes, "absorbed") == 0) {
			assert_int_equal(rig.counters.absorbed, 1);
		} else if (rows[i].becomes[0] == 'i') {
			const struct packet want = packet_make(rows[i].becomes);

			expect_packet(rows[i].clear, &packet, &want);
		} else {
			expect_drop(rows[i].clear, rows[i].becomes);
		}
	}
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// A burst in which packets of two associations, and others, take turns.
static void bursts(void **state)
{
	static const char rules[] = "{'name': 'a', 'match': {'proto': 'udp'}},"
				    "{'name': 'b', 'match': {'proto': 'tcp'}},"
				    "{'match': {'proto': 'icmp'}, 'action': 'bypass'}";
	static const char *const kinds[] = {"ip4 ttl=9 udp data=%u", "ip4 ttl=9 tcp data=%u",
		"ip4 ttl=9 icmp data=%u", "ip6 udp data=%u"};
	void *west = make(rules,
		"out 300 policy a local " WEST " peer " EAST " key " K1
		"\nout 301 policy b local " WEST " peer " EAST " key " K3,
		"");
	struct cv_vpn *east = make(rules,
		"in 300 policy a local " EAST " key " K1 "\nin 301 policy b local " EAST " key " K3,
		"");
	static struct packet came[CV_BURST_MAX];

	for (unsigned direction = 0; direction < 2; direction++) {
		struct rte_mbuf *mbufs[CV_BURST_MAX];
		struct cv_burst burst;

		rig_begin(&rig, &cv_nf_vpn, direction == 0 ? west : east, pool);
		assert_int_equal(rte_pktmbuf_alloc_bulk(pool, mbufs, CV_BURST_MAX), 0);
		for (unsigned i = 0; i < CV_BURST_MAX; i++) {
			char text[64];
			struct packet packet;

			snprintf(text, sizeof(text), kinds[i % 7 % 4], i);
			packet = direction == 0 ? packet_make(text) : came[i];
			memcpy(rte_pktmbuf_append(mbufs[i], packet.len), packet.bytes, packet.len);
		}
		cv_burst_load(&burst, mbufs, CV_BURST_MAX, (uint8_t)direction, 1, &rig.ports[0]);
		rig.received += burst.n;
		cv_path_run(&rig.path, &rig.worker, &burst);
		assert_int_equal(rig.outs, CV_BURST_MAX);
		assert_true(rig_conserved(&rig));
		for (unsigned i = 0; i < CV_BURST_MAX; i++) {
			came[i].len = rig.out[i].len;
			memcpy(came[i].bytes, rig.out[i].bytes, came[i].len);
		}
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
	}
	for (unsigned i = 0; i < CV_BURST_MAX; i++) {
		const unsigned kind = i % 7 % 4;
		char text[64];
		struct packet want;

		snprintf(text, sizeof(text), kinds[kind], i);
		want = packet_make(text);
		if (kind != 2) {
			uint8_t *ip = want.bytes + ETHER_LEN;

			if (kind == 3)
				ip[7]--;
			else
				cv_ipv4_ttl_decrement((struct cv_ipv4 *)ip);
		}
		expect_packet(text, &came[i], &want);
	}
	assert_int_equal(
		east->sa[0].state->packets + east->sa[1].state->packets + 18, CV_BURST_MAX);
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// Keys change while packets flow: the new association is taken in before it is used, and what is kept goes
// on with its numbers.
static void rekeying(void **state)
{
	static const char old_in[] = "in 300 policy all local " EAST " key " K1 "\n";
	static const char both_in[] = "in 300 policy all local " EAST " key " K1
				      "\nin 301 policy all local " EAST " key " K2 "\n";
	static const char new_in[] = "in 301 policy all local " EAST " key " K2 "\n";
	static const char old_out[] = "out 300 policy all local " WEST " peer " EAST " key " K1;
	static const char new_out[] = "out 301 policy all local " WEST " peer " EAST " key " K2;
	const struct packet in = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 udp data=2");
	const struct {
		const char *file;
		bool of_west;
	} steps[] = {{both_in, false}, {old_out, true}, {new_out, true}, {new_in, false}};
	struct cv_vpn *west = make(ALL, old_out, ""), *east = make(ALL, old_in, "");
	struct packet first = through(west, INSIDE, &in), out;

	assert_int_equal(through(east, OUTSIDE, &first).len, in.len);
	for (size_t i = 0; i < RTE_DIM(steps); i++) {
		struct cv_vpn **which = steps[i].of_west ? &west : &east, *before = *which;
		struct packet late = through(west, INSIDE, &in);

		*which = packet_nf_instead(
			&cv_nf_vpn, config_of(ALL, steps[i].file, ""), before, NULL);
		cv_nf_vpn.inherit(*which, before);
		cv_nf_destroy(&cv_nf_vpn, before);
		// What was sent before comes in behind the change, too, as long as its key is there.
		assert_int_equal(through(east, OUTSIDE, &late).len, in.len);
		out = through(west, INSIDE, &in);
		assert_int_equal(through(east, OUTSIDE, &out).len, in.len);
		through(east, OUTSIDE, &out);
		expect_drop("a packet twice", "replayed");
		through(east, OUTSIDE, &first);
		expect_drop("the first packet", i < 3 ? "replayed" : "no_sa");
	}
	assert_int_equal(east->sa[0].state->packets, 3); // as west sent by it
	assert_int_equal(west->sa[0].state->sequence, 3);
	assert_int_equal(west->sa[0].state->owners, 1);
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

static void refuses(void **state)
{
#define SA "out 4096 policy all local " WEST " peer " EAST " key " K1
	static const struct {
		const char *sas, *words;
	} rows[] = {
		{"up 4096", "sas:1: the first word: must be in or out"},
		{"\n# x\nout 255", "sas:3: the second word: must be the SPI"},
		{"out 4096x", "must be the SPI"},
		{"out 0x100000000", "must be the SPI"},
		{"out 4096 " K1 " key", "sas:1: a word is not known: they are policy local"},
		{"out 4096 key " K1 "00", "key: must be 40 or 72 hexadecimal digits"},
		{"out 4096 key", "key: must be 40 or 72"},
		{"out 4096 key g0" K1, "key: must be 40 or 72"},
		{"out 4096 policy none", "policy: must be the name of a policy that protects"},
		{"out 4096 policy all", "sas:1: local: is missing"},
		{"out 4096 policy all local " WEST " key " K1, "peer: is missing"},
		{"out 4096 policy all local " WEST " peer " EAST, "key: is missing"},
		{"out 4096 local " WEST " peer " EAST " key " K1, "policy: is missing"},
		{"in 4096 policy all local ::1 key " K1, "local: must be an address"},
		{"in 4096 policy all local 127.0.0.1 key " K1, "local: must be an address"},
		{"in 4096 policy all local " WEST " peer 2001:db8::1 key " K1,
			"peer: must be of the IP version of local"},
		{"in 4096 policy all udp 4500", "udp: is for direction out; remove it"},
		{"out 4096 policy all window 64", "window: is for direction in; remove it"},
		{"in 4096 window 100", "window: must be a power of two from 64 to 4096"},
		{"in 4096 window 8192", "window: must be a power of two"},
		{"in 4096 esn maybe", "esn: must be yes or no"},
		{"out 4096 df x", "df: must be copy, set or clear"},
		{"out 4096 ttl 0", "ttl: must be from 1 to 255"},
		{"out 4096 dscp 64", "dscp: must be from 0 to 63"},
		{"out 4096 udp 0", "udp: must be the peer's port"},
		{"out 4096 hard-bytes 0", "hard-bytes: must be a number of bytes"},
		{"out 4096 esn yes esn yes", "esn: is there twice; remove one"},
		{SA "\n" SA, "sas:2: policy: has an association out already"},
		{"in 4096 policy all local " EAST " key " K1 "\nin 4096 policy all local " EAST
		 " key " K2,
			"sas:2: the SPI: is another association's"},
	};
	struct cv_error error = {""};
	const char *config;

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		config = config_of(ALL, rows[i].sas, "");
		if (packet_nf(&cv_nf_vpn, config, &error) != NULL)
			fail_msg("accepted: %s", rows[i].sas);
		if (strstr(error.text, rows[i].words) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].sas, error.text,
				rows[i].words);
		if (strstr(error.text, "000102") != NULL)
			fail_msg("\"%s\" has a key", error.text);
	}
	packet_refused(&cv_nf_vpn,
		config_of(ALL ", {'name': 'b', 'match': {}}",
			SA "\nout 4096 policy b local " WEST " peer " EAST " key " K1, ""),
		"sas:2: the SPI and the key: are another association's that is out");
	config = config_of(ALL, SA, "");
	chmod(sa_file("sas", SA), 0640);
	packet_refused(&cv_nf_vpn, config, "others may read or write it, and it has keys");
	packet_refused(&cv_nf_vpn, "{'outside': ['right'], 'policies': [" ALL "], 'sa_file': '/'}",
		"sa_file: /: is no file");
	packet_refused(&cv_nf_vpn,
		"{'outside': ['right'], 'policies': [" ALL "], 'sa_file': '/nonexistent'}",
		"No such file");
	packet_refused(&cv_nf_vpn, config_of("{'match': {}}", SA, ""),
		"policies[0]: name: is missing; associations name the policy");
	packet_refused(&cv_nf_vpn, config_of(ALL "," ALL, SA, ""),
		"policies[1]: name: all is another policy's");
	packet_refused(
		&cv_nf_vpn, config_of(ALL, SA, ", 'outside': ['up']"), "no port is called \"up\"");
	packet_refused(
		&cv_nf_vpn, config_of("{'name': 'a', 'match': {'sport': 'x'}}", SA, ""), "sport");
}

// Everybody may read telemetry who may read counters.
static void info_has_no_keys(void **state)
{
	void *vpn = make(ALL, SA "\nin 4096 policy all local " WEST " key " K3, "");
	json_t *info = cv_nf_vpn.info(vpn);
	char *text = json_dumps(info, 0);

	assert_null(strstr(text, "0001020304"));
	assert_null(strstr(text, "4041424344"));
	assert_non_null(strstr(text, "\"direction\": \"out\", \"spi\": 4096, \"policy\": \"all\""));
	free(text);
	json_decref(info);
	cv_nf_destroy(&cv_nf_vpn, vpn);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(bursts_are_as_one_by_one),
		cmocka_unit_test(opens_another_ones_packet),
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(padding_of_ethernet_goes),
		cmocka_unit_test(outer_headers),
		cmocka_unit_test(changed_packets_are_dropped),
		cmocka_unit_test(sequence_numbers),
		cmocka_unit_test(window_is_a_set),
		cmocka_unit_test(policies),
		cmocka_unit_test(wrong_policy),
		cmocka_unit_test(limits_and_overflow),
		cmocka_unit_test(limits_hold_within_a_burst),
		cmocka_unit_test(what_is_too_long),
		cmocka_unit_test(fragments_are_numbered_as_they_leave),
		cmocka_unit_test(congestion_marks),
		cmocka_unit_test(insides),
		cmocka_unit_test(bursts),
		cmocka_unit_test(rekeying),
		cmocka_unit_test(refuses),
		cmocka_unit_test(info_has_no_keys),
	};

	packet_eal(argv[0]);
	pool = rte_pktmbuf_pool_create("vpn", 255, 0, 0, 4096, SOCKET_ID_ANY);
	assert_non_null(pool);
	assert_int_equal(test_dir_make(folder), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
