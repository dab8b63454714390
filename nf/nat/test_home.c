// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// nat on several workers: each packet goes to the worker that its home is, as the node hands it
// over. A flow, its answers, its errors and its fragments meet there, whatever they are.
#include "flow/home.h"
#include "flow/restore.h"
#include "nf/nat/nat.h"
#include "nf/nat/test_net.h"

enum { WORKERS = 2 }; // as packet_env() has

static const char with_forwards[] =
	"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['203.0.113.1', '203.0.113.2'],"
	" 'ports': '1024-7167', 'block_size': 64, 'blocks_per_subscriber': 4, 'block_rest_s': 1,"
	" 'forwards': [{'proto': 'tcp', 'external': '203.0.113.1', 'port': 80, 'to': '10.0.0.5',"
	"   'to_port': 8080}, {'proto': 'icmp', 'external': '203.0.113.3', 'to': '10.0.0.6'},"
	"  {'proto': 'udp', 'external': '203.0.113.1', 'port': 53, 'to': '172.16.0.7'}]}";

// Most packets' homes are told in another way then; and where the pool has a gap, 203.0.113.2, not so.
static const char without_forwards[] =
	"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['203.0.113.1', '203.0.113.2'],"
	" 'ports': '1024-7167', 'block_size': 64, 'blocks_per_subscriber': 4}";
static const char with_gap[] =
	"{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['203.0.113.1', '203.0.113.3'],"
	" 'ports': '1024-7167', 'block_size': 64, 'blocks_per_subscriber': 4}";

// The workers share one instance.
static struct net nets[WORKERS];
static struct cv_flow_homes *homes;
static struct cv_flow_home *finders[WORKERS];

static int setup_of(const char *config)
{
	homes = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*homes), 64u));
	memset(homes, 0, sizeof(*homes));
	assert_int_equal(cv_flow_secret_make(&homes->secret), 0);
	homes->count = WORKERS;
	for (unsigned w = 0; w < WORKERS; w++) {
		homes->workers[w] = (uint8_t)w;
		net_make_of(&nets[w], w == 0 ? packet_nf(&cv_nf_nat, config, NULL) : nets[0].nat, w,
			4096);
		cv_flow_zone_share(nets[w].zone, homes);
		finders[w] = cv_flow_home_create(homes, w, &cv_nf_nat, nets[0].nat, TSC_HZ, NULL);
		assert_non_null(finders[w]);
	}
	return 0;
}

static int setup(void **state)
{
	return setup_of(with_forwards);
}

static int setup_without_forwards(void **state)
{
	return setup_of(without_forwards);
}

static int setup_with_gap(void **state)
{
	return setup_of(with_gap);
}

static void free_nets(struct net *of)
{
	for (unsigned w = 0; w < WORKERS; w++)
		cv_flow_zone_destroy(of[w].zone);
	cv_nf_destroy(&cv_nf_nat, of[0].nat);
}

static int teardown(void **state)
{
	for (unsigned w = 0; w < WORKERS; w++)
		cv_flow_home_destroy(finders[w]);
	free_nets(nets);
	free(homes);
	return 0;
}

// Another process, after this one was killed. Returns what is known again there.
static struct cv_flow_restored restart(void)
{
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};
	struct net before[WORKERS];

	for (unsigned w = 0; w < WORKERS; w++) {
		assert_true(cv_flow_zone_store(nets[w].zone) >= 0);
		cv_flow_home_destroy(finders[w]);
	}
	memcpy(before, nets, sizeof(nets));
	free(homes);
	setup(NULL);
	// It has a secret of its own until then.
	assert_true(cv_flow_zone_restore(nets[1].zone, &nets[1].worker, before[1].zone->memory.fd,
			    CV_FLOW_KEPT, &restored, &error) < 0);
	assert_non_null(strstr(error.text, "spread over workers in another way"));
	error.text[0] = '\0';
	assert_true(cv_flow_zone_homes_in(
		nets[1].zone, before[1].zone->memory.fd, CV_FLOW_KEPT, &homes->secret));
	assert_int_equal(
		cv_nat_kept.restore_begin(nets[0].nat, cv_nat_kept.store(before[0].nat), &error),
		0);
	for (unsigned w = 0; w < WORKERS; w++) {
		nets[w].worker.now = before[w].worker.now + TSC_HZ;
		if (cv_flow_zone_restore(nets[w].zone, &nets[w].worker, before[w].zone->memory.fd,
			    CV_FLOW_KEPT, &restored, &error) != 0)
			fail_msg("%s", error.text);
	}
	cv_nat_kept.restore_end(nets[0].nat, &nets[0].worker);
	free_nets(before);
	return restored;
}

