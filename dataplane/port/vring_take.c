// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Out of the guest's buffers: one packet each, or one behind the other.
#include "vring_copy.h"
#include "vring_walk.h"

#define BIN_PACKETS_MAX 255
#define PREFIX_BYTES 2 // the length before each packet in a bin

// Where packets go: each into a buffer of its own, or into bins.
struct target {
	uint8_t *const *to;
	uint16_t *lens;
	uint32_t room;
	struct cv_view *views;
	struct cv_vring_bin *bin;
	uint16_t bins; // how many there are
	uint16_t at; // the bin being filled
	bool gathers; // into bins
};

static CV_INLINE void open_bin(struct target *target)
{
	target->bin[target->at].len = 0;
	target->bin[target->at].packets = 0;
}

// Where packet number n of len bytes goes. NULL: it is too long for any buffer (too_long), or all
// bins are full.
static CV_INLINE uint8_t *place(struct target *target, uint16_t n, uint32_t len, bool *too_long)
{
	struct cv_vring_bin *bin;

	*too_long = false;
	if (!target->gathers) {
		*too_long = len > target->room;
		return *too_long ? NULL : target->to[n];
	}
	bin = &target->bin[target->at];
	if (CV_LIKELY(
		    bin->len + len + PREFIX_BYTES <= bin->gather && bin->packets < BIN_PACKETS_MAX))
		return bin->data + bin->len + PREFIX_BYTES;
	if (bin->packets > 0) {
		if (target->at + 1 == target->bins)
			return NULL;
		target->at++;
		open_bin(target);
		bin++;
	}
	*too_long = len + PREFIX_BYTES > bin->room;
	return *too_long ? NULL : bin->data + PREFIX_BYTES;
}

// The packet is there.
static CV_INLINE void placed(struct target *target, uint16_t n, uint8_t *data, uint32_t len)
{
	struct cv_vring_bin *bin;

	if (!target->gathers) {
		target->lens[n] = (uint16_t)len;
		return;
	}
	bin = &target->bin[target->at];
	// As CV_COPIED(), for what cv_view_set() reads.
	__asm__ volatile("" : "+m"(*(uint8_t(*)[CV_ETHER_LEN + 2 * CV_VLAN_LEN]) data));
	data[-2] = (uint8_t)(len >> 8);
	data[-1] = (uint8_t)len;
	cv_view_set(&target->views[n], data, (uint16_t)len);
	bin->len += len + PREFIX_BYTES;
	bin->packets++;
}

// A buffer of whatever form. Returns how many packets it gave, 0 or 1; -1: there is no room for it.
static int take_any(struct cv_vring *vring, struct target *target, uint16_t n)
{
	struct cv_vring_place at = cv_vring_here(vring);
	struct cv_vring_walk walk, measure;
	uint32_t len = 0, done = 0;
	uint8_t *data = NULL;
	bool too_long = false;

	if (!cv_vring_walk_begin(&walk, vring, at, false))
		return -1;
	measure = walk;
	if (cv_vring_walk_skip(&walk, vring->header_bytes) == vring->header_bytes) {
		measure = walk;
		len = cv_vring_walk_skip(&measure, UINT16_MAX + 1u);
	}
	if (len >= CV_VRING_PACKET_MIN && !measure.malformed) {
		too_long = len > UINT16_MAX;
		if (!too_long)
			data = place(target, n, len, &too_long);
		if (data == NULL && !too_long)
			return -1;
	}
	// The guest may have changed it since it was measured: never more than that.
	while (data != NULL && done < len) {
		uint32_t bytes = len - done;
		const uint8_t *piece = cv_vring_walk_piece(&walk, &bytes, NULL);

		if (piece == NULL)
			break;
		memcpy(data + done, piece, bytes);
		done += bytes;
	}
	CV_COPIED();
	cv_vring_walk_end(&walk, &at);
	if (vring->broken)
		return -1;
	walk.slot.len = 0;
	cv_vring_retire(vring, &walk.slot, 1, false, vring->is_packed);
	cv_vring_log_used(vring);
	if (data != NULL && done == len) {
		placed(target, n, data, len);
		vring->counters.bytes += len;
		return 1;
	}
	if (too_long)
		vring->counters.too_long++;
	else
		vring->counters.malformed++;
	return 0;
}

