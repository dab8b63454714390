// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Zones and groups: making them, ageing, and everything that is not a packet of a known flow.
#include "flow/zone.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <rte_common.h>

#define LINE 64
#define HUGE_PAGE ((size_t)2 << 20)
// How long a first fragment is remembered: 15 to 30 s.
#define FRAGMENT_TICKS (30 * CV_FLOW_TICKS_PER_S)
#define AGE_STEP 1024 // entries that one poll iteration looks at, at most
#define AGE_ENDS 16 // flows that it ends
#define AGE_BLOCK 16 // deadlines of one line
#define DENIED_SHARE 8 // of all flows, one in so many may be a denied one

const char *const cv_flow_drop_names[CV_FLOW_DROPS] = {
	[CV_FLOW_TABLE_FULL] = "flow_table_full",
	[CV_FLOW_HOST_LIMIT] = "flow_host_limit",
	[CV_FLOW_CONFLICT] = "flow_conflict",
	[CV_FLOW_NOT_REWRITABLE] = "flow_not_rewritable",
	[CV_FLOW_NO_FIRST_FRAGMENT] = "no_first_fragment",
};

bool cv_flow_is_stateful(const struct cv_nf *nf, const void *instance)
{
	return nf->flow != NULL &&
	       (nf->flow->is_stateful == NULL || nf->flow->is_stateful(instance));
}

static unsigned slot_bytes(const struct cv_nf *nf)
{
	return RTE_ALIGN_CEIL(nf->flow->slot_bytes, nf->flow->slot_bytes % 8 == 0 ? 8u : 4u);
}

unsigned cv_flow_slots_bytes(const struct cv_flow_member *members, unsigned count)
{
	unsigned bytes = 0;

	for (unsigned i = 0; i < count; i++) {
		if (members[i].nf->flow->slot_bytes % 8 == 0)
			bytes = RTE_ALIGN_CEIL(bytes, 8u);
		bytes += slot_bytes(members[i].nf);
	}
	return RTE_ALIGN_CEIL(bytes, 8u);
}

// The parts of a zone's memory, one behind the other.
static size_t parts(const struct cv_flow_limits *limits, unsigned slots_bytes, size_t at[3])
{
	const uint64_t flows = (uint64_t)limits->max + limits->max_ipv6;

	at[0] = 0;
	at[1] = at[0] + cv_flow_table_bytes(limits->max, slots_bytes, false);
	at[2] = at[1] + cv_flow_table_bytes(limits->max_ipv6, slots_bytes, true);
	return at[2] + cv_flow_hosts_bytes((uint32_t)RTE_MIN(flows, UINT32_MAX), limits->per_host);
}

size_t cv_flow_zone_bytes(const struct cv_flow_limits *limits, unsigned slots_bytes)
{
	size_t at[3];

	return RTE_ALIGN_CEIL(parts(limits, slots_bytes, at), HUGE_PAGE) +
	       RTE_ALIGN_CEIL(sizeof(struct cv_flow_zone), LINE);
}

