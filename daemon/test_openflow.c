// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What controllers say is what workers look up: FLOW_MODs drawn, beside next hops that come and go,
// against a model that looks at all entries each time; and what is answered, in rows.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/next_hop_set.h"
#include "daemon/openflow/session.h"
#include "tests/support/test_eal.h"

#define IDS 6u
#define STEPS 40000u
#define NAMES 4u
#define GROUPS 2u

static const char plan_text[] =
	"{\"schema\": \"convoy.plan/1\","
	" \"ports\": [{\"name\": \"in\", \"kind\": \"null\"}, {\"name\": \"out\", \"kind\": "
	"\"null\"}],"
	" \"convoys\": [{\"port\": \"out\", \"ip\": \"192.0.2.1\"}],"
	" \"next_hops\": [{\"name\": \"h0\", \"port\": \"out\", \"mac\": \"02:00:00:00:00:0b\","
	"   \"ip\": \"192.0.2.2\", \"nfi\": 100, \"match\": [{}, {\"vlan\": 2}, {\"vni\": 3}]}],"
	" \"functions\": [], \"chains\": [{\"name\": \"a\", \"match\": {}, \"in\": \"in\","
	"   \"out\": \"out\"}],"
	" \"stages\": [{\"worker\": 0, \"chain\": \"a\", \"source\": {\"port\": \"in\"},"
	"   \"path\": [], \"sink\": {\"port\": \"out\"}}],"
	" \"workers\": [{\"core\": 0}]}";

// The node's part, on a real set of next hops that nobody but the test reads.
struct rig {
	struct cv_plan *plan;
	struct cv_port ports[2], *by_index[2];
	struct cv_next_hop_set set;
	struct cv_of_node node;
	struct cv_of_switch of;
	struct cv_of_session *session;
};

static bool begin(void *of)
{
	return true;
}

static void end(void *of)
{
}

static bool describe(void *of, uint16_t next_hop, struct cv_of_port *port)
{
	const struct cv_next_hop_set *set = &((struct rig *)of)->set;

	if (set->next_hops[next_hop].name[0] == '\0')
		return false;
	*port = (struct cv_of_port){
		.nfi = set->next_hops[next_hop].outer.nfi, .serial = set->serials[next_hop]};
	memcpy(port->name, set->next_hops[next_hop].name, sizeof(port->name));
	return true;
}

static uint64_t generation(void *of)
{
	return ((struct rig *)of)->set.generation + 1;
}

static int change(void *of, uint32_t key, bool all)
{
	return cv_next_hop_set_follow(&((struct rig *)of)->set, key, all);
}

static void wait(void *of)
{
	cv_next_hop_rcu_wait(&((struct rig *)of)->set.table);
}

static void run(struct rig *rig)
{
	cv_of_switch_look(&rig->of, 0);
	while (cv_of_session_is_due(rig->session))
		cv_of_session_run(rig->session);
}

static struct rig *make_rig(void)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct cv_error error = {0};

	rig->plan = cv_plan_parse(plan_text, sizeof(plan_text) - 1, "plan", &error);
	if (rig->plan == NULL)
		fail_msg("%s", error.text);
	for (unsigned i = 0; i < 2; i++) {
		strcpy(rig->ports[i].name, rig->plan->port_names[i]);
		rig->ports[i].mtu = 1500;
		rig->by_index[i] = &rig->ports[i];
	}
	assert_int_equal(cv_next_hop_set_init(&rig->set, rig->plan, rig->by_index, &error), 0);
	rig->node = (struct cv_of_node){
		.of = rig,
		.datapath_id = 7,
		.version = "test",
		.tables_count = 2,
		.ports = {1, 0},
		.names = {"out", "in"},
		.begin = begin,
		.end = end,
		.describe = describe,
		.generation = generation,
		.change = change,
		.wait = wait,
	};
	assert_int_equal(cv_of_switch_init(&rig->of, &rig->node, 200), 0);
	assert_int_equal(cv_next_hop_set_attach(&rig->set, &rig->of.entries, &error), 0);
	rig->session = cv_of_session_open(&rig->of);
	memcpy(rig->session->in, (const uint8_t[]){4, 0, 0, 8, 0, 0, 0, 1}, 8);
	rig->session->in_used = 8;
	run(rig);
	assert_true(rig->session->greeted);
	return rig;
}

