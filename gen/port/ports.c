// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/port/ports.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "gen/port/dataplane_port.h"
#include "gen/port/vhost_user.h"

// One key=number of a vhost-user port.
struct setting {
	const char *key;
	uint64_t min, max;
	bool power_of_two;
	uint32_t *value;
};

static int set(
	const char *text, const struct setting *settings, const char *word, struct cv_error *error)
{
	for (; settings->key != NULL; settings++) {
		const size_t length = strlen(settings->key);
		char *end;

		if (strncmp(word, settings->key, length) != 0 || word[length] != '=')
			continue;
		const unsigned long long value = strtoull(word + length + 1, &end, 10);
		if (word[length + 1] < '0' || word[length + 1] > '9' || *end != '\0' ||
			value < settings->min || value > settings->max ||
			(settings->power_of_two && (value & (value - 1)) != 0)) {
			cv_error_set(error, "--port %s: %s: must be %s from %llu to %llu", text,
				word, settings->power_of_two ? "a power of two" : "a number",
				(unsigned long long)settings->min,
				(unsigned long long)settings->max);
			return -EINVAL;
		}
		*settings->value = (uint32_t)value;
		return 0;
	}
	cv_error_set(error,
		"--port %s: %s: unknown; known are: server queues=N ring=N frame=BYTES mem=MIB",
		text, word);
	return -EINVAL;
}

static int parse_vhost(struct gen_port_option *option, char *words, struct cv_error *error)
{
	uint32_t frame = 1518, mem = 256;
	struct gen_vhost_options *vhost = &option->vhost;
	*vhost = (struct gen_vhost_options){.queues = 1, .ring = 1024};
	const struct setting settings[] = {
		{"queues", 1, GEN_MAX_QUEUES, false, &vhost->queues},
		{"ring", 64, 32768, true, &vhost->ring},
		{"frame", 64, 65535, false, &frame},
		{"mem", 1, 3072, false, &mem},
		{0},
	};
	char *rest = words;
	const char *path = strsep(&rest, ",");

	if (path[0] == '\0') {
		cv_error_set(error, "--port %s: needs a socket: vhost-user:/PATH", option->text);
		return -EINVAL;
	}
	if (strlen(path) > VHOST_USER_SOCKET_MAX) {
		cv_error_set(error,
			"--port %s: the socket's path has %zu bytes, at most %d fit; use a shorter "
			"one",
			option->text, strlen(path), VHOST_USER_SOCKET_MAX);
		return -EINVAL;
	}
	strcpy(option->place, path);
	for (char *word; (word = strsep(&rest, ",")) != NULL;) {
		if (strcmp(word, "server") == 0)
			vhost->server = true;
		else if (set(option->text, settings, word, error) < 0)
			return -EINVAL;
	}
	vhost->buffer = frame - GEN_FCS_BYTES;
	vhost->memory = (uint64_t)mem << 20;
	return 0;
}

// What the dataplane calls a port, and how its text says it: PREFIX:PLACE[,SETTING …].
static const struct form {
	const char *prefix, *kind, *place;
	const char *role, *server, *client; // key and words of who listens; NULL: nobody does
	bool has_id;
	bool whole; // commas belong to the place
	uint32_t slots; // of its rings
	bool choose; // this number, which is not the port's own
} forms[] = {
	{"memif", "memif", "path", "role", "server", "client", true, false, 1024, false},
	{"virtio-user", "virtio-user", "path", "mode", "server", "client", false, false, 1024,
		false},
	// Fewer than the kernel keeps for a core (net.core.netdev_max_backlog, 1000): beyond that
	// it loses packets which were worked for, and a core that is too slow does little else.
	{"af_packet", "af_packet", "interface", NULL, NULL, NULL, false, false, 256, true},
	{"dev", "dpdk", "devargs", NULL, NULL, NULL, false, true, 1024, false},
};

static int parse_setting(const char *text, json_t *config, const struct form *form,
	const char *word, struct cv_error *error)
{
	const bool is_id = form->has_id && strncmp(word, "id=", 3) == 0;
	char *end = NULL;

	if (form->role != NULL && strcmp(word, "server") == 0)
		return json_object_set_new(config, form->role, json_string(form->server));
	const long long id = is_id ? strtoll(word + 3, &end, 10) : 0;
	if (is_id && word[3] >= '0' && word[3] <= '9' && *end == '\0')
		return json_object_set_new(config, "id", json_integer(id));
	cv_error_set(error, "--port %s: %s: unknown; known are:%s%s", text, word,
		form->role != NULL ? " server" : " none", form->has_id ? " id=N" : "");
	return -EINVAL;
}