// Memory in large pages where the kernel has some, all there now. NULL with errno set.
static void *map(size_t bytes)
{
	// More, so that it begins where a large page can.
	uint8_t *memory = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *aligned;

	if (memory == MAP_FAILED)
		return NULL;
	aligned = RTE_PTR_ALIGN_CEIL(memory, HUGE_PAGE);
	if (aligned > memory)
		munmap(memory, (size_t)(aligned - memory));
	if (aligned < memory + HUGE_PAGE)
		munmap(aligned + bytes, (size_t)(memory + HUGE_PAGE - aligned));
	madvise(aligned, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
	if (madvise(aligned, bytes, MADV_POPULATE_WRITE) == 0)
		return aligned;
	if (errno != EINVAL) { // a kernel before 5.14
		munmap(aligned, bytes);
		errno = ENOMEM;
		return NULL;
	}
#endif
	memset(aligned, 0, bytes);
	return aligned;
}

static unsigned shift_for(uint64_t tsc_hz)
{
	unsigned shift = 0;

	while (tsc_hz >> (shift + 1) >= CV_FLOW_TICKS_PER_S)
		shift++;
	return shift;
}

static void set_members(
	struct cv_flow_zone *zone, const struct cv_flow_member *members, unsigned count)
{
	unsigned at = 0;

	zone->members_count = count;
	for (unsigned i = 0; i < count; i++) {
		struct cv_flow_zone_member *member = &zone->members[i];

		member->flow = members[i].nf->flow;
		member->instance = members[i].instance;
		if (member->flow->slot_bytes % 8 == 0)
			at = RTE_ALIGN_CEIL(at, 8u);
		member->slot = at;
		at += slot_bytes(members[i].nf);
		if (member->flow->generation == NULL)
			continue;
		member->generation = member->flow->generation(member->instance);
		// Pairs with the release store of whoever changes the instance.
		member->known = __atomic_load_n(member->generation, __ATOMIC_ACQUIRE);
		zone->generations_count++;
	}
}

struct cv_flow_zone *cv_flow_zone_create(const struct cv_flow_member *members, unsigned count,
	const struct cv_flow_limits *limits, uint64_t tsc_hz, struct cv_error *error)
{
	const unsigned slots_bytes = cv_flow_slots_bytes(members, count);
	const uint32_t max[2] = {limits->max, limits->max_ipv6};
	struct cv_flow_zone *zone;
	size_t at[3];

	if (count > CV_FLOW_MEMBERS_MAX || slots_bytes > CV_FLOW_SLOTS_MAX) {
		cv_error_set(error,
			"%u stateful functions in a row keep %u bytes of each flow; %u functions "
			"and %u bytes are possible: put another function between them",
			count, slots_bytes, CV_FLOW_MEMBERS_MAX, CV_FLOW_SLOTS_MAX);
		return NULL;
	}
	zone = aligned_alloc(LINE, RTE_ALIGN_CEIL(sizeof(*zone), LINE));
	if (zone == NULL)
		return NULL;
	memset(zone, 0, sizeof(*zone));
	zone->memory_bytes = RTE_ALIGN_CEIL(parts(limits, slots_bytes, at), HUGE_PAGE);
	zone->memory = map(zone->memory_bytes);
	if (zone->memory == NULL || cv_flow_secret_make(&zone->secret) != 0) {
		cv_error_set(error,
			"no memory for %u IPv4 and %u IPv6 flows, %zu MiB: %s; lower flows.max",
			max[0], max[1], zone->memory_bytes >> 20, strerror(errno));
		cv_flow_zone_destroy(zone);
		return NULL;
	}
	for (unsigned i = 0; i < 2; i++) {
		cv_flow_table_init(&zone->table[i], RTE_PTR_ADD(zone->memory, at[i]), max[i],
			slots_bytes, i == 1, &zone->secret);
		zone->denied_max[i] = max[i] / DENIED_SHARE;
	}
	cv_flow_hosts_init(&zone->hosts, RTE_PTR_ADD(zone->memory, at[2]),
		(uint32_t)RTE_MIN((uint64_t)max[0] + max[1], UINT32_MAX), limits->per_host);
	zone->shift = shift_for(tsc_hz);
	for (unsigned i = 0; i < CV_FLOW_TIMEOUTS; i++)
		zone->timeouts[i] = (uint32_t)((limits->timeouts_s[i] * tsc_hz >> zone->shift) + 1);
	zone->epoch = 1;
	set_members(zone, members, count);
	for (unsigned i = CV_FLOW_WAYS_MAX - 1; i > 0; i--)
		zone->ways.free[zone->ways.free_count++] = (uint16_t)i;
	return zone;
}

void cv_flow_zone_destroy(struct cv_flow_zone *zone)
{
	if (zone == NULL)
		return;
	for (unsigned i = 0; i < zone->groups_count; i++)
		free(zone->groups[i]);
	if (zone->memory != NULL)
		munmap(zone->memory, zone->memory_bytes);
	free(zone);
}

static void add_follower(struct cv_flow_group *group, unsigned index, unsigned position)
{
	const struct cv_flow_zone_member *member = &group->zone->members[index];

	if (member->flow->follow != NULL)
		group->followers[group->followers_count++] = (struct cv_flow_follower){
			.follow = member->flow->follow,
			.instance = member->instance,
			.slot = member->slot,
			.bit = (uint8_t)(1u << index),
			.position = (uint8_t)position,
		};
}

struct cv_flow_group *cv_flow_group_create(
	struct cv_flow_zone *zone, const uint8_t *order, struct cv_nf_counters *const *counters)
{
	struct cv_flow_group *group;

	if (zone->groups_count == CV_FLOW_GROUPS_MAX)
		return NULL;
	group = aligned_alloc(LINE, RTE_ALIGN_CEIL(sizeof(*group), LINE));
	if (group == NULL)
		return NULL;
	memset(group, 0, sizeof(*group));
	group->zone = zone;
	group->index = (uint8_t)zone->groups_count;
	for (unsigned i = 0; i < zone->members_count; i++) {
		group->order[i] = order[i];
		group->position[order[i]] = (uint8_t)i;
		group->counters[i] = counters[i];
		add_follower(group, order[i], i);
	}
	zone->groups[zone->groups_count++] = group;
	return group;
}

struct cv_nf_counters *cv_flow_group_counters(struct cv_flow_group *group)
{
	return &group->own;
}

const struct cv_flow_counters *cv_flow_zone_counters(const struct cv_flow_zone *zone)
{
	return &zone->counters;
}

static void set_deadline(struct cv_flow_zone *zone, bool v6, uint32_t index, uint32_t from)
{
	struct cv_flow_table *table = &zone->table[v6];
	uint32_t deadline = from + zone->timeouts[cv_flow_at(table, index)->timeout];

	table->deadlines[index] = deadline + (deadline == 0);
}

// A flow's time-out is another: ageing looks at it earlier if it is shorter, later by itself.
static void set_timeout(
	struct cv_flow_zone *zone, bool v6, uint32_t index, enum cv_flow_timeout timeout)
{
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);
	bool shorter = zone->timeouts[timeout] < zone->timeouts[flow->timeout];

	flow->timeout = (uint8_t)timeout;
	if (shorter)
		set_deadline(zone, v6, index, zone->now);
}

static uint64_t hash_of(const struct cv_flow_zone *zone, bool v6, const union cv_flow_key *key)
{
	return cv_flow_hash(&zone->secret, key, CV_FLOW_KEY_BYTES(v6));
}

static uint64_t host_hash(const struct cv_flow_zone *zone, bool v6, const union cv_flow_key *key)
{
	uint8_t host[16] = {0};

	memcpy(host, key, v6 ? 16 : 4);
	return cv_flow_hash(&zone->secret, host, sizeof(host));
}

static uint32_t way_hash(const struct cv_flow_way *way)
{
	uint16_t words[sizeof(*way) / 2];
	uint32_t hash = 0;

	_Static_assert(sizeof(*way) == 18, "every byte counts: none is padding");
	memcpy(words, way, sizeof(words));
	for (unsigned i = 0; i < RTE_DIM(words); i++)
		hash = (hash ^ words[i]) * 0x9e3779b1u;
	return hash >> 16;
}