static void free_rig(struct rig *rig)
{
	cv_of_session_close(rig->session);
	cv_next_hop_set_fini(&rig->set);
	cv_of_switch_fini(&rig->of);
	cv_plan_free(rig->plan);
	free(rig);
}

// The error that the last messages were answered by; 0: none. All that was sent is read.
static uint32_t read_answers(struct rig *rig)
{
	struct cv_of_session *session = rig->session;
	uint32_t why = 0;

	for (; session->out_from < session->out_to;
		session->out_from += cv_of_get16(session->out + session->out_from + 2)) {
		const uint8_t *at = session->out + session->out_from;

		if (at[1] == CV_OF_ERROR)
			why = CV_OF_REFUSED(cv_of_get16(at + 8), cv_of_get16(at + 10));
	}
	return why;
}

static void say(struct rig *rig, const uint8_t *message, size_t length)
{
	memcpy(rig->session->in + rig->session->in_used, message, length);
	rig->session->in_used += length;
	run(rig);
}

struct flow_mod {
	enum cv_of_command command;
	uint8_t table;
	struct cv_of_match match;
	uint16_t priority;
	uint32_t port; // that packets are put out by
	uint32_t group; // in place of that; 0: none
	uint64_t cookie, mask;
	uint32_t out_port;
};

static uint32_t send_flow_mod(struct rig *rig, const struct flow_mod *mod)
{
	uint8_t bytes[128] = {CV_OF_VERSION, CV_OF_FLOW_MOD};
	size_t length = 48;

	cv_of_put64(bytes + 8, mod->cookie);
	cv_of_put64(bytes + 16, mod->mask);
	bytes[24] = mod->table;
	bytes[25] = (uint8_t)mod->command;
	cv_of_put16(bytes + 30, mod->priority);
	cv_of_put32(bytes + 32, CV_OF_ANY);
	cv_of_put32(bytes + 36, mod->out_port);
	cv_of_put32(bytes + 40, CV_OF_ANY);
	length += cv_of_write_match(bytes + length, &mod->match);
	if (mod->command < CV_OF_DELETE && mod->group > 0) {
		cv_of_put16(bytes + length, 4);
		cv_of_put16(bytes + length + 2, 16);
		cv_of_put16(bytes + length + 8, 22);
		cv_of_put16(bytes + length + 10, 8);
		cv_of_put32(bytes + length + 12, mod->group);
		length += 16;
	} else if (mod->command < CV_OF_DELETE) {
		cv_of_put16(bytes + length, 4);
		cv_of_put16(bytes + length + 2, 24);
		cv_of_put16(bytes + length + 10, 16);
		cv_of_put32(bytes + length + 12, mod->port);
		length += 24;
	}
	cv_of_put16(bytes + 2, (uint16_t)length);
	say(rig, bytes, length);
	return read_answers(rig);
}

// A group's message, with buckets of the ports of a mask, one bit each from port 1.
static uint32_t send_group_mod(
	struct rig *rig, enum cv_of_group_command command, uint32_t id, uint32_t ports)
{
	uint8_t bytes[16 + 32 * 32] = {CV_OF_VERSION, CV_OF_GROUP_MOD};
	size_t length = 16;

	cv_of_put16(bytes + 8, command);
	bytes[10] = CV_OF_SELECT;
	cv_of_put32(bytes + 12, id);
	for (unsigned i = 32; i-- > 0;) {
		uint8_t *bucket = bytes + length;

		if ((ports >> i & 1) == 0)
			continue;
		cv_of_put16(bucket, 32);
		cv_of_put16(bucket + 2, (uint16_t)(1 + 1000 * i));
		cv_of_put32(bucket + 4, CV_OF_ANY);
		cv_of_put32(bucket + 8, CV_OF_ANY);
		cv_of_put16(bucket + 18, 16);
		cv_of_put32(bucket + 20, i + 1);
		length += 32;
	}
	cv_of_put16(bytes + 2, (uint16_t)length);
	say(rig, bytes, length);
	return read_answers(rig);
}

