// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the kernel sends, frame by frame: those whose neighbour does not answer are in nobody's way.
// And packets to addresses that are the kernel's, which the router takes for its own.
#include <rte_cycles.h>

#include "nf/router/kernel.h"
#include "packet/arp.h"
#include "packet/icmp.h"
#include "packet/ipv4.h"
#include "packet/neighbour_discovery.h"
#include "tests/support/function_rig.h"
#include "tests/support/test_packets.h"

static const char addresses[] = "{\"left\": [\"10.0.0.1/24\", \"2001:db8:1::1/64\"], "
				"\"right\": [\"192.0.2.1/24\", \"2001:db8:2::1/64\"]}";

static struct rte_mempool *pool;

static struct {
	json_t *addresses;
	struct cv_routes routes;
	struct cv_neighbour_table table;
	struct cv_fib fib[2];
	const struct cv_fib *now;
	struct cv_network *network;
	struct cv_kernel kernel; // but for its thread
	struct function_rig rig;
	uint64_t later; // TSC ticks
	uint32_t number; // of the next frame
	uint8_t verdict; // of the next packet
} test;

static void tick(void *network, struct cv_nf_worker *worker)
{
	worker->now += test.later;
	cv_kernel_send(network, worker, true);
}

// A packet whose headers have had their verdict already.
static uint16_t process(void *network, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		verdict[i] = cv_network_process(network, worker, &view[i], test.verdict, 0);
	return n;
}

static const struct cv_nf nf = {.name = "network", .process = process, .tick = tick};

static int begin(void **state)
{
	const struct cv_nf_env *env = packet_env();
	struct cv_routes_config config = {.neighbour_entries = 1024};
	const struct cv_fib_room room = {16};
	struct cv_error error = {""};

	memset(&test, 0, sizeof(test));
	test.addresses = json_loads(addresses, 0, NULL);
	config.addresses = test.addresses;
	assert_int_equal(cv_routes_load(&test.routes, &config, env, &error), 0);
	assert_int_equal(
		cv_neighbour_table_init(&test.table, 1024, NULL, rte_get_tsc_hz(), NULL), 0);
	if (cv_fib_make(&test.fib[0], &test.fib[1], &room, &test.routes, &test.table, &error) != 0)
		fail_msg("%s", error.text);
	test.now = &test.fib[0];
	test.network = cv_network_create(&test.routes, &test.now, &test.table, &config, env);
	assert_non_null(test.network);
	cv_network_start(test.network, env);
	test.kernel = (struct cv_kernel){.network = test.network, .sender = UINT32_MAX};
	assert_int_equal(cv_frame_ring_init(&test.kernel.down, CV_KERNEL_FRAMES, 1514), 0);
	assert_int_equal(cv_frame_ring_init(&test.kernel.waiting, CV_KERNEL_WAITING, 1514), 0);
	test.network->kernel = &test.kernel;
	rig_begin(&test.rig, &nf, test.network, pool);
	(void)state;
	return 0;
}

static int end(void **state)
{
	test.network->kernel = NULL;
	cv_frame_ring_free(&test.kernel.down);
	cv_frame_ring_free(&test.kernel.waiting);
	cv_network_destroy(test.network);
	cv_fib_free(&test.fib[0]);
	cv_fib_free(&test.fib[1]);
	cv_routes_free(&test.routes);
	json_decref(test.addresses);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	(void)state;
	return 0;
}

// The kernel sends a packet to an address. False: the ring is full.
static bool kernel_sends(const char *to)
{
	struct cv_frame *frame = cv_frame_ring_next(&test.kernel.down);
	struct packet packet;
	char text[200];

	if (frame == NULL)
		return false;
	snprintf(text, sizeof(text),
		"dst=02:aa:00:00:00:01 src=02:aa:00:00:00:01 ip4 src=192.0.2.1 dst=%s id=%u udp "
		"data=30",
		to, test.number++);
	packet = packet_make(text);
	memcpy(frame->bytes, packet.bytes, packet.len);
	frame->len = packet.len;
	frame->port = 1;
	cv_frame_ring_push(&test.kernel.down);
	return true;
}

// Time passes, and what can be sent is. Returns how many IP packets left by the right port.
static unsigned sent_after(unsigned ms)
{
	unsigned packets = 0;
	const unsigned since = test.rig.outs;

	test.later += rte_get_tsc_hz() / 1000 * ms;
	rig_tick(&test.rig);
	for (unsigned i = since; i < test.rig.outs; i++) {
		const struct rig_out *out = &test.rig.out[i % RIG_OUT_MAX];

		if (out->bytes[12] == 8 && out->bytes[13] == 0) {
			assert_int_equal(out->port, 1);
			packets++;
		}
	}
	return packets;
}