static void ways_index(struct cv_flow_ways *ways, unsigned way)
{
	unsigned at = way_hash(&ways->way[way]) % CV_FLOW_WAYS_INDEX;

	while (ways->index[at] != 0)
		at = (at + 1) % CV_FLOW_WAYS_INDEX;
	ways->index[at] = (uint16_t)way;
}

// Makes those that no flow uses free. At most once a tick.
static void ways_sweep(struct cv_flow_zone *zone)
{
	struct cv_flow_ways *ways = &zone->ways;

	if (ways->swept == zone->now)
		return;
	ways->swept = zone->now;
	memset(ways->index, 0, sizeof(ways->index));
	for (unsigned i = 1; i < CV_FLOW_WAYS_MAX; i++) {
		if (ways->flows[i] > 0)
			ways_index(ways, i);
		else
			ways->free[ways->free_count++] = (uint16_t)i;
	}
}

static struct cv_flow_way_mask mask_of(const struct cv_flow_way *way)
{
	struct cv_flow_way_mask mask = {
		.more = (way->set & (CV_FLOW_SET_DSCP | CV_FLOW_SET_VLAN)) != 0};

	if (way->set & CV_FLOW_SET_DST_MAC) {
		memset(mask.mask, 0xff, 6);
		memcpy(mask.value, way->dst_mac, 6);
	}
	if (way->set & CV_FLOW_SET_SRC_MAC) {
		memset(mask.mask + 6, 0xff, 6);
		memcpy(mask.value + 6, way->src_mac, 6);
	}
	if (way->set & CV_FLOW_SET_OUT) {
		mask.out_mask = 0xff;
		mask.out = way->out;
	}
	return mask;
}

// The index of a way, which one flow more uses; -1: there are too many.
static int ways_take(struct cv_flow_zone *zone, const struct cv_flow_way *way)
{
	struct cv_flow_ways *ways = &zone->ways;
	unsigned at = way_hash(way) % CV_FLOW_WAYS_INDEX;

	if (way->set == 0)
		return 0;
	for (; ways->index[at] != 0; at = (at + 1) % CV_FLOW_WAYS_INDEX) {
		unsigned index = ways->index[at];

		if (memcmp(&ways->way[index], way, sizeof(*way)) != 0)
			continue;
		ways->flows[index]++;
		return (int)index;
	}
	if (ways->free_count == 0)
		ways_sweep(zone);
	if (ways->free_count == 0)
		return -1;
	at = ways->free[--ways->free_count];
	ways->way[at] = *way;
	ways->masks[at] = mask_of(way);
	ways->flows[at] = 1;
	ways_index(ways, at);
	return (int)at;
}

static void ways_give(struct cv_flow_zone *zone, unsigned way)
{
	if (way != 0)
		zone->ways.flows[way]--;
}

static uint8_t drop_here(
	struct cv_flow_group *group, const struct cv_view *view, enum cv_flow_drop why)
{
	group->dropped[0].packets++;
	group->dropped[0].bytes += view->len;
	group->drops = true;
	return CV_DROP(why);
}

void cv_flow_learn_changes(struct cv_flow_zone *zone)
{
	for (unsigned i = 0; i < zone->members_count; i++) {
		struct cv_flow_zone_member *member = &zone->members[i];
		uint32_t now;

		if (member->generation == NULL)
			continue;
		// Pairs with the release store of whoever changes the instance.
		now = __atomic_load_n(member->generation, __ATOMIC_ACQUIRE);
		if (now == member->known)
			continue;
		member->known = now;
		member->changed = ++zone->epoch;
	}
}

static void count_flows(struct cv_flow_zone *zone)
{
	cv_count(&zone->counters.flows_ipv4, zone->table[0].used - zone->counters.flows_ipv4);
	cv_count(&zone->counters.flows_ipv6, zone->table[1].used - zone->counters.flows_ipv6);
	cv_count(&zone->counters.denied, zone->denied[0] + zone->denied[1] - zone->counters.denied);
}

// The first count functions of the group hear that a flow has ended.
static void end_functions(const struct cv_flow_group *group, struct cv_nf_worker *worker, bool v6,
	uint32_t index, unsigned count)
{
	const struct cv_flow_zone *zone = group->zone;

	for (unsigned i = 0; i < count; i++) {
		unsigned member = group->order[i];
		const struct cv_flow_zone_member *of = &zone->members[member];

		if (of->flow->ended != NULL)
			of->flow->ended(
				of->instance, worker, cv_flow_slot(zone, v6, index, member));
	}
}

static void remove_key(struct cv_flow_zone *zone, bool v6, uint32_t index, unsigned direction)
{
	struct cv_flow_table *table = &zone->table[v6];
	union cv_flow_key key;

	cv_flow_key(cv_flow_at(table, index), direction, v6, &key);
	cv_flow_table_remove(table, hash_of(zone, v6, &key), index, direction);
}

