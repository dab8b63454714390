// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A port from an element of a plan's ports.
#ifndef CV_TEST_PORT_H
#define CV_TEST_PORT_H

#include "port/port.h"

// As cv_port_open(). Takes over the reference to json, which may be NULL.
static inline struct cv_port *test_port_open(json_t *json, unsigned index, uint16_t senders,
	struct rte_mempool *pool, struct cv_error *error)
{
	struct cv_port_config *config = cv_port_config_read(json, error);
	struct cv_port *port = NULL;

	json_decref(json);
	if (config != NULL)
		port = cv_port_open(config, index, senders, pool, error);
	cv_port_config_free(config);
	return port;
}

#endif
