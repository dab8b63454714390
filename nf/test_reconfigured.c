// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What functions keep when another instance takes the place of one that runs: as the node does it,
// without the node.
#include "tests/support/function_rig.h"
#include "tests/support/test_packets.h"

#include "flow/path.h"

extern const struct cv_nf cv_nf_balancer, cv_nf_bridge, cv_nf_classifier, cv_nf_firewall, cv_nf_nat,
	cv_nf_policer, cv_nf_router;

static struct rte_mempool *pool;

// A function by itself, alone or in a flow path.
struct rig {
	const struct cv_nf *nf;
	void *instance;
	struct cv_flow_zone *zone; // NULL: it is not stateful
	struct cv_flow_group *group;
	struct cv_nf_counters counters, *list;
	struct cv_nf_worker worker;
};

static void rig_make(struct rig *rig, const struct cv_nf *nf, const char *config)
{
	static const struct cv_flow_limits limits = {.max = 1024,
		.max_ipv6 = 64,
		.timeouts_s = {100, 100, 100, 100, 100, 100, 100, 100}};
	struct cv_flow_member member = {.nf = nf};
	struct cv_error error = {""};

	memset(rig, 0, sizeof(*rig));
	rig->nf = nf;
	rig->worker.now = 1000000000;
	rig->instance = packet_nf(nf, config, NULL);
	if (!cv_flow_is_stateful(nf, rig->instance))
		return;
	member.instance = rig->instance;
	rig->list = &rig->counters;
	rig->zone = cv_flow_zone_create(&member, 1, &limits, 1000000000, &error);
	assert_non_null(rig->zone);
	rig->group = cv_flow_group_create(rig->zone, (const uint8_t[]){0}, &rig->list);
}

static void rig_free(struct rig *rig)
{
	cv_flow_zone_destroy(rig->zone);
	cv_nf_destroy(rig->nf, rig->instance);
}

// As cv_apply_begin() and cv_apply_commit() do.
static void reconfigure(struct rig *rig, const char *config)
{
	void *before = rig->instance;

	rig->instance = packet_nf_instead(rig->nf, config, before, NULL);
	if (rig->zone != NULL)
		cv_flow_zone_replace(rig->zone, 0, rig->instance);
	if (rig->nf->inherit != NULL)
		rig->nf->inherit(rig->instance, before);
	cv_nf_destroy(rig->nf, before);
}

static void refused(struct rig *rig, const char *config, const char *words)
{
	struct cv_error error = {""};

	assert_null(packet_nf_instead(rig->nf, config, rig->instance, &error));
	if (strstr(error.text, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error.text, words);
}

// A packet that comes in by a port. Returns whether it passed; its bytes are in out.
static bool pass_by(struct rig *rig, uint8_t in, const char *text, struct packet *out)
{
	struct packet_row row = {.in = text};
	struct cv_view view;
	uint8_t verdict = 0xa5;

	packet_views(&view, 1, &row, 1);
	view.in = in;
	if (rig->zone != NULL)
		cv_flow_process(rig->group, &rig->worker, &view, &verdict, 1);
	else
		rig->nf->process(rig->instance, &rig->worker, &view, &verdict, 1);
	if (out != NULL) {
		out->len = view.len;
		memcpy(out->bytes, view.data, view.len);
	}
	free(view.data);
	return verdict == CV_NEXT;
}

static bool pass(struct rig *rig, const char *text)
{
	return pass_by(rig, 0, text, NULL);
}

static void passes(struct rig *rig, const char *text, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!pass(rig, text))
			fail_msg("%s: dropped", text);
}

// A number of info(): of the element of a list with this name or address, or of the function.
static json_int_t info_of(
	const struct rig *rig, const char *list, const char *name, const char *key)
{
	json_t *info = rig->nf->info(rig->instance), *element;
	json_int_t number = -1;
	size_t i;

	if (list == NULL)
		number = json_integer_value(json_object_get(info, key));
	json_array_foreach (json_object_get(info, list == NULL ? "" : list), i, element) {
		const char *is = json_string_value(json_object_get(element, "name"));

		if (is == NULL)
			is = json_string_value(json_object_get(element, "address"));
		if (is != NULL && name != NULL && strcmp(is, name) == 0)
			number = json_integer_value(json_object_get(element, key));
	}
	json_decref(info);
	return number;
}

