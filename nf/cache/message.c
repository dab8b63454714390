// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/cache/message.h"

#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/compiler.h"

#define CLASS_IN 1
#define SOA 6
#define SIG 24
#define OPT 41
#define TSIG 250
#define META_FIRST 128 // types that are no data: RFC 6895 section 3.1
#define META_LAST 255
#define RECORD_LEN 10 // of a record behind its name: type, class, TTL, length
#define PLAIN_MAX 512 // bytes of a message without EDNS
#define EDNS_DO 0x8000
#define POINTERS_MAX 32 // that one name goes by

static CV_INLINE uint16_t load16(const uint8_t *at)
{
	rte_be16_t value;

	memcpy(&value, at, sizeof(value));
	return rte_be_to_cpu_16(value);
}

static CV_INLINE uint32_t load32(const uint8_t *at)
{
	rte_be32_t value;

	memcpy(&value, at, sizeof(value));
	return rte_be_to_cpu_32(value);
}

// Where a name ends that is whole; 0: it is not, or does not fit.
static CV_INLINE unsigned whole_name(const uint8_t *message, unsigned len, unsigned at)
{
	const unsigned begin = at;

	while (at < len && message[at] != 0) {
		if (message[at] > 63)
			return 0;
		at += message[at] + 1u;
		if (at - begin > CV_DNS_NAME_MAX - 1)
			return 0;
	}
	return at < len ? at + 1 : 0;
}

// Where a name ends that may go on elsewhere, always before where it was; 0: it is malformed.
static unsigned skip_name(const uint8_t *message, unsigned len, unsigned at)
{
	unsigned end = 0, least = at, bytes = 1, pointers = 0;

	while (at < len && message[at] != 0) {
		if (message[at] <= 63) {
			bytes += message[at] + 1u;
			at += message[at] + 1u;
			if (bytes > CV_DNS_NAME_MAX)
				return 0;
			continue;
		}
		if (message[at] < 0xc0 || at + 1 >= len || pointers++ == POINTERS_MAX)
			return 0;
		if (end == 0)
			end = at + 2;
		at = load16(message + at) & 0x3fff;
		if (at >= least || at < CV_DNS_HEADER_LEN)
			return 0;
		least = at;
	}
	if (at >= len)
		return 0;
	return end != 0 ? end : at + 1;
}

// The only question, of class IN. Returns where it ends, or 0.
static CV_INLINE unsigned read_question(
	const uint8_t *message, unsigned len, struct cv_dns_question *question)
{
	unsigned end;

	if (CV_UNLIKELY(len < CV_DNS_HEADER_LEN + 5 || load16(message + 4) != 1))
		return 0;
	end = whole_name(message, len, CV_DNS_HEADER_LEN);
	if (CV_UNLIKELY(end == 0 || end + 4 > len || load16(message + end + 2) != CLASS_IN))
		return 0;
	question->name = message + CV_DNS_HEADER_LEN;
	question->name_len = (uint8_t)(end - CV_DNS_HEADER_LEN);
	question->type = load16(message + end);
	memcpy(&question->id, message, sizeof(question->id));
	return end + 4;
}

static CV_INLINE bool is_data(uint16_t type)
{
	return type != 0 && type != OPT && (type < META_FIRST || type > META_LAST);
}

bool cv_dns_read_query(const uint8_t *message, uint16_t len, struct cv_dns_question *question)
{
	const unsigned end = read_question(message, len, question);
	const uint8_t *opt = message + end;
	uint16_t flags;

	if (CV_UNLIKELY(end == 0 || !is_data(question->type) || load32(message + 6) != 0))
		return false;
	flags = load16(message + 2);
	if (CV_UNLIKELY((flags & ~(CV_DNS_RD | CV_DNS_AD | CV_DNS_CD)) != 0))
		return false;
	question->query_flags = (flags & CV_DNS_RD ? CV_DNS_WITH_RD : 0) |
				(flags & CV_DNS_AD ? CV_DNS_WITH_AD : 0) |
				(flags & CV_DNS_CD ? CV_DNS_WITH_CD : 0);
	question->limit = PLAIN_MAX;
	if (load16(message + 10) == 0)
		return end == len;
	// The root's name, OPT, bytes, no more of the RCODE, version 0, DO, no options.
	if (CV_UNLIKELY(load16(message + 10) != 1 || end + 1 + RECORD_LEN != len || opt[0] != 0 ||
			load16(opt + 1) != OPT || (load32(opt + 5) & ~EDNS_DO) != 0 ||
			load16(opt + 9) != 0))
		return false;
	question->query_flags |= CV_DNS_WITH_EDNS | (load32(opt + 5) != 0 ? CV_DNS_WITH_DO : 0);
	if (load16(opt + 3) > PLAIN_MAX)
		question->limit = load16(opt + 3);
	return true;
}

bool cv_dns_read_question(const uint8_t *message, uint16_t len, struct cv_dns_question *question)
{
	return read_question(message, len, question) != 0 && is_data(question->type) &&
	       (load16(message + 2) & (CV_DNS_QR | CV_DNS_OPCODE)) == CV_DNS_QR;
}

// Of the records of an answer.
struct reading {
	const uint8_t *message;
	unsigned len, at;
	uint16_t type; // of the question
	bool has_type; // a record of the type, in the first section
	bool soa; // in the second
	bool opt;
	uint32_t minimum; // of the SOA
	struct cv_dns_answer *answer;
};

