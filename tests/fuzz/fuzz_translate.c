// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Sequences of packets through nat, balancer and policer behind one look-up, as a node has them: a pool of
// few ports, backends in tunnels whose health is asked for, a meter for each flow. Whatever comes: what
// came in and was made is what left, was dropped or absorbed, buffers come back, and when time has passed
// nothing is left of any flow: no mapping, no port, no meter, no backend's flow.
//
// Input: operations, each a byte of which the low two bits say what it is; bit 2 is the port:
//   0 a packet: a byte of length, its bytes      1 a packet made of two bytes (see make_packet())
//   2 the answer to the last that left           3 time passes, a byte of tenths of a second
#include <rte_cycles.h>

#include "flow/path.h"
#include "packet/ipv4.h"
#include "tests/fuzz/function_fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUNCTIONS 3
#define PACKET_MAX 256
#define AGES 100000 // ticks in which all flows must have ended

static const char *const types[FUNCTIONS] = {"policer", "balancer", "nat"};
static const char *const configs[FUNCTIONS] = {
	"{\"per\": \"flow\", \"cir_pps\": 10, \"entries\": 64}",
	"{\"mode\": \"gue\", \"source\": \"10.0.1.1\", \"source_ipv6\": \"2001:db8::1\","
	" \"mtu\": 576, \"table_size\": 251, \"health\": {\"by\": \"tcp\", \"port\": 80},"
	" \"services\": [{\"address\": \"203.0.113.10\"}, {\"address\": \"2001:db8::10\"}],"
	" \"backends\": [{\"address\": \"10.0.1.2\"}, {\"address\": \"2001:db8::2\"},"
	" {\"address\": \"10.0.1.3\", \"drain\": true}]}",
	"{\"outside\": [\"out\"], \"inside\": [\"10.0.0.0/24\"], \"pool\": [\"203.0.113.1\"],"
	" \"ports\": \"1024-1151\", \"block_size\": 64, \"block_rest_s\": 0, \"mappings\": 64,"
	" \"filtering\": \"address-dependent\", \"forwards\": [{\"proto\": \"tcp\","
	" \"external\": \"203.0.113.1\", \"port\": 80, \"to\": \"10.0.0.3\"}]}",
};

static uint64_t now; // in place of the time that the path takes from the processor

static uint16_t process(void *group, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	worker->now = now;
	return cv_flow_process(group, worker, views, verdicts, n);
}

static void tick(void *group, struct cv_nf_worker *worker)
{
	worker->now = now;
	cv_flow_tick(group, worker);
}

static const struct cv_nf path_nf = {.process = process, .tick = tick};
static struct cv_flow_member members[FUNCTIONS];
static struct cv_nf_counters counters[FUNCTIONS];
static struct cv_flow_zone *zone;
static struct rte_mempool *pool;
static struct function_rig rig;

static void make_function(unsigned i)
{
	static const char *const ports[] = {"in", "out"};
	static const uint8_t macs[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	static const uint16_t mtus[] = {1500, 1500};
	const struct cv_nf_env env = {.name = types[i],
		.workers = 1,
		.socket = SOCKET_ID_ANY,
		.ports = ports,
		.ports_count = 2,
		.macs = macs,
		.mtus = mtus};
	json_t *config = json_loads(configs[i], 0, NULL);
	struct cv_error error = {""};

	must(config != NULL, "the configuration is JSON");
	members[i].nf = cv_nf_find(types[i]);
	members[i].instance = cv_nf_create(members[i].nf, config, &env, &error);
	must(members[i].instance != NULL, error.text);
	cv_nf_start(members[i].nf, members[i].instance, &env);
	json_decref(config);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct cv_flow_limits limits = {
		.max = 64, .max_ipv6 = 64, .timeouts_s = {2, 6, 1, 1, 3, 1, 6, 1}};
	static const uint8_t order[FUNCTIONS] = {0, 1, 2};
	struct cv_nf_counters *of[FUNCTIONS] = {&counters[0], &counters[1], &counters[2]};
	struct cv_error error = {""};

	pool = fuzz_begin((*argv)[0], "translate");
	for (unsigned i = 0; i < FUNCTIONS; i++)
		make_function(i);
	zone = cv_flow_zone_create(members, FUNCTIONS, &limits, rte_get_tsc_hz(), &error);
	must(zone != NULL, error.text);
	rig_begin(&rig, &path_nf, cv_flow_group_create(zone, order, of), pool);
	now = 1000 * rte_get_tsc_hz();
	return 0;
}

// A packet of few addresses, ports and kinds, so that sequences meet the same flows. Nothing here looks at
// checksums.
static uint16_t make_packet(uint8_t *bytes, uint8_t a, uint8_t b)
{
	static const uint8_t addresses[8][4] = {{10, 0, 0, 2}, {10, 0, 0, 3}, {198, 51, 100, 1},
		{198, 51, 100, 2}, {203, 0, 113, 1}, {203, 0, 113, 10}, {10, 0, 1, 1},
		{10, 0, 1, 2}};
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, 50};
	const uint8_t proto = protos[a >> 6];
	uint8_t *ip = bytes + 14, *l4 = ip + 20;

	memset(bytes, 0, 14 + 20 + 20);
	bytes[12] = 0x08;
	ip[0] = 0x45;
	ip[3] = 40;
	ip[6] = b >> 7 ? 0x20 : 0; // a first fragment
	ip[8] = 64;
	ip[9] = proto;
	memcpy(ip + 12, addresses[a & 7], 4);
	memcpy(ip + 16, addresses[a >> 3 & 7], 4);
	l4[0] = 4;
	l4[1] = b & 3;
	l4[3] = (uint8_t)(80 + (b >> 2 & 3));
	l4[13] = (uint8_t)("\x02\x12\x11\x14"[b >> 4 & 3]);
	if (proto == IPPROTO_ICMP) {
		l4[0] = b & 8 ? 8 : 0;
		l4[1] = 0;
	}
	return 14 + 40;
}

