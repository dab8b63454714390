// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/standby/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KEY_BYTES 32

// "ADDRESS:PORT".
static int read_target(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	static const char scheme[] = "ssl:";
	struct cv_peer_target *target = member;
	const char *text = json_string_value(value);
	char whole[CV_PEER_TARGET_TEXT];
	struct cv_error unused = {""};
	const char *colon = text == NULL ? NULL : strrchr(text, ':');

	if (colon == NULL || colon[1] == '\0' || strlen(text) + sizeof(scheme) > sizeof(whole))
		return cv_where_wrong(
			at, key, value, "must be ADDRESS:PORT, an IPv6 address in brackets");
	snprintf(whole, sizeof(whole), "%s%s", scheme, text);
	if (cv_peer_target_read(target, whole, false, &unused) != 0)
		return cv_where_wrong(
			at, key, value, "must be ADDRESS:PORT, an IPv6 address in brackets");
	snprintf(target->text, sizeof(target->text), "%s", text);
	return 0;
}

static int read_listen(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const int rc = read_target(at, key, value, member);

	((struct cv_peer_target *)member)->listens = true;
	return rc;
}

const struct cv_param cv_standby_params[] = {
	{"to", CV_CUSTOM, CV_AT(struct cv_standby_config, to), .read = read_target},
	{"listen", CV_CUSTOM, CV_AT(struct cv_standby_config, listen), .read = read_listen},
	{"key_file", CV_TEXT, CV_AT(struct cv_standby_config, key_file), .required = true},
	{"take_over_ms", CV_INTEGER, CV_AT(struct cv_standby_config, take_over_ms), .low = 0,
		.high = 3600000},
	{0},
};

int cv_standby_check(
	const struct cv_standby_config *config, const json_t *plan, const struct cv_where *top)
{
	if (json_object_get(plan, "standby") == NULL)
		return 0;
	if (config->to.tcp_port == 0 && config->listen.tcp_port == 0)
		return cv_where_error(top,
			"standby: say where it is (to), or where this node waits to be one "
			"(listen)");
	if (config->take_over_ms != 0 && config->listen.tcp_port == 0)
		return cv_where_error(
			top, "standby: take_over_ms: is of a node that waits; give it listen");
	return 0;
}

static int digit_of(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = c == '\0' ? NULL : strchr(digits, c);

	return at == NULL ? -1 : (int)((at - digits) % 16);
}

// So many hexadecimal digits, and nothing but white space behind them.
static bool read_digits(const char *text, uint8_t *key)
{
	for (unsigned i = 0; i < KEY_BYTES; i++) {
		const int high = digit_of(text[2 * i]);
		const int low = high < 0 ? -1 : digit_of(text[2 * i + 1]);

		if (low < 0)
			return false;
		key[i] = (uint8_t)(high << 4 | low);
	}
	return text[2 * KEY_BYTES + strspn(text + 2 * KEY_BYTES, " \t\r\n")] == '\0';
}

static int wrong_key(const char *path, const char *why, struct cv_error *error)
{
	cv_error_set(error, "standby: key_file: %s: %s", path, why);
	return -EINVAL;
}

static int read_key(const char *path, uint8_t *key, struct cv_error *error)
{
	char text[2 * KEY_BYTES + 16] = "";
	struct stat st;
	FILE *file;
	bool is_right;

	if (stat(path, &st) != 0)
		return wrong_key(path, strerror(errno), error);
	if (!S_ISREG(st.st_mode)) // a pipe would be waited for
		return wrong_key(path, "is no file", error);
	if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return wrong_key(path, "others may read or write it; chmod 600 it", error);
	file = fopen(path, "re");
	if (file == NULL)
		return wrong_key(path, strerror(errno), error);
	is_right =
		fread(text, 1, sizeof(text) - 1, file) >= 2 * KEY_BYTES && read_digits(text, key);
	fclose(file);
	explicit_bzero(text, sizeof(text));
	return is_right ? 0
			: wrong_key(path,
				  "must have 64 hexadecimal digits and no more; make one: "
				  "openssl rand -hex 32",
				  error);
}

struct cv_peer_tls_context *cv_standby_tls(
	const struct cv_standby_config *config, struct cv_error *error)
{
	struct cv_peer_tls_context *context;
	uint8_t key[KEY_BYTES];

	if (read_key(config->key_file, key, error) != 0)
		return NULL;
	context = cv_peer_tls_context_open_key(key, sizeof(key), error);
	explicit_bzero(key, sizeof(key));
	return context;
}