static void counters_of_unchanged_rules_go_on(void **state)
{
	struct rig rig;

	rig_make(&rig, &cv_nf_firewall,
		"{'rules': [{'action': 'allow', 'src': '10.0.0.1', 'name': 'a'},"
		"{'action': 'allow', 'src': '10.0.0.2', 'name': 'b'},"
		"{'action': 'allow', 'src': '10.0.0.3', 'name': 'c'}]}");
	passes(&rig, "ip4 src=10.0.0.1 udp", 1);
	passes(&rig, "ip4 src=10.0.0.2 udp", 2);
	passes(&rig, "ip4 src=10.0.0.3 udp", 3);
	assert_false(pass(&rig, "ip4 src=10.0.0.9 udp"));
	// c moves, b matches something else, d is new.
	for (unsigned i = 0; i < 2; i++)
		reconfigure(&rig,
			"{'rules': [{'action': 'allow', 'src': '10.0.0.3', 'name': 'c'},"
			"{'action': 'allow', 'src': '10.0.0.4', 'name': 'd'},"
			"{'action': 'allow', 'src': '10.0.0.1', 'name': 'a'},"
			"{'action': 'allow', 'src': '10.0.0.2', 'dport': 7, 'name': 'b'}]}");
	passes(&rig, "ip4 src=10.0.0.3 udp", 1);
	passes(&rig, "ip4 src=10.0.0.4 udp", 1);
	assert_false(pass(&rig, "ip4 src=10.0.0.2 udp dport=8"));
	assert_int_equal(info_of(&rig, "rules", "a", "packets"), 1);
	assert_int_equal(info_of(&rig, "rules", "b", "packets"), 0);
	assert_int_equal(info_of(&rig, "rules", "c", "packets"), 4);
	assert_int_equal(info_of(&rig, "rules", "d", "packets"), 1);
	assert_int_equal(info_of(&rig, NULL, NULL, "default_packets"), 2);
	rig_free(&rig);
}

static void a_classifier_counts_on(void **state)
{
	struct rig rig;

	rig_make(&rig, &cv_nf_classifier,
		"{'rules': [{'match': {'src': '10.0.0.1', 'name': 'a'}, 'dscp': 1}]}");
	passes(&rig, "ip4 src=10.0.0.1 udp", 5);
	reconfigure(&rig,
		"{'rules': [{'match': {'dst': '10.0.0.7'}}, {'match': {'src': '10.0.0.1', 'name': "
		"'a'}, 'dscp': 2}]}");
	passes(&rig, "ip4 src=10.0.0.1 udp", 1);
	assert_int_equal(info_of(&rig, "rules", "a", "packets"), 6);
	rig_free(&rig);
}

static void a_firewall_ends_what_it_denies(void **state)
{
	struct packet out;
	struct rig rig;

	rig_make(&rig, &cv_nf_firewall,
		"{'stateful': true, 'rules': [{'action': 'allow', 'src': '10.0.0.0/8'}]}");
	passes(&rig, "ip4 src=10.0.0.1 dst=192.0.2.1 udp sport=1 dport=2", 1);
	passes(&rig, "ip4 src=10.0.0.2 dst=192.0.2.1 udp sport=1 dport=2", 1);
	reconfigure(&rig, "{'stateful': true, 'rules': [{'action': 'allow', 'src': '10.0.0.1'}]}");
	assert_true(pass_by(&rig, 1, "ip4 src=192.0.2.1 dst=10.0.0.1 udp sport=2 dport=1", &out));
	assert_false(pass_by(&rig, 1, "ip4 src=192.0.2.1 dst=10.0.0.2 udp sport=2 dport=1", &out));
	assert_false(pass(&rig, "ip4 src=10.0.0.2 dst=192.0.2.1 udp sport=1 dport=2"));
	assert_int_equal(cv_flow_zone_counters(rig.zone)->invalidated, 1);
	rig_free(&rig);
}

// Rules that ask for what only first packets have are asked about flows, not the packet at hand.
static void a_connection_goes_on(void **state)
{
	static const char config[] = "{'stateful': true, 'rules': [{'action': 'allow', 'proto': "
				     "'tcp', 'tcp_flags': 'syn'%s}]}";
	struct packet out;
	char text[200];
	struct rig rig;

	snprintf(text, sizeof(text), config, "");
	rig_make(&rig, &cv_nf_firewall, text);
	passes(&rig, "ip4 src=10.0.0.1 dst=192.0.2.1 tcp sport=1 dport=2 flags=2", 1);
	snprintf(text, sizeof(text), config, ", 'dport': 2");
	reconfigure(&rig, text);
	assert_true(pass_by(
		&rig, 1, "ip4 src=192.0.2.1 dst=10.0.0.1 tcp sport=2 dport=1 flags=16", &out));
	assert_true(pass(&rig, "ip4 src=10.0.0.1 dst=192.0.2.1 tcp sport=1 dport=2 flags=16"));
	rig_free(&rig);
}

