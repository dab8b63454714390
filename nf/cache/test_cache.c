// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The function cache in a path of its own: port 1 (right) is outside, queries come in by port 0.
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "packet/udp.h"
#include "tests/support/function_rig.h"
#include "tests/support/test_dns.h"

extern const struct cv_nf cv_nf_cache;

#define CLIENT "ip4 src=10.0.0.1 dst=192.0.2.53 udp sport=4000 dport=53"
#define SERVER "ip4 src=192.0.2.53 dst=10.0.0.1 udp sport=53 dport=4000"
#define CLIENT6 "ip6 src=2001:db8::1 dst=2001:db8::53 udp sport=4000 dport=53"
#define SERVER6 "ip6 src=2001:db8::53 dst=2001:db8::1 udp sport=53 dport=4000"
#define QUERY "id=1234 q=www.example.com/1"
#define ANSWER "id=1234 flags=8180 q=www.example.com/1 an=@c/1/300/c0000201"

static struct rte_mempool *pool;
static struct function_rig rig;
static void *cache;
static uint64_t shift; // of time

static uint16_t later(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	uint16_t others;

	worker->now =
		UINT64_C(1000) * rte_get_tsc_hz() + shift; // so that no second passes by itself
	others = cv_nf_cache.process(instance, worker, view, verdict, n);
	return others;
}

static void begin_with(const char *config)
{
	cache = packet_nf(&cv_nf_cache, config, NULL);
	rig_begin(&rig, &cv_nf_cache, cache, pool);
	rig.step.process = later;
	shift = 0;
}

static void begin(void)
{
	begin_with("{'outside': ['right'], 'memory_mb': 8}");
}

static void end(void)
{
	assert_true(rig_conserved(&rig));
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	cv_nf_destroy(&cv_nf_cache, cache);
}

static void pass_time(double seconds)
{
	shift += (uint64_t)(seconds * (double)rte_get_tsc_hz());
}

static json_int_t known(const char *key)
{
	json_t *info = cv_nf_cache.info(cache);
	json_t *refused = json_object_get(json_object_get(info, "refused"), key);
	const json_t *value = refused != NULL ? refused : json_object_get(info, key);
	json_int_t number;

	assert_non_null(value);
	number = json_integer_value(value);
	json_decref(info);
	return number;
}

// A message comes in by a port. Returns what left because of it.
static const struct rig_out *receive(unsigned port, const char *headers, const char *message)
{
	const struct dns dns = dns_make(message);
	const struct packet packet = dns_packet(headers, &dns);
	const unsigned outs = rig.outs;

	assert_true(rig_receive(&rig, port, packet.bytes, packet.len));
	assert_int_equal(rig.outs, outs + 1);
	return &rig.out[outs % RIG_OUT_MAX];
}

// It goes on as it came.
static void passes(const char *name, unsigned port, const char *headers, const char *message)
{
	const struct dns dns = dns_make(message);
	const struct packet packet = dns_packet(headers, &dns);
	const struct rig_out *out = receive(port, headers, message);

	if (out->port != port + 1)
		fail_msg("%s: left by port %u", name, out->port);
	if (out->len != packet.len || memcmp(out->bytes, packet.bytes, packet.len) != 0)
		fail_msg("%s: is not as it came", name);
}

// A query is answered: by the port that it came in by, with this message, byte for byte.
static void answered(const char *name, const char *headers, const char *query, const char *back,
	const char *message)
{
	const struct dns dns = dns_make(message);
	const struct packet want = dns_packet(back, &dns);
	const struct rig_out *out = receive(0, headers, query);

	if (out->port != 0)
		fail_msg("%s: left by port %u", name, out->port);
	if (out->len != want.len)
		fail_msg("%s: %u bytes, not %u", name, out->len, want.len);
	for (unsigned i = 0; i < want.len; i++)
		if (out->bytes[i] != want.bytes[i])
			fail_msg("%s: byte %u is %02x, not %02x", name, i, out->bytes[i],
				want.bytes[i]);
}

// What comes back: MACs change places, and IPv4 packets are not fragmented.
#define BACK_MACS "dst=02:00:00:00:00:01 src=02:00:00:00:00:02 "
#define BACK BACK_MACS "ip4 df=1 src=192.0.2.53 dst=10.0.0.1 udp sport=53 dport=4000"
#define BACK6 BACK_MACS SERVER6