// Ends a flow that is in the table.
static void end_flow(
	struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6, uint32_t index)
{
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);
	union cv_flow_key key;

	remove_key(zone, v6, index, CV_FLOW_FORWARD);
	if (!(flow->flags & CV_FLOW_ONE_KEY))
		remove_key(zone, v6, index, CV_FLOW_REPLY);
	if (flow->flags & CV_FLOW_DENIED) {
		zone->denied[v6]--;
	} else {
		if (zone->hosts.limit != 0) {
			cv_flow_key(flow, CV_FLOW_FORWARD, v6, &key);
			cv_flow_hosts_remove(&zone->hosts, host_hash(zone, v6, &key));
		}
		end_functions(zone->groups[flow->group], worker, v6, index, zone->members_count);
		ways_give(zone, flow->way[0]);
		ways_give(zone, flow->way[1]);
	}
	cv_flow_table_give(&zone->table[v6], index);
	zone->removals++;
	count_flows(zone);
}

// Is any of a line of deadlines over?
static CV_INLINE bool any_over(const uint32_t *deadlines, uint32_t now)
{
	uint32_t over = 0;

	for (unsigned i = 0; i < AGE_BLOCK; i++)
		over |= (uint32_t)(deadlines[i] != 0) &
			(uint32_t)((int32_t)(now - deadlines[i]) >= 0);
	return over != 0;
}

// Ends the flows of a line whose time is over. A flow that was seen since its deadline was set gets
// a new one. Returns how many ended.
static unsigned age_block(
	struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6, uint32_t first)
{
	struct cv_flow_table *table = &zone->table[v6];
	unsigned ended = 0;

	for (uint32_t i = first; i < first + AGE_BLOCK && i < table->high; i++) {
		uint32_t deadline = table->deadlines[i];
		const struct cv_flow *flow = cv_flow_at(table, i);

		if (deadline == 0 || (int32_t)(zone->now - deadline) < 0)
			continue;
		if ((int32_t)(zone->now - flow->seen - zone->timeouts[flow->timeout]) < 0) {
			set_deadline(zone, v6, i, flow->seen);
			continue;
		}
		end_flow(zone, worker, v6, i);
		ended++;
	}
	cv_count(&zone->counters.timed_out, ended);
	return ended;
}

static void age_table(struct cv_flow_zone *zone, struct cv_nf_worker *worker, bool v6)
{
	struct cv_flow_table *table = &zone->table[v6];
	unsigned ended = 0;

	for (unsigned step = 0; step < AGE_STEP && zone->due[v6] > 0 && ended < AGE_ENDS;
		step += AGE_BLOCK) {
		if (table->cursor >= table->high)
			table->cursor = 0;
		if (any_over(&table->deadlines[table->cursor], zone->now))
			ended += age_block(zone, worker, v6, table->cursor);
		table->cursor += AGE_BLOCK;
		zone->due[v6] -= RTE_MIN(zone->due[v6], (uint32_t)AGE_BLOCK);
	}
}

void cv_flow_tick(void *instance, struct cv_nf_worker *worker)
{
	struct cv_flow_zone *zone = ((struct cv_flow_group *)instance)->zone;
	const uint32_t now = (uint32_t)(worker->now >> zone->shift);

	zone->now = now;
	if (CV_LIKELY(now == zone->aged && zone->due[0] == 0 && zone->due[1] == 0))
		return;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		const uint64_t high = zone->table[v6].high;
		const uint64_t due = zone->due[v6] + (uint64_t)(now - zone->aged) *
							     ((high + CV_FLOW_TICKS_PER_S - 1) /
								     CV_FLOW_TICKS_PER_S);

		zone->due[v6] = (uint32_t)RTE_MIN(due, RTE_ALIGN_CEIL(high, AGE_BLOCK));
	}
	zone->aged = now;
	age_table(zone, worker, false);
	age_table(zone, worker, true);
}

static void set_tuple(const union cv_flow_key *key, bool v6, struct cv_flow_tuple *tuple)
{
	memset(tuple, 0, sizeof(*tuple));
	if (v6) {
		*tuple = (struct cv_flow_tuple){.family = 6,
			.proto = key->ipv6.proto,
			.sport = key->ipv6.sport,
			.dport = key->ipv6.dport};
		memcpy(tuple->src.ipv6, key->ipv6.src, 16);
		memcpy(tuple->dst.ipv6, key->ipv6.dst, 16);
	} else {
		*tuple = (struct cv_flow_tuple){.family = 4,
			.proto = key->ipv4.proto,
			.sport = key->ipv4.sport,
			.dport = key->ipv4.dport};
		tuple->src.ipv4 = key->ipv4.src;
		tuple->dst.ipv4 = key->ipv4.dst;
	}
}

// The key of the answers to packets with this tuple.
static void set_answer(const struct cv_flow_tuple *tuple, union cv_flow_key *key)
{
	memset(key, 0, sizeof(*key));
	if (tuple->family == 6) {
		memcpy(key->ipv6.src, tuple->dst.ipv6, 16);
		memcpy(key->ipv6.dst, tuple->src.ipv6, 16);
		key->ipv6.sport = tuple->dport;
		key->ipv6.dport = tuple->sport;
		key->ipv6.proto = tuple->proto;
	} else {
		key->ipv4.src = tuple->dst.ipv4;
		key->ipv4.dst = tuple->src.ipv4;
		key->ipv4.sport = tuple->dport;
		key->ipv4.dport = tuple->sport;
		key->ipv4.proto = tuple->proto;
	}
}

bool cv_flow_is_free(const struct cv_flow_packet *packet, const struct cv_flow_tuple *tuple)
{
	const bool v6 = tuple->family == 6;
	union cv_flow_key key;

	set_answer(tuple, &key);
	return cv_flow_table_find(&packet->zone->table[v6], &key,
		       hash_of(packet->zone, v6, &key)) == CV_FLOW_NONE;
}

