// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as packets, through every function. Each packet lies in memory of its own exact size,
// so that a read or write outside of it is found; and what a function promises of verdicts, views
// and headers is checked.
//
// Input: for each packet, 1 byte: the port that it came in by; 1 byte: its length; then its bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "chain/nf.h"
#include "packet/ipv4.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PORTS 3
#define FUNCTIONS 5

static const struct {
	const char *type, *config;
} configured[FUNCTIONS] = {
	{"firewall", "{\"default\": \"deny\", \"non_ip\": \"drop\", \"rules\": ["
		     "{\"action\": \"deny\", \"proto\": \"tcp\", \"dport\": 23},"
		     "{\"action\": \"allow\", \"proto\": \"udp\", \"sport\": \"1-1000\"},"
		     "{\"action\": \"allow\", \"src\": \"2001:db8::/32\"},"
		     "{\"action\": \"allow\", \"src\": \"192.0.0.0/8\"}]}"},
	{"router",
		"{\"routes\": [{\"prefix\": \"0.0.0.0/1\", \"via\": \"10.0.0.1\", \"dev\": \"a\"},"
		"{\"prefix\": \"192.0.0.0/8\", \"via\": \"10.0.0.1\", \"dev\": \"b\"},"
		"{\"prefix\": \"198.51.100.128/25\", \"dev\": \"c\"},"
		"{\"prefix\": \"2001:db8::/32\", \"via\": \"2001:db8::1\", \"dev\": \"c\"},"
		"{\"prefix\": \"2001:db8:1::/64\", \"dev\": \"a\"}],"
		"\"neighbours\": [{\"address\": \"10.0.0.1\", \"mac\": \"02:00:00:00:00:01\"},"
		"{\"address\": \"2001:db8::1\", \"mac\": \"02:00:00:00:00:02\"}]}"},
	{"l2fwd", "{\"mode\": \"rewrite\"}"},
	{"l2fwd", "{\"mode\": \"swap\"}"},
	{"bridge", "{\"sides\": [\"a\", \"b\"], \"entries\": 16}"},
};

static const struct cv_nf *nf[FUNCTIONS];
static void *instance[FUNCTIONS];

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const ports[] = {"a", "b", "c"};
	static const uint8_t macs[PORTS][6] = {{2, 1}, {2, 2}, {2, 3}};
	static const uint16_t mtus[PORTS] = {1500, 1500, 1500};
	const struct cv_nf_env env = {.name = "fuzzed",
		.workers = 1,
		.socket = -1,
		.ports = ports,
		.macs = macs,
		.mtus = mtus,
		.ports_count = PORTS};
	char *eal[] = {(*argv)[0], "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m",
		"256", "-l", "0", "--log-level=error", "--file-prefix=cv-fuzz"};
	struct cv_error error = {""};

	must(rte_eal_init(sizeof(eal) / sizeof(eal[0]), eal) >= 0, "the EAL starts");
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		json_t *config = json_loads(configured[i].config, 0, NULL);

		nf[i] = cv_nf_find(configured[i].type);
		must(nf[i] != NULL && config != NULL, configured[i].type);
		instance[i] = cv_nf_create(nf[i], config, &env, &error);
		must(instance[i] != NULL, error.text);
		cv_nf_start(nf[i], instance[i], &env);
		json_decref(config);
	}
	return 0;
}

// What a router forwards has a sound header, and one hop less to go than before.
static void check_routed(
	const struct cv_view *before, const uint8_t *bytes, const struct cv_view *v)
{
	const struct cv_ipv4 *was = (const struct cv_ipv4 *)(bytes + before->l3);
	const struct cv_ipv4 *is = (const struct cv_ipv4 *)(v->data + v->l3);

	must(!(v->data[0] & 1), "forwarded to a station");
	if (v->proto == CV_PROTO_IPV4) {
		must(cv_ipv4_check(is, v->len - v->l3) != 0, "forwarded with a sound header");
		must(is->ttl == was->ttl - 1, "TTL less by one");
	} else {
		must(v->proto == CV_PROTO_IPV6, "only IP is forwarded");
		must(v->data[v->l3 + 7] == bytes[before->l3 + 7] - 1, "hop limit less by one");
	}
	must(memcmp(bytes + 12, v->data + 12, v->l3 - 12) == 0, "tags stay");
}

static void run(unsigned function, struct cv_view *views, uint16_t n)
{
	uint8_t *before[CV_BURST_MAX], verdict[CV_BURST_MAX + 1];
	struct cv_view kept[CV_BURST_MAX];
	uint16_t dropped = 0, returned;

	for (uint16_t i = 0; i < n; i++) {
		kept[i] = views[i];
		before[i] = malloc(views[i].len + !views[i].len);
		memcpy(before[i], views[i].data, views[i].len);
	}
	verdict[n] = 0xa5;
	returned = nf[function]->process(
		instance[function], &(struct cv_nf_worker){.index = 0}, views, verdict, n);
	must(verdict[n] == 0xa5, "no verdict behind the last");
	for (uint16_t i = 0; i < n; i++) {
		unsigned drops = 0;

		while (nf[function]->drops[drops] != NULL)
			drops++;
		must(verdict[i] <= drops, "verdicts have names");
		must(views[i].data == kept[i].data && views[i].len == kept[i].len &&
				views[i].l3 == kept[i].l3 && views[i].proto == kept[i].proto &&
				views[i].in == kept[i].in,
			"only out of a view changes");
		must(views[i].out < PORTS, "out is a port");
		if (verdict[i] == CV_NEXT && strcmp(nf[function]->name, "router") == 0)
			check_routed(&kept[i], before[i], &views[i]);
		dropped += verdict[i] != CV_NEXT;
		free(before[i]);
	}
	must(returned == dropped, "as many drops as it says");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (unsigned function = 0; function < FUNCTIONS; function++) {
		struct cv_view views[CV_BURST_MAX];
		const uint8_t *at = data;
		size_t left = size;
		uint16_t n = 0;

		while (left >= 2 && n < CV_BURST_MAX) {
			uint16_t len = at[1] < left - 2 ? at[1] : (uint16_t)(left - 2);
			uint8_t *exact = malloc(len + !len);

			memcpy(exact, at + 2, len);
			views[n].in = at[0] % PORTS;
			views[n].out = (views[n].in + 1) % PORTS;
			cv_view_set(&views[n++], exact, len);
			at += 2 + len;
			left -= 2u + len;
		}
		run(function, views, n);
		while (n > 0)
			free(views[--n].data);
	}
	return 0;
}
