// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Rules of the function ids: what a line of a rule file says, in the subset of Suricata's language
// that docs/functions.md states.
#ifndef CV_IDS_RULE_H
#define CV_IDS_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "nf/ids/net.h"
#include "packet/error.h"

#define CV_IDS_RULES_MAX 100000
#define CV_IDS_CONTENT_MAX 255 // bytes
#define CV_IDS_CONTENTS_MAX 32 // of a rule
#define CV_IDS_PCRES_MAX 7 // of a rule
#define CV_IDS_SKIPPED_MAX 100 // lines that are remembered; more are counted

enum cv_ids_action { CV_IDS_PASS, CV_IDS_DROP, CV_IDS_ALERT };

// Also the index of a database.
enum cv_ids_proto { CV_IDS_TCP, CV_IDS_UDP, CV_IDS_ICMP, CV_IDS_IP, CV_IDS_PROTOS };

enum cv_ids_track { CV_IDS_BY_SRC, CV_IDS_BY_DST, CV_IDS_BY_RULE };

enum cv_ids_threshold_type {
	CV_IDS_UNBOUNDED,
	CV_IDS_LIMIT, // the first count matches of each period
	CV_IDS_THRESHOLD, // each match of number count of a period
	CV_IDS_BOTH, // once a period, at match number count
};

#define CV_IDS_TO_SERVER 1 // flow
#define CV_IDS_TO_CLIENT 2
#define CV_IDS_ESTABLISHED 4

// Bytes that must be there, or with negated must not. Relative: counted from the end of the content
// before; else from the first byte.
struct cv_ids_content {
	uint8_t *bytes; // folded to lower case with nocase
	uint8_t *failure; // of Knuth, Morris and Pratt: by length matched
	uint8_t len;
	bool nocase, negated, relative;
	bool bounded; // last says something
	int32_t first; // begins there or later: offset, distance
	int32_t last; // ends there or before: offset + depth, distance + within
};

struct cv_ids_pcre {
	char *text;
	unsigned flags; // Hyperscan's
};

struct cv_ids_rule {
	uint32_t line; // of its file
	uint32_t gid, sid, rev;
	uint8_t action, proto; // enum cv_ids_action, enum cv_ids_proto
	uint8_t flow; // CV_IDS_TO_SERVER ...
	uint8_t priority; // 1 to 255
	bool both_ways;
	uint8_t contents_count, pcres_count;
	// Bits of its patterns: that of its longest content, then those of pcres. 0: it has none, and
	// headers and what is not there decide.
	uint8_t parts;
	uint8_t longest; // the index of that content
	uint16_t header_steps; // that looking at a packet's header takes, at most
	bool exact; // its patterns say all
	struct {
		uint8_t type, track; // enum cv_ids_threshold_type, enum cv_ids_track
		uint32_t count, seconds;
	} threshold;
	const struct cv_ids_addresses *src, *dst; // NULL: any
	const struct cv_ids_ports *sport, *dport; // NULL: any
	struct cv_ids_content *contents;
	struct cv_ids_pcre *pcres;
	char *msg, *classtype; // NULL: none
	char *json; // its part of an alert
};

// A line that was left out.
struct cv_ids_skipped {
	uint32_t line;
	char *why;
};

struct cv_ids_rules {
	struct cv_ids_rule *rule;
	uint32_t count, room;
	uint32_t *order; // by gid and sid: indices
	struct cv_ids_nets nets;
	struct cv_ids_skipped skipped[CV_IDS_SKIPPED_MAX];
	uint32_t skipped_count; // may be more than are remembered
};

// What was wrong with a rule.
struct cv_ids_problem {
	char text[256];
};

__attribute__((format(printf, 3, 4))) int cv_ids_problem(
	struct cv_ids_problem *problem, int rc, const char *format, ...);

// Reads a line, which is changed. 0; -EINVAL: it is wrong; -ENOTSUP: it is beyond the subset; or
// -ENOMEM. The rule, which was zero, is to be freed either way.
int cv_ids_rule_read(char *line, const json_t *variables, struct cv_ids_nets *nets,
	struct cv_ids_rule *rule, struct cv_ids_problem *problem);
void cv_ids_rule_free(struct cv_ids_rule *rule);

// Orders by gid and sid.
int cv_ids_rule_compare(const struct cv_ids_rule *a, const struct cv_ids_rule *b);

// Reads "content: VALUE" and "pcre: VALUE" (content.c).
int cv_ids_content_read(
	const char *value, struct cv_ids_content *content, struct cv_ids_problem *problem);
int cv_ids_pcre_read(const char *value, struct cv_ids_pcre *pcre, struct cv_ids_problem *problem);
void cv_ids_content_free(struct cv_ids_content *content);

// What follows from a rule's options once all are read: parts, longest, exact (content.c).
int cv_ids_rule_finish(struct cv_ids_rule *rule, struct cv_ids_problem *problem);

// Reads a file. path_name: as messages name it. skip: lines beyond the subset are left out.
// Returns 0, or a negative errno with error set unless it is -ENOMEM; either way *rules, which was
// zero, is to be freed.
int cv_ids_rules_read(struct cv_ids_rules *rules, const char *path, const char *function,
	const json_t *variables, bool skip, struct cv_error *error);
// The same from text in memory, which is changed.
int cv_ids_rules_parse(struct cv_ids_rules *rules, char *text, size_t len, const char *path,
	const char *function, const json_t *variables, bool skip, struct cv_error *error);
// Leaves a rule out, or says that it is beyond the subset and that this is an error.
int cv_ids_rules_skip(struct cv_ids_rules *rules, uint32_t line, const char *why);
void cv_ids_rules_refuse_skipped(const struct cv_ids_rules *rules, const char *path,
	const char *function, struct cv_error *error);
void cv_ids_rules_free(struct cv_ids_rules *rules);

#endif