// The worker that keeps a packet that came in by a port, as each worker sees it.
static unsigned home_of(const struct packet *packet, uint8_t in)
{
	uint8_t *exact = malloc(packet->len + !packet->len);
	struct cv_view view = {.in = in};
	uint8_t worker = 0, first = 0;

	memcpy(exact, packet->bytes, packet->len);
	cv_view_set(&view, exact, packet->len);
	for (unsigned w = 0; w < WORKERS; w++) {
		const uint16_t others = cv_flow_home_find(finders[w], &view, &worker, 1);

		assert_int_equal(others, worker != w);
		if (w == 0)
			first = worker;
		assert_int_equal(worker, first);
	}
	free(exact);
	return worker;
}

static const char *pass(struct packet *packet, uint8_t *port, unsigned *worker)
{
	*worker = home_of(packet, *port);
	assert_true(*worker < WORKERS);
	return net_pass(&nets[*worker], packet, port);
}

static void swap(uint8_t *a, uint8_t *b, unsigned bytes)
{
	uint8_t kept[16];

	memcpy(kept, a, bytes);
	memcpy(a, b, bytes);
	memcpy(b, kept, bytes);
}

// What whoever got it answers.
static struct packet answer_to(const struct packet *packet)
{
	struct packet answer = *packet;
	const bool ports = answer.bytes[23] == IPPROTO_TCP || answer.bytes[23] == IPPROTO_UDP;

	swap(answer.bytes + 26, answer.bytes + 30, 4);
	if (ports)
		swap(answer.bytes + 34, answer.bytes + 36, 2);
	if (answer.bytes[23] == IPPROTO_ICMP)
		answer.bytes[34] = 0;
	if (answer.bytes[23] == IPPROTO_TCP)
		answer.bytes[47] |= 0x10;
	flow_checksums(answer.bytes, answer.len);
	return answer;
}

static bool is_from(const struct packet *packet, const char *address)
{
	return memcmp(packet->bytes + 26, &(in_addr_t){inet_addr(address)}, 4) == 0;
}

// A packet and its answer: each end sees what it should, and one worker has both.
static void assert_answered(const char *text, uint8_t in, uint8_t out)
{
	struct packet packet = net_packet(text), answer, expected;
	unsigned worker, back;
	uint8_t port = in;

	if (packet.bytes[23] == IPPROTO_ICMP) { // its identifier
		packet.bytes[38] = 0x12;
		flow_checksums(packet.bytes, packet.len);
	}
	expected = answer_to(&packet);
	assert_string_equal(pass(&packet, &port, &worker), "next");
	assert_int_equal(port, out);
	answer = answer_to(&packet);
	assert_string_equal(pass(&answer, &port, &back), "next");
	assert_int_equal(back, worker);
	assert_int_equal(port, in);
	net_same(text, &answer, &expected);
}

static void test_answers_come_home(void **state)
{
	static const char *const rests[] = {
		"udp sport=5000 dport=53 data=8",
		"tcp sport=5001 dport=80 data=4 flags=02",
		"icmp kind=8 data=4",
	};
	char text[160];

	for (unsigned host = 1; host < 40; host++)
		for (unsigned r = 0; r < RTE_DIM(rests); r++) {
			snprintf(text, sizeof(text), "ip4 src=10.0.0.%u dst=198.51.100.%u %s", host,
				1 + host % 7, rests[r]);
			assert_answered(text, INSIDE, OUTSIDE);
		}
}

