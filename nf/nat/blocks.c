// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nat/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "chain/nf.h"
#include "flow/hash.h"
#include "nf/nat/count.h"
#include "nf/nat/memory.h"

#define NONE UINT32_MAX
#define LINE 64
#define WORD_BITS 64
#define REST_STEP 8 // resting blocks that one call looks at

enum state { FREE, USED, RESTING };

struct block {
	uint32_t subscriber; // its place
	uint32_t next; // of the subscriber's blocks
	uint32_t position; // among the free ones of its address
	uint16_t used[CV_NAT_KINDS];
	uint8_t state;
	uint64_t rested; // when a resting one is free
};

struct address {
	rte_be32_t address;
	uint32_t free; // blocks
	uint32_t open; // its place among addresses with free blocks
};

struct subscriber {
	rte_be32_t address;
	uint32_t pool; // its external address
	uint32_t first; // block
	uint32_t next; // of the same bucket, or free
	uint16_t blocks;
};

// What memory begins with, once it is frozen.
struct frozen {
	struct cv_flow_secret secret;
	uint64_t chance;
	uint32_t open_count, resting_first, resting_count, subscriber_free;
	struct cv_nat_blocks_counters counters;
};

struct cv_nat_blocks {
	struct cv_flow_secret secret; // nobody can choose subscribers that share a bucket
	struct cv_nat_blocks_config config;
	uint32_t count; // blocks
	unsigned words; // of a block's bits for one protocol
	uint64_t chance;
	struct block *block;
	uint64_t *bits; // by block, by kind: ports that are used
	struct address *address;
	uint32_t *free; // by address: its free blocks, in any order
	uint32_t *open; // addresses with free blocks
	uint32_t open_count;
	uint32_t *resting; // a ring, the oldest first
	uint32_t resting_first, resting_count;
	struct subscriber *subscriber;
	uint32_t subscriber_free;
	uint32_t *bucket; // of subscribers
	uint32_t bucket_mask;
	struct cv_nat_blocks_counters counters;
	struct frozen *frozen;
	bool restoring; // blocks are claimed, and given back to be claimed: cv_nat_blocks_restore()
};

// splitmix64
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static uint64_t next_chance(struct cv_nat_blocks *blocks)
{
	blocks->chance += 0x9e3779b97f4a7c15;
	return mix(blocks->chance);
}

// A number below bound.
static uint32_t below(uint64_t chance, uint32_t bound)
{
	return (uint32_t)((chance >> 32) * bound >> 32);
}

static uint64_t hash_of(const struct cv_nat_blocks *blocks, rte_be32_t address)
{
	uint8_t key[16];

	cv_flow_key_write(key, address, 0, 0, 0, 0);
	return cv_flow_hash(&blocks->secret, key, sizeof(key));
}

static uint32_t bucket_of(const struct cv_nat_blocks *blocks, rte_be32_t address)
{
	return (uint32_t)hash_of(blocks, address) & blocks->bucket_mask;
}

static void free_insert(struct cv_nat_blocks *blocks, uint32_t index)
{
	const uint32_t at = index / blocks->config.blocks_per_address;
	struct address *address = &blocks->address[at];

	// Only where another process wrote what is wrong.
	if (address->free >= blocks->config.blocks_per_address ||
		(address->free == 0 && blocks->open_count >= blocks->config.addresses_count))
		return;
	if (address->free == 0) {
		address->open = blocks->open_count;
		blocks->open[blocks->open_count++] = at;
	}
	blocks->block[index].state = FREE;
	blocks->block[index].position = address->free;
	blocks->free[at * blocks->config.blocks_per_address + address->free++] = index;
}

static void free_remove(struct cv_nat_blocks *blocks, uint32_t index)
{
	const uint32_t at = index / blocks->config.blocks_per_address;
	struct address *address = &blocks->address[at];
	uint32_t *free = &blocks->free[at * blocks->config.blocks_per_address];
	const uint32_t position = blocks->block[index].position, last = free[--address->free];

	free[position] = last;
	blocks->block[last].position = position;
	if (address->free > 0)
		return;
	blocks->open[address->open] = blocks->open[--blocks->open_count];
	blocks->address[blocks->open[address->open]].open = address->open;
}

// What of the memory a part of so many things begins with; the next part begins behind it.
static void *part(void **at, size_t count, size_t bytes)
{
	void *begin = *at;

	*at = RTE_PTR_ADD(begin, RTE_ALIGN_CEIL(count * bytes, LINE));
	return begin;
}

