// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// OpenFlow 1.3 on the wire (OpenFlow Switch Specification 1.3.5, chapter 7): the numbers that we
// know, and numbers of its byte order.
#ifndef CV_OF_WIRE_H
#define CV_OF_WIRE_H

#include <stdint.h>
#include <string.h>

#include "packet/compiler.h"

#define CV_OF_VERSION 4
#define CV_OF_HEADER 8u // bytes: version, type, length, xid

enum cv_of_type {
	CV_OF_HELLO,
	CV_OF_ERROR,
	CV_OF_ECHO_REQUEST,
	CV_OF_ECHO_REPLY,
	CV_OF_EXPERIMENTER,
	CV_OF_FEATURES_REQUEST,
	CV_OF_FEATURES_REPLY,
	CV_OF_GET_CONFIG_REQUEST,
	CV_OF_GET_CONFIG_REPLY,
	CV_OF_SET_CONFIG,
	CV_OF_PACKET_IN,
	CV_OF_FLOW_REMOVED,
	CV_OF_PORT_STATUS,
	CV_OF_PACKET_OUT,
	CV_OF_FLOW_MOD,
	CV_OF_GROUP_MOD,
	CV_OF_PORT_MOD,
	CV_OF_TABLE_MOD,
	CV_OF_MULTIPART_REQUEST,
	CV_OF_MULTIPART_REPLY,
	CV_OF_BARRIER_REQUEST,
	CV_OF_BARRIER_REPLY,
	CV_OF_QUEUE_CONFIG_REQUEST,
	CV_OF_QUEUE_CONFIG_REPLY,
	CV_OF_ROLE_REQUEST,
	CV_OF_ROLE_REPLY,
	CV_OF_GET_ASYNC_REQUEST,
	CV_OF_GET_ASYNC_REPLY,
	CV_OF_SET_ASYNC,
	CV_OF_METER_MOD,
};

enum cv_of_multipart {
	CV_OF_DESC,
	CV_OF_FLOW,
	CV_OF_AGGREGATE,
	CV_OF_TABLE,
	CV_OF_PORT_STATS,
	CV_OF_GROUP_STATS = 6,
	CV_OF_GROUP_DESC,
	CV_OF_GROUP_FEATURES,
	CV_OF_TABLE_FEATURES = 12,
	CV_OF_PORT_DESC = 13,
};

// Why something was refused: type << 16 | code; 0: it was not.
#define CV_OF_REFUSED(type, code) ((uint32_t)(type) << 16 | (code) | 1u << 31)
#define CV_OF_ERROR_TYPE(refused) ((refused) >> 16 & 0x7fff)
#define CV_OF_ERROR_CODE(refused) ((refused)&0xffff)

#define CV_OF_BAD_VERSION CV_OF_REFUSED(1, 0)
#define CV_OF_BAD_TYPE CV_OF_REFUSED(1, 1)
#define CV_OF_BAD_MULTIPART CV_OF_REFUSED(1, 2)
#define CV_OF_BAD_EXPERIMENTER CV_OF_REFUSED(1, 3)
#define CV_OF_BAD_LEN CV_OF_REFUSED(1, 6)
#define CV_OF_BUFFER_UNKNOWN CV_OF_REFUSED(1, 8)
#define CV_OF_BAD_TABLE CV_OF_REFUSED(1, 9)
#define CV_OF_IS_SLAVE CV_OF_REFUSED(1, 10)
#define CV_OF_BAD_PORT CV_OF_REFUSED(1, 11)
#define CV_OF_MULTIPART_OVERFLOW CV_OF_REFUSED(1, 13)
#define CV_OF_ACTION_TYPE CV_OF_REFUSED(2, 0)
#define CV_OF_ACTION_LEN CV_OF_REFUSED(2, 1)
#define CV_OF_ACTION_EXPERIMENTER CV_OF_REFUSED(2, 2)
#define CV_OF_ACTION_OUT_PORT CV_OF_REFUSED(2, 4)
#define CV_OF_ACTION_OUT_GROUP CV_OF_REFUSED(2, 9)
#define CV_OF_ACTION_TOO_MANY CV_OF_REFUSED(2, 7)
#define CV_OF_SET_TYPE CV_OF_REFUSED(2, 13)
#define CV_OF_SET_LEN CV_OF_REFUSED(2, 14)
#define CV_OF_SET_ARGUMENT CV_OF_REFUSED(2, 15)
#define CV_OF_INSTRUCTION_UNKNOWN CV_OF_REFUSED(3, 0)
#define CV_OF_INSTRUCTION_UNSUPPORTED CV_OF_REFUSED(3, 1)
#define CV_OF_INSTRUCTION_EXPERIMENTER CV_OF_REFUSED(3, 5)
#define CV_OF_INSTRUCTION_LEN CV_OF_REFUSED(3, 7)
#define CV_OF_MATCH_TYPE CV_OF_REFUSED(4, 0)
#define CV_OF_MATCH_LEN CV_OF_REFUSED(4, 1)
#define CV_OF_MATCH_WILDCARDS CV_OF_REFUSED(4, 5)
#define CV_OF_MATCH_FIELD CV_OF_REFUSED(4, 6)
#define CV_OF_MATCH_VALUE CV_OF_REFUSED(4, 7)
#define CV_OF_MATCH_MASK CV_OF_REFUSED(4, 8)
#define CV_OF_MATCH_TWICE CV_OF_REFUSED(4, 10)
#define CV_OF_TABLE_FULL CV_OF_REFUSED(5, 1)
#define CV_OF_FLOW_TABLE CV_OF_REFUSED(5, 2)
#define CV_OF_OVERLAP CV_OF_REFUSED(5, 3)
#define CV_OF_BAD_TIMEOUT CV_OF_REFUSED(5, 5)
#define CV_OF_BAD_COMMAND CV_OF_REFUSED(5, 6)
#define CV_OF_BAD_FLAGS CV_OF_REFUSED(5, 7)
#define CV_OF_GROUP_EXISTS CV_OF_REFUSED(6, 0)
#define CV_OF_INVALID_GROUP CV_OF_REFUSED(6, 1)
#define CV_OF_BAD_WEIGHT CV_OF_REFUSED(6, 2)
#define CV_OF_OUT_OF_GROUPS CV_OF_REFUSED(6, 3)
#define CV_OF_OUT_OF_BUCKETS CV_OF_REFUSED(6, 4)
#define CV_OF_CHAINED_GROUP CV_OF_REFUSED(6, 5)
#define CV_OF_NO_WATCHING CV_OF_REFUSED(6, 6)
#define CV_OF_UNKNOWN_GROUP CV_OF_REFUSED(6, 8)
#define CV_OF_GROUP_TYPE CV_OF_REFUSED(6, 10)
#define CV_OF_GROUP_COMMAND CV_OF_REFUSED(6, 11)
#define CV_OF_BAD_BUCKET CV_OF_REFUSED(6, 12)
#define CV_OF_OUT_OF_METERS CV_OF_REFUSED(12, 10)
#define CV_OF_CONFIG_FLAGS CV_OF_REFUSED(10, 0)
#define CV_OF_ROLE_STALE CV_OF_REFUSED(11, 0)
#define CV_OF_ROLE_BAD CV_OF_REFUSED(11, 2)

