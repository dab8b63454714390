// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/flow_files.h"

#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "daemon/freeze.h"
#include "daemon/handover_counts.h"

#define STAND_MS 100

static const struct cv_flow_file *find(
	const struct cv_flow_files *files, enum cv_flow_file_kind kind, uint64_t id)
{
	for (unsigned i = 0; i < files->count; i++)
		if (files->files[i].kind == kind && files->files[i].id == id)
			return &files->files[i];
	return NULL;
}

static const struct cv_flow_kept *kept_by(const struct cv_node *node, unsigned function)
{
	const struct cv_nf_flow *flow = node->plan->functions[function].nf->flow;

	return flow == NULL ? NULL : flow->kept;
}

// Whether a function is of a zone that can be stored.
static bool is_stored(const struct cv_node *node, unsigned function)
{
	for (unsigned i = 0; i < node->zones_count; i++)
		for (unsigned j = 0; j < node->zones[i].count; j++)
			if (node->zones[i].functions[j] == function &&
				cv_flow_zone_store(node->zones[i].zone) >= 0)
				return true;
	return false;
}

static void failed(const struct cv_node *node, unsigned function, const char *why)
{
	fprintf(stderr, "convoyd: note: function \"%s\": flows begin anew: %s\n",
		node->plan->functions[function].name, why);
}

int cv_flow_files_owners(const struct cv_node *node)
{
	for (unsigned i = 0; i < node->plan->functions_count; i++) {
		const struct cv_nf *nf = node->plan->functions[i].nf;

		if (nf->keeps_owners && cv_nf_keeps(nf, node->functions[i]) != NULL)
			return (int)i;
	}
	return -1;
}

// False, and it is said: they may not.
static bool may_go_on(const struct cv_node *node, bool reports)
{
	const int owners = cv_flow_files_owners(node);

	if (owners >= 0 && reports)
		failed(node, (unsigned)owners,
			"which of its hosts has which address is not kept, and they would be "
			"other hosts'");
	return owners < 0;
}

// What a function knew of flows is looked at. False: it was not kept, or is something else.
static bool begin_function(
	const struct cv_node *node, unsigned function, const struct cv_flow_files *files)
{
	const struct cv_flow_kept *kept = kept_by(node, function);
	const struct cv_flow_file *file =
		find(files, CV_FLOW_FILE_FUNCTION, cv_handover_function_id(node, function));
	struct cv_error error = {""};

	if (file == NULL) // it is new
		return false;
	if (kept->layout(node->functions[function]) != file->layout) {
		failed(node, function,
			"what it knows of them was kept in another layout: other parameters, "
			"another number of workers, or another version");
		return false;
	}
	if (kept->restore_begin(node->functions[function], file->fd, &error) == 0)
		return true;
	failed(node, function, error.text);
	return false;
}

static bool has_begun(
	const struct cv_node *node, const struct cv_node_zone *zone, const bool *begun)
{
	for (unsigned i = 0; i < zone->count; i++)
		if (kept_by(node, zone->functions[i]) != NULL && !begun[zone->functions[i]])
			return false;
	return true;
}

// Workers share flows as they were shared: which one has a flow is as it was.
static void adopt_homes(
	struct cv_node *node, const struct cv_flow_files *files, enum cv_flow_origin origin)
{
	for (unsigned i = 0; i < node->zones_count; i++) {
		const struct cv_flow_file *file =
			find(files, CV_FLOW_FILE_ZONE, cv_handover_zone_id(node, i));
		struct cv_flow_secret secret;

		if (file == NULL ||
			!cv_flow_zone_homes_in(node->zones[i].zone, file->fd, origin, &secret))
			continue;
		cv_node_handoff_rekey(node, &secret);
		return;
	}
}

// Flows of these functions may be there that more or fewer workers shared.
static void find_other_workers(
	const struct cv_node *node, unsigned index, const struct cv_flow_files *files)
{
	char why[96];

	for (unsigned workers = 1; workers <= CV_WORKERS_MAX; workers++) {
		if (find(files, CV_FLOW_FILE_ZONE, cv_handover_zone_id_of(node, index, workers)) ==
			NULL)
			continue;
		snprintf(why, sizeof(why),
			"%u workers had them, and now another number has; start with as many",
			workers);
		failed(node, node->zones[index].functions[0], why);
	}
}

static int restore_from(struct cv_flow_zone *zone, struct cv_nf_worker *worker, int fd,
	enum cv_flow_origin origin, struct cv_flow_restored *restored, struct cv_error *error)
{
	if (origin == CV_FLOW_KEPT && cv_flow_zone_restores_later(zone, fd) != CV_FLOW_AT_ONCE)
		return cv_flow_zone_restore_later(zone, worker, fd, error);
	return cv_flow_zone_restore(zone, worker, fd, origin, restored, error);
}