// Divides memory, and says where it ends.
static void *lay_out(
	struct cv_nat_blocks *blocks, const struct cv_nat_blocks_config *config, void *memory)
{
	const size_t addresses = config->addresses_count;
	const size_t count = addresses * config->blocks_per_address;
	size_t buckets = 1;

	while (buckets < count)
		buckets *= 2;
	blocks->count = (uint32_t)count;
	blocks->words = config->block_size / WORD_BITS;
	blocks->bucket_mask = (uint32_t)(buckets - 1);
	blocks->frozen = part(&memory, 1, sizeof(*blocks->frozen));
	blocks->block = part(&memory, count, sizeof(*blocks->block));
	blocks->bits = part(&memory, count * CV_NAT_KINDS * blocks->words, sizeof(*blocks->bits));
	blocks->address = part(&memory, addresses, sizeof(*blocks->address));
	blocks->free = part(&memory, count, sizeof(*blocks->free));
	blocks->open = part(&memory, addresses, sizeof(*blocks->open));
	blocks->resting = part(&memory, count, sizeof(*blocks->resting));
	blocks->subscriber = part(&memory, count, sizeof(*blocks->subscriber));
	blocks->bucket = part(&memory, buckets, sizeof(*blocks->bucket));
	return memory;
}

size_t cv_nat_blocks_bytes(const struct cv_nat_blocks_config *config)
{
	void *const any = (void *)(uintptr_t)LINE; // nothing is written there
	struct cv_nat_blocks none;

	return RTE_PTR_DIFF(lay_out(&none, config, any), any);
}

struct cv_nat_blocks *cv_nat_blocks_create(const struct cv_nat_blocks_config *config, void *memory)
{
	struct cv_nat_blocks *blocks = aligned_alloc(LINE, RTE_ALIGN_CEIL(sizeof(*blocks), LINE));

	if (blocks == NULL)
		return NULL;
	memset(blocks, 0, sizeof(*blocks));
	blocks->config = *config;
	blocks->config.addresses = NULL;
	blocks->chance = config->seed;
	lay_out(blocks, config, memory);
	if (cv_flow_secret_make(&blocks->secret) != 0) {
		free(blocks);
		return NULL;
	}
	memset(blocks->bucket, 0xff, (blocks->bucket_mask + (size_t)1) * sizeof(*blocks->bucket));
	for (unsigned i = 0; i < config->addresses_count; i++)
		blocks->address[i].address = config->addresses[i];
	for (uint32_t i = 0; i < blocks->count; i++) {
		free_insert(blocks, i);
		blocks->subscriber[i].next = i + 1 < blocks->count ? i + 1 : NONE;
	}
	return blocks;
}

void cv_nat_blocks_destroy(struct cv_nat_blocks *blocks)
{
	free(blocks);
}

static uint32_t find_subscriber(const struct cv_nat_blocks *blocks, rte_be32_t address)
{
	uint32_t at = blocks->bucket[bucket_of(blocks, address)];

	for (unsigned i = 0; i < CV_NAT_CHAIN_MAX && at != NONE; i++) {
		if (blocks->subscriber[at].address == address)
			return at;
		at = blocks->subscriber[at].next;
	}
	return NONE;
}

// There is room for one.
static uint32_t add_subscriber(struct cv_nat_blocks *blocks, rte_be32_t address, uint32_t pool)
{
	uint32_t *bucket = &blocks->bucket[bucket_of(blocks, address)];
	const uint32_t at = blocks->subscriber_free;
	struct subscriber *subscriber = &blocks->subscriber[at];

	blocks->subscriber_free = subscriber->next;
	*subscriber = (struct subscriber){
		.address = address, .pool = pool, .first = NONE, .next = *bucket};
	*bucket = at;
	cv_nat_count(&blocks->counters.subscribers, 1);
	return at;
}

static void remove_subscriber(struct cv_nat_blocks *blocks, uint32_t index)
{
	struct subscriber *subscriber = &blocks->subscriber[index];
	uint32_t *from = &blocks->bucket[bucket_of(blocks, subscriber->address)];

	for (unsigned i = 0; *from != index; i++) {
		if (i == CV_NAT_CHAIN_MAX || *from == NONE) // only in what another process wrote
			return;
		from = &blocks->subscriber[*from].next;
	}
	*from = subscriber->next;
	subscriber->next = blocks->subscriber_free;
	blocks->subscriber_free = index;
	cv_nat_count(&blocks->counters.subscribers, -1);
}