static void learn(const char *client, const char *query, const char *server, const char *answer)
{
	passes("query", 0, client, query);
	passes("answer", 1, server, answer);
}

static void answers_what_it_saw(void **state)
{
	begin();
	learn(CLIENT, QUERY, SERVER, ANSWER);
	answered("the same", CLIENT, QUERY, BACK, ANSWER);
	answered("id and case are the asker's", CLIENT, "id=beef q=wWw.eXAMPLE.cOm/1", BACK,
		"id=beef flags=8180 q=wWw.eXAMPLE.cOm/1 an=@c/1/300/c0000201");
	answered("somebody else", "ip4 src=10.0.0.9 dst=192.0.2.53 udp sport=9 dport=53", QUERY,
		BACK_MACS "ip4 df=1 src=192.0.2.53 dst=10.0.0.9 udp sport=53 dport=9", ANSWER);
	answered("with EDNS it is another question", CLIENT, QUERY, BACK, ANSWER);
	passes("with EDNS", 0, CLIENT, QUERY " opt=1232/0");
	passes("another server", 0, "ip4 src=10.0.0.1 dst=192.0.2.54 udp sport=4000 dport=53",
		QUERY);
	passes("another name", 0, CLIENT, "id=1 q=www.example.org/1");
	passes("a longer name", 0, CLIENT, "id=1 q=a.www.example.com/1");
	passes("another type", 0, CLIENT, "id=1 q=www.example.com/28");
	passes("not recursive", 0, CLIENT, "id=1 flags=0000 q=www.example.com/1");
	passes("AD", 0, CLIENT, "id=1 flags=0120 q=www.example.com/1");
	passes("CD", 0, CLIENT, "id=1 flags=0110 q=www.example.com/1");
	passes("another VLAN", 0, "vlan id=5 " CLIENT, QUERY);
	passes("to a group", 0, "dst=01:00:5e:00:00:01 " CLIENT, QUERY);
	passes("over IPv6", 0, CLIENT6, QUERY);
	passes("from outside", 1, CLIENT, QUERY);
	passes("another port", 0, "ip4 src=10.0.0.1 dst=192.0.2.53 udp sport=4000 dport=54", QUERY);
	passes("fragmented", 0, "ip4 mf=1 src=10.0.0.1 dst=192.0.2.53 udp sport=4000 dport=53",
		QUERY);
	passes("with IP options", 0,
		"ip4 opt=01010101 src=10.0.0.1 dst=192.0.2.53 udp sport=4000 dport=53", QUERY);
	assert_int_equal(known("hits"), 4);
	assert_int_equal(known("learned"), 1);
	assert_int_equal(known("entries"), 1);
	end();
}

static void each_question_its_answer(void **state)
{
	static const struct {
		const char *client, *server, *back, *query, *answer;
	} rows[] = {
		{CLIENT, SERVER, BACK, QUERY, ANSWER},
		{CLIENT6, SERVER6, BACK6, QUERY, ANSWER},
		{"vlan id=5 " CLIENT, "vlan id=5 " SERVER,
			BACK_MACS "vlan id=5 ip4 df=1 src=192.0.2.53 dst=10.0.0.1 udp sport=53 "
				  "dport=4000",
			QUERY, "id=1234 flags=8180 q=www.example.com/1 an=@c/1/300/c0000202"},
		{"qinq id=5 vlan id=6 " CLIENT6, "qinq id=5 vlan id=6 " SERVER6,
			BACK_MACS "qinq id=5 vlan id=6 " SERVER6, QUERY,
			"id=1234 flags=8180 q=www.example.com/1 an=@c/1/300/c0000203"},
		{CLIENT, SERVER, BACK, "id=5 q=www.example.com/1 opt=1232/8000",
			"id=5 flags=81a0 q=www.example.com/1 an=@c/1/300/c0000201 "
			"an=@c/46/300/0001 opt=1232/8000"},
		{CLIENT, SERVER, BACK, "id=5 q=www.example.com/1 opt=1232/0",
			"id=5 flags=8180 q=www.example.com/1 an=@c/1/300/c0000201 opt=1232/0"},
		{CLIENT, SERVER, BACK, "id=5 flags=0110 q=www.example.com/1",
			"id=5 flags=8190 q=www.example.com/1 an=@c/1/300/c0000204"},
		{CLIENT, SERVER, BACK, "id=6 q=nothing.example.com/1",
			"id=6 flags=8183 q=nothing.example.com/1 "
			"ns=@14/6/60/c014c014000000010000000200000003000000040000003c"},
		{CLIENT, SERVER, BACK, "id=7 q=./2",
			"id=7 flags=8580 q=./2 an=./2/100/016100 ar=a/1/200/c0000201"},
	};

	begin();
	for (size_t i = 0; i < RTE_DIM(rows); i++)
		learn(rows[i].client, rows[i].query, rows[i].server, rows[i].answer);
	assert_int_equal(known("learned"), RTE_DIM(rows));
	for (size_t i = 0; i < RTE_DIM(rows); i++)
		answered(rows[i].answer, rows[i].client, rows[i].query, rows[i].back,
			rows[i].answer);
	end();
}

