// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// An active node's flows, copied to its standby. A thread reads the files of memory that they are in, as
// another process could, and sends what is otherwise than it was sent before. No worker waits for it, is
// asked by it, or knows of it.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/running.h"
#include "daemon/standby.h"
#include "daemon/standby/connection.h"
#include "dpdk/compat.h"
#include "flow/memory.h"
#include "flow/replica.h"
#include "port/log_limit.h"

#define MS UINT64_C(1000000)
#define PASS_NS (100 * MS) // from the beginning of a pass to that of the next
#define WORK_NS (MS / 2) // of a pass, then the thread rests
#define REST_MS 1
#define ALIVE_NS (100 * MS) // of silence
#define RETRY_MS 200
#define READ_BYTES ((size_t)256 << 10) // of a function's file, in one step
#define BLOCK_BYTES 512u // that are sent where one differs
#define PASSES_AHEAD 32u // that were not acknowledged

// A file that is copied.
struct copied {
	enum cv_flow_file_kind kind;
	uint64_t id, layout;
	int fd;
	size_t bytes;
	uint8_t *sent; // what the standby has
	bool taken; // by the standby
	struct cv_flow_memory live; // of a zone
	struct cv_flow_replica replica;
	size_t at; // of a function: what was looked at
};

static struct {
	const struct cv_standby_config *config; // NULL: there is no standby
	struct cv_standby_connection connection;
	struct copied copied[CV_FLOW_FILES_MAX];
	unsigned count, file; // of these, the one that is being looked at
	uint64_t changes; // of the node, when they were taken
	uint64_t begun_ns[2 * PASSES_AHEAD]; // of passes
	uint64_t said_ns; // when something was sent last
	bool reported; // which flows cannot be copied
	int wake;
	bool runs, ends;
	rte_thread_t thread;
	struct cv_log_limit log;
	uint8_t read[READ_BYTES];
	// Told to other threads.
	bool connected;
	uint64_t connections, passes, acked, flows, messages, bytes, pass_ns, acked_begun_ns;
	unsigned files_taken;
	pthread_mutex_t lock; // of why
	char why[200]; // the last connection ended
} giver = {.wake = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void publish(uint64_t *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static uint64_t counted(const uint64_t *from)
{
	return __atomic_load_n(from, __ATOMIC_RELAXED);
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	cv_log_limited(&giver.log, "standby", giver.config->to.text, format, args);
	va_end(args);
}

static bool ends(void)
{
	// Pairs with cv_standby_give_end().
	return __atomic_load_n(&giver.ends, __ATOMIC_ACQUIRE);
}

static void give_files_back(void)
{
	for (unsigned i = 0; i < giver.count; i++) {
		struct copied *copied = &giver.copied[i];

		cv_flow_memory_free(&copied->live);
		if (copied->sent != NULL)
			munmap(copied->sent, copied->bytes);
		close(copied->fd);
	}
	giver.count = 0;
}

// Under the node's lock: descriptors of its files, and what they are.
static void take_files(const struct cv_node *node)
{
	struct cv_flow_files files;

	cv_flow_files_collect(node, !giver.reported, &files);
	giver.reported = true;
	giver.changes = node->changes;
	for (unsigned i = 0; i < files.count; i++) {
		const struct cv_flow_file *file = &files.files[i];
		struct copied *copied = &giver.copied[giver.count];

		*copied = (struct copied){
			.kind = file->kind,
			.id = file->id,
			.layout = file->layout,
			.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0),
		};
		if (copied->fd < 0)
			continue;
		if (file->kind == CV_FLOW_FILE_ZONE) {
			cv_flow_zone_replica(node->zones[file->index].zone, &copied->replica);
			copied->layout = copied->replica.layout;
		}
		giver.count++;
	}
}

// Maps a file, and memory for what was sent of it: zeros.
static bool map_file(struct copied *copied)
{
	struct cv_error error = {""};
	struct stat is;
	void *sent;

	if (fstat(copied->fd, &is) != 0 || is.st_size == 0)
		return false;
	copied->bytes = (size_t)is.st_size;
	sent = mmap(NULL, copied->bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sent == MAP_FAILED)
		return false;
	copied->sent = sent;
	return copied->kind == CV_FLOW_FILE_FUNCTION ||
	       cv_flow_memory_look(&copied->live, copied->bytes, copied->fd, &error) == 0;
}

// False: there is no node, or no memory.
static bool open_files(void)
{
	const struct cv_node *node = cv_running_take();

	if (node == NULL)
		return false;
	take_files(node);
	cv_running_give();
	for (unsigned i = 0; i < giver.count; i++)
		if (!map_file(&giver.copied[i])) {
			snprintf(giver.connection.why, sizeof(giver.connection.why),
				"the node has no memory to copy its flows");
			return false;
		}
	return true;
}

// The node's flows may be in other files than when these were taken.
static bool has_changed(void)
{
	const struct cv_node *node = cv_running_take();
	bool changed;

	if (node == NULL)
		return true;
	changed = node->changes != giver.changes;
	cv_running_give();
	return changed;
}

static bool say_message(
	enum cv_standby_type type, uint16_t file, uint64_t at, const void *body, size_t bytes)
{
	const struct cv_standby_header header = {
		.type = (uint8_t)type, .file = file, .bytes = (uint32_t)bytes, .at = at};

	publish(&giver.messages, giver.messages + 1);
	publish(&giver.bytes, giver.bytes + sizeof(header) + bytes);
	giver.said_ns = now_ns();
	return cv_standby_say(&giver.connection, &header, body);
}

static bool write_bytes(void *to, size_t at, const void *bytes, size_t count)
{
	return say_message(CV_STANDBY_WRITE, (uint16_t)giver.file, at, bytes, count);
}

static bool greet(void)
{
	static struct cv_standby_hello hello;
	uint8_t answer[CV_STANDBY_ANSWER_MAX];
	struct cv_standby_header header;

	hello = (struct cv_standby_hello){
		.magic = CV_STANDBY_MAGIC, .protocol = CV_STANDBY_PROTOCOL, .count = giver.count};
	snprintf(hello.version, sizeof(hello.version), "%s", CV_VERSION);
	for (unsigned i = 0; i < giver.count; i++)
		hello.files[i] = (struct cv_standby_hello_file){
			.kind = giver.copied[i].kind,
			.id = giver.copied[i].id,
			.layout = giver.copied[i].layout,
			.bytes = giver.copied[i].bytes,
		};
	if (!say_message(CV_STANDBY_HELLO, 0, 0, &hello, CV_STANDBY_HELLO_BYTES(giver.count)) ||
		!cv_standby_flush(&giver.connection))
		return false;
	switch (cv_standby_hear(&giver.connection, &header, answer, CV_STANDBY_PATIENCE_MS)) {
	case CV_STANDBY_BROKEN:
		return false;
	case CV_STANDBY_NOTHING:
		snprintf(giver.connection.why, sizeof(giver.connection.why), "it does not answer");
		return false;
	default:
		break;
	}
	if (header.type != CV_STANDBY_WELCOME || header.bytes != giver.count) {
		snprintf(giver.connection.why, sizeof(giver.connection.why), "%.*s",
			header.type == CV_STANDBY_REFUSED
				? (int)RTE_MIN(header.bytes, CV_STANDBY_TEXT_MAX)
				: 22,
			header.type == CV_STANDBY_REFUSED ? (const char *)answer
							  : "its answer is nonsense");
		return false;
	}
	giver.files_taken = 0;
	for (unsigned i = 0; i < giver.count; i++) {
		giver.copied[i].taken = answer[i] == 1;
		giver.files_taken += giver.copied[i].taken;
	}
	return true;
}

// Sends what is there, hears answers for so long. False: the connection has ended, or is to.
static bool breathe(int ms)
{
	uint8_t answer[CV_STANDBY_ANSWER_MAX];
	struct cv_standby_header header;
	enum cv_standby_heard heard;

	if (now_ns() - giver.said_ns > ALIVE_NS && !say_message(CV_STANDBY_ALIVE, 0, 0, NULL, 0))
		return false;
	if (!cv_standby_flush(&giver.connection))
		return false;
	while ((heard = cv_standby_hear(&giver.connection, &header, answer, ms)) ==
		CV_STANDBY_HEARD) {
		if (header.type == CV_STANDBY_ACK && header.at > giver.acked &&
			header.at <= giver.passes) {
			publish(&giver.acked, header.at);
			publish(&giver.acked_begun_ns,
				giver.begun_ns[header.at % (2 * PASSES_AHEAD)]);
		}
		ms = 0;
	}
	if (heard == CV_STANDBY_BROKEN || ends())
		return false;
	if (giver.acked == giver.passes ||
		now_ns() - giver.begun_ns[(giver.acked + 1) % (2 * PASSES_AHEAD)] <
			CV_STANDBY_PATIENCE_MS * MS)
		return true;
	snprintf(giver.connection.why, sizeof(giver.connection.why), "it takes nothing");
	return false;
}

// Some of a function's file. Written in whole, it may be cut off or grow meanwhile.
static enum cv_flow_replica_step function_step(struct copied *copied)
{
	const ssize_t got = pread(copied->fd, giver.read,
		RTE_MIN(READ_BYTES, copied->bytes - copied->at), (off_t)copied->at);

	for (size_t i = 0; (ssize_t)i < got; i += BLOCK_BYTES) {
		const size_t bytes = RTE_MIN((size_t)got - i, (size_t)BLOCK_BYTES);
		uint8_t *sent = copied->sent + copied->at + i;

		if (memcmp(sent, giver.read + i, bytes) == 0)
			continue;
		memcpy(sent, giver.read + i, bytes);
		if (!write_bytes(NULL, copied->at + i, giver.read + i, bytes))
			return CV_FLOW_REPLICA_FAILED;
	}
	copied->at += got > 0 ? (size_t)got : 0;
	if (got > 0 && copied->at < copied->bytes)
		return CV_FLOW_REPLICA_GOES_ON;
	copied->at = 0;
	return CV_FLOW_REPLICA_DONE;
}

static bool copy_file(struct copied *copied)
{
	enum cv_flow_replica_step step;
	uint64_t rested_ns = now_ns();

	do {
		step = copied->kind == CV_FLOW_FILE_FUNCTION
			       ? function_step(copied)
			       : cv_flow_replica_step(&copied->replica, copied->live.start,
					 copied->sent, write_bytes, NULL);
		if (step == CV_FLOW_REPLICA_FAILED)
			return false;
		if (step == CV_FLOW_REPLICA_GOES_ON && now_ns() - rested_ns < WORK_NS)
			continue;
		if (!breathe(REST_MS))
			return false;
		rested_ns = now_ns();
	} while (step == CV_FLOW_REPLICA_GOES_ON);
	return true;
}

// All flows, once. What functions know of a flow goes before it.
static bool make_pass(void)
{
	const uint64_t begun_ns = now_ns();
	uint64_t flows = 0;

	for (giver.file = 0; giver.file < giver.count; giver.file++) {
		struct copied *copied = &giver.copied[giver.file];

		if (copied->taken && !copy_file(copied))
			return false;
		if (copied->taken)
			flows += copied->replica.flows;
	}
	giver.begun_ns[(giver.passes + 1) % (2 * PASSES_AHEAD)] = begun_ns;
	publish(&giver.passes, giver.passes + 1);
	publish(&giver.flows, flows);
	publish(&giver.pass_ns, now_ns() - begun_ns);
	return say_message(CV_STANDBY_PASS, 0, giver.passes, &flows, sizeof(flows));
}

static bool await_next_pass(void)
{
	const uint64_t begun_ns = giver.begun_ns[giver.passes % (2 * PASSES_AHEAD)];

	do {
		const uint64_t since_ns = now_ns() - begun_ns;

		if (!breathe(since_ns < PASS_NS ? (int)((PASS_NS - since_ns) / MS) + 1 : REST_MS))
			return false;
	} while (now_ns() - begun_ns < PASS_NS || giver.passes - giver.acked >= PASSES_AHEAD);
	return true;
}

// From one connection to its end. connection.why says what ended it; "": nothing did.
static void copy(void)
{
	giver.connection.why[0] = '\0';
	publish(&giver.passes, 0);
	publish(&giver.acked, 0);
	if (!open_files() || !cv_standby_connect(&giver.connection) || !greet())
		return;
	say("copies flows: %u of %u files", giver.files_taken, giver.count);
	publish(&giver.acked_begun_ns, now_ns());
	publish(&giver.connections, giver.connections + 1);
	__atomic_store_n(&giver.connected, true, __ATOMIC_RELAXED);
	while (make_pass() && await_next_pass() && !has_changed())
		;
	__atomic_store_n(&giver.connected, false, __ATOMIC_RELAXED);
}

// What ended a connection is said where it is another reason than before.
static void complain(void)
{
	char before[sizeof(giver.why)];

	memcpy(before, giver.why, sizeof(before));
	pthread_mutex_lock(&giver.lock);
	memcpy(giver.why, giver.connection.why, sizeof(giver.why));
	pthread_mutex_unlock(&giver.lock);
	if (giver.why[0] != '\0' && strcmp(giver.why, before) != 0 && !ends())
		say("copies no flows: %s; it tries again", giver.why);
}

static uint32_t give(void *unused)
{
	struct pollfd wake = {.fd = giver.wake, .events = POLLIN};

	while (!ends()) {
		copy();
		cv_standby_disconnect(&giver.connection);
		give_files_back();
		complain();
		poll(&wake, 1, RETRY_MS);
	}
	return 0;
}

int cv_standby_give_open(const struct cv_standby_config *config, struct cv_peer_tls_context *tls,
	struct cv_error *error)
{
	giver.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (giver.wake < 0) {
		cv_error_set(error, "standby: %s", strerror(errno));
		return -EIO;
	}
	giver.config = config;
	return cv_standby_connection_open(&giver.connection, &config->to, tls, giver.wake, error);
}

int cv_standby_give_begin(struct cv_error *error)
{
	int rc;

	if (giver.config == NULL)
		return 0;
	rc = rte_thread_create_control(&giver.thread, "convoy-standby", give, NULL);
	if (rc != 0)
		cv_error_set(error, "no thread for the standby: %s", strerror(-rc));
	giver.runs = rc == 0;
	return rc;
}

void cv_standby_give_end(void)
{
	const uint64_t one = 1;

	if (giver.config == NULL)
		return;
	__atomic_store_n(&giver.ends, true, __ATOMIC_RELEASE);
	if (giver.runs && write(giver.wake, &one, sizeof(one)) == sizeof(one))
		rte_thread_join(giver.thread, NULL);
	giver.runs = false;
	cv_standby_connection_close(&giver.connection);
	close(giver.wake);
	giver.config = NULL;
}

json_t *cv_standby_give_describe(void)
{
	const bool connected = __atomic_load_n(&giver.connected, __ATOMIC_RELAXED);
	const uint64_t acked = counted(&giver.acked);
	char why[sizeof(giver.why)];
	json_t *json;

	if (giver.config == NULL)
		return NULL;
	pthread_mutex_lock(&giver.lock);
	memcpy(why, giver.why, sizeof(why));
	pthread_mutex_unlock(&giver.lock);
	json = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:o}", "to",
		giver.config->to.text, "state",
		!connected   ? "disconnected"
		: acked == 0 ? "copies"
			     : "follows",
		"flows", (json_int_t)counted(&giver.flows), "passes",
		(json_int_t)counted(&giver.passes), "connections",
		(json_int_t)counted(&giver.connections), "messages",
		(json_int_t)counted(&giver.messages), "bytes", (json_int_t)counted(&giver.bytes),
		"pass_ms", (double)counted(&giver.pass_ns) / 1e6, "lag_ms",
		connected ? json_real((double)(now_ns() - counted(&giver.acked_begun_ns)) / 1e6)
			  : json_null());
	if (why[0] != '\0' && !connected)
		json_object_set_new(json, "why", json_stringn(why, strlen(why)));
	return json;
}
