// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/balancer/probe.h"

#include <netinet/in.h>
#include <string.h>

#include "packet/arp.h"
#include "packet/checksum.h"
#include "packet/icmp.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/neighbour_discovery.h"

#define HOPS 64
#define ECHO_LEN 12 // with the nonce
#define TCP_LEN 20
#define SYN 2
#define RST 4
#define ACK 16
#define ECHO_ID 0x4356
#define ECHO_REPLY 0
#define ECHO_REQUEST 8
#define ECHO_REQUEST_V6 128
#define ECHO_REPLY_V6 129
#define FIRST_PORT 0xc000 // source ports: by the backend's number, of which there are 4096

static void put_be32(uint8_t *at, uint32_t value)
{
	const rte_be32_t wire = rte_cpu_to_be_32(value);

	memcpy(at, &wire, sizeof(wire));
}

static void put_be16(uint8_t *at, uint16_t value)
{
	const rte_be16_t wire = rte_cpu_to_be_16(value);

	memcpy(at, &wire, sizeof(wire));
}

static uint32_t get_be32(const uint8_t *at)
{
	rte_be32_t wire;

	memcpy(&wire, at, sizeof(wire));
	return rte_be_to_cpu_32(wire);
}

// A new frame to the backend: by its port, or through the functions behind.
static uint8_t *begin(
	struct cv_nf_worker *worker, const struct cv_probe *probe, rte_be16_t type, uint16_t len)
{
	const enum cv_nf_way way = probe->mac != NULL ? CV_NF_BY_PORT : CV_NF_BEHIND;
	uint8_t *data = cv_nf_originate(
		worker, (uint16_t)(CV_ETHER_LEN + len), probe->port, probe->port, way);

	if (data == NULL)
		return NULL;
	memcpy(data, probe->mac != NULL ? probe->mac : probe->own_mac, CV_MAC_LEN);
	memcpy(data + CV_MAC_LEN, probe->own_mac, CV_MAC_LEN);
	memcpy(data + 12, &type, sizeof(type));
	return data + CV_ETHER_LEN;
}

// An IP packet to the backend; the checksum of its layer 4, at checksum_at, is made when that is written.
static uint8_t *begin_ip(
	struct cv_nf_worker *worker, const struct cv_probe *probe, uint8_t proto, uint16_t len)
{
	const bool v6 = probe->to->v6;
	uint8_t *ip = begin(worker, probe, rte_cpu_to_be_16(v6 ? 0x86dd : 0x0800),
		(uint16_t)(len + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN)));
	struct cv_ipv4 *header = (struct cv_ipv4 *)ip;

	if (ip == NULL)
		return NULL;
	if (v6) {
		cv_icmpv6_header(ip, probe->source->bytes, probe->to->bytes, len, HOPS);
		((struct cv_ipv6 *)ip)->next = proto;
		return ip;
	}
	header->version_ihl = 0x45;
	header->total_len = rte_cpu_to_be_16((uint16_t)(CV_IPV4_LEN + len));
	header->fragment = CV_IPV4_DF;
	header->ttl = HOPS;
	header->proto = proto;
	memcpy(ip + 12, probe->source->bytes, 4);
	memcpy(ip + 16, probe->to->bytes, 4);
	header->checksum = cv_checksum(ip, CV_IPV4_LEN);
	return ip;
}

// Layer 4's checksum, whose field is zero.
static void finish(uint8_t *ip, bool v6, uint8_t proto, uint16_t len, unsigned checksum_at)
{
	uint8_t *l4 = ip + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN);
	uint64_t sum = cv_checksum_add(0, l4, len);
	rte_be16_t checksum;

	if (v6 || proto != IPPROTO_ICMP) {
		sum += cv_checksum_add(0, ip + (v6 ? 8 : 12), v6 ? 32 : 8);
		sum += rte_cpu_to_be_16(proto);
		sum += rte_cpu_to_be_16(len);
	}
	checksum = (rte_be16_t)~cv_checksum_fold(sum);
	memcpy(l4 + checksum_at, &checksum, sizeof(checksum));
}

