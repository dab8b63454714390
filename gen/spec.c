// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "spec.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ether.h"

enum type { NUMBER, UNSIGNED, FLAG, STRING, MAC, IP, INTEGERS, CUSTOM };

struct reader {
	char *error;
	size_t error_size;
	const char *where; // "" or the object's name and a dot
	struct gen_spec *spec;
	uint32_t ports;
};

// One key of an object, bound to a member of gen_spec.
struct field {
	const char *key;
	enum type type;
	size_t offset;
	double min, max;
	int (*custom)(struct reader *reader, const char *key, json_t *value);
};

static int __attribute__((format(printf, 2, 3)))
fail(struct reader *reader, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reader->error, reader->error_size, format, arguments);
	va_end(arguments);
	return -1;
}

// How many bytes of a text, at most max, are whole characters: half of one (UTF-8) would make no
// JSON of the answer.
static int cut(const char *text, size_t max)
{
	size_t length = strnlen(text, max + 1);

	if (length <= max)
		return (int)length;
	while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80)
		max--;
	return (int)max;
}

// "field", shown as the user wrote it.
static int wrong(struct reader *reader, const char *key, const json_t *value, const char *fix)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	const char *shown = text != NULL ? text : "?";

	fail(reader, "spec: %s%s: %.*s: %s", reader->where, key, cut(shown, 80), shown, fix);
	free(text);
	return -1;
}

static int read_number(
	struct reader *reader, const struct field *field, const json_t *value, double *number)
{
	char fix[96];

	*number = json_number_value(value);
	if (json_is_number(value) && *number >= field->min && *number <= field->max &&
		(field->type != UNSIGNED || json_is_integer(value)))
		return 0;
	snprintf(fix, sizeof(fix), "must be %s from %.15g to %.15g",
		field->type == UNSIGNED ? "a whole number" : "a number", field->min, field->max);
	return wrong(reader, field->key, value, fix);
}

// "5", "5-9", 5, "10.0.0.1", "10.0.0.1-10.0.0.9", "10.0.0.0/24".
static bool parse_point(const char *text, int family, uint64_t max, uint8_t low[16])
{
	memset(low, 0, 16);
	if (family == AF_INET)
		return inet_pton(AF_INET, text, low + 12) == 1;
	if (family == AF_INET6)
		return inet_pton(AF_INET6, text, low) == 1;
	char *end;
	const unsigned long long number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || number > max)
		return false;
	for (int i = 0; i < 8; i++)
		low[15 - i] = (uint8_t)(number >> (8 * i));
	return true;
}

static uint64_t low_half(const uint8_t address[16])
{
	uint64_t value = 0;

	for (int i = 8; i < 16; i++)
		value = value << 8 | address[i];
	return value;
}

static bool parse_range(const char *text, int family, uint64_t max, struct gen_range *range)
{
	char first[64];
	const char *mark = strpbrk(text, "-/");
	const size_t length = mark != NULL ? (size_t)(mark - text) : strlen(text);

	if (length >= sizeof(first))
		return false;
	memcpy(first, text, length);
	first[length] = '\0';
	if (!parse_point(first, family, max, range->low))
		return false;
	range->span = 1;
	if (mark == NULL)
		return true;
	if (*mark == '/') {
		const uint32_t bits = family == AF_INET6 ? 128 : 32;
		char *end;
		const unsigned long prefix = strtoul(mark + 1, &end, 10);

		if (family == 0 || mark[1] < '0' || mark[1] > '9' || *end != '\0' || prefix > bits)
			return false;
		const uint32_t host = bits - (uint32_t)prefix;
		if (host > 32)
			return false;
		range->span = 1ull << host;
		// The prefix's own address, whatever host bits were written.
		const uint64_t low = low_half(range->low) & ~(range->span - 1);
		for (int i = 0; i < 8; i++)
			range->low[15 - i] = (uint8_t)(low >> (8 * i));
		return true;
	}
	uint8_t last[16];
	if (!parse_point(mark + 1, family, max, last) || memcmp(last, range->low, 8) != 0 ||
		low_half(last) < low_half(range->low) ||
		low_half(last) - low_half(range->low) > UINT32_MAX)
		return false;
	range->span = low_half(last) - low_half(range->low) + 1;
	return true;
}