// Whether the ports of a tuple may be other than before.
static bool ports_allowed(const struct cv_flow_tuple *was, const struct cv_flow_tuple *is)
{
	const bool icmp = cv_flow_is_icmp(is->proto, is->family == 6);

	if (was->sport == is->sport && was->dport == is->dport)
		return true;
	if (icmp) // the identifier, which is one of the two; the other is 0
		return (was->dport == 0 && is->dport == 0) || (was->sport == 0 && is->sport == 0);
	return cv_proto_has_ports(is->proto) && cv_flow_checksum_at(is->proto) != 0;
}

// What the functions of a group said of a flow.
struct decision {
	struct cv_flow_actions actions;
	uint8_t follows; // members
	uint8_t verdict; // of the function at position; CV_NEXT: of all
	uint8_t position;
};

// Asks the functions in their order. changed: members whose configuration is another than when they
// decided; the flow is there already unless is_new.
static void ask(const struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_flow_packet *packet, const union cv_flow_key *key, bool v6, uint32_t index,
	bool is_new, uint8_t changed, struct decision *decision)
{
	const struct cv_flow_zone *zone = group->zone;
	struct cv_flow_actions *actions = &decision->actions;

	memset(decision, 0, sizeof(*decision));
	set_tuple(key, v6, &actions->tuple);
	for (unsigned i = 0; i < zone->members_count; i++) {
		const unsigned index_of = group->order[i];
		const struct cv_flow_zone_member *member = &zone->members[index_of];

		actions->follow = false;
		packet->why = is_new                     ? CV_FLOW_NEW
			      : changed & 1u << index_of ? CV_FLOW_CHANGED
							 : CV_FLOW_REPEAT;
		decision->verdict = member->flow->decide(member->instance, worker, packet, actions,
			cv_flow_slot(zone, v6, index, index_of));
		decision->position = (uint8_t)i;
		if (decision->verdict != CV_NEXT)
			return;
		if (actions->follow && member->flow->follow != NULL)
			decision->follows |= (uint8_t)(1u << index_of);
	}
}

static enum cv_flow_timeout first_timeout(const struct cv_flow_parsed *parsed)
{
	switch (parsed->proto) {
	case IPPROTO_TCP:
		return CV_FLOW_TCP_OPENING;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return CV_FLOW_UDP_NEW;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return CV_FLOW_ICMP;
	default:
		return CV_FLOW_OTHER;
	}
}

// Writes what was decided into the entry of a flow whose forward key is there. Returns
// CV_FLOW_BY_FUNCTION (0), or why it cannot be: then nothing is left of it but the forward key.
static enum cv_flow_drop write_decision(struct cv_flow_group *group, bool v6, uint32_t index,
	const union cv_flow_key *key, const struct decision *decision)
{
	struct cv_flow_zone *zone = group->zone;
	struct cv_flow_table *table = &zone->table[v6];
	struct cv_flow *flow = cv_flow_at(table, index);
	const struct cv_flow_actions *actions = &decision->actions;
	struct cv_flow_tuple before;
	union cv_flow_key answer, plain;
	uint64_t hash;
	int ways[2];

	set_tuple(key, v6, &before);
	set_answer(&before, &plain);
	set_answer(&actions->tuple, &answer);
	if (!ports_allowed(&before, &actions->tuple))
		return CV_FLOW_NOT_REWRITABLE;
	flow->flags = memcmp(&plain, &answer, sizeof(plain)) != 0 ? CV_FLOW_REWRITES : 0;
	cv_flow_deltas(key, &answer, v6, &flow->ip_delta, &flow->l4_delta);
	// Swapped, to leave with: sums do not care which address is the source.
	memcpy(cv_flow_stored(flow, CV_FLOW_REPLY, v6), &answer, CV_FLOW_STORED_BYTES(v6));
	if (memcmp(&answer, key, sizeof(answer)) == 0) {
		flow->flags |= CV_FLOW_ONE_KEY;
	} else {
		hash = hash_of(zone, v6, &answer);
		if (cv_flow_table_find(table, &answer, hash) != CV_FLOW_NONE)
			return CV_FLOW_CONFLICT;
		if (cv_flow_table_add(table, hash, index, CV_FLOW_REPLY) != 0)
			return CV_FLOW_TABLE_FULL;
	}
	ways[0] = ways_take(zone, &actions->way[0]);
	ways[1] = ways_take(zone, &actions->way[1]);
	if (ways[0] < 0 || ways[1] < 0) {
		for (unsigned i = 0; i < 2; i++)
			ways_give(zone, ways[i] < 0 ? 0 : (unsigned)ways[i]);
		if (!(flow->flags & CV_FLOW_ONE_KEY))
			remove_key(zone, v6, index, CV_FLOW_REPLY);
		return CV_FLOW_TABLE_FULL;
	}
	flow->way[0] = (uint16_t)ways[0];
	flow->way[1] = (uint16_t)ways[1];
	flow->follows = decision->follows;
	flow->epoch = zone->epoch;
	flow->group = group->index;
	return CV_FLOW_BY_FUNCTION;
}

static void write_denied(
	struct cv_flow_group *group, bool v6, uint32_t index, const struct decision *decision)
{
	struct cv_flow_zone *zone = group->zone;
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);

	flow->flags = CV_FLOW_DENIED | CV_FLOW_ONE_KEY;
	flow->timeout = CV_FLOW_DENIED_FOR;
	flow->denied_by = group->order[decision->position];
	flow->verdict = decision->verdict;
	flow->epoch = zone->epoch;
	flow->group = group->index;
	zone->denied[v6]++;
}

