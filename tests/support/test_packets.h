// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// For tests: packets written as text, and tables of packets that a network function is run over.
//
// A packet is words, outermost layer first; a word with '=' sets a field of the layer before it.
// Types, next headers, lengths and header checksums are filled in unless a field sets them.
//
//   "vlan id=10 ip4 dst=10.1.2.3 ttl=1 udp dport=53 data=18"
//
//   (Ethernet is always there)  dst=MAC src=MAC type=HEX
//   vlan qinq       id=N
//   ip4             src= dst= ttl= proto= id= tos= off=UNITS mf= df= opt=HEX ver= ihl= len= sum=HEX
//   ip6             src= dst= hop= nh= tc= len= ver=
//   hbh dstopt rth  nh= size=BYTES (8, 16, ...)   frag nh= off=UNITS mf= id=   ah nh= size=BYTES
//   udp tcp sctp    sport= dport=      tcp  flags=     icmp icmp6  kind= code=
//   data=N          N bytes, counting up          hex=AABB..  these bytes
//   pad=N           N zero bytes behind the IP packet        cut=N  the frame's first N bytes only
#ifndef CV_TEST_PACKETS_H
#define CV_TEST_PACKETS_H

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_eal.h>

#include "chain/nf.h"
#include "packet/checksum.h"
#include "packet/ether.h"

struct packet {
	uint8_t bytes[2048];
	uint16_t len;
};

// The packet being written and what must still be filled in when it is whole.
struct packet_writer {
	struct packet *packet;
	const char *text; // for messages
	char layer[8]; // the layer that fields belong to
	uint16_t at; // where it begins
	uint16_t type_at; // where the next layer's type belongs; 0: nowhere
	bool type_short; // it has one byte (an IP protocol), not two (an EtherType)
	uint16_t ip4_at, ip6_at, udp_at; // 0: none
	bool has_len, has_sum, has_ihl;
	bool sealed; // the IP packet ended: padding follows
};

static inline uint8_t *packet_grow(struct packet_writer *w, size_t n)
{
	uint8_t *at = w->packet->bytes + w->packet->len;

	if (w->packet->len + n > sizeof(w->packet->bytes))
		fail_msg("packet too long: %s", w->text);
	memset(at, 0, n);
	w->packet->len += (uint16_t)n;
	return at;
}

static inline void packet_put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void packet_hex(struct packet_writer *w, const char *hex)
{
	unsigned byte;

	for (; *hex != '\0'; hex += 2) {
		if (sscanf(hex, "%2x", &byte) != 1 || hex[1] == '\0')
			fail_msg("bad hex: %s", w->text);
		*packet_grow(w, 1) = (uint8_t)byte;
	}
}

// Begins a layer of size bytes whose type (EtherType or IP protocol) is told to the one before.
static inline uint8_t *packet_layer(
	struct packet_writer *w, const char *name, unsigned type, size_t size)
{
	if (w->type_at != 0 && w->type_short)
		w->packet->bytes[w->type_at] = (uint8_t)type;
	else if (w->type_at != 0)
		packet_put16(w->packet->bytes + w->type_at, type);
	snprintf(w->layer, sizeof(w->layer), "%s", name);
	w->at = w->packet->len;
	w->type_at = 0;
	return packet_grow(w, size);
}

static inline void packet_ip_next(struct packet_writer *w, unsigned offset)
{
	w->type_at = (uint16_t)(w->at + offset);
	w->type_short = true;
}

