// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "nf/firewall/tree.h"
#include "nf/firewall/tree_layout.h"
#include "packet/compiler.h"

#define LEAF_MAX 256 // entries; more are not worth a scan
#define PRUNE_MAX 256 // entries among which covered ones are looked for
#define LONG_PREFIX 8 // bits
#define DEPTH_MAX 8
#define WIDTH_MAX 18 // bits of one cut
#define NO_RULE UINT32_MAX // fills up a chunk
#define COPIES_MAX 4 // of each rule on average, that one cut may make
#define GROWTH_MAX 4 // copies of entries, of each on average
#define SLOTS_PER_ENTRY 16
#define RESULT_BITS 24
#define HUGE_PAGE ((size_t)2 << 20)

// Bits of a word.
struct cut {
	unsigned word, shift, width;
};

struct builder {
	struct packed *rule; // all entries, in order
	struct packed_fields *fields; // theirs; NULL: they have none
	uint32_t *entry; // of the leaves: numbers of rules, or NO_RULE
	size_t entries, entries_max;
	uint64_t *slot;
	size_t slots, slots_max;
	uint32_t *histogram; // of one cut, one more than it has slots
	unsigned depth;
};

static uint32_t swapped(uint32_t be)
{
	return rte_be_to_cpu_32(be);
}

static struct packed packed_of(const struct cv_firewall_entry *entry)
{
	const struct cv_firewall_ports *s = &entry->sport, *d = &entry->dport;

	return (struct packed){
		.value = {rte_le_to_cpu_32(entry->value[0]), swapped(entry->value[1]),
			swapped(entry->value[2]), s->first | (uint32_t)d->first << 16},
		.mask = {rte_le_to_cpu_32(entry->mask[0]) | entry->result << 8,
			swapped(entry->mask[1]), swapped(entry->mask[2]),
			(uint32_t)(s->last - s->first) | (uint32_t)(d->last - d->first) << 16},
	};
}

// The slots of a cut that an entry is below: count of them from first on, modulo their number.
static CV_INLINE void slots_of(
	const struct packed *rule, const struct cut *cut, uint32_t *first, uint32_t *count)
{
	const uint32_t all = (1u << cut->width) - 1;

	if (cut->word == PORTS) {
		const unsigned high = cut->shift & 16, shift = cut->shift & 15;
		const uint32_t from = rule->value[PORTS] >> high & 0xffff;
		const uint32_t to = from + (rule->mask[PORTS] >> high & 0xffff);

		*first = from >> shift & all;
		*count = RTE_MIN((to >> shift) - (from >> shift), all) + 1;
	} else { // a mask is a prefix: what it leaves open is at the end
		*first = rule->value[cut->word] >> cut->shift & all;
		*count = (~(rule->mask[cut->word] >> cut->shift) & all) + 1;
	}
}

// What a cut makes of count rules, which may be below most slots in all. The less the better; a
// negative number: of no use.
static double score(struct builder *builder, const uint32_t *rules, uint32_t count, uint64_t most,
	const struct cut *cut)
{
	const uint32_t slots = 1u << cut->width;
	uint32_t *histogram = builder->histogram, now = 0, everywhere = 0;
	uint64_t total = 0;
	double square = 0;

	memset(histogram, 0, (slots + 1) * sizeof(*histogram));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t first, n;

		slots_of(&builder->rule[rules[i]], cut, &first, &n);
		total += n;
		if (total > most)
			return -1;
		histogram[first]++;
		if (first + n > slots)
			everywhere++; // from 0 on, too
		histogram[((first + n - 1) & (slots - 1)) + 1]--;
	}
	now = everywhere;
	for (uint32_t i = 0; i < slots; i++) {
		now += histogram[i];
		square += (double)now * now;
	}
	if (square >= 0.8 * count * (double)total)
		return -1;
	return square / (double)total + 2.0 * ((double)total / count - 1) + 0.25 * slots / count;
}

// No cut of this width scores less: at best each slot has as many rules as any other, one at least,
// and no rule is below two. A little less than that, for what rounding takes away.
static double score_min(uint32_t count, unsigned width)
{
	const double slots = 1u << width, each = count / slots;

	return (RTE_MAX(each, 1.0) + 0.25 / each) * (1 - 1e-9);
}

