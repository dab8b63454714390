// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The extension headers of an IPv6 packet that is for this node (RFC 8200 section 4): whoever forwards
// one does not look at them. This node knows no option and no type of routing header.
#ifndef CV_IPV6_HEADERS_H
#define CV_IPV6_HEADERS_H

#include <stdint.h>

enum cv_ipv6_headers {
	CV_IPV6_UPPER, // at is where the upper layer begins, proto what it is
	CV_IPV6_FRAGMENTED, // it would have to be reassembled
	CV_IPV6_DISCARDED, // an option asks for that, or the headers do not fit
	// Its sender is to be told (RFC 4443 section 3.4), and at is what is wrong with it:
	CV_IPV6_ERRONEOUS, // a header field
	CV_IPV6_UNKNOWN_HEADER, // the field that announces it
	CV_IPV6_UNKNOWN_OPTION,
};

// Reads the headers at ip, which cv_ipv6_check() accepted. at counts from the IPv6 header.
enum cv_ipv6_headers cv_ipv6_read_headers(const uint8_t *ip, uint16_t *at, uint8_t *proto);

#endif