// Blocks that have rested are free again: a few in each call, more than one call can take.
static void wake_blocks(struct cv_nat_blocks *blocks, uint64_t now)
{
	for (unsigned i = 0; i < REST_STEP && blocks->resting_count > 0; i++) {
		const uint32_t index = blocks->resting[blocks->resting_first];

		if ((int64_t)(now - blocks->block[index].rested) < 0)
			return;
		blocks->resting_first = (blocks->resting_first + 1) % blocks->count;
		blocks->resting_count--;
		cv_nat_count(&blocks->counters.blocks_resting, -1);
		free_insert(blocks, index);
	}
}

static uint16_t first_port(const struct cv_nat_blocks *blocks, uint32_t index)
{
	const struct cv_nat_blocks_config *config = &blocks->config;

	return (uint16_t)(config->first_port +
			  index % config->blocks_per_address * config->block_size);
}

static void report(const struct cv_nat_blocks *blocks, uint32_t index, uint32_t owner, bool taken,
	uint64_t now)
{
	const struct cv_nat_blocks_config *config = &blocks->config;
	const uint16_t first = first_port(blocks, index);
	const struct cv_nat_block_event event = {
		.now = now,
		.subscriber = blocks->subscriber[owner].address,
		.address = blocks->address[index / config->blocks_per_address].address,
		.first_port = first,
		.last_port = (uint16_t)(first + config->block_size - 1),
		.taken = taken,
	};

	if (config->on_block != NULL)
		config->on_block(config->argument, &event);
}

static uint64_t *bits_of(const struct cv_nat_blocks *blocks, uint32_t index, enum cv_nat_kind kind)
{
	return &blocks->bits[((size_t)index * CV_NAT_KINDS + kind) * blocks->words];
}

static void set_used(struct cv_nat_blocks *blocks, uint32_t index, enum cv_nat_kind kind,
	unsigned bit, struct cv_nat_port *port)
{
	bits_of(blocks, index, kind)[bit / WORD_BITS] |= 1ull << bit % WORD_BITS;
	blocks->block[index].used[kind]++;
	port->address = blocks->address[index / blocks->config.blocks_per_address].address;
	port->port = rte_cpu_to_be_16((uint16_t)(first_port(blocks, index) + bit));
	port->block = index;
}

// A free bit of a block that mask allows in each word, by chance; -1: none.
static int pick_bit(
	struct cv_nat_blocks *blocks, uint32_t index, enum cv_nat_kind kind, uint64_t mask)
{
	const uint64_t *bits = bits_of(blocks, index, kind);
	const uint64_t chance = next_chance(blocks);
	const unsigned first = below(chance, blocks->words), turn = chance % WORD_BITS;

	for (unsigned i = 0; i < blocks->words; i++) {
		const unsigned word = (first + i) % blocks->words;
		const uint64_t free = ~bits[word] & mask;
		const uint64_t after = free >> turn << turn; // from a bit on, then any

		if (free != 0)
			return (int)(word * WORD_BITS +
				     (unsigned)__builtin_ctzll(after != 0 ? after : free));
	}
	return -1;
}

// Whether the port that is asked for is of this block, and free.
static bool has_wanted(const struct cv_nat_blocks *blocks, uint32_t index, enum cv_nat_kind kind,
	uint16_t wanted, unsigned *bit)
{
	const uint16_t first = first_port(blocks, index);

	if (wanted < first || wanted - first >= blocks->config.block_size)
		return false;
	*bit = (unsigned)wanted - first;
	return !(bits_of(blocks, index, kind)[*bit / WORD_BITS] >> *bit % WORD_BITS & 1);
}

// A port of the subscriber's blocks. False: they are full.
static bool take_from(struct cv_nat_blocks *blocks, const struct subscriber *subscriber,
	enum cv_nat_kind kind, uint16_t wanted, struct cv_nat_port *port)
{
	const unsigned most = blocks->config.blocks_per_subscriber;
	unsigned bit, n = 0;

