// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>

#include "tests/support/test_packets.h"

#include "chain/classify.h"

// An inner frame of 18 + 28 bytes, as text behind the VXLAN header's eight bytes.
#define INNER              \
	"hex=0a0000000001" \
	"0a0000000002"     \
	"0800"             \
	"45000014000000004011b2ea0a0000010a000002"
#define VNI(vni) "hex=08000000" vni "00 " INNER

static const struct {
	const char *name;
	const char *in;
	uint8_t class; // 1: VLAN 10, 2: VLAN 0, 3: VNI 5000, 4: the rest
	bool inner; // the view must show the inner frame
} rows[] = {
	{"untagged", "ip4 udp data=18", 4, false},
	{"the id", "vlan id=10 ip4 udp data=18", 1, false},
	{"id 0", "vlan id=0 ip4 udp data=18", 2, false},
	{"another id", "vlan id=11 ip4 udp data=18", 4, false},
	{"the outer of two tags counts", "qinq id=10 vlan id=11 ip4 udp data=18", 1, false},
	{"the inner of two tags does not", "qinq id=11 vlan id=10 ip4 udp data=18", 4, false},
	{"cut in the tag", "vlan id=10 cut=17", 4, false},
	{"cut in the addresses", "cut=11", 4, false},
	{"nothing", "cut=0", 4, false},
	{"the VNI", "ip4 udp dport=4789 " VNI("001388"), 3, true},
	{"the VNI, over IPv6", "ip6 udp dport=4789 " VNI("001388"), 3, true},
	{"the VNI, behind options", "ip4 opt=01010101 udp dport=4789 " VNI("001388"), 3, true},
	{"the VNI, tagged outside", "vlan id=11 ip4 udp dport=4789 " VNI("001388"), 3, true},
	{"a VLAN's class goes first", "vlan id=10 ip4 udp dport=4789 " VNI("001388"), 1, false},
	{"another VNI", "ip4 udp dport=4789 " VNI("001389"), 4, false},
	{"another UDP port", "ip4 udp dport=4790 " VNI("001388"), 4, false},
	{"not UDP", "ip4 tcp dport=4789 " VNI("001388"), 4, false},
	{"a fragment", "ip4 mf=1 udp dport=4789 " VNI("001388"), 4, false},
	{"a non-first fragment", "ip4 off=8 udp dport=4789 " VNI("001388"), 4, false},
	{"no VNI flag", "ip4 udp dport=4789 hex=0000000000138800 " INNER, 4, false},
	{"cut in the VXLAN header", "ip4 udp dport=4789 hex=08000000001388", 4, false},
	{"nothing behind the VXLAN header", "ip4 udp dport=4789 hex=0800000000138800", 3, true},
	{"a header length that lies", "ip4 ihl=4 udp dport=4789 " VNI("001388"), 4, false},
};

static void classes(void **state)
{
	struct cv_classifier classifier;

	cv_classifier_init(&classifier);
	assert_int_equal(cv_classifier_add_vlan(&classifier, 10, 1), 0);
	assert_int_equal(cv_classifier_add_vlan(&classifier, 0, 2), 0);
	assert_int_equal(cv_classifier_add_vni(&classifier, 9000, 9), 0);
	assert_int_equal(cv_classifier_add_vni(&classifier, 5000, 3), 0);
	assert_int_equal(cv_classifier_add_vni(&classifier, 7000, 9), 0);
	assert_int_equal(cv_classifier_add_rest(&classifier, 4), 0);
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct packet packet = packet_make(rows[i].in);
		uint8_t *exact = malloc(packet.len + !packet.len);
		struct cv_view view = {.in = 7, .out = 8};
		uint8_t class = 0xaa;

		memcpy(exact, packet.bytes, packet.len);
		cv_view_set(&view, exact, packet.len);
		assert_true(cv_classify(&classifier, &view, &class, 1));
		if (class != rows[i].class)
			fail_msg("%s: class %u, not %u", rows[i].name, class, rows[i].class);
		if ((view.data != exact) != rows[i].inner)
			fail_msg("%s: shows the wrong frame", rows[i].name);
		assert_ptr_equal(view.data + view.len, exact + packet.len);
		assert_int_equal(view.in, 7);
		assert_int_equal(view.out, 8);
		free(exact);
	}
	cv_classifier_free(&classifier);
}