// 192.0.2.last, 2001:db8:2::last and fe80::last are there.
static void answers(uint8_t last)
{
	const struct cv_neighbour_key keys[] = {
		{.address.bytes = {192, 0, 2, last}, .port = 1},
		{.address = {.bytes = {0x20, 1, 0x0d, 0xb8, 0, 2, [15] = last}, .v6 = true},
			.port = 1},
		{.address = {.bytes = {0xfe, 0x80, [15] = last}, .v6 = true}, .port = 1},
	};
	const struct cv_neighbour_heard heard = {.has_mac = true,
		.mac = {2, 0, 0, 0, 0, last},
		.create = true,
		.advertised = true,
		.solicited = true,
		.override = true};

	for (size_t i = 0; i < RTE_DIM(keys); i++)
		cv_neighbour_table_hear(&test.network->table, &keys[i], &heard,
			&(struct cv_neighbour_tags){0}, rte_rdtsc() + test.later);
}

// One frame waits, and thousands go past it; it goes when its neighbour answers.
static void others_go_on(void **state)
{
	answers(7);
	assert_true(kernel_sends("192.0.2.77"));
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < CV_KERNEL_FRAMES - 1; k++)
			assert_true(kernel_sends("192.0.2.7"));
		assert_int_equal(sent_after(1), CV_KERNEL_FRAMES - 1);
	}
	answers(77);
	assert_int_equal(sent_after(1), 1);
	assert_int_equal(test.rig.out[(test.rig.outs - 1) % RIG_OUT_MAX].bytes[5], 77);
	(void)state;
}

// As many wait as may, the last ones, and each for a second.
static void what_waits_is_bounded(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < CV_KERNEL_FRAMES; k++)
			assert_true(kernel_sends("192.0.2.77"));
		assert_int_equal(sent_after(1), 0);
	}
	assert_true(kernel_sends("192.0.2.78"));
	assert_int_equal(sent_after(1), 0);
	answers(77);
	assert_int_equal(sent_after(1), CV_KERNEL_WAITING - 1);
	for (unsigned i = CV_KERNEL_WAITING - 1; i > 0; i--) {
		const struct rig_out *out = &test.rig.out[(test.rig.outs - i) % RIG_OUT_MAX];
		const struct cv_ipv4 *ip = (const struct cv_ipv4 *)(out->bytes + 14);

		assert_int_equal(rte_be_to_cpu_16(ip->id), 3 * CV_KERNEL_FRAMES - i);
	}
	assert_int_equal(sent_after(1001), 0);
	answers(78);
	assert_int_equal(sent_after(1), 0);
	(void)state;
}

// What no route leads to a neighbour for is not kept.
static void what_leads_nowhere_is_dropped(void **state)
{
	assert_true(kernel_sends("198.51.100.1"));
	assert_int_equal(sent_after(1), 0);
	assert_int_equal(test.kernel.waiting.tail, test.kernel.waiting.head);
	assert_int_equal(test.kernel.down.tail, test.kernel.down.head);
	(void)state;
}

// An address on some interface of the kernel's.
static void kernel_has(const char *text)
{
	struct cv_prefix prefix;

	assert_int_equal(cv_prefix_parse(text, &prefix), 0);
	assert_int_equal(cv_fib_change(&test.fib[0], &prefix, CV_FIB_AT_LOCAL), 0);
}

// What leaves because of a packet that came in by the right port, where 192.0.2.7 and 2001:db8:2::7
// are known. NULL: nothing.
static const struct rig_out *answer_to(struct packet packet, uint8_t verdict)
{
	const unsigned since = test.rig.outs;

	test.verdict = verdict;
	assert_true(rig_receive(&test.rig, 1, packet.bytes, packet.len));
	assert_true(test.rig.outs <= since + 1);
	return test.rig.outs > since ? &test.rig.out[since % RIG_OUT_MAX] : NULL;
}

static struct packet echo_request(const char *headers)
{
	char text[300];
	struct packet packet;
	uint8_t *ip = packet.bytes + CV_ETHER_LEN;
	rte_be16_t sum;

