// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// `convoy why`: a trace (chain/trace.h) that a client of the control socket armed, of all workers. There
// is one at a time. It ends with its client, who is known by its thread; when nobody reads it for
// CV_WHY_UNREAD_S; and with the node.
#ifndef CV_WHY_H
#define CV_WHY_H

#include "chain/trace.h"
#include "daemon/node.h"

#define CV_WHY_UNREAD_S 10
#define CV_WHY_WAIT_MS_MAX 200 // that one reading waits for packets
#define CV_WHY_PACKETS_MAX 512 // that one reading brings
#define CV_WHY_SNAP 128 // bytes of a packet, unless the client says more

struct cv_why_request {
	const char *filter; // NULL: every packet
	bool drops; // only what is dropped
	unsigned sample; // one of so many packets is looked at
	unsigned snap; // bytes
};

// Arms it for the client whose thread calls. 0, or a negative errno with error set: -EBUSY where
// another client has one.
int cv_why_arm(const struct cv_why_request *request, struct cv_error *error);

// What came since: a new {"packets": [...], "lost": N}, lost since it was armed. Waits for the first for
// up to wait_ms. NULL with error set: this client has none.
json_t *cv_why_read(unsigned packets, unsigned wait_ms, struct cv_error *error);

#define CV_WHY_MIRROR_PACKETS_MAX 8192 // that one request brings
#define CV_WHY_SEND_MS 1000 // that the mirror's reader may take; an end of the node may wait for it

struct cv_why_mirror {
	unsigned packets, wait_ms; // as for cv_why_read()
	bool begins; // the capture: with its header; a running node's ports stay
	bool as_they_left; // those that were sent; else as they came
};

// The same as a capture (mirror.h), sent to a stream socket, which is the caller's: a new {"packets": N,
// "lost": N}. NULL with error set: this client has no trace, or the socket's reader is gone or slow; then
// the capture has come to its end, maybe in the middle of a packet.
json_t *cv_why_mirror(const struct cv_why_mirror *how, int socket, struct cv_error *error);

// Ends the trace of the client whose thread calls, if it has one.
void cv_why_disarm(void);

// Workers do not trace while a plan takes another's place, and what was not read by then is lost. With
// the node taken.
void cv_why_pause(struct cv_node *node);
void cv_why_resume(struct cv_node *node);

// Ends one that nobody reads. By the main thread, now and then.
void cv_why_due(void);

// Ends it with the node, which nobody can take any more and whose workers still run.
void cv_why_end(struct cv_node *node);

#endif
