// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// One request of the control socket (docs/control.md): JSON-RPC 2.0, an object on a line, and the line
// that answers it. Any bytes are answered; what they may take is bounded.
#ifndef CV_RPC_H
#define CV_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "config/params.h"
#include "packet/error.h"

#define CV_RPC_DEPTH_MAX 32 // arrays and objects in each other
#define CV_RPC_VALUES_MAX (4u << 20) // of a request: each takes about 100 bytes
#define CV_RPC_ID_MAX 128 // bytes of an id that is a string

// JSON-RPC's numbers, and ours.
enum cv_rpc_error {
	CV_RPC_NOT_JSON = -32700,
	CV_RPC_NO_REQUEST = -32600,
	CV_RPC_NO_METHOD = -32601,
	CV_RPC_BAD_INPUT = -32602, // nothing has changed
	CV_RPC_FAILED = -32000, // it was right, and could not be done
	CV_RPC_READ_ONLY = -32001, // not on this socket
	CV_RPC_BUSY = -32002, // another change, or too much at a time: try again
};

struct cv_rpc_method {
	const char *name;
	bool changes; // the node: refused where one may only read
	const struct cv_param *params; // NULL: it has none
	size_t params_size; // of the struct that they are read into
	// params: that struct. file: a descriptor that came with the request, the caller's, or -1. 0
	// with *result set, which the caller takes; or a negative errno with error set: -EINVAL,
	// -ENOENT and -ENOSPC say that the request cannot be done as it is, -EBUSY to try again.
	int (*call)(
		void *of, const void *params, int file, json_t **result, struct cv_error *error);
	const char *doc; // one line
};

struct cv_rpc {
	const struct cv_rpc_method *methods; // no name at the end
	void *of; // for their call()
};

// Answers a line, without its end. Returns the answer with its end, to be freed; NULL: the request
// wants none, or there is no memory.
char *cv_rpc_answer(
	const struct cv_rpc *rpc, bool may_change, const char *line, size_t bytes, int file);

// The answer to something that is no request.
char *cv_rpc_refuse(enum cv_rpc_error code, const char *why);

// All methods, as a new JSON array.
json_t *cv_rpc_describe(const struct cv_rpc_method *methods);

#endif
