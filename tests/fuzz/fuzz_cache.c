// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// DNS messages and any packets to the cache, from clients and from servers, in sequence while time passes.
// Whatever comes: packets are conserved and every buffer comes back; what passes is as it came; an answer
// goes back to who asked, is sound, has his id, name and type, and only bytes that a server sent him or
// somebody else in answer to the same question; and it holds no longer than that one did.
//
// Input: for each packet, 1 byte: what to do with it; 1 byte: its length; then its bytes. By the first:
//   0x01 from a server, else from a client      0x02 over IPv6        0x04 with a VLAN tag
//   0x08 all bytes of a frame, else of a DNS message whose headers are made here
//   0x10 its question is that of the query before, 0x20 and its id     0x40 some seconds pass before
#include <string.h>

#include <rte_cycles.h>
#include "nf/cache/datagram.h"
#include "nf/cache/message.h"
#include "tests/fuzz/function_fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGE_MAX 255
#define MEMORY "{\"outside\": [\"b\"], \"memory_mb\": 8}"

static const uint16_t mtus[RIG_PORTS] = {1500, 1500, 1500, 1500};

static struct rte_mempool *pool;
static struct function_rig rig;
static const struct cv_nf *nf;
static uint64_t now;
// The query before: its question, which answers are most often to.
static uint8_t query_before[MESSAGE_MAX + 1];
static uint16_t question_len;

static uint16_t at_some_time(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n)
{
	worker->now = now;
	return nf->process(instance, worker, view, verdict, n);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	pool = fuzz_begin((*argv)[0], "cache");
	nf = cv_nf_find("cache");
	rig_begin(&rig, nf, fuzz_function(nf, MEMORY, mtus), pool);
	rig.step.process = at_some_time;
	return 0;
}

// A frame of a message, with lengths and checksums that fit. Returns its length.
static uint16_t wrap(uint8_t *frame, uint8_t how, const uint8_t *message, uint16_t len)
{
	static const uint8_t ends[2][4] = {{10, 0, 0, 1}, {192, 0, 2, 53}};
	const unsigned from = how & 1;
	const rte_be16_t sport = from ? RTE_BE16(53) : RTE_BE16(4000);
	const rte_be16_t dport = from ? RTE_BE16(4000) : RTE_BE16(53);
	struct cv_udp udp = {sport, dport, rte_cpu_to_be_16(CV_UDP_LEN + len), 0};
	uint8_t *at = frame, *ip;

	memcpy(at, (uint8_t[12]){2, [11] = 2}, 12);
	at += 12;
	if (how & 4) {
		memcpy(at, (uint8_t[]){0x81, 0, 0, 5}, 4);
		at += 4;
	}
	memcpy(at, how & 2 ? (uint8_t[]){0x86, 0xdd} : (uint8_t[]){8, 0}, 2);
	ip = at + 2;
	if (how & 2) {
		struct cv_ipv6 header = {.version_class_flow = RTE_BE32(0x60000000),
			.payload_len = udp.len,
			.next = IPPROTO_UDP,
			.hop_limit = 64};

		memcpy(header.src, (uint8_t[16]){0x20, 1, [15] = 1 + from}, 16);
		memcpy(header.dst, (uint8_t[16]){0x20, 1, [15] = 2 - from}, 16);
		memcpy(ip, &header, sizeof(header));
		at = ip + sizeof(header);
	} else {
		struct cv_ipv4 header = {.version_ihl = 0x45,
			.total_len = rte_cpu_to_be_16(CV_IPV4_LEN + CV_UDP_LEN + len),
			.ttl = 64,
			.proto = IPPROTO_UDP};

		memcpy(&header.src, ends[from], 4);
		memcpy(&header.dst, ends[!from], 4);
		header.checksum = cv_checksum((const uint8_t *)&header, sizeof(header));
		memcpy(ip, &header, sizeof(header));
		at = ip + sizeof(header);
	}
	memcpy(at, &udp, sizeof(udp));
	memcpy(at + sizeof(udp), message, len);
	udp.checksum = (rte_be16_t)~cv_datagram_sum(ip, how & 2, at, CV_UDP_LEN + len);
	if (udp.checksum == 0)
		udp.checksum = 0xffff;
	memcpy(at, &udp, sizeof(udp));
	return (uint16_t)(at + sizeof(udp) + len - frame);
}

