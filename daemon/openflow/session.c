// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/openflow/session.h"

#include <stdlib.h>

#define ERROR_DATA 248u // bytes of what is refused; the specification asks for 64
#define HELLO_VERSIONS 1u // an element of OFPT_HELLO

// What a controller is told unasked until it says otherwise (OFPT_SET_ASYNC): as master, as slave.
static const uint32_t asked_for[6] = {0, 0, 7, 7, 15, 0};

size_t cv_of_room(struct cv_of_session *session)
{
	const size_t used = session->out_to - session->out_from;

	if (session->out_from > 0 && (used == 0 || session->out_to > CV_OF_OUT_BYTES / 2)) {
		memmove(session->out, session->out + session->out_from, used);
		session->out_from = 0;
		session->out_to = used;
	}
	return CV_OF_OUT_BYTES - session->out_to;
}

uint8_t *cv_of_reply(
	struct cv_of_session *session, enum cv_of_type type, uint32_t xid, size_t bytes)
{
	uint8_t *at;

	if (cv_of_room(session) < bytes) {
		session->failed = true;
		return NULL;
	}
	at = session->out + session->out_to;
	session->out_to += bytes;
	memset(at, 0, bytes);
	at[0] = CV_OF_VERSION;
	at[1] = (uint8_t)type;
	cv_of_put16(at + 2, (uint16_t)bytes);
	cv_of_put32(at + 4, xid);
	return at;
}

void cv_of_refuse(
	struct cv_of_session *session, const uint8_t *message, size_t length, uint32_t why)
{
	const size_t data = length < ERROR_DATA ? length : ERROR_DATA;
	uint8_t *at = cv_of_reply(
		session, CV_OF_ERROR, cv_of_get32(message + 4), CV_OF_HEADER + 4 + data);

	cv_of_count(&session->of->counters.refused, 1);
	if (at == NULL)
		return;
	cv_of_put16(at + 8, (uint16_t)CV_OF_ERROR_TYPE(why));
	cv_of_put16(at + 10, (uint16_t)CV_OF_ERROR_CODE(why));
	memcpy(at + 12, message, data);
}

struct cv_of_session *cv_of_session_open(struct cv_of_switch *of)
{
	struct cv_of_session *session = NULL;
	uint8_t *hello;

	for (unsigned i = 0; session == NULL && i < CV_OF_SESSIONS_MAX; i++)
		if (of->sessions[i] == NULL) {
			session = malloc(sizeof(*session));
			of->sessions[i] = session;
			if (session == NULL)
				return NULL;
		}
	if (session == NULL)
		return NULL;
	memset(session, 0, offsetof(struct cv_of_session, in));
	session->of = of;
	session->role = CV_OF_EQUAL;
	memcpy(session->async, asked_for, sizeof(asked_for));
	hello = cv_of_reply(session, CV_OF_HELLO, 0, CV_OF_HEADER + 8);
	cv_of_put16(hello + 8, HELLO_VERSIONS);
	cv_of_put16(hello + 10, 8);
	cv_of_put32(hello + 12, 1u << CV_OF_VERSION);
	return session;
}

void cv_of_session_close(struct cv_of_session *session)
{
	for (unsigned i = 0; i < CV_OF_SESSIONS_MAX; i++)
		if (session->of->sessions[i] == session)
			session->of->sessions[i] = NULL;
	free(session);
}

void cv_of_session_probe(struct cv_of_session *session)
{
	if (session->greeted && cv_of_room(session) >= CV_OF_ANSWER_MAX)
		cv_of_reply(session, CV_OF_ECHO_REQUEST, ++session->xid, CV_OF_HEADER);
}

// Whether whoever greets so speaks our version: by the list of its versions, or else by its highest.
static bool speaks_ours(const uint8_t *hello, size_t length)
{
	for (size_t at = CV_OF_HEADER; length - at >= 4;) {
		const size_t bytes = cv_of_get16(hello + at + 2);

		if (bytes < 4 || bytes > length - at)
			break;
		if (cv_of_get16(hello + at) == HELLO_VERSIONS && bytes >= 8)
			return (cv_of_get32(hello + at + 4) >> CV_OF_VERSION & 1) != 0;
		at += cv_of_padded(bytes) < length - at ? cv_of_padded(bytes) : length - at;
	}
	return hello[0] >= CV_OF_VERSION;
}