// Below how many slots count rules may be in all, one below two counted twice: a cut that makes more
// of them scores no less than least (negative: there is none yet).
static uint64_t slots_max(uint32_t count, double score_min, double least)
{
	const uint64_t most = COPIES_MAX * (uint64_t)count;

	if (least < 0)
		return most;
	return RTE_MIN(most, (uint64_t)(count * (1 + (least - score_min) / 2)) + 1);
}

static void try_cuts(struct builder *builder, const uint32_t *rules, uint32_t count, unsigned word,
	unsigned first, unsigned bits, struct cut *best, double *least)
{
	const unsigned most = RTE_MIN((unsigned)WIDTH_MAX, 33u - (unsigned)__builtin_clz(count));

	for (unsigned width = most; width > 0; width -= width > 4 ? 2 : 1) {
		if (*least >= 0 && score_min(count, width) >= *least)
			continue;
		for (unsigned shift = 0; shift + width <= bits; shift++) {
			const struct cut cut = {word, first + shift, width};
			const double is = score(builder, rules, count,
				slots_max(count, score_min(count, width), *least), &cut);

			if (is >= 0 && (*least < 0 || is < *least)) {
				*least = is;
				*best = cut;
			}
		}
	}
}

// Doubles an array that is full. Returns 0, -ENOMEM, or -E2BIG beyond max elements.
static int make_room(void **array, size_t *size, size_t used, size_t max, size_t element)
{
	void *larger;

	if (used > max)
		return -E2BIG;
	if (used <= *size)
		return 0;
	while (*size < used)
		*size = *size == 0 ? 1024 : 2 * *size;
	larger = realloc(*array, *size * element);
	if (larger == NULL)
		return -ENOMEM;
	*array = larger;
	return 0;
}

static int build(struct builder *builder, uint32_t *rules, uint32_t count, size_t limit,
	unsigned depth, uint64_t *made);

static int make_leaf(struct builder *builder, const uint32_t *rules, uint32_t count, size_t limit,
	uint64_t *made)
{
	const size_t base = builder->entries, chunks = (count + CHUNK - 1) / CHUNK;
	int rc;

	if (count > LEAF_MAX)
		return -E2BIG;
	rc = make_room((void **)&builder->entry, &builder->entries_max, base + chunks * CHUNK,
		CHUNK * GROWTH_MAX * limit, sizeof(*builder->entry));
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < chunks * CHUNK; i++) {
		builder->entry[base + i] = i < count ? rules[i] : NO_RULE;
	}
	builder->entries += chunks * CHUNK;
	*made = (uint64_t)base << 32 | chunks << 8;
	return 0;
}

// The rules below each slot: those of slot s are list[at[s]] to before list[at[s + 1]].
static uint32_t *rules_by_slot(const struct builder *builder, const uint32_t *rules, uint32_t count,
	const struct cut *cut, uint32_t **at)
{
	const uint32_t slots = 1u << cut->width;
	uint32_t *list = NULL, *ends = calloc((size_t)slots + 2, sizeof(*ends));

	*at = ends;
	for (unsigned pass = 0; ends != NULL && pass < 2; pass++) {
		for (uint32_t i = 0; i < count; i++) {
			uint32_t first, n;

			slots_of(&builder->rule[rules[i]], cut, &first, &n);
			for (uint32_t k = 0; k < n; k++) {
				const uint32_t slot = (first + k) & (slots - 1);

				if (pass == 0)
					ends[slot + 2]++;
				else
					list[ends[slot + 1]++] = rules[i];
			}
		}
		if (pass == 1)
			break;
		for (uint32_t slot = 0; slot < slots; slot++)
			ends[slot + 2] += ends[slot + 1];
		list = malloc((ends[slots + 1] + 1) * sizeof(*list));
		if (list == NULL)
			break;
	}
	return list;
}

