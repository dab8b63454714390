// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Kind openflow: what it is sent are FLOW_MODs for this node (docs/openflow.md). It receives nothing.
// key is a file with 64 hexadecimal digits, by which they are authenticated. A worker hands them over
// and goes on; those that the node's thread is behind with are refused, as by a port that is full.
#include "port/openflow_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>

#include "port/kind.h"

#define WAITING 256u // packets, less one

struct config {
	const char *key;
	uint8_t bytes[CV_OPENFLOW_KEY_BYTES];
};

struct openflow_port {
	struct cv_port port;
	struct rte_ring *ring;
	uint8_t key[CV_OPENFLOW_KEY_BYTES];
};

static const struct cv_param params[] = {
	{"key", CV_FILE, CV_AT(struct config, key), .required = true},
	{0},
};

static bool read_key(const char *text, uint8_t *bytes)
{
	for (unsigned i = 0; i < CV_OPENFLOW_KEY_BYTES; i++) {
		const char digits[] = {text[2 * i], text[2 * i + 1], '\0'};

		if (strspn(digits, "0123456789abcdefABCDEF") != 2)
			return false;
		bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return text[2 * CV_OPENFLOW_KEY_BYTES + strspn(text + 2 * CV_OPENFLOW_KEY_BYTES, "\r\n")] ==
	       '\0';
}

static int check(struct cv_port_config *config, struct cv_error *error)
{
	struct config *own = config->own;
	char text[2 * CV_OPENFLOW_KEY_BYTES + 4] = "";
	FILE *file = fopen(own->key, "re");
	size_t got;

	if (file == NULL) {
		cv_error_set(error, "key: %s: %s", own->key, strerror(errno));
		return -EINVAL;
	}
	got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	if (got >= 2 * CV_OPENFLOW_KEY_BYTES && read_key(text, own->bytes))
		return 0;
	cv_error_set(error,
		"key: %s: must have %u hexadecimal digits and no more; make one: openssl rand -hex "
		"%u",
		own->key, 2 * CV_OPENFLOW_KEY_BYTES, CV_OPENFLOW_KEY_BYTES);
	return -EINVAL;
}

static uint16_t rx(struct cv_port *port, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	return 0;
}

static uint16_t tx(struct cv_port *port, uint16_t tx_queue, struct rte_mbuf **packets, uint16_t n)
{
	struct openflow_port *openflow = (struct openflow_port *)port;

	return (uint16_t)rte_ring_enqueue_burst(openflow->ring, (void **)packets, n, NULL);
}

bool cv_openflow_port_is(const struct cv_port *port)
{
	return port->tx == tx;
}

unsigned cv_openflow_port_take(struct cv_port *port, struct rte_mbuf **packets, unsigned n)
{
	return rte_ring_dequeue_burst(
		((struct openflow_port *)port)->ring, (void **)packets, n, NULL);
}

const uint8_t *cv_openflow_port_key(const struct cv_port *port)
{
	return ((const struct openflow_port *)port)->key;
}

static void close_port(struct cv_port *port)
{
	struct openflow_port *openflow = (struct openflow_port *)port;
	struct rte_mbuf *packet;

	while (cv_openflow_port_take(port, &packet, 1) > 0)
		rte_pktmbuf_free(packet);
	rte_ring_free(openflow->ring);
	explicit_bzero(openflow->key, sizeof(openflow->key));
	free(port);
}

static int open_port(struct cv_port *port, const struct cv_port_args *args, struct cv_error *error)
{
	struct openflow_port *openflow = (struct openflow_port *)port;
	const struct config *config = args->config->own;
	char name[32];

	snprintf(name, sizeof(name), "openflow_%u", args->index);
	openflow->ring = rte_ring_create(name, WAITING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (openflow->ring == NULL) {
		cv_error_set(error, "no memory for a ring");
		return -ENOMEM;
	}
	memcpy(openflow->key, config->bytes, sizeof(openflow->key));
	port->rx = rx;
	port->tx = tx;
	port->close = close_port;
	port->rx_queues = 64; // there is nothing to share
	return 0;
}

const struct cv_port_kind cv_port_openflow = {
	.name = "openflow",
	.params = params,
	.config_size = sizeof(struct config),
	.mtu = CV_PORT_ANY_MTU,
	.any_length = true,
	.check = check,
	.open = open_port,
	.size = sizeof(struct openflow_port),
};