#define CV_OF_FEATURES_FIXED CV_OF_REFUSED(13, 5)

#define CV_OF_ANY 0xffffffffu // port, group, and "no buffer"
#define CV_OF_ALL_TABLES 0xff
#define CV_OF_SEND_REMOVED 1 // a flow's flag
#define CV_OF_CHECK_OVERLAP 2
#define CV_OF_MORE 1 // a multipart message's flag
#define CV_OF_LIVE 4 // a port's state
#define CV_OF_UNKNOWN_COUNT UINT64_MAX // of what is not counted (5.8)

enum cv_of_command {
	CV_OF_ADD,
	CV_OF_MODIFY,
	CV_OF_MODIFY_STRICT,
	CV_OF_DELETE,
	CV_OF_DELETE_STRICT,
};

enum cv_of_removed {
	CV_OF_REMOVED_IDLE,
	CV_OF_REMOVED_HARD,
	CV_OF_REMOVED_DELETE,
	CV_OF_REMOVED_GROUP,
};

enum cv_of_group_command { CV_OF_GROUP_ADD, CV_OF_GROUP_MODIFY, CV_OF_GROUP_DELETE };

#define CV_OF_SELECT 1u // a group's type: one bucket for each flow
#define CV_OF_ALL_GROUPS 0xfffffffcu
#define CV_OF_GROUP_ID_MAX 0xffffff00u

enum cv_of_role { CV_OF_ROLE_NOCHANGE, CV_OF_EQUAL, CV_OF_MASTER, CV_OF_SLAVE };

// The header of a field: class << 16 | field << 9 | has a mask << 8 | bytes.
#define CV_OF_OXM_CLASS 0x8000u
#define CV_OF_OXM_VLAN 6u // 13 bits: CV_OF_VLAN_PRESENT and the id
#define CV_OF_OXM_TUNNEL 38u
#define CV_OF_OXM(field, bytes) (CV_OF_OXM_CLASS << 16 | (field) << 9 | (bytes))
#define CV_OF_VLAN_PRESENT 0x1000u

static CV_INLINE uint16_t cv_of_get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static CV_INLINE uint32_t cv_of_get32(const uint8_t *at)
{
	return (uint32_t)cv_of_get16(at) << 16 | cv_of_get16(at + 2);
}

static CV_INLINE uint64_t cv_of_get64(const uint8_t *at)
{
	return (uint64_t)cv_of_get32(at) << 32 | cv_of_get32(at + 4);
}

static CV_INLINE void cv_of_put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static CV_INLINE void cv_of_put32(uint8_t *at, uint32_t value)
{
	cv_of_put16(at, (uint16_t)(value >> 16));
	cv_of_put16(at + 2, (uint16_t)value);
}

static CV_INLINE void cv_of_put64(uint8_t *at, uint64_t value)
{
	cv_of_put32(at, (uint32_t)(value >> 32));
	cv_of_put32(at + 4, (uint32_t)value);
}

// The bytes that a match or an instruction takes, with what fills it up to eight.
static CV_INLINE size_t cv_of_padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

#endif
