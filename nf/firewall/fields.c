// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "nf/firewall/rules.h"

#define FLAGS_FIX "write flags, \"syn,!ack\", or VALUE/MASK, \"0x02/0x12\""
#define LENGTH_FIX "write a length, 64, or a range, \"40-1500\", up to 65535"

// A decimal number up to 65535 that is all of text. Returns -1 if it is not.
static int number(const char *text, size_t length)
{
	int value = 0;

	if (length < 1 || length > 5)
		return -1;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = 10 * value + (text[i] - '0');
	}
	return value <= UINT16_MAX ? value : -1;
}

int cv_firewall_range_read(const struct cv_where *at, const char *key, const json_t *value,
	const char *fix, struct cv_firewall_ports *range)
{
	const char *text = json_string_value(value), *dash;
	int first = -1, last = -1;

	if (json_is_integer(value) && json_integer_value(value) >= 0 &&
		json_integer_value(value) <= UINT16_MAX)
		first = last = (int)json_integer_value(value);
	if (text != NULL) {
		dash = strchr(text, '-');
		first = number(text, dash != NULL ? (size_t)(dash - text) : strlen(text));
		last = dash != NULL ? number(dash + 1, strlen(dash + 1)) : first;
	}
	if (first < 0 || last < 0)
		return cv_where_wrong(at, key, value, "%s", fix);
	if (first > last)
		return cv_where_wrong(
			at, key, value, "the range runs backwards; write \"%d-%d\"", last, first);
	*range = (struct cv_firewall_ports){(uint16_t)first, (uint16_t)last};
	return 0;
}

static int read_length(
	const struct cv_where *at, const char *key, const json_t *value, void *target)
{
	return cv_firewall_range_read(at, key, value, LENGTH_FIX, target);
}

// One flag, of length bytes. Returns its bit, or 0.
static unsigned flag_of(const char *word, size_t length)
{
	static const char *const names[] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

	for (unsigned i = 0; i < RTE_DIM(names); i++)
		if (length == strlen(names[i]) && memcmp(word, names[i], length) == 0)
			return 1u << i;
	return 0;
}

// "syn,!ack": those that must be set, and those that must not. False: it is no such list.
static bool parse_flags(const char *text, unsigned *value, unsigned *mask)
{
	for (;;) {
		const bool clear = *text == '!';
		const char *word = text + clear;
		const size_t length = strcspn(word, ",");
		const unsigned flag = flag_of(word, length);

		if (flag == 0 || (*mask & flag) != 0)
			return false;
		*mask |= flag;
		*value |= clear ? 0 : flag;
		if (word[length] == '\0')
			return true;
		text = word + length + 1;
	}
}

// "0x02/0x12", each up to 0xff.
static bool parse_masked(const char *text, unsigned *value, unsigned *mask)
{
	int end = 0;

	return strspn(text, "0123456789abcdefABCDEFx/") == strlen(text) && strlen(text) <= 9 &&
	       sscanf(text, "0x%2x/0x%2x%n", value, mask, &end) == 2 && text[end] == '\0' &&
	       *mask != 0 && (*value & ~*mask) == 0;
}

static int read_flags(const struct cv_where *at, const char *key, const json_t *value, void *target)
{
	struct cv_firewall_bits *bits = target;
	const char *text = json_string_value(value);
	unsigned set = 0, mask = 0;

	if (text == NULL || (isdigit((unsigned char)text[0]) ? !parse_masked(text, &set, &mask)
							     : !parse_flags(text, &set, &mask)))
		return cv_where_wrong(at, key, value, FLAGS_FIX);
	*bits = (struct cv_firewall_bits){(uint16_t)(set << 8), (uint16_t)(mask << 8)};
	return 0;
}

static int read_vlan(const struct cv_where *at, const char *key, const json_t *value, void *target)
{
	int *vlan = target;
	const char *text = json_string_value(value);

	if (text != NULL && strcmp(text, "none") == 0) {
		*vlan = CV_FIREWALL_UNTAGGED;
	} else if (json_is_integer(value) && json_integer_value(value) >= 0 &&
		   json_integer_value(value) <= 4095) {
		*vlan = (int)json_integer_value(value);
	} else {
		return cv_where_wrong(at, key, value,
			"write an id from 0 to 4095, or \"none\" for packets without a tag");
	}
	return 0;
}

static const char *const fragments[] = {"none", "first", "later", "any", NULL};

const struct cv_param cv_firewall_extra_params[] = {
	{"tcp_flags", CV_CUSTOM, CV_AT(struct cv_firewall_extra, tcp_flags), .read = read_flags},
	{"icmp_type", CV_INTEGER, CV_AT(struct cv_firewall_extra, icmp_type), .high = UINT8_MAX,
		.fallback = -1},
	{"icmp_code", CV_INTEGER, CV_AT(struct cv_firewall_extra, icmp_code), .high = UINT8_MAX,
		.fallback = -1},
	{"dscp", CV_INTEGER, CV_AT(struct cv_firewall_extra, dscp), .high = 63, .fallback = -1},
	{"length", CV_CUSTOM, CV_AT(struct cv_firewall_extra, length), .read = read_length},
	{"fragment", CV_WORD, CV_AT(struct cv_firewall_extra, fragment), .words = fragments,
		.fallback = CV_FIREWALL_FRAGMENTS_ALL},
	{"vlan", CV_CUSTOM, CV_AT(struct cv_firewall_extra, vlan), .read = read_vlan},
	{0},
};

// Layer 4's bits, from the flags or from the type and code.
static int l4_set(const struct cv_where *at, struct cv_firewall_rule *rule)
{
	struct cv_firewall_extra *extra = &rule->extra;
	const bool icmp = rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6;

	if (extra->tcp_flags.mask == 0 && extra->icmp_type < 0)
		return 0;
	if (extra->l4.mask != 0)
		return cv_where_error(
			at, "the flags column and a word behind it; keep one of them");
	if (extra->tcp_flags.mask != 0) {
		if (rule->proto != IPPROTO_TCP)
			return cv_where_error(at, "tcp_flags: needs proto tcp; write it");
		extra->l4 = extra->tcp_flags;
	}
	if (extra->icmp_type >= 0) {
		if (!icmp)
			return cv_where_error(at,
				"icmp_type: %d: needs proto icmp or icmpv6; write it",
				extra->icmp_type);
		extra->l4.value = (uint16_t)(extra->icmp_type << 8 | RTE_MAX(extra->icmp_code, 0));
		extra->l4.mask = extra->icmp_code >= 0 ? 0xffff : 0xff00;
	}
	return 0;
}

int cv_firewall_extra_check(const struct cv_where *at, struct cv_firewall_rule *rule, bool flows)
{
	const struct cv_firewall_extra *extra = &rule->extra;

	if (extra->icmp_code >= 0 && extra->icmp_type < 0)
		return cv_where_error(
			at, "icmp_code: %d: needs icmp_type; add it", extra->icmp_code);
	if (l4_set(at, rule) != 0)
		return -EINVAL;
	if (extra->fragment == CV_FIREWALL_FRAGMENTS_LATER && cv_firewall_rule_has_l4(rule))
		return cv_where_error(at,
			"fragment: later: has no ports, TCP flags or ICMP type; leave them out");
	if (extra->fragment == CV_FIREWALL_FRAGMENTS_LATER && flows)
		return cv_where_error(at,
			"fragment: later: of a stateful firewall they go with their flow; leave "
			"the rule out");
	return 0;
}