static inline bool packet_begin(struct packet_writer *w, const char *word)
{
	static const struct {
		const char *name;
		uint8_t type, size;
	} layers[] = {{"hbh", 0, 8}, {"dstopt", 60, 8}, {"rth", 43, 8}, {"frag", 44, 8},
		{"ah", 51, 12}, {"udp", 17, 8}, {"tcp", 6, 20}, {"sctp", 132, 12}, {"icmp", 1, 8},
		{"icmp6", 58, 8}};
	uint8_t *at;

	if (strcmp(word, "vlan") == 0 || strcmp(word, "qinq") == 0) {
		packet_layer(w, word, word[0] == 'v' ? 0x8100 : 0x88a8, 4);
		w->type_at = w->at + 2;
		w->type_short = false;
		return true;
	}
	if (strcmp(word, "ip4") == 0) {
		at = packet_layer(w, word, w->type_short ? 4 : 0x0800, 20);
		at[0] = 0x45;
		at[8] = 64;
		memcpy(at + 12, (const uint8_t[]){192, 0, 2, 1, 198, 51, 100, 1}, 8);
		w->ip4_at = w->at;
		packet_ip_next(w, 9);
		return true;
	}
	if (strcmp(word, "ip6") == 0) {
		at = packet_layer(w, word, w->type_short ? 41 : 0x86dd, 40);
		at[0] = 0x60;
		at[6] = 59;
		at[7] = 64;
		inet_pton(AF_INET6, "2001:db8::1", at + 8);
		inet_pton(AF_INET6, "2001:db8::2", at + 24);
		w->ip6_at = w->at;
		packet_ip_next(w, 6);
		return true;
	}
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		if (strcmp(word, layers[i].name) != 0)
			continue;
		at = packet_layer(w, word, layers[i].type, layers[i].size);
		if (layers[i].type == 17) {
			w->udp_at = w->at;
		} else if (layers[i].type == 6) {
			at[12] = 0x50;
		} else if (i < 5) { // an extension header
			at[0] = 59;
			at[1] = layers[i].type == 51 ? 1 : 0;
			packet_ip_next(w, 0);
		}
		return true;
	}
	return false;
}

static inline bool packet_field_ip4(
	struct packet_writer *w, uint8_t *at, const char *key, const char *value)
{
	unsigned number = (unsigned)strtoul(value, NULL, 0);

	if (strcmp(key, "src") == 0)
		return inet_pton(AF_INET, value, at + 12) == 1;
	if (strcmp(key, "dst") == 0)
		return inet_pton(AF_INET, value, at + 16) == 1;
	if (strcmp(key, "ttl") == 0) {
		at[8] = (uint8_t)number;
	} else if (strcmp(key, "proto") == 0) {
		at[9] = (uint8_t)number;
		w->type_at = 0;
	} else if (strcmp(key, "tos") == 0) {
		at[1] = (uint8_t)number;
	} else if (strcmp(key, "id") == 0) {
		packet_put16(at + 4, number);
	} else if (strcmp(key, "off") == 0) {
		packet_put16(at + 6, (unsigned)(at[6] & 0xe0) << 8 | number);
	} else if (strcmp(key, "mf") == 0) {
		at[6] |= number ? 0x20 : 0;
	} else if (strcmp(key, "df") == 0) {
		at[6] |= number ? 0x40 : 0;
	} else if (strcmp(key, "opt") == 0) {
		packet_hex(w, value);
		if (!w->has_ihl)
			at[0] = (uint8_t)(0x40 | (w->packet->len - w->at) / 4);
	} else if (strcmp(key, "ver") == 0) {
		at[0] = (uint8_t)(number << 4 | (at[0] & 15));
	} else if (strcmp(key, "ihl") == 0) {
		at[0] = (uint8_t)((at[0] & 0xf0) | number);
		w->has_ihl = true;
	} else if (strcmp(key, "len") == 0) {
		packet_put16(at + 2, number);
		w->has_len = true;
	} else if (strcmp(key, "sum") == 0) {
		packet_put16(at + 10, (unsigned)strtoul(value, NULL, 16));
		w->has_sum = true;
	} else {
		return false;
	}
	return true;
}

static inline bool packet_field_ip6(
	struct packet_writer *w, uint8_t *at, const char *key, const char *value)
{
	unsigned number = (unsigned)strtoul(value, NULL, 0);

	if (strcmp(key, "src") == 0)
		return inet_pton(AF_INET6, value, at + 8) == 1;
	if (strcmp(key, "dst") == 0)
		return inet_pton(AF_INET6, value, at + 24) == 1;
	if (strcmp(key, "hop") == 0) {
		at[7] = (uint8_t)number;
	} else if (strcmp(key, "nh") == 0) {
		at[6] = (uint8_t)number;
		w->type_at = 0;
	} else if (strcmp(key, "tc") == 0) {
		at[0] = (uint8_t)((at[0] & 0xf0) | number >> 4);
		at[1] = (uint8_t)(number << 4 | (at[1] & 15));
	} else if (strcmp(key, "ver") == 0) {
		at[0] = (uint8_t)(number << 4);
	} else if (strcmp(key, "len") == 0) {
		packet_put16(at + 4, number);
		w->has_len = true;
	} else {
		return false;
	}
	return true;
}

