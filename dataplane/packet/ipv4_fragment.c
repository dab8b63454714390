// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "packet/ipv4_fragment.h"

#include <string.h>

#include <rte_common.h>

#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_COPIED 0x80

// Copies those options that go into every fragment, padded to words. Returns how many bytes; to may
// be NULL. An option that contradicts itself ends them.
static uint16_t copied_options(const struct cv_ipv4 *ip, uint8_t *to)
{
	const uint8_t *options = (const uint8_t *)ip + CV_IPV4_LEN;
	uint16_t len = cv_ipv4_header_len(ip) - CV_IPV4_LEN;
	uint16_t copied = 0, bytes;

	for (uint16_t at = 0; at < len && options[at] != OPTION_END; at += bytes) {
		bytes = options[at] == OPTION_NOP ? 1 : at + 1 < len ? options[at + 1] : 0;
		if (bytes == 0 || at + bytes > len || (options[at] != OPTION_NOP && bytes < 2))
			break;
		if (!(options[at] & OPTION_COPIED))
			continue;
		if (to != NULL)
			memcpy(to + copied, options + at, bytes);
		copied += bytes;
	}
	if (to != NULL)
		memset(to + copied, OPTION_END, -copied & 3);
	return (uint16_t)((copied + 3) & ~3);
}

void cv_ipv4_fragments(const struct cv_ipv4 *ip, uint16_t mtu, struct cv_ipv4_fragments *fragments)
{
	uint16_t header = cv_ipv4_header_len(ip);
	uint16_t payload = rte_be_to_cpu_16(ip->total_len) - header;
	uint16_t other_header = CV_IPV4_LEN + copied_options(ip, NULL);

	*fragments = (struct cv_ipv4_fragments){.payload = payload, .other_header = other_header};
	// A header too long for the MTU; or the end would be behind the longest packet's, as of a
	// fragment that somebody made up.
	if (mtu < header + 8 ||
		(rte_be_to_cpu_16(ip->fragment & CV_IPV4_OFFSET)) * 8 + payload > UINT16_MAX)
		return;
	fragments->first_payload = (uint16_t)((mtu - header) & ~7);
	fragments->first_len = header + fragments->first_payload;
	fragments->step = (uint16_t)((mtu - other_header) & ~7);
	// The last may take what is no multiple of 8.
	fragments->count = 1;
	for (uint32_t left = payload - RTE_MIN(payload, fragments->first_payload); left > 0;
		left -= RTE_MIN(left, fragments->step))
		fragments->count++;
}

static uint16_t begin_of(const struct cv_ipv4_fragments *fragments, uint16_t i)
{
	return (uint16_t)(fragments->first_payload + (i - 1) * fragments->step);
}

uint16_t cv_ipv4_fragment_len(const struct cv_ipv4_fragments *fragments, uint16_t i)
{
	uint16_t left = fragments->payload - begin_of(fragments, i);

	return fragments->other_header + RTE_MIN(left, fragments->step);
}

// The fragment field of what begins so many bytes into the packet, which may be a fragment.
static rte_be16_t field(const struct cv_ipv4 *ip, uint16_t begin, bool more)
{
	uint16_t was = rte_be_to_cpu_16(ip->fragment);

	return rte_cpu_to_be_16((uint16_t)(was + begin / 8)) | (more ? CV_IPV4_MF : 0);
}

static void finish(struct cv_ipv4 *ip, uint16_t len)
{
	ip->total_len = rte_cpu_to_be_16(len);
	ip->checksum = 0;
	ip->checksum = cv_checksum((const uint8_t *)ip, cv_ipv4_header_len(ip));
}

void cv_ipv4_fragment(const struct cv_ipv4 *ip, const struct cv_ipv4_fragments *fragments,
	uint16_t i, uint8_t *out)
{
	uint16_t begin = begin_of(fragments, i), len = cv_ipv4_fragment_len(fragments, i);
	struct cv_ipv4 *header = (struct cv_ipv4 *)out;

	memcpy(out, ip, CV_IPV4_LEN);
	copied_options(ip, out + CV_IPV4_LEN);
	memcpy(out + fragments->other_header, (const uint8_t *)ip + cv_ipv4_header_len(ip) + begin,
		len - fragments->other_header);
	header->version_ihl = (uint8_t)(0x40 | fragments->other_header / 4);
	header->fragment = field(ip, begin, i + 1 < fragments->count);
	finish(header, len);
}

void cv_ipv4_fragment_first(struct cv_ipv4 *ip, const struct cv_ipv4_fragments *fragments)
{
	ip->fragment = field(ip, 0, fragments->count > 1);
	finish(ip, fragments->first_len);
}