	for (uint32_t i = subscriber->first; i != NONE && n < most; i = blocks->block[i].next, n++)
		if (has_wanted(blocks, i, kind, wanted, &bit)) {
			set_used(blocks, i, kind, bit, port);
			return true;
		}
	for (unsigned any = 0; any < 2; any++) { // the same parity, then any
		n = 0;
		for (uint32_t i = subscriber->first; i != NONE && n < most;
			i = blocks->block[i].next, n++) {
			const bool odd = (first_port(blocks, i) ^ wanted) & 1;
			const uint64_t same = odd ? 0xaaaaaaaaaaaaaaaa : 0x5555555555555555;
			int bit_at = -1;

			if (blocks->block[i].used[kind] < blocks->config.block_size)
				bit_at = pick_bit(blocks, i, kind, any ? ~0ull : same);
			if (bit_at < 0)
				continue;
			set_used(blocks, i, kind, (unsigned)bit_at, port);
			return true;
		}
	}
	return false;
}

// A free block of an address that has one: that with the port, or any.
static uint32_t pick_block(struct cv_nat_blocks *blocks, uint32_t at, uint16_t wanted)
{
	const struct cv_nat_blocks_config *config = &blocks->config;
	const uint32_t first = at * config->blocks_per_address;
	const uint32_t offset =
		wanted < config->first_port
			? NONE
			: (uint32_t)(wanted - config->first_port) / config->block_size;

	if (offset < config->blocks_per_address && blocks->block[first + offset].state == FREE)
		return first + offset;
	return blocks->free[first + below(next_chance(blocks), blocks->address[at].free)];
}

// The external address that belongs to an internal one, if there is choice.
static uint32_t home(const struct cv_nat_blocks *blocks, rte_be32_t subscriber)
{
	return below(hash_of(blocks, subscriber), blocks->config.addresses_count);
}

static uint32_t pick_address(struct cv_nat_blocks *blocks, rte_be32_t subscriber)
{
	const uint32_t at = home(blocks, subscriber);

	return blocks->address[at].free > 0
		       ? at
		       : blocks->open[below(next_chance(blocks), blocks->open_count)];
}

void cv_nat_blocks_expect(
	const struct cv_nat_blocks *blocks, const rte_be32_t *subscribers, unsigned n, uint32_t *at)
{
	for (unsigned i = 0; i < n; i++) {
		at[i] = bucket_of(blocks, subscribers[i]);
		rte_prefetch0(&blocks->bucket[at[i]]);
	}
}

void cv_nat_blocks_expect_first(const struct cv_nat_blocks *blocks, uint32_t *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		at[i] = blocks->bucket[at[i]];
		if (at[i] != NONE)
			rte_prefetch0(&blocks->subscriber[at[i]]);
	}
	for (unsigned i = 0; i < n; i++) {
		if (at[i] == NONE) // a new one, with a new block
			continue;
		at[i] = blocks->subscriber[at[i]].first; // of the first of its bucket: most likely
		if (at[i] == NONE)
			continue;
		rte_prefetch0(&blocks->block[at[i]]);
		rte_prefetch0(bits_of(blocks, at[i], CV_NAT_TCP));
	}
}

// A free block becomes a subscriber's.
static void own_block(struct cv_nat_blocks *blocks, uint32_t index, uint32_t at)
{
	struct subscriber *subscriber = &blocks->subscriber[at];

	free_remove(blocks, index);
	blocks->block[index].state = USED;
	blocks->block[index].subscriber = at;
	blocks->block[index].next = subscriber->first;
	subscriber->first = index;
	subscriber->blocks++;
	cv_nat_count(&blocks->counters.blocks_used, 1);
}

int cv_nat_blocks_take(struct cv_nat_blocks *blocks, rte_be32_t address, enum cv_nat_kind kind,
	rte_be16_t wanted_be, uint64_t now, struct cv_nat_port *port)
{
	const uint16_t wanted = rte_be_to_cpu_16(wanted_be);
	uint32_t at = find_subscriber(blocks, address), index, pool;
	struct subscriber *subscriber;

	if (at != NONE && take_from(blocks, &blocks->subscriber[at], kind, wanted, port))
		return 0;
	if (at != NONE && blocks->subscriber[at].blocks >= blocks->config.blocks_per_subscriber)
		return -EDQUOT;
	wake_blocks(blocks, now);
	if (blocks->open_count == 0)
		return -ENOSPC;
	pool = at != NONE ? blocks->subscriber[at].pool : pick_address(blocks, address);
	if (blocks->address[pool].free == 0 || (at == NONE && blocks->subscriber_free == NONE))
		return -ENOSPC;
	if (at == NONE)
		at = add_subscriber(blocks, address, pool);
	subscriber = &blocks->subscriber[at];
	index = pick_block(blocks, pool, wanted);
	own_block(blocks, index, at);
	report(blocks, index, at, true, now);
	// It has all of its ports, unless another process wrote otherwise.
	return take_from(blocks, subscriber, kind, wanted, port) ? 0 : -ENOSPC;
}