	snprintf(text, sizeof(text), "dst=02:aa:00:00:00:01 src=02:00:00:00:00:07 %s", headers);
	packet = packet_make(text);
	if (ip[0] >> 4 == 6) {
		cv_icmpv6_checksum_set(ip);
	} else {
		sum = cv_checksum(ip + 20, packet.len - 34u);
		memcpy(ip + 22, &sum, sizeof(sum));
	}
	return packet;
}

#define ECHO_V4 "ip4 src=192.0.2.7 dst=10.50.0.1 ttl=1 icmp kind=8 data=40"
#define ECHO_V6(src, dst, hops) \
	"ip6 src=" src " dst=" dst " hop=" hops " nh=58 hex=8000000000010001 data=8"

// As to an address of a port: also with a TTL of 1 (RFC 1812 section 5.3.1), and from a link-local one.
static void addresses_of_the_kernel_are_own(void **state)
{
	const struct rig_out *out;

	answers(7);
	kernel_has("10.50.0.1/32");
	kernel_has("2001:db8:50::1/128");
	out = answer_to(echo_request(ECHO_V4), CV_DROP(CV_ROUTER_TTL_EXPIRED));
	assert_non_null(out);
	assert_int_equal(out->bytes[34], 0); // an echo reply, not "time exceeded"
	out = answer_to(echo_request(ECHO_V6("2001:db8:2::7", "2001:db8:50::1", "1")),
		CV_DROP(CV_ROUTER_TTL_EXPIRED));
	assert_non_null(out);
	assert_int_equal(out->bytes[54], 129);
	out = answer_to(echo_request(ECHO_V6("fe80::7", "2001:db8:50::1", "64")),
		CV_DROP(CV_ROUTER_MARTIAN));
	assert_non_null(out);
	assert_int_equal(out->bytes[54], 129);
	assert_null(answer_to(echo_request(ECHO_V6("fe80::7", "2001:db8:60::1", "64")),
		CV_DROP(CV_ROUTER_MARTIAN)));
	(void)state;
}

// ARP and solicitations for one in the port's network; not for one of another.
static void addresses_of_the_kernel_are_found(void **state)
{
	static const char arp[] = "dst=ff:ff:ff:ff:ff:ff src=02:00:00:00:00:07 type=0806 "
				  "hex=0001080006040001020000000007c0000207000000000000%s";
	static const struct {
		const char *hex, *address;
		bool answered;
	} rows[] = {
		{"c0000205", "2001:db8:2::5", true},
		{"0a320001", "2001:db8:50::1", false},
		{"c0000206", "2001:db8:2::6", false},
	};
	char text[300];

	kernel_has("192.0.2.5/32");
	kernel_has("10.50.0.1/32");
	kernel_has("2001:db8:2::5/128");
	kernel_has("2001:db8:50::1/128");
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct cv_nd nd = {.type = CV_ND_SOLICITATION, .has_mac = true};
		struct packet packet = {.len = CV_ETHER_LEN + CV_ND_LEN};
		const struct rig_out *out;

		snprintf(text, sizeof(text), arp, rows[i].hex);
		out = answer_to(packet_make(text), CV_DROP(CV_ROUTER_NOT_IP));
		assert_int_equal(out != NULL, rows[i].answered);
		assert_true(out == NULL || out->bytes[21] == CV_ARP_REPLY);

		inet_pton(AF_INET6, "2001:db8:2::7", nd.src);
		inet_pton(AF_INET6, rows[i].address, nd.target);
		cv_nd_group(nd.target, nd.dst);
		memcpy(nd.mac, (const uint8_t[]){2, 0, 0, 0, 0, 7}, CV_MAC_LEN);
		cv_ipv6_group_mac(nd.dst, packet.bytes);
		memcpy(packet.bytes + CV_MAC_LEN, nd.mac, CV_MAC_LEN);
		memcpy(packet.bytes + 12, "\x86\xdd", 2);
		cv_nd_write(packet.bytes + CV_ETHER_LEN, &nd);
		out = answer_to(packet, CV_DROP(CV_ROUTER_MULTICAST));
		assert_int_equal(out != NULL, rows[i].answered);
		assert_true(out == NULL || out->bytes[54] == CV_ND_ADVERTISEMENT);
	}
	(void)state;
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(others_go_on),
		TEST(what_waits_is_bounded),
		TEST(what_leads_nowhere_is_dropped),
		TEST(addresses_of_the_kernel_are_own),
		TEST(addresses_of_the_kernel_are_found),
	};

	packet_eal(argv[0]);
	pool = rte_pktmbuf_pool_create("kernel", 1023, 0, 0, 4096, SOCKET_ID_ANY);
	if (pool == NULL)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
