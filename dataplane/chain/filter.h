// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A filter: which packets are traced. The text is pcap-filter's as far as it goes, with a node's own
// words `in PORT`, `chain NAME` and `drop REASON` (docs/why.md). It is compiled to terms, each a test
// of a packet, and to an expression over their outcomes in postfix notation: both bounded, without
// a jump. Any text is compiled or refused.
#ifndef CV_FILTER_H
#define CV_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/error.h"
#include "packet/prefix.h"
#include "packet/view.h"

#define CV_FILTER_TEXT_MAX 1024 // bytes
#define CV_FILTER_TERMS_MAX 32 // one bit each
#define CV_FILTER_OPS_MAX 128
#define CV_FILTER_DEPTH_MAX 16 // parentheses and nots in each other
#define CV_FILTER_NAME_MAX 32 // bytes of a name with its NUL

enum cv_filter_kind {
	CV_FILTER_ETHER, // value: EtherType
	CV_FILTER_PROTO, // value: IP protocol; family: of which IP, 0 both
	CV_FILTER_VLAN, // value: id, CV_FILTER_ANY: some tag
	CV_FILTER_PREFIX,
	CV_FILTER_PORTS, // value to high
	CV_FILTER_IN, // value: a port's index
	CV_FILTER_CHAIN, // value: a chain's index
	CV_FILTER_DROP, // name: of the reason
};

#define CV_FILTER_ANY UINT16_MAX

enum cv_filter_side { CV_FILTER_EITHER, CV_FILTER_SRC, CV_FILTER_DST };

struct cv_filter_term {
	enum cv_filter_kind kind;
	enum cv_filter_side side;
	uint8_t family;
	uint16_t value, high;
	struct cv_prefix prefix;
	char name[CV_FILTER_NAME_MAX];
};

struct cv_filter {
	unsigned terms_count;
	struct cv_filter_term terms[CV_FILTER_TERMS_MAX];
	unsigned ops_count;
	uint8_t ops[CV_FILTER_OPS_MAX]; // a term's index, or one of filter.c's
	uint32_t drops; // the terms that are known at the packet's end only, a bit each
};

// What names stand for.
struct cv_filter_names {
	const void *of;
	int (*port)(const void *of, const char *name); // its index, or -1
	int (*chain)(const void *of, const char *name);
	bool (*reason)(const void *of, const char *name); // whether there is one
};

// Compiles a text; an empty one takes every packet. 0, or -EINVAL with error set.
int cv_filter_compile(struct cv_filter *filter, const char *text,
	const struct cv_filter_names *names, struct cv_error *error);

// Which terms hold of a packet that came into a chain, a bit each: those of drops are 0.
uint32_t cv_filter_test(const struct cv_filter *filter, const struct cv_view *view, unsigned chain);

// Whether a filter takes a packet of which these terms hold.
bool cv_filter_takes(const struct cv_filter *filter, uint32_t terms);

// Whether it may, whatever becomes of the terms of drops.
bool cv_filter_may_take(const struct cv_filter *filter, uint32_t terms);

// These terms, with those of drops for this reason.
uint32_t cv_filter_dropped(const struct cv_filter *filter, uint32_t terms, const char *reason);

#endif
