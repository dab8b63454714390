// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Flows through a nat whose process ends: for tests.
#ifndef CV_TEST_NAT_FLOWS_H
#define CV_TEST_NAT_FLOWS_H

#include "nf/nat/nat.h"
#include "nf/nat/test_net.h"

#define FLOWS 40u

// Whether this kernel makes large pages of files: without them flows do not outlive their process.
static inline bool can(const struct net *net)
{
	const bool does = cv_nat_kept.give(net->nat) >= 0;

	if (!does)
		print_message("this kernel makes no large pages of files (Linux 6.1): skipped\n");
	return does;
}

// A packet from inside, or what comes to a port outside; where it goes, or came from, in port.
static inline const char *transmit(struct net *net, unsigned host, uint16_t *port, bool answer)
{
	uint8_t at = answer ? OUTSIDE : INSIDE;
	char text[128];
	struct packet packet;
	const char *what;

	if (answer)
		snprintf(text, sizeof(text),
			"ip4 src=203.0.113.9 dst=198.51.100.1 udp sport=53 dport=%u", *port);
	else
		snprintf(text, sizeof(text),
			"ip4 src=10.0.0.%u dst=203.0.113.9 udp sport=%u dport=53", host / 8 + 1,
			2000 + host);
	packet = net_packet(text);
	what = net_pass(net, &packet, &at);
	if (!answer)
		*port = (uint16_t)(packet.bytes[14 + 20] << 8 | packet.bytes[14 + 21]);
	return what;
}

struct flows {
	uint16_t port[FLOWS];
};

static inline void open_flows(struct net *net, struct flows *flows)
{
	for (unsigned i = 0; i < FLOWS; i++)
		assert_string_equal(transmit(net, i, &flows->port[i], false), "next");
}

#endif
