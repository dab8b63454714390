// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/flow_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/flow_files.h"

#define PREFIX "convoy-flows-"
#define NAME_BYTES (sizeof(PREFIX) + 16) // with its 0
#define FIRST_FD 3 // SD_LISTEN_FDS_START
#define KEPT_MAX 1024 // descriptors that a service manager gives
#define LIST_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

// Service managers do not keep the order of descriptors: a file is known by its inode.
struct file {
	uint32_t kind, zero; // enum cv_flow_file_kind
	uint64_t id; // cv_handover_zone_id(), cv_handover_function_id()
	uint64_t layout; // of a function's
	uint64_t device, inode;
};

// The whole of a file that nobody can change.
struct list {
	char magic[8];
	uint32_t version; // grows when it means something else
	uint32_t count;
	struct file files[CV_FLOW_FILES_MAX];
};

static const char magic[8] = "cvflows";

#define LIST_VERSION 1

static struct {
	const struct cv_notify *notify; // NULL: nobody has anything
	char name[NAME_BYTES]; // of what the service manager has of this process; "": nothing
	uint64_t changes; // of the node, when it was told
	struct {
		int fd;
		char name[NAME_BYTES];
	} before[KEPT_MAX]; // of processes before
	unsigned before_count;
	struct cv_flow_restored restored;
	uint64_t begun_ns; // with restoring; 0: nothing is restored
	double restored_ms;
} store;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_name(const char *name)
{
	return strlen(name) == NAME_BYTES - 1 && strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0 &&
	       strspn(name + sizeof(PREFIX) - 1, "0123456789abcdef") == 16;
}

static void note(const char *what)
{
	fprintf(stderr, "convoyd: note: --keep-flows: %s\n", what);
}

// A number of the environment, 0 to max; -1: there is none.
static long number_of(const char *variable, long max)
{
	const char *text = getenv(variable);
	char *end;
	long value;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return -1;
	value = strtol(text, &end, 10);
	return *end == '\0' && value <= max ? value : -1;
}

void cv_flow_store_open(void)
{
	const long count = number_of("LISTEN_FDS", KEPT_MAX);
	const char *names = getenv("LISTEN_FDNAMES");

	if (number_of("LISTEN_PID", INT32_MAX) != getpid() || names == NULL)
		return;
	for (int i = 0; i < count; i++) {
		const size_t length = strcspn(names, ":");

		if (length == NAME_BYTES - 1 && fcntl(FIRST_FD + i, F_SETFD, FD_CLOEXEC) == 0) {
			char *name = store.before[store.before_count].name;

			memcpy(name, names, length);
			name[length] = '\0';
			store.before[store.before_count].fd = FIRST_FD + i;
			store.before_count += is_name(name);
		}
		names += length + (names[length] == ':');
	}
}

// The name of what was stored last, which is whole; NULL: there is nothing.
static const char *newest(void)
{
	const char *name = NULL;

	for (unsigned i = 0; i < store.before_count; i++)
		if (name == NULL || strcmp(store.before[i].name, name) > 0)
			name = store.before[i].name;
	return name;
}

// Reads the list of a name. False: there is none.
static bool read_list(const char *name, struct list *list)
{
	for (unsigned i = 0; i < store.before_count; i++) {
		const int fd = store.before[i].fd;
		const size_t head = offsetof(struct list, files);

		if (strcmp(store.before[i].name, name) != 0 || fcntl(fd, F_GET_SEALS) != LIST_SEALS)
			continue;
		memset(list, 0, sizeof(*list));
		if (pread(fd, list, sizeof(*list), 0) >= (ssize_t)head &&
			memcmp(list->magic, magic, sizeof(magic)) == 0 &&
			list->version == LIST_VERSION && list->count <= CV_FLOW_FILES_MAX)
			return true;
	}
	return false;
}

// The descriptor of a file on a list of a name, or -1.
static int find_fd(const char *name, const struct file *file)
{
	struct stat is;

	for (unsigned i = 0; i < store.before_count; i++)
		if (strcmp(store.before[i].name, name) == 0 &&
			fstat(store.before[i].fd, &is) == 0 && is.st_dev == file->device &&
			is.st_ino == file->inode)
			return store.before[i].fd;
	return -1;
}

// The files of a list, as far as they came.
static void find_files(const char *name, const struct list *list, struct cv_flow_files *files)
{
	files->count = list->count;
	for (uint32_t i = 0; i < list->count; i++)
		files->files[i] = (struct cv_flow_file){
			.kind = list->files[i].kind,
			.id = list->files[i].id,
			.layout = list->files[i].layout,
			.fd = find_fd(name, &list->files[i]),
		};
}