static int read_range(struct reader *reader, const char *key, json_t *value, int family,
	uint64_t max, struct gen_range *range, const char *fix)
{
	char number[24];
	const char *text = json_string_value(value);

	if (text == NULL && json_is_integer(value) && json_integer_value(value) >= 0) {
		snprintf(number, sizeof(number), "%" PRId64, (int64_t)json_integer_value(value));
		text = number;
	}
	if (text == NULL || !parse_range(text, family, max, range))
		return wrong(reader, key, value, fix);
	return 0;
}

static int read_port_range(struct reader *reader, const char *key, json_t *value)
{
	struct gen_flows *flows = &reader->spec->flows;

	return read_range(reader, key, value, 0, 65535,
		key[0] == 's' ? &flows->src_port : &flows->dst_port,
		"must be a port (53) or a range (\"1024-2047\") within 0-65535");
}

static int read_vlan(struct reader *reader, const char *key, json_t *value)
{
	reader->spec->flows.tagged = true;
	return read_range(reader, key, value, 0, 4094, &reader->spec->flows.vlan,
		"must be a VLAN id (100) or a range (\"100-199\") within 0-4094");
}

static int read_address(struct reader *reader, const char *key, json_t *value)
{
	struct gen_flows *flows = &reader->spec->flows;

	return read_range(reader, key, value, flows->ip == 6 ? AF_INET6 : AF_INET, 0,
		key[0] == 's' ? &flows->src_ip : &flows->dst_ip,
		flows->ip == 6 ? "must be an IPv6 address, A-B, or a prefix of /96 or longer"
			       : "must be an IPv4 address, \"10.0.0.1-10.0.0.9\" or "
				 "\"10.0.0.0/24\" (for IPv6 set flows.ip to 6)");
}

static int read_mac(struct reader *reader, const char *key, json_t *value)
{
	struct gen_flows *flows = &reader->spec->flows;
	uint8_t *mac = key[0] == 's' ? flows->src_mac : flows->dst_mac;
	const char *text = json_string_value(value);
	int end = 0;

	if (text == NULL ||
		sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
			&mac[3], &mac[4], &mac[5], &end) != 6 ||
		text[end] != '\0')
		return wrong(reader, key, value, "must be a MAC address like 02:00:00:00:00:01");
	return 0;
}

static int read_protocol(struct reader *reader, const char *key, json_t *value)
{
	const char *text = json_string_value(value);

	if (text != NULL && strcmp(text, "udp") == 0)
		reader->spec->flows.protocol = GEN_UDP;
	else if (text != NULL && strcmp(text, "tcp") == 0)
		reader->spec->flows.protocol = GEN_TCP;
	else
		return wrong(reader, key, value, "must be \"udp\" or \"tcp\"");
	return 0;
}

static int read_ip(struct reader *reader, const char *key, json_t *value)
{
	reader->spec->flows.ip = (uint32_t)json_integer_value(value);
	if (reader->spec->flows.ip != 4 && reader->spec->flows.ip != 6)
		return wrong(reader, key, value, "must be 4 or 6");
	return 0;
}

static int read_order(struct reader *reader, const char *key, json_t *value)
{
	const char *text = json_string_value(value);

	reader->spec->flows.shuffle = text != NULL && strcmp(text, "shuffle") == 0;
	if (!reader->spec->flows.shuffle && (text == NULL || strcmp(text, "sequential") != 0))
		return wrong(reader, key, value, "must be \"shuffle\" or \"sequential\"");
	return 0;
}

static int read_rate(struct reader *reader, const char *key, json_t *value)
{
	const struct field bounds = {.key = key, .type = NUMBER, .min = 0.01, .max = 1e9};

	if (json_is_string(value) && strcmp(json_string_value(value), "max") == 0) {
		reader->spec->rate_pps = 0;
		return 0;
	}
	if (json_is_string(value))
		return wrong(reader, key, value, "must be packets per second, or \"max\"");
	return read_number(reader, &bounds, value, &reader->spec->rate_pps);
}