static int parse_dataplane(struct gen_port_option *option, const struct form *form, char *words,
	struct cv_error *error)
{
	struct cv_error reason = {0};
	char *rest = form->whole ? NULL : words;
	const char *place = form->whole ? words : strsep(&rest, ",");
	json_t *text = json_string(place);
	const char *name = option->text; // in log lines, which have room for 31 bytes
	json_t *config;
	int rc = 0;

	if (text == NULL) {
		cv_error_set(error, "--port %s: is not UTF-8", form->prefix);
		return -EINVAL;
	}
	if (strlen(name) > 31)
		name += strlen(name) - 31;
	while (((unsigned char)*name & 0xC0) == 0x80)
		name++;
	strcpy(option->place, place);
	option->slots = form->slots;
	config = json_pack("{s:s, s:s, s:o}", "name", name, "kind", form->kind, form->place, text);
	if (form->role != NULL)
		json_object_set_new(config, form->role, json_string(form->client));
	if (form->choose)
		json_object_set_new(config, "slots", json_integer(form->slots));
	for (char *word; rc == 0 && (word = strsep(&rest, ",")) != NULL;)
		rc = parse_setting(option->text, config, form, word, error);
	if (rc == 0)
		option->config = cv_port_config_read(config, &reason);
	json_decref(config);
	if (option->config != NULL)
		return 0;
	cv_error_set(error, "--port %s: %.400s", option->text, reason.text);
	return -EINVAL;
}

int gen_port_parse(struct gen_port_option *option, const char *text, struct cv_error *error)
{
	char words[sizeof(option->text)];

	memset(option, 0, sizeof(*option));
	if (strlen(text) >= sizeof(option->text)) {
		cv_error_set(error, "--port %.60s…: longer than %zu bytes", text,
			sizeof(option->text) - 1);
		return -EINVAL;
	}
	strcpy(option->text, text);
	strcpy(words, text);
	if (strncmp(text, "vhost-user:", 11) == 0) {
		option->kind = "vhost-user";
		return parse_vhost(option, words + 11, error);
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const size_t length = strlen(forms[i].prefix);

		if (strncmp(text, forms[i].prefix, length) != 0 || text[length] != ':')
			continue;
		option->kind = forms[i].prefix;
		return parse_dataplane(option, &forms[i], words + length + 1, error);
	}
	cv_error_set(error,
		"--port %s: must be vhost-user:/PATH, virtio-user:/PATH, memif:/PATH, "
		"af_packet:INTERFACE or dev:DEVARGS (dev:net_ring0, dev:0000:01:00.0)",
		text);
	return -EINVAL;
}

void gen_port_option_free(struct gen_port_option *option)
{
	cv_port_config_free(option->config);
	option->config = NULL;
}

bool gen_port_needs_dpdk(const struct gen_port_option *option, bool *pci)
{
	if (option->config != NULL)
		*pci |= option->config->needs.pci;
	return option->config != NULL;
}

static int open_vhost(
	struct gen_port *port, const struct gen_port_option *option, struct cv_error *error)
{
	struct gen_vhost_options options = option->vhost;

	options.path = option->place;
	const int result = gen_vhost_open(port, &options);
	if (result == -EADDRINUSE)
		cv_error_set(error,
			"--port %s: another program listens there; stop it or use another path",
			option->text);
	else if (result == -EEXIST)
		cv_error_set(error, "--port %s: the path exists and is no socket", option->text);
	else if (result < 0)
		cv_error_set(error, "--port %s: %s", option->text, strerror(-result));
	return result;
}

// Whether its driver has the kernel send each burst.
static bool sends_by_calls(const struct gen_port_option *option)
{
	return option->config->needs.interface || strncmp(option->place, "net_af_", 7) == 0 ||
	       strncmp(option->place, "net_tap", 7) == 0;
}

int gen_port_open(
	struct gen_port *port, const struct gen_port_option *option, struct cv_error *error)
{
	struct cv_error reason = {0};
	int rc;

	strcpy(port->name, option->text);
	if (option->config == NULL)
		return open_vhost(port, option, error);
	rc = gen_dataplane_open(port, option->config, option->slots, &reason);
	if (rc < 0)
		cv_error_set(error, "--port %s: %.400s", option->text, reason.text);
	else
		port->calls = sends_by_calls(option);
	return rc;
}