// Where chains match NFI-IDs, what came in a convoy has its class already, and goes first.
static void classes_by_nfi(void **state)
{
	struct packet packets[2] = {packet_make("vlan id=10 ip4 udp"), packet_make("ip4 udp")};
	struct cv_view views[RTE_DIM(packets)];
	uint8_t got[RTE_DIM(packets)];
	struct cv_classifier classifier;

	cv_classifier_init(&classifier);
	assert_int_equal(cv_classifier_add_vlan(&classifier, 10, 1), 0);
	assert_int_equal(cv_classifier_add_nfi(&classifier, 65535, 2), 0);
	assert_int_equal(cv_classifier_add_nfi(&classifier, 0, 3), 0);
	assert_int_equal(cv_classifier_add_nfi(&classifier, 0, 4), -EEXIST);
	assert_int_equal(cv_classify_nfi(&classifier, 65535), 2);
	assert_int_equal(cv_classify_nfi(&classifier, 0), 3);
	assert_int_equal(cv_classify_nfi(&classifier, 7), CV_CLASS_NONE);
	for (uint8_t of_convoy = 2; of_convoy <= 3; of_convoy++) {
		for (size_t i = 0; i < RTE_DIM(packets); i++) {
			cv_view_set(&views[i], packets[i].bytes, packets[i].len);
			views[i].out = i == 0 ? of_convoy : CV_CLASS_NONE;
		}
		assert_false(cv_classify(&classifier, views, got, RTE_DIM(packets)));
		assert_int_equal(got[0], of_convoy);
		assert_int_equal(got[1], CV_CLASS_NONE);
	}
	views[0].out = CV_CLASS_NONE; // came alone
	cv_classify(&classifier, views, got, RTE_DIM(packets));
	assert_int_equal(got[0], 1);
	cv_classifier_free(&classifier);
}

// The tunnel's checksum would not hold after the inner frame is changed.
static void clears_the_outer_checksum(void **state)
{
	struct packet packet = packet_make("ip4 udp dport=4789 " VNI("001388"));
	struct cv_classifier classifier;
	struct cv_view view;
	uint8_t class;

	cv_classifier_init(&classifier);
	assert_int_equal(cv_classifier_add_vni(&classifier, 5000, 3), 0);
	memset(packet.bytes + 14 + 20 + 6, 0xff, 2);
	cv_view_set(&view, packet.bytes, packet.len);
	cv_classify(&classifier, &view, &class, 1);
	assert_int_equal(packet.bytes[40], 0);
	assert_int_equal(packet.bytes[41], 0);
	assert_int_equal(view.proto, CV_PROTO_IPV4);
	assert_int_equal(view.l3, 14);
	cv_classifier_free(&classifier);
}

static void tells_bursts_of_one_class(void **state)
{
	struct packet packets[3] = {packet_make("vlan id=10 ip4 udp"),
		packet_make("vlan id=10 ip4 tcp"), packet_make("ip4 udp")};
	struct cv_classifier classifier;
	struct cv_view views[3];
	uint8_t seen[3];

	cv_classifier_init(&classifier);
	assert_int_equal(cv_classifier_add_vlan(&classifier, 10, 1), 0);
	for (int i = 0; i < 3; i++)
		cv_view_set(&views[i], packets[i].bytes, packets[i].len);
	assert_true(cv_classify(&classifier, views, seen, 0));
	assert_true(cv_classify(&classifier, views, seen, 2));
	assert_false(cv_classify(&classifier, views, seen, 3));
	assert_int_equal(seen[2], CV_CLASS_NONE);
	cv_classifier_free(&classifier);
}

static void refuses_a_second_class(void **state)
{
	struct cv_classifier classifier;

	cv_classifier_init(&classifier);
	assert_int_equal(cv_classifier_add_vlan(&classifier, 10, 1), 0);
	assert_int_equal(cv_classifier_add_vlan(&classifier, 10, 2), -EEXIST);
	assert_int_equal(cv_classifier_add_vni(&classifier, 10, 1), 0);
	assert_int_equal(cv_classifier_add_vni(&classifier, 10, 2), -EEXIST);
	assert_int_equal(cv_classifier_add_rest(&classifier, 1), 0);
	assert_int_equal(cv_classifier_add_rest(&classifier, 2), -EEXIST);
	cv_classifier_free(&classifier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes),
		cmocka_unit_test(classes_by_nfi),
		cmocka_unit_test(clears_the_outer_checksum),
		cmocka_unit_test(tells_bursts_of_one_class),
		cmocka_unit_test(refuses_a_second_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
