// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "tests/support/test_packets.h"

#include <unistd.h>

#include "flow/handover.h"
#include "flow/path.h"
#include "flow/restore.h"
#include "flow/zone.h"

extern const struct cv_nf cv_nf_balancer;

static const struct cv_nf *const nf = &cv_nf_balancer;

// A balancer alone in a flow path.
struct rig {
	void *instance;
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
	struct cv_nf_counters counters, *list;
	struct cv_nf_worker worker;
};

static void rig_make(struct rig *rig, const char *config)
{
	static const struct cv_flow_limits limits = {
		.max = 4096, .max_ipv6 = 4096, .timeouts_s = {10, 10, 10, 10, 10, 10, 10, 10}};
	struct cv_flow_member member = {.nf = nf};
	struct cv_error error = {""};

	memset(rig, 0, sizeof(*rig));
	rig->instance = packet_nf_alone(nf, config);
	member.instance = rig->instance;
	rig->list = &rig->counters;
	rig->zone = cv_flow_zone_create(&member, 1, &limits, 1000000000, &error);
	assert_non_null(rig->zone);
	rig->group = cv_flow_group_create(rig->zone, (const uint8_t[]){0}, &rig->list);
}

static void rig_free(struct rig *rig)
{
	cv_flow_zone_destroy(rig->zone);
	cv_nf_destroy(nf, rig->instance);
}

// One packet through it. Returns whether it passed; its bytes and view are in out.
static bool pass(struct rig *rig, const char *text, struct packet *out, struct cv_view *view_out)
{
	struct packet_row row = {.in = text};
	struct cv_view view;
	uint8_t verdict;

	packet_views(&view, 1, &row, 1);
	cv_flow_process(rig->group, &rig->worker, &view, &verdict, 1);
	out->len = view.len;
	memcpy(out->bytes, view.data, view.len);
	if (view_out != NULL)
		*view_out = view;
	free(view.data);
	return verdict == CV_NEXT;
}

static void expect(struct rig *rig, const char *in, const char *want_text)
{
	struct packet is, want = packet_make(want_text);

	if (!pass(rig, in, &is, NULL))
		fail_msg("%s: dropped", in);
	if (is.len != want.len || memcmp(is.bytes, want.bytes, is.len) != 0)
		fail_msg("%s: is not %s", in, want_text);
}

#define DSR                                                                                     \
	"{'services': [{'address': '198.51.100.1'}, {'address': '2001:db8::2'}], 'backends': [" \
	"{'address': '10.0.0.1', 'mac': '02:bb:00:00:00:01'},"                                  \
	"{'address': '10.0.0.2', 'mac': '02:bb:00:00:00:02'},"                                  \
	"{'address': '10.0.0.3', 'mac': '02:bb:00:00:00:03', 'dev': 'third'}]}"
#define DSR_TURNED                                                             \
	"{'services': [{'address': '198.51.100.1'}], 'backends': ["            \
	"{'address': '10.0.0.3', 'mac': '02:bb:00:00:00:03', 'dev': 'third'}," \
	"{'address': '10.0.0.1', 'mac': '02:bb:00:00:00:01'},"                 \
	"{'address': '10.0.0.2', 'mac': '02:bb:00:00:00:02'}]}"

static void dsr_writes_addresses_of_ethernet_alone(void **state)
{
	struct rig rig, turned;
	unsigned count[4] = {0};

	rig_make(&rig, DSR);
	rig_make(&turned, DSR_TURNED);
	for (unsigned i = 0; i < 3000; i++) {
		struct packet first, again, other, want;
		struct cv_view view;
		char text[128];
		unsigned backend;

		snprintf(text, sizeof(text), "%s sport=%u dport=80 data=9",
			i % 3 == 0   ? "vlan id=9 ip4 udp"
			: i % 3 == 1 ? "ip6 udp"
				     : "ip4 opt=01010101 tcp",
			i);
		assert_true(pass(&rig, text, &first, &view));
		backend = first.bytes[5];
		assert_in_range(backend, 1, 3);
		count[backend]++;
		want = packet_make(text);
		memcpy(want.bytes, (const uint8_t[]){2, 0xbb, 0, 0, 0, (uint8_t)backend}, 6);
		if (backend == 3) // its port's
			memcpy(want.bytes + 6, (const uint8_t[]){2, 0xaa, 0, 0, 0, 2}, 6);
		assert_int_equal(view.out, backend == 3 ? 2 : 1);
		assert_memory_equal(first.bytes, want.bytes, want.len);
		assert_true(pass(&rig, text, &again, NULL));
		assert_memory_equal(first.bytes, again.bytes, first.len);
		if (i % 3 == 1)
			continue;
		// The same choice by another balancer, with the backends in another order.
		assert_true(pass(&turned, text, &other, NULL));
		assert_memory_equal(first.bytes, other.bytes, first.len);
	}
	for (unsigned i = 1; i <= 3; i++)
		assert_in_range(count[i], 850, 1150);
	expect(&rig, "ip4 dst=198.51.100.2 udp", "ip4 dst=198.51.100.2 udp");
	expect(&rig, "type=0806 data=28", "type=0806 data=28");
	rig_free(&rig);
	rig_free(&turned);
}

