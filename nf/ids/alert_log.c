// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/ids/alert_log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "nf/log_file.h"
#include "nf/log_writer.h"

#define LINE_MAX_BYTES 8192 // a longer one is lost

struct cv_ids_alert_log {
	int fd; // -1: not open
	bool is_socket;
	char *path;
	char *name;
	struct cv_log_writer *writer;
};

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

static bool send_line(const struct cv_ids_alert_log *log, char *line, size_t len)
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

static bool write_alert(void *owner, unsigned worker, const void *record)
{
	char line[LINE_MAX_BYTES + 1];
	const size_t len = line_text(owner, worker, record, line);

	return len < LINE_MAX_BYTES && send_line(owner, line, len);
}

static const struct cv_log_writer_ops ops = {
	.record_bytes = sizeof(struct cv_ids_alert), .write = write_alert};

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
	log->name = strdup(name);
	log->path = strdup(path);
	log->writer = cv_log_writer_create(&ops, log, workers);
	if (log->name == NULL || log->path == NULL || log->writer == NULL) {
		cv_ids_alert_log_destroy(log);
		return NULL;
	}
	return log;
}

int cv_ids_alert_log_start(struct cv_ids_alert_log *log)
{
	log->fd = log->is_socket ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
				 : cv_log_file_open(log->path);
	if (log->fd < 0)
		return log->is_socket ? -errno : log->fd;
	return cv_log_writer_start(log->writer);
}

void cv_ids_alert_log_flush(struct cv_ids_alert_log *log)
{
	if (log != NULL)
		cv_log_writer_wait(log->writer);
}

void cv_ids_alert_log_destroy(struct cv_ids_alert_log *log)
{
	if (log == NULL)
		return;
	cv_log_writer_destroy(log->writer);
	if (log->fd >= 0)
		close(log->fd);
	free(log->path);
	free(log->name);
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
	return cv_log_writer_add(log->writer, worker, alert);
}

uint64_t cv_ids_alert_log_written(const struct cv_ids_alert_log *log)
{
	return cv_log_writer_written(log->writer);
}

uint64_t cv_ids_alert_log_lost(const struct cv_ids_alert_log *log)
{
	return cv_log_writer_lost(log->writer);
}