// The last of an SOA's fields behind two names. False: it is malformed.
static bool read_minimum(struct reading *reading, unsigned at, unsigned end)
{
	at = skip_name(reading->message, end, at);
	if (at != 0)
		at = skip_name(reading->message, end, at);
	if (at == 0 || end - at != 20)
		return false;
	reading->minimum = load32(reading->message + end - 4);
	return true;
}

static enum cv_dns_refused read_opt(
	struct reading *reading, unsigned name_len, const uint8_t *record, unsigned section)
{
	if (reading->opt || section != 2 || name_len != 1)
		return CV_DNS_MALFORMED;
	reading->opt = true;
	if (record[4] != 0) // the RCODE's upper bits
		return CV_DNS_BAD_RCODE;
	if (record[5] != 0)
		return CV_DNS_MALFORMED;
	return load16(record + 8) != 0 ? CV_DNS_OPTION : CV_DNS_REFUSED;
}

static enum cv_dns_refused read_record(struct reading *reading, unsigned section)
{
	const unsigned begin = reading->at;
	const unsigned at = skip_name(reading->message, reading->len, begin);
	const uint8_t *record = reading->message + at;
	uint32_t ttl;
	uint16_t type;

	if (at == 0 || reading->len - at < RECORD_LEN ||
		reading->len - at - RECORD_LEN < load16(record + 8))
		return CV_DNS_MALFORMED;
	reading->at = at + RECORD_LEN + load16(record + 8);
	type = load16(record);
	if (type == OPT)
		return read_opt(reading, at - begin, record, section);
	if (type == TSIG || (type == SIG && section == 2))
		return CV_DNS_OPTION;
	if (!is_data(type) || load16(record + 2) != CLASS_IN)
		return CV_DNS_MALFORMED;
	ttl = load32(record + 4);
	if (ttl > INT32_MAX) // RFC 2181 section 8
		return CV_DNS_NO_TTL;
	if (section == 0 && type == reading->type)
		reading->has_type = true;
	if (section == 1 && type == SOA && !reading->soa) {
		if (!read_minimum(reading, at + RECORD_LEN, reading->at))
			return CV_DNS_MALFORMED;
		reading->soa = true;
		reading->answer->soa_at = (uint16_t)(at + 4);
		reading->answer->soa_ttl = ttl;
	}
	reading->answer->ttl_at[reading->answer->ttls++] = (uint16_t)(at + 4);
	if (ttl < reading->answer->ttl)
		reading->answer->ttl = ttl;
	return CV_DNS_REFUSED;
}

// RFC 2308 section 5: that there is nothing holds as long as the SOA and its minimum say, and both are
// told by the SOA's TTL.
static enum cv_dns_refused bound_negative(const struct reading *reading)
{
	struct cv_dns_answer *answer = reading->answer;

	if (!reading->soa)
		return CV_DNS_NO_SOA;
	if (reading->minimum >= answer->soa_ttl) {
		answer->soa_at = 0;
		return CV_DNS_REFUSED;
	}
	answer->soa_ttl = reading->minimum;
	if (reading->minimum < answer->ttl)
		answer->ttl = reading->minimum;
	return CV_DNS_REFUSED;
}

static enum cv_dns_refused read_records(struct reading *reading)
{
	enum cv_dns_refused refused;

	for (unsigned section = 0; section < 3; section++)
		for (unsigned left = load16(reading->message + 6 + 2 * section); left > 0; left--) {
			refused = read_record(reading, section);
			if (refused != CV_DNS_REFUSED)
				return refused;
		}
	return reading->at == reading->len ? CV_DNS_REFUSED : CV_DNS_MALFORMED;
}

enum cv_dns_refused cv_dns_read_answer(const uint8_t *message, uint16_t len,
	const struct cv_dns_question *question, uint8_t query_flags, struct cv_dns_answer *answer)
{
	const uint16_t flags = load16(message + 2);
	struct reading reading = {
		.message = message,
		.len = len,
		.at = CV_DNS_HEADER_LEN + question->name_len + 4u,
		.type = question->type,
		.answer = answer,
	};
	enum cv_dns_refused refused;

	if (flags & CV_DNS_TC)
		return CV_DNS_TRUNCATED;
	if ((flags & CV_DNS_RCODE) != 0 && (flags & CV_DNS_RCODE) != 3)
		return CV_DNS_BAD_RCODE;
	if (len > CV_DNS_ANSWER_MAX)
		return CV_DNS_TOO_LONG;
	answer->ttl = INT32_MAX;
	answer->soa_at = answer->ttls = 0;
	refused = read_records(&reading);
	if (refused != CV_DNS_REFUSED)
		return refused;
	if (reading.opt && !(query_flags & CV_DNS_WITH_EDNS))
		return CV_DNS_MALFORMED;
	if ((flags & CV_DNS_RCODE) != 0 || !reading.has_type) {
		refused = bound_negative(&reading);
		if (refused != CV_DNS_REFUSED)
			return refused;
	} else {
		answer->soa_at = 0;
	}
	return answer->ttl == 0 ? CV_DNS_NO_TTL : CV_DNS_REFUSED;
}