static int make_node(struct builder *builder, const uint32_t *rules, uint32_t count, size_t limit,
	unsigned depth, const struct cut *cut, uint64_t *made)
{
	const uint32_t slots = 1u << cut->width;
	const size_t base = builder->slots;
	uint32_t *at, *list = rules_by_slot(builder, rules, count, cut, &at);
	int rc = list == NULL ? -ENOMEM : 0;

	if (rc == 0)
		rc = make_room((void **)&builder->slot, &builder->slots_max, base + slots,
			SLOTS_PER_ENTRY * limit, sizeof(*builder->slot));
	builder->slots += slots;
	for (uint32_t slot = 0; slot < slots && rc == 0; slot++) {
		const uint32_t n = at[slot + 1] - at[slot];
		uint64_t below = 0;

		// Neighbours that the same rules are below share what is made of them.
		if (slot > 0 && n == at[slot] - at[slot - 1] &&
			memcmp(&list[at[slot]], &list[at[slot - 1]], n * sizeof(*list)) == 0)
			below = builder->slot[base + slot - 1];
		else
			rc = build(builder, &list[at[slot]], n, limit, depth + 1, &below);
		builder->slot[base + slot] = below;
	}
	free(list);
	free(at);
	*made = (uint64_t)base << 32 | cut->width << 16 | cut->shift << 8 | cut->word << 1 |
		IS_NODE;
	return rc;
}

static bool fields_cover(const struct packed_fields *a, const struct packed_fields *b)
{
	const unsigned length = CV_FIREWALL_FIELD_LENGTH;

	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++)
		if (i != length && ((b->mask[i] & a->mask[i]) != a->mask[i] ||
					   (b->value[i] & a->mask[i]) != a->value[i]))
			return false;
	return b->value[length] >= a->value[length] &&
	       b->value[length] + b->mask[length] <= a->value[length] + a->mask[length];
}

// Whether every packet that passes rule second passes rule first.
static bool covers(const struct builder *builder, uint32_t first, uint32_t second)
{
	const struct packed *a = &builder->rule[first], *b = &builder->rule[second];

	for (unsigned i = 0; i < PORTS; i++) {
		const uint32_t mask = i == 0 ? a->mask[i] & 0xff : a->mask[i];

		if ((b->mask[i] & mask) != mask || (b->value[i] & mask) != a->value[i])
			return false;
	}
	for (unsigned shift = 0; shift <= 16; shift += 16) {
		const uint32_t a_first = a->value[PORTS] >> shift & 0xffff;
		const uint32_t b_first = b->value[PORTS] >> shift & 0xffff;

		if (b_first < a_first || b_first + (b->mask[PORTS] >> shift & 0xffff) >
						 a_first + (a->mask[PORTS] >> shift & 0xffff))
			return false;
	}
	return builder->fields == NULL ||
	       fields_cover(&builder->fields[first], &builder->fields[second]);
}

// Leaves out what an entry before covers. Returns how many are left.
static uint32_t prune(const struct builder *builder, uint32_t *rules, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = 0;

		while (k < kept && !covers(builder, rules[k], rules[i]))
			k++;
		if (k == kept)
			rules[kept++] = rules[i];
	}
	return kept;
}

static int build(struct builder *builder, uint32_t *rules, uint32_t count, size_t limit,
	unsigned depth, uint64_t *made)
{
	struct cut best = {0};
	double least = -1;

	if (count <= PRUNE_MAX)
		count = prune(builder, rules, count);

	if (count > CHUNK && depth < DEPTH_MAX) {
		try_cuts(builder, rules, count, 1, 0, 32, &best, &least);
		try_cuts(builder, rules, count, 2, 0, 32, &best, &least);
		try_cuts(builder, rules, count, PORTS, 0, 16, &best, &least);
		try_cuts(builder, rules, count, PORTS, 16, 16, &best, &least);
	}
	builder->depth = RTE_MAX(builder->depth, depth + (least >= 0));
	if (least < 0)
		return make_leaf(builder, rules, count, limit, made);
	return make_node(builder, rules, count, limit, depth, &best, made);
}

