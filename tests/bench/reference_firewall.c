// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The yardstick for the firewall: plain DPDK, an mbuf per packet, written after what the DPDK
// sample applications guide says of l3fwd with ACL: rte_acl reads the IPv4 header where it lies.
// IPv4 without options only, no fragments: less than the function does.
#include <stddef.h>
#include <stdlib.h>

#include <rte_acl.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_prefetch.h>

#include "chain/nf.h"
#include "packet/compiler.h"
#include "tests/bench/bench.h"

#define PREFETCH_AHEAD 8
#define ALLOW 2 // user data of a rule: 0 is no match
#define DENY 1

enum { PROTO, SOURCE, DESTINATION, SOURCE_PORT, DESTINATION_PORT, FIELDS };

// Offsets count from the protocol field.
#define OFFSET(field) \
	(offsetof(struct rte_ipv4_hdr, field) - offsetof(struct rte_ipv4_hdr, next_proto_id))
#define PORTS_OFFSET (sizeof(struct rte_ipv4_hdr) - offsetof(struct rte_ipv4_hdr, next_proto_id))

static const struct rte_acl_field_def fields[FIELDS] = {
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, PROTO, 0, 0},
	{RTE_ACL_FIELD_TYPE_MASK, 4, SOURCE, 1, OFFSET(src_addr)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, DESTINATION, 2, OFFSET(dst_addr)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, SOURCE_PORT, 3, PORTS_OFFSET},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, DESTINATION_PORT, 3, PORTS_OFFSET + 2},
};

RTE_ACL_RULE_DEF(bench_acl_rule, FIELDS);

static uint16_t run(void *state, struct rte_mbuf **packets, uint16_t n)
{
	const uint8_t *keys[CV_BURST_MAX];
	uint32_t results[CV_BURST_MAX];
	uint16_t allowed = 0;

	for (uint16_t i = 0; i < RTE_MIN(n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *data = rte_pktmbuf_mtod(packets[i], const uint8_t *);

		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(packets[i + PREFETCH_AHEAD], void *));
		if (CV_UNLIKELY(data[12] != 8 || data[13] != 0))
			return 0;
		keys[i] = data + sizeof(struct rte_ether_hdr) +
			  offsetof(struct rte_ipv4_hdr, next_proto_id);
	}
	rte_acl_classify(state, keys, results, n, 1);
	for (uint16_t i = 0; i < n; i++)
		allowed += results[i] == ALLOW;
	return allowed;
}

static void destroy(void *state)
{
	rte_acl_free(state);
}

static int add_rules(struct rte_acl_ctx *acl, const struct bench_tables *tables)
{
	for (unsigned i = 0; i < tables->entries; i++) {
		const struct bench_rule *from = &tables->rules[i];
		struct bench_acl_rule rule = {
			.data = {.userdata = from->allow ? ALLOW : DENY,
				.category_mask = 1,
				.priority = RTE_ACL_MAX_PRIORITY - i},
		};

		rule.field[PROTO].value.u8 = from->proto;
		rule.field[PROTO].mask_range.u8 = 0xff;
		rule.field[SOURCE].value.u32 = from->source;
		rule.field[SOURCE].mask_range.u32 = from->source_length;
		rule.field[DESTINATION].value.u32 = tables->routes[i].prefix;
		rule.field[DESTINATION].mask_range.u32 = tables->routes[i].length;
		rule.field[SOURCE_PORT].mask_range.u16 = UINT16_MAX;
		rule.field[DESTINATION_PORT].value.u16 = from->ports_low;
		rule.field[DESTINATION_PORT].mask_range.u16 = from->ports_high;
		if (rte_acl_add_rules(acl, (const struct rte_acl_rule *)&rule, 1) != 0)
			return -1;
	}
	return 0;
}

int bench_reference_firewall_create(
	struct bench_subject *subject, const struct bench_tables *tables, struct cv_error *error)
{
	struct rte_acl_config build = {.num_categories = 1, .num_fields = FIELDS};
	struct rte_acl_param param = {
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(FIELDS),
		.max_rule_num = tables->entries,
	};
	struct rte_acl_ctx *acl;
	char name[RTE_ACL_NAMESIZE];

	snprintf(name, sizeof(name), "reference.%u", tables->entries);
	param.name = name;
	memcpy(build.defs, fields, sizeof(fields));
	acl = rte_acl_create(&param);
	if (acl == NULL || add_rules(acl, tables) != 0 || rte_acl_build(acl, &build) != 0) {
		cv_error_set(error,
			"the reference's ACL of %u rules cannot be built: out of memory",
			tables->entries);
		rte_acl_free(acl);
		return -1;
	}
	*subject = (struct bench_subject){.run = run, .destroy = destroy, .state = acl};
	return 0;
}
