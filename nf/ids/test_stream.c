// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// TCP as streams, in the flow path: however a connection's bytes are cut, mixed and repeated, rules
// see them as their receiver would.
#include "tests/support/test_flow.h"

#include "flow/path.h"
#include "nf/ids/ids.h"
#include "tests/support/test_dir.h"

extern const struct cv_nf cv_nf_ids;

#define HZ 1000000000u
#define FORWARD 0
#define REPLY 1

static const struct cv_flow_limits limits = {
	.max = 256, .max_ipv6 = 64, .timeouts_s = {240, 7440, 240, 120, 300, 60, 600, 5}};
static char folder[] = "/tmp/convoy-ids-XXXXXX";

struct net {
	struct cv_ids *ids;
	struct cv_flow_zone *zone;
	struct cv_flow_group *group;
	struct cv_nf_counters counters;
	struct cv_nf_worker worker;
	uint16_t sport; // of the connection that is used
	uint32_t ack[2]; // what segments of each direction acknowledge
	bool bad_checksum; // of the next segment
};

static void begin(struct net *net, const char *rules, const char *more)
{
	struct cv_nf_counters *list = &net->counters;
	struct cv_flow_member member = {.nf = &cv_nf_ids};
	struct cv_error error = {""};
	char path[64], config[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/rules", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(rules, file);
	fclose(file);
	snprintf(config, sizeof(config),
		"{'rules_file': '%s', 'stateful': true, 'streams': 8, 'window': 512, 'segments': "
		"16%s}",
		path, more);
	*net = (struct net){.worker = {.now = 5ull * HZ}, .sport = 1000};
	net->ids = packet_nf(&cv_nf_ids, config, NULL);
	member.instance = net->ids;
	net->zone = cv_flow_zone_create(&member, 1, &limits, HZ, &error);
	assert_non_null(net->zone);
	net->group = cv_flow_group_create(net->zone, (const uint8_t[]){0}, &list);
	assert_non_null(net->group);
}

static void end(struct net *net)
{
	cv_flow_zone_destroy(net->zone);
	cv_nf_destroy(&cv_nf_ids, net->ids);
}

static const char *process(struct net *net, uint8_t *bytes, uint16_t len)
{
	uint64_t before[CV_DROPS_MAX];
	uint8_t verdict, *exact = malloc(len);
	struct cv_view view = {.out = 1};

	assert_non_null(exact);
	memcpy(exact, bytes, len);
	memcpy(before, net->counters.drops, sizeof(before));
	cv_view_set(&view, exact, len);
	cv_flow_process(net->group, &net->worker, &view, &verdict, 1);
	free(exact);
	for (unsigned i = 0; cv_nf_ids.drops[i] != NULL; i++)
		if (net->counters.drops[i] != before[i])
			return cv_nf_ids.drops[i];
	return verdict == CV_NEXT ? "next" : "?";
}

// A segment of the connection. Flags are "S", "SA", "F", "R" ...
static const char *send_bytes(struct net *net, unsigned way, uint32_t seq, const char *flags,
	const uint8_t *data, size_t len)
{
	char text[128];
	struct packet packet;
	uint8_t *tcp;
	const rte_be32_t number = rte_cpu_to_be_32(seq), ack = rte_cpu_to_be_32(net->ack[way]);

	if (way == FORWARD)
		snprintf(text, sizeof(text),
			"ip4 src=10.0.0.1 dst=198.51.100.7 len=%u tcp sport=%u dport=80",
			(unsigned)(40 + len), net->sport);
	else
		snprintf(text, sizeof(text),
			"ip4 src=198.51.100.7 dst=10.0.0.1 len=%u tcp sport=80 dport=%u",
			(unsigned)(40 + len), net->sport);
	packet = packet_make(text);
	assert_true(packet.len + len <= sizeof(packet.bytes));
	if (len > 0)
		memcpy(packet.bytes + packet.len, data, len);
	packet.len += (uint16_t)len;
	tcp = packet.bytes + 34;
	memcpy(tcp + 4, &number, 4);
	memcpy(tcp + 8, &ack, 4);
	tcp[13] = strcmp(flags, "S") == 0 ? 0 : 16;
	for (; *flags != '\0'; flags++)
		tcp[13] |= *flags == 'S' ? 2 : *flags == 'F' ? 1 : *flags == 'R' ? 4 : 16;
	flow_checksums(packet.bytes, packet.len);
	if (net->bad_checksum)
		tcp[17] ^= 1;
	net->bad_checksum = false;
	return process(net, packet.bytes, packet.len);
}

static const char *send_text(struct net *net, unsigned way, uint32_t seq, const char *text)
{
	return send_bytes(net, way, seq, "", (const uint8_t *)text, strlen(text));
}

// A SYN whose sender begins at seq, and has the other begin at ack.
static void answer(struct net *net, uint32_t seq, uint32_t ack)
{
	net->ack[REPLY] = ack;
	net->ack[FORWARD] = seq;
	assert_string_equal(send_bytes(net, REPLY, seq - 1, "SA", NULL, 0), "next");
}

static void open_connection(struct net *net, uint32_t seq)
{
	net->sport++;
	assert_string_equal(send_bytes(net, FORWARD, seq - 1, "S", NULL, 0), "next");
	answer(net, 1000, seq);
	assert_string_equal(send_bytes(net, FORWARD, seq, "A", NULL, 0), "next");
}

static uint64_t counted(const struct net *net, enum cv_ids_count what)
{
	return cv_ids_counted(net->ids, what);
}

static const char rules[] =
	"drop tcp any any -> any 80 (content:\"attack\"; flow:to_server; sid:1;)\n"
	"drop tcp any any -> any 80 (content:\"first\"; content:\"second\"; "
	"distance:1; within:20; sid:2;)\n"
	"pass tcp any any -> any 80 (content:\"friend\"; sid:3;)\n"
	"drop tcp any any -> any 80 (content:\"user\"; pcre:\"/pass=[0-9]+\\;/\"; "
	"flow:established; sid:4;)\n"
	"drop tcp any 80 -> any any (content:\"secret\"; offset:3; depth:9; "
	"flow:to_client; sid:5;)\n";

// One segment of a row, or its end.
struct segment {
	int seq; // from the connection's first byte
	const char *text, *verdict;
};

// Each row is a connection.
static void evasions_are_caught(void **state)
{
	static const struct {
		const char *name;
		struct segment segment[8];
	} rows[] = {
		{"whole", {{0, "an attack", "rule"}, {9, "more", "rule"}}},
		{"split", {{0, "an att", "next"}, {6, "ack", "rule"}}},
		{"a byte each", {{0, "a", "next"}, {1, "tt", "next"}, {3, "a", "next"},
					{4, "c", "next"}, {5, "k", "rule"}}},
		{"out of order", {{3, "ack", "next"}, {0, "att", "rule"}}},
		{"the last first",
			{{5, "k", "next"}, {3, "ac", "next"}, {1, "tt", "next"}, {0, "a", "rule"}}},
		{"overlapped", {{0, "atta", "next"}, {2, "tack", "rule"}}},
		{"retransmitted",
			{{0, "atta", "next"}, {0, "atta", "next"}, {0, "attack", "rule"}}},
		{"other bytes later",
			{{0, "atta", "next"}, {2, "XXck", "tcp_overlap"}, {4, "ck", "rule"}}},
		{"other bytes of what waits",
			{{3, "ack", "next"}, {3, "XXX", "tcp_overlap"}, {0, "att", "rule"}}},
		{"other bytes over what waits",
			{{3, "ac", "next"}, {0, "attXYZ", "tcp_overlap"}, {0, "attack", "rule"}}},
		{"what waits is met in the middle",
			{{4, "c", "next"}, {2, "tacks", "next"}, {0, "at", "rule"}}},
		{"two that wait are joined", {{1, "t", "next"}, {4, "c", "next"},
						     {1, "ttack", "next"}, {0, "a", "rule"}}},
		{"two contents in two segments", {{0, "a first", "next"}, {7, " second", "rule"}}},
		{"two contents, not so near",
			{{0, "a first", "next"}, {7, "....................second", "next"}}},
		{"two contents out of order", {{7, " second", "next"}, {0, "a first", "rule"}}},
		{"content, and a pcre later",
			{{0, "user", "next"}, {4, "&pass=", "next"}, {10, "12;", "rule"}}},
		{"a pcre, and content later",
			{{0, "pass=1", "next"}, {6, "2;&", "next"}, {9, "user", "rule"}}},
		{"a friend passes for good", {{0, "friend", "next"}, {6, "attack", "next"}}},
		{"a far sequence number is matched alone",
			{{0, "att", "next"}, {1 << 28, "ack", "next"},
				{1 << 28, "attack", "rule"}}},
		{"the receiver waits, too", {{3, "ack", "next"}, {9, "x", "next"}}},
		{"nothing", {{0, "at tack", "next"}, {7, "attac", "next"}, {12, "c", "next"}}},
	};
	struct net net;

	begin(&net, rules, "");
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		// Also where numbers wrap.
		for (uint32_t first = 1000; first != 0;
			first = first == 1000 ? UINT32_MAX - 3 : 0) {
			open_connection(&net, first);
			for (const struct segment *s = rows[i].segment; s->text != NULL; s++) {
				const char *is =
					send_text(&net, FORWARD, first + (uint32_t)s->seq, s->text);

				if (strcmp(is, s->verdict) != 0)
					fail_msg("%s: %d \"%s\": %s, not %s", rows[i].name, s->seq,
						s->text, is, s->verdict);
			}
			end(&net);
			begin(&net, rules, "");
		}
	}
	end(&net);
}

