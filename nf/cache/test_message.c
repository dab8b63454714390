// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Which messages are read as queries and answers, and what is found in them. Each lies in memory of its own
// exact size.
#include <stdlib.h>

#include "nf/cache/message.h"
#include "tests/support/test_dns.h"

#define Q "q=www.example.com/1 "
#define A "/1/300/c0000201"

static uint8_t *exact(const struct dns *dns)
{
	uint8_t *bytes = malloc(dns->len + !dns->len);

	assert_non_null(bytes);
	memcpy(bytes, dns->bytes, dns->len);
	return bytes;
}

static void reads_queries(void **state)
{
	static const char labels63[] =
		"012345678901234567890123456789012345678901234567890123456789012.";
	static const struct {
		const char *name, *text;
		bool plain;
		uint8_t query_flags;
		uint16_t limit;
	} rows[] = {
		{"an address", Q, true, CV_DNS_WITH_RD, 512},
		{"not recursive", "flags=0000 " Q, true, 0, 512},
		{"AD and CD", "flags=0130 " Q, true,
			CV_DNS_WITH_RD | CV_DNS_WITH_AD | CV_DNS_WITH_CD, 512},
		{"the root", "q=./2", true, CV_DNS_WITH_RD, 512},
		{"EDNS", Q "opt=1232/0", true, CV_DNS_WITH_RD | CV_DNS_WITH_EDNS, 1232},
		{"DO", Q "opt=4096/8000", true, CV_DNS_WITH_RD | CV_DNS_WITH_EDNS | CV_DNS_WITH_DO,
			4096},
		{"EDNS of fewer bytes than any", Q "opt=100/0", true,
			CV_DNS_WITH_RD | CV_DNS_WITH_EDNS, 512},
		{.name = "EDNS version 1", .text = Q "opt=1232/10000"},
		{.name = "EDNS of an unknown flag", .text = Q "opt=1232/4000"},
		{.name = "a cookie", .text = Q "opt=1232/0/000a00080102030405060708"},
		{.name = "the client's subnet", .text = Q "opt=1232/0/0008000700011800c00002"},
		{.name = "padding", .text = Q "opt=1232/0/000c0000"},
		{.name = "two OPT", .text = Q "opt=1232/0 opt=1232/0"},
		{.name = "OPT of another name", .text = Q "ar=a/41/0/00"},
		{.name = "a signature", .text = Q "ar=key/250/0/00/255"},
		{.name = "a record beside", .text = Q "an=@c" A},
		{.name = "an answer", .text = "flags=8100 " Q},
		{.name = "a notification", .text = "flags=2000 " Q},
		{.name = "authoritative", .text = "flags=0500 " Q},
		{.name = "truncated", .text = "flags=0300 " Q},
		{.name = "recursion available", .text = "flags=0180 " Q},
		{.name = "an unused bit", .text = "flags=0140 " Q},
		{.name = "an RCODE", .text = "flags=0103 " Q},
		{.name = "class CH", .text = "q=version.bind/16/3"},
		{.name = "all classes", .text = "q=a/1/255"},
		{.name = "no question", .text = ""},
		{.name = "two questions", .text = Q Q},
		{.name = "any type", .text = "q=a/255"},
		{.name = "a transfer", .text = "q=a/252"},
		{.name = "type OPT", .text = "q=./41"},
		{.name = "type 0", .text = "q=a/0"},
		{.name = "a pointer in the question", .text = "q=a@c/1"},
		{.name = "a pointer to itself", .text = "q=@c/1"},
		{.name = "bytes behind", .text = Q "hex=00"},
		{.name = "bytes behind OPT", .text = Q "opt=1232/0 hex=00"},
		{.name = "a label of a type that nobody uses", .text = "hex=4100 hex=00010001"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const struct dns dns = dns_make(rows[i].text);
		uint8_t *bytes = exact(&dns);
		struct cv_dns_question question;

		if (cv_dns_read_query(bytes, dns.len, &question) != rows[i].plain)
			fail_msg("%s: is %sread", rows[i].name, rows[i].plain ? "not " : "");
		if (rows[i].plain && (question.query_flags != rows[i].query_flags ||
					     question.limit != rows[i].limit))
			fail_msg("%s: asks %u, limit %u", rows[i].name, question.query_flags,
				question.limit);
		for (uint16_t len = 0; rows[i].plain && len < dns.len; len++) {
			uint8_t *cut = malloc(len + !len);

			memcpy(cut, bytes, len);
			if (cv_dns_read_query(cut, len, &question))
				fail_msg("%s: is read of %u bytes", rows[i].name, len);
			free(cut);
		}
		free(bytes);
	}
	for (unsigned last = 60; last < 63;
		last++) { // 255 bytes are the most: 61 in the last label
		char text[300];
		struct cv_dns_question question;
		struct dns dns;

		snprintf(text, sizeof(text), "q=%s%s%s%.*s/1", labels63, labels63, labels63,
			(int)last, labels63);
		dns = dns_make(text);
		assert_int_equal(cv_dns_read_query(dns.bytes, dns.len, &question), last <= 61);
	}
}

#define SOA(ttl, minimum) \
	"/6/" ttl "/"     \
	"c010"            \
	"c010"            \
	"00000001000000020000000300000004" minimum

static void reads_answers(void **state)
{
	static const struct {
		const char *name, *text;
		uint8_t query_flags;
		enum cv_dns_refused refused;
		uint32_t ttl;
		unsigned ttls;
		uint32_t soa_ttl; // that is less than in the message; 0: it is not
	} rows[] = {
		{"an address", "flags=8180 " Q "an=@c" A, 0, CV_DNS_REFUSED, 300, 1, 0},
		{"the least of three", "flags=8180 " Q "an=@c" A " ns=@10/2/20/c00c ar=@c/28/30/00",
			0, CV_DNS_REFUSED, 20, 3, 0},
		{"a chain of names", "flags=8180 " Q "an=@c/5/60/0161c010 an=a@10/1/61/01020304", 0,
			CV_DNS_REFUSED, 60, 2, 0},
		{"OPT has no TTL", "flags=8180 " Q "an=@c" A " opt=1232/8000",
			CV_DNS_WITH_EDNS | CV_DNS_WITH_DO, CV_DNS_REFUSED, 300, 1, 0},
		{.name = "OPT that nobody asked for",
			.text = "flags=8180 " Q "an=@c" A " opt=1232/0",
			.query_flags = 0,
			.refused = CV_DNS_MALFORMED},
		{.name = "OPT before the last section",
			.text = "flags=8180 " Q "an=./41/0/00",
			.query_flags = CV_DNS_WITH_EDNS,
			.refused = CV_DNS_MALFORMED},
		{.name = "OPT twice",
			.text = "flags=8180 " Q "an=@c" A " opt=1232/0 opt=1232/0",
			.query_flags = CV_DNS_WITH_EDNS,
			.refused = CV_DNS_MALFORMED},
		{.name = "more of the RCODE",
			.text = "flags=8180 " Q "an=@c" A " opt=1232/1000000",
			.query_flags = CV_DNS_WITH_EDNS,
			.refused = CV_DNS_BAD_RCODE},
		{.name = "an option",
			.text = "flags=8180 " Q "an=@c" A " opt=1232/0/000f0002001e",
			.query_flags = CV_DNS_WITH_EDNS,
			.refused = CV_DNS_OPTION},
		{.name = "a signature",
			.text = "flags=8180 " Q "an=@c" A " ar=key/250/0/00/255",
			.query_flags = 0,
			.refused = CV_DNS_OPTION},
		{.name = "a signature by SIG(0)",
			.text = "flags=8180 " Q "an=@c" A " ar=./24/0/00/255",
			.query_flags = 0,
			.refused = CV_DNS_OPTION},
		{.name = "truncated",
			.text = "flags=8380 " Q "an=@c" A,
			.query_flags = 0,
			.refused = CV_DNS_TRUNCATED},
		{.name = "SERVFAIL",
			.text = "flags=8182 " Q,
			.query_flags = 0,
			.refused = CV_DNS_BAD_RCODE},
		{.name = "REFUSED",
			.text = "flags=8185 " Q,
			.query_flags = 0,
			.refused = CV_DNS_BAD_RCODE},
		{.name = "TTL 0",
			.text = "flags=8180 " Q "an=@c/1/0/c0000201",
			.query_flags = 0,
			.refused = CV_DNS_NO_TTL},
		{.name = "a TTL with its first bit set",
			.text = "flags=8180 " Q "an=@c/1/0x80000001/c0000201",
			.query_flags = 0,
			.refused = CV_DNS_NO_TTL},
		{"the longest TTL", "flags=8180 " Q "an=@c/1/0x7fffffff/c0000201", 0,
			CV_DNS_REFUSED, 0x7fffffff, 1, 0},
		{"no such name", "flags=8183 " Q "ns=@10" SOA("600", "0000003c"), 0, CV_DNS_REFUSED,
			60, 1, 60},
		{"no such name, the SOA's TTL is less",
			"flags=8183 " Q "ns=@10" SOA("30", "0000003c"), 0, CV_DNS_REFUSED, 30, 1,
			0},
		{"no such type", "flags=8180 " Q "ns=@10" SOA("600", "0000003c"), 0, CV_DNS_REFUSED,
			60, 1, 60},
		{"an alias without a record of the type",
			"flags=8180 " Q "an=@c/5/50/0161c010 ns=@10" SOA("600", "0000003c"), 0,
			CV_DNS_REFUSED, 50, 2, 60},
		{.name = "no such name, minimum 0",
			.text = "flags=8183 " Q "ns=@10" SOA("600", "00000000"),
			.query_flags = 0,
			.refused = CV_DNS_NO_TTL},
		{.name = "no such name, no SOA",
			.text = "flags=8183 " Q,
			.query_flags = 0,
			.refused = CV_DNS_NO_SOA},
		{.name = "a referral",
			.text = "flags=8180 " Q "ns=@10/2/300/c00c",
			.query_flags = 0,
			.refused = CV_DNS_NO_SOA},
		{.name = "an SOA without its numbers",
			.text = "flags=8183 " Q "ns=@10/6/300/c010c010",
			.query_flags = 0,
			.refused = CV_DNS_MALFORMED},
		{.name = "an SOA with more",
			.text = "flags=8183 " Q "ns=@10" SOA("600", "0000003c00"),
			.query_flags = 0,
			.refused = CV_DNS_MALFORMED},
		{.name = "a pointer ahead",
			.text = "flags=8180 " Q "an=@30" A,
			.query_flags = 0,
			.refused = CV_DNS_MALFORMED},
		{.name = "a pointer to itself",
			.text = "flags=8180 " Q "an=@21" A,
			.query_flags = 0,
			.refused = CV_DNS_MALFORMED},
		{.name = "a pointer into the header",
			.text = "flags=8180 " Q "an=@b" A,
			.query_flags = 0,
			.refused = CV_DNS_MALFORMED},
		{.name = "another class",
			.text = "flags=8180 " Q "an=@c/1/300/c0000201/3",
			.query_flags = 0,
			.refused = CV_DNS_MALFORMED},
		{.name = "bytes behind",
			.text = "flags=8180 " Q "an=@c" A " hex=00",
			.query_flags = 0,
			.refused = CV_DNS_MALFORMED},
		{.name = "a meta type",
			.text = "flags=8180 " Q "an=@c/255/300/00",
			.query_flags = 0,
			.refused = CV_DNS_MALFORMED},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const struct dns dns = dns_make(rows[i].text);
		uint8_t *bytes = exact(&dns);
		struct cv_dns_question question;
		struct cv_dns_answer answer;
		enum cv_dns_refused refused;

		if (!cv_dns_read_question(bytes, dns.len, &question))
			fail_msg("%s: has no question", rows[i].name);
		refused =
			cv_dns_read_answer(bytes, dns.len, &question, rows[i].query_flags, &answer);
		if (refused != rows[i].refused)
			fail_msg("%s: is %d, not %d", rows[i].name, refused, rows[i].refused);
		if (refused == CV_DNS_REFUSED &&
			(answer.ttl != rows[i].ttl || answer.ttls != rows[i].ttls ||
				(answer.soa_at != 0) != (rows[i].soa_ttl != 0) ||
				(answer.soa_at != 0 && answer.soa_ttl != rows[i].soa_ttl)))
			fail_msg("%s: TTL %u, %u of them, SOA's %u", rows[i].name, answer.ttl,
				answer.ttls, answer.soa_ttl);
		for (uint16_t len = 0; refused == CV_DNS_REFUSED && len < dns.len; len++) {
			uint8_t *cut = malloc(len + !len);

			memcpy(cut, bytes, len);
			if (cv_dns_read_question(cut, len, &question) &&
				cv_dns_read_answer(cut, len, &question, rows[i].query_flags,
					&answer) == CV_DNS_REFUSED)
				fail_msg("%s: is learned of %u bytes", rows[i].name, len);
			free(cut);
		}
		free(bytes);
	}
}

// Pointers from pointer to pointer come to an end, and so do as many records as fit.
static void bounds(void **state)
{
	struct dns dns = dns_make("flags=8180 " Q);
	struct cv_dns_question question;
	struct cv_dns_answer answer;

	assert_true(cv_dns_read_question(dns.bytes, dns.len, &question));
	for (unsigned i = 0; i < 34; i++) { // each record's data is a pointer to the one before
		char record[32];

		snprintf(record, sizeof(record), "@%x/5/9/%04x", i == 0 ? 12 : dns.len - 2,
			0xc000 | (i == 0 ? 12u : dns.len - 2u));
		dns_word(&dns, "an", record);
	}
	assert_int_equal(
		cv_dns_read_answer(dns.bytes, dns.len, &question, 0, &answer), CV_DNS_MALFORMED);
	dns = dns_make("flags=8180 q=./2");
	for (unsigned i = 0; i < CV_DNS_RECORDS_MAX; i++)
		dns_word(&dns, "an", (char[16]){"./2/9"});
	assert_true(cv_dns_read_question(dns.bytes, dns.len, &question));
	assert_int_equal(
		cv_dns_read_answer(dns.bytes, dns.len, &question, 0, &answer), CV_DNS_REFUSED);
	assert_int_equal(answer.ttls, CV_DNS_RECORDS_MAX);
	dns_word(&dns, "an", (char[16]){"./2/9"});
	assert_int_equal(
		cv_dns_read_answer(dns.bytes, dns.len, &question, 0, &answer), CV_DNS_TOO_LONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_queries),
		cmocka_unit_test(reads_answers),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
