// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// DNS messages in words, for tests:
//
//   id=HEX flags=HEX          of the header; flags are 0100, "recursion desired"
//   q=NAME/TYPE[/CLASS]       a question; TYPE and CLASS are numbers, A is 1, SOA 6
//   an= ns= ar=NAME/TYPE/TTL/HEX[/CLASS]    a record and its data
//   opt=BYTES/HEX/HEX         EDNS: who sends takes so many bytes; the 32 bits of its TTL; options
//   hex=HEX                   bytes that nothing counts
//
// A name is labels between dots, "." the root's; @HEX at its end is a pointer to that offset. Records follow each
// other as they are written.
#ifndef CV_TEST_DNS_H
#define CV_TEST_DNS_H

#include "tests/support/test_packets.h"

struct dns {
	uint16_t len;
	uint8_t bytes[2048];
};

static inline void dns_put16(struct dns *dns, unsigned value)
{
	packet_put16(dns->bytes + dns->len, value);
	dns->len += 2;
}

static inline void dns_put32(struct dns *dns, uint32_t value)
{
	dns_put16(dns, value >> 16);
	dns_put16(dns, value & 0xffff);
}

static inline void dns_name(struct dns *dns, const char *name)
{
	while (*name != '\0' && *name != '@') {
		const size_t len = strcspn(name, ".@");

		if (len > 0) {
			dns->bytes[dns->len++] = (uint8_t)len;
			memcpy(dns->bytes + dns->len, name, len);
			dns->len += (uint16_t)len;
		}
		name += len + (name[len] == '.');
	}
	if (*name == '@')
		dns_put16(dns, 0xc000 | (unsigned)strtoul(name + 1, NULL, 16));
	else
		dns->bytes[dns->len++] = 0;
}

static inline void dns_hex(struct dns *dns, const char *hex)
{
	unsigned byte;

	for (; hex != NULL && sscanf(hex, "%2x", &byte) == 1; hex += 2)
		dns->bytes[dns->len++] = (uint8_t)byte;
}

static inline void dns_record(struct dns *dns, char *text)
{
	char *save = NULL;
	const char *name = strtok_r(text, "/", &save), *type = strtok_r(NULL, "/", &save);
	const char *ttl = strtok_r(NULL, "/", &save), *data = strtok_r(NULL, "/", &save);
	const char *class = strtok_r(NULL, "/", &save);
	uint16_t at;

	dns_name(dns, name);
	dns_put16(dns, (unsigned)strtoul(type, NULL, 0));
	dns_put16(dns, class != NULL ? (unsigned)strtoul(class, NULL, 0) : 1);
	dns_put32(dns, (uint32_t)strtoul(ttl, NULL, 0));
	at = dns->len;
	dns_put16(dns, 0);
	dns_hex(dns, data);
	packet_put16(dns->bytes + at, dns->len - at - 2u);
}

static inline void dns_word(struct dns *dns, const char *key, char *value)
{
	static const char *const sections[] = {"an", "ns", "ar"};
	char *save = NULL;

	for (unsigned i = 0; i < 3; i++)
		if (strcmp(key, sections[i]) == 0) {
			dns->bytes[7 + 2 * i]++;
			dns_record(dns, value);
			return;
		}
	if (strcmp(key, "id") == 0) {
		packet_put16(dns->bytes, (unsigned)strtoul(value, NULL, 16));
	} else if (strcmp(key, "flags") == 0) {
		packet_put16(dns->bytes + 2, (unsigned)strtoul(value, NULL, 16));
	} else if (strcmp(key, "hex") == 0) {
		dns_hex(dns, value);
	} else if (strcmp(key, "q") == 0) {
		const char *name = strtok_r(value, "/", &save), *type = strtok_r(NULL, "/", &save);
		const char *class = strtok_r(NULL, "/", &save);

		dns->bytes[5]++;
		dns_name(dns, name);
		dns_put16(dns, (unsigned)strtoul(type, NULL, 0));
		dns_put16(dns, class != NULL ? (unsigned)strtoul(class, NULL, 0) : 1);
	} else if (strcmp(key, "opt") == 0) {
		const char *bytes = strtok_r(value, "/", &save);
		const char *ttl = strtok_r(NULL, "/", &save), *data = strtok_r(NULL, "/", &save);

		dns->bytes[11]++;
		dns->bytes[dns->len++] = 0;
		dns_put16(dns, 41);
		dns_put16(dns, (unsigned)strtoul(bytes, NULL, 0));
		dns_put32(dns, (uint32_t)strtoul(ttl, NULL, 16));
		dns_put16(dns, data != NULL ? (unsigned)strlen(data) / 2 : 0);
		dns_hex(dns, data);
	} else {
		fail_msg("DNS has no word \"%s\"", key);
	}
}

static inline struct dns dns_make(const char *text)
{
	struct dns dns = {.len = 12, .bytes = {0, 0, 1}};
	char words[2048], *save = NULL;

	assert_true(strlen(text) < sizeof(words));
	strcpy(words, text);
	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		if (value == NULL) {
			fail_msg("DNS: \"%s\" has no value", word);
			return dns;
		}
		*value++ = '\0';
		dns_word(&dns, word, value);
	}
	return dns;
}

// Puts a message behind the headers of a packet that ends with UDP, and makes lengths and checksums fit.
static inline struct packet dns_packet(const char *headers, const struct dns *dns)
{
	struct packet packet = packet_make(headers);
	const uint16_t udp_len = 8 + dns->len;
	struct cv_view view = {.before = 0};
	uint8_t *ip, *udp = packet.bytes + packet.len - 8;
	uint64_t sum;
	rte_be16_t checksum;
	bool v6;

	memcpy(packet.bytes + packet.len, dns->bytes, dns->len);
	packet.len += dns->len;
	cv_view_set(&view, packet.bytes, packet.len);
	ip = packet.bytes + view.l3;
	v6 = view.proto == CV_PROTO_IPV6;
	packet_put16(udp + 4, udp_len);
	if (v6) {
		packet_put16(ip + 4, (unsigned)(packet.bytes + packet.len - ip) - 40);
	} else {
		packet_put16(ip + 2, (unsigned)(packet.bytes + packet.len - ip));
		memset(ip + 10, 0, 2);
		checksum = cv_checksum(ip, 4 * (ip[0] & 15u));
		memcpy(ip + 10, &checksum, 2);
	}
	sum = cv_checksum_add(0, ip + (v6 ? 8 : 12), v6 ? 32 : 8) + rte_cpu_to_be_16(udp_len) +
	      RTE_BE16(17);
	checksum = (rte_be16_t)~cv_checksum_fold(cv_checksum_add(sum, udp, udp_len));
	if (checksum == 0)
		checksum = 0xffff;
	memcpy(udp + 6, &checksum, 2);
	return packet;
}

#endif
