// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/standby/session.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

_Static_assert(sizeof(((struct cv_standby_session *)NULL)->in) >=
		       sizeof(struct cv_standby_header) + CV_STANDBY_BODY_MAX,
	"the longest message fits");

void cv_standby_session_begin(struct cv_standby_session *session, const struct cv_standby_own *own,
	unsigned own_count, const char *version)
{
	session->own = own;
	session->own_count = own_count;
	session->version = version;
	session->set = NULL;
	session->failed = false;
	session->in_used = session->out_used = 0;
	session->acked = session->writes = session->bytes = 0;
	session->note.text[0] = '\0';
}

static void free_file(struct cv_standby_file *file)
{
	if (file->memory == NULL)
		return;
	munmap(file->memory, file->bytes);
	close(file->fd);
	file->memory = NULL;
}

void cv_standby_set_free(struct cv_standby_set *set)
{
	if (set == NULL)
		return;
	for (unsigned i = 0; i < set->count; i++)
		free_file(&set->files[i]);
	free(set);
}

// An answer; there is room for some. Not inline, or GCC 12 takes the header for one that lives on.
__attribute__((noinline)) static void answer(struct cv_standby_session *session,
	enum cv_standby_type type, uint64_t at, const void *body, size_t bytes)
{
	const struct cv_standby_header header = {
		.type = (uint8_t)type, .bytes = (uint32_t)bytes, .at = at};

	if (session->out_used + sizeof(header) + bytes > sizeof(session->out))
		return; // it does not read
	memcpy(session->out + session->out_used, &header, sizeof(header));
	if (bytes > 0)
		memcpy(session->out + session->out_used + sizeof(header), body, bytes);
	session->out_used += sizeof(header) + bytes;
}

