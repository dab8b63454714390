// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/openflow/inband.h"

#include <stdbool.h>

#include "daemon/openflow/sha256.h"
#include "daemon/openflow/wire.h"

#define ETHERNET 14u
#define VLAN_TAG 4u
#define VXLAN_PORT 4789u
#define OUTER (20u + 8u + 8u) // IPv4, UDP, VXLAN

// Bytes up to what the frame's type says, and the type; 0: too short.
static size_t pass_ethernet(const uint8_t *frame, size_t length, uint16_t *type)
{
	size_t at = ETHERNET;

	for (unsigned tags = 0; at <= length; tags++) {
		*type = cv_of_get16(frame + at - 2);
		if (tags == 2 || (*type != 0x8100 && *type != 0x88a8))
			return at;
		at += VLAN_TAG;
	}
	return 0;
}

// Where the payload of our type begins; 0: nowhere.
static size_t find_payload(const uint8_t *frame, size_t length)
{
	uint16_t type = 0;
	size_t at = pass_ethernet(frame, length, &type), inner;

	if (at == 0 || type == CV_OF_INBAND_TYPE)
		return at;
	if (type != 0x0800 || length - at < OUTER || frame[at] != 0x45 || frame[at + 9] != 17 ||
		cv_of_get16(frame + at + 22) != VXLAN_PORT)
		return 0;
	at += OUTER;
	inner = pass_ethernet(frame + at, length - at, &type);
	return inner > 0 && type == CV_OF_INBAND_TYPE ? at + inner : 0;
}

static bool are_flow_mods(const uint8_t *messages, size_t bytes)
{
	while (bytes > 0) {
		size_t length;

		if (bytes < CV_OF_HEADER || messages[0] != CV_OF_VERSION ||
			messages[1] != CV_OF_FLOW_MOD)
			return false;
		length = cv_of_get16(messages + 2);
		if (length < CV_OF_HEADER || length > bytes)
			return false;
		messages += length;
		bytes -= length;
	}
	return true;
}

// In a time that does not depend on where they differ.
static bool are_equal(const uint8_t *a, const uint8_t *b, size_t bytes)
{
	unsigned differ = 0;

	for (size_t i = 0; i < bytes; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

static bool is_near(uint64_t time, uint64_t now)
{
	const uint64_t apart = time > now ? time - now : now - time;

	return apart <= CV_OF_INBAND_S * 1000000000ull;
}

const uint8_t *cv_of_inband_open(const uint8_t *frame, size_t length, const uint8_t *key,
	uint64_t now, uint64_t *last, size_t *bytes)
{
	const size_t at = find_payload(frame, length);
	const uint8_t *header = frame + at, *messages = header + CV_OF_INBAND_HEADER;
	uint8_t tag[CV_SHA256_BYTES];
	uint64_t time;

	if (at == 0 || length - at < CV_OF_INBAND_HEADER || memcmp(header, "CVOF\1", 6) != 0)
		return NULL;
	*bytes = cv_of_get16(header + 6);
	if (*bytes > length - at - CV_OF_INBAND_HEADER)
		return NULL;
	time = cv_of_get64(header + 8);
	if (time <= *last || !is_near(time, now))
		return NULL;
	cv_hmac_sha256(key, CV_OF_INBAND_KEY, header, 16, messages, *bytes, tag);
	if (!are_equal(tag, header + 16, sizeof(tag)) || !are_flow_mods(messages, *bytes))
		return NULL;
	*last = time;
	return messages;
}
