// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The reset that refuses a TCP segment for which there is no connection: RFC 9293 section 3.10.7.1.
#ifndef CV_TCP_RESET_H
#define CV_TCP_RESET_H

#include <stdint.h>

// How long the reset is, IP header included; 0: the packet at ip, whose IP header was checked and
// whose TCP begins at l4, is a reset itself, or not sound.
uint16_t cv_tcp_reset_len(const uint8_t *ip, uint16_t l4);

// Writes it: so many bytes at out. id: of the IPv4 header.
void cv_tcp_reset(uint8_t *out, const uint8_t *ip, uint16_t l4, uint16_t id);

#endif