static void wrong_checksums_are_no_part_of_it(void **state)
{
	struct net net;

	begin(&net, rules, "");
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, FORWARD, 1, "att"), "next");
	net.bad_checksum = true; // its receiver throws it away
	assert_string_equal(send_text(&net, FORWARD, 4, "XXX"), "next");
	assert_string_equal(send_text(&net, FORWARD, 4, "ack"), "rule");
	assert_int_equal(counted(&net, CV_IDS_COUNT_BAD_CHECKSUMS), 1);
	open_connection(&net, 1);
	net.bad_checksum = true; // it is matched by itself
	assert_string_equal(send_text(&net, FORWARD, 1, "attack"), "rule");
	end(&net);
	begin(&net, rules, ", 'checksums': 'ignore'");
	open_connection(&net, 1);
	net.bad_checksum = true;
	assert_string_equal(send_text(&net, FORWARD, 1, "att"), "next");
	assert_string_equal(send_text(&net, FORWARD, 4, "ack"), "rule");
	end(&net);
}

static void directions_are_known(void **state)
{
	struct net net;

	begin(&net, rules, "");
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, REPLY, 1000, "attack"), "next");
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, REPLY, 1000, "...sec"), "next");
	assert_string_equal(send_text(&net, REPLY, 1006, "ret"), "rule");
	assert_string_equal(send_text(&net, FORWARD, 1, "x"), "rule"); // both ways
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, REPLY, 1000, "........secret"), "next");
	net.sport++; // not established: nobody has answered
	assert_string_equal(send_bytes(&net, FORWARD, 0, "S", NULL, 0), "next");
	assert_string_equal(send_text(&net, FORWARD, 1, "user pass=1;"), "next");
	end(&net);
}