// What went back by the port that a query came in by.
static void check_answer(const struct rig_out *out, const uint8_t *query, uint16_t query_len)
{
	struct cv_view view = {.before = 0}, query_view = {.before = 0};
	struct cv_datagram datagram, query_datagram;
	struct cv_dns_question question, wanted;
	struct cv_dns_answer answer;

	cv_view_set(&view, (uint8_t *)out->bytes, out->len);
	cv_view_set(&query_view, (uint8_t *)query, query_len);
	must(cv_datagram_read(&view, &datagram) && cv_datagram_is_sound(&datagram) &&
			datagram.udp->checksum != 0,
		"it is sound");
	must(cv_datagram_read(&query_view, &query_datagram) &&
			cv_dns_read_query(query_datagram.payload, query_datagram.len, &wanted),
		"it was a query");
	must(cv_dns_read_question(datagram.payload, datagram.len, &question), "it is an answer");
	must(question.id == wanted.id && question.type == wanted.type &&
			question.name_len == wanted.name_len &&
			memcmp(question.name, wanted.name, wanted.name_len) == 0,
		"it is an answer to the question");
	must(datagram.len <= wanted.limit, "it is not longer than who asks takes");
	must(cv_dns_read_answer(datagram.payload, datagram.len, &question, wanted.query_flags,
		     &answer) == CV_DNS_REFUSED,
		"it would be learned itself");
	must(answer.ttl >= 1, "it holds");
	must(memcmp(view.data, query_view.data + 6, 6) == 0 &&
			memcmp(view.data + 6, query_view.data, 6) == 0 && view.l3 == query_view.l3,
		"it goes to who asked");
}

static void receive(uint8_t how, const uint8_t *frame, uint16_t len)
{
	const unsigned in = how & 1, outs = rig.outs;
	const struct rig_out *out = &rig.out[outs % RIG_OUT_MAX];

	must(rig_receive(&rig, in, frame, len), "there is a buffer");
	must(rig.outs == outs + 1, "it goes on, or is answered");
	if (out->port == in + 1)
		must(out->len == len && memcmp(out->bytes, frame, len) == 0, "it is as it came");
	else
		must(out->port == 0 && in == 0, "it goes back to clients");
	if (out->port == 0)
		check_answer(out, frame, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	question_len = 0;
	now = RTE_MAX(now, UINT64_C(1000) * rte_get_tsc_hz());
	while (size >= 2) {
		const uint8_t how = data[0];
		const uint16_t given = (uint16_t)RTE_MIN((size_t)data[1], size - 2);
		uint8_t message[2 * MESSAGE_MAX + 2] = {0}, frame[1024];
		uint16_t len = given;

		if (how & 0x40)
			now += rte_get_tsc_hz() * (1 + given % 8);
		memcpy(message, data + 2, given);
		if (how & 0x10 && given >= CV_DNS_HEADER_LEN) {
			memcpy(message, data + 2, CV_DNS_HEADER_LEN);
			memcpy(message + CV_DNS_HEADER_LEN, query_before + CV_DNS_HEADER_LEN,
				question_len);
			memcpy(message + CV_DNS_HEADER_LEN + question_len,
				data + 2 + CV_DNS_HEADER_LEN, given - CV_DNS_HEADER_LEN);
			len += question_len;
			if (how & 0x20)
				memcpy(message, query_before, 2);
		}
		if (how & 8) {
			receive(how, data + 2, given);
		} else {
			struct cv_dns_question question;

			receive(how, frame, wrap(frame, how, message, len));
			if (!(how & 1) && cv_dns_read_query(message, len, &question)) {
				question_len = question.name_len + 4;
				memcpy(query_before, message, CV_DNS_HEADER_LEN + question_len);
			}
		}
		data += 2 + given;
		size -= 2u + given;
	}
	must(rig_conserved(&rig), "packets are conserved");
	must(rte_mempool_in_use_count(pool) == 0, "buffers come back");
	return 0;
}