static void greet(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	static const char text[] = "this node speaks OpenFlow 1.3";
	uint8_t *at;

	session->greeted = message[1] == CV_OF_HELLO && speaks_ours(message, length);
	if (session->greeted)
		return;
	cv_of_count(&session->of->counters.refused, 1);
	at = cv_of_reply(session, CV_OF_ERROR, cv_of_get32(message + 4),
		CV_OF_HEADER + 4 + sizeof(text) - 1);
	if (at != NULL)
		memcpy(at + 12, text, sizeof(text) - 1); // type and code are 0: incompatible
	session->failed = true;
}

static void tell_features(struct cv_of_session *session, uint32_t xid)
{
	const struct cv_of_node *node = session->of->node;
	uint8_t *at = cv_of_reply(session, CV_OF_FEATURES_REPLY, xid, 32);

	if (at == NULL)
		return;
	cv_of_put64(at + 8, node->datapath_id);
	at[20] = (uint8_t)node->tables_count; // no buffers for packets before it
	cv_of_put32(at + 24, 15); // statistics of flows, tables, ports and groups
}

static void echo(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	uint8_t *at = cv_of_reply(session, CV_OF_ECHO_REPLY, cv_of_get32(message + 4), length);

	if (at != NULL)
		memcpy(at + CV_OF_HEADER, message + CV_OF_HEADER, length - CV_OF_HEADER);
}

static void tell_config(struct cv_of_session *session, uint32_t xid)
{
	uint8_t *at = cv_of_reply(session, CV_OF_GET_CONFIG_REPLY, xid, 12);

	if (at != NULL)
		cv_of_put16(at + 10, session->miss_send_len);
}

static uint32_t set_config(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	if (length != 12)
		return CV_OF_BAD_LEN;
	if (cv_of_get16(message + 8) != 0)
		return CV_OF_CONFIG_FLAGS;
	session->miss_send_len = cv_of_get16(message + 10);
	return 0;
}

static bool is_older(uint64_t generation, uint64_t than)
{
	return (int64_t)(generation - than) < 0;
}

static uint32_t set_role(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	struct cv_of_switch *of = session->of;
	const uint32_t role = length == 24 ? cv_of_get32(message + 8) : 0;
	const uint64_t generation = length == 24 ? cv_of_get64(message + 16) : 0;
	uint8_t *at;

	if (length != 24)
		return CV_OF_BAD_LEN;
	if (role > CV_OF_SLAVE)
		return CV_OF_ROLE_BAD;
	if (role == CV_OF_MASTER || role == CV_OF_SLAVE) {
		if (of->has_generation && is_older(generation, of->role_generation))
			return CV_OF_ROLE_STALE;
		of->has_generation = true;
		of->role_generation = generation;
	}
	for (unsigned i = 0; role == CV_OF_MASTER && i < CV_OF_SESSIONS_MAX; i++)
		if (of->sessions[i] != NULL && of->sessions[i]->role == CV_OF_MASTER)
			of->sessions[i]->role = CV_OF_SLAVE;
	if (role != CV_OF_ROLE_NOCHANGE)
		session->role = (enum cv_of_role)role;
	at = cv_of_reply(session, CV_OF_ROLE_REPLY, cv_of_get32(message + 4), 24);
	if (at != NULL) {
		cv_of_put32(at + 8, session->role);
		cv_of_put64(at + 16, of->has_generation ? of->role_generation : UINT64_MAX);
	}
	return 0;
}

static void tell_async(struct cv_of_session *session, uint32_t xid)
{
	uint8_t *at = cv_of_reply(session, CV_OF_GET_ASYNC_REPLY, xid, 32);

	for (unsigned i = 0; at != NULL && i < 6; i++)
		cv_of_put32(at + 8 + 4 * i, session->async[i]);
}

static uint32_t set_async(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	if (length != 32)
		return CV_OF_BAD_LEN;
	for (unsigned i = 0; i < 6; i++)
		session->async[i] = cv_of_get32(message + 8 + 4 * i);
	return 0;
}

