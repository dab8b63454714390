// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Routes and neighbours as lines of text.
#include <errno.h>
#include <string.h>

#include "nf/router/route_text.h"
#include "nf/router/routes.h"

#define LINE_MAX_BYTES 512

// True for prefixes that `ip -6 route` prints but a router never forwards to.
static bool not_forwarded(const struct cv_prefix *prefix)
{
	const uint8_t *bytes = prefix->address.bytes;

	if (!prefix->address.v6)
		return false;
	return (prefix->length >= 8 && bytes[0] == 0xff) ||
	       (prefix->length >= 10 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80);
}

static bool is_one_of(const char *word, const char *const *list)
{
	while (*list != NULL && strcmp(word, *list) != 0)
		list++;
	return *list != NULL;
}

// Reads the words behind the prefix. Returns 0 or -EINVAL with error set.
static int parse_rest(const struct cv_routes *routes, char **save, const char *where,
	struct cv_route *route, bool *has_port, struct cv_error *error)
{
	static const char *const refused[] = {"nexthop", "encap", NULL};
	const char *word, *value;

	while ((word = strtok_r(NULL, " \t\r\n", save)) != NULL) {
		if (strcmp(word, "via") == 0) {
			value = strtok_r(NULL, " \t\r\n", save);
			if (value != NULL &&
				(strcmp(value, "inet") == 0 || strcmp(value, "inet6") == 0))
				value = strtok_r(NULL, " \t\r\n", save);
			if (cv_route_text_via(value, where, &route->via, error) != 0)
				return -EINVAL;
			route->kind = CV_ROUTE_VIA;
		} else if (strcmp(word, "dev") == 0) {
			value = strtok_r(NULL, " \t\r\n", save);
			if (cv_route_text_port(routes->env, value ? value : "", where, &route->port,
				    error) != 0)
				return -EINVAL;
			*has_port = true;
		} else if (is_one_of(word, refused)) {
			cv_error_set(error,
				"%s: \"%s\" is not supported; give the route one via and dev",
				where, word);
			return -EINVAL;
		}
	}
	return 0;
}

// Parses one line, in place. Returns 1: *route is set, 0: nothing to route, -EINVAL.
static int parse_route_line(const struct cv_routes *routes, char *line, const char *where,
	struct cv_route *route, struct cv_error *error)
{
	static const char *const discard[] = {"blackhole", "unreachable", "prohibit", NULL};
	static const char *const refused[] = {
		"local", "broadcast", "multicast", "anycast", "throw", "nat", "nexthop", NULL};
	char *save = NULL, *word = strtok_r(line, " \t\r\n", &save);
	bool has_port = false, discarded, defaults;

	if (word == NULL || word[0] == '#')
		return 0;
	if (is_one_of(word, refused)) {
		cv_error_set(
			error, "%s: \"%s\" routes are not supported; remove the line", where, word);
		return -EINVAL;
	}
	discarded = is_one_of(word, discard);
	if (discarded || strcmp(word, "unicast") == 0)
		word = strtok_r(NULL, " \t\r\n", &save);
	if (word == NULL) {
		cv_error_set(error, "%s: no prefix; write PREFIX [via NEXTHOP] dev PORT", where);
		return -EINVAL;
	}
	defaults = strcmp(word, "default") == 0;
	if (!defaults && cv_route_text_prefix(word, where, &route->prefix, error) != 0)
		return -EINVAL;
	if (discarded) {
		route->kind = CV_ROUTE_DISCARD;
		return !not_forwarded(&route->prefix);
	}
	// Before the port is looked up: these are printed for interfaces that are no ports, too.
	if (!defaults && not_forwarded(&route->prefix))
		return 0;
	if (parse_rest(routes, &save, where, route, &has_port, error) != 0)
		return -EINVAL;
	if (!has_port) {
		cv_error_set(error, "%s: the route names no port; add: dev PORT", where);
		return -EINVAL;
	}
	route->prefix.address.v6 |= defaults && route->via.v6;
	return 1;
}

// Reads the next line, without its end. Returns 1, 0 at the end, or a negative errno.
static int next_line(FILE *file, char *line, const char *where, struct cv_error *error)
{
	size_t length;

	line[LINE_MAX_BYTES] = '\0';
	if (fgets(line, LINE_MAX_BYTES, file) == NULL) {
		if (!ferror(file))
			return 0;
		cv_error_set(error, "%s: cannot be read: %s", where, strerror(errno));
		return -EIO;
	}
	length = strlen(line);
	if (length == 0 || (line[length - 1] != '\n' && !feof(file))) {
		cv_error_set(error, "%s: the line is longer than %d bytes or has a zero byte",
			where, LINE_MAX_BYTES - 2);
		return -EINVAL;
	}
	return 1;
}

int cv_routes_read(struct cv_routes *routes, FILE *file, struct cv_error *error)
{
	char line[LINE_MAX_BYTES + 1], where[CV_WHERE_TEXT];

	for (uint32_t number = 1;; number++) {
		struct cv_route route = {.from_file = true, .line = number};
		int rc;

		cv_route_where(routes, &route, where, sizeof(where));
		rc = next_line(file, line, where, error);
		if (rc <= 0)
			return rc;
		rc = parse_route_line(routes, line, where, &route, error);
		if (rc < 0)
			return rc;
		if (rc > 0 && cv_routes_add(routes, &route, error) != 0)
			return -ENOMEM;
	}
}

// Parses one line, in place. Returns 1: *neighbour is set, 0: nothing there, -EINVAL.
static int parse_neighbour_line(const struct cv_routes *routes, char *line, const char *where,
	struct cv_neighbour *neighbour, struct cv_error *error)
{
	char *save = NULL, *word = strtok_r(line, " \t\r\n", &save);
	uint8_t port;

	if (word == NULL || word[0] == '#')
		return 0;
	if (cv_route_text_via(word, where, &neighbour->address, error) != 0)
		return -EINVAL;
	word = strtok_r(NULL, " \t\r\n", &save);
	if (word != NULL && strcmp(word, "dev") == 0) {
		word = strtok_r(NULL, " \t\r\n", &save);
		if (cv_route_text_port(routes->env, word ? word : "", where, &port, error) != 0)
			return -EINVAL;
		neighbour->port = port;
		word = strtok_r(NULL, " \t\r\n", &save);
	}
	if (word != NULL && strcmp(word, "lladdr") == 0)
		word = strtok_r(NULL, " \t\r\n", &save);
	else if (word == NULL || strchr(word, ':') == NULL)
		return 0; // FAILED or INCOMPLETE: `ip neighbour` knows no address either
	return cv_route_text_mac(word ? word : "", where, neighbour->mac, error) == 0 ? 1 : -EINVAL;
}

int cv_neighbours_read(struct cv_routes *routes, FILE *file, struct cv_error *error)
{
	char line[LINE_MAX_BYTES + 1], where[CV_WHERE_TEXT];

	for (uint32_t number = 1;; number++) {
		struct cv_neighbour neighbour = {.port = -1, .from_file = true, .line = number};
		int rc;

		cv_neighbour_where(routes, &neighbour, where, sizeof(where));
		rc = next_line(file, line, where, error);
		if (rc <= 0)
			return rc;
		rc = parse_neighbour_line(routes, line, where, &neighbour, error);
		if (rc < 0)
			return rc;
		if (rc > 0 && cv_neighbours_add(routes, &neighbour, error) != 0)
			return -ENOMEM;
	}
}
