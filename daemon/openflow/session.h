// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One controller's connection, without its socket: bytes in, bytes out, both bounded. A message is
// taken only while there is room for what it is answered by, so a controller that does not read is
// not read from either. One that leaves what it is told unasked is to be disconnected.
#ifndef CV_OF_SESSION_H
#define CV_OF_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/openflow/switch.h"

#define CV_OF_IN_BYTES (128u << 10)
#define CV_OF_OUT_BYTES (256u << 10)
#define CV_OF_ANSWER_MAX 65800u // an answer, and an error beside it
#define CV_OF_REMOVED_BYTES (48u + CV_OF_MATCH_BYTES) // of a message that an entry is gone
#define CV_OF_TURN 2048u // messages that are taken at a time

// What takes several answers, and goes on when there is room: statistics, entries that are deleted.
struct cv_of_work {
	enum { CV_OF_NO_WORK, CV_OF_STATISTICS, CV_OF_DELETION, CV_OF_TELL_GROUPS } kind;
	uint16_t type; // of statistics of groups: enum cv_of_multipart
	struct cv_of_change selection;
	uint32_t xid;
	unsigned table; // where it goes on
	uint32_t number;
};

struct cv_of_session {
	struct cv_of_switch *of;
	bool greeted; // both sides speak our version
	bool failed; // nothing more is taken; it ends when what is to be sent has been
	enum cv_of_role role;
	uint16_t miss_send_len;
	uint32_t xid; // of what we send unasked
	uint32_t async[6]; // OFPT_SET_ASYNC: each kind as master, and as slave
	struct cv_of_work work;
	size_t in_used, out_from, out_to;
	uint8_t in[CV_OF_IN_BYTES];
	uint8_t out[CV_OF_OUT_BYTES];
};

// Makes one, which greets. NULL: no memory, or there are too many.
struct cv_of_session *cv_of_session_open(struct cv_of_switch *of);
void cv_of_session_close(struct cv_of_session *session);

// Whether there is something to do that the node must be taken for.
bool cv_of_session_is_due(const struct cv_of_session *session);

// Between begin() and end() of the node: carries out what has come, in order, a bounded piece.
void cv_of_session_run(struct cv_of_session *session);

// Asks the controller whether it is there.
void cv_of_session_probe(struct cv_of_session *session);

// The rest is for the files of this folder.

// Room for a message's bytes, cleared, with its header; NULL: there is none, and the session has
// failed if it was not asked for.
uint8_t *cv_of_reply(
	struct cv_of_session *session, enum cv_of_type type, uint32_t xid, size_t bytes);
size_t cv_of_room(struct cv_of_session *session); // bytes

// Refuses a message: sends the error with its first bytes.
void cv_of_refuse(
	struct cv_of_session *session, const uint8_t *message, size_t length, uint32_t why);

// FLOW_MOD: carries it out or says why not. What is left of it is the session's work.
uint32_t cv_of_change(struct cv_of_session *session, const uint8_t *message, size_t length);

// GROUP_MOD: carries it out or says why not.
uint32_t cv_of_change_group(struct cv_of_session *session, const uint8_t *message, size_t length);

// The index of a group; -1: there is none of that id.
int cv_of_group_find(const struct cv_of_entries *entries, uint32_t id);

// A next hop is gone: so are its buckets, and a group that has no other with its entries.
void cv_of_groups_forget(struct cv_of_switch *of, uint16_t next_hop);

// What is asked about groups: 0, or why not. The answer may be work.
uint32_t cv_of_tell_groups(struct cv_of_session *session, uint32_t xid, unsigned type,
	const uint8_t *body, size_t length);

// Begins an answer to OFPT_MULTIPART_REQUEST with so many bytes in its body, which begins at
// CV_OF_BODY. NULL: there is no room.
#define CV_OF_BODY 16u
uint8_t *cv_of_begin_part(
	struct cv_of_session *session, uint32_t xid, unsigned type, size_t body_bytes);

// OFPT_MULTIPART_REQUEST: answers it, says why not, or leaves work.
uint32_t cv_of_multipart(struct cv_of_session *session, const uint8_t *message, size_t length);

// Goes on with the work, as far as there is room.
void cv_of_go_on(struct cv_of_session *session);
bool cv_of_go_on_deleting(struct cv_of_session *session, struct cv_of_work *work); // false: no room
bool cv_of_go_on_groups(struct cv_of_session *session, struct cv_of_work *work);
bool cv_of_go_on_telling(struct cv_of_session *session, struct cv_of_work *work);

// Whether an entry is one of those that a change or a request selects.
bool cv_of_is_selected(const struct cv_of_switch *of, const struct cv_of_change *selection,
	const struct cv_of_entry *entry);

// Removes an entry, tells whoever wants to know, and has the node follow.
void cv_of_remove(struct cv_of_switch *of, uint32_t number, enum cv_of_removed why);

// Tells of a next hop: why is 0 for one that came, 1 that went, 2 that changed.
void cv_of_tell_port(struct cv_of_session *session, unsigned why, uint16_t next_hop,
	const struct cv_of_port *port);

// A port's description.
#define CV_OF_PORT_BYTES 64u
void cv_of_write_port(uint8_t *at, uint16_t next_hop, const struct cv_of_port *port);

// The flow table of an entry.
uint8_t cv_of_table_of(const struct cv_of_switch *of, uint32_t key);

static inline struct cv_of_match cv_of_match_of(uint32_t key)
{
	return (struct cv_of_match){(enum cv_scid_kind)(key >> 24 & 3), key & 0xffffff};
}

static inline uint32_t cv_of_key_in(
	const struct cv_of_switch *of, unsigned table, const struct cv_of_match *match)
{
	return cv_next_hop_key(of->node->ports[table], match->kind, match->id);
}

#endif