static void memory_is_bounded(void **state)
{
	struct net net;

	begin(&net, rules, "");
	open_connection(&net, 1);
	for (uint32_t i = 0; i < 8; i++)
		assert_string_equal(send_text(&net, FORWARD, 10 + 2 * i, "x"), "next");
	assert_string_equal(send_text(&net, FORWARD, 40, "x"), "reassembly_full");
	open_connection(&net, 1);
	for (uint32_t i = 0; i < 8; i++)
		assert_string_equal(send_text(&net, FORWARD, 10 + 2 * i, "x"), "next");
	open_connection(&net, 1); // no buffer is left for anybody
	assert_string_equal(send_text(&net, FORWARD, 10, "x"), "reassembly_full");
	assert_string_equal(send_text(&net, FORWARD, 1, "attack"), "rule");
	for (unsigned i = 0; i < 8; i++) // those that are no streams are matched packet by packet
		open_connection(&net, 1);
	assert_int_equal(counted(&net, CV_IDS_COUNT_STREAMS), 8);
	assert_int_equal(counted(&net, CV_IDS_COUNT_STREAMS_REFUSED), 3);
	assert_string_equal(send_text(&net, FORWARD, 1, "att"), "next");
	assert_string_equal(send_text(&net, FORWARD, 4, "ack"), "next");
	assert_string_equal(send_text(&net, FORWARD, 7, "attack"), "rule");
	// When flows are over, all of it is there again.
	for (unsigned s = 0; s < 20000; s++) {
		net.worker.now += HZ;
		cv_flow_tick(net.group, &net.worker);
	}
	assert_int_equal(net.ids->lane[0].streams.free_connections, 8);
	assert_int_equal(net.ids->lane[0].streams.free_buffers, 16);
	end(&net);
}

