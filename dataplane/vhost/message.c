// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "vhost/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define BIT(n) (1ull << (n))

enum {
	STATE = sizeof(struct vhost_vring_state),
	ADDRESS = sizeof(struct vhost_vring_addr),
	U64 = sizeof(uint64_t),
	LOG = 2 * sizeof(uint64_t),
	TABLE = offsetof(struct cv_vhost_memory_table, regions)
};

// Descriptors that come along.
enum carries { NONE, ONE, ONE_OR_NONE, EACH_REGION };

static const struct rule {
	const char *name; // NULL: there is no such request
	uint16_t bytes; // EACH_REGION: and the regions
	uint8_t carries; // enum carries
	bool is_query;
	uint64_t needs; // a protocol feature; 0: none
} rules[CV_VHOST_REQUESTS] = {
	[CV_VHOST_GET_FEATURES] = {"GET_FEATURES", 0, NONE, true, 0},
	[CV_VHOST_SET_FEATURES] = {"SET_FEATURES", U64, NONE, false, 0},
	[CV_VHOST_SET_OWNER] = {"SET_OWNER", 0, NONE, false, 0},
	[CV_VHOST_RESET_OWNER] = {"RESET_OWNER", 0, NONE, false, 0},
	[CV_VHOST_SET_MEM_TABLE] = {"SET_MEM_TABLE", TABLE, EACH_REGION, false, 0},
	[CV_VHOST_SET_LOG_BASE] = {"SET_LOG_BASE", LOG, ONE, false,
		BIT(CV_VHOST_PROTOCOL_F_LOG_SHMFD)},
	[CV_VHOST_SET_LOG_FD] = {"SET_LOG_FD", 0, ONE, false, BIT(CV_VHOST_PROTOCOL_F_LOG_SHMFD)},
	[CV_VHOST_SET_VRING_NUM] = {"SET_VRING_NUM", STATE, NONE, false, 0},
	[CV_VHOST_SET_VRING_ADDR] = {"SET_VRING_ADDR", ADDRESS, NONE, false, 0},
	[CV_VHOST_SET_VRING_BASE] = {"SET_VRING_BASE", STATE, NONE, false, 0},
	[CV_VHOST_GET_VRING_BASE] = {"GET_VRING_BASE", STATE, NONE, false, 0},
	[CV_VHOST_SET_VRING_KICK] = {"SET_VRING_KICK", U64, ONE_OR_NONE, false, 0},
	[CV_VHOST_SET_VRING_CALL] = {"SET_VRING_CALL", U64, ONE_OR_NONE, false, 0},
	[CV_VHOST_SET_VRING_ERR] = {"SET_VRING_ERR", U64, ONE_OR_NONE, false, 0},
	[CV_VHOST_GET_PROTOCOL_FEATURES] = {"GET_PROTOCOL_FEATURES", 0, NONE, true, 0},
	[CV_VHOST_SET_PROTOCOL_FEATURES] = {"SET_PROTOCOL_FEATURES", U64, NONE, false, 0},
	[CV_VHOST_GET_QUEUE_NUM] = {"GET_QUEUE_NUM", 0, NONE, true, BIT(CV_VHOST_PROTOCOL_F_MQ)},
	[CV_VHOST_SET_VRING_ENABLE] = {"SET_VRING_ENABLE", STATE, NONE, false, 0},
	[CV_VHOST_NET_SET_MTU] = {"NET_SET_MTU", U64, NONE, false,
		BIT(CV_VHOST_PROTOCOL_F_NET_MTU)},
	[CV_VHOST_SET_STATUS] = {"SET_STATUS", U64, NONE, false, BIT(CV_VHOST_PROTOCOL_F_STATUS)},
	[CV_VHOST_GET_STATUS] = {"GET_STATUS", 0, NONE, true, BIT(CV_VHOST_PROTOCOL_F_STATUS)},
};

static const struct rule *rule_of(uint32_t request)
{
	return request < CV_VHOST_REQUESTS && rules[request].name != NULL ? &rules[request] : NULL;
}

