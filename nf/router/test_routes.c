// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Routes and neighbours as text: what lines mean, and what each error says.
#include <errno.h>

#include "nf/router/routes.h"
#include "tests/support/test_packets.h"

static int read_text(struct cv_routes *routes, const char *text, size_t length,
	int (*reader)(struct cv_routes *, FILE *, struct cv_error *), struct cv_error *error)
{
	FILE *file = fmemopen((void *)text, length, "r");
	int rc;

	assert_non_null(file);
	*routes = (struct cv_routes){
		.env = packet_env(), .file = "r.txt", .neighbours_file = "n.txt"};
	error->text[0] = '\0';
	rc = reader(routes, file, error);
	fclose(file);
	return rc;
}

// A route as one line: PREFIX via NEXTHOP PORT, or PREFIX PORT, or PREFIX blackhole ...
static const char *shown(const struct cv_routes *routes, const struct cv_route *route, char *text)
{
	static const char *const nowhere[] = {[CV_ROUTE_BLACKHOLE] = "blackhole",
		[CV_ROUTE_UNREACHABLE] = "unreachable",
		[CV_ROUTE_PROHIBIT] = "prohibit"};
	char prefix[CV_PREFIX_TEXT], via[CV_PREFIX_TEXT];

	cv_prefix_text(&route->prefix, prefix);
	if (nowhere[route->kind] != NULL)
		sprintf(text, "%s %s", prefix, nowhere[route->kind]);
	else if (route->kind == CV_ROUTE_CONNECTED)
		sprintf(text, "%s %s", prefix, routes->env->ports[route->port]);
	else
		sprintf(text, "%s via %s %s", prefix, cv_address_text(&route->via, via),
			routes->env->ports[route->port]);
	return text;
}

