// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Controllers in a plan.
#include <stdlib.h>

#include "daemon/openflow/server.h"

static int read_target(
	const struct cv_where *at, const json_t *value, bool listens, struct cv_peer_target *target)
{
	struct cv_error why = {0};

	if (!json_is_string(value))
		return cv_where_wrong(at, "", value, "must be a string");
	if (cv_peer_target_read(target, json_string_value(value), listens, &why) != 0)
		return cv_where_error(at, "%s", why.text);
	return 0;
}

static int read_controller(
	const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct cv_of_config *config = of;

	return read_target(at, value, false, &config->controllers[config->controllers_count++]);
}

static int read_listen(const struct cv_where *at, const char *key, const json_t *value, void *of)
{
	struct cv_of_config *config = of;

	return read_target(at, value, true, &config->listen[config->listen_count++]);
}

static int read_datapath_id(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const char *text = json_string_value(value);
	char *end = NULL;
	const uint64_t id = text != NULL ? strtoull(text, &end, 16) : 0;

	if (text == NULL || strspn(text, "0123456789abcdefABCDEF") != strlen(text) ||
		strlen(text) > 16 || id == 0)
		return cv_where_wrong(at, key, value, "must be 1 to 16 hexadecimal digits, not 0");
	memcpy(member, &id, sizeof(id));
	return 0;
}

const struct cv_param cv_of_params[] = {
	{"controllers", CV_EACH, .high = CV_PEER_TARGETS_MAX, .read = read_controller},
	{"listen", CV_EACH, .high = CV_PEER_TARGETS_MAX, .read = read_listen},
	{NULL, CV_PARAMS, CV_AT(struct cv_of_config, access), .params = cv_socket_access_params},
	{"private_key", CV_TEXT, CV_AT(struct cv_of_config, tls.private_key)},
	{"certificate", CV_TEXT, CV_AT(struct cv_of_config, tls.certificate)},
	{"ca_certificate", CV_TEXT, CV_AT(struct cv_of_config, tls.ca_certificate)},
	{"entries", CV_INTEGER, CV_AT(struct cv_of_config, entries_max), .low = 1,
		.high = CV_NEXT_HOP_KEYS_MAX, .fallback = CV_OF_ENTRIES_DEFAULT},
	{"datapath_id", CV_CUSTOM, CV_AT(struct cv_of_config, datapath_id),
		.read = read_datapath_id},
	{0},
};