// RFC 4787 REQ-1, REQ-2: mappings do not depend on the other end, whichever workers there are.
static void test_a_host_has_one_mapping(void **state)
{
	uint8_t first[6];
	char text[160];

	for (unsigned remote = 1; remote < 60; remote++) {
		struct packet packet;
		uint8_t port = INSIDE;
		unsigned worker;

		snprintf(text, sizeof(text),
			"ip4 src=10.0.0.77 dst=198.51.100.%u udp sport=5000 dport=%u data=4",
			remote, 50 + remote);
		packet = net_packet(text);
		assert_string_equal(pass(&packet, &port, &worker), "next");
		if (remote == 1) {
			memcpy(first, packet.bytes + 26, 4);
			memcpy(first + 4, packet.bytes + 34, 2);
		}
		assert_memory_equal(first, packet.bytes + 26, 4);
		assert_memory_equal(first + 4, packet.bytes + 34, 2);
	}
}

static void test_forwards(void **state)
{
	char text[160];

	for (unsigned remote = 1; remote < 40; remote++) {
		snprintf(text, sizeof(text),
			"ip4 src=198.51.100.%u dst=203.0.113.1 tcp sport=4000 dport=80 flags=02",
			remote);
		assert_answered(text, OUTSIDE, INSIDE);
		snprintf(text, sizeof(text),
			"ip4 src=198.51.100.%u dst=203.0.113.3 icmp kind=8 data=4", remote);
		assert_answered(text, OUTSIDE, INSIDE);
		snprintf(text, sizeof(text),
			"ip4 src=198.51.100.%u dst=203.0.113.1 udp sport=4000 dport=53 data=3",
			remote);
		assert_answered(text, OUTSIDE, INSIDE);
	}
}

// RFC 4787 REQ-9: both ends are internal, at homes of their own.
static void test_hairpins(void **state)
{
	unsigned apart = 0;
	char text[160];

	for (unsigned a = 100; a < 110; a++)
		for (unsigned b = 100; b < 110; b++) {
			struct packet packet;
			uint8_t port = INSIDE;
			unsigned home, worker;
			const uint8_t *ip;

			if (a == b)
				continue;
			// The one speaks outside, so that it has a mapping.
			snprintf(text, sizeof(text),
				"ip4 src=10.0.0.%u dst=198.51.100.1 udp sport=6000 dport=53 data=4",
				b);
			packet = net_packet(text);
			assert_string_equal(pass(&packet, &port, &home), "next");
			ip = packet.bytes + 26;
			snprintf(text, sizeof(text),
				"ip4 src=10.0.0.%u dst=%u.%u.%u.%u udp sport=7000 dport=%u data=4",
				a, ip[0], ip[1], ip[2], ip[3], ip[8] << 8 | ip[9]);
			assert_answered(text, INSIDE, INSIDE);
			packet = net_packet(text);
			port = INSIDE;
			assert_string_equal(pass(&packet, &port, &worker), "next");
			assert_true(is_from(&packet, "203.0.113.1") ||
				    is_from(&packet, "203.0.113.2") ||
				    is_from(&packet, "203.0.113.3"));
			apart += worker != home;
		}
	assert_true(apart > 0); // else nobody reached into another's mappings
}

static void test_hairpins_through_forwards(void **state)
{
	char text[160];

	for (unsigned a = 100; a < 110; a++) {
		snprintf(text, sizeof(text),
			"ip4 src=10.0.0.%u dst=203.0.113.1 tcp sport=7000 dport=80 flags=02", a);
		assert_answered(text, INSIDE, INSIDE);
	}
}

// What comes from outside for an address between those of the pool is nobody's to translate.
static void test_an_address_in_the_gap(void **state)
{
	char text[160];

	for (unsigned remote = 1; remote < 40; remote++) {
		snprintf(text, sizeof(text),
			"ip4 src=198.51.100.%u dst=203.0.113.2 udp sport=4000 dport=%u data=3",
			remote, 1024 + remote * 64);
		assert_answered(text, OUTSIDE, INSIDE);
	}
}

// Their mappings and ports are given back where they are from.
static void test_all_is_given_back(void **state)
{
	test_hairpins(state);
	test_answers_come_home(state);
	assert_true(net_info(&nets[0], "mappings") > 0);
	for (unsigned w = 0; w < WORKERS; w++)
		net_wait(&nets[w], 700);
	assert_int_equal(net_info(&nets[0], "mappings"), 0);
	assert_int_equal(net_info(&nets[0], "used"), 0);
}

