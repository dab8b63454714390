// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The Internet checksum: RFC 1071, and RFC 1624 for changing it with what it covers.
//
// All sums are of 16-bit words as they lie in memory: the one's complement sum does not care about
// byte order (RFC 1071 section 2 (B)), so nothing is swapped.
#ifndef CV_CHECKSUM_H
#define CV_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/compiler.h"

// Adds len bytes to a sum that is not folded yet; an odd last byte is followed by a zero.
static CV_INLINE uint64_t cv_checksum_add(uint64_t sum, const uint8_t *data, size_t len)
{
	uint32_t word;
	uint16_t half;

	for (; len >= 4; data += 4, len -= 4) {
		memcpy(&word, data, 4);
		sum += word;
	}
	if (len >= 2) {
		memcpy(&half, data, 2);
		sum += half;
		data += 2;
		len -= 2;
	}
	if (len == 1) {
		half = 0;
		memcpy(&half, data, 1);
		sum += half;
	}
	return sum;
}

// The one's complement sum as 16 bits. Sums of up to 4 GiB of data fold without loss.
static CV_INLINE uint16_t cv_checksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

// The checksum to store over len bytes, whose checksum field is zero.
static CV_INLINE rte_be16_t cv_checksum(const uint8_t *data, size_t len)
{
	return (rte_be16_t)~cv_checksum_fold(cv_checksum_add(0, data, len));
}

// The checksum after a 16-bit word under it changed from old to new: RFC 1624 equation 3, which
// unlike RFC 1141's gives the same result as computing it afresh, also where that is 0x0000.
static CV_INLINE rte_be16_t cv_checksum_update(rte_be16_t checksum, uint16_t old, uint16_t new)
{
	uint32_t sum = (uint16_t)~checksum + (uint32_t)(uint16_t)~old + new;

	sum = (sum & 0xffff) + (sum >> 16);
	return (rte_be16_t) ~(sum + (sum >> 16));
}

#endif
