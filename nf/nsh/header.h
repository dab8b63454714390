// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The Network Service Header (RFC 8300 section 2), straight behind Ethernet and its tags or behind
// VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe-12).
//
//	0 version 2, O 1, U 1, TTL 6, length 6 bits    4 service path 24 bits, index 8 bits
//	2 U 4, metadata type 4 bits, next protocol 8    8 metadata
#ifndef CV_NSH_HEADER_H
#define CV_NSH_HEADER_H

#include "packet/udp.h"
#include "packet/view.h"

#define CV_PROTO_NSH RTE_BE16(0x894f)
#define CV_NSH_LEN 8 // without metadata
#define CV_NSH_CONTEXT_LEN 16 // metadata of type 1
#define CV_NSH_LEN_MAX (63 * 4)
#define CV_NSH_TTL_MAX 63
#define CV_NSH_METADATA_FIXED 1 // type
#define CV_NSH_METADATA_VARIABLE 2

#define CV_NSH_IPV4 1 // next protocol
#define CV_NSH_IPV6 2
#define CV_NSH_ETHERNET 3

#define CV_VXLAN_LEN 8
#define CV_VXLAN_GPE_PORT RTE_BE16(4790)
#define CV_VXLAN_GPE_FLAGS 0x0c // a network id, and a next protocol
#define CV_VXLAN_GPE_NSH 4 // that next protocol

// Where a frame's NSH begins; 0: it has none.
static CV_INLINE unsigned cv_nsh_find(const struct cv_view *view)
{
	const uint8_t *vxlan;
	unsigned udp;

	if (CV_LIKELY(view->proto == CV_PROTO_NSH))
		return view->l3;
	udp = cv_udp_find(view, CV_VXLAN_LEN);
	if (udp == 0 || cv_load_be16(view->data + udp + 2) != CV_VXLAN_GPE_PORT)
		return 0;
	vxlan = view->data + udp + CV_UDP_LEN;
	if ((vxlan[0] & CV_VXLAN_GPE_FLAGS) != CV_VXLAN_GPE_FLAGS || vxlan[3] != CV_VXLAN_GPE_NSH)
		return 0;
	return udp + CV_UDP_LEN + CV_VXLAN_LEN;
}

// Its bytes with the metadata; 0: its version is none that is known, or its lengths do not add up. Room is
// what there is from its beginning.
static CV_INLINE unsigned cv_nsh_len(const uint8_t *nsh, unsigned room)
{
	unsigned len;

	if (room < CV_NSH_LEN || nsh[0] >> 6 != 0)
		return 0;
	len = (nsh[1] & 63) * 4u;
	if ((nsh[2] & 15) == CV_NSH_METADATA_FIXED && len != CV_NSH_LEN + CV_NSH_CONTEXT_LEN)
		return 0;
	return len < CV_NSH_LEN || len > room ? 0 : len;
}

static CV_INLINE unsigned cv_nsh_metadata_type(const uint8_t *nsh)
{
	return nsh[2] & 15;
}

static CV_INLINE bool cv_nsh_is_oam(const uint8_t *nsh)
{
	return nsh[0] & 0x20;
}

static CV_INLINE unsigned cv_nsh_ttl(const uint8_t *nsh)
{
	return (nsh[0] & 15u) << 2 | nsh[1] >> 6;
}

static CV_INLINE void cv_nsh_set_ttl(uint8_t *nsh, unsigned ttl)
{
	nsh[0] = (uint8_t)((nsh[0] & 0xf0) | ttl >> 2);
	nsh[1] = (uint8_t)((nsh[1] & 0x3f) | ttl << 6);
}

// Path and index, as one number.
static CV_INLINE uint32_t cv_nsh_key(uint32_t path, uint32_t index)
{
	return path << 8 | index;
}

static CV_INLINE uint32_t cv_nsh_key_of(const uint8_t *nsh)
{
	uint32_t word;

	memcpy(&word, nsh + 4, sizeof(word));
	return rte_be_to_cpu_32(word);
}

#endif