static int read_seed(struct reader *reader, const char *key, json_t *value)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return wrong(reader, key, value, "must be a whole number, 0 or more");
	reader->spec->seed = (uint64_t)json_integer_value(value);
	return 0;
}

static int read_on_full(struct reader *reader, const char *key, json_t *value)
{
	const char *text = json_string_value(value);

	reader->spec->drop_when_full = text != NULL && strcmp(text, "drop") == 0;
	if (!reader->spec->drop_when_full && (text == NULL || strcmp(text, "wait") != 0))
		return wrong(reader, key, value, "must be \"wait\" or \"drop\"");
	return 0;
}

static int read_paths(struct reader *reader, const char *key, json_t *value)
{
	struct gen_spec *spec = reader->spec;
	json_t *entry;
	size_t i;

	spec->path_count = 0;
	if (!json_is_array(value) || json_array_size(value) == 0 ||
		json_array_size(value) > GEN_MAX_PATHS)
		return wrong(reader, key, value, "must be a list of 1 to 16 paths like \"0>1\"");
	json_array_foreach (value, i, entry) {
		struct gen_path *path = &spec->paths[spec->path_count++];
		const char *text = json_string_value(entry);
		int end = 0;

		if (text == NULL || sscanf(text, "%2u>%2u%n", &path->from, &path->to, &end) != 2 ||
			text[end] != '\0' || path->from >= reader->ports ||
			path->to >= reader->ports) {
			char fix[96];
			snprintf(fix, sizeof(fix), "must be FROM>TO with ports 0 to %u (--port)",
				reader->ports - 1);
			return wrong(reader, key, entry, fix);
		}
	}
	return 0;
}

static int read_object(
	struct reader *reader, const char *name, const json_t *object, const struct field *fields)
{
	const struct reader outer = *reader;
	char where[64];
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return wrong(reader, name, object, "must be an object {…}");
	snprintf(where, sizeof(where), "%s%s%s", outer.where, name, *name != '\0' ? "." : "");
	reader->where = where;
	json_object_foreach ((json_t *)object, key, value) {
		const struct field *field = fields;

		while (field->key != NULL && strcmp(field->key, key) != 0)
			field++;
		if (field->key != NULL)
			continue;
		char known[256] = "";
		for (field = fields; field->key != NULL; field++) {
			strncat(known, " ", sizeof(known) - strlen(known) - 1);
			strncat(known, field->key, sizeof(known) - strlen(known) - 1);
		}
		return fail(reader, "spec: %s%.*s: unknown; known are:%s", where, cut(key, 40), key,
			known);
	}
	// In the table's order, so that a field may rely on those before it.
	for (const struct field *field = fields; field->key != NULL; field++) {
		char *target = (char *)reader->spec + field->offset;
		double number;

		value = json_object_get(object, field->key);
		if (value == NULL)
			continue;
		switch (field->type) {
		case NUMBER:
			if (read_number(reader, field, value, (double *)target) < 0)
				return -1;
			break;
		case UNSIGNED:
			if (read_number(reader, field, value, &number) < 0)
				return -1;
			*(uint32_t *)target = (uint32_t)number;
			break;
		case FLAG:
			if (!json_is_boolean(value))
				return wrong(reader, field->key, value, "must be true or false");
			*(bool *)target = json_is_true(value);
			break;
		case STRING:
			if (!json_is_string(value) || json_string_length(value) == 0)
				return wrong(reader, field->key, value, "must be a text");
			*(const char **)target = json_string_value(value);
			break;
		default:
			if (field->custom(reader, field->key, value) < 0)
				return -1;
		}
	}
	*reader = outer;
	return 0;
}

#define AT(member) offsetof(struct gen_spec, member)

