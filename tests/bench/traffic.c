// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "tests/bench/traffic.h"

// A number that looks random and is always the same for the same i (splitmix64).
static uint64_t scramble(uint64_t i)
{
	i += 0x9e3779b97f4a7c15;
	i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9;
	i = (i ^ (i >> 27)) * 0x94d049bb133111eb;
	return i ^ (i >> 31);
}

static uint32_t mask(uint8_t length)
{
	return length == 0 ? 0 : UINT32_MAX << (32 - length);
}

// As in the Internet's tables more than half are /24, most of the rest is shorter; 3 % are longer.
static struct bench_route draw_route(uint64_t seed)
{
	uint64_t number = scramble(seed);
	unsigned percent = number % 100;
	struct bench_route route;

	if (percent < 57)
		route.length = 24;
	else if (percent < 97)
		route.length = 16 + percent % 8;
	else
		route.length = 25 + (number >> 8) % 8;
	// 16.0.0.0 to 111.255.255.255: no private, loopback or multicast addresses.
	route.prefix = ((16u << 24) + (uint32_t)(number >> 32) % (96u << 24)) & mask(route.length);
	route.neighbour = (number >> 16) % BENCH_NEIGHBOURS;
	return route;
}

static int by_prefix(const void *one, const void *two)
{
	const struct bench_route *a = one, *b = two;

	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return a->length - b->length;
}

static void draw_routes(struct bench_route *routes, unsigned n)
{
	unsigned kept = 0;

	for (uint64_t seed = 0; kept < n;) {
		unsigned unique = 0;

		while (kept < n)
			routes[kept++] = draw_route(seed++);
		qsort(routes, n, sizeof(*routes), by_prefix);
		for (unsigned i = 0; i < n; i++)
			if (i == 0 || by_prefix(&routes[i], &routes[unique - 1]) != 0)
				routes[unique++] = routes[i];
		kept = unique;
	}
	// Rules go with routes by number: neither may come sorted.
	for (unsigned i = n - 1; i > 0; i--) {
		unsigned other = scramble(~(uint64_t)i) % (i + 1);
		struct bench_route route = routes[i];

		routes[i] = routes[other];
		routes[other] = route;
	}
}

static struct bench_rule draw_rule(uint64_t seed)
{
	uint64_t number = scramble(seed ^ 0x72756c65);
	struct bench_rule rule = {
		.allow = number % 8 != 7,
		.proto = number >> 8 & 1 ? IPPROTO_UDP : IPPROTO_TCP,
		.source_length = number >> 9 & 1 ? 16 : 24,
		.ports_high = UINT16_MAX,
	};

	// Allowed are sources in 10.0.0.0/8, denied are some of 172.16.0.0/12.
	rule.source = rule.allow ? 10u << 24 | (number >> 16 & 0x3f) << 16
				 : 172u << 24 | (16 + (number >> 16 & 15)) << 16;
	if (rule.source_length == 24)
		rule.source |= (number >> 24 & 0xf) << 8;
	switch (number >> 32 & 3) {
	case 0:
	case 1: // one port
		rule.ports_low = rule.ports_high = 1 + (number >> 40) % 1024;
		break;
	case 2: // some
		rule.ports_low = 1024;
		break;
	default: // any
		break;
	}
	return rule;
}

struct bench_tables *bench_tables_create(unsigned entries)
{
	struct bench_tables *tables = calloc(1, sizeof(*tables));

	if (tables == NULL)
		return NULL;
	tables->entries = entries;
	tables->routes = calloc(entries, sizeof(*tables->routes));
	tables->rules = calloc(entries, sizeof(*tables->rules));
	if (tables->routes == NULL || tables->rules == NULL) {
		bench_tables_destroy(tables);
		return NULL;
	}
	draw_routes(tables->routes, entries);
	for (unsigned i = 0; i < entries; i++)
		tables->rules[i] = draw_rule(i);
	tables->rules[0].allow = true; // even a single rule lets packets through
	return tables;
}

void bench_tables_destroy(struct bench_tables *tables)
{
	if (tables == NULL)
		return;
	free(tables->routes);
	free(tables->rules);
	free(tables);
}

// The header of layer 4, and nothing behind it; a packet of a connection that is open. Its checksum is right.
static void write_l4(const struct rte_ipv4_hdr *ip, uint16_t sport, uint16_t dport, uint8_t *at)
{
	const struct rte_udp_hdr udp = {
		.src_port = rte_cpu_to_be_16(sport),
		.dst_port = rte_cpu_to_be_16(dport),
		.dgram_len = rte_cpu_to_be_16(rte_be_to_cpu_16(ip->total_length) - sizeof(*ip)),
	};
	const struct rte_tcp_hdr tcp = {
		.src_port = udp.src_port,
		.dst_port = udp.dst_port,
		.data_off = sizeof(tcp) / 4 << 4,
		.tcp_flags = RTE_TCP_ACK_FLAG,
		.rx_win = UINT16_MAX,
	};
	const bool is_udp = ip->next_proto_id == IPPROTO_UDP;
	rte_be16_t checksum;

	memcpy(at, is_udp ? (const void *)&udp : &tcp, is_udp ? sizeof(udp) : sizeof(tcp));
	checksum = rte_ipv4_udptcp_cksum(ip, at);
	memcpy(at + (is_udp ? offsetof(struct rte_udp_hdr, dgram_cksum)
			    : offsetof(struct rte_tcp_hdr, cksum)),
		&checksum, sizeof(checksum));
}

