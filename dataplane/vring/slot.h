// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A guest's buffers, one by one: the two layouts of a ring behind the same two steps. fetch() looks
// at the next buffers as long as they are plain (one descriptor, in one piece of memory): nearly
// all are. retire() gives buffers back. The rest is vring/walk.h's.
#ifndef CV_VRING_SLOT_H
#define CV_VRING_SLOT_H

#include "vring/vring.h"

#define CV_VRING_BATCH 64 // buffers looked at together

#define CV_VRING_PACKET_MIN 14 // an Ethernet header; what is shorter is no packet

#define CV_VRING_LINE 4 // descriptors in a cache line

// The bits of a packed descriptor that say whose it is.
#define CV_VRING_AVAIL (1u << 7)
#define CV_VRING_USED (1u << 15)

struct cv_vring_slot {
	uint8_t *data; // where the virtio-net header begins, here
	uint32_t len; // bytes from data; when it is given back: bytes written
	uint16_t id;
	uint16_t descriptors; // of the ring that it takes
};

// As cv_vring.region, but where the address is not in it. NULL: nowhere in one piece.
uint8_t *cv_vring_find(struct cv_vring *vring, uint64_t address, uint32_t len);

// While the guest is migrated: its rings have changed. Once a call: a ring is up to 64 pages.
static CV_INLINE void cv_vring_log_used(const struct cv_vring *vring)
{
	if (CV_LIKELY(vring->log_used == NULL))
		return;
	vring->log_used(vring->log_context, 0,
		vring->is_packed
			? vring->size * sizeof(struct cv_vring_packed)
			: sizeof(struct vring_used) + vring->size * sizeof(struct vring_used_elem));
}

static CV_INLINE uint8_t *cv_vring_at(struct cv_vring *vring, uint64_t address, uint32_t len)
{
	if (CV_LIKELY(cv_guest_inside(&vring->region, address, len)))
		return vring->region.host + (address - vring->region.guest);
	return cv_vring_find(vring, address, len);
}

static CV_INLINE uint16_t cv_vring_split_ready(struct cv_vring *vring, uint16_t wanted)
{
	uint16_t ready = (uint16_t)(vring->avail_seen - vring->next_avail);

	if (ready < wanted) {
		// Pairs with the driver's release of avail->idx: what it made available is there.
		vring->avail_seen = __atomic_load_n(&vring->avail->idx, __ATOMIC_ACQUIRE);
		ready = (uint16_t)(vring->avail_seen - vring->next_avail);
		if (CV_UNLIKELY(ready > vring->size)) {
			__atomic_store_n(&vring->broken, true, __ATOMIC_RELAXED);
			vring->avail_seen = vring->next_avail;
			return 0;
		}
	}
	return ready < wanted ? ready : wanted;
}

// Whether the packed ring's descriptor at a place is the device's, and its flags.
static CV_INLINE bool cv_vring_packed_ready(
	const struct cv_vring *vring, uint16_t place, bool wrap, uint16_t *flags)
{
	// Pairs with the driver's release of the flags: the rest of the descriptor is there.
	*flags = __atomic_load_n(&vring->packed[place].flags, __ATOMIC_ACQUIRE);
	return !!(*flags & CV_VRING_AVAIL) == wrap && !!(*flags & CV_VRING_USED) != wrap;
}

// At least these bytes are in a plain buffer.
static CV_INLINE uint32_t cv_vring_least(const struct cv_vring *vring, bool write)
{
	return vring->header_bytes + (write ? 0u : CV_VRING_PACKET_MIN);
}

// Asks for the line where a packet begins. It is the guest's; asked for together, many come together.
static CV_INLINE void cv_vring_prefetch_data(
	const struct cv_vring *vring, const uint8_t *data, bool write)
{
	if (write)
		CV_PREFETCH_WRITE(data + vring->header_bytes);
	else
		__builtin_prefetch(data + vring->header_bytes);
}

// Asks for the lines of n descriptors from a place in the avail ring on.
static CV_INLINE void cv_vring_prefetch_split(const struct cv_vring *vring, uint16_t at, uint16_t n)
{
	const uint16_t mask = (uint16_t)(vring->size - 1);

	// In order, as nearly every driver has them, these are the lines of all.
	for (uint16_t i = 0; i < n; i += CV_VRING_LINE)
		__builtin_prefetch(
			&vring->desc[vring->avail->ring[(uint16_t)(at + i) & mask] & mask]);
}