static void behind_the_depth_nothing_is_searched(void **state)
{
	struct net net;

	begin(&net, rules, ", 'depth': 10");
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, FORWARD, 1, "0123456789"), "next");
	assert_string_equal(send_text(&net, FORWARD, 11, "attack"), "next");
	assert_int_equal(counted(&net, CV_IDS_COUNT_BYPASSED_BYTES), 6);
	assert_string_equal(send_text(&net, FORWARD, 11, "attack"), "next"); // it was lost behind
	assert_string_equal(send_text(&net, FORWARD, 1, "0123456789attack"), "next");
	end(&net);
}

// The first fragment of a segment, and the next, of 16 bytes and 8.
static void send_fragments(struct net *net, uint32_t seq, const char *want)
{
	const rte_be32_t number = rte_cpu_to_be_32(seq);
	struct packet packet;
	char text[160];

	snprintf(text, sizeof(text),
		"ip4 src=10.0.0.1 dst=198.51.100.7 id=9 mf=1 tcp sport=%u dport=80 data=12",
		net->sport);
	packet = packet_make(text);
	memcpy(packet.bytes + 38, &number, sizeof(number));
	packet.bytes[47] = 16;
	assert_string_equal(process(net, packet.bytes, packet.len), want);
	packet = packet_make("ip4 src=10.0.0.1 dst=198.51.100.7 id=9 off=4 proto=6 data=8");
	assert_string_equal(process(net, packet.bytes, packet.len), want);
}

static void streams_have_no_fragments(void **state)
{
	struct net net;

	begin(&net, rules, "");
	open_connection(&net, 1);
	send_fragments(&net, 1, "fragment");
	assert_string_equal(send_text(&net, FORWARD, 1, "friend"), "next");
	send_fragments(&net, 7, "next"); // nobody searches there
	for (unsigned i = 0; i < 9; i++)
		open_connection(&net, 1);
	send_fragments(&net, 1, "next"); // it is no stream
	end(&net);
}

static void a_syn_amid_changes_nothing(void **state)
{
	struct net net;

	begin(&net, rules, "");
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, FORWARD, 1, "att"), "next");
	assert_string_equal(send_bytes(&net, FORWARD, 5000, "S", NULL, 0), "next");
	assert_string_equal(send_bytes(&net, FORWARD, 100, "R", NULL, 0), "next");
	assert_string_equal(send_bytes(&net, FORWARD, 5000, "S", NULL, 0), "next");
	assert_string_equal(send_bytes(&net, FORWARD, 3, "", (const uint8_t[]){0}, 1), "next");
	assert_string_equal(send_text(&net, FORWARD, 4, "ack"), "rule");
	end(&net);
}