static void ttls_count_down(void **state)
{
	begin_with("{'outside': ['right'], 'memory_mb': 8, 'max_ttl_s': 100}");
	learn(CLIENT, QUERY, SERVER,
		"id=1234 flags=8180 q=www.example.com/1 an=@c/1/300/c0000201 ns=@10/2/50/c010 "
		"ar=a@10/28/65536/00");
	pass_time(0.9);
	answered("at once", CLIENT, QUERY, BACK,
		"id=1234 flags=8180 q=www.example.com/1 an=@c/1/300/c0000201 ns=@10/2/50/c010 "
		"ar=a@10/28/65536/00");
	pass_time(48.2);
	answered("after 49 s", CLIENT, QUERY, BACK,
		"id=1234 flags=8180 q=www.example.com/1 an=@c/1/251/c0000201 ns=@10/2/1/c010 "
		"ar=a@10/28/65487/00");
	pass_time(0.9);
	passes("after 50 s", 0, CLIENT, QUERY);
	assert_int_equal(known("expired"), 1);
	assert_int_equal(known("entries"), 0);

	// That there is nothing holds for the SOA's minimum, and its TTL says so.
	learn(CLIENT, "id=8 q=no.example.com/1", SERVER,
		"id=8 flags=8183 q=no.example.com/1 "
		"ns=@f/6/600/c00fc00f000000010000000200000003000000040000003c");
	pass_time(1.01);
	answered("negative", CLIENT, "id=8 q=no.example.com/1", BACK,
		"id=8 flags=8183 q=no.example.com/1 "
		"ns=@f/6/59/c00fc00f000000010000000200000003000000040000003c");

	// No longer than max_ttl_s, whose TTLs are as they are.
	learn(CLIENT, "id=8 q=long/1", SERVER, "id=8 flags=8180 q=long/1 an=@c/1/5000/01020304");
	pass_time(99.1);
	answered("long", CLIENT, "id=8 q=long/1", BACK,
		"id=8 flags=8180 q=long/1 an=@c/1/4901/01020304");
	pass_time(1);
	passes("too long", 0, CLIENT, "id=8 q=long/1");
	end();
}

static void learns_only_what_was_asked(void **state)
{
	static const struct {
		const char *name, *headers, *answer, *why;
		unsigned port;
	} rows[] = {
		{"another id", SERVER, "id=1235 flags=8180 q=www.example.com/1 an=@c/1/300/00",
			"unasked", 1},
		{"another case", SERVER, "id=1234 flags=8180 q=Www.example.com/1 an=@c/1/300/00",
			"unasked", 1},
		{"another name", SERVER, "id=1234 flags=8180 q=www.example.org/1 an=@c/1/300/00",
			"unasked", 1},
		{"another type", SERVER, "id=1234 flags=8180 q=www.example.com/28 an=@c/28/300/00",
			"unasked", 1},
		{"another server", "ip4 src=192.0.2.54 dst=10.0.0.1 udp sport=53 dport=4000",
			ANSWER, "unasked", 1},
		{"another client", "ip4 src=192.0.2.53 dst=10.0.0.2 udp sport=53 dport=4000",
			ANSWER, "unasked", 1},
		{"another port", "ip4 src=192.0.2.53 dst=10.0.0.1 udp sport=53 dport=4001", ANSWER,
			"unasked", 1},
		{"another VLAN", "vlan id=7 " SERVER, ANSWER, "unasked", 1},
		{"over IPv6", SERVER6, ANSWER, "unasked", 1},
		{"no question", SERVER, "id=1234 flags=8180", "malformed", 1},
		{"a query", SERVER, QUERY, "malformed", 1},
		{"another class", SERVER, "id=1234 flags=8180 q=www.example.com/1/3", "malformed",
			1},
		{"from a client", SERVER, ANSWER, NULL, 0},
		{"not from port 53", "ip4 src=192.0.2.53 dst=10.0.0.1 udp sport=54 dport=4000",
			ANSWER, NULL, 1},
	};

	begin();
	passes("query", 0, CLIENT, QUERY);
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const json_int_t before = rows[i].why != NULL ? known(rows[i].why) : 0;

		passes(rows[i].name, rows[i].port, rows[i].headers, rows[i].answer);
		if (known("learned") != 0)
			fail_msg("%s: was learned", rows[i].name);
		if (rows[i].why != NULL && known(rows[i].why) != before + 1)
			fail_msg("%s: was not refused as %s", rows[i].name, rows[i].why);
	}
	passes("the answer", 1, SERVER, ANSWER);
	assert_int_equal(known("learned"), 1);
	passes("another answer to the same", 1, SERVER,
		"id=1234 flags=8180 q=www.example.com/1 an=@c/1/300/0a000001");
	assert_int_equal(known("learned"), 1);
	answered("the first holds", CLIENT, QUERY, BACK, ANSWER);
	passes("what was answered here was not asked there", 1, SERVER,
		"id=1234 flags=8180 q=www.example.com/1 an=@c/1/300/0a000001");
	assert_int_equal(known("learned"), 1);
	end();
}

