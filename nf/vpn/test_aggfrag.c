// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// AGGFRAG payloads: bursts of packets into one end of a tunnel and out of the other, and payloads that
// somebody else made, sound and not.
#include "tests/support/test_packets.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nf/vpn/aggfrag.h"
#include "packet/ipv4.h"
#include "tests/support/function_rig.h"

extern const struct cv_nf cv_nf_vpn;

#define INSIDE 0 // ports
#define OUTSIDE 1
#define KEY "000102030405060708090a0b0c0d0e0f10111213"
#define OUT "out 256 policy all local 192.0.2.1 peer 192.0.2.2 aggregate yes key " KEY
#define IN "in 256 policy all local 192.0.2.2 aggregate yes key " KEY

static struct rte_mempool *pool;
static struct function_rig rig;
// What is called %s is the source in the one direction, and the destination in the other.
static const char policies[] = "[{'name': 'all', 'match': {'%s': '10.1.0.0/16'}},"
			       " {'name': 'six', 'match': {'%s': '2001:db8::/32'}},"
			       " {'match': {'%s': '10.3.0.0/16'}, 'action': 'bypass'}]";

static void *make(const char *sas, const char *more, const char **why)
{
	static struct cv_error error;
	const int fd = memfd_create("sas", MFD_CLOEXEC);
	const char *end = sas[0] == 'o' ? "src" : "dst";
	char list[512], text[1024];
	void *vpn;

	snprintf(list, sizeof(list), policies, end, end, end);
	assert_true(write(fd, sas, strlen(sas)) == (ssize_t)strlen(sas));
	assert_int_equal(fchmod(fd, 0600), 0);
	snprintf(text, sizeof(text),
		"{'outside': ['right'], 'policies': %s, 'sa_file': '/proc/self/fd/%d'%s}", list, fd,
		more);
	error.text[0] = '\0';
	vpn = packet_nf(&cv_nf_vpn, text, &error);
	close(fd);
	if (why != NULL)
		*why = error.text;
	return vpn;
}

static void begin(void *vpn)
{
	rig_begin(&rig, &cv_nf_vpn, vpn, pool);
}