static void ask(struct net *net, uint32_t seq)
{
	assert_string_equal(send_bytes(net, FORWARD, seq - 1, "S", NULL, 0), "next");
}

// An attack in two segments from seq on.
static void expect_found(struct net *net, uint32_t seq)
{
	assert_string_equal(send_text(net, FORWARD, seq, "att"), "next");
	assert_string_equal(send_text(net, FORWARD, seq + 3, "ack"), "rule");
}

// Of several SYNs the one that is answered begins the connection.
static void only_an_answer_begins_a_connection(void **state)
{
	static const uint32_t others[] = {5001, 1u << 28}; // near, and far from 1
	struct net net;

	begin(&net, rules, "");
	for (unsigned i = 0; i < 2; i++) {
		open_connection(&net, 1);
		ask(&net, others[i]); // before the first byte
		expect_found(&net, 1);
		open_connection(&net, 1);
		assert_string_equal(send_text(&net, FORWARD, 1, "x"), "next");
		ask(&net, others[i]);
		expect_found(&net, 2);
		net.sport++;
		ask(&net, 1);
		ask(&net, others[i]);
		ask(&net, 77); // and the other end has answered before
		answer(&net, 1000, others[i]);
		expect_found(&net, others[i]);
	}
	end(&net);
	begin(&net, rules, "");
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, FORWARD, 1, "att"), "next");
	ask(&net, 4); // its number is what is acknowledged next, but no SYN acknowledges it
	net.ack[REPLY] = 4;
	assert_string_equal(send_bytes(&net, REPLY, 1000, "A", NULL, 0), "next");
	assert_string_equal(send_text(&net, FORWARD, 4, "ack"), "rule");
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, FORWARD, 1, "att"), "next");
	ask(&net, 1); // and its answer, again
	answer(&net, 1000, 1);
	assert_string_equal(send_text(&net, FORWARD, 4, "ack"), "rule");
	end(&net);
}

static void only_what_is_heard_begins_a_connection(void **state)
{
	struct net net;

	begin(&net, rules, "");
	net.sport++;
	ask(&net, 1);
	answer(&net, 1000, 1);
	ask(&net, 1);
	answer(&net, 90000, 1);
	net.ack[FORWARD] = 1000; // the first answer
	assert_string_equal(send_bytes(&net, FORWARD, 1, "A", NULL, 0), "next");
	assert_string_equal(send_text(&net, REPLY, 1000, "...sec"), "next");
	assert_string_equal(send_text(&net, REPLY, 1006, "ret"), "rule");
	open_connection(&net, 1);
	// Nobody asked: the other end does not get it.
	assert_string_equal(send_bytes(&net, REPLY, 89999, "SA", NULL, 0), "tcp_overlap");
	assert_string_equal(send_text(&net, REPLY, 1000, "...sec"), "next");
	assert_string_equal(send_text(&net, REPLY, 1006, "ret"), "rule");
	end(&net);
}

static void payload_may_come_with_a_syn(void **state)
{
	const uint8_t *data = (const uint8_t *)"attack";
	struct net net;

	begin(&net, rules, "");
	net.sport++;
	assert_string_equal(send_bytes(&net, FORWARD, 0, "S", data, 3), "next");
	answer(&net, 1000, 4);
	assert_string_equal(send_text(&net, FORWARD, 4, "ack"), "rule");
	net.sport++;
	assert_string_equal(send_bytes(&net, FORWARD, 0, "S", data, 3), "next");
	answer(&net, 1000, 1); // it is to be sent again
	expect_found(&net, 1);
	net.sport++;
	assert_string_equal(send_bytes(&net, FORWARD, 0, "S", data, 3), "next");
	assert_string_equal(send_bytes(&net, FORWARD, 0, "S", data, 3), "next");
	assert_string_equal(send_bytes(&net, FORWARD, 9, "S", data, 3), "tcp_overlap");
	ask(&net, 10);
	answer(&net, 1000, 10);
	expect_found(&net, 10);
	end(&net);
}

