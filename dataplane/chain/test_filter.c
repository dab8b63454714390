// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Filters: which packets each takes, what is refused and how, and that what becomes of a packet
// later decides only where the text says so.
#include <errno.h>

#include "tests/support/test_packets.h"

#include "chain/filter.h"

static int index_of(const void *of, const char *name)
{
	return strcmp(name, "lan") == 0 ? 2 : -1;
}

static bool is_reason(const void *of, const char *name)
{
	return strcmp(name, "no_route") == 0 || strcmp(name, "denied") == 0;
}

static const struct cv_filter_names names = {
	.port = index_of, .chain = index_of, .reason = is_reason};

static void compile(struct cv_filter *filter, const char *text)
{
	struct cv_error error = {0};

	if (cv_filter_compile(filter, text, &names, &error) != 0)
		fail_msg("%s: %s", text, error.text);
}

// IPv4, UDP from 10.0.0.1 port 1000 to 192.0.2.7 port 53, in VLAN 5.
static const uint8_t ipv4[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 5, 8, 0, //
	0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7, //
	3, 232, 0, 53, 0, 8, 0, 0};
// IPv6, TCP from 2001:db8::1 port 80 to 2001:db8:1::2 port 2000.
static const uint8_t ipv6[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, //
	0x60, 0, 0, 0, 0, 20, 6, 64, //
	0x20, 1, 13, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
	0x20, 1, 13, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
	0, 80, 7, 208, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0};
static const uint8_t arp[] = {255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1};

static bool takes(const char *text, const uint8_t *frame, size_t len)
{
	uint8_t bytes[128];
	struct cv_view view = {.in = 2};
	struct cv_filter filter;

	memcpy(bytes, frame, len);
	cv_view_set(&view, bytes, (uint16_t)len);
	compile(&filter, text);
	return cv_filter_takes(&filter, cv_filter_test(&filter, &view, 2));
}

// Which of the three packets a filter takes: a bit each, in their order.
static unsigned taken(const char *text)
{
	return (unsigned)takes(text, ipv4, sizeof(ipv4)) |
	       (unsigned)takes(text, ipv6, sizeof(ipv6)) << 1 |
	       (unsigned)takes(text, arp, sizeof(arp)) << 2;
}