void cv_flow_store_restore(struct cv_node *node)
{
	const char *name = newest();
	struct cv_flow_files files;
	struct list list;

	if (name == NULL)
		return;
	if (!read_list(name, &list)) {
		note("what the service manager kept is of another version: flows begin anew");
		return;
	}
	store.begun_ns = now_ns(CLOCK_MONOTONIC);
	find_files(name, &list, &files);
	cv_flow_files_restore(node, &files, CV_FLOW_KEPT, &store.restored);
}

bool cv_flow_store_restored(struct cv_node *node)
{
	if (store.begun_ns == 0)
		return true;
	if (!cv_flow_files_restored(node, &store.restored))
		return false;
	store.restored_ms = (double)(now_ns(CLOCK_MONOTONIC) - store.begun_ns) / 1e6;
	store.begun_ns = 0;
	return true;
}

// Files, and what the list says of them.
struct storing {
	struct cv_flow_files files;
	struct list list;
	int fds[CV_FLOW_FILES_MAX + 1];
};

static void collect(const struct cv_node *node, struct storing *storing, bool reports)
{
	struct list *list = &storing->list;

	*storing = (struct storing){.list = {.version = LIST_VERSION}};
	memcpy(list->magic, magic, sizeof(magic));
	cv_flow_files_collect(node, reports, &storing->files);
	for (unsigned i = 0; i < storing->files.count; i++) {
		const struct cv_flow_file *file = &storing->files.files[i];
		struct stat is;

		if (fstat(file->fd, &is) != 0) {
			storing->files.all = false;
			continue;
		}
		storing->fds[list->count] = file->fd;
		list->files[list->count++] = (struct file){.kind = file->kind,
			.id = file->id,
			.layout = file->layout,
			.device = is.st_dev,
			.inode = is.st_ino};
	}
}

// The list as a file, or -1.
static int file_of(const struct list *list)
{
	const ssize_t bytes = (ssize_t)offsetof(struct list, files[list->count]);
	const int fd = memfd_create("convoy-flow-list", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && write(fd, list, (size_t)bytes) == bytes &&
		fcntl(fd, F_ADD_SEALS, LIST_SEALS) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void forget(const char *name)
{
	char text[64];

	if (name[0] == '\0')
		return;
	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	cv_notify_tell(store.notify, text);
}

// What processes before had is given back: each name once, for the socket's queue is short.
static void forget_before(void)
{
	for (unsigned i = 0; i < store.before_count; i++) {
		unsigned first = 0;

		while (strcmp(store.before[first].name, store.before[i].name) != 0)
			first++;
		if (first == i)
			forget(store.before[i].name);
		close(store.before[i].fd);
	}
	store.before_count = 0;
}

// Tells the service manager of all files of the node, by a new name.
static bool send_set(struct storing *storing)
{
	char text[64];
	bool sent;
	int fd;

	if (storing->list.count == 0)
		return true;
	fd = file_of(&storing->list);
	if (fd < 0)
		return false;
	storing->fds[storing->list.count] = fd;
	snprintf(store.name, sizeof(store.name), PREFIX "%016" PRIx64, now_ns(CLOCK_BOOTTIME));
	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", store.name);
	sent = cv_notify_tell_fds(store.notify, text, storing->fds, storing->list.count + 1);
	close(fd);
	return sent;
}

static void begin(const struct cv_node *node, bool reports)
{
	struct storing storing;

	collect(node, &storing, reports);
	store.name[0] = '\0';
	store.changes = node->changes;
	if (!send_set(&storing) || !storing.files.all)
		note("the service manager does not have all flows");
}

void cv_flow_store_begin(const struct cv_node *node, const struct cv_notify *notify)
{
	store.notify = notify;
	forget(store.name); // of the process that handed over: the same files
	begin(node, true);
	forget_before();
}

void cv_flow_store_due(const struct cv_node *node)
{
	if (store.notify == NULL || node == NULL || node->changes == store.changes)
		return;
	forget(store.name); // one file has one name
	begin(node, false);
}

void cv_flow_store_end(void)
{
	if (store.notify != NULL)
		forget(store.name);
	store.notify = NULL;
}

bool cv_flow_store_has_some(void)
{
	return newest() != NULL;
}

json_t *cv_flow_store_describe(void)
{
	return store.notify == NULL
		       ? NULL
		       : json_pack("{s:I, s:I, s:f}", "restored", (json_int_t)store.restored.flows,
				 "lost", (json_int_t)store.restored.lost, "ms", store.restored_ms);
}

void cv_flow_store_give(json_t *json)
{
	if (store.notify != NULL && store.name[0] != '\0')
		json_object_set_new(json, "flow_store", json_string(store.name));
}

void cv_flow_store_adopt(const json_t *json)
{
	const char *name = json_string_value(json_object_get(json, "flow_store"));

	if (name != NULL && is_name(name))
		memcpy(store.name, name, NAME_BYTES);
}
