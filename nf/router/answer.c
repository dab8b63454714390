// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <string.h>

#include "nf/router/kernel.h"
#include "nf/router/network.h"
#include "packet/arp.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/ipv6_headers.h"
#include "packet/neighbour_discovery.h"

static const uint8_t broadcast[CV_MAC_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
#define LINK_SCOPE 2 // of a group, RFC 4291 section 2.7

static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};

static uint16_t ip_id(const struct cv_router_packet *packet)
{
	return cv_network_worker_of(packet->network, packet->worker)->ip_id++;
}

static void count_answer(const struct cv_router_packet *packet)
{
	cv_network_count(&cv_network_worker_of(packet->network, packet->worker)->answered);
}

static void hear(const struct cv_router_packet *packet, const struct cv_address *address,
	const struct cv_neighbour_heard *heard)
{
	const struct cv_neighbour_key key = {.address = *address, .port = packet->view->in};
	const struct cv_neighbour_tags tags = cv_network_tags(packet->view);

	if (cv_network_on_link(packet->network, address, packet->view->in) &&
		!cv_network_own(packet->network, address, packet->view->in))
		cv_neighbour_table_hear(
			&packet->network->table, &key, heard, &tags, packet->worker->now);
}

// Whether a port has the address: the router's own there, or one of the kernel's in its network.
static bool answers_for(
	const struct cv_network *network, const struct cv_address *address, unsigned port)
{
	return cv_network_own(network, address, port) ||
	       (network->kernel != NULL && cv_network_on_link(network, address, port) &&
		       cv_network_local(network, address));
}

static void make_arp(struct cv_network *network, struct cv_nf_worker *worker,
	const struct cv_neighbour_tags *tags, unsigned port, enum cv_arp_operation operation,
	const struct cv_arp *to, rte_be32_t own)
{
	const bool reply = operation == CV_ARP_REPLY;
	uint8_t *l3 = cv_network_make(network, worker, tags, port,
		reply ? to->sender_mac : broadcast, CV_PROTO_ARP, CV_ARP_LEN);

	if (l3 != NULL)
		cv_arp_write(l3, operation, network->port[port].mac, own,
			reply ? to->sender_mac : NULL, reply ? to->sender : own);
}

// Somebody else has one of our addresses. RFC 5227 section 2.4 (c): it is defended, at most every
// ten seconds; here by the next announcement.
static void conflict(const struct cv_router_packet *packet)
{
	struct cv_network_worker *own = cv_network_worker_of(packet->network, packet->worker);

	cv_network_count(&own->conflicts);
	if (own->announcements_left > 0)
		return;
	own->announcements_left = 1;
	own->next_announcement =
		RTE_MAX(own->next_announcement + 8 * packet->network->hz, packet->worker->now);
}

uint8_t cv_network_answer_arp(struct cv_router_packet packet)
{
	const struct cv_view *view = packet.view;
	const uint8_t *own_mac = packet.network->port[view->in].mac;
	const struct cv_neighbour_tags tags = cv_network_tags(view);
	struct cv_neighbour_heard heard = {.has_mac = true};
	struct cv_address sender, target;
	struct cv_arp arp;
	bool request;

	if (!cv_arp_read(cv_router_l3(view), view->len - view->l3, &arp))
		return CV_DROP(CV_ROUTER_BAD_HEADER);
	if (!cv_mac_group(view->data) && memcmp(view->data, own_mac, CV_MAC_LEN) != 0)
		return CV_DROP(CV_ROUTER_OTHER_MAC);
	sender = cv_router_address(false, &arp.sender);
	target = cv_router_address(false, &arp.target);
	if (cv_network_own(packet.network, &sender, view->in)) {
		if (memcmp(arp.sender_mac, own_mac, CV_MAC_LEN) != 0)
			conflict(&packet);
		return CV_ABSORBED;
	}
	request = arp.operation == RTE_BE16(CV_ARP_REQUEST);
	memcpy(heard.mac, arp.sender_mac, CV_MAC_LEN);
	heard.advertised = !request || arp.sender == arp.target;
	heard.solicited = !request && memcmp(view->data, own_mac, CV_MAC_LEN) == 0;
	heard.override = true;
	heard.create = request && answers_for(packet.network, &target, view->in);
	hear(&packet, &sender, &heard);
	if (heard.create) {
		make_arp(packet.network, packet.worker, &tags, view->in, CV_ARP_REPLY, &arp,
			arp.target);
		count_answer(&packet);
	}
	return CV_ABSORBED;
}