// The model: all entries in a row, and for each name of a next hop whether it is there. What is from
// NAMES on in place of a name is a group.
struct model {
	struct {
		struct flow_mod mod;
		unsigned name;
	} entries[200];
	unsigned count;
	bool there[NAMES];
	unsigned groups[GROUPS]; // names, a bit each; 0: there is none
};

static void forget(struct model *model, unsigned at)
{
	model->entries[at] = model->entries[--model->count];
}

static bool has_match(const struct flow_mod *entry, const struct flow_mod *mod)
{
	return entry->match.kind == mod->match.kind && entry->match.id == mod->match.id;
}

static bool is_selected(
	const struct model *model, unsigned at, const struct flow_mod *mod, const struct rig *rig)
{
	const struct flow_mod *entry = &model->entries[at].mod;
	const bool strict =
		mod->command == CV_OF_MODIFY_STRICT || mod->command == CV_OF_DELETE_STRICT;

	if (mod->table != CV_OF_ALL_TABLES && mod->table != entry->table)
		return false;
	if (strict && (!has_match(entry, mod) || entry->priority != mod->priority))
		return false;
	if (!strict && mod->match.kind != CV_SCID_NONE && !has_match(entry, mod))
		return false;
	if (((entry->cookie ^ mod->cookie) & mod->mask) != 0)
		return false;
	return mod->command < CV_OF_DELETE || mod->out_port == CV_OF_ANY ||
	       mod->out_port == entry->port;
}

static void change_model(
	struct model *model, const struct flow_mod *mod, unsigned name, const struct rig *rig)
{
	if (mod->command == CV_OF_ADD) {
		for (unsigned i = 0; i < model->count; i++)
			if (model->entries[i].mod.table == mod->table &&
				has_match(&model->entries[i].mod, mod) &&
				model->entries[i].mod.priority == mod->priority)
				forget(model, i--);
		model->entries[model->count].mod = *mod;
		model->entries[model->count++].name = name;
		return;
	}
	for (unsigned i = 0; i < model->count; i++) {
		if (!is_selected(model, i, mod, rig))
			continue;
		if (mod->command >= CV_OF_DELETE) {
			forget(model, i--);
			continue;
		}
		model->entries[i].mod.port = mod->port;
		model->entries[i].mod.group = mod->group;
		model->entries[i].name = name;
	}
}

// By what put_next_hop() makes.
static unsigned expected_of_plan(const struct model *model, struct cv_of_match packet)
{
	unsigned names = 0;

	if (packet.kind == CV_SCID_VLAN && packet.id == 2)
		names = (unsigned)model->there[0] | (unsigned)model->there[2] << 2;
	if (packet.kind == CV_SCID_VLAN && packet.id == 4)
		names = (unsigned)model->there[1] << 1 | (unsigned)model->there[2] << 2;
	return names != 0 ? names : (unsigned)model->there[0];
}

// The names that a packet's flows may go to, a bit each, by all entries and the plan.
static unsigned expected(const struct model *model, unsigned table, struct cv_of_match packet)
{
	int best = -1, priority = -1;
	bool own = false;

	for (unsigned i = 0; i < model->count; i++) {
		const struct flow_mod *mod = &model->entries[i].mod;
		const bool all = mod->match.kind == CV_SCID_NONE;
		const bool matches =
			all || (mod->match.kind == packet.kind && mod->match.id == packet.id);

		if (mod->table != table || !matches)
			continue;
		// Of the same priority the one that matches less decides.
		if (mod->priority > priority || (mod->priority == priority && !all && !own)) {
			priority = mod->priority;
			best = (int)model->entries[i].name;
			own = !all;
		}
	}
	if (best >= (int)NAMES)
		return model->groups[best - (int)NAMES];
	if (best >= 0)
		return 1u << best;
	return table == 0 ? expected_of_plan(model, packet) : 0;
}