static void refuses_answers(void **state)
{
	static const struct {
		const char *answer, *why;
	} rows[] = {
		{"flags=8380 q=www.example.com/1 an=@c/1/300/c0000201", "truncated"},
		{"flags=8182 q=www.example.com/1", "bad_rcode"},
		{"flags=8183 q=www.example.com/1", "no_soa"},
		{"flags=8180 q=www.example.com/1", "no_soa"},
		{"flags=8180 q=www.example.com/1 an=@c/1/0/c0000201", "no_ttl"},
		{"flags=8180 q=www.example.com/1 an=@c/1/300/c0000201 opt=1232/0/00030000",
			"option"},
		{"flags=8180 q=www.example.com/1 an=@20/1/300/c0000201", "malformed"},
		{"flags=8180 q=www.example.com/1 an=@c/1/300/c0000201 hex=00", "malformed"},
	};
	struct dns dns = dns_make("id=1234 flags=8180 q=www.example.com/1 an=@c/16/9/00");
	struct packet packet;

	begin();
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const json_int_t before = known(rows[i].why);
		char answer[256];

		snprintf(answer, sizeof(answer), "id=1234 %s", rows[i].answer);
		learn(CLIENT, "id=1234 q=www.example.com/1 opt=1232/0", SERVER, answer);
		if (known(rows[i].why) != before + 1)
			fail_msg("%s: was not refused as %s", rows[i].answer, rows[i].why);
	}
	passes("query", 0, CLIENT, QUERY);
	dns.len = 1233;
	packet = dns_packet(SERVER, &dns);
	rig_receive(&rig, 1, packet.bytes, packet.len);
	assert_int_equal(known("too_long"), 1);

	// One bit is wrong; or nobody can tell.
	passes("query", 0, CLIENT, QUERY);
	dns = dns_make(ANSWER);
	packet = dns_packet(SERVER, &dns);
	packet.bytes[packet.len - 1] ^= 1;
	rig_receive(&rig, 1, packet.bytes, packet.len);
	assert_int_equal(known("bad_checksum"), 1);
	packet = dns_packet(SERVER, &dns);
	memset(packet.bytes + 14 + 20 + 6, 0, 2);
	rig_receive(&rig, 1, packet.bytes, packet.len);
	assert_int_equal(known("bad_checksum"), 2);
	assert_int_equal(known("learned"), 0);

	// Too late.
	passes("query", 0, CLIENT, QUERY);
	pass_time(11);
	passes("answer", 1, SERVER, ANSWER);
	assert_int_equal(known("unasked"), 1);
	assert_int_equal(known("entries"), 0);
	end();
}

