// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Takes a tunnel's headers off.
#ifndef CV_STRIP_H
#define CV_STRIP_H

#include "chain/nf_worker.h"

// What begins at `at`, an IP packet, comes straight behind the Ethernet header and its tags, which stay but
// for the type, and ends so many bytes earlier than the view. At is not before the layer 3 nor behind the
// packet.
static CV_INLINE bool cv_strip_to_ip(struct cv_nf_worker *worker, struct cv_view *view, unsigned at,
	unsigned behind, rte_be16_t type)
{
	const unsigned cut = at - view->l3;

	cv_move_ethernet(view->data + cut, view->data, view->l3);
	memcpy(view->data + at - sizeof(type), &type, sizeof(type));
	return cv_nf_cut(worker, view, (uint16_t)cut, (uint16_t)behind);
}

#endif
