// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// DNS messages, as far as a cache looks at them: RFC 1035, EDNS (RFC 6891), what RFC 2181 and RFC 2308 say
// about TTLs. Every loop ends with the message, at the latest.
#ifndef CV_DNS_MESSAGE_H
#define CV_DNS_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#define CV_DNS_HEADER_LEN 12
#define CV_DNS_NAME_MAX 255 // bytes, the root's among them
// Bytes of the longest answer that is learned: with the headers of IPv6 and UDP as long as a packet that
// every IPv6 link takes whole.
#define CV_DNS_ANSWER_MAX 1232
// Records that fit into it: 11 bytes each, behind the shortest question.
#define CV_DNS_RECORDS_MAX ((CV_DNS_ANSWER_MAX - CV_DNS_HEADER_LEN - 5) / 11)

// Bits of the second 16-bit word, in host order.
#define CV_DNS_QR 0x8000
#define CV_DNS_OPCODE 0x7800
#define CV_DNS_TC 0x0200
#define CV_DNS_RD 0x0100
#define CV_DNS_AD 0x0020
#define CV_DNS_CD 0x0010
#define CV_DNS_RCODE 0x000f

// What of a question, beside its name and type, answers depend on.
enum cv_dns_query_flags {
	CV_DNS_WITH_RD = 1, // recursion
	CV_DNS_WITH_AD = 2, // whether the answer is authentic
	CV_DNS_WITH_CD = 4, // not to check that
	CV_DNS_WITH_EDNS = 8,
	CV_DNS_WITH_DO = 16, // the records of DNSSEC
};

struct cv_dns_question {
	const uint8_t *name; // in the message, whole
	uint8_t name_len;
	uint8_t query_flags; // enum cv_dns_query_flags; of queries
	uint16_t type;
	uint16_t id; // as it is in the message
	uint16_t limit; // bytes that whoever asks takes; of queries
};

// Why an answer is not learned.
enum cv_dns_refused {
	CV_DNS_UNASKED, // nobody asked, or it was answered before, or too long ago
	CV_DNS_BAD_CHECKSUM,
	CV_DNS_MALFORMED,
	CV_DNS_TRUNCATED,
	CV_DNS_BAD_RCODE, // neither NOERROR nor NXDOMAIN
	CV_DNS_OPTION, // has EDNS options, or a signature of the whole message
	CV_DNS_NO_TTL, // a record may not be kept
	CV_DNS_NO_SOA, // says that there is nothing, and not for how long
	CV_DNS_TOO_LONG,
	CV_DNS_REFUSED,
};

// What of an answer changes with time.
struct cv_dns_answer {
	uint32_t ttl; // seconds that all of it holds: 1 to 2^31 - 1
	uint16_t soa_at; // offset of the TTL that is less than it is in the message; 0: none
	uint32_t soa_ttl;
	uint16_t ttls;
	uint16_t ttl_at[CV_DNS_RECORDS_MAX]; // offsets of TTLs
};

// Reads a query that may be answered from a cache: one question of class IN and of a type that is data, no
// record but OPT, which has no options. False: it is another.
bool cv_dns_read_query(const uint8_t *message, uint16_t len, struct cv_dns_question *question);

// Reads the question of what may be an answer to such a query. False: it is none, or malformed.
bool cv_dns_read_question(const uint8_t *message, uint16_t len, struct cv_dns_question *question);

// Reads an answer, whose question was read: whether it may be kept, and what changes in it. query_flags: of who
// asked. CV_DNS_REFUSED: it may; else why it may not.
enum cv_dns_refused cv_dns_read_answer(const uint8_t *message, uint16_t len,
	const struct cv_dns_question *question, uint8_t query_flags, struct cv_dns_answer *answer);

#endif