static int read_flows(struct reader *reader, const char *key, json_t *value)
{
	static const struct field fields[] = {
		{"count", UNSIGNED, AT(flows.count), 1, 1 << 24, NULL},
		{"order", CUSTOM, 0, 0, 0, read_order},
		{"ip", CUSTOM, 0, 0, 0, read_ip},
		{"protocol", CUSTOM, 0, 0, 0, read_protocol},
		{"src_mac", CUSTOM, 0, 0, 0, read_mac},
		{"dst_mac", CUSTOM, 0, 0, 0, read_mac},
		{"vlan", CUSTOM, 0, 0, 0, read_vlan},
		{"src_ip", CUSTOM, 0, 0, 0, read_address},
		{"dst_ip", CUSTOM, 0, 0, 0, read_address},
		{"src_port", CUSTOM, 0, 0, 0, read_port_range},
		{"dst_port", CUSTOM, 0, 0, 0, read_port_range},
		{0},
	};

	return read_object(reader, key, value, fields);
}

static int read_pacing(struct reader *reader, const char *key, json_t *value)
{
	static const struct field fields[] = {
		{"burst_pkts", UNSIGNED, AT(burst), 1, 65536, NULL},
		{"on_us", NUMBER, AT(on_us), 1, 1e7, NULL},
		{"off_us", NUMBER, AT(off_us), 0, 1e7, NULL},
		{0},
	};

	if (read_object(reader, key, value, fields) < 0)
		return -1;
	if (reader->spec->off_us > 0 && reader->spec->on_us == 0)
		return wrong(reader, key, value, "off_us needs on_us");
	return 0;
}

static int read_sizes(struct reader *reader, const char *key, json_t *value)
{
	static const struct field fixed = {"size", UNSIGNED, 0, 64, 65535, NULL};
	static const struct field fields[] = {{"file", STRING, AT(size_file), 0, 0, NULL}, {0}};
	struct gen_spec *spec = reader->spec;
	double number;

	if (json_is_string(value) && strcmp(json_string_value(value), "imix") == 0) {
		spec->sizes = GEN_SIZE_IMIX;
		return 0;
	}
	if (json_is_object(value) && json_object_get(value, "file") != NULL) {
		spec->sizes = GEN_SIZE_FILE;
		return read_object(reader, key, value, fields);
	}
	if (!json_is_integer(value))
		return wrong(reader, key, value,
			"must be bytes with FCS (64), \"imix\", or {\"file\": \"sizes.csv\"}");
	if (read_number(reader, &fixed, value, &number) < 0)
		return -1;
	spec->sizes = GEN_SIZE_FIXED;
	spec->frame_bytes = (uint32_t)number;
	return 0;
}

static int read_timing(struct reader *reader, const char *key, json_t *value)
{
	const char *text = json_string_value(value);

	reader->spec->capture_timing = text != NULL && strcmp(text, "original") == 0;
	if (!reader->spec->capture_timing && (text == NULL || strcmp(text, "rate") != 0))
		return wrong(reader, key, value, "must be \"original\" or \"rate\"");
	return 0;
}

static int read_capture(struct reader *reader, const char *key, json_t *value)
{
	static const struct field fields[] = {
		{"file", STRING, AT(capture), 0, 0, NULL},
		{"timing", CUSTOM, 0, 0, 0, read_timing},
		{"speed", NUMBER, AT(capture_speed), 1e-6, 1e6, NULL},
		{"loops", UNSIGNED, AT(capture_loops), 0, 1e9, NULL},
		{0},
	};

	if (read_object(reader, key, value, fields) < 0)
		return -1;
	if (reader->spec->capture == NULL)
		return wrong(reader, key, value, "needs \"file\"");
	return 0;
}

static int read_convoy_address(struct reader *reader, const char *key, json_t *value)
{
	struct cv_outer_config *outer = &reader->spec->convoy_outer;
	const char *text = json_string_value(value);
	const int family = text != NULL && strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	const uint8_t version = family == AF_INET6 ? 6 : 4;

	if (text == NULL || inet_pton(family, text, key[0] == 's' ? outer->src : outer->dst) != 1)
		return wrong(reader, key, value, "must be an IPv4 or IPv6 address");
	if (key[0] == 'd' && version != outer->version)
		return wrong(reader, key, value, "src and dst must be of one kind, IPv4 or IPv6");
	outer->version = version;
	return 0;
}