// Flows of one burst are asked about together: each has the backend that it has alone.
static void flows_that_begin_together(void **state)
{
	enum { FLOWS = 40 };
	struct cv_view views[FLOWS];
	struct rig together, alone;
	uint8_t verdicts[FLOWS];
	struct packet_row rows[FLOWS];
	char texts[FLOWS][96];

	rig_make(&together, DSR);
	rig_make(&alone, DSR);
	for (unsigned i = 0; i < FLOWS; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%s %s sport=%u dport=80 data=9",
			i % 3 == 0 ? "ip6" : "ip4", i % 9 == 1 ? "dst=198.51.100.9 udp" : "udp", i);
		rows[i] = (struct packet_row){.in = texts[i]};
	}
	packet_views(views, FLOWS, rows, FLOWS);
	assert_int_equal(
		cv_flow_process(together.group, &together.worker, views, verdicts, FLOWS), 0);
	for (unsigned i = 0; i < FLOWS; i++) {
		struct packet one;

		assert_true(pass(&alone, texts[i], &one, NULL));
		assert_int_equal(one.len, views[i].len);
		assert_memory_equal(one.bytes, views[i].data, one.len);
		free(views[i].data);
	}
	rig_free(&together);
	rig_free(&alone);
}

static void nat_rewrites_both_ways(void **state)
{
	struct rig rig;
	struct packet packet;

	rig_make(&rig,
		"{'mode': 'nat', 'services': [{'address': '198.51.100.1', 'proto': 'udp', 'port': "
		"53}, {'address': '2001:db8::2', 'proto': 'udp', 'port': 53}], 'backends': ["
		"{'address': '10.0.0.1', 'port': 5353}, {'address': '2001:db8:9::1', 'port': "
		"5353}]}");
	expect(&rig, "ip4 udp sport=9 dport=53 data=4",
		"ip4 dst=10.0.0.1 udp sport=9 dport=5353 data=4");
	expect(&rig, "ip4 src=10.0.0.1 dst=192.0.2.1 udp sport=5353 dport=9 data=5",
		"ip4 src=198.51.100.1 dst=192.0.2.1 udp sport=53 dport=9 data=5");
	expect(&rig, "vlan ip6 udp sport=9 dport=53 data=4",
		"vlan ip6 dst=2001:db8:9::1 udp sport=9 dport=5353 data=4");
	expect(&rig, "ip6 src=2001:db8:9::1 dst=2001:db8::1 udp sport=5353 dport=9 data=4",
		"ip6 src=2001:db8::2 dst=2001:db8::1 udp sport=53 dport=9 data=4");
	// Other ports and protocols are no service.
	expect(&rig, "ip4 udp sport=9 dport=54", "ip4 udp sport=9 dport=54");
	expect(&rig, "ip4 tcp sport=9 dport=53", "ip4 tcp sport=9 dport=53");
	assert_false(pass(&rig, "ip4 cut=33", &packet, NULL));
	assert_int_equal(rig.counters.drops[packet_verdict(nf, "bad_header") - 1], 1);
	rig_free(&rig);
}

static unsigned to(struct rig *rig, const char *what, unsigned sport)
{
	struct packet packet;
	char text[160];

	snprintf(text, sizeof(text), what, sport);
	assert_true(pass(rig, text, &packet, NULL));
	return packet.bytes[5];
}

#define DRAIN(drains)                                                               \
	"{'services': [{'address': '198.51.100.1'}], 'backends': ["                 \
	"{'address': '10.0.0.1', 'mac': '02:bb:00:00:00:01'},"                      \
	"{'address': '10.0.0.2', 'mac': '02:bb:00:00:00:02', 'drain': " drains "}," \
	"{'address': '10.0.0.3', 'mac': '02:bb:00:00:00:03', 'weight': 0}]}"

