// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/bridge.h"

#include <errno.h>

#include <rte_cycles.h>

#include "nf/config.h"
#include "packet/ether.h"

#define TICKS_PER_AGE 16

int cv_bridge_init(struct cv_bridge *bridge, const json_t *sides, uint32_t entries, uint32_t age_s,
	const struct cv_nf_env *env, struct cv_error *error)
{
	if (json_array_size(sides) != 2) {
		cv_error_set(
			error, "%s: a bridge needs sides: [PORT, PORT], its two ports", env->name);
		return -EINVAL;
	}
	for (unsigned i = 0; i < 2; i++) {
		const char *name = json_string_value(json_array_get(sides, i));

		if (name == NULL) {
			cv_error_set(
				error, "%s: sides[%u] must be the name of a port", env->name, i);
			return -EINVAL;
		}
		bridge->side[i] = cv_nf_env_port(env, name);
		if (bridge->side[i] < 0)
			return cv_config_no_port(env->name, name, env, error);
	}
	if (bridge->side[0] == bridge->side[1]) {
		cv_error_set(error, "%s: both sides are \"%s\"; a bridge needs two ports",
			env->name, env->ports[bridge->side[0]]);
		return -EINVAL;
	}
	bridge->ticks_per_cycle = UINT64_MAX / (rte_get_tsc_hz() * (uint64_t)age_s / TICKS_PER_AGE);
	if (cv_mac_table_init(&bridge->table, entries, TICKS_PER_AGE) != 0) {
		cv_error_set(error, "%s: no memory for %u entries", env->name, entries);
		return -ENOMEM;
	}
	return 0;
}

void cv_bridge_free(struct cv_bridge *bridge)
{
	cv_mac_table_free(&bridge->table);
}

static uint16_t tick_now(const struct cv_bridge *bridge)
{
	return (uint16_t)((unsigned __int128)rte_rdtsc() * bridge->ticks_per_cycle >> 64) &
	       CV_MAC_TICKS;
}

static CV_INLINE uint8_t forward_one(
	const struct cv_bridge *bridge, struct cv_view *view, uint16_t tick)
{
	uint64_t source = cv_mac_key(view->data + CV_MAC_LEN);
	unsigned side = view->in == bridge->side[1];

	if (CV_UNLIKELY(view->in != bridge->side[side]))
		return CV_DROP(CV_L2_NOT_A_SIDE);
	if (CV_UNLIKELY(source == 0 || cv_mac_group(view->data + CV_MAC_LEN)))
		return CV_DROP(CV_L2_BAD_SOURCE);
	cv_mac_learn(&bridge->table, source, side, tick);
	if (!cv_mac_group(view->data) &&
		cv_mac_find(&bridge->table, cv_mac_key(view->data), tick) == (int)side)
		return CV_DROP(CV_L2_SAME_SIDE);
	view->out = (uint8_t)bridge->side[!side];
	return CV_NEXT;
}

CV_HOT uint16_t cv_bridge_forward(
	const struct cv_bridge *bridge, struct cv_view *view, uint8_t *verdict, uint16_t n)
{
	const uint16_t tick = tick_now(bridge);
	uint16_t dropped = 0;

	for (uint16_t i = 0; i < n; i++) {
		verdict[i] = view[i].len < CV_ETHER_LEN ? CV_DROP(CV_L2_BAD_HEADER)
							: forward_one(bridge, &view[i], tick);
		dropped += verdict[i] != CV_NEXT;
	}
	return dropped;
}

void cv_bridge_info(const struct cv_bridge *bridge, json_t *info)
{
	json_object_set_new(info, "entries",
		json_integer((json_int_t)bridge->table.buckets * CV_MAC_TABLE_WAYS));
	json_object_set_new(info, "learned",
		json_integer(cv_mac_table_count(&bridge->table, tick_now(bridge))));
}
