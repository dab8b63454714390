// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/plan_next.h"

#define FILES 2
#define HEADER 128 // bytes, with blanks at its end and a line feed
#define HEADER_FORMAT "convoy.state/1 %020" PRIu64 " %016" PRIx64 " %020" PRIu64 " %016" PRIx64
#define FNV_BASIS 0xcbf29ce484222325

static const char *const names[FILES] = {"plan-a", "plan-b"};

// What stands before a plan.
struct header {
	uint64_t number, base, length, digest; // digest: of the others and of the plan
};

static struct {
	const char *folder; // NULL: none
	int fds[FILES]; // -1: cannot be used
	uint64_t numbers[FILES]; // 0: it holds nothing
	uint64_t base, written, failed;
	bool from_state, of_another;
	char error[256]; // of the last time that it failed; "": it did not
} state;

// FNV-1a: torn files and other plans, not forgeries, are what is to be seen.
static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
	return hash;
}

static uint64_t digest_of(const struct header *header, const char *text)
{
	const uint64_t facts[] = {header->number, header->base, header->length};

	return add_bytes(add_bytes(FNV_BASIS, facts, sizeof(facts)), text, header->length);
}

// Of what a descriptor says: cores and memory were chosen for the machine, which may be another now.
static uint64_t base_of(const json_t *plan)
{
	json_t *copy = json_copy((json_t *)(uintptr_t)plan);
	char *text;
	uint64_t hash;

	json_object_del(copy, "eal");
	json_object_del(copy, "workers");
	text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
	hash = text == NULL ? 0 : add_bytes(FNV_BASIS, text, strlen(text));
	free(text);
	json_decref(copy);
	return hash;
}

// Says it, unless the time before failed too.
static void failed(const char *file, const char *why)
{
	const bool failed_before = state.error[0] != '\0';

	state.failed++;
	snprintf(state.error, sizeof(state.error), "%s/%s: %s", state.folder, file, why);
	if (!failed_before)
		fprintf(stderr, "convoyd: %s; what runs is not kept for the next start\n",
			state.error);
}

