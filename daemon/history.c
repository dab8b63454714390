// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/running.h"
#include "daemon/state.h"
#include "dpdk/compat.h"

struct entry {
	unsigned number;
	time_t at;
	unsigned back_to; // a number; 0: it is another plan
	json_t *plan, *differences;
	json_t *digests; // by path: of files that somebody else may change
	struct cv_files files; // with paths of its own
};

static struct {
	struct entry entries[CV_HISTORY_MAX]; // the newest last
	unsigned count;
	uint64_t due_ns; // when to go back, CLOCK_MONOTONIC; 0: never. Atomic
} history;

// The way back that nobody confirmed in time takes a thread of its own: what a plan has may take long to
// make, and the main thread has signs of life to give.
static struct {
	rte_thread_t thread;
	bool begun; // and not joined yet
	bool goes_on; // atomic
} way_back;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void free_entry(struct entry *entry)
{
	for (unsigned i = 0; i < entry->files.count; i++)
		free((void *)(uintptr_t)entry->files.file[i].path);
	cv_files_free(&entry->files);
	json_decref(entry->plan);
	json_decref(entry->differences);
	json_decref(entry->digests);
}

// The plan as it is now: the node's own goes on changing, with its next hops.
static json_t *copy_of(const json_t *plan)
{
	json_t *copy = json_copy((json_t *)(uintptr_t)plan);
	const json_t *next_hops = json_object_get(plan, "next_hops");

	if (next_hops != NULL)
		json_object_set_new(copy, "next_hops", json_deep_copy(next_hops));
	return copy;
}

static void add_file(struct cv_files *files, const char *path, int fd)
{
	char *copy = strdup(path);

	if (fd >= 0 && copy != NULL && files->count < CV_FILES_MAX) {
		files->file[files->count++] = (struct cv_file){copy, fd};
		return;
	}
	free(copy);
	if (fd >= 0)
		close(fd);
}

static void copy_files(struct cv_files *to, const struct cv_files *from)
{
	for (unsigned i = 0; i < from->count; i++)
		add_file(to, from->file[i].path, fcntl(from->file[i].fd, F_DUPFD_CLOEXEC, 0));
}

// A new entry, which takes the differences; the oldest one is forgotten.
static struct entry *add(const struct cv_node *node, json_t *differences, unsigned back_to)
{
	const unsigned number =
		history.count == 0 ? 1 : history.entries[history.count - 1].number + 1;
	struct entry *entry;

	if (history.count == CV_HISTORY_MAX) {
		free_entry(&history.entries[0]);
		memmove(&history.entries[0], &history.entries[1],
			(CV_HISTORY_MAX - 1) * sizeof(history.entries[0]));
		history.count--;
	}
	entry = &history.entries[history.count++];
	*entry = (struct entry){.number = number,
		.at = time(NULL),
		.back_to = back_to,
		.plan = copy_of(node->plan->json),
		.differences = differences,
		.digests = json_object()};
	return entry;
}

void cv_history_begin(const struct cv_node *node)
{
	struct entry *entry = add(node, json_array(), 0);

	for (unsigned i = 0; i < node->plan->functions_count; i++) {
		const struct cv_function_config *config = &node->configs[i];
		const char *key;
		json_t *digest;

		json_object_foreach (config->files, key, digest) {
			const char *path = json_string_value(json_object_get(config->config, key));

			add_file(&entry->files, path, open(path, O_RDONLY | O_CLOEXEC));
			json_object_set(entry->digests, path, digest);
		}
	}
}

static void join_way_back(void)
{
	if (way_back.begun)
		rte_thread_join(way_back.thread, NULL);
	way_back.begun = false;
}

void cv_history_end(void)
{
	join_way_back();
	while (history.count > 0)
		free_entry(&history.entries[--history.count]);
}

// What runs has other next hops than it began with, maybe: they are what is gone back to.
static void note_next_hops(const struct cv_node *node)
{
	struct entry *newest = &history.entries[history.count - 1];

	json_decref(newest->plan);
	newest->plan = copy_of(node->plan->json);
}

static json_t *result_of(const json_t *differences, unsigned number, unsigned confirm_s)
{
	return json_pack("{s:i, s:O, s:i}", "number", (int)number, "differences", differences,
		"confirm_s", (int)confirm_s);
}

static void set_due(unsigned confirm_s)
{
	const uint64_t due = confirm_s == 0 ? 0 : now_ns() + confirm_s * UINT64_C(1000000000);

	// Pairs with the load in cv_history_due().
	__atomic_store_n(&history.due_ns, due, __ATOMIC_RELEASE);
}

// back_to: whose plan that is; NULL: a new one.
static json_t *make(struct cv_node *node, const struct cv_history_change *change,
	const struct entry *back_to, struct cv_error *error)
{
	struct cv_apply *apply = cv_apply_begin(node, &change->request, error);
	const struct cv_files *files = back_to != NULL ? &back_to->files : change->request.files;
	const unsigned number = back_to != NULL ? back_to->number : 0;
	struct cv_files kept = {.count = 0};
	json_t *differences, *digests, *result;
	struct entry *entry;

	if (apply == NULL)
		return NULL;
	differences = json_incref((json_t *)(uintptr_t)cv_apply_differences(apply));
	if (change->starts_with && !change->dry_run) {
		cv_state_starts_with(change->request.plan);
		if (json_array_size(differences) == 0)
			cv_state_settled(node);
	}
	if (change->dry_run || json_array_size(differences) == 0) {
		result = result_of(differences, 0, 0);
		json_decref(differences);
		cv_apply_end(apply);
		return result;
	}
	copy_files(&kept, files); // adding an entry may end the one that they are of
	note_next_hops(node);
	cv_running_take();
	cv_apply_commit(apply);
	cv_running_give();
	cv_apply_end(apply);
	digests = back_to != NULL ? json_incref(back_to->digests) : NULL;
	entry = add(node, differences, number);
	entry->files = kept;
	if (digests != NULL) {
		json_decref(entry->digests);
		entry->digests = digests;
	}
	set_due(change->confirm_s);
	if (change->confirm_s == 0)
		cv_state_settled(node);
	return result_of(differences, entry->number, change->confirm_s);
}

