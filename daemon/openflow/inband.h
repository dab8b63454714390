// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// FLOW_MODs in frames, as the PA-Flow paper has them (5.3.1): a controller sends them as the data of
// PACKET_OUT, and a virtual switch to the port behind which this node is. Ethernet with up to two VLAN
// tags, or that in VXLAN, and then of type 0x88b5 (IEEE 802, local experiments), numbers in network
// order:
//
//	"CVOF", 1 byte version (1), 1 byte 0, 2 bytes: length of the messages
//	8 bytes: nanoseconds since 1970, more than in any frame before
//	32 bytes: HMAC-SHA-256 (RFC 2104) of the 16 bytes before and the messages
//	messages: FLOW_MODs of OpenFlow 1.3, whole
#ifndef CV_OF_INBAND_H
#define CV_OF_INBAND_H

#include <stddef.h>
#include <stdint.h>

#define CV_OF_INBAND_TYPE 0x88b5
#define CV_OF_INBAND_HEADER 48u // bytes before the messages
#define CV_OF_INBAND_KEY 32u
#define CV_OF_INBAND_S 60u // by which a frame's time may differ from ours

// The messages of a frame if it is authentic and newer than *last, which becomes its time; they lie in
// the frame. NULL: it is not. now: nanoseconds since 1970.
const uint8_t *cv_of_inband_open(const uint8_t *frame, size_t length, const uint8_t *key,
	uint64_t now, uint64_t *last, size_t *bytes);

#endif
