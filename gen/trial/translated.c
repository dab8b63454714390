// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/trial/translated.h"

#include <string.h>

#include "gen/traffic/stamp.h"

static uint32_t be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t be32(const uint8_t *at)
{
	return be16(at) << 16 | be16(at + 2);
}

// One's complement sum, big-endian.
static uint32_t sum(const uint8_t *at, uint32_t bytes)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i + 1 < bytes; i += 2)
		total += be16(at + i);
	return bytes % 2 == 1 ? total + ((uint32_t)at[bytes - 1] << 8) : total;
}

static bool in_range(const struct gen_range *range, uint32_t address)
{
	return address - be32(range->low + 12) < range->span;
}

void gen_translated_check(const struct gen_spec *spec, const struct gen_walk *walk, uint32_t seq,
	const struct gen_rx *frame, bool back, struct gen_translated *counts)
{
	const struct gen_walk_tuple sent = gen_walk_tuple(walk, seq);
	const uint8_t *l3 = frame->data + walk->l3, *l4 = frame->data + walk->l4;
	const uint32_t bytes = frame->bytes - walk->l3, l4_bytes = frame->bytes - walk->l4;

	counts->checked++;
	if (!frame->whole || frame->bytes < walk->l4 + 20 || l3[0] != 0x45 ||
		be16(l3 + 2) != bytes || l3[9] != (uint8_t)spec->flows.protocol) {
		counts->length++;
		return;
	}
	const uint32_t pseudo = sum(l3 + 12, 8) + l3[9] + l4_bytes;
	if (gen_fold(sum(l3, 20)) != 0xffff ||
		gen_fold((uint64_t)pseudo + sum(l4, l4_bytes)) != 0xffff)
		counts->checksum++;
	const uint32_t from_ip = be32(l3 + 12), to_ip = be32(l3 + 16);
	const uint32_t from_port = be16(l4), to_port = be16(l4 + 2);
	const uint32_t *field = sent.field;
	const uint32_t server_ip = back ? from_ip : to_ip;
	const uint32_t server_port = back ? from_port : to_port;
	const bool client =
		back ? to_ip == field[GEN_WALK_SRC_IP] && to_port == field[GEN_WALK_SRC_PORT]
		     : in_range(&spec->translated, from_ip) && from_port != 0;
	const bool server =
		server_ip == field[GEN_WALK_DST_IP] && server_port == field[GEN_WALK_DST_PORT];

	counts->source += back ? !server : !client;
	counts->destination += back ? !client : !server;
}