json_t *cv_history_apply(
	struct cv_node *node, const struct cv_history_change *change, struct cv_error *error)
{
	if (!change->dry_run && history.due_ns != 0) {
		cv_error_set(error,
			"change %u waits to be confirmed: `convoy confirm`, or "
			"`convoy rollback`",
			history.entries[history.count - 1].number);
		return NULL;
	}
	return make(node, change, NULL, error);
}

int cv_history_confirm(const struct cv_node *node, struct cv_error *error)
{
	if (history.due_ns != 0) {
		set_due(0);
		cv_state_settled(node);
		return 0;
	}
	cv_error_set(error, "no change waits to be confirmed");
	return -EINVAL;
}

static const struct entry *find(unsigned number)
{
	if (number == 0)
		return history.count < 2 ? NULL : &history.entries[history.count - 2];
	for (unsigned i = 0; i < history.count; i++)
		if (history.entries[i].number == number)
			return &history.entries[i];
	return NULL;
}

// Whether the files are as they were. 0, or -EINVAL with error set.
static int check_files(
	const struct entry *entry, const struct cv_files *files, struct cv_error *error)
{
	for (unsigned i = 0; i < files->count; i++) {
		const json_t *before = json_object_get(entry->digests, files->file[i].path);
		json_t *now = before == NULL ? NULL : cv_function_config_digest(files->file[i].fd);
		const bool same = before == NULL || json_equal(before, now) == 1;

		json_decref(now);
		if (same)
			continue;
		cv_error_set(error, "%s: has changed since the node started; apply a descriptor",
			files->file[i].path);
		return -EINVAL;
	}
	return 0;
}

json_t *cv_history_rollback(
	struct cv_node *node, unsigned to, bool forget_flows, struct cv_error *error)
{
	const struct entry *entry = find(to);
	struct cv_history_change change = {.request = {.forget_flows = forget_flows}};
	struct cv_files files = {.count = 0};
	json_t *result = NULL;

	if (entry == NULL) {
		if (to == 0)
			cv_error_set(error, "nothing ran before: `convoy history` lists what did");
		else
			cv_error_set(error,
				"%u: no plan of that number is remembered; `convoy history` lists "
				"them",
				to);
		return NULL;
	}
	if (history.due_ns != 0 && entry == &history.entries[history.count - 1]) {
		cv_error_set(error,
			"%u: runs, and waits to be confirmed: `convoy confirm`, or `convoy "
			"rollback` to the plan before",
			to);
		return NULL;
	}
	if (cv_files_copy(&files, &entry->files, error) == 0 &&
		check_files(entry, &files, error) == 0) {
		json_t *plan = copy_of(entry->plan); // the node will change its next hops

		change.request.plan = plan;
		change.request.files = &files;
		result = make(node, &change, entry, error);
		json_decref(plan);
	}
	cv_files_free(&files);
	if (result != NULL && history.due_ns != 0) { // it was that plan again already
		set_due(0);
		cv_state_settled(node);
	}
	return result;
}

bool cv_history_waits(void)
{
	return history.due_ns != 0;
}

json_t *cv_history_list(void)
{
	json_t *list = json_array();
	const uint64_t now = now_ns();

	for (unsigned i = 0; i < history.count; i++) {
		const struct entry *entry = &history.entries[i];
		const bool waits = i == history.count - 1 && history.due_ns > now;

		json_array_append_new(list,
			json_pack("{s:i, s:I, s:O, s:i, s:i}", "number", (int)entry->number, "at",
				(json_int_t)entry->at, "differences", entry->differences, "back_to",
				(int)entry->back_to, "confirm_s",
				waits ? (int)((history.due_ns - now) / 1000000000u + 1) : 0));
	}
	return list;
}

static bool is_due(void)
{
	// Pairs with the store in set_due().
	const uint64_t due = __atomic_load_n(&history.due_ns, __ATOMIC_ACQUIRE);

	return due != 0 && now_ns() >= due;
}

static void go_back(void)
{
	struct cv_error error = {0};
	json_t *result = NULL;
	struct cv_node *node;

	if (!cv_running_begin_change())
		return;
	node = cv_running_take();
	if (node != NULL)
		cv_running_give();
	if (node != NULL && is_due()) {
		result = cv_history_rollback(node, 0, true, &error);
		set_due(0);
		fprintf(stderr, "convoyd: not confirmed in time: %s%s\n",
			result != NULL ? "went back" : "cannot go back: ", error.text);
	}
	json_decref(result);
	cv_running_end_change();
}

static uint32_t go_back_alone(void *argument)
{
	go_back();
	// Pairs with the load in cv_history_due().
	__atomic_store_n(&way_back.goes_on, false, __ATOMIC_RELEASE);
	return 0;
}

void cv_history_due(void)
{
	// Pairs with the store in go_back_alone().
	if (!is_due() || __atomic_load_n(&way_back.goes_on, __ATOMIC_ACQUIRE))
		return;
	join_way_back();
	way_back.goes_on = true;
	way_back.begun = rte_thread_create_control(
				 &way_back.thread, "convoy-rollback", go_back_alone, NULL) == 0;
	if (!way_back.begun) {
		way_back.goes_on = false;
		go_back();
	}
}