static int read_convoy_mac(struct reader *reader, const char *key, json_t *value)
{
	struct cv_outer_config *outer = &reader->spec->convoy_outer;

	if (!json_is_string(value) || !cv_mac_parse(json_string_value(value),
					      key[0] == 's' ? outer->src_mac : outer->dst_mac))
		return wrong(reader, key, value, "must be a MAC address like 02:00:00:00:00:01");
	return 0;
}

// A number that is kept in 16 bits.
static int read_convoy_number(struct reader *reader, const char *key, json_t *value)
{
	struct cv_outer_config *outer = &reader->spec->convoy_outer;
	const bool mtu = strcmp(key, "mtu") == 0;
	const struct field bounds = {.key = key,
		.type = UNSIGNED,
		.min = mtu                       ? CV_OUTER_MTU_MIN
		       : strcmp(key, "nfi") == 0 ? 0
						 : 1,
		.max = mtu ? CV_OUTER_MTU_MAX : 65535};
	double number;

	if (read_number(reader, &bounds, value, &number) < 0)
		return -1;
	*(mtu                             ? &outer->mtu
		: strcmp(key, "nfi") == 0 ? &outer->nfi
					  : &outer->port) = (uint16_t)number;
	return 0;
}

// How many packets, or an object with the outer header as well.
static int read_convoys(struct reader *reader, const char *key, json_t *value)
{
	static const struct field number = {"convoys", UNSIGNED, 0, 1, CV_CONVOY_PACKETS_MAX, NULL};
	static const struct field fields[] = {
		{"packets", UNSIGNED, AT(convoy_packets), 1, CV_CONVOY_PACKETS_MAX, NULL},
		{"src_mac", CUSTOM, 0, 0, 0, read_convoy_mac},
		{"dst_mac", CUSTOM, 0, 0, 0, read_convoy_mac},
		{"src", CUSTOM, 0, 0, 0, read_convoy_address},
		{"dst", CUSTOM, 0, 0, 0, read_convoy_address},
		{"port", CUSTOM, 0, 0, 0, read_convoy_number},
		{"nfi", CUSTOM, 0, 0, 0, read_convoy_number},
		{"mtu", CUSTOM, 0, 0, 0, read_convoy_number},
		{0},
	};
	double packets;

	if (json_is_object(value)) {
		if (read_object(reader, key, value, fields) < 0)
			return -1;
		if (reader->spec->convoy_packets == 0)
			return wrong(reader, key, value, "needs \"packets\"");
		return 0;
	}
	if (!json_is_integer(value))
		return wrong(reader, key, value,
			"must be how many packets travel together (22), or {\"packets\": 22, …}");
	if (read_number(reader, &number, value, &packets) < 0)
		return -1;
	reader->spec->convoy_packets = (uint32_t)packets;
	return 0;
}

static const struct field top[] = {
	{"id", STRING, AT(id), 0, 0, NULL},
	{"duration_s", NUMBER, AT(duration_s), 0.000001, 86400, NULL},
	{"warmup_s", NUMBER, AT(warmup_s), 0, 3600, NULL},
	{"drain_s", NUMBER, AT(drain_s), 0, 60, NULL},
	{"rate_pps", CUSTOM, 0, 0, 0, read_rate},
	{"tolerance", NUMBER, AT(tolerance), 0, 1, NULL},
	{"seed", CUSTOM, 0, 0, 0, read_seed},
	{"on_full", CUSTOM, 0, 0, 0, read_on_full},
	{"paths", CUSTOM, 0, 0, 0, read_paths},
	{"convoys", CUSTOM, 0, 0, 0, read_convoys},
	{"pacing", CUSTOM, 0, 0, 0, read_pacing},
	{"size", CUSTOM, 0, 0, 0, read_sizes},
	{"flows", CUSTOM, 0, 0, 0, read_flows},
	{"capture", CUSTOM, 0, 0, 0, read_capture},
	{0},
};