static unsigned index_of(const struct rig *rig, unsigned name)
{
	const char text[] = {'h', (char)('0' + name), '\0'};

	for (unsigned i = 0; i < CV_NEXT_HOPS_MAX; i++)
		if (strcmp(rig->set.next_hops[i].name, text) == 0)
			return i;
	return CV_NEXT_HOP_NONE;
}

// The names of a next hop, or of a spread's members.
static unsigned names_of(const struct rig *rig, uint16_t next_hop)
{
	const struct cv_spread *spread = cv_next_hop_spread_at(rig->set.table.table, next_hop);
	unsigned names = 0;

	for (unsigned i = 0; spread != NULL && i < spread->group.members_count; i++)
		names |= names_of(rig, spread->group.members[i].next_hop);
	if (next_hop < CV_NEXT_HOPS_MAX)
		names = 1u << (rig->set.next_hops[next_hop].name[1] - '0');
	return names;
}

static void compare(const struct rig *rig, const struct model *model)
{
	for (unsigned table = 0; table < 2; table++)
		for (unsigned kind = 0; kind < 3; kind++)
			for (uint32_t id = 0; id < (kind == 0 ? 1 : IDS); id++) {
				const struct cv_of_match packet = {(enum cv_scid_kind)kind, id};
				const uint32_t key = cv_of_key_in(&rig->of, table, &packet);
				uint16_t entry;

				cv_next_hop_find(rig->set.table.table, &key, &entry, 1);
				assert_int_equal(
					names_of(rig, entry), expected(model, table, packet));
			}
	assert_int_equal(rig->of.entries.count, model->count);
}

static void put_next_hop(struct rig *rig, struct model *model, unsigned name)
{
	struct cv_error error = {0};
	json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:i, s:[]}", "name", "h0", "port", "out",
		"mac", "02:00:00:00:00:0c", "ip", "192.0.2.3", "nfi", (int)(100 + name), "match");
	const char text[] = {'h', (char)('0' + name), '\0'};

	json_object_set_new(object, "name", json_string(text));
	if (name == 0) // as in the plan
		json_object_set_new(
			object, "match", json_pack("[{}, {s:i}, {s:i}]", "vlan", 2, "vni", 3));
	if (name == 1)
		json_object_set_new(object, "match", json_pack("[{s:i}]", "vlan", 4));
	if (name == 2) // shares them
		json_object_set_new(
			object, "match", json_pack("[{s:i}, {s:i}]", "vlan", 2, "vlan", 4));
	assert_true(cv_next_hop_set_put(&rig->set, object, &error) >= 0);
	json_decref(object);
	model->there[name] = true;
}

static void forget_all_of(struct model *model, unsigned name)
{
	for (unsigned i = 0; i < model->count; i++)
		if (model->entries[i].name == name)
			forget(model, i--);
}

static void remove_next_hop(struct rig *rig, struct model *model, unsigned name)
{
	const char text[] = {'h', (char)('0' + name), '\0'};
	struct cv_error error = {0};

	assert_true(cv_next_hop_set_remove(&rig->set, text, &error) >= 0);
	model->there[name] = false;
	forget_all_of(model, name);
	for (unsigned i = 0; i < GROUPS; i++) {
		if (model->groups[i] == 1u << name)
			forget_all_of(model, NAMES + i);
		model->groups[i] &= ~(1u << name);
	}
}