static void a_bridge_knows_who_is_where(void **state)
{
	struct rig rig;

	rig_make(&rig, &cv_nf_bridge, "{'sides': ['left', 'third']}");
	pass_by(&rig, 0, "src=02:00:00:00:00:0a dst=02:00:00:00:00:0b ip4", NULL);
	pass_by(&rig, 2, "src=02:00:00:00:00:0b dst=02:00:00:00:00:0a ip4", NULL);
	reconfigure(&rig, "{'sides': ['third', 'left'], 'entries': 64, 'age_s': 7}");
	assert_int_equal(info_of(&rig, NULL, NULL, "learned"), 2);
	assert_false(pass_by(&rig, 0, "src=02:00:00:00:00:0c dst=02:00:00:00:00:0a ip4", NULL));
	assert_true(pass_by(&rig, 0, "src=02:00:00:00:00:0c dst=02:00:00:00:00:0b ip4", NULL));
	// Stations of a port that is no side any more are forgotten.
	reconfigure(&rig, "{'sides': ['right', 'left']}");
	assert_int_equal(info_of(&rig, NULL, NULL, "learned"), 2);
	rig_free(&rig);
}

#define ROUTER(more) "{'addresses': {'left': ['10.0.0.1/24'], 'right': ['192.0.2.1/24']}" more "}"
#define ARP_OF_HOST                                                  \
	"dst=ff:ff:ff:ff:ff:ff src=02:00:00:00:00:02 type=0806 hex=" \
	"00010800060400010200000000020a0000020000000000000a000001"
#define ARP_OF_NEXT                                                  \
	"dst=02:aa:00:00:00:01 src=02:00:00:00:00:09 type=0806 hex=" \
	"0001080006040002020000000009c000020902aa00000001c0000201"

static void receive(struct function_rig *rig, unsigned in, const char *text)
{
	const struct packet packet = packet_make(text);

	assert_true(rig_receive(rig, in, packet.bytes, packet.len));
}

