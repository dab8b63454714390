// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/traffic/template.h"

#include <string.h>

#include "gen/traffic/stamp.h"

#define ETHERNET 14u
#define VLAN_TAG 4u

static uint32_t l3_bytes(const struct gen_flows *flows)
{
	return flows->ip == 6 ? 40 : 20;
}

static uint32_t l4_bytes(const struct gen_flows *flows)
{
	return flows->protocol == GEN_TCP ? 20 : 8;
}

uint32_t gen_template_min(const struct gen_flows *flows)
{
	const uint32_t least = ETHERNET + (flows->tagged ? VLAN_TAG : 0) + l3_bytes(flows) +
			       l4_bytes(flows) + GEN_STAMP_BYTES;

	return least < 60 ? 60 : least;
}

static uint8_t *put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

// The last `bytes` bytes of low + flow % span.
static uint8_t *put_range(uint8_t *at, const struct gen_range *range, uint32_t flow, uint32_t bytes)
{
	uint64_t carry = flow % range->span;

	for (int i = 15; i >= 16 - (int)bytes; i--) {
		carry += range->low[i];
		at[i - (16 - (int)bytes)] = (uint8_t)carry;
		carry >>= 8;
	}
	return at + bytes;
}

// RFC 1071, over big-endian words.
static uint32_t sum(const uint8_t *at, uint32_t bytes)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i + 1 < bytes; i += 2)
		total += (uint32_t)at[i] << 8 | at[i + 1];
	if (bytes % 2 == 1)
		total += (uint32_t)at[bytes - 1] << 8;
	return total;
}

void gen_template_write(
	uint8_t *frame, uint32_t bytes, const struct gen_flows *flows, uint32_t flow)
{
	uint8_t *at = frame;

	memset(frame, 0, bytes);
	memcpy(at, flows->dst_mac, 6);
	memcpy(at + 6, flows->src_mac, 6);
	at += 12;
	if (flows->tagged) {
		at = put16(at, 0x8100);
		at = put_range(at, &flows->vlan, flow, 2);
	}
	at = put16(at, flows->ip == 6 ? 0x86dd : 0x0800);

	uint8_t *l3 = at;
	const uint32_t l3_length = (uint32_t)(frame + bytes - l3);
	const uint32_t l4_length = l3_length - l3_bytes(flows);
	uint8_t *addresses;
	if (flows->ip == 6) {
		l3[0] = 0x60;
		put16(l3 + 4, l4_length);
		l3[6] = (uint8_t)flows->protocol;
		l3[7] = 64;
		addresses = l3 + 8;
		put_range(put_range(addresses, &flows->src_ip, flow, 16), &flows->dst_ip, flow, 16);
	} else {
		l3[0] = 0x45;
		put16(l3 + 2, l3_length);
		l3[8] = 64;
		l3[9] = (uint8_t)flows->protocol;
		addresses = l3 + 12;
		put_range(put_range(addresses, &flows->src_ip, flow, 4), &flows->dst_ip, flow, 4);
		put16(l3 + 10, gen_fold(sum(l3, 20)) ^ 0xffff);
	}

	uint8_t *l4 = l3 + l3_bytes(flows);
	put_range(put_range(l4, &flows->src_port, flow, 2), &flows->dst_port, flow, 2);
	// A recognisable payload; the stamp's place stays zero, and so does its sum.
	for (uint8_t *p = l4 + l4_bytes(flows); p < frame + bytes; p++)
		*p = (uint8_t)(p - l4);
	memset(frame + gen_stamp_offset(bytes), 0, GEN_STAMP_BYTES);

	uint8_t *checksum = l4 + 6;
	if (flows->protocol == GEN_TCP) {
		if (flows->opens)
			put16(put16(l4 + 4, (GEN_TCP_SEQ - 1) >> 16), (GEN_TCP_SEQ - 1) & 0xffff);
		l4[12] = 5 << 4;
		l4[13] = flows->opens ? 0x02 : 0x10; // SYN or ACK
		put16(l4 + 14, 65535);
		checksum = l4 + 16;
	} else {
		put16(l4 + 4, l4_length);
	}
	const uint32_t pseudo =
		sum(addresses, (uint32_t)(l4 - addresses)) + l4_length + (uint32_t)flows->protocol;
	const uint32_t value = gen_fold((uint64_t)pseudo + sum(l4, l4_length)) ^ 0xffff;
	// UDP: 0 would mean "none" (RFC 768).
	put16(checksum, value == 0 && flows->protocol == GEN_UDP ? 0xffff : value);
}
