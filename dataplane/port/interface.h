// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A network interface of the kernel, and what it takes to use it.
#ifndef CV_INTERFACE_H
#define CV_INTERFACE_H

#include "config/params.h"

// The key "interface", a member const char *: it exists in this network namespace.
int cv_read_interface(
	const struct cv_where *at, const char *key, const json_t *value, void *member);

// The config of a kind that has an interface and queues.
struct cv_interface_config {
	const char *interface;
	uint16_t queues;
};

#define CV_INTERFACE_PARAMS(most)                                                                \
	{"interface", CV_CUSTOM, CV_AT(struct cv_interface_config, interface), .required = true, \
		.read = cv_read_interface},                                                      \
		{"queues", CV_INTEGER, CV_AT(struct cv_interface_config, queues), .low = 1,      \
			.high = (most), .fallback = 1},                                          \
	{                                                                                        \
		0                                                                                \
	}

// Checks that this process has every capability of a list (CAP_NET_RAW, -1 at the end). 0, or
// -EPERM with an error that names those that are missing and how to give them.
int cv_interface_rights(const int *capabilities, struct cv_error *error);

// Checks that the interface is up. 0, or -ENETDOWN with error set.
int cv_interface_is_up(const char *name, struct cv_error *error);

#endif