static inline bool packet_field(struct packet_writer *w, const char *key, const char *value)
{
	uint8_t *at = w->packet->bytes + w->at;
	unsigned number = (unsigned)strtoul(value, NULL, 0);

	if (strcmp(w->layer, "ip4") == 0)
		return packet_field_ip4(w, at, key, value);
	if (strcmp(w->layer, "ip6") == 0)
		return packet_field_ip6(w, at, key, value);
	if (strcmp(w->layer, "eth") == 0 && strcmp(key, "dst") == 0)
		return cv_mac_parse(value, at);
	if (strcmp(w->layer, "eth") == 0 && strcmp(key, "src") == 0)
		return cv_mac_parse(value, at + 6);
	if (strcmp(key, "type") == 0) {
		packet_put16(w->packet->bytes + w->type_at, (unsigned)strtoul(value, NULL, 16));
		w->type_at = 0;
	} else if (strcmp(key, "nh") == 0) {
		at[0] = (uint8_t)number;
		w->type_at = 0;
	} else if (strcmp(key, "size") == 0) {
		packet_grow(w, number - (unsigned)(w->packet->len - w->at));
		at[1] = (uint8_t)(strcmp(w->layer, "ah") == 0 ? number / 4 - 2 : number / 8 - 1);
	} else if (strcmp(w->layer, "frag") == 0 && strcmp(key, "off") == 0) {
		packet_put16(at + 2, number << 3 | (at[3] & 1));
	} else if (strcmp(w->layer, "frag") == 0 && strcmp(key, "mf") == 0) {
		at[3] |= number ? 1 : 0;
	} else if (strcmp(w->layer, "frag") == 0 && strcmp(key, "id") == 0) {
		packet_put16(at + 6, number);
	} else if (strcmp(key, "id") == 0) {
		packet_put16(at, number);
	} else if (strcmp(key, "sport") == 0) {
		packet_put16(at, number);
	} else if (strcmp(key, "dport") == 0) {
		packet_put16(at + 2, number);
	} else if (strcmp(key, "kind") == 0) {
		at[0] = (uint8_t)number;
	} else if (strcmp(key, "code") == 0) {
		at[1] = (uint8_t)number;
	} else if (strcmp(w->layer, "tcp") == 0 && strcmp(key, "flags") == 0) {
		at[13] = (uint8_t)number;
	} else {
		return false;
	}
	return true;
}

// Fills in what depends on where the packet ends; called once, before padding.
static inline void packet_seal(struct packet_writer *w)
{
	uint8_t *bytes = w->packet->bytes, *ip = bytes + w->ip4_at;
	size_t header = (ip[0] & 15) * 4u;

	if (w->sealed)
		return;
	w->sealed = true;
	if (w->udp_at != 0)
		packet_put16(bytes + w->udp_at + 4, w->packet->len - w->udp_at);
	if (w->ip6_at != 0 && !w->has_len)
		packet_put16(bytes + w->ip6_at + 4, w->packet->len - w->ip6_at - 40u);
	if (w->ip4_at == 0)
		return;
	if (!w->has_len)
		packet_put16(ip + 2, w->packet->len - w->ip4_at);
	if (!w->has_sum) {
		rte_be16_t sum = cv_checksum(ip, header < 20 ? 20 : header);

		memcpy(ip + 10, &sum, 2);
	}
}

static inline void packet_word(struct packet_writer *w, char *word)
{
	char *value = strchr(word, '=');

	if (value == NULL) {
		if (!packet_begin(w, word))
			fail_msg("no layer is called \"%s\": %s", word, w->text);
		return;
	}
	*value++ = '\0';
	if (strcmp(word, "data") == 0) {
		unsigned n = (unsigned)strtoul(value, NULL, 0);
		uint8_t *at = packet_grow(w, n);

		for (unsigned i = 0; i < n; i++)
			at[i] = (uint8_t)i;
	} else if (strcmp(word, "hex") == 0) {
		packet_hex(w, value);
	} else if (strcmp(word, "pad") == 0) {
		packet_seal(w);
		packet_grow(w, strtoul(value, NULL, 0));
	} else if (strcmp(word, "cut") == 0) {
		packet_seal(w);
		w->packet->len = (uint16_t)strtoul(value, NULL, 0);
	} else if (!packet_field(w, word, value)) {
		fail_msg("%s has no field \"%s\": %s", w->layer, word, w->text);
	}
}