// What was built, in one piece and in large pages where the kernel has some.
static int finish(struct cv_firewall_tree *tree, const struct builder *builder)
{
	const size_t slots =
		RTE_ALIGN_CEIL((builder->slots + 1) * sizeof(*builder->slot), RTE_CACHE_LINE_SIZE);
	const size_t entries = (builder->entries + CHUNK) * sizeof(*tree->entry);
	const size_t fields =
		builder->fields != NULL ? (builder->entries + CHUNK) * sizeof(*tree->fields) : 0;
	struct packed_fields *field;
	struct packed *entry;

	tree->bytes = RTE_ALIGN_CEIL(slots + entries + fields, HUGE_PAGE);
	if (posix_memalign(&tree->memory, HUGE_PAGE, tree->bytes) != 0)
		return -ENOMEM;
	madvise(tree->memory, tree->bytes, MADV_HUGEPAGE);
	entry = RTE_PTR_ADD(tree->memory, slots);
	field = fields > 0 ? RTE_PTR_ADD(tree->memory, slots + entries) : NULL;
	if (builder->slots > 0)
		memcpy(tree->memory, builder->slot, builder->slots * sizeof(*builder->slot));
	for (size_t i = 0; i < builder->entries; i++) {
		const uint32_t rule = builder->entry[i];

		if (rule == NO_RULE) { // nothing passes
			entry[i] = (struct packed){.value = {UINT32_MAX}};
			continue;
		}
		entry[i] = builder->rule[rule];
		if (field != NULL)
			field[i] = builder->fields[rule];
	}
	tree->slot = tree->memory;
	tree->entry = entry;
	tree->fields = field;
	return 0;
}

static struct packed_fields fields_of(const struct cv_firewall_entry *entry)
{
	const unsigned length = CV_FIREWALL_FIELD_LENGTH;
	struct packed_fields fields;

	for (unsigned i = 0; i < CV_FIREWALL_FIELDS; i++) {
		fields.value[i] = entry->field[i].value;
		fields.mask[i] = entry->field[i].mask;
	}
	fields.value[length] = entry->length.first;
	fields.mask[length] = (uint16_t)(entry->length.last - entry->length.first);
	return fields;
}

static unsigned group_of(const struct packed *rule)
{
	return (__builtin_popcount(rule->mask[1]) >= LONG_PREFIX) << 1 |
	       (__builtin_popcount(rule->mask[2]) >= LONG_PREFIX);
}

// A tree of the group's entries, if there are any. rules has room for all.
static int build_group(struct builder *builder, struct cv_firewall_tree *tree, uint32_t *rules,
	uint32_t count, unsigned group)
{
	struct root *root = &tree->root[tree->roots];
	uint32_t n = 0;
	int rc;

	for (uint32_t i = 0; i < count; i++)
		if (group_of(&builder->rule[i]) == group)
			rules[n++] = i;
	if (n == 0)
		return 0;
	builder->depth = 0;
	rc = build(builder, rules, n, count + 1024, 0, &root->node);
	root->depth = builder->depth;
	tree->roots++;
	return rc;
}

int cv_firewall_tree_build(struct cv_firewall_tree **tree, const struct cv_firewall_entry *entry,
	uint32_t count, bool with_fields)
{
	struct builder builder = {0};
	struct cv_firewall_tree *made = calloc(1, sizeof(*made));
	uint32_t *rules = malloc((count + 1) * sizeof(*rules));
	int rc = -ENOMEM;

	builder.rule = malloc((count + 1) * sizeof(*builder.rule));
	builder.histogram = malloc(((1u << WIDTH_MAX) + 1) * sizeof(*builder.histogram));
	if (with_fields)
		builder.fields = malloc((count + 1) * sizeof(*builder.fields));
	if (made != NULL && rules != NULL && builder.rule != NULL && builder.histogram != NULL &&
		(builder.fields != NULL || !with_fields))
		rc = 0;
	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		builder.rule[i] = packed_of(&entry[i]);
		if (with_fields)
			builder.fields[i] = fields_of(&entry[i]);
		if (entry[i].result >> RESULT_BITS != 0)
			rc = -E2BIG;
	}
	for (unsigned group = 0; rc == 0 && group < GROUPS; group++)
		rc = build_group(&builder, made, rules, count, group);
	if (rc == 0)
		rc = finish(made, &builder);
	free(rules);
	free(builder.rule);
	free(builder.fields);
	free(builder.histogram);
	free(builder.entry);
	free(builder.slot);
	if (rc != 0) {
		free(made);
		return rc;
	}
	*tree = made;
	return 0;
}
