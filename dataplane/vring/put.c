// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Into the guest's buffers.
#include "vring/copy.h"
#include "vring/walk.h"

#define HEADS_MAX 64 // buffers that one packet may be spread over

// The virtio-net header before each packet: no offloads; in how many buffers the packet lies.
struct header {
	uint8_t flags, gso_type;
	uint16_t words[4];
	uint16_t buffers; // not in the 10 bytes of a guest without VERSION_1 and MRG_RXBUF
} __attribute__((packed));

static_assert(sizeof(struct header) == 12, "as VIRTIO has it");

// One buffer holds the packet. Stored only where it is not there already, from the packet before:
// a line that is only read stays in the guest's cache, too.
static CV_INLINE void put_header(uint8_t *at, bool has_buffers)
{
	const uint32_t last_wanted = has_buffers ? 1u << 16 : 0;
	uint32_t last = 0;
	uint64_t first;

	memcpy(&first, at, sizeof(first));
	if (CV_UNLIKELY(first != 0))
		memset(at, 0, sizeof(first));
	if (CV_LIKELY(has_buffers)) {
		memcpy(&last, at + 8, 4);
		if (CV_UNLIKELY(last != last_wanted))
			memcpy(at + 8, &last_wanted, 4);
	} else {
		memcpy(&last, at + 8, 2);
		if (CV_UNLIKELY(last != 0))
			memset(at + 8, 0, 2);
	}
}

// Copies into a buffer of whatever form. Returns how many bytes found room.
static uint32_t fill(struct cv_vring_walk *walk, const uint8_t *from, uint32_t bytes)
{
	struct cv_vring *vring = walk->vring;
	uint32_t done = 0;

	while (done < bytes) {
		uint32_t piece_bytes = bytes - done;
		uint64_t guest;
		uint8_t *piece = cv_vring_walk_piece(walk, &piece_bytes, &guest);

		if (piece == NULL)
			break;
		memcpy(piece, from + done, piece_bytes);
		if (vring->log != NULL)
			vring->log(vring->log_context, guest, piece_bytes);
		done += piece_bytes;
	}
	return done;
}

// Adds a buffer's descriptors to those of the buffers before it. False: the ring has not so many,
// and contradicts itself.
static bool add_descriptors(struct cv_vring *vring, uint32_t *descriptors, uint32_t more)
{
	*descriptors += more;
	if (CV_UNLIKELY(*descriptors > vring->size))
		vring->broken = true;
	return !vring->broken;
}

// How many of the guest's next buffers hold `bytes`, 1 to HEADS_MAX. 0: there are not yet enough;
// -1: they never will.
static int count_heads(struct cv_vring *vring, uint32_t bytes)
{
	const int most = vring->mergeable ? HEADS_MAX : 1;
	struct cv_vring_place at = cv_vring_here(vring);
	uint32_t descriptors = 0, room = 0;

	for (int heads = 0; heads < most;) {
		struct cv_vring_walk walk;

		if (descriptors >= vring->size)
			return -1;
		if (!cv_vring_walk_begin(&walk, vring, at, true))
			return 0;
		room += cv_vring_walk_skip(&walk, bytes - room);
		cv_vring_walk_end(&walk, &at);
		if (!add_descriptors(vring, &descriptors, walk.slot.descriptors))
			return 0;
		heads++;
		// A buffer that is not one ends the packet here; it is given back with what it took.
		if (room == bytes || walk.malformed)
			return heads;
	}
	return -1;
}