static void queries_of_other_kinds_pass(void **state)
{
	static const char *const rows[] = {
		QUERY " opt=1232/0/000a00080102030405060708",
		QUERY " opt=1232/0/0008000700011800c00002",
		"id=1234 flags=8100 q=www.example.com/1",
		"id=1234 flags=2800 q=www.example.com/1",
		"id=1234 q=www.example.com/255",
		"id=1234 q=www.example.com/1/3",
		QUERY " ar=key/250/0/00/255",
	};
	struct dns dns = dns_make(QUERY);
	struct packet packet = dns_packet(CLIENT, &dns);

	begin();
	learn(CLIENT, QUERY, SERVER, ANSWER);
	for (size_t i = 0; i < RTE_DIM(rows); i++)
		passes(rows[i], 0, CLIENT, rows[i]);
	assert_int_equal(known("others"), RTE_DIM(rows));
	assert_int_equal(known("hits"), 0);
	packet.bytes[packet.len - 3] ^= 0x20; // a bit is wrong
	rig_receive(&rig, 0, packet.bytes, packet.len);
	assert_int_equal(known("hits"), 0);
	packet = dns_packet(CLIENT, &dns);
	memset(packet.bytes + 14 + 20 + 6, 0, 2); // no checksum, which IPv4 allows
	rig_receive(&rig, 0, packet.bytes, packet.len);
	assert_int_equal(known("hits"), 1);
	end();
}

// Who takes fewer bytes than the answer has asks the server.
static void long_answers(void **state)
{
	char answer[2048] = "id=1234 flags=8180 q=www.example.com/16 opt=1232/0", *at;

	at = answer + strlen(answer);
	at += sprintf(at, " an=@c/16/300/");
	for (unsigned i = 0; i < 600; i++)
		at += sprintf(at, "%02x", i & 255);
	memmove(strstr(answer, " opt"), strstr(answer, " an"), strlen(strstr(answer, " an")) + 1);
	strcat(answer, " opt=1232/0");
	begin();
	learn(CLIENT, "id=1234 q=www.example.com/16 opt=1232/0", SERVER, answer);
	answered("enough", CLIENT, "id=1234 q=www.example.com/16 opt=700/0", BACK, answer);
	passes("fewer", 0, CLIENT, "id=1234 q=www.example.com/16 opt=600/0");
	end();
}

// More than there is room for: what is evicted is asked anew, and memory stays as it is.
static void memory_is_bounded(void **state)
{
	json_int_t entries;

	begin();
	for (unsigned i = 0; i < 60000; i++) {
		char query[64], answer[128];

		snprintf(query, sizeof(query), "id=%x q=h%u.example.com/1", i & 0xffff, i);
		snprintf(answer, sizeof(answer),
			"id=%x flags=8180 q=h%u.example.com/1 an=@c/1/300/%08x", i & 0xffff, i, i);
		learn(CLIENT, query, SERVER, answer);
		if (i > 100 && i % 100 == 0) // who is asked for stays
			answered("popular", CLIENT, "id=1 q=h7.example.com/1", BACK,
				"id=1 flags=8180 q=h7.example.com/1 an=@c/1/300/00000007");
	}
	entries = known("entries");
	assert_int_equal(known("learned"), 60000);
	assert_int_equal(known("evicted"), 60000 - entries);
	assert_true(entries > 20000 && entries < 40000);
	end();
}

// In a convoy, too: those that are answered are gone from it, their neighbours stay.
static void within_a_burst(void **state)
{
	enum { N = 64 };
	struct rte_mbuf *mbufs[N];
	struct cv_burst burst;
	unsigned back = 0, on = 0;

	begin();
	learn(CLIENT, QUERY, SERVER, ANSWER);
	rig.outs = 0;
	for (unsigned i = 0; i < N; i++) {
		const struct dns dns = dns_make(i % 2 == 0 ? QUERY : "id=9 q=other/1");
		const struct packet packet = dns_packet(CLIENT, &dns);

		mbufs[i] = rte_pktmbuf_alloc(pool);
		memcpy(rte_pktmbuf_append(mbufs[i], packet.len), packet.bytes, packet.len);
	}
	cv_burst_load(&burst, mbufs, N, 0, 1, &rig.ports[0]);
	rig.received += burst.n;
	cv_path_run(&rig.path, &rig.worker, &burst);
	assert_int_equal(rig.outs, N);
	for (unsigned i = 0; i < N; i++) {
		back += rig.out[i].port == 0;
		on += rig.out[i].port == 1;
	}
	assert_int_equal(back, N / 2);
	assert_int_equal(on, N / 2);
	rig.outs += 2; // the first two packets', for the conservation check
	end();
}

