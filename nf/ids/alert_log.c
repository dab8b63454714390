// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/ids/alert_log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>

#include "nf/log_file.h"

#define RING 4096 // alerts of a worker; a power of two
#define PERIOD_NS 20000000
#define LINE_MAX_BYTES 8192 // a longer one is lost

struct ring {
	uint32_t head; // written by the worker
	uint64_t lost;
	uint32_t tail __rte_cache_aligned; // written by the writer
	struct cv_ids_alert alert[RING];
};

struct cv_ids_alert_log {
	int fd; // -1: not open
	bool is_socket;
	char *path;
	char *name;
	unsigned workers;
	struct ring *rings;
	uint64_t written, failed; // by the writer
	pthread_t thread;
	bool started;
	bool end;
};

struct cv_ids_alert_log *cv_ids_alert_log_create(const char *file, const char *socket,
	const char *name, unsigned workers, struct cv_error *error)
{
	const char *path = file != NULL ? file : socket;
	struct cv_ids_alert_log *log;
	int why = file != NULL ? cv_log_file_check(file) : 0;

	if (file == NULL && strlen(socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		why = ENAMETOOLONG;
	if (why != 0) {
		cv_error_set(error, "%s: %s: \"%s\": cannot be written: %s", name,
			file != NULL ? "alerts_file" : "alerts_socket", path, strerror(why));
		return NULL;
	}
	log = calloc(1, sizeof(*log));
	if (log == NULL)
		return NULL;
	log->fd = -1;
	log->is_socket = file == NULL;
	log->workers = workers;
	log->name = strdup(name);
	log->path = strdup(path);
	log->rings = aligned_alloc(RTE_CACHE_LINE_SIZE, workers * sizeof(*log->rings));
	if (log->name == NULL || log->path == NULL || log->rings == NULL) {
		cv_ids_alert_log_destroy(log);
		return NULL;
	}
	memset(log->rings, 0, workers * sizeof(*log->rings));
	return log;
}

static void count(uint64_t *counter)
{
	// Pairs with the loads in cv_ids_alert_log_written() and _lost(): whole values.
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

static const char *proto_text(uint8_t proto, char text[8])
{
	switch (proto) {
	case IPPROTO_TCP:
		return "TCP";
	case IPPROTO_UDP:
		return "UDP";
	case IPPROTO_ICMP:
		return "ICMP";
	case IPPROTO_ICMPV6:
		return "IPv6-ICMP";
	default:
		snprintf(text, 8, "%03u", proto);
		return text;
	}
}

static void ports_text(const struct cv_ids_alert *alert, char text[64])
{
	if (alert->proto == IPPROTO_TCP || alert->proto == IPPROTO_UDP)
		snprintf(text, 64, ", \"src_port\": %u, \"dest_port\": %u", alert->sport,
			alert->dport);
	else if (alert->proto == IPPROTO_ICMP || alert->proto == IPPROTO_ICMPV6)
		snprintf(text, 64, ", \"icmp_type\": %u, \"icmp_code\": %u", alert->sport,
			alert->dport);
	else
		text[0] = '\0';
}

// A line without its end. Returns its length; LINE_MAX_BYTES or more: it is too long.
static size_t line_text(const struct cv_ids_alert_log *log, unsigned worker,
	const struct cv_ids_alert *alert, char line[LINE_MAX_BYTES])
{
	const int family = alert->v6 ? AF_INET6 : AF_INET;
	char date[32], src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN], ports[64], proto[8];
	const uint64_t us = cv_log_file_time(alert->now, date, sizeof(date));

	inet_ntop(family, alert->src, src, sizeof(src));
	inet_ntop(family, alert->dst, dst, sizeof(dst));
	ports_text(alert, ports);
	return (size_t)snprintf(line, LINE_MAX_BYTES,
		"{\"timestamp\": \"%s.%06u+0000\", \"event_type\": \"alert\", \"src_ip\": \"%s\", "
		"\"dest_ip\": \"%s\", \"proto\": \"%s\"%s, \"pkt_src\": \"%s\", "
		"\"alert\": {\"action\": \"%s\", %s}, "
		"\"convoy\": {\"function\": \"%s\", \"worker\": %u}}",
		date, (unsigned)(us % 1000000), src, dst, proto_text(alert->proto, proto), ports,
		alert->stream ? "stream" : "wire/pcap", alert->blocked ? "blocked" : "allowed",
		alert->rule, log->name, worker);
}

static bool write_line(const struct cv_ids_alert_log *log, char *line, size_t len)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	if (!log->is_socket) {
		line[len++] = '\n';
		return write(log->fd, line, len) == (ssize_t)len;
	}
	strcpy(to.sun_path, log->path);
	return sendto(log->fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&to,
		       sizeof(to)) == (ssize_t)len;
}

static void drain(struct cv_ids_alert_log *log)
{
	char line[LINE_MAX_BYTES + 1];

	for (unsigned i = 0; i < log->workers; i++) {
		struct ring *ring = &log->rings[i];
		// Pairs with the release store in cv_ids_alert_log_add().
		const uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

		for (uint32_t tail = ring->tail; tail != head; tail++) {
			const size_t len = line_text(log, i, &ring->alert[tail % RING], line);
			const bool done = len < LINE_MAX_BYTES && write_line(log, line, len);

			count(done ? &log->written : &log->failed);
			// Pairs with the acquire loads in cv_ids_alert_log_add() and _flush(): the
			// place may be written again, and the rule be gone.
			__atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
		}
	}
}

static void *write_on(void *argument)
{
	struct cv_ids_alert_log *log = argument;

	// Pairs with the release store in cv_ids_alert_log_destroy().
	while (!__atomic_load_n(&log->end, __ATOMIC_ACQUIRE)) {
		drain(log);
		nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
	}
	return NULL;
}

int cv_ids_alert_log_start(struct cv_ids_alert_log *log)
{
	int rc;

	log->fd = log->is_socket ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
				 : cv_log_file_open(log->path);
	if (log->fd < 0)
		return log->is_socket ? -errno : log->fd;
	rc = -pthread_create(&log->thread, NULL, write_on, log);
	log->started = rc == 0;
	return rc;
}

void cv_ids_alert_log_flush(struct cv_ids_alert_log *log)
{
	for (unsigned i = 0; log != NULL && log->started && i < log->workers; i++) {
		struct ring *ring = &log->rings[i];
		const uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

		// Pairs with the release store in drain().
		while ((int32_t)(head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) > 0)
			nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS / 8}, NULL);
	}
}