static void ports_can_be_used_again(void **state)
{
	struct net net;

	begin(&net, rules, "");
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, FORWARD, 1, "att"), "next");
	assert_string_equal(send_bytes(&net, FORWARD, 4, "F", NULL, 0), "next");
	assert_string_equal(send_bytes(&net, REPLY, 1000, "F", NULL, 0), "next");
	net.sport--; // the same connection
	open_connection(&net, 900000);
	assert_string_equal(send_text(&net, FORWARD, 900000, "ack, att"), "next");
	assert_string_equal(send_text(&net, FORWARD, 900008, "ack"), "rule");
	for (unsigned i = 0; i < 2; i++) {
		const uint32_t first = i == 0 ? 900000 : 1; // near, or the same as before

		open_connection(&net, 1);
		assert_string_equal( // before the last byte
			send_bytes(&net, FORWARD, 2, "F", (const uint8_t *)"b", 1), "next");
		assert_string_equal(send_text(&net, FORWARD, 1, "a"), "next");
		for (uint32_t seq = 3; seq < 2003; seq += 10)
			assert_string_equal(send_text(&net, FORWARD, seq, "0123456789"), "next");
		ask(&net, first);
		answer(&net, 5000, first);
		expect_found(&net, first);
	}
	end(&net);
}

// Another instance takes over amid a connection: its streams begin there.
static void other_rules_take_over(void **state)
{
	static const char more[] = "drop tcp any any -> any 80 (content:\"tack\"; sid:9;)";
	struct net net, next;

	begin(&next, more, ""); // another zone, which is not used
	next.ids->number = 2;
	begin(&net, rules, "");
	open_connection(&net, 1);
	assert_string_equal(send_text(&net, FORWARD, 1, "at"), "next");
	cv_flow_zone_replace(net.zone, 0, next.ids);
	assert_string_equal(send_text(&net, FORWARD, 3, "ta"), "next");
	cv_nf_destroy(&cv_nf_ids, net.ids);
	net.ids = next.ids;
	assert_string_equal(send_text(&net, FORWARD, 5, "ck"), "rule");
	cv_flow_zone_destroy(next.zone);
	end(&net);
}

// A random stream, cut, mixed and repeated: a rule has matched if, and only if, it matches all of it.
static void streams_are_as_their_receiver_reads_them(void **state)
{
	enum { CONNECTIONS = CV_SANITIZED ? 80 : 400, BYTES = 40 };
	static const char of[] =
		"alert tcp any any -> any any (content:\"ab\"; content:\"cc\"; distance:2; "
		"within:9; "
		"sid:1;)\nalert tcp any any -> any any (content:\"abc\"; nocase; sid:2;)\n"
		"alert tcp any any -> any any (content:\"bb\"; offset:4; depth:9; sid:3;)\n"
		"alert tcp any any -> any any (content:\"c\"; offset:30; pcre:\"/a[bc]{3}a/\"; "
		"sid:4;)\n"
		"alert tcp any any -> any any (content:\"aab\"; content:\"b\"; distance:-3; "
		"within:3; "
		"content:\"ca\"; sid:5;)\n";
	unsigned matched[5] = {0};
	struct net net;

	srand(3);
	for (unsigned c = 0; c < CONNECTIONS; c++) {
		uint8_t data[BYTES], have[BYTES] = {0};
		unsigned left = BYTES;
		struct net whole;

		begin(&net, of, "");
		for (unsigned i = 0; i < BYTES; i++)
			data[i] = (uint8_t) "abcA"[rand() % 4];
		open_connection(&net, 7);
		while (left > 0) {
			const unsigned from = (unsigned)rand() % BYTES;
			const unsigned len = 1 + (unsigned)rand() % 9;
			const unsigned to = from + len < BYTES ? from + len : BYTES;

			if (strcmp(send_bytes(&net, FORWARD, 7 + from, "", data + from, to - from),
				    "next") != 0)
				continue; // no room: it would come again
			for (unsigned i = from; i < to; i++) {
				left -= !have[i];
				have[i] = 1;
			}
		}
		begin(&whole, of, "");
		open_connection(&whole, 7);
		send_bytes(&whole, FORWARD, 7, "", data, BYTES);
		for (unsigned i = 0; i < 5; i++) {
			const bool want = cv_row_counters_sum(&whole.ids->hits, i) > 0;

			if (want != (cv_row_counters_sum(&net.ids->hits, i) > 0))
				fail_msg("connection %u, rule %u: %.40s: not %d", c, i + 1, data,
					want);
			matched[i] += want;
		}
		end(&whole);
		end(&net);
	}
	for (unsigned i = 0; i < 5; i++)
		assert_in_range(matched[i], CONNECTIONS / 40, CONNECTIONS - CONNECTIONS / 40);
}