static bool send_link(struct cv_nf_worker *worker, const struct cv_probe *of)
{
	uint8_t group_mac[CV_MAC_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct cv_probe probe = *of;
	struct cv_nd nd = {.type = CV_ND_SOLICITATION, .has_mac = true};
	rte_be32_t from, to;
	uint8_t *at;

	probe.mac = group_mac;
	if (!of->to->v6) {
		at = begin(worker, &probe, CV_PROTO_ARP, CV_ARP_LEN);
		if (at == NULL)
			return false;
		memcpy(&from, of->source->bytes, 4);
		memcpy(&to, of->to->bytes, 4);
		cv_arp_write(at, CV_ARP_REQUEST, of->own_mac, from, NULL, to);
		return true;
	}
	memcpy(nd.mac, of->own_mac, CV_MAC_LEN);
	memcpy(nd.src, of->source->bytes, 16);
	memcpy(nd.target, of->to->bytes, 16);
	cv_nd_group(nd.target, nd.dst);
	cv_ipv6_group_mac(nd.dst, group_mac);
	at = begin(worker, &probe, rte_cpu_to_be_16(0x86dd), CV_ND_LEN);
	if (at != NULL)
		cv_nd_write(at, &nd);
	return at != NULL;
}

static bool send_echo(struct cv_nf_worker *worker, const struct cv_probe *probe)
{
	const bool v6 = probe->to->v6;
	const uint8_t proto = v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	uint8_t *ip = begin_ip(worker, probe, proto, ECHO_LEN);
	uint8_t *icmp = ip + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN);

	if (ip == NULL)
		return false;
	icmp[0] = v6 ? ECHO_REQUEST_V6 : ECHO_REQUEST;
	put_be16(icmp + 4, ECHO_ID);
	put_be16(icmp + 6, probe->number);
	put_be32(icmp + 8, probe->nonce);
	finish(ip, v6, proto, ECHO_LEN, 2);
	return true;
}

static bool send_tcp(
	struct cv_nf_worker *worker, const struct cv_probe *probe, uint32_t sequence, uint8_t flags)
{
	const bool v6 = probe->to->v6;
	uint8_t *ip = begin_ip(worker, probe, IPPROTO_TCP, TCP_LEN);
	uint8_t *tcp = ip + (v6 ? CV_IPV6_LEN : CV_IPV4_LEN);

	if (ip == NULL)
		return false;
	put_be16(tcp, (uint16_t)(FIRST_PORT + probe->number));
	put_be16(tcp + 2, probe->tcp_port);
	put_be32(tcp + 4, sequence);
	tcp[12] = TCP_LEN / 4 << 4;
	tcp[13] = flags;
	put_be16(tcp + 14, UINT16_MAX);
	finish(ip, v6, IPPROTO_TCP, TCP_LEN, 16);
	return true;
}

bool cv_probe_send(struct cv_nf_worker *worker, const struct cv_probe *probe)
{
	switch (probe->kind) {
	case CV_PROBE_LINK:
		return send_link(worker, probe);
	case CV_PROBE_ICMP:
		return send_echo(worker, probe);
	default:
		return send_tcp(worker, probe, probe->nonce, SYN);
	}
}

void cv_probe_reset(struct cv_nf_worker *worker, const struct cv_probe *probe)
{
	send_tcp(worker, probe, probe->nonce + 1, RST);
}

static struct cv_answered read_echo(const uint8_t *icmp, unsigned len, uint8_t reply)
{
	if (len < ECHO_LEN || icmp[0] != reply || cv_load_be16(icmp + 4) != RTE_BE16(ECHO_ID))
		return (struct cv_answered){.answer = CV_ANSWER_NONE};
	return (struct cv_answered){.answer = CV_ANSWER_GOOD,
		.kind = CV_PROBE_ICMP,
		.number = rte_be_to_cpu_16(cv_load_be16(icmp + 6)),
		.nonce = get_be32(icmp + 8)};
}

static struct cv_answered read_tcp(const uint8_t *tcp, unsigned len)
{
	const unsigned to = len < TCP_LEN ? 0 : rte_be_to_cpu_16(cv_load_be16(tcp + 2));
	const uint8_t flags = to < FIRST_PORT ? 0 : tcp[13] & (SYN | RST | ACK);

	if (flags != (SYN | ACK) && flags != (RST | ACK))
		return (struct cv_answered){.answer = CV_ANSWER_NONE};
	return (struct cv_answered){.answer = flags & SYN ? CV_ANSWER_GOOD : CV_ANSWER_BAD,
		.kind = CV_PROBE_TCP,
		.number = (uint16_t)(to - FIRST_PORT),
		.nonce = get_be32(tcp + 8) - 1};
}