// Makes the packet that text describes. The default addresses are 02:00:00:00:00:02 (dst),
// 02:00:00:00:00:01 (src), 192.0.2.1 > 198.51.100.1, 2001:db8::1 > 2001:db8::2, TTL 64.
static inline struct packet packet_make(const char *text)
{
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
	struct packet packet = {.len = 0};
	struct packet_writer w = {.packet = &packet, .text = text, .layer = "eth", .type_at = 12};
	char words[1024], *save = NULL;

	memcpy(packet_grow(&w, CV_ETHER_LEN), macs, sizeof(macs));
	assert_true(strlen(text) < sizeof(words));
	strcpy(words, text);
	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		packet_word(&w, word);
	packet_seal(&w);
	return packet;
}

// One row of a function's table: a packet in, what becomes of it, and its bytes afterwards.
struct packet_row {
	const char *name;
	const char *in;
	const char *verdict; // "next", or the name of a drop reason
	const char *out; // NULL: the bytes as they came in
	uint8_t in_port;
	uint8_t out_port; // that the view must name afterwards, it enters with in_port + 1
};

static inline uint8_t packet_verdict(const struct cv_nf *nf, const char *name)
{
	if (strcmp(name, "next") == 0)
		return CV_NEXT;
	if (strcmp(name, "absorbed") == 0)
		return CV_ABSORBED;
	if (strncmp(name, "output ", 7) == 0)
		return CV_OUTPUT(atoi(name + 7));
	for (unsigned i = 0; nf->drops[i] != NULL; i++)
		if (strcmp(nf->drops[i], name) == 0)
			return CV_DROP(i);
	fail_msg("%s has no drop reason %s", nf->name, name);
	return 0;
}

// Views of packets, each in memory of its own exact size: a read or write outside of it is seen
// by the sanitizer. The first of them are the rows' packets, over and over.
static inline void packet_views(
	struct cv_view *views, uint16_t n, const struct packet_row *rows, size_t count)
{
	for (uint16_t i = 0; i < n; i++) {
		struct packet packet = packet_make(rows[i % count].in);
		uint8_t *exact = malloc(packet.len + !packet.len);

		assert_non_null(exact);
		memcpy(exact, packet.bytes, packet.len);
		views[i].in = rows[i % count].in_port;
		views[i].out = rows[i % count].in_port + 1;
		cv_view_set(&views[i], exact, packet.len);
	}
}

// Compares one packet with its row.
static inline void packet_expect(const struct cv_nf *nf, const struct packet_row *row,
	const struct cv_view *view, uint8_t verdict)
{
	struct packet want = packet_make(row->out != NULL ? row->out : row->in);

	if (verdict != packet_verdict(nf, row->verdict))
		fail_msg("%s: verdict is 0x%02x, not %s", row->name, verdict, row->verdict);
	if (verdict != CV_NEXT && verdict < CV_OUTPUT(0))
		return;
	if (view->out != row->out_port)
		fail_msg("%s: leaves by port %u, not %u", row->name, view->out, row->out_port);
	if (view->len != want.len)
		fail_msg("%s: %u bytes, not %u", row->name, view->len, want.len);
	for (uint16_t i = 0; i < want.len; i++)
		if (view->data[i] != want.bytes[i])
			fail_msg("%s: byte %u is %02x, not %02x", row->name, i, view->data[i],
				want.bytes[i]);
}