// Where there is a backlog the descriptors behind the next n are asked for while those are worked
// on. They have been there for a while: that takes nothing out of the guest's hands.
static CV_INLINE void cv_vring_prefetch_behind(const struct cv_vring *vring, uint16_t n)
{
	const uint16_t at = (uint16_t)(vring->next_avail + n);
	const uint16_t behind = (uint16_t)(vring->avail_seen - at);

	cv_vring_prefetch_split(vring, at, behind < CV_VRING_BATCH ? behind : CV_VRING_BATCH);
}

static CV_INLINE uint16_t cv_vring_fetch_split(struct cv_vring *vring, struct cv_vring_slot *slots,
	uint16_t wanted, bool write, bool *more)
{
	const uint16_t ready = cv_vring_split_ready(vring, wanted);
	const uint32_t least = cv_vring_least(vring, write);
	const uint16_t mask = (uint16_t)(vring->size - 1);
	const uint64_t plain = write ? VRING_DESC_F_WRITE : 0;
	uint16_t i;

	cv_vring_prefetch_split(vring, vring->next_avail, ready);
	for (i = 0; i < ready; i++) {
		const uint16_t id = __atomic_load_n(
			&vring->avail->ring[(uint16_t)(vring->next_avail + i) & mask],
			__ATOMIC_RELAXED);
		uint64_t address, rest;
		uint32_t len;
		uint8_t *data;

		if (CV_UNLIKELY(id > mask))
			break;
		address = __atomic_load_n(&vring->desc[id].addr, __ATOMIC_RELAXED);
		// Length, flags and next, read once.
		rest = __atomic_load_n((const uint64_t *)&vring->desc[id].len, __ATOMIC_RELAXED);
		len = (uint32_t)rest;
		if (CV_UNLIKELY((rest >> 32 & 0xffff) != plain || len < least))
			break;
		data = cv_vring_at(vring, address, len);
		if (CV_UNLIKELY(data == NULL))
			break;
		cv_vring_prefetch_data(vring, data, write);
		slots[i] = (struct cv_vring_slot){data, len, id, 1};
	}
	*more = i < ready;
	cv_vring_prefetch_behind(vring, ready);
	return i;
}

static CV_INLINE uint16_t cv_vring_fetch_packed(struct cv_vring *vring, struct cv_vring_slot *slots,
	uint16_t wanted, bool write, bool *more)
{
	const uint16_t kinds = VRING_DESC_F_NEXT | VRING_DESC_F_WRITE | VRING_DESC_F_INDIRECT;
	const uint16_t plain = write ? VRING_DESC_F_WRITE : 0;
	const uint32_t least = cv_vring_least(vring, write);
	uint16_t place = vring->next_avail;
	bool wrap = vring->avail_wrap;
	uint16_t i;

	*more = false;
	// Once around at most: a guest may write what we have read, and make it available again.
	if (CV_UNLIKELY(wanted > vring->size))
		wanted = vring->size;
	for (i = 0; i < wanted; i++) {
		const struct cv_vring_packed *descriptor = &vring->packed[place];
		uint16_t flags;
		uint64_t address, rest;
		uint32_t len;
		uint8_t *data;

		if (!cv_vring_packed_ready(vring, place, wrap, &flags))
			break;
		address = __atomic_load_n(&descriptor->address, __ATOMIC_RELAXED);
		rest = __atomic_load_n((const uint64_t *)&descriptor->len, __ATOMIC_RELAXED);
		len = (uint32_t)rest;
		*more = true;
		if (CV_UNLIKELY((flags & kinds) != plain || len < least))
			break;
		data = cv_vring_at(vring, address, len);
		if (CV_UNLIKELY(data == NULL))
			break;
		*more = false;
		cv_vring_prefetch_data(vring, data, write);
		slots[i] = (struct cv_vring_slot){data, len, (uint16_t)(rest >> 32), 1};
		if (++place == vring->size) {
			place = 0;
			wrap = !wrap;
		}
	}
	return i;
}