// What left last, with source and destination exchanged.
static uint16_t make_answer(uint8_t *bytes)
{
	const struct rig_out *out = &rig.out[(rig.outs + RIG_OUT_MAX - 1) % RIG_OUT_MAX];
	const uint16_t len = RTE_MIN(out->len, (uint16_t)PACKET_MAX);

	memcpy(bytes, out->bytes, len);
	if (len < 14 + 28 || bytes[12] != 0x08 || bytes[14] != 0x45)
		return len;
	memcpy(bytes + 26, out->bytes + 30, 4);
	memcpy(bytes + 30, out->bytes + 26, 4);
	memcpy(bytes + 34, out->bytes + 36, 2);
	memcpy(bytes + 36, out->bytes + 34, 2);
	if (bytes[23] == IPPROTO_ICMP)
		memcpy(bytes + 34, "\0\0", 2);
	return len;
}

static long number(unsigned function, const char *key)
{
	json_t *info = members[function].nf->info(members[function].instance);
	const json_t *value = json_object_get(info, key);
	long sum = 0;
	size_t i;
	json_t *one;

	if (json_is_array(value)) // of backends
		json_array_foreach (value, i, one)
			sum += (long)json_integer_value(json_object_get(one, "flows"));
	else if (json_is_object(value))
		sum = (long)json_integer_value(json_object_get(value, "used"));
	else
		sum = (long)json_integer_value(value);
	json_decref(info);
	return sum;
}

static void let_all_end(void)
{
	const struct cv_flow_counters *flows = cv_flow_zone_counters(zone);
	unsigned i = 0;

	while (flows->flows_ipv4 + flows->flows_ipv6 > 0) {
		must(i++ < AGES, "flows end");
		now += rte_get_tsc_hz() / 10;
		rig_tick(&rig);
	}
	must(number(0, "entries") == 0, "meters come back");
	must(number(1, "backends") == 0, "backends have no flows");
	must(number(2, "mappings") == 0, "mappings end");
	must(number(2, "blocks") == 0, "ports come back");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[PACKET_MAX];

	for (size_t i = 0; i < size;) {
		const uint8_t what = data[i++];
		uint16_t len = 0;

		if ((what & 3) == 3) {
			now += (i < size ? data[i++] : 1) * (rte_get_tsc_hz() / 10);
			rig_tick(&rig);
			continue;
		}
		if ((what & 3) == 0 && i < size) {
			len = (uint16_t)RTE_MIN((size_t)data[i], size - i - 1);
			memcpy(bytes, data + i + 1, len);
			i += 1u + len;
		} else if ((what & 3) == 1 && i + 1 < size) {
			len = make_packet(bytes, data[i], data[i + 1]);
			i += 2;
		} else if ((what & 3) == 2 && rig.outs > 0) {
			len = make_answer(bytes);
		}
		if (len > 0)
			must(rig_receive(&rig, what >> 2 & 1, bytes, len), "there is a buffer");
	}
	let_all_end();
	must(rig_conserved(&rig), "packets are conserved");
	must(rte_mempool_in_use_count(pool) == 0, "buffers come back");
	return 0;
}