static void which_packets_a_filter_takes(void **state)
{
	static const struct {
		const char *text;
		unsigned takes;
	} rows[] = {
		{"", 7},
		{"ip", 1},
		{"ip6", 2},
		{"arp", 4},
		{"udp", 1},
		{"tcp", 2},
		{"icmp or icmp6", 0},
		{"vlan", 1},
		{"vlan 5", 1},
		{"vlan 6", 0},
		{"host 10.0.0.1", 1},
		{"src host 10.0.0.1", 1},
		{"dst host 10.0.0.1", 0},
		{"src 10.0.0.1", 1},
		{"net 192.0.2.0/24", 1},
		{"src net 192.0.2.0/24", 0},
		{"dst net 2001:db8:1::/48", 2},
		{"host 2001:db8::1", 2},
		{"port 53", 1},
		{"src port 53", 0},
		{"tcp port 80", 2},
		{"udp port 80", 0},
		{"tcp src port 80", 2},
		{"tcp dst port 80", 0},
		{"portrange 50-60", 1},
		{"dst portrange 1000-2000", 2},
		{"not udp", 6},
		{"! udp and ! arp", 2},
		{"udp or arp", 5},
		{"udp || arp", 5},
		{"udp && port 53", 1},
		{"in lan", 7},
		{"chain lan and not ip6", 5},
		// As pcap-filter: from the left, neither before the other.
		{"ip or ip6 and port 80", 2},
		{"ip or (ip6 and port 80)", 3},
		{"not (ip or arp)", 2},
		{"not not ip", 1},
		{"ip host 10.0.0.1", 1},
		{"drop no_route", 0},
		{"not drop no_route", 7},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (taken(rows[i].text) != rows[i].takes)
			fail_msg("\"%s\" takes %u, not %u", rows[i].text, taken(rows[i].text),
				rows[i].takes);
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"hots 10.0.0.1", "filter: column 1: \"hots\": write host, net, "},
		{"host", "filter: ends too early: give an IPv4 or IPv6 address"},
		{"host 10.0.0.0/8", "filter: column 6: \"10.0.0.0/8\": give an IPv4 or IPv6"},
		{"net 10.0.0.1/8", "filter: column 5: \"10.0.0.1/8\": has host bits set"},
		{"port 65536", "filter: column 6: \"65536\": give a port, 0 to 65535"},
		{"portrange 5-4", "filter: column 11: \"5-4\": give a range of ports"},
		{"vlan 4096", "filter: column 6: \"4096\": give a VLAN id"},
		{"ip and", "filter: ends too early: write host"},
		{"ip tcp", "filter: column 4: \"tcp\": write \"and\" or \"or\""},
		{"(ip", "filter: ends too early: \")\" is missing"},
		{"ip)", "filter: column 3: \")\": write \"and\""},
		{"in wan", "filter: column 4: \"wan\": the node has no such port"},
		{"chain x", "filter: column 7: \"x\": the node has no such chain"},
		{"drop x", "filter: column 6: \"x\": nothing drops for such a reason"},
		{"ip & tcp", "filter: column 4: \"&\": write \"and\""},
		{"ip\n", "filter: column 3: not a printable ASCII character"},
		{"((((((((((((((((((((ip))))))))))))))))))))", "filter: column 17: \"(\": nested"},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_error error = {0};
		struct cv_filter filter;

		assert_int_equal(cv_filter_compile(&filter, rows[i].text, &names, &error), -EINVAL);
		if (strncmp(error.text, rows[i].error, strlen(rows[i].error)) != 0)
			fail_msg("%s: %s", rows[i].text, error.text);
	}
}

static void a_long_one_is_refused(void **state)
{
	char text[CV_FILTER_TEXT_MAX + 10] = "ip";
	struct cv_error error = {0};
	struct cv_filter filter;

	for (unsigned i = 1; i < CV_FILTER_TERMS_MAX; i++)
		strcat(text, " or ip");
	assert_int_equal(cv_filter_compile(&filter, text, &names, &error), 0);
	strcat(text, " or ip");
	assert_int_equal(cv_filter_compile(&filter, text, &names, &error), -EINVAL);
	assert_string_equal(error.text, "filter: 32 terms are possible");
	memset(text, ' ', sizeof(text) - 1);
	error.text[0] = '\0';
	assert_int_equal(cv_filter_compile(&filter, text, &names, &error), -EINVAL);
	assert_string_equal(error.text, "filter: 1024 bytes are possible");
}

static void reasons_are_known_at_last(void **state)
{
	static const struct {
		const char *text;
		bool may, no_route, denied;
	} rows[] = {
		{"drop no_route", true, true, false},
		{"drop no_route and ip", false, false, false}, // the packet is IPv6
		{"drop no_route or ip6", true, true, true},
		{"not drop no_route", true, false, true},
		{"not (drop no_route or ip)", true, false, true},
		{"drop denied and tcp", true, false, true},
	};
	uint8_t bytes[sizeof(ipv6)];
	struct cv_view view = {.in = 0};

	memcpy(bytes, ipv6, sizeof(ipv6));
	cv_view_set(&view, bytes, sizeof(bytes));
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_filter filter;
		uint32_t terms;

		compile(&filter, rows[i].text);
		terms = cv_filter_test(&filter, &view, 0);
		assert_int_equal(cv_filter_may_take(&filter, terms), rows[i].may);
		assert_int_equal(
			cv_filter_takes(&filter, cv_filter_dropped(&filter, terms, "no_route")),
			rows[i].no_route);
		assert_int_equal(
			cv_filter_takes(&filter, cv_filter_dropped(&filter, terms, "denied")),
			rows[i].denied);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_packets_a_filter_takes),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(a_long_one_is_refused),
		cmocka_unit_test(reasons_are_known_at_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