// Packets of flows with mappings at both workers, hairpins among them: as they leave.
static unsigned send_all(struct packet *left)
{
	unsigned count = 0;
	char text[160];

	for (unsigned a = 100; a < 110; a++) {
		const uint8_t *ip = left[count].bytes + 26;

		snprintf(text, sizeof(text),
			"ip4 src=10.0.0.%u dst=198.51.100.1 udp sport=6000 dport=53 data=4", a);
		left[count++] = net_packet(text);
		for (unsigned b = 100; b < 110; b++) {
			if (a == b)
				continue;
			snprintf(text, sizeof(text),
				"ip4 src=10.0.0.%u dst=%u.%u.%u.%u udp sport=7000 dport=%u data=4",
				b, ip[0], ip[1], ip[2], ip[3], ip[8] << 8 | ip[9]);
			left[count++] = net_packet(text);
		}
		for (unsigned i = count - 10; i < count; i++) {
			uint8_t port = INSIDE;
			unsigned worker;

			assert_string_equal(pass(&left[i], &port, &worker), "next");
			if (i > count - 10)
				continue;
			for (unsigned j = i + 1; j < count; j++) { // to where it is outside
				memcpy(left[j].bytes + 30, ip, 4);
				memcpy(left[j].bytes + 36, ip + 8, 2);
				flow_checksums(left[j].bytes, left[j].len);
			}
		}
	}
	return count;
}

// Each worker has its flows and mappings in another process, which has the same number of workers.
static void test_all_goes_on_after_a_kill(void **state)
{
	static struct packet before[100], after[100];
	struct cv_flow_restored restored;
	uint64_t flows = 0, created = 0;
	unsigned mappings, used, count;

	if (cv_nat_kept.give(nets[0].nat) < 0)
		skip(); // this kernel makes no large pages of files
	count = send_all(before);
	for (unsigned w = 0; w < WORKERS; w++)
		flows += nets[w].zone->table[0].used;
	mappings = net_info(&nets[0], "mappings");
	used = net_info(&nets[0], "used");
	restored = restart();
	assert_int_equal(restored.lost, 0);
	assert_int_equal(restored.flows, flows);
	assert_int_equal(count, flows);
	assert_int_equal(send_all(after), count);
	for (unsigned i = 0; i < count; i++)
		net_same("after", &after[i], &before[i]);
	for (unsigned w = 0; w < WORKERS; w++)
		created += cv_flow_zone_counters(nets[w].zone)->created;
	assert_int_equal(created, 0);
	assert_int_equal(net_info(&nets[0], "mappings"), mappings);
	assert_int_equal(net_info(&nets[0], "used"), used);
	for (unsigned w = 0; w < WORKERS; w++)
		net_wait(&nets[w], 700);
	assert_int_equal(net_info(&nets[0], "mappings"), 0);
	assert_int_equal(net_info(&nets[0], "used"), 0);
}

// Slots that lead anywhere, to mappings of all workers and none: all is given back at last.
static void test_any_slots_after_a_kill(void **state)
{
	static struct packet left[100];
	uint64_t seed = 1;

	if (cv_nat_kept.give(nets[0].nat) < 0)
		skip();
	for (unsigned round = 0; round < 30; round++) {
		send_all(left);
		for (unsigned w = 0; w < WORKERS; w++)
			for (uint32_t i = 0; i < nets[w].zone->table[0].high; i++) {
				struct cv_nat_slot *slot = cv_flow_slot(nets[w].zone, false, i, 0);

				seed = seed * 6364136223846793005 + 1442695040888963407;
				if (seed >> 62 == 0)
					slot->source = (uint32_t)(seed >> 40) % 70000;
				if (seed >> 62 == 1)
					slot->destination = (uint32_t)(seed >> 40) % 70000;
				if (seed >> 62 == 2)
					slot->source = (uint32_t)(seed >> 20);
			}
		restart();
		send_all(left);
		for (unsigned w = 0; w < WORKERS; w++)
			net_wait(&nets[w], 440);
		assert_int_equal(net_info(&nets[0], "mappings"), 0);
		assert_int_equal(net_info(&nets[0], "used"), 0);
	}
}