// Looks at up to wanted <= CV_VRING_BATCH buffers, asks for what is in them and fills in slots.
// Returns how many are plain; more: there is one behind them, which is not.
static CV_INLINE uint16_t cv_vring_fetch(struct cv_vring *vring, struct cv_vring_slot *slots,
	uint16_t wanted, bool write, bool is_packed, bool *more)
{
	return is_packed ? cv_vring_fetch_packed(vring, slots, wanted, write, more)
			 : cv_vring_fetch_split(vring, slots, wanted, write, more);
}

// Asks for the lines that giving n buffers back will write.
static CV_INLINE void cv_vring_prefetch_used(
	const struct cv_vring *vring, uint16_t n, bool is_packed)
{
	if (is_packed) // the lines that the descriptors were just read from
		return;
	CV_PREFETCH_WRITE(&vring->used->idx);
	for (uint16_t i = 0; i < n; i += 2 * CV_VRING_LINE)
		CV_PREFETCH_WRITE(
			&vring->used->ring[(uint16_t)(vring->next_used + i) & (vring->size - 1)]);
}

static CV_INLINE void cv_vring_retire_split(
	struct cv_vring *vring, const struct cv_vring_slot *slots, uint16_t n, bool write)
{
	const uint16_t mask = (uint16_t)(vring->size - 1);
	uint16_t used = vring->next_used;

	// In order and without lengths, the last of a batch says it for all.
	for (uint16_t i = !write && vring->in_order ? n - 1 : 0; i < n; i++) {
		const uint64_t element = slots[i].id | (uint64_t)(write ? slots[i].len : 0) << 32;

		// The elements are 4 bytes off a multiple of eight: one store all the same.
		memcpy(&vring->used->ring[used++ & mask], &element, sizeof(element));
	}
	vring->next_avail = (uint16_t)(vring->next_avail + n);
	vring->next_used = (uint16_t)(vring->next_used + n);
	// Pairs with the driver's acquire of used->idx.
	__atomic_store_n(&vring->used->idx, vring->next_used, __ATOMIC_RELEASE);
}

static CV_INLINE void cv_vring_packed_step(
	const struct cv_vring *vring, uint16_t *place, bool *wrap, uint32_t by)
{
	uint32_t next = *place + by;

	if (next >= vring->size) {
		next -= vring->size;
		*wrap = !*wrap;
	}
	*place = (uint16_t)next;
}

static CV_INLINE void cv_vring_retire_packed(
	struct cv_vring *vring, const struct cv_vring_slot *slots, uint16_t n, bool write)
{
	struct cv_vring_packed *first = &vring->packed[vring->next_used];
	uint16_t place = vring->next_used;
	uint16_t first_flags = 0;
	bool wrap = vring->used_wrap;
	const bool one = !write && vring->in_order;
	uint32_t taken = 0;

	for (uint16_t i = one ? n - 1 : 0; i < n; i++) {
		struct cv_vring_packed *descriptor = &vring->packed[place];
		const uint16_t flags = (wrap ? CV_VRING_AVAIL | CV_VRING_USED : 0) |
				       (write ? VRING_DESC_F_WRITE : 0);

		__atomic_store_n(&descriptor->len, write ? slots[i].len : 0, __ATOMIC_RELAXED);
		__atomic_store_n(&descriptor->id, slots[i].id, __ATOMIC_RELAXED);
		if (descriptor == first)
			first_flags = flags;
		else
			__atomic_store_n(&descriptor->flags, flags, __ATOMIC_RELEASE);
		cv_vring_packed_step(vring, &place, &wrap, slots[i].descriptors);
	}
	for (uint16_t i = 0; i < n; i++)
		taken += slots[i].descriptors;
	cv_vring_packed_step(vring, &vring->next_avail, &vring->avail_wrap, taken);
	cv_vring_packed_step(vring, &vring->next_used, &vring->used_wrap, taken);
	// The driver looks at the first before the others: it sees all of them or none. Pairs with
	// its acquire of the flags.
	__atomic_store_n(&first->flags, first_flags, __ATOMIC_RELEASE);
}

// Gives the next n >= 1 buffers back, in their order; together they are at most as many
// descriptors as the ring has.
static CV_INLINE void cv_vring_retire(struct cv_vring *vring, const struct cv_vring_slot *slots,
	uint16_t n, bool write, bool is_packed)
{
	if (is_packed)
		cv_vring_retire_packed(vring, slots, n, write);
	else
		cv_vring_retire_split(vring, slots, n, write);
}

#endif