struct cv_answered cv_answer_read(
	const struct cv_flow_tuple *tuple, const struct cv_view *view, unsigned l4)
{
	const bool v6 = tuple->family == 6;
	const uint8_t *at = view->data + l4;
	const unsigned len = view->len - l4;
	struct cv_answered answered = {.answer = CV_ANSWER_NONE};
	struct cv_nd nd;

	if (tuple->proto == IPPROTO_TCP)
		answered = read_tcp(at, len);
	else if (!v6 && tuple->proto == IPPROTO_ICMP)
		answered = read_echo(at, len, ECHO_REPLY);
	else if (v6 && tuple->proto == IPPROTO_ICMPV6 && len > 0 && at[0] == ECHO_REPLY_V6)
		answered = read_echo(at, len, ECHO_REPLY_V6);
	else if (v6 && cv_nd_read(view->data + view->l3, view->len - view->l3, &nd) &&
		 nd.type == CV_ND_ADVERTISEMENT)
		answered = (struct cv_answered){.answer = CV_ANSWER_GOOD, .kind = CV_PROBE_LINK};
	answered.from.v6 = v6;
	memcpy(answered.from.bytes, &tuple->src, v6 ? 16 : 4);
	return answered;
}

static bool resolve_ipv4(struct cv_nf_worker *worker, const struct cv_view *view,
	const struct cv_address *own, const uint8_t *own_mac)
{
	struct cv_arp arp;
	rte_be32_t address;
	uint8_t *data;

	memcpy(&address, own->bytes, 4);
	if (!cv_arp_read(view->data + view->l3, view->len - view->l3, &arp) ||
		arp.operation != RTE_BE16(CV_ARP_REQUEST) || arp.target != address)
		return false;
	data = cv_nf_originate(
		worker, CV_ETHER_LEN + CV_ARP_LEN, view->in, view->in, CV_NF_BY_PORT);
	if (data == NULL)
		return true;
	memcpy(data, arp.sender_mac, CV_MAC_LEN);
	memcpy(data + CV_MAC_LEN, own_mac, CV_MAC_LEN);
	memcpy(data + 12, &(rte_be16_t){CV_PROTO_ARP}, 2);
	cv_arp_write(
		data + CV_ETHER_LEN, CV_ARP_REPLY, own_mac, address, arp.sender_mac, arp.sender);
	return true;
}

static bool resolve_ipv6(struct cv_nf_worker *worker, const struct cv_view *view,
	const struct cv_address *own, const uint8_t *own_mac)
{
	static const uint8_t unspecified[16];
	const rte_be16_t type = rte_cpu_to_be_16(0x86dd);
	struct cv_nd nd, answer = {.type = CV_ND_ADVERTISEMENT,
				 .flags = CV_ND_SOLICITED | CV_ND_OVERRIDE,
				 .has_mac = true};
	uint8_t *data;

	if (!cv_nd_read(view->data + view->l3, view->len - view->l3, &nd) ||
		nd.type != CV_ND_SOLICITATION || memcmp(nd.target, own->bytes, 16) != 0 ||
		memcmp(nd.src, unspecified, 16) == 0)
		return false;
	data = cv_nf_originate(worker, CV_ETHER_LEN + CV_ND_LEN, view->in, view->in, CV_NF_BY_PORT);
	if (data == NULL)
		return true;
	memcpy(data, view->data + CV_MAC_LEN, CV_MAC_LEN);
	memcpy(data + CV_MAC_LEN, own_mac, CV_MAC_LEN);
	memcpy(data + 12, &type, sizeof(type));
	memcpy(answer.mac, own_mac, CV_MAC_LEN);
	memcpy(answer.src, own->bytes, 16);
	memcpy(answer.dst, nd.src, 16);
	memcpy(answer.target, own->bytes, 16);
	cv_nd_write(data + CV_ETHER_LEN, &answer);
	return true;
}

bool cv_probe_resolve(struct cv_nf_worker *worker, const struct cv_view *view,
	const struct cv_address *own, const uint8_t *own_mac)
{
	if (view->proto == CV_PROTO_ARP)
		return !own->v6 && resolve_ipv4(worker, view, own, own_mac);
	return view->proto == CV_PROTO_IPV6 && own->v6 && resolve_ipv6(worker, view, own, own_mac);
}