void cv_ids_alert_log_destroy(struct cv_ids_alert_log *log)
{
	if (log == NULL)
		return;
	if (log->started) {
		// Pairs with the acquire load in write_on().
		__atomic_store_n(&log->end, true, __ATOMIC_RELEASE);
		pthread_join(log->thread, NULL);
		drain(log);
	}
	if (log->fd >= 0)
		close(log->fd);
	free(log->path);
	free(log->name);
	free(log->rings);
	free(log);
}

bool cv_ids_alert_log_is_to(
	const struct cv_ids_alert_log *log, const char *file, const char *socket)
{
	const char *path = file != NULL ? file : socket;

	if (log == NULL || path == NULL)
		return log == NULL && path == NULL;
	return log->is_socket == (file == NULL) && strcmp(log->path, path) == 0;
}

bool cv_ids_alert_log_add(
	struct cv_ids_alert_log *log, unsigned worker, const struct cv_ids_alert *alert)
{
	struct ring *ring = &log->rings[worker];
	const uint32_t head = ring->head;

	// Pairs with the release store in drain().
	if (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == RING) {
		count(&ring->lost);
		return false;
	}
	ring->alert[head % RING] = *alert;
	// Pairs with the acquire load in drain().
	__atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

uint64_t cv_ids_alert_log_written(const struct cv_ids_alert_log *log)
{
	return __atomic_load_n(&log->written, __ATOMIC_RELAXED);
}

uint64_t cv_ids_alert_log_lost(const struct cv_ids_alert_log *log)
{
	uint64_t lost = __atomic_load_n(&log->failed, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < log->workers; i++)
		lost += __atomic_load_n(&log->rings[i].lost, __ATOMIC_RELAXED);
	return lost;
}
