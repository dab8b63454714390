// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/function_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 65536

// FNV-1a: to see that it is another, not to find one that seems the
// same. A file that cannot be read has none: whoever reads it says why.
json_t *cv_function_config_digest(int fd)
{
	uint64_t hash = 0xcbf29ce484222325;
	uint8_t *block = malloc(BLOCK);
	off_t at = 0;
	ssize_t n = -1;

	for (; block != NULL && (n = pread(fd, block, BLOCK, at)) > 0; at += n)
		for (ssize_t i = 0; i < n; i++)
			hash = (hash ^ block[i]) * 0x100000001b3;
	free(block);
	return n < 0 ? NULL : json_integer((json_int_t)hash);
}

static bool is_file(const struct cv_nf *nf, const char *key)
{
	for (const struct cv_param *param = nf->params; param->type != CV_PARAMS_END; param++)
		if (param->type == CV_FILE && param->key != NULL && strcmp(param->key, key) == 0)
			return true;
	return false;
}

// A descriptor of a regular file, or -1: nothing that could block is opened.
static int open_file(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

// What is in the file at a path, of which there may be a copy; NULL: it cannot be read.
static json_t *digest_at(const char *path, const struct cv_files *files)
{
	const int copy = cv_files_find(files, path);
	const int fd = copy < 0 ? open_file(path) : copy;
	json_t *digest = fd < 0 ? NULL : cv_function_config_digest(fd);

	if (copy < 0 && fd >= 0)
		close(fd);
	return digest;
}

void cv_function_config_set(struct cv_function_config *to, const struct cv_nf *nf,
	const json_t *config, const struct cv_files *files)
{
	const char *key;
	json_t *value;

	to->config = json_incref((json_t *)(uintptr_t)config);
	to->files = json_object();
	json_object_foreach (to->config, key, value) {
		json_t *digest = json_is_string(value) && is_file(nf, key)
					 ? digest_at(json_string_value(value), files)
					 : NULL;

		if (digest != NULL)
			json_object_set_new(to->files, key, digest);
	}
}

void cv_function_config_clear(struct cv_function_config *config)
{
	json_decref(config->config);
	json_decref(config->files);
	*config = (struct cv_function_config){.config = NULL};
}

// Whether both are the same, or there is neither.
static bool are_same(const json_t *a, const json_t *b)
{
	return a == b || json_equal(a, b) == 1;
}

// Whether a parameter is what it was. A file is what is in it, whatever its name.
static bool is_same(
	const struct cv_function_config *a, const struct cv_function_config *b, const char *key)
{
	const json_t *in_a = json_object_get(a->files, key), *in_b = json_object_get(b->files, key);

	if (in_a != NULL && in_b != NULL)
		return are_same(in_a, in_b);
	return are_same(json_object_get(a->config, key), json_object_get(b->config, key));
}

json_t *cv_function_config_differences(
	const struct cv_function_config *a, const struct cv_function_config *b)
{
	json_t *keys = json_array();
	const char *key;
	json_t *value;

	json_object_foreach (a->config, key, value)
		if (!is_same(a, b, key))
			json_array_append_new(keys, json_string(key));
	json_object_foreach (b->config, key, value)
		if (json_object_get(a->config, key) == NULL)
			json_array_append_new(keys, json_string(key));
	return keys;
}

json_t *cv_function_config_made_of(
	const struct cv_nf *nf, const json_t *config, const struct cv_files *files)
{
	json_t *object = json_copy((json_t *)(uintptr_t)config);
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(object, next, key, value)
	{
		const int fd =
			is_file(nf, key) ? cv_files_find(files, json_string_value(value)) : -1;
		char path[CV_FILES_PATH_MAX];

		if (fd < 0)
			continue;
		cv_files_path(fd, path);
		json_object_set_new(object, key, json_string(path));
	}
	return object;
}