// A connection that makes rules cost more than a segment may is dropped from there on, or begins anew;
// others go on.
static void no_segment_costs_more_than_its_budget(void **state)
{
	static const char of[] =
		"drop tcp any any -> any 80 (content:\"attack\"; sid:1;)\n"
		"drop tcp any any -> any 80 (content:\"ab\"; content:\"a\"; distance:0; "
		"content:\"b\"; distance:0; content:\"zz\"; sid:2;)\n"
		"drop tcp any any -> any 80 (content:\"ba\"; content:\"b\"; distance:0; "
		"content:\"a\"; distance:0; content:\"yy\"; sid:3;)\n";
	const uint64_t all = 1 * (1024 + 2 * 512 + 2);
	struct net net;

	for (unsigned passes = 0; passes < 2; passes++) {
		const char *is = "next";
		uint32_t seq = 1;

		begin(&net, of, passes ? ", 'budget': 1, 'over_budget': 'pass'" : ", 'budget': 1");
		open_connection(&net, 1);
		for (unsigned i = 0; i < 600; i++, seq += 2) {
			const uint64_t before = counted(&net, CV_IDS_COUNT_STEPS);

			is = send_text(&net, FORWARD, seq, "ab");
			assert_in_range(counted(&net, CV_IDS_COUNT_STEPS) - before, 0, all);
		}
		assert_true(counted(&net, CV_IDS_COUNT_OVER_BUDGET) > 0);
		assert_string_equal(is, passes ? "next" : "over_budget");
		is = send_text(&net, FORWARD, seq, "attack");
		assert_string_equal(is, passes ? "rule" : "over_budget");
		if (!passes)
			assert_int_equal(counted(&net, CV_IDS_COUNT_OVER_BUDGET), 1);
		open_connection(&net, 1);
		assert_string_equal(send_text(&net, FORWARD, 1, "att"), "next");
		assert_string_equal(send_text(&net, FORWARD, 4, "ack"), "rule");
		end(&net);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evasions_are_caught),
		cmocka_unit_test(wrong_checksums_are_no_part_of_it),
		cmocka_unit_test(directions_are_known),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(behind_the_depth_nothing_is_searched),
		cmocka_unit_test(streams_have_no_fragments),
		cmocka_unit_test(a_syn_amid_changes_nothing),
		cmocka_unit_test(only_an_answer_begins_a_connection),
		cmocka_unit_test(only_what_is_heard_begins_a_connection),
		cmocka_unit_test(payload_may_come_with_a_syn),
		cmocka_unit_test(ports_can_be_used_again),
		cmocka_unit_test(other_rules_take_over),
		cmocka_unit_test(streams_are_as_their_receiver_reads_them),
		cmocka_unit_test(no_segment_costs_more_than_its_budget),
	};

	packet_eal(argv[0]);
	assert_int_equal(test_dir_make(folder), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