// Adds a group, changes or deletes it.
static void change_group(struct rig *rig, struct model *model)
{
	const unsigned group = (unsigned)rand() % GROUPS;
	const enum cv_of_group_command command = (enum cv_of_group_command)(rand() % 3);
	const bool there = model->groups[group] != 0;
	uint32_t ports = 0, why = 0;
	unsigned names = 0;

	for (unsigned i = 0; i < NAMES; i++)
		if (model->there[i] && rand() % 2 == 0) {
			names |= 1u << i;
			ports |= 1u << index_of(rig, i);
		}
	if (command == CV_OF_GROUP_ADD && there)
		why = CV_OF_GROUP_EXISTS;
	if (command == CV_OF_GROUP_MODIFY && !there)
		why = CV_OF_UNKNOWN_GROUP;
	if (command != CV_OF_GROUP_DELETE && names == 0)
		why = CV_OF_BAD_BUCKET;
	assert_int_equal(send_group_mod(rig, command, 1000 + group, ports), why);
	if (command == CV_OF_GROUP_DELETE) {
		model->groups[group] = 0;
		forget_all_of(model, NAMES + group);
	} else if (why == 0) {
		model->groups[group] = names;
	}
}

static struct flow_mod draw(const struct rig *rig, const struct model *model, unsigned *name)
{
	static const enum cv_of_command commands[] = {CV_OF_ADD, CV_OF_ADD, CV_OF_ADD, CV_OF_MODIFY,
		CV_OF_MODIFY_STRICT, CV_OF_DELETE, CV_OF_DELETE_STRICT};
	struct flow_mod mod = {
		.command = commands[rand() % 7],
		.table = (uint8_t)(rand() % 2),
		.match = {.kind = (enum cv_scid_kind)(rand() % 8 == 0 ? 0 : 1 + rand() % 2)},
		.priority = (uint16_t)(rand() % 3),
		.cookie = (uint64_t)rand() % 4,
		.out_port = CV_OF_ANY,
	};

	do
		*name = (unsigned)rand() % NAMES;
	while (!model->there[*name]);
	mod.port = index_of(rig, *name) + 1;
	for (unsigned i = 0; i < GROUPS && mod.command < CV_OF_DELETE; i++)
		if (model->groups[i] != 0 && rand() % 4 == 0) {
			*name = NAMES + i;
			mod.group = 1000 + i;
			mod.port = 0;
		}
	if (mod.match.kind != CV_SCID_NONE)
		mod.match.id = (uint32_t)rand() % IDS;
	if (mod.command != CV_OF_ADD && rand() % 3 == 0)
		mod.mask = (uint64_t)rand() % 4;
	if (mod.command >= CV_OF_DELETE && rand() % 4 == 0)
		mod.out_port = mod.port;
	if (mod.command >= CV_OF_DELETE && rand() % 4 == 0)
		mod.table = CV_OF_ALL_TABLES;
	return mod;
}

static void workers_find_what_was_set(void **state)
{
	struct rig *rig = make_rig();
	struct model model = {.there = {true}};

	srand(3);
	put_next_hop(rig, &model, 1);
	for (unsigned step = 0; step < STEPS; step++) {
		const unsigned name = 1 + (unsigned)rand() % (NAMES - 1),
			       dice = (unsigned)rand() % 40;
		unsigned to;
		struct flow_mod mod;

		if (dice == 0)
			put_next_hop(rig, &model, name);
		else if (dice == 1 && model.there[name])
			remove_next_hop(rig, &model, name);
		else if (dice == 2)
			put_next_hop(rig, &model, 0);
		else if (dice == 3 && model.there[0] && model.there[1])
			remove_next_hop(rig, &model, 0);
		run(rig);
		if (dice >= 36)
			change_group(rig, &model);
		if (!model.there[0] && !model.there[1] && !model.there[2] && !model.there[3])
			put_next_hop(rig, &model, 0);
		run(rig);
		mod = draw(rig, &model, &to);
		change_model(&model, &mod, to, rig);
		assert_int_equal(send_flow_mod(rig, &mod), 0);
		compare(rig, &model);
	}
	assert_in_range(model.count, 1, 200);
	free_rig(rig);
}