// Takes an entry, and puts the forward key into it and into the table; CV_FLOW_NONE: full.
static uint32_t take_entry(struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed)
{
	struct cv_flow_table *table = &zone->table[parsed->v6];
	uint32_t index = cv_flow_table_take(table);
	struct cv_flow *flow;

	if (index == CV_FLOW_NONE)
		return index;
	flow = cv_flow_at(table, index);
	flow->proto = parsed->proto;
	flow->seen = zone->now;
	memcpy(cv_flow_stored(flow, CV_FLOW_FORWARD, parsed->v6), &parsed->key,
		CV_FLOW_STORED_BYTES(parsed->v6));
	if (cv_flow_table_add(
		    table, hash_of(zone, parsed->v6, &parsed->key), index, CV_FLOW_FORWARD) == 0)
		return index;
	cv_flow_table_give(table, index);
	return CV_FLOW_NONE;
}

static void give_entry(struct cv_flow_zone *zone, bool v6, uint32_t index)
{
	remove_key(zone, v6, index, CV_FLOW_FORWARD);
	cv_flow_table_give(&zone->table[v6], index);
	zone->removals++;
}

static struct cv_flow_packet packet_of(const struct cv_flow_zone *zone, const struct cv_view *view,
	const struct cv_flow_parsed *parsed, unsigned direction)
{
	return (struct cv_flow_packet){
		.view = view,
		.l4 = parsed->l4,
		.tcp_flags = parsed->tcp_flags,
		.direction = (uint8_t)direction,
		.zone = zone,
	};
}

// The first packet of a flow. Returns the flow's slot, or CV_FLOW_NONE with the packet's verdict.
static uint32_t decide(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_flow_parsed *parsed, uint8_t *verdict)
{
	struct cv_flow_zone *zone = group->zone;
	const bool v6 = parsed->v6;
	struct cv_flow_packet packet = packet_of(zone, view, parsed, CV_FLOW_FORWARD);
	uint64_t host = zone->hosts.limit == 0 ? 0 : host_hash(zone, v6, &parsed->key);
	uint32_t index = take_entry(zone, parsed);
	enum cv_flow_drop why;
	struct decision decision;
	struct cv_flow *flow;

	if (index == CV_FLOW_NONE) {
		*verdict = drop_here(group, view, CV_FLOW_TABLE_FULL);
		return CV_FLOW_NONE;
	}
	if (!cv_flow_hosts_add(&zone->hosts, host)) {
		give_entry(zone, v6, index);
		*verdict = drop_here(group, view, CV_FLOW_HOST_LIMIT);
		return CV_FLOW_NONE;
	}
	ask(group, worker, &packet, &parsed->key, v6, index, true, 0, &decision);
	flow = cv_flow_at(&zone->table[v6], index);
	if (decision.verdict != CV_NEXT) {
		cv_flow_hosts_remove(&zone->hosts, host);
		end_functions(group, worker, v6, index, decision.position);
		if (decision.actions.once || zone->denied[v6] >= zone->denied_max[v6]) {
			give_entry(zone, v6, index);
		} else {
			write_denied(group, v6, index, &decision);
			set_deadline(zone, v6, index, zone->now);
			count_flows(zone);
		}
		*verdict = cv_flow_drop_by(group, decision.position, view, decision.verdict);
		return CV_FLOW_NONE;
	}
	why = write_decision(group, v6, index, &parsed->key, &decision);
	if (why != CV_FLOW_BY_FUNCTION) {
		cv_flow_hosts_remove(&zone->hosts, host);
		end_functions(group, worker, v6, index, zone->members_count);
		give_entry(zone, v6, index);
		*verdict = drop_here(group, view, why);
		return CV_FLOW_NONE;
	}
	flow->timeout = (uint8_t)first_timeout(parsed);
	if (parsed->proto == IPPROTO_TCP)
		flow->tcp_state = CV_FLOW_TCP_OPEN;
	set_deadline(zone, v6, index, zone->now);
	cv_count(&zone->counters.created, 1);
	count_flows(zone);
	return CV_FLOW_SLOT(index, CV_FLOW_FORWARD);
}

// Members that changed since the flow was decided.
static uint8_t changed_since(const struct cv_flow_zone *zone, uint32_t epoch)
{
	uint8_t changed = 0;

	for (unsigned i = 0; i < zone->members_count; i++)
		if ((int32_t)(zone->members[i].changed - epoch) > 0)
			changed |= (uint8_t)(1u << i);
	return changed;
}