static int open_file(unsigned i)
{
	const int folder = open(state.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int fd =
		folder < 0 ? -1
			   : openat(folder, names[i],
				     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	const int why = errno;
	struct stat st;

	if (folder >= 0)
		close(folder);
	if (fd < 0)
		failed(names[i], strerror(why));
	else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		failed(names[i], "is no regular file");
	else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		failed(names[i], "another node uses it");
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

void cv_state_open(const char *folder, const struct cv_plan *base)
{
	state.folder = folder;
	for (unsigned i = 0; i < FILES; i++)
		state.fds[i] = folder == NULL ? -1 : open_file(i);
	state.base = folder == NULL ? 0 : base_of(base->json);
}

void cv_state_starts_with(const json_t *plan)
{
	if (state.folder != NULL)
		state.base = base_of(plan);
}

void cv_state_close(void)
{
	for (unsigned i = 0; state.folder != NULL && i < FILES; i++)
		if (state.fds[i] >= 0)
			close(state.fds[i]);
	state.folder = NULL;
}

static bool read_all(int fd, char *to, size_t length, off_t at)
{
	while (length > 0) {
		const ssize_t n = pread(fd, to, length, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		at += n;
		length -= (size_t)n;
	}
	return true;
}

static bool write_all(int fd, const char *from, size_t length, off_t at)
{
	while (length > 0) {
		const ssize_t n = pwrite(fd, from, length, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		from += n;
		at += n;
		length -= (size_t)n;
	}
	return true;
}

static void write_header(char text[HEADER + 1], const struct header *header)
{
	char line[HEADER];

	snprintf(line, sizeof(line), HEADER_FORMAT, header->number, header->base, header->length,
		header->digest);
	snprintf(text, HEADER + 1, "%-*s\n", HEADER - 1, line);
}

// The header must be as it would be written.
static bool read_header(const char text[HEADER + 1], struct header *header)
{
	char again[HEADER + 1];
	unsigned long long number, base, length, digest;

	if (sscanf(text, "convoy.state/1 %20llu %16llx %20llu %16llx", &number, &base, &length,
		    &digest) != 4)
		return false;
	*header = (struct header){number, base, length, digest};
	write_header(again, header);
	return memcmp(text, again, HEADER) == 0;
}

// A whole file's plan, to be freed, or NULL.
static char *read_file(int fd, struct header *header)
{
	char head[HEADER + 1] = "";
	struct stat st;
	char *text = NULL;

	if (fstat(fd, &st) != 0 || st.st_size <= HEADER ||
		(uint64_t)st.st_size > CV_STATE_BYTES_MAX || !read_all(fd, head, HEADER, 0) ||
		!read_header(head, header) || header->number == 0 ||
		header->length != (uint64_t)st.st_size - HEADER)
		return NULL;
	text = malloc(header->length);
	if (text != NULL && read_all(fd, text, header->length, HEADER) &&
		digest_of(header, text) == header->digest)
		return text;
	free(text);
	return NULL;
}

static bool is_empty(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == 0;
}

// What a file holds: as a plan that may come next to base, with cores and memory as they are chosen now;
// but what only a handover leads to (other ports, other workers) as it is.
static struct cv_plan *plan_of(const struct cv_plan *base, const char *text, size_t length)
{
	struct cv_error error = {0};
	json_t *after = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	json_t *next = after == NULL ? NULL : cv_plan_next_json(base->json, after, &error);
	char *whole = json_dumps(next != NULL ? next : after, JSON_COMPACT);
	struct cv_plan *plan =
		whole == NULL ? NULL : cv_plan_parse(whole, strlen(whole), "plan", &error);

	free(whole);
	json_decref(next);
	json_decref(after);
	if (plan == NULL)
		cv_state_refused(error.text[0] != '\0' ? error.text : "no plan");
	return plan;
}

void cv_state_refused(const char *why)
{
	state.from_state = false;
	state.failed++;
	snprintf(state.error, sizeof(state.error), "%s", why);
	fprintf(stderr,
		"convoyd: %s: what ran last does not run (%s); "
		"the node starts with its descriptor\n",
		state.folder, why);
}

struct cv_plan *cv_state_plan(const struct cv_plan *base)
{
	struct header header, best = {.number = 0};
	struct cv_plan *plan = NULL;
	char *text = NULL;

	for (unsigned i = 0; state.folder != NULL && i < FILES; i++) {
		char *one = state.fds[i] < 0 ? NULL : read_file(state.fds[i], &header);

		if (one == NULL && state.fds[i] >= 0 && !is_empty(state.fds[i]))
			fprintf(stderr, "convoyd: %s/%s: is not whole, and not used\n",
				state.folder, names[i]);
		state.numbers[i] = one == NULL ? 0 : header.number;
		if (one != NULL && header.number > best.number) {
			free(text);
			text = one;
			best = header;
		} else {
			free(one);
		}
	}
	if (text != NULL && best.base != state.base) {
		state.of_another = true;
		fprintf(stderr,
			"convoyd: note: %s: the descriptor has changed since; "
			"what ran last is forgotten\n",
			state.folder);
	} else if (text != NULL) {
		plan = plan_of(base, text, best.length);
	}
	free(text);
	state.from_state = plan != NULL;
	if (plan != NULL)
		fprintf(stderr, "convoyd: note: %s: the node starts with what ran last\n",
			state.folder);
	return plan;
}

// To the file that holds the older one, which is not whole until that is done.
static int keep(unsigned i, const struct header *header, const char *text)
{
	char head[HEADER + 1];
	const int fd = state.fds[i];

	state.numbers[i] = 0;
	write_header(head, header);
	if (ftruncate(fd, 0) != 0 || !write_all(fd, text, header->length, HEADER) ||
		fdatasync(fd) != 0 || !write_all(fd, head, HEADER, 0) || fdatasync(fd) != 0)
		return errno != 0 ? -errno : -EIO;
	state.numbers[i] = header->number;
	return 0;
}

void cv_state_settled(const struct cv_node *node)
{
	const unsigned i = state.numbers[0] <= state.numbers[1] ? 0 : 1;
	const uint64_t last = state.numbers[1 - i];
	struct header header = {.number = last + 1, .base = state.base};
	char *text;
	int rc = -ENOMEM;

	if (state.folder == NULL)
		return;
	if (state.fds[0] < 0 || state.fds[1] < 0) { // said when it was opened
		state.failed++;
		return;
	}
	text = json_dumps(node->plan->json, JSON_COMPACT);
	if (text != NULL) {
		header.length = strlen(text);
		header.digest = digest_of(&header, text);
		rc = header.length + HEADER > CV_STATE_BYTES_MAX ? -EFBIG : keep(i, &header, text);
	}
	free(text);
	if (rc != 0) {
		failed(names[i], strerror(-rc));
		return;
	}
	state.written++;
	state.error[0] = '\0';
}

void cv_state_begin(const struct cv_node *node)
{
	if (state.of_another)
		cv_state_settled(node);
}

json_t *cv_state_describe(void)
{
	const uint64_t number =
		state.numbers[0] > state.numbers[1] ? state.numbers[0] : state.numbers[1];

	return json_pack("{s:s?, s:s, s:I, s:I, s:I, s:s}", "folder", state.folder, "from",
		state.from_state ? "state" : "descriptor", "number", (json_int_t)number, "written",
		(json_int_t)state.written, "failed", (json_int_t)state.failed, "error",
		state.error);
}

bool cv_state_give(json_t *json, int fds[FILES])
{
	if (state.folder == NULL || state.fds[0] < 0 || state.fds[1] < 0)
		return false;
	memcpy(fds, state.fds, sizeof(state.fds));
	json_object_set_new(json, "state",
		json_pack("{s:s, s:[I, I], s:I, s:b}", "folder", state.folder, "numbers",
			(json_int_t)state.numbers[0], (json_int_t)state.numbers[1], "base",
			(json_int_t)state.base, "from_state", state.from_state));
	return true;
}

void cv_state_adopt(const json_t *json, int fds[FILES])
{
	const char *folder;
	json_int_t numbers[FILES], base;
	int from_state;

	if (json_unpack((json_t *)(uintptr_t)json, "{s:{s:s, s:[I, I], s:I, s:b}}", "state",
		    "folder", &folder, "numbers", &numbers[0], &numbers[1], "base", &base,
		    "from_state", &from_state) != 0 ||
		(state.folder = strdup(folder)) == NULL)
		return;
	for (unsigned i = 0; i < FILES; i++) {
		state.fds[i] = fds[i];
		fds[i] = -1;
		state.numbers[i] = (uint64_t)numbers[i];
	}
	state.base = (uint64_t)base;
	state.from_state = from_state != 0;
}
