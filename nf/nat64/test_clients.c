// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Clients: their table against a plain model, and their packets byte by byte.
#include "nf/nat64/test_net.h"

#include "nf/nat64/clients.h"

#define FIRST 0x64400000u // 100.64.0.0
#define IDLE 1000
#define HOSTS 40
#define STEPS 20000

// The prefix has 16 addresses; a host is known by its number.
struct model {
	uint64_t host[16], seen[16];
	unsigned count;
};

static uint32_t model_find(const struct model *model, uint64_t host)
{
	for (uint32_t i = 0; i < model->count; i++)
		if (model->host[i] == host)
			return i;
	return UINT32_MAX;
}

static void check_all(const struct cv_nat64_clients *clients, const struct model *model)
{
	struct cv_nat64_ipv6 ipv6;
	uint32_t ipv4;

	for (uint64_t host = 0; host < HOSTS; host++) {
		const uint32_t at = model_find(model, host);

		assert_int_equal(at != UINT32_MAX,
			cv_nat64_clients_to_ipv4(
				clients, (struct cv_nat64_ipv6){.high = 9, .low = host}, &ipv4));
		if (at != UINT32_MAX)
			assert_int_equal(ipv4, FIRST + at);
	}
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(
			i < model->count, cv_nat64_clients_to_ipv6(clients, FIRST + i, &ipv6));
		if (i < model->count)
			assert_true(ipv6.high == 9 && ipv6.low == model->host[i]);
	}
	assert_int_equal(cv_nat64_clients_count(clients), model->count);
}

// Takes an address in both, and compares.
static void take(struct cv_nat64_clients *clients, struct model *model, uint64_t host, uint64_t now)
{
	const uint32_t known = model_find(model, host);
	bool idle = false;
	uint32_t ipv4, at;
	bool taken = cv_nat64_clients_take(
		clients, (struct cv_nat64_ipv6){.high = 9, .low = host}, now, &ipv4);

	for (unsigned i = 0; i < model->count; i++)
		idle |= now - model->seen[i] > IDLE;
	assert_int_equal(taken, known != UINT32_MAX || model->count < 16 || idle);
	if (!taken)
		return;
	at = ipv4 - FIRST;
	if (known != UINT32_MAX)
		assert_int_equal(at, known);
	else if (model->count < 16)
		assert_int_equal(at, model->count++);
	else
		assert_true(at < 16 && now - model->seen[at] > IDLE);
	model->host[at] = host;
	model->seen[at] = now;
}

static void as_the_model(void **state)
{
	struct cv_nat64_clients *clients = cv_nat64_clients_create(FIRST, 28, IDLE);
	struct model model = {.count = 0};
	uint32_t random = 1;
	uint64_t now = 0;
	unsigned refused = 0;

	assert_non_null(clients);
	for (unsigned step = 0; step < STEPS; step++) {
		const unsigned before = model.count;

		random = random * 1664525 + 1013904223;
		now += random >> 8 & 127;
		if ((random >> 28) < 4 && model.count > 0) {
			const uint32_t at = (random >> 16) % model.count;

			cv_nat64_clients_touch(clients, FIRST + at, now);
			model.seen[at] = now;
			continue;
		}
		take(clients, &model, (random >> 16) % HOSTS, now);
		refused += before == 16 && model_find(&model, (random >> 16) % HOSTS) == UINT32_MAX;
		check_all(clients, &model);
	}
	assert_true(refused > 0);
	cv_nat64_clients_release(clients);
}

#define CLIENTS                                                                 \
	"{'prefix': '2001:db8:64::/96', 'eam': [{'ipv4': '192.0.2.1', 'ipv6': " \
	"'2001:db8::1'}], 'hosts': ['198.51.100.0/24'], 'clients': '100.64.0.0/30', " SOURCES "}"