// New flows go elsewhere; connections that began before the node was started anew go on.
static void who_drains_keeps_what_it_has(void **state)
{
	static const char syn[] = "ip4 proto=6 hex=%04x005000000000000000005002000000000000";
	static const char ack[] = "ip4 proto=6 hex=%04x005000000000000000005010000000000000";
	struct rig before, after;
	unsigned kept = 0;
	json_t *info, *list;

	rig_make(&before, DRAIN("false"));
	rig_make(&after, DRAIN("true"));
	for (unsigned i = 1; i < 500; i++) {
		const unsigned backend = to(&before, syn, i);

		assert_in_range(backend, 1, 2);
		assert_int_equal(to(&after, ack, i), backend);
		kept += backend == 2;
		assert_int_equal(to(&after, syn, 1000 + i), 1);
		assert_int_equal(to(&after, "ip4 udp sport=%u dport=80", i), 1);
	}
	assert_in_range(kept, 200, 300);
	info = nf->info(after.instance);
	list = json_object_get(info, "backends");
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(list, 1), "flows")), kept);
	assert_true(json_is_true(json_object_get(json_array_get(list, 1), "drain")));
	assert_true(json_real_value(json_object_get(json_array_get(list, 0), "share")) == 1);
	json_decref(info);
	for (unsigned i = 0; i < 2000; i++) { // until all have timed out
		after.worker.now += 1000000000 / 10;
		cv_flow_tick(after.group, &after.worker);
	}
	info = nf->info(after.instance);
	list = json_object_get(info, "backends");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "flows")), 0);
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(list, 1), "created")), kept);
	json_decref(info);
	rig_free(&before);
	rig_free(&after);
}

// "Fragmentation needed" about an answer goes to the backend that sent it.
static void errors_reach_the_backend(void **state)
{
	struct rig rig;
	struct packet flow, error;

	rig_make(&rig, DSR);
	for (unsigned sport = 1; sport < 50; sport++) {
		char text[256];

		snprintf(text, sizeof(text), "ip4 udp sport=%u dport=80", sport);
		assert_true(pass(&rig, text, &flow, NULL));
		snprintf(text, sizeof(text),
			"ip4 src=203.0.113.9 icmp kind=3 code=4 "
			"hex=4500001c0000000040110000c6336401c00002010050%04x00080000",
			sport);
		assert_true(pass(&rig, text, &error, NULL));
		assert_memory_equal(error.bytes, flow.bytes, 6);
	}
	rig_free(&rig);
}

static void no_backend_of_the_family_takes_new_flows(void **state)
{
	struct rig rig;
	struct packet packet;

	rig_make(&rig, "{'mode': 'nat', 'services': [{'address': '198.51.100.1'}, {'address': "
		       "'2001:db8::2'}], 'backends': [{'address': '10.0.0.1'}, {'address': "
		       "'2001:db8:9::1', 'weight': 0}]}");
	expect(&rig, "ip4 proto=50 data=30", "ip4 dst=10.0.0.1 proto=50 data=30");
	assert_false(pass(&rig, "ip6 udp", &packet, NULL));
	assert_int_equal(rig.counters.drops[packet_verdict(nf, "no_backend") - 1], 1);
	rig_free(&rig);
}

#define ONE "'services': [{'address': '192.0.2.1'}]"

