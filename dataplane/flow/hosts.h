// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// How many flows each address has open: a table of counts by a keyed hash of 64 bits. Two addresses
// of one hash would share a count, and nobody can make them.
#ifndef CV_FLOW_HOSTS_H
#define CV_FLOW_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CV_FLOW_HOSTS 8 // of a bucket

struct cv_flow_hosts_bucket {
	uint32_t tag[CV_FLOW_HOSTS];
	uint32_t count[CV_FLOW_HOSTS]; // 0: empty
} __attribute__((aligned(64)));

struct cv_flow_hosts {
	struct cv_flow_hosts_bucket *buckets;
	uint32_t buckets_count;
	uint32_t limit; // flows of each host; 0: none is counted
};

size_t cv_flow_hosts_bytes(uint32_t flows, uint32_t limit);

// In memory of cv_flow_hosts_bytes() zeros, aligned to a cache line.
void cv_flow_hosts_init(struct cv_flow_hosts *hosts, void *memory, uint32_t flows, uint32_t limit);

// Counts one flow more. Returns false, with nothing counted, if that is one too many, or if there is
// no room to count it.
bool cv_flow_hosts_add(struct cv_flow_hosts *hosts, uint64_t hash);
void cv_flow_hosts_remove(struct cv_flow_hosts *hosts, uint64_t hash);

#endif