static void test_other_protocols(void **state)
{
	char text[160];

	for (unsigned host = 1; host < 20; host++) {
		snprintf(text, sizeof(text), "ip4 src=10.0.1.%u dst=198.51.100.%u proto=47 data=20",
			host, host);
		assert_answered(text, INSIDE, OUTSIDE);
	}
}

// An error about a packet comes to its flow, though its sender is neither end.
static void test_errors(void **state)
{
	char text[200];

	for (unsigned host = 1; host < 30; host++) {
		struct packet packet, error = {.len = 0};
		unsigned worker, back;
		uint8_t port = INSIDE;

		snprintf(text, sizeof(text),
			"ip4 src=10.0.2.%u dst=198.51.100.1 udp sport=5000 dport=9 data=8", host);
		packet = net_packet(text);
		assert_string_equal(pass(&packet, &port, &worker), "next");
		snprintf(text, sizeof(text),
			"ip4 src=192.0.2.9 dst=%u.%u.%u.%u icmp kind=3 code=3 data=36",
			packet.bytes[26], packet.bytes[27], packet.bytes[28], packet.bytes[29]);
		error = packet_make(text);
		memcpy(error.bytes + error.len - 36, packet.bytes + 14, 36);
		flow_checksums(error.bytes, error.len);
		port = OUTSIDE;
		assert_string_equal(pass(&error, &port, &back), "next");
		assert_int_equal(back, worker);
	}
}

// The fragments behind the first one go where it went, if they come by the same queue.
static void test_fragments(void **state)
{
	char text[200];

	for (unsigned host = 1; host < 30; host++) {
		struct packet first, later;
		unsigned worker, with;
		uint8_t port = INSIDE;

		snprintf(text, sizeof(text),
			"ip4 src=10.0.3.%u dst=198.51.100.1 id=%u mf=1 udp sport=5000 dport=9 "
			"data=16",
			host, host);
		first = net_packet(text);
		assert_string_equal(pass(&first, &port, &worker), "next");
		snprintf(text, sizeof(text),
			"ip4 src=10.0.3.%u dst=198.51.100.1 id=%u off=3 proto=17 data=16", host,
			host);
		later = net_packet(text);
		port = INSIDE;
		assert_string_equal(pass(&later, &port, &with), "next");
		assert_int_equal(with, worker);
		assert_memory_equal(later.bytes + 26, first.bytes + 26, 8);
	}
}

// No worker has much more than its part of many hosts; what is of no flow stays.
static void test_parts(void **state)
{
	unsigned part[WORKERS] = {0};
	const struct packet arp = packet_make("type=0806 data=28");
	uint8_t worker;
	char text[160];

	for (unsigned host = 0; host < 3000; host++) {
		struct packet packet;

		snprintf(text, sizeof(text),
			"ip4 src=10.1.%u.%u dst=198.51.100.1 udp sport=1 dport=2 data=4", host >> 8,
			host & 255);
		packet = net_packet(text);
		part[home_of(&packet, INSIDE)]++;
	}
	for (unsigned w = 0; w < WORKERS; w++) {
		struct cv_view view = {.in = OUTSIDE};
		uint8_t bytes[64];

		assert_in_range(part[w], 1350, 1650);
		memcpy(bytes, arp.bytes, arp.len);
		cv_view_set(&view, bytes, arp.len);
		assert_int_equal(cv_flow_home_find(finders[w], &view, &worker, 1), 0);
		assert_int_equal(worker, w);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers_come_home, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_host_has_one_mapping, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forwards, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hairpins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hairpins_through_forwards, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_answers_come_home, setup_without_forwards, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_host_has_one_mapping, setup_without_forwards, teardown),
		cmocka_unit_test_setup_teardown(test_hairpins, setup_without_forwards, teardown),
		cmocka_unit_test_setup_teardown(test_answers_come_home, setup_with_gap, teardown),
		cmocka_unit_test_setup_teardown(test_hairpins, setup_with_gap, teardown),
		cmocka_unit_test_setup_teardown(
			test_an_address_in_the_gap, setup_with_gap, teardown),
		cmocka_unit_test_setup_teardown(test_all_is_given_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_goes_on_after_a_kill, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any_slots_after_a_kill, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_protocols, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fragments, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