static void refuses_what_makes_no_sense(void **state)
{
	packet_refused(nf, "{}", "services: is missing");
	packet_refused(nf, "{" ONE ", 'mode': 'nat', 'backends': []}", "give 1 to 4096");
	packet_refused(nf, "{" ONE ", 'backends': [{'address': '10.0.0.1'}]}",
		"backends[0]: mac is missing; mode dsr needs it");
	packet_refused(nf,
		"{" ONE ", 'mode': 'nat', 'backends': [{'address': '10.0.0.1'}, {'address': "
		"'10.0.0.2'}, {'address': '10.0.0.1'}]}",
		"backends[2]: 10.0.0.1 is backends[0] as well; remove one");
	packet_refused(nf, "{" ONE ", 'mode': 'nat', 'backends': [{'address': '192.0.2.1'}]}",
		"services[0]: 192.0.2.1 is backends[0] as well");
	packet_refused(nf,
		"{" ONE ", 'mode': 'nat', 'backends': [{'address': '10.0.0.1', 'weight': 0}, "
		"{'address': '10.0.0.2', 'drain': true}]}",
		"backends: each has weight 0 or drain");
	packet_refused(nf, "{" ONE ", 'mode': 'nat', 'backends': [{'address': '2001:db8::1'}]}",
		"services[0]: no backend is IPv4 as 192.0.2.1 is");
	packet_refused(nf,
		"{" ONE ", 'mode': 'nat', 'backends': [{'address': '10.0.0.1', 'port': 80}]}",
		"services[0]: has no port, and backends[0] has");
	packet_refused(nf,
		"{" ONE ", 'table_size': 65536, 'mode': 'nat', 'backends': [{'address': "
		"'10.0.0.1'}]}",
		"table_size: 65536: is no prime; use 65537 or 655373");
	packet_refused(nf,
		"{" ONE ", 'mode': 'nat', 'backends': [{'address': '10.0.0.1', 'dev': 'up'}]}",
		"backends[0]: dev: no port is called \"up\"");
	packet_refused(nf,
		"{'services': [{'address': '192.0.2.1', 'port': 80}], 'backends': [{'address': "
		"'10.0.0.1'}]}",
		"services[0]: port: needs proto");
	packet_refused(nf,
		"{'services': [{'address': '192.0.2.1'}, {'address': '192.0.2.1'}], 'mode': 'nat', "
		"'backends': [{'address': '10.0.0.1'}]}",
		"services[1]: 192.0.2.1 is services[0] as well");
	packet_refused(nf, "{'services': [{'address': '192.0.2'}]}",
		"services[0]: address: \"192.0.2\": must be an IPv4 or IPv6 address");
}

#define TO_ONE ", 'backends': [{'address': '10.0.0.1'}]"
#define PROBED(text) \
	"{" ONE ", 'mode': 'nat'" TO_ONE ", 'source': '192.0.2.9', 'health': {" text "}}"

static void refuses_tunnels_and_probes_that_make_no_sense(void **state)
{
	packet_refused(nf, "{" ONE ", 'mode': 'ipip'" TO_ONE "}",
		"source: is missing, and backends[0] is 10.0.0.1; add an address of the node");
	packet_refused(nf,
		"{" ONE ", 'mode': 'gue', 'source': '192.0.2.9', 'backends': [{'address': "
		"'2001:db8::1'}]}",
		"source_ipv6: is missing, and backends[0] is 2001:db8::1");
	packet_refused(nf, "{" ONE ", 'mode': 'ipip', 'source': '2001:db8::9'" TO_ONE "}",
		"source: \"2001:db8::9\": must be an IPv4 address");
	packet_refused(nf, "{" ONE ", 'mode': 'ipip', 'source_ipv6': '192.0.2.9'" TO_ONE "}",
		"source_ipv6: \"192.0.2.9\": must be an IPv6 address");
	packet_refused(nf, "{" ONE ", 'mode': 'nat', 'source': '192.0.2.9'" TO_ONE "}",
		"source: is for modes ipip and gue, and for health; remove it");
	packet_refused(nf, "{" ONE ", 'mode': 'nat', 'mtu': 1400" TO_ONE "}",
		"mtu: is for modes ipip and gue; remove it");
	packet_refused(nf,
		"{" ONE ", 'mode': 'gue', 'gue_port': 0, 'source': '192.0.2.9'" TO_ONE "}",
		"gue_port: 0: must be a whole number from 1 to 65535");
	packet_refused(nf,
		"{" ONE ", 'mode': 'ipip', 'source': '192.0.2.9', 'backends': [{'address': "
		"'10.0.0.1', 'port': 80}]}",
		"backends[0]: port: 80: is for mode nat; remove it");
	packet_refused(nf, PROBED(""), "health: by: is missing");
	packet_refused(
		nf, PROBED("'by': 'arp'"), "health: by: \"arp\": must be one of: link icmp tcp");
	packet_refused(
		nf, PROBED("'by': 'icmp', 'port': 80"), "health: port: is for tcp; remove it");
	packet_refused(nf, PROBED("'by': 'tcp'"), "health: port is missing; tcp needs it");
	packet_refused(
		nf, PROBED("'by': 'link'"), "backends[0]: mac is missing; health by link needs it");
	packet_refused(nf,
		"{" ONE
		", 'source': '192.0.2.9', 'health': {'by': 'link'}, 'backends': [{'address': "
		"'10.0.0.1', 'mac': '02:00:00:00:00:01'}]}",
		"backends[0]: dev is missing; health needs the port");
	packet_refused(nf, PROBED("'by': 'icmp', 'interval_ms': 10"),
		"health: interval_ms: 10: must be a whole number from 50 to 3600000");
	packet_refused(
		nf, PROBED("'by': 'icmp', 'fall': 0"), "health: fall: 0: must be a whole number");
	packet_refused(nf, PROBED("'by': 'icmp', 'timeout': 3"), "health: timeout: unknown");
	packet_refused(nf, "{" ONE ", 'mode': 'nat'" TO_ONE ", 'health': {'by': 'icmp'}}",
		"source: is missing");
	packet_refused(nf, "{" ONE ", 'mode': 'nat'" TO_ONE ", 'health': 'icmp'}", "health: ");
}