static void lines_that_are_routes(void **state)
{
	static const struct {
		const char *line, *route; // "": nothing
	} rows[] = {
		{"10.0.0.0/8 via 192.0.2.1 dev right", "10.0.0.0/8 via 192.0.2.1 right"},
		{"10.0.0.0/8 via 192.0.2.1 dev right \n", "10.0.0.0/8 via 192.0.2.1 right"},
		{"10.0.0.0/8 via 192.0.2.1 dev right\r\n", "10.0.0.0/8 via 192.0.2.1 right"},
		{"default via 192.0.2.1 dev left proto dhcp src 192.0.2.7 metric 100",
			"0.0.0.0/0 via 192.0.2.1 left"},
		{"default via fe80::1 dev left proto ra metric 1024 expires 1799sec pref medium",
			"::/0 via fe80::1 left"},
		{"default dev third scope link", "0.0.0.0/0 third"},
		{"192.0.2.0/24 dev left proto kernel scope link src 192.0.2.7",
			"192.0.2.0/24 left"},
		{"198.51.100.7 dev right scope link", "198.51.100.7/32 right"},
		{"198.51.100.8 dev right via 192.0.2.1 onlink",
			"198.51.100.8/32 via 192.0.2.1 right"},
		{"unicast 10.0.0.0/8 dev left", "10.0.0.0/8 left"},
		{"10.1.0.0/16 via inet6 fe80::1 dev left", "10.1.0.0/16 via fe80::1 left"},
		{"2001:db8::/32 via 2001:db8:ffff::1 dev fourth metric 1024 pref medium",
			"2001:db8::/32 via 2001:db8:ffff::1 fourth"},
		{"blackhole 10.9.0.0/16", "10.9.0.0/16 blackhole"},
		{"unreachable default dev lo metric 4294967295 error -101 pref medium",
			"0.0.0.0/0 unreachable"},
		{"prohibit 2001:db8::/48 dev lo metric 1024", "2001:db8::/48 prohibit"},
		{"fe80::/64 dev eth7 proto kernel metric 256 pref medium", ""},
		{"ff00::/8 dev eth7", ""},
		{"unreachable fe80::/10", ""},
		{"", ""},
		{"   \t ", ""},
		{"# 10.0.0.0/8 dev nowhere", ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_routes routes;
		struct cv_error error;
		char text[200];
		FILE *file = tmpfile(); // an empty text is a file, too
		int rc;

		assert_non_null(file);
		fputs(rows[i].line, file);
		rewind(file);
		routes = (struct cv_routes){.env = packet_env(), .file = "r.txt"};
		error.text[0] = '\0';
		rc = cv_routes_read(&routes, file, &error);
		fclose(file);
		if (rc != 0) {
			fail_msg("%s: %s", rows[i].line, error.text);
		} else if (routes.routes != (rows[i].route[0] != '\0')) {
			fail_msg("%s: %zu routes", rows[i].line, routes.routes);
		} else if (routes.routes == 1) {
			assert_string_equal(shown(&routes, &routes.route[0], text), rows[i].route);
			assert_int_equal(routes.route[0].line, 1);
		}
		cv_routes_free(&routes);
	}
}

// Next hops in one line, as `ip -o route` prints them, and in lines of their own.
static void several_next_hops(void **state)
{
	static const struct {
		const char *text;
		unsigned line; // of them all
	} rows[] = {
		{"10.0.0.0/8 nexthop via 192.0.2.1 dev left nexthop via 192.0.2.2 dev right", 1},
		{"10.0.0.0/8 proto static \\\tnexthop via 192.0.2.1 dev left weight 1 "
		 "\\\tnexthop via 192.0.2.2 dev right weight 1 ",
			1},
		{"\n10.0.0.0/8 proto static \n\tnexthop via 192.0.2.1 dev left weight 1 \n"
		 "\tnexthop via 192.0.2.2 dev right weight 1 \n",
			2},
		{"10.0.0.0/8 via 192.0.2.1 dev left\nnexthop via 192.0.2.2 dev right", 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_routes routes;
		struct cv_error error;
		char text[200];

		if (read_text(&routes, rows[i].text, strlen(rows[i].text), cv_routes_read,
			    &error) != 0 ||
			cv_routes_sort(&routes, &error) != 0)
			fail_msg("%s: %s", rows[i].text, error.text);
		assert_int_equal(routes.routes, 2);
		assert_string_equal(
			shown(&routes, &routes.route[0], text), "10.0.0.0/8 via 192.0.2.1 left");
		assert_string_equal(
			shown(&routes, &routes.route[1], text), "10.0.0.0/8 via 192.0.2.2 right");
		assert_true(cv_route_same(&routes.route[0], &routes.route[1]));
		assert_int_equal(routes.route[0].line, rows[i].line);
		cv_routes_free(&routes);
	}
}

static void lines_that_are_refused(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"10.0.0.0/8 via 192.0.2.1 dev wrong", "r.txt:1: no port is called \"wrong\"; the "
						       "ports are left, right, third, fourth"},
		{"10.0.0.0/8 dev left\n\n10.0.0.1/8 dev left\n",
			"r.txt:3: 10.0.0.1/8 has bits set behind its length; write 10.0.0.0/8"},
		{"10.0.0.0/33 dev left",
			"r.txt:1: \"10.0.0.0/33\" is not a prefix; write one like"},
		{"10.0.0/8 dev left", "r.txt:1: \"10.0.0/8\" is not a prefix"},
		{"10.0.0.0/8 via gateway dev left", "r.txt:1: via \"gateway\" is not an address"},
		{"10.0.0.0/8 via 224.0.0.1 dev left",
			"via 224.0.0.1 is not the address of a station"},
		{"10.0.0.0/8 via", "via \"\" is not an address"},
		{"10.0.0.0/8 dev", "no port is called \"\""},
		{"10.0.0.0/8 via 192.0.2.1",
			"r.txt:1: via 192.0.2.1 is in no connected network; add dev PORT, or an "
			"address of its network under addresses"},
		{"10.0.0.0/8", "the route names no port"},
		{"blackhole", "no prefix; write PREFIX [via NEXTHOP] dev PORT"},
		{"local 127.0.0.1 dev lo", "\"local\" routes are not supported; remove the line"},
		{"10.0.0.0/8 proto static\n10.1.0.0/16 dev left",
			"r.txt:1: the route names no port"},
		{"nexthop via 192.0.2.1 dev left", "\"nexthop\" routes are not supported"},
		{"10.0.0.0/8 nexthop weight 1", "the route names no port"},
		{"10.0.0.0/8 encap mpls 16 via 192.0.2.1 dev left", "\"encap\" is not supported"},
		{"10.0.0.0/8 dev left\0\n",
			"r.txt:1: the line is longer than 510 bytes or has a zero"},
	};
	char longest[2000];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_routes routes;
		struct cv_error error;
		size_t length = strlen(rows[i].text);

		if (read_text(&routes, rows[i].text,
			    length + (i + 1 == sizeof(rows) / sizeof(rows[0]) ? 2 : 0),
			    cv_routes_read, &error) != -EINVAL)
			fail_msg("accepted: %s", rows[i].text);
		if (strstr(error.text, rows[i].error) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, error.text,
				rows[i].error);
		cv_routes_free(&routes);
	}
	memset(longest, ' ', sizeof(longest));
	struct cv_routes routes;
	struct cv_error error;

	assert_int_equal(
		read_text(&routes, longest, sizeof(longest), cv_routes_read, &error), -EINVAL);
	assert_non_null(strstr(error.text, "r.txt:1: the line is longer than 510 bytes"));
	cv_routes_free(&routes);
}

