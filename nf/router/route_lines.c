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

// The route that is being read: next hops of it may stand in the lines that follow.
struct route_reader {
	struct cv_routes *routes;
	const char *where; // the line
	struct cv_route route; // as far as its next hops have it in common
	bool defaults; // of the IP version that its next hop has
	bool begun; // a "nexthop" line may follow
	bool awaits; // one must
	struct cv_error *error;
};

static const char *next_word(char **save)
{
	return strtok_r(NULL, " \t\r\n\\", save);
}

// Reads what stands behind "via" or "dev". Returns 0 or -EINVAL with error set.
static int parse_value(struct route_reader *reader, const char *word, char **save,
	struct cv_route *route, bool *has_port)
{
	const char *value = next_word(save);

	if (strcmp(word, "dev") == 0) {
		*has_port = true;
		return cv_route_text_port(reader->routes->env, value ? value : "", reader->where,
			&route->port, reader->error);
	}
	if (value != NULL && (strcmp(value, "inet") == 0 || strcmp(value, "inet6") == 0))
		value = next_word(save);
	route->kind = CV_ROUTE_VIA;
	return cv_route_text_via(value, reader->where, &route->via, reader->error);
}

// Reads the words of a next hop and adds it. Returns 1: another stands behind it, 0: the line ends,
// or a negative errno with error set.
static int parse_next_hop(struct route_reader *reader, char **save, bool first)
{
	struct cv_route route = reader->route;
	bool has_port = false;
	const char *word;

	while ((word = next_word(save)) != NULL && strcmp(word, "nexthop") != 0) {
		if (strcmp(word, "encap") == 0) {
			cv_error_set(reader->error,
				"%s: \"encap\" is not supported; remove the line", reader->where);
			return -EINVAL;
		}
		if ((strcmp(word, "via") == 0 || strcmp(word, "dev") == 0) &&
			parse_value(reader, word, save, &route, &has_port) != 0)
			return -EINVAL;
	}
	if (first && !has_port && route.kind == CV_ROUTE_CONNECTED) {
		reader->awaits = word == NULL;
		return word != NULL;
	}
	reader->awaits = false;
	if (!has_port &&
		cv_route_find_port(reader->routes, &route, reader->where, reader->error) != 0)
		return -EINVAL;
	route.prefix.address.v6 |= reader->defaults && route.via.v6;
	if (cv_routes_add(reader->routes, &route, reader->error) != 0)
		return -ENOMEM;
	return word != NULL;
}

static int parse_next_hops(struct route_reader *reader, char **save, bool first)
{
	int more;

	reader->begun = true;
	while ((more = parse_next_hop(reader, save, first)) > 0)
		first = false;
	return more;
}

// The kind of a route that leads nowhere, or CV_ROUTE_CONNECTED.
static enum cv_route_kind discards(const char *word)
{
	if (strcmp(word, "blackhole") == 0)
		return CV_ROUTE_BLACKHOLE;
	if (strcmp(word, "unreachable") == 0)
		return CV_ROUTE_UNREACHABLE;
	return strcmp(word, "prohibit") == 0 ? CV_ROUTE_PROHIBIT : CV_ROUTE_CONNECTED;
}

static int route_without_port(const struct route_reader *reader)
{
	char where[CV_WHERE_TEXT];

	cv_error_set(reader->error, "%s: the route names no port; add: dev PORT",
		cv_route_where(reader->routes, &reader->route, where, sizeof(where)));
	return -EINVAL;
}

// Parses one line, in place, and adds what it has. Returns 0 or a negative errno with error set.
static int parse_route_line(struct route_reader *reader, char *line, uint32_t number)
{
	static const char *const refused[] = {
		"local", "broadcast", "multicast", "anycast", "throw", "nat", NULL};
	char *save = NULL;
	const char *word = strtok_r(line, " \t\r\n", &save);
	struct cv_route *route = &reader->route;

	if (word == NULL || word[0] == '#')
		return 0;
	if (strcmp(word, "nexthop") == 0 && reader->begun)
		return parse_next_hops(reader, &save, false);
	if (reader->awaits)
		return route_without_port(reader);
	if (is_one_of(word, refused) || strcmp(word, "nexthop") == 0) {
		cv_error_set(reader->error, "%s: \"%s\" routes are not supported; remove the line",
			reader->where, word);
		return -EINVAL;
	}
	*route = (struct cv_route){.from_file = true, .line = number, .kind = discards(word)};
	reader->begun = false;
	if (route->kind != CV_ROUTE_CONNECTED || strcmp(word, "unicast") == 0)
		word = next_word(&save);
	if (word == NULL) {
		cv_error_set(reader->error, "%s: no prefix; write PREFIX [via NEXTHOP] dev PORT",
			reader->where);
		return -EINVAL;
	}
	reader->defaults = strcmp(word, "default") == 0;
	if (!reader->defaults &&
		cv_route_text_prefix(word, reader->where, &route->prefix, reader->error) != 0)
		return -EINVAL;
	// Before the port is looked up: these are printed for interfaces that are no ports, too.
	if (!reader->defaults && not_forwarded(&route->prefix))
		return 0;
	if (route->kind != CV_ROUTE_CONNECTED)
		return cv_routes_add(reader->routes, route, reader->error);
	return parse_next_hops(reader, &save, true);
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
	struct route_reader reader = {.routes = routes, .where = where, .error = error};

	for (uint32_t number = 1;; number++) {
		const struct cv_route route = {.from_file = true, .line = number};
		int rc;

		cv_route_where(routes, &route, where, sizeof(where));
		rc = next_line(file, line, where, error);
		if (rc == 0 && reader.awaits)
			return route_without_port(&reader);
		if (rc <= 0)
			return rc;
		rc = parse_route_line(&reader, line, number);
		if (rc < 0)
			return rc;
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