// Makes an advertisement of one of our addresses.
static void advertise(struct cv_network *network, struct cv_nf_worker *worker,
	const struct cv_neighbour_tags *tags, unsigned port, const uint8_t *mac,
	const uint8_t *address, const uint8_t *to, uint8_t flags)
{
	struct cv_nd nd = {
		.type = CV_ND_ADVERTISEMENT, .flags = CV_ND_ROUTER | flags, .has_mac = true};
	uint8_t *l3 = cv_network_make(network, worker, tags, port, mac, CV_PROTO_IPV6, CV_ND_LEN);

	memcpy(nd.mac, network->port[port].mac, CV_MAC_LEN);
	memcpy(nd.src, address, 16);
	memcpy(nd.target, address, 16);
	memcpy(nd.dst, to, 16);
	if (l3 != NULL)
		cv_nd_write(l3, &nd);
}

static void answer_solicitation(const struct cv_router_packet *packet, const struct cv_nd *nd)
{
	const struct cv_view *view = packet->view;
	const struct cv_neighbour_tags tags = cv_network_tags(view);
	const struct cv_address source = cv_router_address(true, nd->src);
	struct cv_neighbour_heard heard = {.has_mac = nd->has_mac, .create = true};
	uint8_t mac[CV_MAC_LEN];

	count_answer(packet);
	if (nd->src[0] == 0) { // another wants the address: a probe
		cv_ipv6_group_mac(all_nodes, mac);
		advertise(packet->network, packet->worker, &tags, view->in, mac, nd->target,
			all_nodes, CV_ND_OVERRIDE);
		return;
	}
	memcpy(heard.mac, nd->mac, CV_MAC_LEN);
	hear(packet, &source, &heard);
	memcpy(mac, nd->has_mac ? nd->mac : view->data + CV_MAC_LEN, CV_MAC_LEN);
	advertise(packet->network, packet->worker, &tags, view->in, mac, nd->target, nd->src,
		CV_ND_SOLICITED | CV_ND_OVERRIDE);
}

static void hear_advertisement(const struct cv_router_packet *packet, const struct cv_nd *nd)
{
	const struct cv_address target = cv_router_address(true, nd->target);
	struct cv_neighbour_heard heard = {
		.has_mac = nd->has_mac,
		.advertised = true,
		.solicited = nd->flags & CV_ND_SOLICITED,
		.override = nd->flags & CV_ND_OVERRIDE,
	};

	memcpy(heard.mac, nd->mac, CV_MAC_LEN);
	if (!cv_network_own(packet->network, &target, packet->view->in))
		hear(packet, &target, &heard);
	else if (nd->has_mac &&
		 memcmp(nd->mac, packet->network->port[packet->view->in].mac, CV_MAC_LEN) != 0)
		conflict(packet);
}

// True: the packet is one of neighbour discovery, and sound.
static bool discovered(const struct cv_router_packet *packet)
{
	const struct cv_view *view = packet->view;
	struct cv_address target;
	struct cv_nd nd;

	if (!cv_nd_read(cv_router_l3(view), view->len - view->l3, &nd))
		return false;
	target = cv_router_address(true, nd.target);
	if (nd.type == CV_ND_ADVERTISEMENT)
		hear_advertisement(packet, &nd);
	else if (answers_for(packet->network, &target, view->in))
		answer_solicitation(packet, &nd);
	return true;
}

// Whether it is between routers, hosts and their neighbours: types 133 to 137 of RFC 4861.
static bool is_discovery(const struct cv_router_packet *packet)
{
	const struct cv_ipv6 *ip = (const struct cv_ipv6 *)cv_router_l3(packet->view);
	const uint8_t *type = (const uint8_t *)(ip + 1);

	return ip->next == IPPROTO_ICMPV6 &&
	       packet->view->len - packet->view->l3 > (int)sizeof(*ip) && *type >= 133 &&
	       *type <= 137;
}

// Answers an echo request of len bytes: those that the reply has.
static uint8_t echo(struct cv_router_packet packet, uint16_t len, bool v6)
{
	const uint8_t *ip = cv_router_l3(packet.view);
	const struct cv_address to = cv_router_address(v6, v6 ? ip + 8 : ip + 12);
	const struct cv_neighbour_tags tags = cv_network_tags(packet.view);
	struct cv_adjacency next_hop;
	rte_be32_t own_v4;
	uint8_t *out;

	if (cv_network_resolve(packet, &to, &next_hop) != CV_RESOLVED ||
		len > packet.network->port[next_hop.port].mtu)
		return CV_DROP(CV_ROUTER_NO_NEIGHBOUR);
	out = cv_network_make(packet.network, packet.worker, &tags, next_hop.port, next_hop.mac,
		v6 ? CV_PROTO_IPV6 : CV_PROTO_IPV4, len);
	if (out == NULL)
		return CV_DROP(CV_ROUTER_NO_BUFFER);
	memcpy(&own_v4, ip + 16, sizeof(own_v4));
	if (v6)
		cv_icmpv6_echo(out, ip, ip + 24);
	else
		cv_icmpv4_echo(out, ip, own_v4, ip_id(&packet));
	count_answer(&packet);
	return CV_ABSORBED;
}