static void neighbour_lines(void **state)
{
	static const char text[] = "# as `ip neighbour` prints them\n"
				   "192.0.2.1 dev left lladdr 02:00:00:00:00:01 REACHABLE\n"
				   "192.0.2.9 dev left FAILED\n"
				   "192.0.2.2 02:00:00:00:00:02\n"
				   "fe80::1 dev left lladdr 02:00:00:00:00:03 router STALE\n"
				   "fe80::1 dev right lladdr 02:00:00:00:00:04 STALE\n"
				   "fe80::1 lladdr 02:00:00:00:00:05\n";
	static const struct {
		const char *address;
		unsigned port;
		int mac; // its last byte; -1: not known
	} rows[] = {
		{"192.0.2.1", 0, 1},
		{"192.0.2.1", 1, -1},
		{"192.0.2.2", 0, 2},
		{"192.0.2.2", 3, 2},
		{"192.0.2.9", 0, -1},
		{"192.0.2.0", 0, -1},
		{"fe80::1", 0, 3},
		{"fe80::1", 1, 4},
		{"fe80::1", 2, 5},
		{"fe80::2", 0, -1},
	};
	static const struct {
		const char *text, *error;
	} refused[] = {
		{"192.0.2.1 dev wrong lladdr 02:00:00:00:00:01",
			"n.txt:1: no port is called \"wrong\""},
		{"192.0.2.1 lladdr 01:00:5e:00:00:01", "is not the MAC address of a station"},
		{"192.0.2.1 lladdr", "n.txt:1: \"\" is not the MAC address of a station"},
		{"gateway lladdr 02:00:00:00:00:01", "via \"gateway\" is not an address"},
		{"192.0.2.1 02:00:00:00:00", "\"02:00:00:00:00\" is not the MAC address"},
	};
	struct cv_routes routes;
	struct cv_error error;

	if (read_text(&routes, text, sizeof(text) - 1, cv_neighbours_read, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(cv_routes_sort(&routes, &error), 0);
	assert_int_equal(routes.neighbours, 5);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cv_address address;
		const struct cv_neighbour *neighbour;

		assert_int_equal(cv_address_parse(rows[i].address, &address), 0);
		neighbour = cv_routes_neighbour(&routes, &address, rows[i].port);
		print_message("%s on %u\n", rows[i].address, rows[i].port);
		assert_int_equal(neighbour != NULL ? neighbour->mac[5] : -1, rows[i].mac);
	}
	cv_routes_free(&routes);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (read_text(&routes, refused[i].text, strlen(refused[i].text), cv_neighbours_read,
			    &error) != -EINVAL)
			fail_msg("accepted: %s", refused[i].text);
		if (strstr(error.text, refused[i].error) == NULL)
			fail_msg("%s: \"%s\"", refused[i].text, error.text);
		cv_routes_free(&routes);
	}
}

static void duplicates_are_named(void **state)
{
	static const char text[] = "10.0.0.0/8 dev left\n"
				   "10.0.0.0/9 dev left\n"
				   "blackhole 10.0.0.0/8\n";
	struct cv_routes routes;
	struct cv_error error;

	assert_int_equal(read_text(&routes, text, sizeof(text) - 1, cv_routes_read, &error), 0);
	assert_int_equal(cv_routes_sort(&routes, &error), -EINVAL);
	assert_string_equal(error.text,
		"r.txt:3: a second route to 10.0.0.0/8, the first is r.txt:1; remove one");
	cv_routes_free(&routes);

	static const char neighbours[] = "192.0.2.1 02:00:00:00:00:01\n192.0.2.1 02:00:00:00:00:02";

	assert_int_equal(
		read_text(&routes, neighbours, sizeof(neighbours) - 1, cv_neighbours_read, &error),
		0);
	assert_int_equal(cv_routes_sort(&routes, &error), -EINVAL);
	assert_non_null(strstr(error.text, "a second entry for 192.0.2.1, the other is n.txt:"));
	cv_routes_free(&routes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_that_are_routes),
		cmocka_unit_test(several_next_hops),
		cmocka_unit_test(lines_that_are_refused),
		cmocka_unit_test(neighbour_lines),
		cmocka_unit_test(duplicates_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