// One packet into buffers of whatever form. Returns 1: it was put, or it is lost; 0: no room yet.
static int put_any(struct cv_vring *vring, const uint8_t *data, uint32_t len)
{
	struct cv_vring_slot slots[HEADS_MAX];
	const uint32_t header_bytes = vring->header_bytes;
	struct cv_vring_place at = cv_vring_here(vring);
	struct header header = {0};
	const int heads = count_heads(vring, header_bytes + len);
	uint32_t descriptors = 0, done = 0;
	bool malformed = false;

	if (heads <= 0) {
		vring->counters.too_long += heads < 0;
		return heads < 0;
	}
	header.buffers = (uint16_t)heads;
	for (int i = 0; i < heads; i++) {
		struct cv_vring_walk walk;
		uint32_t written = 0;

		if (!cv_vring_walk_begin(&walk, vring, at, true)) {
			vring->broken = true; // it was there just now
			return 0;
		}
		if (i == 0)
			written = fill(&walk, (const uint8_t *)&header, header_bytes);
		if (i > 0 || written == header_bytes) {
			const uint32_t piece = fill(&walk, data + done, len - done);

			written += piece;
			done += piece;
		}
		malformed |= walk.malformed;
		cv_vring_walk_end(&walk, &at);
		// It may have changed them since they were counted.
		if (!add_descriptors(vring, &descriptors, walk.slot.descriptors))
			return 0;
		slots[i] = walk.slot;
		slots[i].len = written;
	}
	// A guest that changed its descriptors meanwhile gets what found room.
	if (malformed || done < len) {
		vring->counters.malformed++;
	} else {
		vring->counters.packets++;
		vring->counters.bytes += len;
	}
	cv_vring_retire(vring, slots, (uint16_t)heads, true, vring->is_packed);
	cv_vring_log_used(vring);
	return 1;
}

// Packets into plain buffers, up to wanted. Returns how many were put; any: the next packet or the
// next buffer is not for here.
static CV_INLINE uint16_t put_plain(struct cv_vring *vring, const struct cv_view *views,
	uint16_t wanted, bool is_packed, bool *any)
{
	struct cv_vring_slot slots[CV_VRING_BATCH];
	const uint32_t header = vring->header_bytes;
	uint16_t fetched, i;
	uint64_t bytes = 0;
	bool more;

	fetched = cv_vring_fetch(vring, slots, wanted, true, is_packed, &more);
	cv_vring_prefetch_used(vring, fetched, is_packed);
	for (i = 0; i < fetched; i++) {
		const uint32_t len = cv_view_packet_len(&views[i]);

		if (CV_LIKELY(i + 1u < fetched))
			cv_vring_prefetch_rest(slots[i + 1].data + header,
				cv_view_packet_len(&views[i + 1]), true);
		if (CV_UNLIKELY(header + len > slots[i].len))
			break;
		put_header(slots[i].data, header == sizeof(struct header));
		cv_vring_copy(slots[i].data + header, cv_view_packet(&views[i]), len);
		slots[i].len = header + len;
		bytes += len;
	}
	if (i > 0)
		cv_vring_retire(vring, slots, i, true, is_packed);
	vring->counters.packets += i;
	vring->counters.bytes += bytes;
	*any = more || i < fetched;
	return i;
}

static CV_INLINE uint16_t put(
	struct cv_vring *vring, const struct cv_view *views, uint16_t n, bool is_packed)
{
	uint16_t done = 0;

	while (done < n && !vring->broken) {
		uint16_t wanted = (uint16_t)(n - done), moved;
		bool any;

		if (wanted > CV_VRING_BATCH)
			wanted = CV_VRING_BATCH;
		if (CV_LIKELY(vring->log == NULL)) {
			moved = put_plain(vring, views + done, wanted, is_packed, &any);
			done += moved;
			if (!any) {
				if (moved < wanted)
					break;
				continue;
			}
		}
		if (!put_any(vring, cv_view_packet(&views[done]), cv_view_packet_len(&views[done])))
			break;
		done++;
	}
	return done;
}

CV_HOT uint16_t cv_vring_enqueue(struct cv_vring *vring, const struct cv_view *views, uint16_t n)
{
	return vring->is_packed ? put(vring, views, n, true) : put(vring, views, n, false);
}