// Packets that share a buffer, as those of a convoy do: each by itself.
static void within_a_convoy(void **state)
{
	static const char *const messages[] = {
		"id=9 q=other/1", QUERY, "id=9 q=third/1", QUERY, QUERY, "id=9 q=fourth/1"};
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	struct cv_burst burst = {.n = RTE_DIM(messages),
		.buffers = {.n = 1, .buffers = {mbuf}, .views = {RTE_DIM(messages)}}};
	static const unsigned passing[] = {0, 2, 5};
	unsigned back = 0, on = 0;

	begin();
	learn(CLIENT, QUERY, SERVER, ANSWER);
	for (unsigned i = 0; i < RTE_DIM(messages); i++) {
		const struct dns dns = dns_make(messages[i]);
		const struct packet packet = dns_packet(CLIENT, &dns);
		uint8_t *at =
			(uint8_t *)rte_pktmbuf_append(mbuf, CV_CONVOY_PREFIX_LEN + packet.len);

		packet_put16(at, packet.len);
		memcpy(at + CV_CONVOY_PREFIX_LEN, packet.bytes, packet.len);
		burst.views[i] = (struct cv_view){.in = 0, .out = 1};
		cv_view_set(&burst.views[i], at + CV_CONVOY_PREFIX_LEN, packet.len);
	}
	cv_burst_measure(&burst);
	rig.received += burst.n;
	cv_path_run(&rig.path, &rig.worker, &burst);
	for (unsigned i = 2; i < rig.outs; i++) {
		const bool answer = rig.out[i].port == 0;
		const struct dns dns = dns_make(answer ? ANSWER : messages[passing[on]]);
		const struct packet want = dns_packet(answer ? BACK : CLIENT, &dns);

		assert_int_equal(rig.out[i].len, want.len);
		assert_memory_equal(rig.out[i].bytes, want.bytes, want.len);
		back += answer;
		on += !answer;
	}
	assert_int_equal(back, 3);
	assert_int_equal(on, 3);
	end();
}

static void goes_on_with_what_it_knows(void **state)
{
	static const struct {
		const char *config;
		bool knows;
	} rows[] = {
		{"{'outside': ['right'], 'memory_mb': 8, 'max_ttl_s': 5}", true},
		{"{'outside': ['right', 'third'], 'memory_mb': 8}", false},
		{"{'outside': ['right'], 'memory_mb': 9}", false},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		void *next;

		begin();
		learn(CLIENT, QUERY, SERVER, ANSWER);
		next = packet_nf_instead(&cv_nf_cache, rows[i].config, cache, NULL);
		cv_nf_destroy(&cv_nf_cache, cache);
		rig.step.instance = cache = next;
		if (rows[i].knows)
			answered(rows[i].config, CLIENT, QUERY, BACK, ANSWER);
		else
			passes(rows[i].config, 0, CLIENT, QUERY);
		end();
	}
}

static void refuses_configurations(void **state)
{
	packet_refused(&cv_nf_cache, "{}", "outside: is missing");
	packet_refused(&cv_nf_cache, "{'outside': []}", "outside: ");
	packet_refused(&cv_nf_cache, "{'outside': ['x']}",
		"outside[0]: no port is called \"x\"; the ports are left, right");
	packet_refused(&cv_nf_cache, "{'outside': [1]}", "outside[0]: 1: must be the name");
	packet_refused(&cv_nf_cache, "{'outside': ['right'], 'port': 0}", "from 1 to 65535");
	packet_refused(&cv_nf_cache, "{'outside': ['right'], 'memory_mb': 7}", "from 8 to 65536");
	packet_refused(
		&cv_nf_cache, "{'outside': ['right'], 'max_ttl_s': 604801}", "from 1 to 604800");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_what_it_saw),
		cmocka_unit_test(each_question_its_answer),
		cmocka_unit_test(ttls_count_down),
		cmocka_unit_test(learns_only_what_was_asked),
		cmocka_unit_test(refuses_answers),
		cmocka_unit_test(queries_of_other_kinds_pass),
		cmocka_unit_test(long_answers),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(within_a_burst),
		cmocka_unit_test(within_a_convoy),
		cmocka_unit_test(goes_on_with_what_it_knows),
		cmocka_unit_test(refuses_configurations),
	};

	(void)argc;
	packet_eal(argv[0]);
	pool = rte_pktmbuf_pool_create("cache", 511, 0, 0, 4096, SOCKET_ID_ANY);
	assert_non_null(pool);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