static void set_defaults(struct gen_spec *spec, uint32_t ports, bool ip6)
{
	*spec = (struct gen_spec){
		.duration_s = 1,
		.drain_s = 0.2,
		.rate_pps = 100000,
		.tolerance = 0.001,
		.seed = 1,
		.burst = 1,
		.sizes = GEN_SIZE_FIXED,
		.frame_bytes = 64,
		.path_count = 1,
		.paths = {{0, ports > 1 ? 1 : 0}},
		.flows = {.count = 1,
			.ip = 4,
			.protocol = GEN_UDP,
			.src_mac = {2, 0, 0, 0, 0, 1},
			.dst_mac = {2, 0, 0, 0, 0, 2}},
		.capture_timing = true,
		.capture_speed = 1,
		// Addresses for documentation: RFC 5737.
		.convoy_outer = {.version = 4,
			.src_mac = {2, 0, 0, 0, 0, 1},
			.dst_mac = {2, 0, 0, 0, 0, 2},
			.src = {192, 0, 2, 1},
			.dst = {192, 0, 2, 2}},
	};
	// The addresses set aside for benchmarks: RFC 2544 (198.18.0.0/15), RFC 5180 (2001:2::/48).
	parse_range(
		ip6 ? "2001:2::1" : "198.18.0.1", ip6 ? AF_INET6 : AF_INET, 0, &spec->flows.src_ip);
	parse_range(ip6 ? "2001:2:0:1::1" : "198.19.0.1", ip6 ? AF_INET6 : AF_INET, 0,
		&spec->flows.dst_ip);
	parse_range("1024-65535", 0, 65535, &spec->flows.src_port);
	parse_range("4096", 0, 65535, &spec->flows.dst_port);
}

static int check_together(struct reader *reader)
{
	struct gen_spec *spec = reader->spec;
	const struct gen_flows *flows = &spec->flows;
	const uint64_t spans[] = {flows->src_ip.span, flows->dst_ip.span, flows->src_port.span,
		flows->dst_port.span, flows->tagged ? flows->vlan.span : 1};
	uint64_t distinct = 1;

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]) && distinct < flows->count; i++) {
		uint64_t a = distinct, b = spans[i];
		while (b != 0) {
			const uint64_t rest = a % b;
			a = b;
			b = rest;
		}
		distinct *= spans[i] / a;
	}
	if (distinct < flows->count)
		return fail(reader,
			"spec: flows.count: %u: the ranges give only %" PRIu64
			" different flows; widen src_ip, dst_ip, src_port, dst_port or vlan",
			flows->count, distinct);
	if (spec->rate_pps * spec->duration_s >= UINT32_MAX ||
		spec->rate_pps * spec->warmup_s >= UINT32_MAX)
		return fail(reader,
			"spec: duration_s: %g: at %g packets/s a trial of more than %g s "
			"runs out of sequence numbers; make it shorter",
			spec->duration_s, spec->rate_pps, UINT32_MAX / spec->rate_pps);
	if (spec->convoy_packets > 1 && spec->capture != NULL)
		return fail(reader,
			"spec: convoys: %u: captures are replayed packet by packet; use 1 to take "
			"received convoys apart",
			spec->convoy_packets);
	if (spec->off_us > 0 && spec->rate_pps == 0)
		return fail(reader, "spec: pacing.off_us: on-off traffic needs a rate_pps, not "
				    "\"max\"");
	return 0;
}

int gen_spec_parse(
	struct gen_spec *spec, const json_t *json, uint32_t ports, char *error, size_t error_size)
{
	struct reader reader = {error, error_size, "", spec, ports};
	const json_t *flows = json_object_get(json, "flows");

	set_defaults(spec, ports, json_integer_value(json_object_get(flows, "ip")) == 6);
	spec->json = json_deep_copy(json);
	if (!json_is_object(json))
		return fail(&reader, "spec: must be one JSON object {…} per line");
	if (read_object(&reader, "", spec->json, top) < 0)
		return -1;
	return check_together(&reader);
}

void gen_spec_free(struct gen_spec *spec)
{
	json_decref(spec->json);
	spec->json = NULL;
}