void cv_nat_blocks_expect_give(const struct cv_nat_blocks *blocks, uint32_t block)
{
	rte_prefetch0(&blocks->block[block]);
	rte_prefetch0(bits_of(blocks, block, CV_NAT_TCP));
}

// One that is neither free nor a subscriber's.
static void rest_block(struct cv_nat_blocks *blocks, uint32_t index, uint64_t now)
{
	blocks->block[index].state = RESTING;
	blocks->block[index].rested = now + blocks->config.rest;
	blocks->resting[(blocks->resting_first + blocks->resting_count++) % blocks->count] = index;
	cv_nat_count(&blocks->counters.blocks_resting, 1);
}

static void give_block(struct cv_nat_blocks *blocks, uint32_t index, uint64_t now)
{
	struct block *block = &blocks->block[index];
	const uint32_t owner = block->subscriber;
	struct subscriber *subscriber = &blocks->subscriber[owner];
	uint32_t *from = &subscriber->first;

	for (unsigned i = 0; *from != index; i++) {
		// Only in what another process wrote.
		if (i == blocks->config.blocks_per_subscriber || *from == NONE)
			return;
		from = &blocks->block[*from].next;
	}
	*from = block->next;
	if (!blocks->restoring)
		report(blocks, index, owner, false, now);
	if (--subscriber->blocks == 0)
		remove_subscriber(blocks, owner);
	cv_nat_count(&blocks->counters.blocks_used, -1);
	if (blocks->restoring)
		free_insert(blocks, index);
	else
		rest_block(blocks, index, now);
}

void cv_nat_blocks_give(struct cv_nat_blocks *blocks, enum cv_nat_kind kind,
	const struct cv_nat_port *port, uint64_t now)
{
	struct block *block = &blocks->block[port->block];
	const unsigned bit =
		rte_be_to_cpu_16(port->port) - (unsigned)first_port(blocks, port->block);

	bits_of(blocks, port->block, kind)[bit / WORD_BITS] &= ~(1ull << bit % WORD_BITS);
	block->used[kind]--;
	for (unsigned i = 0; i < CV_NAT_KINDS; i++)
		if (block->used[i] > 0)
			return;
	give_block(blocks, port->block, now);
}

rte_be32_t cv_nat_blocks_address(const struct cv_nat_blocks *blocks, rte_be32_t address)
{
	const uint32_t at = find_subscriber(blocks, address);

	return blocks->address[at != NONE ? blocks->subscriber[at].pool : home(blocks, address)]
		.address;
}

const struct cv_nat_blocks_counters *cv_nat_blocks_counters(const struct cv_nat_blocks *blocks)
{
	return &blocks->counters;
}

void cv_nat_blocks_freeze(struct cv_nat_blocks *blocks)
{
	*blocks->frozen = (struct frozen){
		.secret = blocks->secret,
		.chance = blocks->chance,
		.open_count = blocks->open_count,
		.resting_first = blocks->resting_first,
		.resting_count = blocks->resting_count,
		.subscriber_free = blocks->subscriber_free,
		.counters = blocks->counters,
	};
}

static bool is_index(uint32_t index, uint32_t end)
{
	return index == NONE || index < end;
}

static bool address_leads_inside(const struct cv_nat_blocks *blocks, uint32_t index)
{
	const uint32_t each = blocks->config.blocks_per_address;
	const uint32_t *free = &blocks->free[index * each];
	bool inside = blocks->address[index].free <= each &&
		      blocks->address[index].open < blocks->config.addresses_count &&
		      blocks->open[index] < blocks->config.addresses_count;

	for (uint32_t i = 0; i < each; i++)
		inside &= free[i] < blocks->count && free[i] / each == index;
	return inside;
}

bool cv_nat_blocks_lead_inside(const struct cv_nat_blocks *blocks)
{
	const uint32_t count = blocks->count;
	bool inside = true;

	for (uint32_t i = 0; i < blocks->config.addresses_count; i++)
		inside &= address_leads_inside(blocks, i);
	for (uint32_t i = 0; i < count; i++) {
		const struct block *block = &blocks->block[i];
		const struct subscriber *subscriber = &blocks->subscriber[i];

		inside &= block->subscriber < count && is_index(block->next, count) &&
			  block->position < blocks->config.blocks_per_address &&
			  blocks->resting[i] < count && is_index(subscriber->next, count) &&
			  is_index(subscriber->first, count) &&
			  subscriber->pool < blocks->config.addresses_count;
	}
	for (size_t i = 0; i <= blocks->bucket_mask; i++)
		inside &= is_index(blocks->bucket[i], count);
	return inside;
}

