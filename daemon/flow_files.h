// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The files of memory that a node's flows are in, and what its functions know of flows: those of this node,
// for whoever keeps or copies them, and those that flows are restored from (docs/handover.md).
#ifndef CV_FLOW_FILES_H
#define CV_FLOW_FILES_H

#include "daemon/node.h"
#include "flow/restore.h"

#define CV_FLOW_FILES_MAX 250u // of one message to a service manager: 253 descriptors are possible

enum cv_flow_file_kind { CV_FLOW_FILE_ZONE = 1, CV_FLOW_FILE_FUNCTION };

struct cv_flow_file {
	enum cv_flow_file_kind kind;
	uint64_t id; // cv_handover_zone_id(), cv_handover_function_id()
	uint64_t layout; // of a function's
	int fd; // -1: it did not come
	unsigned index; // of this node's zones or functions, where it is one of this node's
};

struct cv_flow_files {
	unsigned count;
	bool all; // none is missing
	struct cv_flow_file files[CV_FLOW_FILES_MAX];
};

// A function that alone knows whose addresses are, which no other process learns: its flows would be other
// hosts' there, so none may go on. -1: there is none.
int cv_flow_files_owners(const struct cv_node *node);

// Those of a node, whose they stay. reports: says on standard error which flows are in none.
void cv_flow_files_collect(const struct cv_node *node, bool reports, struct cv_flow_files *files);

// Makes the flows of such files anew, which stay the caller's. Nothing runs yet; the node is started. What
// is wrong with them is said on standard error, and costs flows only. Adds to *restored. Flows of
// functions that allow it come back once the workers run.
void cv_flow_files_restore(struct cv_node *node, const struct cv_flow_files *files,
	enum cv_flow_origin origin, struct cv_flow_restored *restored);

// Whether all came back that will, and new flows may begin. Adds those to *restored that came while the
// workers ran. Workers may stand still for a moment.
bool cv_flow_files_restored(struct cv_node *node, struct cv_flow_restored *restored);

#endif