// Neighbours stay known, and packets wait on for one that is not.
static void a_router_knows_its_neighbours(void **state)
{
	static struct function_rig rig;
	const struct cv_nf *nf = &cv_nf_router;
	void *before = packet_nf(nf, ROUTER(""), NULL), *instance;
	json_t *info;

	rig_begin(&rig, nf, before, pool);
	receive(&rig, 0, ARP_OF_HOST); // answered: one packet leaves
	receive(&rig, 0,
		"dst=02:aa:00:00:00:00 src=02:00:00:00:00:02 ip4 src=10.0.0.2 dst=192.0.2.9 udp");
	assert_int_equal(rig.counters.held, 1);
	instance = packet_nf_instead(nf,
		ROUTER(", 'routes': [{'prefix': '10.9.0.0/16', 'via': '10.0.0.2'}]"), before, NULL);
	rig.step.instance = instance;
	nf->inherit(instance, before);
	cv_nf_destroy(nf, before);
	rig_tick(&rig); // who is 192.0.2.9?
	receive(&rig, 1, ARP_OF_NEXT);
	rig_tick(&rig);
	assert_int_equal(rig.counters.released, 1);
	assert_int_equal(rig.out[(rig.outs - 1) % RIG_OUT_MAX].port, 1);
	// The host that asked before is a next hop now, and known.
	receive(&rig, 1,
		"dst=02:aa:00:00:00:01 src=02:00:00:00:00:09 ip4 src=192.0.2.9 dst=10.9.0.1 udp");
	assert_int_equal(rig.counters.held, 1);
	assert_memory_equal(
		rig.out[(rig.outs - 1) % RIG_OUT_MAX].bytes, "\x02\x00\x00\x00\x00\x02", 6);
	info = nf->info(instance);
	assert_int_equal(json_integer_value(json_object_get(info, "answered")), 1);
	json_decref(info);
	assert_true(rig_conserved(&rig));
	cv_nf_destroy(nf, instance);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

// Packets that wait when the instance ends are given back, whoever has them.
static void a_router_gives_back_what_waits(void **state)
{
	static struct function_rig rig;
	const struct cv_nf *nf = &cv_nf_router;
	void *before = packet_nf(nf, ROUTER(""), NULL), *instance;

	rig_begin(&rig, nf, before, pool);
	receive(&rig, 0,
		"dst=02:aa:00:00:00:00 src=02:00:00:00:00:02 ip4 src=10.0.0.2 dst=192.0.2.9 udp");
	instance = packet_nf_instead(nf, ROUTER(", 'icmp_rate': 7"), before, NULL);
	nf->inherit(instance, before);
	cv_nf_destroy(nf, before);
	cv_nf_destroy(nf, instance);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

#define NAT(inside, more) \
	"{'outside': ['right'], 'inside': ['" inside "'], 'pool': ['203.0.113.1']" more "}"
#define FORWARD(port, to) \
	"{'proto': 'tcp', 'external': '203.0.113.1', 'port': " port ", 'to': '" to "'}"

// The source address and port that a packet leaves with.
static uint64_t outside_of(struct rig *rig, const char *text)
{
	struct packet out;
	uint64_t source = 0;

	if (!pass_by(rig, 0, text, &out))
		fail_msg("%s: dropped", text);
	memcpy(&source, out.bytes + 14 + 12, 4);
	memcpy((uint8_t *)&source + 4, out.bytes + 14 + 20, 2);
	return source;
}

static void nat_keeps_its_mappings(void **state)
{
	struct packet out;
	uint64_t one, two;
	struct rig rig;

	rig_make(&rig, &cv_nf_nat,
		NAT("10.0.0.0/8", ", 'forwards': [" FORWARD("80", "10.0.0.5") "," FORWARD(
					  "81", "10.0.0.6") "]"));
	one = outside_of(&rig, "ip4 src=10.0.0.1 dst=192.0.2.9 udp sport=5 dport=6");
	two = outside_of(&rig, "ip4 src=10.1.0.1 dst=192.0.2.9 udp sport=5 dport=6");
	assert_true(
		pass_by(&rig, 1, "ip4 src=192.0.2.9 dst=203.0.113.1 tcp sport=9 dport=80", &out));
	assert_true(
		pass_by(&rig, 1, "ip4 src=192.0.2.9 dst=203.0.113.1 tcp sport=9 dport=81", &out));
	// 10.1 is not inside any more; port 81 goes to another host.
	reconfigure(
		&rig, NAT("10.0.0.0/16", ", 'forwards': [" FORWARD("81", "10.0.0.7") "," FORWARD(
						 "80", "10.0.0.5") "]"));
	assert_int_equal(
		outside_of(&rig, "ip4 src=10.0.0.1 dst=192.0.2.9 udp sport=5 dport=6"), one);
	assert_int_equal(
		outside_of(&rig, "ip4 src=10.0.0.1 dst=192.0.2.8 udp sport=5 dport=6"), one);
	assert_int_equal(info_of(&rig, NULL, NULL, "mappings"), 2);
	assert_false(pass(&rig, "ip4 src=10.1.0.1 dst=192.0.2.9 udp sport=5 dport=6"));
	assert_int_not_equal(
		two, outside_of(&rig, "ip4 src=10.1.0.1 dst=192.0.2.9 udp sport=5 dport=6"));
	assert_int_equal(info_of(&rig, NULL, NULL, "mappings"), 1);
	assert_true(
		pass_by(&rig, 1, "ip4 src=192.0.2.9 dst=203.0.113.1 tcp sport=9 dport=80", &out));
	assert_memory_equal(out.bytes + 14 + 16, "\x0a\x00\x00\x05", 4);
	assert_false(
		pass_by(&rig, 1, "ip4 src=192.0.2.9 dst=203.0.113.1 tcp sport=9 dport=81", &out));
	assert_true(
		pass_by(&rig, 1, "ip4 src=192.0.2.9 dst=203.0.113.1 tcp sport=9 dport=81", &out));
	assert_memory_equal(out.bytes + 14 + 16, "\x0a\x00\x00\x07", 4);
	refused(&rig, NAT("10.0.0.0/8", ", 'mappings': 64"), "mappings: stays as it is");
	refused(&rig, "{'outside': ['right'], 'inside': ['10.0.0.0/8'], 'pool': ['203.0.113.2']}",
		"pool: stays as it is");
	refused(&rig, NAT("10.0.0.0/8", ", 'block_log': '/tmp/x'"), "block_log: stays");
	rig_free(&rig);
}

#define BALANCER(backends) "{'services': [{'address': '198.51.100.1'}], 'backends': [" backends "]}"
#define BACKEND(n) "{'address': '10.0.0." n "', 'mac': '02:bb:00:00:00:0" n "'}"

// The last byte of the backend's MAC address.
static unsigned backend_of(struct rig *rig, unsigned sport)
{
	struct packet out;
	char text[100];

	snprintf(text, sizeof(text), "ip4 src=192.0.2.1 dst=198.51.100.1 udp sport=%u dport=80",
		sport);
	assert_true(pass_by(rig, 0, text, &out));
	return out.bytes[5];
}

static void flows_stay_with_their_backends(void **state)
{
	unsigned before[200], of_two = 0;
	struct rig rig;

	rig_make(&rig, &cv_nf_balancer, BALANCER(BACKEND("2") "," BACKEND("1")));
	for (unsigned i = 0; i < 200; i++)
		before[i] = backend_of(&rig, i + 1);
	// Twice, so that some flows are not seen in between; the order of backends is another.
	reconfigure(&rig, BALANCER(BACKEND("3") "," BACKEND("1") "," BACKEND("2")));
	reconfigure(&rig, BALANCER(BACKEND("1") "," BACKEND("4") "," BACKEND("2")));
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(backend_of(&rig, i + 1), before[i]);
	assert_int_equal(info_of(&rig, "backends", "10.0.0.1", "flows") +
				 info_of(&rig, "backends", "10.0.0.2", "flows"),
		200);
	reconfigure(&rig, BALANCER(BACKEND("1") "," BACKEND("4")));
	for (unsigned i = 0; i < 200; i++) {
		const unsigned now = backend_of(&rig, i + 1);

		of_two += before[i] == 2;
		assert_true(before[i] == 2 ? now != 2 : now == before[i]);
	}
	assert_true(of_two > 0);
	assert_int_equal(info_of(&rig, "backends", "10.0.0.1", "flows") +
				 info_of(&rig, "backends", "10.0.0.4", "flows"),
		200);
	// The service is gone: its packets pass, and nobody counts them.
	reconfigure(&rig,
		"{'services': [{'address': '198.51.100.2'}], 'backends': [" BACKEND("1") "]}");
	for (unsigned i = 0; i < 200; i++)
		backend_of(&rig, i + 1);
	assert_int_equal(info_of(&rig, "backends", "10.0.0.1", "flows"), 0);
	rig_free(&rig);
}

static unsigned passed_of(struct rig *rig, const char *text, unsigned n)
{
	unsigned passed = 0;

	for (unsigned i = 0; i < n; i++)
		passed += pass(rig, text);
	return passed;
}

// Whoever has used up its burst does not get another by a new rate.
static void meters_are_as_full_as_they_were(void **state)
{
	static const char *const per[] = {"all", "host", "flow"};

	for (unsigned i = 0; i < RTE_DIM(per); i++) {
		const char *packet = "ip4 src=10.0.0.1 dst=10.0.0.2 udp sport=1 dport=2";
		struct rig rig;
		char config[200];

		snprintf(config, sizeof(config),
			"{'cir_pps': 1, 'cbs_packets': 10, 'ebs_packets': 1, 'per': '%s'}", per[i]);
		rig_make(&rig, &cv_nf_policer, config);
		assert_int_equal(passed_of(&rig, packet, 20), 11);
		snprintf(config, sizeof(config),
			"{'cir_pps': 2, 'cbs_packets': 20, 'ebs_packets': 1, 'per': '%s'}", per[i]);
		reconfigure(&rig, config);
		assert_int_equal(passed_of(&rig, packet, 20), 0);
		assert_int_equal(info_of(&rig, NULL, NULL, "entries"), i > 0);
		// Bytes, not packets: the meter begins anew.
		snprintf(config, sizeof(config),
			"{'cir_bps': 8, 'cbs_bytes': 84, 'ebs_bytes': 1, 'per': '%s'}", per[i]);
		reconfigure(&rig, config);
		assert_int_equal(passed_of(&rig, packet, 20), 3); // of 28 bytes
		if (i == 2)
			refused(&rig, "{'cir_pps': 1, 'per': 'flow', 'entries': 64}",
				"entries: 64: stays 65536");
		rig_free(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_of_unchanged_rules_go_on),
		cmocka_unit_test(a_classifier_counts_on),
		cmocka_unit_test(a_firewall_ends_what_it_denies),
		cmocka_unit_test(a_connection_goes_on),
		cmocka_unit_test(a_bridge_knows_who_is_where),
		cmocka_unit_test(a_router_knows_its_neighbours),
		cmocka_unit_test(a_router_gives_back_what_waits),
		cmocka_unit_test(nat_keeps_its_mappings),
		cmocka_unit_test(flows_stay_with_their_backends),
		cmocka_unit_test(meters_are_as_full_as_they_were),
	};

	packet_eal("test_reconfigured");
	pool = rte_pktmbuf_pool_create(
		"packets", 511, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	assert_non_null(pool);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