// A next hop that is gone takes its entries along, before anybody has looked; another one that gets
// its number does not get them.
static void entries_of_a_next_hop_go_with_it(void **state)
{
	const struct flow_mod mod = {.match = {CV_SCID_VLAN, 5}, .port = 2, .out_port = CV_OF_ANY};
	const uint32_t key = cv_next_hop_key(1, CV_SCID_VLAN, 5);
	struct rig *rig = make_rig();
	struct model model = {.there = {true}};
	uint16_t entry;

	put_next_hop(rig, &model, 1);
	run(rig);
	assert_int_equal(send_flow_mod(rig, &mod), 0);
	cv_next_hop_find(rig->set.table.table, &key, &entry, 1);
	assert_int_equal(entry, 1);
	remove_next_hop(rig, &model, 1);
	cv_next_hop_find(rig->set.table.table, &key, &entry, 1);
	assert_int_equal(entry, 0);
	put_next_hop(rig, &model, 2);
	assert_int_equal(index_of(rig, 2), 1);
	cv_next_hop_find(rig->set.table.table, &key, &entry, 1);
	assert_int_equal(entry, 0);
	run(rig);
	assert_int_equal(rig->of.entries.count, 0);
	free_rig(rig);
}

// So it is with the buckets of a group: those of the others stay, and a group of none is none.
static void buckets_of_a_next_hop_go_with_it(void **state)
{
	const struct flow_mod to_both = {.match = {CV_SCID_VLAN, 5}, .group = 7},
			      to_one = {.match = {CV_SCID_VLAN, 6}, .group = 8};
	const uint32_t keys[] = {
		cv_next_hop_key(1, CV_SCID_VLAN, 5), cv_next_hop_key(1, CV_SCID_VLAN, 6)};
	struct rig *rig = make_rig();
	struct model model = {.there = {true}};
	uint16_t entries[2];

	put_next_hop(rig, &model, 1);
	run(rig);
	assert_int_equal(send_group_mod(rig, CV_OF_GROUP_ADD, 7, 3), 0);
	assert_int_equal(send_group_mod(rig, CV_OF_GROUP_ADD, 8, 2), 0);
	assert_int_equal(send_flow_mod(rig, &to_both), 0);
	assert_int_equal(send_flow_mod(rig, &to_one), 0);
	for (unsigned i = 0; i < 3; i++) {
		cv_next_hop_find(rig->set.table.table, keys, entries, 2);
		assert_int_equal(names_of(rig, entries[0]), i == 0 ? 3 : 1);
		assert_int_equal(names_of(rig, entries[1]), i == 0 ? 2 : 1);
		if (i == 0)
			remove_next_hop(rig, &model, 1);
		if (i == 1) // by the number of the one that is gone
			put_next_hop(rig, &model, 3);
	}
	run(rig);
	cv_next_hop_find(rig->set.table.table, keys, entries, 2);
	assert_int_equal(names_of(rig, entries[0]), 1);
	assert_int_equal(rig->of.entries.count, 1);
	assert_int_equal(cv_of_group_find(&rig->of.entries, 8), -1);
	free_rig(rig);
}

static void entries_are_bounded(void **state)
{
	struct flow_mod mod = {.match = {CV_SCID_VNI, 0}, .port = 1, .out_port = CV_OF_ANY};
	struct rig *rig = make_rig();

	for (mod.match.id = 0; mod.match.id < 200; mod.match.id++)
		assert_int_equal(send_flow_mod(rig, &mod), 0);
	assert_int_equal(send_flow_mod(rig, &mod), CV_OF_TABLE_FULL);
	mod.match.id = 7; // is there already
	assert_int_equal(send_flow_mod(rig, &mod), 0);
	mod = (struct flow_mod){.command = CV_OF_DELETE, .table = 0xff, .out_port = CV_OF_ANY};
	assert_int_equal(send_flow_mod(rig, &mod), 0);
	assert_int_equal(rig->of.entries.count, 0);
	mod = (struct flow_mod){.match = {CV_SCID_VLAN, 1}, .port = 1};
	for (mod.priority = 0; mod.priority < CV_OF_PRIORITIES_MAX; mod.priority++)
		assert_int_equal(send_flow_mod(rig, &mod), 0);
	assert_int_equal(send_flow_mod(rig, &mod), CV_OF_TABLE_FULL);
	free_rig(rig);
}