static void receive(unsigned port, const struct packet *packets, unsigned n)
{
	struct rte_mbuf *mbufs[CV_BURST_MAX];
	struct cv_burst burst;

	for (unsigned i = 0; i < n; i++) {
		mbufs[i] = rte_pktmbuf_alloc(pool);
		assert_non_null(mbufs[i]);
		memcpy(rte_pktmbuf_append(mbufs[i], (uint16_t)packets[i].len), packets[i].bytes,
			packets[i].len);
	}
	cv_burst_load(
		&burst, mbufs, (uint16_t)n, (uint8_t)port, 1 - (uint8_t)port, &rig.ports[port]);
	rig.received += burst.n;
	cv_path_run(&rig.path, &rig.worker, &burst);
	assert_true(rig_conserved(&rig));
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static uint64_t dropped(const char *reason)
{
	for (unsigned why = 0; cv_nf_vpn.drops[why] != NULL; why++)
		if (strcmp(cv_nf_vpn.drops[why], reason) == 0)
			return rig.counters.drops[why];
	fail_msg("%s is no reason", reason);
	return 0;
}

static void expect_out(unsigned i, const struct packet *want)
{
	assert_in_range(i, 0, rig.outs - 1);
	assert_int_equal(rig.out[i].len, want->len);
	assert_memory_equal(rig.out[i].bytes, want->bytes, want->len);
}

static void out_packet(struct packet *to, unsigned i)
{
	to->len = rig.out[i].len;
	memcpy(to->bytes, rig.out[i].bytes, to->len);
}

static struct packet inner(unsigned i, unsigned data, unsigned ttl)
{
	char text[128];

	snprintf(text, sizeof(text), "ip4 src=10.1.0.%u dst=10.2.0.1 ttl=%u udp sport=%u data=%u",
		i % 250 + 1, ttl, i + 1, data);
	return packet_make(text);
}

// Bursts of all sizes arrive as they went, in fewer packets.
static void bursts_come_back(void **state)
{
	static const unsigned sizes[] = {1, 2, 31, 32, 33, 63, 64}, lens[] = {0, 1, 18, 300, 1404};
	static struct packet in[CV_BURST_MAX], outer[CV_BURST_MAX];
	void *west = make(OUT, ", 'mtu': 1500", NULL), *east = make(IN, "", NULL);

	for (unsigned s = 0; s < RTE_DIM(sizes); s++)
		for (unsigned l = 0; l < RTE_DIM(lens); l++) {
			const unsigned n = sizes[s], each = 28 + lens[l];
			unsigned outers;

			for (unsigned i = 0; i < n; i++)
				in[i] = inner(i, lens[l], 9);
			begin(west);
			receive(INSIDE, in, n);
			outers = rig.outs;
			assert_int_equal(outers, (n + 1438 / each - 1) / (1438 / each));
			assert_int_equal(rig.counters.absorbed, n - outers);
			for (unsigned i = 0; i < outers; i++) {
				assert_true(rig.out[i].len <= 1514);
				out_packet(&outer[i], i);
			}
			begin(east);
			receive(OUTSIDE, outer, outers);
			assert_int_equal(rig.outs, n);
			assert_int_equal(rig.counters.originated, n);
			for (unsigned i = 0; i < n; i++) {
				const struct packet want = inner(i, lens[l], 8);

				expect_out(i, &want);
			}
		}
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// A packet that does not fit is cut, leaves behind the others, and arrives whole.
static void a_long_packet_is_cut(void **state)
{
	static struct packet in[3], outer[CV_BURST_MAX];
	void *west = make(OUT, ", 'mtu': 576", NULL), *east = make(IN, "", NULL);
	const struct packet want[] = {inner(0, 10, 8), inner(2, 10, 8), inner(1, 1400, 8)};
	unsigned outers;

	in[0] = inner(0, 10, 9);
	in[1] = inner(1, 1400, 9);
	in[2] = inner(2, 10, 9);
	begin(west);
	receive(INSIDE, in, 3);
	outers = rig.outs;
	assert_int_equal(outers, 1 + 3);
	for (unsigned i = 0; i < outers; i++) {
		assert_true(rig.out[i].len <= 590);
		out_packet(&outer[i], i);
	}
	begin(east);
	receive(OUTSIDE, outer, outers);
	assert_int_equal(rig.outs, 3);
	for (unsigned i = 0; i < 3; i++)
		expect_out(i, &want[i]);
	// Again without its second piece: the others are there.
	cv_nf_destroy(&cv_nf_vpn, east);
	east = make(IN, "", NULL);
	outer[2] = outer[3];
	begin(east);
	receive(OUTSIDE, outer, 3);
	assert_int_equal(rig.outs, 2);
	assert_int_equal(dropped("out_of_sequence"), 1);
	assert_int_equal(((struct cv_vpn *)east)->sa[0].state->aggfrag->lost, 1);
	cv_nf_destroy(&cv_nf_vpn, west);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// Nothing that has no number leaves in the clear.
static void nothing_leaves_behind_a_limit(void **state)
{
	const struct packet in = inner(0, 1400, 9);
	void *west = make(OUT " hard-packets 2", ", 'mtu': 576", NULL);

	begin(west);
	receive(INSIDE, &in, 1);
	assert_int_equal(rig.outs, 2);
	assert_int_equal(dropped("expired"), 1);
	receive(INSIDE, &in, 1);
	assert_int_equal(rig.outs, 2);
	assert_int_equal(dropped("expired"), 4);
	cv_nf_destroy(&cv_nf_vpn, west);
	west = make("out 256 policy all local 192.0.2.1 peer 192.0.2.2 hard-packets 1 key " KEY,
		", 'mtu': 576", NULL);
	begin(west);
	receive(INSIDE, &in, 1);
	assert_int_equal(rig.outs, 1); // the second fragment has no number
	cv_nf_destroy(&cv_nf_vpn, west);
}

// An ESP packet of what a text of hexadecimal digits says: a payload, its padding and trailer are added.
static struct packet esp_of(const char *payload, uint32_t sequence, uint8_t next)
{
	struct packet packet = packet_make("ip4 src=192.0.2.1 dst=192.0.2.2 proto=50 data=1000");
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(packet.bytes + 14);
	uint8_t *esp = packet.bytes + 34, *clear = esp + 16, key[20];
	const uint32_t words[] = {RTE_BE32(256), rte_cpu_to_be_32(sequence)};
	uint8_t nonce[CV_GCM_NONCE_LEN];
	struct cv_cipher cipher;
	unsigned len = 0, padding;

	for (const char *at = payload; *at != '\0'; at += 2 + (at[2] == ' '), len++) {
		unsigned byte;

		assert_int_equal(sscanf(at, "%2x", &byte), 1);
		clear[len] = (uint8_t)byte;
	}
	padding = -(len + 2) & 3;
	for (unsigned i = 0; i < padding; i++)
		clear[len++] = (uint8_t)(i + 1);
	clear[len++] = (uint8_t)padding;
	clear[len++] = next;
	for (unsigned i = 0; i < 20; i++)
		key[i] = (uint8_t)i;
	memcpy(esp, words, 8);
	memset(esp + 8, (int)sequence, 8);
	memcpy(nonce, key + 16, 4);
	memcpy(nonce + 4, esp + 8, 8);
	assert_true(cv_cipher_make(&cipher, key, 16, true));
	cv_cipher_run(&cipher, clear, len, nonce, esp, 8, clear + len);
	packet.len = 34 + 16 + len + 16;
	ip->total_len = rte_cpu_to_be_16((uint16_t)(packet.len - 14));
	ip->checksum = 0;
	ip->checksum = cv_checksum((uint8_t *)ip, 20);
	return packet;
}

// From policies "all", another one's, and one with a wrong checksum; 24 bytes each.
#define P "45000018 00000000 40fd65e5 0a010001 0a020001 01020304"
#define FIRST "45000018 00000000 40"
#define REST "fd65e5 0a010001 0a020001 01020304"
#define OTHERS "45000018 00000000 40fd65e4 0a030001 0a010001 01020304"
#define BROKEN "45000018 00000000 40fd0001 0a010001 0a020001 01020304"

static void payloads(void **state)
{
	static const struct {
		const char *what, *payload[4];
		unsigned outs;
		const char *drop; // NULL: none
	} rows[] = {
		{"one", {"00000000 " P}, 1, NULL},
		{"reserved bits", {"00ff0000 " P}, 1, NULL},
		{"three and a pad", {"00000000 " P P P "0045 45"}, 3, NULL},
		{"nothing", {"00000000"}, 0, NULL},
		{"padding alone", {"00000000 00"}, 0, NULL},
		{"cut in two", {"00000000 " P FIRST, "0000000f " REST P}, 3, NULL},
		{"cut before its length",
			{"00000000 45", "00000017 00001800000000" // 8
					"40fd65e50a0100010a02000101020304"},
			1, NULL},
		{"cut in three", {"00000000 4500", "00000016 0018", "00000014 0000000040" REST}, 1,
			NULL},
		{"padding between", {"00000000 " FIRST, "00000000 00", "0000000f " REST}, 1, NULL},
		{"its rest and a pad", {"00000000 " FIRST, "0000000f " REST "00"}, 1, NULL},
		{"beginning lost", {"0000000f " REST P}, 1, "out_of_sequence"},
		{"never ends", {"00000000 " FIRST, "00000000 " P}, 1, "bad_block"},
		{"offset too short", {"00000000 " FIRST, "0000000e " REST}, 0, "bad_block"},
		{"offset too long", {"00000000 " FIRST, "00000012 " REST}, 0, "bad_block"},
		{"offset beyond all", {"0000ffff " P}, 0, "out_of_sequence"},
		{"sub-type 1", {"01000000 " P}, 0, "unknown_subtype"},
		{"sub-type 255", {"ff000000 " P}, 0, "unknown_subtype"},
		{"no header", {"000000"}, 0, "bad_block"},
		{"type 5", {"00000000 " P "55"}, 1, "bad_block"},
		{"length 0", {"00000000 " P "45000000 00000000"}, 1, "bad_block"},
		{"length 19", {"00000000 45000013" P}, 0, "bad_block"},
		{"too long", {"00000000 4500ffff " P}, 0, "too_big"},
		{"too long, told later", {"00000000 45", "0000ffff 00ffff " P}, 0, "too_big"},
		{"a broken one does no harm", {"00000000 " P BROKEN P}, 2, "bad_header"},
		{"another policy's", {"00000000 " P OTHERS P}, 2, "wrong_policy"},
		{"IPv6 too short", {"00000000 60000000"}, 0, NULL},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		void *east = make(IN, "", NULL);
		uint64_t drops = 0;

		begin(east);
		for (unsigned k = 0; k < 4 && rows[i].payload[k] != NULL; k++) {
			const struct packet packet = esp_of(rows[i].payload[k], k + 1, 144);

			receive(OUTSIDE, &packet, 1);
			receive(OUTSIDE, &packet, 1);
			assert_int_equal(dropped("replayed"), k + 1);
		}
		for (unsigned why = 0; why < CV_DROPS_MAX; why++)
			drops += rig.counters.drops[why];
		drops -= dropped("replayed");
		if (rig.outs != rows[i].outs || drops != (rows[i].drop != NULL ? 1 : 0) ||
			(rows[i].drop != NULL && dropped(rows[i].drop) != 1))
			fail_msg("%s: %u packets, not %u; %d drops, not by %s", rows[i].what,
				rig.outs, rows[i].outs, (int)drops,
				rows[i].drop != NULL ? rows[i].drop : "any");
		for (unsigned k = 0; k < rig.outs; k++)
			assert_int_equal(rig.out[k].len, 14 + 24);
		cv_nf_destroy(&cv_nf_vpn, east);
	}
}

// An association is of one kind.
static void kinds_are_kept_apart(void **state)
{
	const struct packet plain = esp_of(P, 1, IPPROTO_IPIP), many = esp_of("00000000" P, 2, 144);
	void *east = make(IN, "", NULL);

	begin(east);
	receive(OUTSIDE, &plain, 1);
	assert_int_equal(dropped("bad_esp"), 1);
	receive(OUTSIDE, &many, 1);
	assert_int_equal(rig.outs, 1);
	cv_nf_destroy(&cv_nf_vpn, east);
	east = make("in 256 policy all local 192.0.2.2 key " KEY, "", NULL);
	begin(east);
	receive(OUTSIDE, &many, 1);
	assert_int_equal(dropped("bad_esp"), 1);
	cv_nf_destroy(&cv_nf_vpn, east);
}

// Packets of several associations, tags and ways do not share, and none is lost.
static void what_differs_does_not_share(void **state)
{
	void *west = make(OUT "\nout 257 policy six local 192.0.2.1 peer 192.0.2.3 key " KEY
			      " aggregate yes udp 4500",
		", 'mtu': 1500", NULL);
	struct packet in[6];

	for (unsigned i = 0; i < 6; i++)
		in[i] = packet_make(i % 2 == 0 ? "ip4 src=10.1.0.1 dst=10.2.0.1 ttl=9 udp data=9"
					       : "ip6 src=2001:db8::1 dst=2001:db8::2 hop=9 udp");
	begin(west);
	receive(INSIDE, in, 6);
	assert_int_equal(rig.outs, 2);
	in[2] = packet_make("vlan id=7 ip4 src=10.1.0.1 dst=10.2.0.1 ttl=9 udp data=9");
	in[4] = packet_make("vlan id=8 ip4 src=10.1.0.1 dst=10.2.0.1 ttl=9 udp data=9");
	in[1] = packet_make("ip4 src=10.1.0.1 dst=10.2.0.1 ttl=1 udp data=9");
	receive(INSIDE, in, 6);
	assert_int_equal(rig.outs, 2 + 4 + 1); // one is told
	assert_int_equal(dropped("ttl_expired"), 1);
	cv_nf_destroy(&cv_nf_vpn, west);
}

static void what_cannot_be_is_refused(void **state)
{
	const char *why;

	assert_null(make(OUT " df copy", "", &why));
	assert_non_null(strstr(why, "df: cannot be copy with aggregate yes"));
	assert_null(make("in 256 aggregate maybe", "", &why));
	assert_non_null(strstr(why, "aggregate: must be yes or no"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts_come_back),
		cmocka_unit_test(a_long_packet_is_cut),
		cmocka_unit_test(nothing_leaves_behind_a_limit),
		cmocka_unit_test(payloads),
		cmocka_unit_test(kinds_are_kept_apart),
		cmocka_unit_test(what_differs_does_not_share),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	packet_eal(argv[0]);
	pool = rte_pktmbuf_pool_create("vpn", 511, 0, 0, 2048 + 128, SOCKET_ID_ANY);
	return pool == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