static uint8_t answer_ipv4(struct cv_router_packet packet)
{
	const struct cv_ipv4 *ip = (const struct cv_ipv4 *)cv_router_l3(packet.view);
	uint16_t len = cv_icmpv4_echo_len((const uint8_t *)ip);

	if (len != 0)
		return echo(packet, len, false);
	if (packet.network->kernel != NULL)
		return cv_kernel_punt(packet, CV_DROP(CV_ROUTER_NOT_SERVED));
	// What is in fragments would have to be reassembled first.
	if ((ip->fragment & (CV_IPV4_MF | CV_IPV4_OFFSET)) != 0)
		return CV_DROP(CV_ROUTER_NOT_SERVED);
	if (ip->proto == IPPROTO_TCP)
		cv_network_refuse(packet, cv_ipv4_header_len(ip));
	else if (ip->proto != IPPROTO_ICMP)
		cv_network_tell(packet,
			ip->proto == IPPROTO_UDP ? CV_ICMP_PORT_UNREACHABLE
						 : CV_ICMP_PROTOCOL_UNREACHABLE,
			0);
	return CV_DROP(CV_ROUTER_NOT_SERVED);
}

// Tells the sender of an IPv6 packet to one of our addresses what is wrong with it.
static void refuse_ipv6(struct cv_router_packet packet)
{
	uint16_t at;
	uint8_t proto;

	switch (cv_ipv6_read_headers(cv_router_l3(packet.view), &at, &proto)) {
	case CV_IPV6_UPPER:
		if (proto == IPPROTO_TCP)
			cv_network_refuse(packet, at);
		else if (proto == IPPROTO_UDP)
			cv_network_tell(packet, CV_ICMP_PORT_UNREACHABLE, 0);
		return;
	case CV_IPV6_ERRONEOUS:
		cv_network_tell(packet, CV_ICMP_PARAMETER, at);
		return;
	case CV_IPV6_UNKNOWN_HEADER:
		cv_network_tell(packet, CV_ICMP_PROTOCOL_UNREACHABLE, at);
		return;
	case CV_IPV6_UNKNOWN_OPTION:
		cv_network_tell(packet, CV_ICMP_UNKNOWN_OPTION, at);
		return;
	case CV_IPV6_FRAGMENTED:
	case CV_IPV6_DISCARDED:
		return;
	}
}

static uint8_t answer_ipv6(struct cv_router_packet packet)
{
	const struct cv_ipv6 *ip = (const struct cv_ipv6 *)cv_router_l3(packet.view);
	uint16_t len = cv_icmpv6_echo_len((const uint8_t *)ip);

	if (len != 0)
		return echo(packet, len, true);
	if (is_discovery(&packet))
		return discovered(&packet) ? CV_ABSORBED : CV_DROP(CV_ROUTER_NOT_SERVED);
	if (packet.network->kernel != NULL)
		return cv_kernel_punt(packet, CV_DROP(CV_ROUTER_NOT_SERVED));
	refuse_ipv6(packet);
	return CV_DROP(CV_ROUTER_NOT_SERVED);
}

uint8_t cv_network_answer_ip(struct cv_router_packet packet)
{
	return packet.view->proto == CV_PROTO_IPV6 ? answer_ipv6(packet) : answer_ipv4(packet);
}

// Whether an answer can go to such an address.
static bool is_host(const uint8_t *address)
{
	return !cv_ipv6_martian(address) || cv_ipv6_is_link_local(address);
}

uint8_t cv_network_answer_link(struct cv_router_packet packet, uint8_t verdict)
{
	const struct cv_ipv6 *ip = (const struct cv_ipv6 *)cv_router_l3(packet.view);
	const struct cv_address to = cv_router_address(true, ip->dst);

	if (cv_network_own(packet.network, &to, packet.view->in) ||
		(packet.network->kernel != NULL && cv_network_local(packet.network, &to)))
		return is_host(ip->src) ? answer_ipv6(packet) : CV_DROP(CV_ROUTER_MARTIAN);
	if (!cv_ipv6_multicast(ip->dst))
		return verdict;
	if (is_discovery(&packet))
		return discovered(&packet) ? CV_ABSORBED : verdict;
	return (ip->dst[1] & 0xf) == LINK_SCOPE ? cv_kernel_punt(packet, verdict) : verdict;
}

void cv_network_announce(struct cv_network *network, struct cv_nf_worker *worker)
{
	const struct cv_neighbour_tags none = {0};
	uint8_t mac[CV_MAC_LEN];

	cv_ipv6_group_mac(all_nodes, mac);
	for (size_t i = 0; i < network->owns; i++) {
		const struct cv_own_address *own = &network->own[i];
		rte_be32_t v4;

		memcpy(&v4, own->address.bytes, sizeof(v4));
		if (own->address.v6)
			advertise(network, worker, &none, own->port, mac, own->address.bytes,
				all_nodes, CV_ND_OVERRIDE);
		else
			make_arp(network, worker, &none, own->port, CV_ARP_REQUEST, NULL, v4);
	}
}