// The slot of a flow whose epoch has passed, after the functions were asked again; CV_FLOW_NONE: it
// has ended, and *verdict is the packet's unless that is CV_NEXT: then it is to be decided on.
static uint32_t renew(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_flow_parsed *parsed, uint32_t slot,
	uint8_t *verdict)
{
	struct cv_flow_zone *zone = group->zone;
	const bool v6 = parsed->v6;
	const uint32_t index = slot >> 1;
	struct cv_flow *flow = cv_flow_at(&zone->table[v6], index);
	struct cv_flow_group *decided = zone->groups[flow->group];
	const uint8_t changed = changed_since(zone, flow->epoch);
	const uint16_t ways[2] = {flow->way[0], flow->way[1]};
	const uint8_t replied = flow->flags & CV_FLOW_REPLIED;
	struct cv_flow_packet packet = packet_of(zone, view, parsed, slot & 1);
	enum cv_flow_drop why;
	struct decision decision;
	union cv_flow_key key;

	*verdict = CV_NEXT;
	if (changed == 0) {
		flow->epoch = zone->epoch;
		return slot;
	}
	if (flow->flags & CV_FLOW_DENIED) {
		end_flow(zone, worker, v6, index);
		return CV_FLOW_NONE;
	}
	cv_flow_key(flow, CV_FLOW_FORWARD, v6, &key);
	ask(decided, worker, &packet, &key, v6, index, false, changed, &decision);
	if (decision.verdict != CV_NEXT) {
		const unsigned member = decided->order[decision.position];

		end_flow(zone, worker, v6, index);
		cv_count(&zone->counters.invalidated, 1);
		*verdict = cv_flow_drop_by(group, group->position[member], view, decision.verdict);
		return CV_FLOW_NONE;
	}
	if (!(flow->flags & CV_FLOW_ONE_KEY))
		remove_key(zone, v6, index, CV_FLOW_REPLY);
	why = write_decision(decided, v6, index, &key, &decision);
	if (why != CV_FLOW_BY_FUNCTION) {
		flow->flags |= CV_FLOW_ONE_KEY; // that for replies is not there
		end_flow(zone, worker, v6, index);
		cv_count(&zone->counters.invalidated, 1);
		*verdict = drop_here(group, view, why);
		return CV_FLOW_NONE;
	}
	ways_give(zone, ways[0]);
	ways_give(zone, ways[1]);
	flow->flags |= replied;
	zone->removals++; // a key leads elsewhere
	return slot;
}

static void fragment_key(const struct cv_flow_parsed *parsed, struct cv_flow_fragment_key *key)
{
	*key = (struct cv_flow_fragment_key){
		.id = parsed->fragment_id, .proto = parsed->proto, .v6 = parsed->v6};
	memcpy(key->src, &parsed->key, parsed->v6 ? 16 : 4);
	memcpy(key->dst, (const uint8_t *)&parsed->key + (parsed->v6 ? 16 : 4),
		parsed->v6 ? 16 : 4);
}

static void remember_fragment(
	struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed, uint32_t slot)
{
	struct cv_flow_fragment_key key;
	uint32_t deadline = zone->now + FRAGMENT_TICKS;

	fragment_key(parsed, &key);
	cv_flow_fragments_put(&zone->fragments, cv_flow_hash(&zone->secret, &key, sizeof(key)),
		&key, slot, zone->now, deadline + (deadline == 0));
}

// The slot of a non-first fragment's flow, or CV_FLOW_NONE.
static uint32_t find_fragment(struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed)
{
	const struct cv_flow_table *table = &zone->table[parsed->v6];
	const unsigned addresses = parsed->v6 ? 32 : 8;
	struct cv_flow_fragment_key key;
	struct cv_flow *flow;
	uint32_t slot;

	fragment_key(parsed, &key);
	slot = cv_flow_fragments_find(
		&zone->fragments, cv_flow_hash(&zone->secret, &key, sizeof(key)), &key, zone->now);
	if (slot == CV_FLOW_NONE || table->deadlines[slot >> 1] == 0)
		return CV_FLOW_NONE;
	flow = cv_flow_at(table, slot >> 1); // perhaps of another flow since
	if (memcmp(cv_flow_stored(flow, slot & 1, parsed->v6), &parsed->key, addresses) != 0 ||
		flow->proto != parsed->proto)
		return CV_FLOW_NONE;
	return slot;
}

// The functions' own verdicts of what is of no flow.
static uint8_t other(struct cv_flow_group *group, struct cv_nf_worker *worker,
	const struct cv_view *view, enum cv_flow_other why)
{
	for (unsigned i = 0; i < group->zone->members_count; i++) {
		const struct cv_flow_zone_member *member = &group->zone->members[group->order[i]];
		uint8_t verdict =
			member->flow->other == NULL
				? CV_NEXT
				: member->flow->other(member->instance, worker, view, why);

		if (verdict != CV_NEXT)
			return cv_flow_drop_by(group, i, view, verdict);
	}
	return CV_NEXT;
}

// TCP's state, and the time-out that comes of it or of a first reply.
static void track(struct cv_flow_zone *zone, const struct cv_flow_parsed *parsed,
	struct cv_flow *flow, uint32_t slot)
{
	const unsigned direction = slot & 1;
	bool settled;

	if (flow->proto == IPPROTO_TCP && parsed->kind == CV_FLOW_IS_FLOW) {
		enum cv_flow_tcp_state next =
			cv_flow_tcp_next(flow->tcp_state, direction, parsed->tcp_flags);

		if (next != flow->tcp_state) {
			flow->tcp_state = (uint8_t)next;
			set_timeout(zone, parsed->v6, slot >> 1, cv_flow_tcp_timeout(next));
		}
	}
	if (direction == CV_FLOW_REPLY && !(flow->flags & CV_FLOW_REPLIED)) {
		flow->flags |= CV_FLOW_REPLIED;
		if (flow->timeout == CV_FLOW_UDP_NEW)
			set_timeout(zone, parsed->v6, slot >> 1, CV_FLOW_UDP);
	}
	flow->seen = zone->now;
	settled = flow->proto != IPPROTO_TCP || flow->tcp_state == CV_FLOW_TCP_DONE;
	flow->flags &= (uint8_t) ~(CV_FLOW_SETTLED(0) | CV_FLOW_SETTLED(1));
	if (settled)
		flow->flags |= CV_FLOW_SETTLED(CV_FLOW_FORWARD);
	if (settled && flow->flags & CV_FLOW_REPLIED)
		flow->flags |= CV_FLOW_SETTLED(CV_FLOW_REPLY);
}