// Groups that are refused change nothing; what is asked about those that are there is whole.
static void groups_are_refused_and_told(void **state)
{
	static const struct {
		const char *description;
		uint8_t at, byte; // of the message
		uint32_t why;
	} rows[] = {
		{"a command that there is not", 9, 3, CV_OF_GROUP_COMMAND},
		{"all, not select", 10, 0, CV_OF_GROUP_TYPE},
		{"a reserved id", 12, 0xff, CV_OF_INVALID_GROUP},
		{"a bucket of no bytes", 17, 0, CV_OF_BAD_BUCKET},
		{"a bucket of more bytes than there are", 17, 40, CV_OF_BAD_BUCKET},
		{"a weight of 0", 19, 0, CV_OF_BAD_WEIGHT},
		{"a port that is watched", 23, 1, CV_OF_NO_WATCHING},
		{"an action of no bytes", 35, 0, CV_OF_ACTION_LEN},
		{"another action", 33, 22, CV_OF_ACTION_LEN},
		{"a port that is no next hop", 39, 99, CV_OF_ACTION_OUT_PORT},
		{"as it is", 0, CV_OF_VERSION, 0},
		{"a group that is there", 0, CV_OF_VERSION, CV_OF_GROUP_EXISTS},
	};
	static const uint8_t message[] = {CV_OF_VERSION, CV_OF_GROUP_MOD, 0, 48, 0, 0, 0, 1, 0, 0,
		CV_OF_SELECT, 0, 0, 0, 1, 0, 0, 32, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
	struct rig *rig = make_rig();

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		uint8_t bytes[sizeof(message)];

		print_message("  %s\n", rows[i].description);
		memcpy(bytes, message, sizeof(message));
		bytes[rows[i].at] = rows[i].byte;
		if (rows[i].why == CV_OF_INVALID_GROUP)
			memset(bytes + 12, 0xff, 4);
		say(rig, bytes, sizeof(bytes));
		assert_int_equal(read_answers(rig), rows[i].why);
	}
	for (uint32_t id = 1; id < CV_OF_GROUPS_MAX; id++)
		assert_int_equal(send_group_mod(rig, CV_OF_GROUP_ADD, id, 1), 0);
	assert_int_equal(send_group_mod(rig, CV_OF_GROUP_ADD, 9999, 1), CV_OF_OUT_OF_GROUPS);
	for (uint8_t type = CV_OF_GROUP_STATS; type <= CV_OF_GROUP_FEATURES; type++) {
		const uint8_t request[] = {CV_OF_VERSION, CV_OF_MULTIPART_REQUEST, 0, 24, 0, 0, 0,
			2, 0, type, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0};
		struct cv_of_session *session = rig->session;
		size_t groups = 0;

		say(rig, request, sizeof(request));
		for (; session->out_from < session->out_to;
			session->out_from += cv_of_get16(session->out + session->out_from + 2)) {
			const uint8_t *at = session->out + session->out_from;

			assert_int_equal(at[1], CV_OF_MULTIPART_REPLY);
			assert_int_equal(at[9], type);
			for (size_t i = 16; i < cv_of_get16(at + 2) && type < CV_OF_GROUP_FEATURES;
				i += cv_of_get16(at + i))
				groups++;
		}
		assert_int_equal(groups, type < CV_OF_GROUP_FEATURES ? CV_OF_GROUPS_MAX : 0);
	}
	assert_int_equal(send_group_mod(rig, CV_OF_GROUP_DELETE, CV_OF_ALL_GROUPS, 0), 0);
	assert_int_equal(cv_of_group_find(&rig->of.entries, 1), -1);
	free_rig(rig);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_find_what_was_set),
		cmocka_unit_test(entries_of_a_next_hop_go_with_it),
		cmocka_unit_test(buckets_of_a_next_hop_go_with_it),
		cmocka_unit_test(entries_are_bounded),
		cmocka_unit_test(groups_are_refused_and_told),
	};
	int rc;

	test_eal_begin(argv[0]);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_end();
	return rc;
}
