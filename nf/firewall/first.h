// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What a flow's first packet had that rules ask for and no other packet of it tells, in 4 bytes:
// its length, DSCP and tag. Any bytes mean something.
#ifndef CV_FIREWALL_FIRST_H
#define CV_FIREWALL_FIRST_H

#include <stdbool.h>

#include "nf/firewall/fields.h"

// Longer first packets are not kept. There is no length of 0.
#define CV_FIREWALL_FIRST_LENGTH_MAX 0x1fff

struct cv_firewall_first {
	uint32_t length : 13; // 0: nothing is known
	uint32_t dscp : 6;
	uint32_t untagged : 1;
	uint32_t vlan : 12;
};

_Static_assert(sizeof(struct cv_firewall_first) == 4, "as flows keep it");

static inline void cv_firewall_first_keep(
	struct cv_firewall_first *first, const struct cv_firewall_fields *fields)
{
	const uint16_t length = fields->word[CV_FIREWALL_FIELD_LENGTH];
	const uint16_t vlan = fields->word[CV_FIREWALL_FIELD_VLAN];

	first->length = length <= CV_FIREWALL_FIRST_LENGTH_MAX ? length : 0;
	first->dscp = fields->word[CV_FIREWALL_FIELD_IP] >> CV_FIREWALL_DSCP_SHIFT;
	first->untagged = vlan == CV_FIREWALL_UNTAGGED;
	first->vlan = vlan & 0xfff;
}

// False: nothing is known.
static inline bool cv_firewall_first_tell(
	const struct cv_firewall_first *first, struct cv_firewall_fields *fields)
{
	if (first->length == 0)
		return false;
	fields->word[CV_FIREWALL_FIELD_LENGTH] = (uint16_t)first->length;
	fields->word[CV_FIREWALL_FIELD_IP] = (uint16_t)(first->dscp << CV_FIREWALL_DSCP_SHIFT);
	fields->word[CV_FIREWALL_FIELD_VLAN] =
		first->untagged ? CV_FIREWALL_UNTAGGED : (uint16_t)first->vlan;
	return true;
}

#endif
