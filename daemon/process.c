// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/process.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const names[] = {
	"RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "NOTIFY_SOCKET", "WATCHDOG_USEC"};

#define NAMES (sizeof(names) / sizeof(names[0]))

static struct {
	char *const *arguments;
	const char *values[NAMES]; // NULL: not set
	char folder[PATH_MAX];
} process;

void cv_process_remember(char *const *arguments)
{
	process.arguments = arguments;
	for (size_t i = 0; i < NAMES; i++)
		process.values[i] = getenv(names[i]);
	if (getcwd(process.folder, sizeof(process.folder)) == NULL)
		process.folder[0] = '\0';
}

json_t *cv_process_describe(void)
{
	json_t *arguments = json_array(), *environment = json_object();

	for (char *const *argument = process.arguments; *argument != NULL; argument++)
		json_array_append_new(arguments, json_string(*argument));
	for (size_t i = 0; i < NAMES; i++)
		if (process.values[i] != NULL)
			json_object_set_new(environment, names[i], json_string(process.values[i]));
	return json_pack("{s:i, s:o, s:s, s:o}", "pid", (int)getpid(), "arguments", arguments,
		"folder", process.folder, "environment", environment);
}
