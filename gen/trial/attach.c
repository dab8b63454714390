// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/trial/attach.h"

#include <errno.h>

#include "gen/machine/clock.h"

#define ATTEMPT_NS 20000000ull

bool gen_attached(const struct gen_tester *tester)
{
	for (uint32_t i = 0; i < tester->port_count; i++) {
		struct gen_port *port = tester->ports[i];

		if (port->check != NULL)
			port->check(port);
		// Pairs with the release store of whoever noticed.
		if (atomic_load_explicit(&port->gone, memory_order_acquire))
			return false;
	}
	return true;
}

// One after the other, a little at a time: devices may connect to our ports in any order.
bool gen_attach(const struct gen_tester *tester, double patience_s, struct cv_error *error)
{
	const uint64_t deadline_ns = gen_now_ns() + (uint64_t)(patience_s * 1e9);
	struct cv_error why = {"a peer went away again"};
	int rc = 0;

	do {
		for (uint32_t i = 0; i < tester->port_count; i++) {
			struct gen_port *port = tester->ports[i];

			if (!atomic_load_explicit(&port->gone, memory_order_acquire))
				continue;
			why.text[0] = '\0';
			rc = port->attach(port, gen_now_ns() + ATTEMPT_NS, &why);
			if (rc == -ERANGE)
				break;
		}
		if (gen_attached(tester))
			return true;
		// Waiting cannot help a device that has too few queues.
	} while (rc != -ERANGE && gen_now_ns() < deadline_ns && !tester->stop);
	cv_error_set(error, "%s", why.text);
	return false;
}