static void barrier(struct cv_of_session *session, uint32_t xid)
{
	if (session->of->changed)
		session->of->node->wait(session->of->node->of);
	session->of->changed = false;
	cv_of_reply(session, CV_OF_BARRIER_REPLY, xid, CV_OF_HEADER);
}

// Meters: there are none, so that removing them is done.
static uint32_t remove_meter(
	const struct cv_of_session *session, const uint8_t *message, size_t length)
{
	if (length < 16)
		return CV_OF_BAD_LEN;
	if (session->role == CV_OF_SLAVE)
		return CV_OF_IS_SLAVE;
	return cv_of_get16(message + 8) == 2 ? 0 : CV_OF_OUT_OF_METERS; // OFPMC_DELETE
}

// Carries out a message, or says why not.
static uint32_t handle(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	const uint32_t xid = cv_of_get32(message + 4);

	switch (message[1]) {
	case CV_OF_HELLO:
	case CV_OF_ERROR:
	case CV_OF_ECHO_REPLY:
		return 0;
	case CV_OF_ECHO_REQUEST:
		echo(session, message, length);
		return 0;
	case CV_OF_FEATURES_REQUEST:
		tell_features(session, xid);
		return 0;
	case CV_OF_GET_CONFIG_REQUEST:
		tell_config(session, xid);
		return 0;
	case CV_OF_SET_CONFIG:
		return set_config(session, message, length);
	case CV_OF_FLOW_MOD:
		return cv_of_change(session, message, length);
	case CV_OF_GROUP_MOD:
		return cv_of_change_group(session, message, length);
	case CV_OF_METER_MOD:
		return remove_meter(session, message, length);
	case CV_OF_MULTIPART_REQUEST:
		return cv_of_multipart(session, message, length);
	case CV_OF_BARRIER_REQUEST:
		barrier(session, xid);
		return 0;
	case CV_OF_ROLE_REQUEST:
		return set_role(session, message, length);
	case CV_OF_GET_ASYNC_REQUEST:
		tell_async(session, xid);
		return 0;
	case CV_OF_SET_ASYNC:
		return set_async(session, message, length);
	case CV_OF_EXPERIMENTER:
		return CV_OF_BAD_EXPERIMENTER;
	default:
		return CV_OF_BAD_TYPE;
	}
}

// The bytes of the message that lies at `at`; 0: it is not whole yet.
static size_t whole_message(struct cv_of_session *session, const uint8_t *at, size_t bytes)
{
	size_t length;

	if (bytes < CV_OF_HEADER)
		return 0;
	length = cv_of_get16(at + 2);
	if (length < CV_OF_HEADER) { // nobody knows where the next one begins
		session->failed = true;
		return 0;
	}
	return length <= bytes ? length : 0;
}

bool cv_of_session_is_due(const struct cv_of_session *session)
{
	const size_t room = CV_OF_OUT_BYTES - (session->out_to - session->out_from);

	if (session->failed || room < CV_OF_ANSWER_MAX)
		return false;
	return session->work.kind != CV_OF_NO_WORK ||
	       (session->in_used >= CV_OF_HEADER &&
		       cv_of_get16(session->in + 2) <= session->in_used);
}

static void take(struct cv_of_session *session, const uint8_t *message, size_t length)
{
	uint32_t why;

	if (!session->greeted) {
		greet(session, message, length);
		return;
	}
	why = message[0] == CV_OF_VERSION ? handle(session, message, length) : CV_OF_BAD_VERSION;
	if (why != 0)
		cv_of_refuse(session, message, length, why);
}

void cv_of_session_run(struct cv_of_session *session)
{
	size_t done = 0, length;

	for (unsigned i = 0; i < CV_OF_TURN && !session->failed; i++) {
		if (cv_of_room(session) < CV_OF_ANSWER_MAX)
			break;
		if (session->work.kind != CV_OF_NO_WORK) {
			cv_of_go_on(session);
			continue;
		}
		length = whole_message(session, session->in + done, session->in_used - done);
		if (length == 0)
			break;
		take(session, session->in + done, length);
		done += length;
	}
	session->in_used -= done;
	memmove(session->in, session->in + done, session->in_used);
}