// A TCP connection that the other end opens between the ports of one that is over.
static bool is_reopened(
	const struct cv_flow *flow, const struct cv_flow_parsed *parsed, uint32_t slot)
{
	return flow->proto == IPPROTO_TCP && parsed->kind == CV_FLOW_IS_FLOW &&
	       (slot & 1) == CV_FLOW_REPLY &&
	       (parsed->tcp_flags & (CV_TCP_SYN | CV_TCP_ACK | CV_TCP_RST)) == CV_TCP_SYN &&
	       (flow->tcp_state == CV_FLOW_TCP_CLOSED || flow->tcp_state == CV_FLOW_TCP_RESET);
}

// An ICMP error: of the flow that the packet inside of it belongs to, or of none.
static uint8_t error_of(struct cv_flow_group *group, struct cv_nf_worker *worker,
	struct cv_view *view, const struct cv_flow_parsed *parsed)
{
	struct cv_flow_zone *zone = group->zone;
	const bool v6 = parsed->v6;
	const unsigned bytes = v6 ? 16 : 4;
	struct cv_flow_inner inner;
	struct cv_flow *flow;
	uint32_t slot;

	if (parsed->first_fragment || !cv_flow_inner_read(view, parsed, &inner))
		return other(group, worker, view, CV_FLOW_UNRELATED);
	slot = cv_flow_table_find(
		&zone->table[v6], &inner.answer, hash_of(zone, v6, &inner.answer));
	// It goes to whoever sent the packet inside.
	if (slot == CV_FLOW_NONE || memcmp((const uint8_t *)&inner.answer + bytes,
					    (const uint8_t *)&parsed->key + bytes, bytes) != 0)
		return other(group, worker, view, CV_FLOW_UNRELATED);
	flow = cv_flow_at(&zone->table[v6], slot >> 1);
	// Of what a function denies now, or decided with another configuration, its packets tell.
	if (flow->flags & CV_FLOW_DENIED || changed_since(zone, flow->epoch) != 0)
		return other(group, worker, view, CV_FLOW_UNRELATED);
	if (flow->flags & CV_FLOW_REWRITES)
		cv_flow_rewrite_error(view, parsed, &inner, flow, slot & 1);
	if (flow->way[slot & 1] != 0)
		cv_flow_apply_way(zone, view, flow->way[slot & 1]);
	return CV_NEXT;
}

uint8_t cv_flow_one(struct cv_flow_group *group, struct cv_nf_worker *worker, struct cv_view *view,
	uint32_t slot)
{
	struct cv_flow_zone *zone = group->zone;
	struct cv_flow_parsed parsed;
	struct cv_flow *flow;
	uint8_t verdict;

	cv_flow_parse(view, &parsed);
	switch (parsed.kind) {
	case CV_FLOW_IS_NON_IP:
		return other(group, worker, view, CV_FLOW_NON_IP);
	case CV_FLOW_IS_BAD:
		return other(group, worker, view, CV_FLOW_BAD_HEADER);
	case CV_FLOW_IS_ERROR:
		return error_of(group, worker, view, &parsed);
	case CV_FLOW_IS_FRAGMENT:
		slot = find_fragment(zone, &parsed);
		if (slot == CV_FLOW_NONE)
			return drop_here(group, view, CV_FLOW_NO_FIRST_FRAGMENT);
		break;
	default:
		if (slot == CV_FLOW_NONE)
			slot = cv_flow_table_find(&zone->table[parsed.v6], &parsed.key,
				hash_of(zone, parsed.v6, &parsed.key));
	}
	flow = slot == CV_FLOW_NONE ? NULL : cv_flow_at(&zone->table[parsed.v6], slot >> 1);
	if (flow != NULL && flow->epoch != zone->epoch) {
		slot = renew(group, worker, view, &parsed, slot, &verdict);
		if (slot == CV_FLOW_NONE && verdict != CV_NEXT)
			return verdict;
	} else if (flow != NULL && is_reopened(flow, &parsed, slot)) {
		end_flow(zone, worker, parsed.v6, slot >> 1);
		slot = CV_FLOW_NONE;
	}
	if (slot == CV_FLOW_NONE) {
		if (parsed.kind == CV_FLOW_IS_FRAGMENT) // its flow has just ended
			return drop_here(group, view, CV_FLOW_NO_FIRST_FRAGMENT);
		slot = decide(group, worker, view, &parsed, &verdict);
		if (slot == CV_FLOW_NONE)
			return verdict;
	}
	flow = cv_flow_at(&zone->table[parsed.v6], slot >> 1);
	if (parsed.first_fragment && parsed.kind == CV_FLOW_IS_FLOW)
		remember_fragment(zone, &parsed, slot);
	if (flow->flags & CV_FLOW_DENIED)
		return cv_flow_drop_by(
			group, group->position[flow->denied_by], view, flow->verdict);
	track(zone, &parsed, flow, slot);
	if (flow->follows != 0) {
		const struct cv_flow_packet packet = packet_of(zone, view, &parsed, slot & 1);

		verdict = cv_flow_follow(group, worker, &packet, flow->follows,
			cv_flow_slots(&zone->table[parsed.v6], slot >> 1));
		if (verdict != CV_NEXT)
			return verdict;
	}
	if (flow->flags & CV_FLOW_REWRITES)
		cv_flow_rewrite(view, &parsed, flow, slot & 1);
	if (flow->way[slot & 1] != 0)
		cv_flow_apply_way(zone, view, flow->way[slot & 1]);
	return CV_NEXT;
}
