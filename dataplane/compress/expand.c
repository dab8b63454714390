// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "compress/codec.h"
#include "packet/checksum.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/udp.h"

static const struct cv_dictionary *find(const struct cv_expander *expander, uint32_t id)
{
	for (unsigned i = 0; i < expander->dictionaries_count; i++)
		if (expander->dictionaries[i]->id == id)
			return expander->dictionaries[i];
	return NULL;
}

// Gives the headers of what is a good convoy but for its type those of one with so many bytes of
// packets.
static void update_headers(uint8_t *frame, const struct cv_view *was, uint32_t at, uint32_t bytes)
{
	uint8_t *l3 = frame + was->l3;
	struct cv_udp *udp = (struct cv_udp *)(frame + at - CV_CONVOY_LEN - CV_UDP_LEN);
	const uint16_t udp_len = (uint16_t)(CV_UDP_LEN + CV_CONVOY_LEN + bytes);

	frame[at - CV_CONVOY_LEN] = CV_CONVOY_VERSION << 4 | CV_CONVOY_ETHERNET;
	udp->len = rte_cpu_to_be_16(udp_len);
	udp->checksum = 0;
	if (was->proto == CV_PROTO_IPV4) {
		struct cv_ipv4 *ip = (struct cv_ipv4 *)l3;

		ip->total_len = rte_cpu_to_be_16((uint16_t)(CV_IPV4_LEN + udp_len));
		ip->checksum = 0;
		ip->checksum = cv_checksum(l3, CV_IPV4_LEN);
	} else {
		((struct cv_ipv6 *)l3)->payload_len = rte_cpu_to_be_16(udp_len);
	}
}

enum cv_convoy_reason cv_expand(const struct cv_expander *expander, const struct cv_view *frame,
	rte_be16_t port, uint8_t *to, uint32_t room, uint16_t *len)
{
	const uint32_t most = room < UINT16_MAX ? room : UINT16_MAX;
	const struct cv_dictionary *dictionary;
	struct cv_convoy_compression header;
	enum cv_convoy_reason reason;
	struct cv_convoy convoy;
	uint32_t at, bytes;

	reason = cv_convoy_walk_compressed(&convoy, frame, port);
	if (reason != CV_CONVOY_OK)
		return reason;
	at = convoy.packets_at;
	if (frame->len - at < sizeof(header))
		return CV_CONVOY_BAD_LENGTH;
	memcpy(&header, frame->data + at, sizeof(header));
	CV_COPIED();
	if (header.codec != CV_CONVOY_LZ4 || header.reserved != 0)
		return CV_CONVOY_BAD_CODEC;
	dictionary = find(expander, rte_be_to_cpu_32(header.dictionary));
	if (dictionary == NULL)
		return CV_CONVOY_WRONG_DICTIONARY;
	bytes = rte_be_to_cpu_16(header.bytes);
	if (bytes < CV_CONVOY_PREFIX_LEN || at + bytes > most)
		return CV_CONVOY_BAD_LENGTH;
	if (!cv_codec_expand(dictionary, frame->data + at + sizeof(header),
		    frame->len - at - (uint32_t)sizeof(header), to + at, bytes))
		return CV_CONVOY_BAD_BLOCK;
	memcpy(to, frame->data, at);
	update_headers(to, frame, at, bytes);
	*len = (uint16_t)(at + bytes);
	return CV_CONVOY_OK;
}
