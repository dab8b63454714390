// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Packets through rules; and rules of several contents beside a plain search that tries all places.
#include "tests/support/test_packets.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "nf/ids/ids.h"
#include "tests/support/test_dir.h"

extern const struct cv_nf cv_nf_ids;

static char folder[] = "/tmp/convoy-ids-XXXXXX";

static const char *path_of(const char *name)
{
	static char paths[4][96];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static const char *config_of(const char *rules, const char *more)
{
	static char text[512];
	const char *path = path_of("x.rules");

	write_text(path, rules);
	snprintf(text, sizeof(text), "{'rules_file': '%s'%s}", path, more);
	return text;
}

static void *make(const char *rules, const char *more)
{
	return packet_nf(&cv_nf_ids, config_of(rules, more), NULL);
}

static long long info_number(const void *ids, const char *key)
{
	json_t *info = cv_nf_ids.info(ids);
	const long long number = json_integer_value(json_object_get(info, key));

	assert_non_null(json_object_get(info, key));
	json_decref(info);
	return number;
}

// Packets with a rule's sid.
static long long hits(const void *ids, long long sid)
{
	json_t *info = cv_nf_ids.info(ids), *row;
	long long packets = 0;
	size_t i;

	json_array_foreach (json_object_get(info, "hits"), i, row)
		if (json_integer_value(json_object_get(row, "sid")) == sid)
			packets = json_integer_value(json_object_get(row, "packets"));
	json_decref(info);
	return packets;
}

static uint8_t verdict_of(void *ids, const char *text)
{
	struct packet packet = packet_make(text);
	struct cv_nf_worker worker = {.index = 0, .now = rte_rdtsc()};
	uint8_t verdict, *exact = malloc(packet.len);
	struct cv_view view = {0};

	assert_non_null(exact);
	memcpy(exact, packet.bytes, packet.len);
	cv_view_set(&view, exact, packet.len);
	cv_nf_ids.process(ids, &worker, &view, &verdict, 1);
	free(exact);
	return verdict;
}

#define HELLO "hex=68656c6c6f"

static void drops_what_rules_say(void **state)
{
	static const struct packet_row rows[] = {
		{"its content", "ip4 udp dport=53 " HELLO, "rule", NULL, 0, 1},
		{"the content in the middle", "ip4 udp dport=53 data=9 " HELLO " data=9", "rule",
			NULL, 0, 1},
		{"in other letters", "ip4 udp dport=53 hex=48656c6c6f", "next", NULL, 0, 1},
		{"nocase", "ip4 udp dport=54 hex=48656c6c6f", "rule", NULL, 0, 1},
		{"another port", "ip4 udp dport=55 " HELLO, "next", NULL, 0, 1},
		{"another protocol", "ip4 tcp dport=53 " HELLO, "next", NULL, 0, 1},
		{"behind the payload", "ip4 udp dport=53 data=2 pad=1 " HELLO, "next", NULL, 0, 1},
		{"IPv6", "ip6 udp dport=53 " HELLO, "rule", NULL, 0, 1},
		{"IPv6 behind extension headers", "ip6 dstopt udp dport=53 " HELLO, "rule", NULL, 0,
			1},
		{"TCP options", "ip4 tcp dport=7 hex=00 " HELLO, "rule", NULL, 0, 1},
		{"a pass rule wins", "ip4 udp dport=53 " HELLO " hex=6f6b", "next", NULL, 0, 1},
		{"ICMP", "ip4 icmp kind=8 " HELLO, "rule", NULL, 0, 1},
		{"ICMPv6", "ip6 icmp6 kind=128 " HELLO, "rule", NULL, 0, 1},
		{"both ways", "ip4 src=10.0.0.1 udp sport=99 hex=61", "rule", NULL, 0, 1},
		{"both ways back", "ip4 dst=10.0.0.1 udp dport=99 hex=61", "rule", NULL, 0, 1},
		{"neither way", "ip4 src=10.0.0.1 udp dport=99 hex=61", "next", NULL, 0, 1},
		{"no content at all", "ip4 src=10.9.9.9 udp", "rule", NULL, 0, 1},
		{"any IP protocol", "ip4 sctp hex=70617373776f7264", "rule", NULL, 0, 1},
		{"that of TCP, too", "ip4 tcp hex=70617373776f7264", "rule", NULL, 0, 1},
		{"a fragment has no ports", "ip4 proto=17 off=9 hex=00090035 " HELLO, "next", NULL,
			0, 1},
		{"but a payload", "ip4 proto=17 off=9 hex=70617373776f7264", "rule", NULL, 0, 1},
		{"pcre and content", "ip4 tcp dport=8 hex=6162 hex=313233", "rule", NULL, 0, 1},
		{"content without pcre", "ip4 tcp dport=8 hex=6162 hex=3132", "next", NULL, 0, 1},
		{"pcre without content", "ip4 tcp dport=8 hex=61 hex=313233", "next", NULL, 0, 1},
		{"ARP", "type=0806 " HELLO, "next", NULL, 0, 1},
		{"a byte is missing", "ip4 udp data=9 cut=50", "bad_header", NULL, 0, 1},
		{"TCP's header is cut", "ip4 len=39 tcp cut=53", "bad_header", NULL, 0, 1},
	};
	void *ids =
		make("drop udp any any -> any 53 (content:\"hello\"; sid:1;)\n"
		     "drop udp any any -> any 54 (content:\"hElLo\"; nocase; sid:2;)\n"
		     "pass udp any any -> any any (content:\"ok\"; sid:3;)\n"
		     "drop icmp any any -> any any (content:\"hello\"; sid:4;)\n"
		     "drop udp 10.0.0.1 99 <> any any (content:\"a\"; sid:5;)\n"
		     "drop ip 10.9.9.0/24 any -> any any (sid:6;)\n"
		     "drop ip any any -> any any (content:\"password\"; sid:7;)\n"
		     "drop tcp any any -> any 7 (content:\"hello\"; offset:1; depth:5; sid:8;)\n"
		     "drop tcp any any -> any 8 (content:\"ab\"; pcre:\"/[0-9]{3}/\"; sid:9;)\n",
			"");

	packet_table(&cv_nf_ids, ids, rows, sizeof(rows) / sizeof(rows[0]));
	assert_true(hits(ids, 3) > 0);
	cv_nf_destroy(&cv_nf_ids, ids);
}

static void fragments_can_be_dropped(void **state)
{
	static const struct packet_row rows[] = {
		{"the first", "ip4 mf=1 udp data=8", "fragment", NULL, 0, 1},
		{"another", "ip4 proto=17 off=2 data=8", "fragment", NULL, 0, 1},
		{"IPv6", "ip6 frag nh=17 mf=1 data=16", "fragment", NULL, 0, 1},
		{"one that is whole", "ip6 frag udp data=8", "next", NULL, 0, 1},
		{"none", "ip4 df=1 udp data=8", "next", NULL, 0, 1},
	};
	void *ids = make(
		"alert ip any any -> any any (content:\"x\"; sid:1;)", ", 'fragments': 'drop'");

	packet_table(&cv_nf_ids, ids, rows, sizeof(rows) / sizeof(rows[0]));
	cv_nf_destroy(&cv_nf_ids, ids);
}

// Whether the contents from one on can be placed: each place is tried.
static bool oracle(
	const struct cv_ids_rule *rule, unsigned i, const uint8_t *data, int len, int end)
{
	const struct cv_ids_content *content;
	bool is_there = false;

	if (i == rule->contents_count)
		return true;
	content = &rule->contents[i];
	for (int at = 0; at + content->len <= len; at++) {
		const int from = content->relative ? end : 0;
		bool same = at >= from + content->first &&
			    (!content->bounded || at + content->len <= from + content->last);

		for (unsigned b = 0; same && b < content->len; b++) {
			uint8_t byte = data[at + b];

			if (content->nocase && byte >= 'A' && byte <= 'Z')
				byte |= 0x20;
			same = byte == content->bytes[b];
		}
		if (!same)
			continue;
		is_there = true;
		if (!content->negated && oracle(rule, i + 1, data, len, at + content->len))
			return true;
	}
	return content->negated && !is_there && oracle(rule, i + 1, data, len, end);
}

static char *random_rule(unsigned sid)
{
	static char text[1024];
	const unsigned contents = 1 + (unsigned)rand() % 4;
	int at = snprintf(text, sizeof(text), "alert udp any any -> any any (");
	bool has_one = false; // that others may be relative to

	for (unsigned i = 0; i < contents; i++) {
		const int len = 1 + rand() % 3;
		const bool negated = rand() % 4 == 0, relative = has_one && rand() % 2;

		at += snprintf(
			text + at, sizeof(text) - (size_t)at, "content:%s\"", negated ? "!" : "");
		for (int b = 0; b < len; b++)
			at += snprintf(
				text + at, sizeof(text) - (size_t)at, "%c", "abA"[rand() % 3]);
		at += snprintf(text + at, sizeof(text) - (size_t)at, "\";%s",
			rand() % 3 == 0 ? "nocase;" : "");
		if (rand() % 2)
			at += snprintf(text + at, sizeof(text) - (size_t)at, "%s:%d;",
				relative ? "distance" : "offset",
				relative ? rand() % 9 - 4 : rand() % 6);
		if (rand() % 2)
			at += snprintf(text + at, sizeof(text) - (size_t)at, "%s:%d;",
				relative ? "within" : "depth", len + rand() % 6);
		has_one |= !negated;
	}
	snprintf(text + at, sizeof(text) - (size_t)at, "sid:%u;)\n", sid);
	return text;
}

// Packets through many rules at once: each matches as the oracle says.
static void several_contents_are_where_they_must_be(void **state)
{
	enum { ROUNDS = 20, RULES = 100, PACKETS = 60 };
	unsigned matched = 0, all = 0;

	srand(7);
	for (unsigned round = 0; round < ROUNDS; round++) {
		char *file = calloc(RULES, 256);
		struct cv_ids *ids;

		assert_non_null(file);
		for (unsigned i = 0; i < RULES; i++)
			strcat(file, random_rule(i + 1));
		ids = make(file, ", 'budget': 1000");
		assert_int_equal(ids->rules.count, RULES);
		for (unsigned p = 0; p < PACKETS; p++) {
			const int len = rand() % 24;
			uint8_t data[24];
			char text[128] = "ip4 udp hex=";
			long long before[RULES];

			for (int b = 0; b < len; b++) {
				data[b] = (uint8_t) "abA."[rand() % 4];
				sprintf(text + strlen(text), "%02x", data[b]);
			}
			for (unsigned i = 0; i < RULES; i++)
				before[i] = (long long)cv_row_counters_sum(&ids->hits, i);
			verdict_of(ids, text);
			for (unsigned i = 0; i < RULES; i++) {
				const bool want = oracle(&ids->rules.rule[i], 0, data, len, 0);
				const bool is =
					(long long)cv_row_counters_sum(&ids->hits, i) > before[i];

				if (want != is)
					fail_msg("rule %u of\n%s\n%s: %d, not %d", i + 1, file,
						text, is, want);
				matched += want;
				all++;
			}
		}
		cv_nf_destroy(&cv_nf_ids, ids);
		free(file);
	}
	assert_in_range(matched, all / 20, all * 19 / 20);
}

// Lines of a file of alerts, once there are so many: the writer has its own thread.
static char *alerts(const char *path, const void *ids, long long count)
{
	char *text = calloc(1, 1 << 20);
	FILE *file;

	assert_non_null(text);
	for (int tries = 0; info_number(ids, "alerts_written") < count && tries < 1000; tries++)
		usleep(5000);
	assert_int_equal(info_number(ids, "alerts_written"), count);
	file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static void writes_alerts(void **state)
{
	const char *path = path_of("eve.json");
	char more[128], *text, *save = NULL;
	json_t *line, *alert;
	void *ids;

	snprintf(more, sizeof(more), ", 'alerts_file': '%s'", path);
	ids = make("drop udp any any -> any 53 (msg:\"say \\\"hi\\\"\"; content:\"hello\"; "
		   "classtype:trojan; priority:1; sid:77; rev:3;)\n"
		   "alert icmp any any -> any any (content:\"hello\"; sid:78;)",
		more);
	verdict_of(ids, "ip4 udp sport=9 dport=53 " HELLO);
	verdict_of(ids, "ip6 icmp6 kind=128 code=4 " HELLO);
	text = alerts(path, ids, 2);
	line = json_loads(strtok_r(text, "\n", &save), 0, NULL);
	alert = json_object_get(line, "alert");
	assert_string_equal(json_string_value(json_object_get(line, "src_ip")), "192.0.2.1");
	assert_string_equal(json_string_value(json_object_get(line, "proto")), "UDP");
	assert_int_equal(json_integer_value(json_object_get(line, "dest_port")), 53);
	assert_string_equal(json_string_value(json_object_get(alert, "action")), "blocked");
	assert_string_equal(json_string_value(json_object_get(alert, "signature")), "say \"hi\"");
	assert_int_equal(json_integer_value(json_object_get(alert, "signature_id")), 77);
	assert_int_equal(json_integer_value(json_object_get(alert, "severity")), 1);
	json_decref(line);
	line = json_loads(strtok_r(NULL, "\n", &save), 0, NULL);
	assert_string_equal(json_string_value(json_object_get(line, "dest_ip")), "2001:db8::2");
	assert_int_equal(json_integer_value(json_object_get(line, "icmp_code")), 4);
	assert_null(strtok_r(NULL, "\n", &save));
	json_decref(line);
	free(text);
	cv_nf_destroy(&cv_nf_ids, ids);
}

static void sends_alerts(void **state)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char more[160], text[4096];
	ssize_t len;
	void *ids;

	strcpy(to.sun_path, path_of("s"));
	snprintf(more, sizeof(more), ", 'alerts_socket': '%s'", to.sun_path);
	ids = make("alert udp any any -> any any (content:\"hello\"; sid:1;)", more);
	verdict_of(ids, "ip4 udp " HELLO); // nobody is there
	for (int tries = 0; info_number(ids, "alerts_lost") < 1 && tries < 1000; tries++)
		usleep(5000);
	assert_int_equal(info_number(ids, "alerts_lost"), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	verdict_of(ids, "ip4 udp " HELLO);
	len = recv(fd, text, sizeof(text) - 1, 0);
	assert_true(len > 0);
	text[len] = '\0';
	if (strstr(text, "\"signature_id\":1,") == NULL)
		fail_msg("%s", text);
	close(fd);
	cv_nf_destroy(&cv_nf_ids, ids);
}

// A worker never waits: what nobody writes is lost and counted.
static void a_flood_of_alerts_is_lost(void **state)
{
	const struct cv_ids_alert alert = {.rule = "\"gid\":1"};
	struct cv_ids_alert_log *log =
		cv_ids_alert_log_create(path_of("never.json"), NULL, "ids", 2, NULL);
	unsigned added = 0;

	assert_non_null(log);
	for (unsigned i = 0; i < 20000; i++) // nothing writes yet
		added += cv_ids_alert_log_add(log, i % 2, &alert);
	assert_int_equal(added, 8192);
	assert_int_equal(cv_ids_alert_log_lost(log), 20000 - 8192);
	assert_int_equal(cv_ids_alert_log_start(log), 0);
	cv_ids_alert_log_flush(log);
	assert_int_equal(cv_ids_alert_log_written(log), 8192);
	assert_true(cv_ids_alert_log_add(log, 0, &alert));
	cv_ids_alert_log_destroy(log);
}

static void thresholds_keep_alerts_back(void **state)
{
	static const struct {
		const char *type;
		long long alerts; // of ten from each of two addresses
	} rows[] = {{"type limit, track by_src, count 3, seconds 3600", 6},
		{"type threshold, track by_src, count 4, seconds 3600", 4},
		{"type both, track by_src, count 4, seconds 3600", 2},
		{"type limit, track by_dst, count 3, seconds 3600", 3},
		{"type limit, track by_rule, count 1, seconds 3600", 1}};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		char text[256];
		void *ids;

		snprintf(text, sizeof(text),
			"drop udp any any -> any any (content:\"hello\"; threshold:%s; sid:1;)",
			rows[i].type);
		ids = make(text, "");
		for (unsigned p = 0; p < 20; p++)
			assert_int_equal(verdict_of(ids, p % 2 ? "ip4 src=10.0.0.1 udp " HELLO
							       : "ip4 src=10.0.0.2 udp " HELLO),
				CV_DROP(CV_IDS_DROP_RULE));
		assert_int_equal(info_number(ids, "alerts"), rows[i].alerts);
		assert_int_equal(info_number(ids, "alerts_suppressed"), 20 - rows[i].alerts);
		assert_int_equal(hits(ids, 1), 20);
		cv_nf_destroy(&cv_nf_ids, ids);
	}
}

static void other_rules_take_over(void **state)
{
	void *ids, *next;

	ids = make("alert udp any any -> any any (content:\"hello\"; sid:1;)\n"
		   "alert udp any any -> any any (content:\"hell\"; sid:3;)",
		"");
	verdict_of(ids, "ip4 udp " HELLO);
	next = packet_nf_instead(&cv_nf_ids,
		config_of("drop udp any any -> any any (content:\"hello\"; sid:2;)\n"
			  "drop udp any any -> any any (content:\"hello\"; sid:1;)",
			""),
		ids, NULL);
	cv_nf_ids.inherit(next, ids);
	cv_nf_destroy(&cv_nf_ids, ids);
	assert_int_equal(verdict_of(next, "ip4 udp " HELLO), CV_DROP(CV_IDS_DROP_RULE));
	assert_int_equal(hits(next, 1), 2);
	assert_int_equal(hits(next, 2), 1);
	assert_int_equal(info_number(next, "alerts"), 4);
	cv_nf_destroy(&cv_nf_ids, next);
}

// A UDP packet to port 53 with this payload.
static struct packet packet_of(const uint8_t *payload, uint16_t len)
{
	char text[64];
	struct packet packet;

	snprintf(text, sizeof(text), "ip4 len=%u udp dport=53", 28u + len);
	packet = packet_make(text);
	packet.bytes[38] = (uint8_t)((8 + len) >> 8);
	packet.bytes[39] = (uint8_t)(8 + len);
	assert_true(packet.len + len <= sizeof(packet.bytes));
	memcpy(packet.bytes + packet.len, payload, len);
	packet.len += len;
	return packet;
}

// What begins to match many rules. Returns its length.
static uint16_t write_attack(unsigned kind, uint8_t payload[1400])
{
	for (unsigned i = 0; i < 1400; i++)
		payload[i] = kind == 0   ? 'a'
			     : kind == 1 ? (i % 40 == 39 ? (uint8_t)('b' + i / 40 % 20) : 'a')
					 : (uint8_t) "abAB"[rand() % (kind == 2 ? 2 : 4)];
	return 1400;
}

// Rules that an attack is expensive for, in each of the ways in which rules are looked at.
static const char *expensive_rules(void)
{
	static char text[1 << 17];
	int at = 0;

	for (unsigned i = 0; i < 100; i++) {
		at += sprintf(text + at,
			"alert udp any any -> any any (content:\"%.*s%c\"; "
			"content:\"b%u\"; sid:%u;)\n",
			(int)(4 + i % 28), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 'b' + i % 20, i,
			1000 + i);
		at += sprintf(text + at,
			"alert udp any any -> any any (content:\"ab\"; nocase; "
			"content:\"ba\"; distance:%u; content:!\"a\"; within:1; "
			"content:\"z\"; sid:%u;)\n",
			i, 2000 + i);
		at += sprintf(text + at,
			"alert udp any any -> any any (content:\"a\"; content:\"aa\"; "
			"distance:-%u; sid:%u;)\n",
			1 + i, 3000 + i);
		at += sprintf(text + at,
			"alert udp any any -> any any (content:!\"z%u\"; sid:%u;)\n", i, 4000 + i);
	}
	sprintf(text + at, "drop udp any any -> any any (content:\"hidden\"; content:\"drop\"; "
			   "distance:0; sid:1;)\n"
			   "pass udp any any -> any any (content:\"friend\"; sid:2;)\n");
	return text;
}

static long long steps_of(struct cv_ids *ids, const struct packet *packet, uint8_t *verdict)
{
	const long long before = info_number(ids, "steps");
	struct cv_nf_worker worker = {.index = 0, .now = rte_rdtsc()};
	struct packet copy = *packet;
	struct cv_view view = {0};

	cv_view_set(&view, copy.bytes, copy.len);
	cv_nf_ids.process(ids, &worker, &view, verdict, 1);
	return info_number(ids, "steps") - before;
}

// Whatever a packet has, its rules take so many steps and no more; and nothing that is not known passes.
static void no_packet_costs_more_than_its_budget(void **state)
{
	enum { BUDGET = 3 };
	struct cv_ids *drops = make(expensive_rules(), ", 'budget': 3");
	struct cv_ids *passes = make(expensive_rules(), ", 'budget': 3, 'over_budget': 'pass'");

	srand(11);
	for (unsigned round = 0; round < 200; round++) {
		uint8_t payload[1400], verdict;
		const uint16_t whole = write_attack(round % 4, payload);
		const uint16_t len = round < 8 ? whole : (uint16_t)(1 + rand() % whole);
		const long long all = BUDGET * (len + 1024ll),
				over = info_number(drops, "over_budget");
		struct packet packet;

		if (round % 2 && len > 40)
			memcpy(payload + len - 20, "hidden and a drop", 17);
		packet = packet_of(payload, len);
		assert_in_range(steps_of(drops, &packet, &verdict), 1, all);
		if (info_number(drops, "over_budget") > over)
			assert_int_equal(verdict, CV_DROP(CV_IDS_DROP_OVER_BUDGET));
		else
			assert_int_equal(verdict,
				round % 2 && len > 40 ? CV_DROP(CV_IDS_DROP_RULE) : CV_NEXT);
		assert_in_range(steps_of(passes, &packet, &verdict), 1, all);
		assert_true(verdict == CV_NEXT || verdict == CV_DROP(CV_IDS_DROP_RULE));
	}
	assert_in_range(info_number(drops, "over_budget"), 100, 200);
	assert_in_range(info_number(passes, "over_budget"), 100, 200);
	cv_nf_destroy(&cv_nf_ids, passes);
	cv_nf_destroy(&cv_nf_ids, drops);
}

// What becomes of a packet depends on itself: packets beside it take nothing of its budget.
static void a_costly_packet_harms_no_other(void **state)
{
	enum { PACKETS = 64 };
	struct cv_ids *ids =
		make("drop udp any any -> any any (content:\"hidden\"; content:\"drop\"; "
		     "distance:0; sid:1;)\n"
		     "alert udp any any -> any any (content:\"ab\"; content:\"a\"; distance:0; "
		     "content:\"a\"; distance:0; content:\"z\"; sid:2;)\n",
			", 'budget': 1");
	struct cv_nf_worker worker = {.index = 0, .now = rte_rdtsc()};
	struct packet packets[PACKETS];
	struct cv_view views[PACKETS] = {0};
	uint8_t verdicts[PACKETS], payload[1400];

	for (unsigned i = 0; i < PACKETS; i++) {
		packets[i] = i % 4 == 3   ? packet_of((const uint8_t *)"hidden drop", 11)
			     : i % 4 == 2 ? packet_of((const uint8_t *)"hidden friend", 13)
					  : packet_of(payload, write_attack(2, payload));
		cv_view_set(&views[i], packets[i].bytes, packets[i].len);
	}
	cv_nf_ids.process(ids, &worker, views, verdicts, PACKETS);
	for (unsigned i = 0; i < PACKETS; i++)
		assert_int_equal(verdicts[i], i % 4 == 3   ? CV_DROP(CV_IDS_DROP_RULE)
					      : i % 4 == 2 ? CV_NEXT
							   : CV_DROP(CV_IDS_DROP_OVER_BUDGET));
	assert_int_equal(info_number(ids, "over_budget"), PACKETS / 2);
	cv_nf_destroy(&cv_nf_ids, ids);
}

static void refuses(void **state)
{
	const struct cv_nf *nf = &cv_nf_ids;

	packet_refused(nf, "{}", "rules_file: is missing");
	packet_refused(nf, "{'rules_file': '/nowhere/x'}", "rules_file: /nowhere/x: No such file");
	packet_refused(nf,
		config_of("\nalert tcp any any -> any any (pcre:\"/a(?=b)/\"; sid:1;)", ""),
		"x.rules:2: pcre: \"a(?=b)\": Hyperscan: Zero-width assertions are not supported.: "
		"is beyond the subset");
	packet_refused(nf, config_of("", ", 'alerts_file': '/nowhere/x'"),
		"alerts_file: \"/nowhere/x\": cannot be written: No such file");
	packet_refused(nf, config_of("", ", 'alerts_file': '/dev/null'"),
		"alerts_file: \"/dev/null\": cannot be written: Invalid argument");
	packet_refused(nf, config_of("", ", 'alerts_file': '/tmp/x', 'alerts_socket': '/tmp/y'"),
		"alerts_socket: \"/tmp/y\": there is alerts_file, too; remove one");
	packet_refused(nf, config_of("alert tcp any any -> any any (flow:established; sid:1;)", ""),
		"x.rules:1: flow: needs stateful: true: is beyond");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drops_what_rules_say),
		cmocka_unit_test(fragments_can_be_dropped),
		cmocka_unit_test(several_contents_are_where_they_must_be),
		cmocka_unit_test(writes_alerts),
		cmocka_unit_test(sends_alerts),
		cmocka_unit_test(a_flood_of_alerts_is_lost),
		cmocka_unit_test(thresholds_keep_alerts_back),
		cmocka_unit_test(other_rules_take_over),
		cmocka_unit_test(no_packet_costs_more_than_its_budget),
		cmocka_unit_test(a_costly_packet_harms_no_other),
		cmocka_unit_test(refuses),
	};

	packet_eal(argv[0]);
	assert_int_equal(test_dir_make(folder), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