// Runs the rows through process(): each alone, then all over and over in bursts of 0, 1, 31, 32,
// 33 and 65 packets, the last as the hop would split it (64 and 1). A function whose verdicts
// depend on the packets before must be given rows that do not care.
static inline void packet_table(
	const struct cv_nf *nf, void *instance, const struct packet_row *rows, size_t count)
{
	static const uint16_t bursts[] = {0, 1, 31, 32, 33, 65};
	struct cv_view views[65 + 256];
	uint8_t verdict[CV_BURST_MAX + 1];

	for (size_t b = 0; b < sizeof(bursts) / sizeof(bursts[0]) + count; b++) {
		bool alone = b < count;
		uint16_t n = alone ? 1 : bursts[b - count];
		const struct packet_row *first = alone ? &rows[b] : rows;
		size_t rows_used = alone ? 1 : count;

		packet_views(views, n, first, rows_used);
		for (uint16_t done = 0, part; done < n || (n == 0 && done == 0); done += part) {
			uint16_t dropped = 0, left = n - done;

			part = left > CV_BURST_MAX ? CV_BURST_MAX : left;
			verdict[part] = 0xa5;
			uint16_t returned = nf->process(instance,
				&(struct cv_nf_worker){.index = 0}, views + done, verdict, part);

			assert_int_equal(verdict[part], 0xa5);
			for (uint16_t i = 0; i < part; i++) {
				packet_expect(nf, &first[(done + i) % rows_used], &views[done + i],
					verdict[i]);
				dropped += verdict[i] != CV_NEXT;
			}
			assert_int_equal(returned, dropped);
			if (n == 0)
				break;
		}
		for (uint16_t i = 0; i < n; i++)
			free(views[i].data);
	}
}

// Starts the EAL as any user can: without hugepages, devices or files that outlive the test.
static inline void packet_eal(const char *program)
{
	char *args[] = {(char *)program, "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf",
		"-m", "1024", "-l", "0", "--log-level=error", "--file-prefix=cv-test"};

	if (rte_eal_init(sizeof(args) / sizeof(args[0]), args) < 0) {
		fprintf(stderr, "%s: the EAL does not start\n", program);
		exit(1);
	}
}

// An environment of four ports, left right third fourth, whose MACs are 02:aa:00:00:00:INDEX, and two
// outputs, voice and rest.
static inline const struct cv_nf_env *packet_env(void)
{
	static const char *const names[] = {"left", "right", "third", "fourth"};
	static const uint8_t macs[4][6] = {{2, 0xaa, 0, 0, 0, 0}, {2, 0xaa, 0, 0, 0, 1},
		{2, 0xaa, 0, 0, 0, 2}, {2, 0xaa, 0, 0, 0, 3}};
	static const uint16_t mtus[4] = {1500, 1500, 1500, 1500};
	static const char *const outputs[] = {"voice", "rest"};
	static const struct cv_nf_env env = {.name = "nf",
		.outputs = outputs,
		.outputs_count = 2,
		.workers = 2,
		.socket = -1,
		.ports = names,
		.macs = macs,
		.mtus = mtus,
		.ports_count = 4};

	return &env;
}

// Makes and starts an instance, from JSON text with single quotes for double ones. The test fails with the
// error if it is refused and error is NULL.
static inline void *packet_nf_in(const struct cv_nf *nf, const char *config,
	const struct cv_nf_env *env, struct cv_error *error)
{
	struct cv_error own = {""}, *why = error != NULL ? error : &own;
	char text[4096];
	json_t *json;
	void *instance;

	snprintf(text, sizeof(text), "%s", config);
	for (char *c = text; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	why->text[0] = '\0';
	instance = cv_nf_create(nf, json, env, why);
	json_decref(json);
	if (instance == NULL && error == NULL)
		fail_msg("%s: %s", config, own.text);
	if (instance == NULL)
		assert_true(why->text[0] != '\0');
	else
		cv_nf_start(nf, instance, env);
	return instance;
}

// The same that is to take the place of another; NULL: of none.
static inline void *packet_nf_instead(
	const struct cv_nf *nf, const char *config, void *running, struct cv_error *error)
{
	struct cv_nf_env env = *packet_env();

	env.running = running;
	return packet_nf_in(nf, config, &env, error);
}

// The same that one worker alone runs.
static inline void *packet_nf_alone(const struct cv_nf *nf, const char *config)
{
	struct cv_nf_env env = *packet_env();

	env.runners = 1;
	return packet_nf_in(nf, config, &env, NULL);
}

// The same, that takes nobody's place.
static inline void *packet_nf(const struct cv_nf *nf, const char *config, struct cv_error *error)
{
	return packet_nf_instead(nf, config, NULL, error);
}

// A configuration that must be refused with these words.
static inline void packet_refused(const struct cv_nf *nf, const char *config, const char *words)
{
	struct cv_error error = {""};
	void *instance = packet_nf(nf, config, &error);

	if (instance != NULL)
		fail_msg("accepted: %s", config);
	if (strstr(error.text, words) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", config, error.text, words);
}

#endif