bool cv_nat_blocks_have(const struct cv_nat_blocks *blocks, const struct cv_nat_port *port)
{
	return port->block < blocks->count &&
	       rte_be_to_cpu_16(port->port) - (unsigned)first_port(blocks, port->block) <
		       blocks->config.block_size;
}

bool cv_nat_blocks_thaw(struct cv_nat_blocks *blocks)
{
	const struct frozen *frozen = blocks->frozen;

	if (frozen->open_count > blocks->config.addresses_count ||
		frozen->resting_first >= blocks->count || frozen->resting_count > blocks->count ||
		!is_index(frozen->subscriber_free, blocks->count) ||
		!cv_flow_secret_is_alike(&blocks->secret, &frozen->secret))
		return false;
	blocks->secret = frozen->secret;
	blocks->chance = frozen->chance;
	blocks->open_count = frozen->open_count;
	blocks->resting_first = frozen->resting_first;
	blocks->resting_count = frozen->resting_count;
	blocks->subscriber_free = frozen->subscriber_free;
	blocks->counters = frozen->counters;
	return true;
}

// Which external address it is, or NONE. They are ascending.
static uint32_t find_address(const struct cv_nat_blocks *blocks, rte_be32_t address)
{
	const uint32_t wanted = rte_be_to_cpu_32(address);
	uint32_t low = 0, high = blocks->config.addresses_count;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;
		const uint32_t at = rte_be_to_cpu_32(blocks->address[middle].address);

		if (at == wanted)
			return middle;
		if (at < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return NONE;
}

// The block becomes a subscriber's if it is free; whether it is that subscriber's then.
static bool claim_block(
	struct cv_nat_blocks *blocks, rte_be32_t address, uint32_t pool, uint32_t index)
{
	const struct block *block = &blocks->block[index];
	uint32_t at;

	if (block->state == USED)
		return blocks->subscriber[block->subscriber].address == address;
	at = find_subscriber(blocks, address);
	if (block->state != FREE || (at == NONE && blocks->subscriber_free == NONE))
		return false;
	if (at == NONE)
		at = add_subscriber(blocks, address, pool);
	else if (blocks->subscriber[at].pool != pool ||
		 blocks->subscriber[at].blocks >= blocks->config.blocks_per_subscriber)
		return false;
	own_block(blocks, index, at);
	return true;
}

void cv_nat_blocks_restore(struct cv_nat_blocks *blocks)
{
	blocks->restoring = true;
}

bool cv_nat_blocks_claim(struct cv_nat_blocks *blocks, rte_be32_t subscriber, enum cv_nat_kind kind,
	struct cv_nat_port *port)
{
	const struct cv_nat_blocks_config *config = &blocks->config;
	const uint16_t wanted = rte_be_to_cpu_16(port->port);
	const uint32_t pool = find_address(blocks, port->address);
	const uint32_t offset =
		wanted < config->first_port
			? NONE
			: (uint32_t)(wanted - config->first_port) / config->block_size;
	const uint32_t index = pool * config->blocks_per_address + offset;
	unsigned bit;

	if (pool == NONE || offset >= config->blocks_per_address ||
		!claim_block(blocks, subscriber, pool, index) ||
		!has_wanted(blocks, index, kind, wanted, &bit))
		return false;
	set_used(blocks, index, kind, bit, port);
	return true;
}

// Whether another process's block was somebody's, or rests still. What is neither is not kept from anybody.
static bool was_taken(const struct cv_nat_blocks *there, uint32_t index, uint64_t now)
{
	const struct block *block = &there->block[index];

	if (block->state == USED)
		return block->subscriber < there->count;
	return block->state == RESTING && block->rested - now <= there->config.rest;
}

void cv_nat_blocks_rest(struct cv_nat_blocks *blocks, const void *before, uint64_t now)
{
	struct cv_nat_blocks there = {.config = blocks->config};

	blocks->restoring = false;
	lay_out(&there, &there.config, (void *)(uintptr_t)before);
	for (uint32_t i = 0; i < blocks->count; i++) {
		if (blocks->block[i].state != FREE || !was_taken(&there, i, now))
			continue;
		free_remove(blocks, i);
		rest_block(blocks, i, now);
	}
}
