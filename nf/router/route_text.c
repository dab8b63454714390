// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <string.h>

#include "nf/router/route_text.h"
#include "nf/config.h"
#include "packet/ether.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"

int cv_route_text_prefix(
	const char *text, const char *where, struct cv_prefix *prefix, struct cv_error *error)
{
	char fix[CV_PREFIX_TEXT];

	switch (cv_prefix_parse(text, prefix)) {
	case 0:
		return 0;
	case -EDOM:
		cv_prefix_mask(prefix);
		cv_error_set(error, "%s: %s has bits set behind its length; write %s", where, text,
			cv_prefix_text(prefix, fix));
		return -EINVAL;
	default:
		cv_error_set(error,
			"%s: \"%s\" is not a prefix; write one like 10.0.0.0/8 or 2001:db8::/32",
			where, text);
		return -EINVAL;
	}
}

int cv_route_text_via(
	const char *text, const char *where, struct cv_address *via, struct cv_error *error)
{
	rte_be32_t v4;

	if (text == NULL || cv_address_parse(text, via) != 0) {
		cv_error_set(error, "%s: via \"%s\" is not an address", where, text ? text : "");
		return -EINVAL;
	}
	memcpy(&v4, via->bytes, 4);
	if (via->v6 ? cv_ipv6_multicast(via->bytes) : cv_ipv4_martian(v4)) {
		cv_error_set(error, "%s: via %s is not the address of a station", where, text);
		return -EINVAL;
	}
	return 0;
}

int cv_route_text_port(const struct cv_nf_env *env, const char *name, const char *where,
	uint8_t *port, struct cv_error *error)
{
	int index = cv_nf_env_port(env, name);

	if (index < 0)
		return cv_config_no_port(where, name, env, error);
	*port = (uint8_t)index;
	return 0;
}

int cv_route_text_mac(const char *text, const char *where, uint8_t *mac, struct cv_error *error)
{
	if (cv_mac_parse(text, mac) && !cv_mac_group(mac))
		return 0;
	cv_error_set(error,
		"%s: \"%s\" is not the MAC address of a station; write one like 02:00:00:00:00:01",
		where, text);
	return -EINVAL;
}