// Says no: to the other end, and here.
__attribute__((format(printf, 2, 3))) static void refuse(
	struct cv_standby_session *session, const char *format, ...)
{
	char text[CV_STANDBY_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	session->failed = true;
	session->note.text[0] = '\0';
	cv_error_set(&session->note, "refused: %s", text);
	answer(session, CV_STANDBY_REFUSED, 0, text, strlen(text));
}

// A file of memory of zeros. False: there is none.
static bool make_file(struct cv_standby_file *file)
{
	const int fd = memfd_create("convoy-standby", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory = MAP_FAILED;

	if (fd < 0)
		return false;
	if (ftruncate(fd, (off_t)file->bytes) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		memory = mmap(NULL, file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		close(fd);
		return false;
	}
	file->fd = fd;
	file->memory = memory;
	return true;
}

static bool has(const struct cv_standby_set *set, uint32_t kind, uint64_t id)
{
	for (unsigned i = 0; i < set->count; i++)
		if (set->files[i].kind == kind && set->files[i].id == id)
			return true;
	return false;
}

// Adds a file that the other end has; one that is nothing here is not taken.
static void add_file(struct cv_standby_session *session, const struct cv_standby_hello_file *from)
{
	struct cv_standby_set *set = session->set;
	struct cv_standby_file file = {.kind = from->kind, .id = from->id, .layout = from->layout};

	for (unsigned i = 0; i < session->own_count && !has(set, from->kind, from->id); i++) {
		const struct cv_standby_own *own = &session->own[i];

		if (own->kind != from->kind || own->id != from->id)
			continue;
		file.bytes = from->bytes;
		if (own->layout != from->layout || from->bytes == 0 || from->bytes > own->bytes_max)
			cv_error_set(&session->note,
				"function \"%s\": its flows do not come: the active node has other "
				"parameters, limits, number of workers or another version",
				own->name);
		else if (!make_file(&file))
			cv_error_set(&session->note,
				"function \"%s\": its flows do not come: no memory", own->name);
	}
	set->files[set->count++] = file;
}

static void welcome(struct cv_standby_session *session)
{
	const struct cv_standby_set *set = session->set;
	uint8_t taken[CV_STANDBY_FILES_MAX];
	unsigned some = 0;

	for (unsigned i = 0; i < set->count; i++) {
		taken[i] = set->files[i].memory != NULL;
		some += taken[i];
	}
	if (some == 0 && (set->count > 0 || session->own_count > 0)) {
		cv_standby_set_free(session->set);
		session->set = NULL;
		refuse(session, "no flows of the active node are such as the standby has: other "
				"functions, parameters, limits or number of workers");
		return;
	}
	for (unsigned i = 0; i < session->own_count; i++)
		if (!has(set, session->own[i].kind, session->own[i].id))
			cv_error_set(&session->note,
				"function \"%s\": its flows do not come: the active node has none "
				"such, or spreads them over another number of workers",
				session->own[i].name);
	answer(session, CV_STANDBY_WELCOME, 0, taken, set->count);
}

static void greet(struct cv_standby_session *session, const uint8_t *body, size_t bytes)
{
	struct cv_standby_hello hello;

	memset(&hello, 0, sizeof(hello));
	memcpy(&hello, body, bytes);
	hello.version[sizeof(hello.version) - 1] = '\0';
	for (char *c = hello.version; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	if (bytes < offsetof(struct cv_standby_hello, count) ||
		memcmp(hello.magic, CV_STANDBY_MAGIC, sizeof(hello.magic)) != 0)
		refuse(session, "no active node of Convoy");
	else if (hello.protocol != CV_STANDBY_PROTOCOL)
		refuse(session,
			"the active node speaks protocol %u, the standby %u (Convoy %s): run the "
			"same version on both",
			hello.protocol, CV_STANDBY_PROTOCOL, session->version);
	else if (hello.count > CV_STANDBY_FILES_MAX || bytes != CV_STANDBY_HELLO_BYTES(hello.count))
		refuse(session, "a greeting of Convoy %s whose lengths do not add up",
			hello.version);
	else if ((session->set = calloc(1, sizeof(*session->set))) == NULL)
		refuse(session, "no memory");
	if (session->set == NULL)
		return;
	for (unsigned i = 0; i < hello.count; i++)
		add_file(session, &hello.files[i]);
	welcome(session);
}

// Bytes of a file. False: it has no such place, or is not taken.
static bool write_bytes(struct cv_standby_session *session, const struct cv_standby_header *header,
	const uint8_t *body)
{
	struct cv_standby_file *file;

	if (header->file >= session->set->count || header->bytes > CV_STANDBY_WRITE_MAX)
		return false;
	file = &session->set->files[header->file];
	if (file->memory == NULL || header->at > file->bytes ||
		header->bytes > file->bytes - header->at)
		return false;
	memcpy(file->memory + header->at, body, header->bytes);
	session->writes++;
	session->bytes += header->bytes;
	return true;
}

static bool end_pass(struct cv_standby_session *session, const struct cv_standby_header *header,
	const uint8_t *body)
{
	if (header->at != session->set->passes + 1 || header->bytes != sizeof(uint64_t))
		return false;
	memcpy(&session->set->flows, body, sizeof(uint64_t));
	session->set->passes++;
	return true;
}

// A whole message.
static void take(struct cv_standby_session *session, const struct cv_standby_header *header,
	const uint8_t *body)
{
	bool makes_sense = false;

	if (session->set == NULL && header->type == CV_STANDBY_HELLO) {
		greet(session, body, header->bytes);
		return;
	}
	if (session->set != NULL && header->type == CV_STANDBY_WRITE)
		makes_sense = write_bytes(session, header, body);
	else if (session->set != NULL && header->type == CV_STANDBY_PASS)
		makes_sense = end_pass(session, header, body);
	else if (session->set != NULL && header->type == CV_STANDBY_ALIVE)
		makes_sense = header->bytes == 0;
	if (!makes_sense)
		refuse(session, "a message of type %u makes no sense here", header->type);
}

// Takes the message at *from, which moves behind it. False: it has not come whole, or was refused.
static bool take_next(struct cv_standby_session *session, size_t *from)
{
	const size_t there = session->in_used - *from;
	struct cv_standby_header header;

	if (there < sizeof(header))
		return false;
	memcpy(&header, session->in + *from, sizeof(header));
	if (header.bytes > CV_STANDBY_BODY_MAX || header.zero != 0) {
		refuse(session, "a message of %u bytes", header.bytes);
		return false;
	}
	if (there < sizeof(header) + header.bytes)
		return false;
	take(session, &header, session->in + *from + sizeof(header));
	*from += sizeof(header) + header.bytes;
	return !session->failed;
}

static void acknowledge(struct cv_standby_session *session)
{
	if (session->failed || session->set == NULL || session->set->passes == session->acked ||
		session->out_used > 0)
		return;
	session->acked = session->set->passes;
	answer(session, CV_STANDBY_ACK, session->acked, NULL, 0);
}

void cv_standby_session_run(struct cv_standby_session *session)
{
	size_t from = 0;

	while (!session->failed && take_next(session, &from))
		;
	memmove(session->in, session->in + from, session->in_used - from);
	session->in_used -= from;
	acknowledge(session);
}
