// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How this process was started, for who starts another in its place.
#ifndef CV_PROCESS_H
#define CV_PROCESS_H

#include <jansson.h>

// Once, before anything changes it. arguments: without the program, NULL at the end; must stay.
void cv_process_remember(char *const *arguments);

// A new {"pid", "arguments", "folder", "environment": {name: value}}: of the environment what a service
// manager sets, and where the node's own files are.
json_t *cv_process_describe(void);

#endif