static void restore_zone(struct cv_node *node, unsigned index, const struct cv_flow_files *files,
	enum cv_flow_origin origin, struct cv_flow_restored *restored)
{
	const struct cv_node_zone *zone = &node->zones[index];
	const struct cv_flow_file *file =
		find(files, CV_FLOW_FILE_ZONE, cv_handover_zone_id(node, index));
	struct cv_nf_worker worker = {.index = zone->worker, .now = rte_rdtsc()};
	struct cv_error error = {""};

	if (file == NULL)
		find_other_workers(node, index, files);
	else if (restore_from(zone->zone, &worker, file->fd, origin, restored, &error) != 0)
		failed(node, zone->functions[0], error.text);
}

// Functions that began to restore, and have not ended.
static bool *begun;

static void end_functions(struct cv_node *node)
{
	for (unsigned i = 0; i < node->plan->functions_count; i++) {
		struct cv_nf_worker worker = {.now = rte_rdtsc()};

		if (begun[i])
			kept_by(node, i)->restore_end(node->functions[i], &worker);
	}
	free(begun);
	begun = NULL;
}

static bool all_came(const struct cv_node *node, struct cv_flow_restored *restored)
{
	bool all = true;

	for (unsigned i = 0; i < node->zones_count; i++)
		all &= cv_flow_zone_is_restored(node->zones[i].zone, restored);
	return all;
}

void cv_flow_files_restore(struct cv_node *node, const struct cv_flow_files *files,
	enum cv_flow_origin origin, struct cv_flow_restored *restored)
{
	begun = may_go_on(node, false) ? calloc(node->plan->functions_count + 1, sizeof(*begun))
				       : NULL;
	if (begun == NULL)
		return;
	for (unsigned i = 0; i < node->plan->functions_count; i++)
		begun[i] = kept_by(node, i) != NULL && is_stored(node, i) &&
			   begin_function(node, i, files);
	adopt_homes(node, files, origin);
	for (unsigned i = 0; i < node->zones_count; i++)
		if (cv_flow_zone_store(node->zones[i].zone) >= 0 &&
			has_begun(node, &node->zones[i], begun))
			restore_zone(node, i, files, origin, restored);
	if (all_came(node, restored))
		end_functions(node);
}

// Functions end to restore while workers stand: they may know of flows of all of them.
static bool end_standing(struct cv_node *node)
{
	struct cv_error error;
	uint64_t at_ns;

	if (cv_node_freeze(node, STAND_MS, &at_ns, &error) != 0)
		return false;
	end_functions(node);
	cv_node_thaw(node);
	return true;
}

bool cv_flow_files_restored(struct cv_node *node, struct cv_flow_restored *restored)
{
	bool some = false;

	if (!all_came(node, restored))
		return false;
	for (unsigned i = 0; begun != NULL && i < node->plan->functions_count; i++)
		some |= begun[i];
	if (some && !end_standing(node))
		return false;
	for (unsigned i = 0; i < node->zones_count; i++)
		cv_flow_zone_accept(node->zones[i].zone);
	return true;
}

static void add(struct cv_flow_files *to, const struct cv_flow_file *file)
{
	if (to->count == CV_FLOW_FILES_MAX)
		to->all = false;
	else
		to->files[to->count++] = *file;
}

static void add_function(const struct cv_node *node, unsigned function, struct cv_flow_files *files)
{
	const struct cv_flow_kept *kept = kept_by(node, function);

	if (kept != NULL && is_stored(node, function))
		add(files, &(struct cv_flow_file){
				   .kind = CV_FLOW_FILE_FUNCTION,
				   .id = cv_handover_function_id(node, function),
				   .layout = kept->layout(node->functions[function]),
				   .fd = kept->store(node->functions[function]),
				   .index = function,
			   });
}

void cv_flow_files_collect(const struct cv_node *node, bool reports, struct cv_flow_files *files)
{
	files->count = 0;
	files->all = true;
	if (!may_go_on(node, reports))
		return;
	for (unsigned i = 0; i < node->plan->functions_count; i++)
		add_function(node, i, files);
	for (unsigned i = 0; i < node->zones_count; i++) {
		const int fd = cv_flow_zone_store(node->zones[i].zone);

		if (fd >= 0)
			add(files, &(struct cv_flow_file){
					   .kind = CV_FLOW_FILE_ZONE,
					   .id = cv_handover_zone_id(node, i),
					   .fd = fd,
					   .index = i,
				   });
		else if (reports)
			failed(node, node->zones[i].functions[0],
				"they cannot be kept for a process that comes after this one");
	}
}