// What to do after plain buffers.
enum next {
	NEXT_PLAIN, // there may be more of them
	NEXT_ANY, // the next one is something else
	NEXT_STOP, // there is no more, or no room for it
};

// Plain buffers, up to *wanted; *wanted becomes how many there were. Returns the packets.
static CV_INLINE uint16_t take_plain(struct cv_vring *vring, struct target *target, uint16_t n,
	uint16_t *wanted, bool is_packed, enum next *next)
{
	struct cv_vring_slot slots[CV_VRING_BATCH];
	const uint32_t header = vring->header_bytes;
	uint16_t fetched, i, got = n;
	uint64_t bytes = 0;
	bool more;

	fetched = cv_vring_fetch(vring, slots, *wanted, false, is_packed, &more);
	for (i = 0; i < fetched; i++)
		__builtin_prefetch(slots[i].data + header);
	cv_vring_prefetch_used(vring, vring->in_order ? 1 : fetched, is_packed);
	for (i = 0; i < fetched; i++) {
		const uint32_t len = slots[i].len - header;
		uint8_t *data;
		bool too_long;

		data = place(target, got, len, &too_long);
		if (CV_UNLIKELY(data == NULL)) {
			if (!too_long)
				break;
			vring->counters.too_long++;
			continue;
		}
		cv_vring_copy(data, slots[i].data + header, len);
		placed(target, got, data, len);
		bytes += len;
		got++;
	}
	CV_COPIED();
	if (i > 0)
		cv_vring_retire(vring, slots, i, false, is_packed);
	vring->counters.bytes += bytes;
	*next = i < fetched         ? NEXT_STOP
		: more              ? NEXT_ANY
		: fetched < *wanted ? NEXT_STOP
				    : NEXT_PLAIN;
	*wanted = i;
	return (uint16_t)(got - n);
}

static CV_INLINE uint16_t take(
	struct cv_vring *vring, struct target *target, uint16_t n, bool is_packed)
{
	enum next next = vring->log == NULL ? NEXT_PLAIN : NEXT_ANY;
	uint16_t budget = n; // bad buffers count: a guest cannot keep us here
	uint16_t got = 0;

	while (budget > 0 && next != NEXT_STOP && !vring->broken) {
		if (CV_LIKELY(next == NEXT_PLAIN)) {
			uint16_t looked = budget < CV_VRING_BATCH ? budget : CV_VRING_BATCH;

			got += take_plain(vring, target, got, &looked, is_packed, &next);
			budget -= looked;
		} else {
			const int one = take_any(vring, target, got);

			if (one < 0)
				break;
			got += (uint16_t)one;
			budget--;
			next = vring->log == NULL ? NEXT_PLAIN : NEXT_ANY;
		}
	}
	vring->counters.packets += got;
	return got;
}

CV_HOT uint16_t cv_vring_dequeue(
	struct cv_vring *vring, uint8_t *const *to, uint32_t room, uint16_t *lens, uint16_t n)
{
	struct target target = {.to = to, .lens = lens, .room = room};

	return vring->is_packed ? take(vring, &target, n, true) : take(vring, &target, n, false);
}

CV_HOT uint16_t cv_vring_gather(struct cv_vring *vring, struct cv_view *views, uint16_t n,
	struct cv_vring_bin *bin, uint16_t *bins)
{
	struct target target = {.gathers = true, .views = views, .bin = bin, .bins = *bins};
	uint16_t got;

	if (*bins == 0)
		return 0;
	open_bin(&target);
	got = vring->is_packed ? take(vring, &target, n, true) : take(vring, &target, n, false);
	*bins = (uint16_t)(target.at + (bin[target.at].packets > 0));
	return got;
}
