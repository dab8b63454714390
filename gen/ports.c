// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "ports.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ethdev_port.h"
#include "vhost_user.h"

// One key=number of a vhost-user port.
struct setting {
	const char *key;
	uint64_t min, max;
	bool power_of_two;
	uint32_t *value;
};

static int set(const char *text, const struct setting *settings, const char *word, char *error,
	size_t error_size)
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
			snprintf(error, error_size, "--port %s: %s: must be %s from %llu to %llu",
				text, word, settings->power_of_two ? "a power of two" : "a number",
				(unsigned long long)settings->min,
				(unsigned long long)settings->max);
			return -1;
		}
		*settings->value = (uint32_t)value;
		return 0;
	}
	snprintf(error, error_size,
		"--port %s: %s: unknown; known are: server queues=N ring=N frame=BYTES mem=MIB",
		text, word);
	return -1;
}

static int parse_vhost(struct gen_port_option *option, char *words, char *error, size_t error_size)
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
		snprintf(error, error_size, "--port %s: needs a socket: vhost-user:/PATH",
			option->text);
		return -1;
	}
	if (strlen(path) > VHOST_USER_SOCKET_MAX) {
		snprintf(error, error_size,
			"--port %s: the socket's path has %zu bytes, at most %d fit; use a shorter "
			"one",
			option->text, strlen(path), VHOST_USER_SOCKET_MAX);
		return -1;
	}
	strcpy(option->path, path);
	for (char *word; (word = strsep(&rest, ",")) != NULL;) {
		if (strcmp(word, "server") == 0)
			vhost->server = true;
		else if (set(option->text, settings, word, error, error_size) < 0)
			return -1;
	}
	vhost->buffer = frame - GEN_FCS_BYTES;
	vhost->memory = (uint64_t)mem << 20;
	return 0;
}

int gen_port_parse(struct gen_port_option *option, const char *text, char *error, size_t error_size)
{
	char words[sizeof(option->text)];

	memset(option, 0, sizeof(*option));
	if (strlen(text) >= sizeof(option->text)) {
		snprintf(error, error_size, "--port %.60s…: longer than %zu bytes", text,
			sizeof(option->text) - 1);
		return -1;
	}
	strcpy(option->text, text);
	strcpy(words, text);
	if (strncmp(text, "vhost-user:", 11) == 0) {
		option->kind = GEN_PORT_VHOST_USER;
		return parse_vhost(option, words + 11, error, error_size);
	}
	if (strncmp(text, "dev:", 4) == 0 && text[4] != '\0') {
		option->kind = GEN_PORT_DEV;
		strcpy(option->path, text + 4);
		return 0;
	}
	snprintf(error, error_size,
		"--port %s: must be vhost-user:/PATH[,…] or dev:DEVARGS (dev:net_memif0,…, "
		"dev:0000:01:00.0)",
		text);
	return -1;
}

int gen_port_open(struct gen_port *port, const struct gen_port_option *option, uint32_t core,
	char *error, size_t error_size)
{
	strcpy(port->name, option->text);
	if (option->kind == GEN_PORT_DEV)
		return gen_ethdev_open(port, option->path, core, error, error_size);

	struct gen_vhost_options options = option->vhost;
	options.path = option->path;
	const int result = gen_vhost_open(port, &options);
	if (result == -EADDRINUSE)
		snprintf(error, error_size,
			"--port %s: another program listens there; stop it or use another path",
			option->text);
	else if (result == -EEXIST)
		snprintf(error, error_size, "--port %s: the path exists and is no socket",
			option->text);
	else if (result < 0)
		snprintf(error, error_size, "--port %s: %s", option->text, strerror(-result));
	return result < 0 ? -1 : 0;
}