void bench_packet_write(
	const struct bench_tables *tables, uint64_t i, uint8_t *frame, uint16_t bytes)
{
	uint64_t number = scramble(i ^ 0x7061636b6574);
	unsigned entry = number % tables->entries;
	struct rte_ether_hdr ether = {
		.dst_addr.addr_bytes = {2, 0xc0, 0x17, 0, 0, 0},
		.src_addr.addr_bytes = {2, 0, 0, 0, 0, 1},
		.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4),
	};
	struct rte_ipv4_hdr ip = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16(bytes - sizeof(ether)),
		.packet_id = (uint16_t)i,
		.time_to_live = 255,
	};

	while (!tables->rules[entry].allow)
		entry = entry == 0 ? tables->entries - 1 : entry - 1;

	const struct bench_rule *rule = &tables->rules[entry];
	const struct bench_route *route = &tables->routes[entry];

	number = scramble(number);
	ip.next_proto_id = rule->proto;
	ip.src_addr =
		rte_cpu_to_be_32(rule->source | ((uint32_t)number & ~mask(rule->source_length)));
	ip.dst_addr =
		rte_cpu_to_be_32(route->prefix | ((uint32_t)(number >> 32) & ~mask(route->length)));
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memset(frame, 0, bytes);
	memcpy(frame, &ether, sizeof(ether));
	memcpy(frame + sizeof(ether), &ip, sizeof(ip));
	number = scramble(number);
	write_l4(&ip, (uint16_t)(1024 + number % 60000),
		(uint16_t)(rule->ports_low +
			   (number >> 16) % (rule->ports_high - rule->ports_low + 1u)),
		frame + sizeof(ether) + sizeof(ip));
}

void bench_neighbour_mac(unsigned neighbour, uint8_t mac[6])
{
	memcpy(mac, (uint8_t[]){2, 0, 0, 0, 1, neighbour}, 6);
}

uint32_t bench_neighbour_address(unsigned neighbour)
{
	return 192u << 24 | 2 << 8 | (1 + neighbour);
}

static json_t *prefix_json(uint32_t address, unsigned length)
{
	return json_sprintf("%u.%u.%u.%u/%u", address >> 24, address >> 16 & 255,
		address >> 8 & 255, address & 255, length);
}

static json_t *address_json(uint32_t address)
{
	return json_sprintf("%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
		address & 255);
}

static json_t *router_config(const struct bench_tables *tables)
{
	json_t *routes = json_array();
	json_t *neighbours = json_array();

	for (unsigned i = 0; i < BENCH_NEIGHBOURS; i++) {
		uint8_t mac[6];

		bench_neighbour_mac(i, mac);
		json_array_append_new(
			neighbours, json_pack("{so so}", "address",
					    address_json(bench_neighbour_address(i)), "mac",
					    json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0],
						    mac[1], mac[2], mac[3], mac[4], mac[5])));
	}
	for (unsigned i = 0; i < tables->entries; i++) {
		const struct bench_route *route = &tables->routes[i];

		json_array_append_new(routes,
			json_pack("{so so ss}", "prefix", prefix_json(route->prefix, route->length),
				"via", address_json(bench_neighbour_address(route->neighbour)),
				"dev", "right"));
	}
	// An address: what a router in a network looks at beside. Not of the port that packets come in
	// by, which would take none that the router has sent on once.
	return json_pack("{s{s[s]} so so}", "addresses", "right", "192.0.2.254/24", "routes",
		routes, "neighbours", neighbours);
}

static json_t *firewall_config(const struct bench_tables *tables)
{
	json_t *rules = json_array();

	for (unsigned i = 0; i < tables->entries; i++) {
		const struct bench_rule *rule = &tables->rules[i];
		const struct bench_route *route = &tables->routes[i];

		json_array_append_new(rules,
			json_pack("{ss so so ss so}", "action", rule->allow ? "allow" : "deny",
				"src", prefix_json(rule->source, rule->source_length), "dst",
				prefix_json(route->prefix, route->length), "proto",
				rule->proto == IPPROTO_UDP ? "udp" : "tcp", "dport",
				json_sprintf("%u-%u", rule->ports_low, rule->ports_high)));
	}
	return json_pack("{ss so}", "default", "deny", "rules", rules);
}

// The firewall's rules, each of which marks.
static json_t *classifier_config(const struct bench_tables *tables)
{
	json_t *firewall = firewall_config(tables), *rules = json_array(), *match;
	size_t i;

	json_array_foreach (json_object_get(firewall, "rules"), i, match) {
		json_object_del(match, "action");
		json_array_append_new(
			rules, json_pack("{sO si}", "match", match, "dscp", (int)(i % 64)));
	}
	json_decref(firewall);
	return json_pack("{so}", "rules", rules);
}

json_t *bench_config(const char *function, const struct bench_tables *tables)
{
	if (strcmp(function, "router") == 0)
		return router_config(tables);
	if (strcmp(function, "firewall") == 0)
		return firewall_config(tables);
	if (strcmp(function, "classifier") == 0)
		return classifier_config(tables);
	return json_pack("{ss ss}", "mode", "rewrite", "dst", "02:00:00:00:02:01");
}
