// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/ethdev/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/ether.h"

#define WAIT_MAX_NS 1000000

static const char *const modes[] = {
	[CV_ETHDEV_AUTO] = "auto", [CV_ETHDEV_VIEW] = "view", [CV_ETHDEV_COPY] = "copy"};

const char *cv_ethdev_mode_name(enum cv_ethdev_mode mode)
{
	return modes[mode];
}

static bool read_long(const char *text, unsigned min, unsigned max, uint32_t *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || value < min || value > max)
		return false;
	*number = (uint32_t)value;
	return true;
}

static bool read_number(const char *text, unsigned min, uint16_t max, uint16_t *number)
{
	uint32_t value;

	if (!read_long(text, min, max, &value))
		return false;
	*number = (uint16_t)value;
	return true;
}

static bool read_mode(struct cv_ethdev_config *config, const char *text)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		config->mode = (enum cv_ethdev_mode)i;
		if (strcmp(text, modes[i]) == 0)
			return true;
	}
	return false;
}

static bool read_ports(struct cv_ethdev_config *config, const char *text)
{
	config->ports = 0;
	for (;;) {
		char *end;
		unsigned long port = strtoul(text, &end, 10);

		if (*text < '0' || *text > '9' || port >= 64)
			return false;
		config->ports |= 1ull << port;
		if (*end == '\0')
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
}

static bool read_address(struct cv_ethdev_config *config, const char *text, uint8_t *address)
{
	int family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	uint8_t version = family == AF_INET6 ? 6 : 4;

	if (inet_pton(family, text, address) != 1 ||
		(config->next_hop.version != 0 && config->next_hop.version != version))
		return false;
	config->next_hop.version = version;
	return true;
}

static bool read_vlan(struct cv_ethdev_config *config, const char *text)
{
	config->next_hop.vlans = 1;
	config->next_hop.vlan[0].type = 0x8100;
	return read_number(text, 0, 4094, &config->next_hop.vlan[0].tci);
}

static bool read_text(char *to, size_t room, const char *text)
{
	if (strlen(text) >= room)
		return false;
	strcpy(to, text);
	return text[0] != '\0';
}

enum { NEEDS_DST_MAC = 1, NEEDS_DST = 2, NEEDS_SRC = 4, NEEDS_ALL = 7, OPTIONAL = 8 };

// False: not a value for that key. given: which parts of a next hop were.
static bool read_word(
	struct cv_ethdev_config *config, const char *key, const char *value, unsigned *given)
{
	struct cv_outer_config *next_hop = &config->next_hop;

	if (strcmp(key, "mode") == 0)
		return read_mode(config, value);
	if (strcmp(key, "ports") == 0)
		return read_ports(config, value);
	if (strcmp(key, "port") == 0)
		return read_number(value, 1, 65535, &config->port);
	if (strcmp(key, "mtu") == 0)
		return read_number(value, CV_OUTER_MTU_MIN, CV_OUTER_MTU_MAX, &config->mtu);
	if (strcmp(key, "wait") == 0)
		return read_long(value, 0, WAIT_MAX_NS, &config->wait_ns);
	if (strcmp(key, "across") == 0)
		return (config->across = strcmp(value, "yes") == 0);
	if (strcmp(key, "counts") == 0)
		return read_text(config->counts, sizeof(config->counts), value);
	if (strcmp(key, "network") == 0)
		return read_text(config->networks, sizeof(config->networks), value);
	*given |= OPTIONAL;
	if (strcmp(key, "nfi") == 0)
		return read_number(value, 0, 65535, &next_hop->nfi);
	if (strcmp(key, "vlan") == 0)
		return read_vlan(config, value);
	if (strcmp(key, "src_mac") == 0)
		return cv_mac_parse(value, next_hop->src_mac);
	if (strcmp(key, "dst_mac") == 0) {
		*given |= NEEDS_DST_MAC;
		return cv_mac_parse(value, next_hop->dst_mac);
	}
	if (strcmp(key, "dst") == 0) {
		*given |= NEEDS_DST;
		return read_address(config, value, next_hop->dst);
	}
	if (strcmp(key, "src") == 0) {
		*given |= NEEDS_SRC;
		return read_address(config, value, next_hop->src);
	}
	return false;
}

int cv_ethdev_config_read(struct cv_ethdev_config *config, const char *variable, const char *text,
	struct cv_error *error)
{
	char words[2048], *rest, *word;
	struct cv_outer outer;
	unsigned given = 0;

	*config = (struct cv_ethdev_config){
		.ports = UINT64_MAX, .port = CV_CONVOY_PORT, .mtu = CV_CONVOY_MTU};
	if (text == NULL)
		return 0;
	if (strlen(text) >= sizeof(words)) {
		cv_error_set(error, "%s: longer than %zu bytes", variable, sizeof(words) - 1);
		return -EINVAL;
	}
	strcpy(words, text);
	for (word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(word, '=');

		if (value != NULL)
			*value++ = '\0';
		if (value == NULL || !read_word(config, word, value, &given)) {
			cv_error_set(error,
				"%s: %s=%s: not a key and its value; the keys are "
				"mode=auto|view|copy, "
				"ports=0,1 mtu= port= wait=NANOSECONDS across=yes "
				"network=PATH,PATH counts=FILE, and of a next hop dst_mac= dst= "
				"src= (all three), src_mac= nfi= vlan=",
				variable, word, value != NULL ? value : "");
			return -EINVAL;
		}
	}
	config->fixed = given != 0;
	if (given != 0 && (given & NEEDS_ALL) != NEEDS_ALL) {
		cv_error_set(error, "%s: a next hop needs dst_mac=, dst= and src=", variable);
		return -EINVAL;
	}
	config->next_hop.port = config->port;
	config->next_hop.mtu = config->mtu;
	return config->fixed ? cv_outer_set(&outer, &config->next_hop, error) : 0;
}