const char *cv_vhost_request_name(uint32_t request)
{
	const struct rule *rule = rule_of(request);

	return rule != NULL ? rule->name : "unknown message";
}

int cv_vhost_refuse(
	const struct cv_vhost_message *message, struct cv_error *error, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cv_error_set(error, "%s: %s", cv_vhost_request_name(message->request), text);
	return -EPROTO;
}

bool cv_vhost_request_is_query(uint32_t request)
{
	const struct rule *rule = rule_of(request);

	return rule != NULL && rule->is_query;
}

int cv_vhost_header_check(
	const struct cv_vhost_message *message, uint64_t protocol, struct cv_error *error)
{
	const struct rule *rule = rule_of(message->request);
	const uint32_t region = sizeof(struct cv_vhost_region);
	bool fits;

	if (rule == NULL || (rule->needs & ~protocol) != 0) {
		cv_error_set(error, "message %u: %s", message->request,
			rule == NULL ? "is none that this port serves"
				     : "belongs to a feature that was not negotiated");
		return -EPROTO;
	}
	if ((message->flags & ~CV_VHOST_NEED_REPLY) != CV_VHOST_VERSION) {
		cv_error_set(
			error, "%s: flags 0x%x are not a front end's", rule->name, message->flags);
		return -EPROTO;
	}
	if (rule->carries == EACH_REGION)
		fits = message->bytes >= TABLE + region &&
		       message->bytes <= TABLE + CV_VHOST_REGIONS_MAX * region;
	else
		fits = message->bytes == rule->bytes;
	if (!fits) {
		cv_error_set(error, "%s: must not have %u bytes", rule->name, message->bytes);
		return -EPROTO;
	}
	return 0;
}

static int refuse_bits(const struct rule *rule, uint64_t value, struct cv_error *error)
{
	cv_error_set(
		error, "%s: has unknown bits set: 0x%llx", rule->name, (unsigned long long)value);
	return -EPROTO;
}

// How many descriptors must have come along, or -EPROTO.
static int fds_of(
	const struct rule *rule, const struct cv_vhost_message *message, struct cv_error *error)
{
	const uint64_t u64 = message->u64;

	switch (rule->carries) {
	case ONE:
		return 1;
	case ONE_OR_NONE:
		if ((u64 & ~(uint64_t)(CV_VHOST_VRING_INDEX | CV_VHOST_VRING_NO_FD)) != 0)
			return refuse_bits(rule, u64, error);
		return u64 & CV_VHOST_VRING_NO_FD ? 0 : 1;
	case EACH_REGION:
		if (message->memory.count <= CV_VHOST_REGIONS_MAX &&
			message->bytes ==
				TABLE + message->memory.count * sizeof(struct cv_vhost_region))
			return (int)message->memory.count;
		cv_error_set(error, "%s: has %u bytes, which are not %u regions", rule->name,
			message->bytes, message->memory.count);
		return -EPROTO;
	default:
		return 0;
	}
}

int cv_vhost_message_check(
	const struct cv_vhost_message *message, unsigned fds, struct cv_error *error)
{
	const struct rule *rule = rule_of(message->request);
	const int wanted = fds_of(rule, message, error);

	if (wanted < 0)
		return wanted;
	if ((unsigned)wanted != fds) {
		cv_error_set(
			error, "%s: came with %u descriptors, not %d", rule->name, fds, wanted);
		return -EPROTO;
	}
	if (message->request == CV_VHOST_SET_VRING_ENABLE && message->state.num > 1)
		return refuse_bits(rule, message->state.num, error);
	if (message->request == CV_VHOST_SET_VRING_ADDR &&
		(message->address.flags & ~BIT(VHOST_VRING_F_LOG)) != 0)
		return refuse_bits(rule, message->address.flags, error);
	if (message->request == CV_VHOST_SET_STATUS && message->u64 > 0xff)
		return refuse_bits(rule, message->u64, error);
	return 0;
}