static void step(void *nf, const char *in, const char *out)
{
	const struct packet packet = whole(in);

	translate(nf, &packet);
	if (strncmp(out, "ip", 2) != 0) {
		if (rig.outs != 0 || strcmp(dropped_as(), out) != 0)
			fail_msg("%s: %u left, %s, not %s", in, rig.outs, dropped_as(), out);
	} else {
		const struct packet want = whole(out);

		if (rig.outs != 1)
			fail_msg("%s: %u left, %s", in, rig.outs, dropped_as());
		same(in, &rig.out[0], &want);
	}
}

#define TO6 " dst=2001:db8:64::808:808 "

static void packets(void **state)
{
	static const char *const steps[][2] = {
		// Nobody has an address before he sends.
		{"ip4 src=8.8.8.8 dst=100.64.0.0 udp", "bad_address"},
		{"ip6 src=2001:db8::a" TO6 "udp dport=53 data=9",
			"ip4 src=100.64.0.0 dst=8.8.8.8 ttl=63 id=1 udp dport=53 data=9"},
		{"ip4 src=8.8.8.8 dst=100.64.0.0 udp sport=53 data=9",
			"ip6 src=2001:db8:64::808:808 dst=2001:db8::a hop=63 udp sport=53 data=9"},
		{"ip6 src=2001:db8::b" TO6 "tcp data=8",
			"ip4 src=100.64.0.1 dst=8.8.8.8 ttl=63 id=2 tcp data=8"},
		{"ip6 src=2001:db8::a" TO6 "icmp6 kind=128 data=7",
			"ip4 src=100.64.0.0 dst=8.8.8.8 ttl=63 id=3 icmp kind=8 data=7"},
		{"ip4 src=8.8.8.8 dst=100.64.0.1 icmp kind=0 data=6",
			"ip6 src=2001:db8:64::808:808 dst=2001:db8::b hop=63 icmp6 kind=129 "
			"data=6"},
		// A row has an address, and takes none.
		{"ip6 src=2001:db8::1" TO6 "udp", "ip4 src=192.0.2.1 dst=8.8.8.8 ttl=63 id=4 udp"},
		{"ip6 src=2001:db8::d" TO6 "udp", "ip4 src=100.64.0.2 dst=8.8.8.8 ttl=63 id=5 udp"},
		{"ip6 src=2001:db8::e" TO6 "udp", "ip4 src=100.64.0.3 dst=8.8.8.8 ttl=63 id=6 udp"},
		{"ip6 src=2001:db8::f" TO6 "udp", "no_address"},
		{"ip6 src=2001:db8::b" TO6 "udp", "ip4 src=100.64.0.1 dst=8.8.8.8 ttl=63 id=7 udp"},
		{"ip6 src=fe80::1" TO6 "udp", "bad_address"},
		// An IPv4 host does not come from here; a host of the prefix does.
		{"ip6 src=2001:db8:64::6440:0" TO6 "udp", "bad_address"},
		{"ip6 src=2001:db8:64::c000:201" TO6 "udp", "bad_address"},
		{"ip6 src=2001:db8:64::c633:6407" TO6 "udp",
			"ip4 src=198.51.100.7 dst=8.8.8.8 ttl=63 id=8 udp"},
		// What goes to no prefix is not translated.
		{"ip6 src=2001:db8::a dst=2001:db8::b udp",
			"ip6 src=2001:db8::a dst=2001:db8::b udp"},
	};
	struct cv_nf_env env = *packet_env();
	struct cv_error error = {""};
	char text[] = CLIENTS;
	json_t *json;
	void *nf;

	for (char *c = text; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	json = json_loads(text, 0, NULL);
	assert_null(cv_nf_create(&cv_nf_nat64, json, &env, &error));
	assert_non_null(strstr(error.text, "give its chains one worker"));
	env.workers = 1;
	nf = cv_nf_create(&cv_nf_nat64, json, &env, &error);
	assert_non_null(nf);
	json_decref(json);
	cv_nf_start(&cv_nf_nat64, nf, &env);
	for (size_t i = 0; i < RTE_DIM(steps); i++)
		step(nf, steps[i][0], steps[i][1]);
	cv_nf_destroy(&cv_nf_nat64, nf);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_model),
		cmocka_unit_test(packets),
	};

	return nat64_tests(argv[0], tests, RTE_DIM(tests));
}