#define CARRIED_BEFORE                                              \
	"{'services': [{'address': '198.51.100.1'}], 'backends': [" \
	"{'address': '10.0.0.1', 'mac': '02:bb:00:00:00:01'},"      \
	"{'address': '10.0.0.2', 'mac': '02:bb:00:00:00:02'}]}"
#define CARRIED_AFTER                                                         \
	"{'services': [{'address': '198.51.100.1'}], 'backends': ["           \
	"{'address': '10.0.0.9', 'mac': '02:bb:00:00:00:09'},"                \
	"{'address': '10.0.0.2', 'mac': '02:bb:00:00:00:02', 'drain': true}," \
	"{'address': '10.0.0.1', 'mac': '02:bb:00:00:00:01', 'drain': true}]}"

static void send_flow(struct rig *rig, unsigned port, struct packet *out)
{
	char text[96];

	snprintf(text, sizeof(text), "ip4 src=192.0.2.1 dst=198.51.100.1 udp sport=%u", port);
	assert_true(pass(rig, text, out, NULL));
}

// What all backends of an instance say of a number.
static unsigned sum(const struct rig *rig, const char *what)
{
	json_t *info = nf->info(rig->instance), *backend;
	unsigned all = 0;
	size_t i;

	json_array_foreach (json_object_get(info, "backends"), i, backend)
		all += (unsigned)json_integer_value(json_object_get(backend, what));
	json_decref(info);
	return all;
}

// As to another process: flows stay with their backends, whatever their places and weights are there.
static void flows_go_along_to_another_instance(void **state)
{
	const struct cv_flow_kept *kept = nf->flow->kept;
	struct packet before[16], after;
	struct cv_error error = {""};
	struct rig old, new;

	rig_make(&old, CARRIED_BEFORE);
	rig_make(&new, CARRIED_AFTER);
	if (cv_flow_zone_stays(old.zone) != NULL)
		skip(); // this kernel makes no large pages of files
	assert_true(kept->layout(old.instance) == kept->layout(new.instance));
	assert_int_equal(kept->take(new.instance, dup(kept->give(old.instance)), &error), 0);
	for (unsigned i = 0; i < 16; i++)
		send_flow(&old, 5000 + i, &before[i]);
	assert_int_equal(cv_flow_zone_take(new.zone, dup(cv_flow_zone_give(old.zone)), &error), 0);
	kept->freeze(old.instance);
	cv_flow_zone_freeze(old.zone);
	assert_int_equal(kept->taken(new.instance, &error), 0);
	assert_int_equal(cv_flow_zone_taken(new.zone, &error), 0);
	cv_flow_zone_adopt(new.zone);
	rig_free(&old);
	assert_int_equal(sum(&new, "flows"), 16);
	assert_int_equal(sum(&new, "created"), 16);
	for (unsigned i = 0; i < 16; i++) {
		send_flow(&new, 5000 + i, &after);
		assert_memory_equal(after.bytes, before[i].bytes, after.len);
	}
	send_flow(&new, 6000, &after); // one that begins now goes to who does not drain
	assert_int_equal(after.bytes[5], 9);
	assert_int_equal(sum(&new, "flows"), 17);
	rig_free(&new);
}

// A file that another process wrote.
static void what_did_not_come_whole_is_refused(void **state)
{
	static const uint64_t counts[] = {0, 3, 8194, UINT64_MAX};
	const struct cv_flow_kept *kept = nf->flow->kept;

	for (unsigned i = 0; i < RTE_DIM(counts); i++) {
		struct cv_error error = {""};
		struct rig old, new;
		int file;

		rig_make(&old, CARRIED_BEFORE);
		rig_make(&new, CARRIED_BEFORE);
		file = kept->give(old.instance);
		kept->freeze(old.instance);
		assert_int_equal(kept->take(new.instance, dup(file), &error), 0);
		if (i == 1)
			assert_int_equal(ftruncate(file, 60), 0);
		else
			assert_int_equal(pwrite(file, &counts[i], 8, 0), 8);
		assert_true(kept->taken(new.instance, &error) < 0);
		assert_non_null(strstr(error.text, "did not come whole"));
		rig_free(&new);
		rig_free(&old);
	}
}

#define NATS                                                                       \
	"{'mode': 'nat', 'services': [{'address': '198.51.100.1'}], 'backends': [" \
	"{'address': '10.0.0.1'}, {'address': '10.0.0.2'}, {'address': "           \
	"'10.0.0.3'}]}"

// Another process, after that of the old one was killed.
static struct cv_flow_restored restart(struct rig *old, struct rig *new, const char *config)
{
	const struct cv_flow_kept *kept = nf->flow->kept;
	struct cv_flow_restored restored = {0, 0};
	struct cv_error error = {""};

	rig_make(new, config);
	if (kept->restore_begin(new->instance, kept->store(old->instance), &error) == 0 &&
		cv_flow_zone_restore(new->zone, &new->worker, cv_flow_zone_store(old->zone),
			CV_FLOW_KEPT, &restored, &error) != 0)
		fail_msg("%s", error.text);
	kept->restore_end(new->instance, &new->worker);
	return restored;
}

static bool stores(const struct rig *rig)
{
	return cv_flow_zone_store(rig->zone) >= 0; // else this kernel makes no large pages of files
}

static void flows_stay_with_their_backends_after_a_kill(void **state)
{
	static const char *const configs[][2] = {{CARRIED_BEFORE, CARRIED_AFTER}, {NATS, NATS}};

	for (unsigned c = 0; c < RTE_DIM(configs); c++) {
		struct packet before[16], after;
		struct rig old, new;

		rig_make(&old, configs[c][0]);
		if (!stores(&old))
			skip();
		for (unsigned i = 0; i < 16; i++)
			send_flow(&old, 5000 + i, &before[i]);
		assert_int_equal(restart(&old, &new, configs[c][1]).flows, 16);
		rig_free(&old);
		assert_int_equal(sum(&new, "flows"), 16);
		assert_int_equal(sum(&new, "created"), 0);
		for (unsigned i = 0; i < 16; i++) {
			send_flow(&new, 5000 + i, &after);
			assert_memory_equal(after.bytes, before[i].bytes, after.len);
		}
		assert_int_equal(sum(&new, "created"), 0);
		rig_free(&new);
	}
}

// Whatever the file says, flows go to backends that there are, and are counted.
static void any_bytes_lead_to_backends_that_there_are(void **state)
{
	srandom(5);
	for (unsigned i = 0; i < 100; i++) {
		struct packet packet;
		struct rig old, new;
		uint8_t bytes[512];

		rig_make(&old, NATS);
		if (!stores(&old))
			skip();
		for (unsigned j = 0; j < 16; j++)
			send_flow(&old, 5000 + j, &packet);
		for (unsigned j = 0; j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)(random() % (i % 2 ? 256 : 3));
		assert_true(pwrite(nf->flow->kept->store(old.instance), bytes + i % 2 * 8, 200 + i,
				    i % 4 * 8) > 0);
		for (unsigned j = 0; j < 16; j++) // 2 bytes of slots
			*(uint16_t *)cv_flow_slot(old.zone, false, j, 0) =
				(uint16_t)random() % (i % 3 ? 65536 : 5);
		restart(&old, &new, NATS);
		for (unsigned j = 0; j < 32; j++)
			send_flow(&new, 4990 + j, &packet);
		assert_in_range(sum(&new, "flows"), 1, 64);
		rig_free(&new);
		rig_free(&old);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_bytes_lead_to_backends_that_there_are),
		cmocka_unit_test(flows_stay_with_their_backends_after_a_kill),
		cmocka_unit_test(flows_go_along_to_another_instance),
		cmocka_unit_test(what_did_not_come_whole_is_refused),
		cmocka_unit_test(dsr_writes_addresses_of_ethernet_alone),
		cmocka_unit_test(flows_that_begin_together),
		cmocka_unit_test(nat_rewrites_both_ways),
		cmocka_unit_test(who_drains_keeps_what_it_has),
		cmocka_unit_test(errors_reach_the_backend),
		cmocka_unit_test(no_backend_of_the_family_takes_new_flows),
		cmocka_unit_test(refuses_what_makes_no_sense),
		cmocka_unit_test(refuses_tunnels_and_probes_that_make_no_sense),
	};

	packet_eal(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
