// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/router/rtnetlink.h"

#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/if_addr.h>
#include <linux/lwtunnel.h>
#include <linux/rtnetlink.h>

#include "packet/ipv4.h"
#include "packet/ipv6.h"

#define METRIC_DEFAULT_V6 1024u

static unsigned address_len(bool v6)
{
	return v6 ? 16 : 4;
}

// An attribute's address, of the family.
static bool read_address(const struct rtattr *attr, bool v6, struct cv_address *address)
{
	if (RTA_PAYLOAD(attr) != address_len(v6))
		return false;
	*address = (struct cv_address){.v6 = v6};
	memcpy(address->bytes, RTA_DATA(attr), address_len(v6));
	return true;
}

static bool read_u32(const struct rtattr *attr, uint32_t *value)
{
	if (RTA_PAYLOAD(attr) != sizeof(*value))
		return false;
	memcpy(value, RTA_DATA(attr), sizeof(*value));
	return true;
}

// RTA_VIA: a next hop of another family than the prefix (RFC 8950).
static bool read_via(const struct rtattr *attr, struct cv_address *address)
{
	const struct rtvia *via = RTA_DATA(attr);
	bool v6;

	if (RTA_PAYLOAD(attr) < sizeof(*via) ||
		(via->rtvia_family != AF_INET && via->rtvia_family != AF_INET6))
		return false;
	v6 = via->rtvia_family == AF_INET6;
	if (RTA_PAYLOAD(attr) != sizeof(*via) + address_len(v6))
		return false;
	*address = (struct cv_address){.v6 = v6};
	memcpy(address->bytes, via->rtvia_addr, address_len(v6));
	return true;
}

// Whether packets to a next hop get another header on the way (lightweight tunnels).
static bool is_encap(const struct rtattr *attr)
{
	uint16_t type;

	if (RTA_PAYLOAD(attr) != sizeof(type))
		return true;
	memcpy(&type, RTA_DATA(attr), sizeof(type));
	return type != LWTUNNEL_ENCAP_NONE;
}

// Takes what an attribute says of a next hop. False: it is broken.
static bool read_hop(const struct rtattr *attr, bool v6, struct cv_kernel_next_hop *hop)
{
	uint32_t interface;

	switch (attr->rta_type & NLA_TYPE_MASK) {
	case RTA_GATEWAY:
		hop->has_via = true;
		return read_address(attr, v6, &hop->via);
	case RTA_VIA:
		hop->has_via = true;
		return read_via(attr, &hop->via);
	case RTA_OIF:
		if (!read_u32(attr, &interface))
			return false;
		hop->interface = (int)interface;
		return true;
	case RTA_ENCAP_TYPE:
		hop->dead |= is_encap(attr);
		return true;
	default:
		return true;
	}
}

static bool is_dead(unsigned flags)
{
	return flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN);
}

static bool read_hops(const struct rtattr *multipath, bool v6, struct cv_kernel_route *route)
{
	const struct rtnexthop *next = RTA_DATA(multipath);
	int left = (int)RTA_PAYLOAD(multipath);

	// RTNH_OK() reads a length that may not be there.
	for (route->hops = 0; left >= (int)sizeof(*next) && RTNH_OK(next, left);
		next = RTNH_NEXT(next)) {
		struct cv_kernel_next_hop hop = {.interface = next->rtnh_ifindex,
			.weight = (uint16_t)(next->rtnh_hops + 1),
			.dead = is_dead(next->rtnh_flags)};
		const struct rtattr *attr = RTNH_DATA(next);
		int bytes = next->rtnh_len - (int)RTNH_LENGTH(0);

		for (; RTA_OK(attr, bytes); attr = RTA_NEXT(attr, bytes))
			if (!read_hop(attr, v6, &hop))
				return false;
		if (route->hops < CV_ROUTE_PATHS_MAX)
			route->hop[route->hops++] = hop;
		left -= (int)NLMSG_ALIGN(next->rtnh_len);
	}
	return route->hops > 0;
}

// Whether the router forwards to an address of such a prefix, or answers at it.
static bool is_ours(const struct cv_prefix *prefix)
{
	const uint8_t *bytes = prefix->address.bytes;
	rte_be32_t v4;

	if (prefix->address.v6)
		return !(bytes[0] == 0xff ||
			 (prefix->length >= 10 && cv_ipv6_is_link_local(bytes)) ||
			 (prefix->length == 128 && cv_ipv6_martian(bytes)));
	memcpy(&v4, bytes, sizeof(v4));
	if (bytes[0] == 0 && prefix->length < 8)
		return true; // more than 0/8
	return !(cv_ipv4_multicast(v4) || cv_ipv4_martian(v4));
}

static bool kind_of(const struct rtmsg *header, uint32_t table, uint8_t *kind)
{
	static const int16_t kinds[] = {
		[RTN_UNICAST] = CV_KERNEL_UNICAST + 1,
		[RTN_LOCAL] = CV_KERNEL_LOCAL + 1,
		[RTN_BLACKHOLE] = CV_KERNEL_BLACKHOLE + 1,
		[RTN_UNREACHABLE] = CV_KERNEL_UNREACHABLE + 1,
		[RTN_PROHIBIT] = CV_KERNEL_PROHIBIT + 1,
		[RTN_THROW] = CV_KERNEL_UNREACHABLE + 1, // to tables that are not mirrored
	};

	if (header->rtm_type >= sizeof(kinds) / sizeof(kinds[0]) || kinds[header->rtm_type] == 0)
		return false;
	*kind = (uint8_t)(kinds[header->rtm_type] - 1);
	// Addresses of its own stand in a table of their own.
	return table == (*kind == CV_KERNEL_LOCAL ? RT_TABLE_LOCAL : RT_TABLE_MAIN);
}

bool cv_rtnetlink_route(const struct nlmsghdr *message, struct cv_kernel_route *route)
{
	const struct rtmsg *header = NLMSG_DATA(message);
	const struct rtattr *attr;
	struct cv_kernel_next_hop single = {.weight = 1};
	int left = (int)message->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*header));
	uint32_t table;
	bool v6, several = false;

	if (left < 0 || (header->rtm_family != AF_INET && header->rtm_family != AF_INET6))
		return false;
	v6 = header->rtm_family == AF_INET6;
	table = header->rtm_table;
	*route = (struct cv_kernel_route){.replaces = message->nlmsg_flags & NLM_F_REPLACE};
	route->prefix = (struct cv_prefix){.address.v6 = v6, .length = header->rtm_dst_len};
	if (header->rtm_dst_len > (v6 ? 128 : 32) || header->rtm_src_len != 0 ||
		header->rtm_tos != 0 || (header->rtm_flags & RTM_F_CLONED))
		return false;
	single.dead = is_dead(header->rtm_flags);
	for (attr = RTM_RTA(header); RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		bool sound = true;

		switch (attr->rta_type & NLA_TYPE_MASK) {
		case RTA_DST:
			sound = read_address(attr, v6, &route->prefix.address);
			break;
		case RTA_PRIORITY:
			sound = read_u32(attr, &route->metric);
			break;
		case RTA_TABLE:
			sound = read_u32(attr, &table);
			break;
		case RTA_MULTIPATH:
			sound = several = read_hops(attr, v6, route);
			break;
		default:
			sound = read_hop(attr, v6, &single);
		}
		if (!sound)
			return false;
	}
	if (!several) {
		route->hop[0] = single;
		route->hops = 1;
	}
	cv_prefix_mask(&route->prefix);
	if (!kind_of(header, table, &route->kind) || !is_ours(&route->prefix))
		return false;
	if (route->kind == CV_KERNEL_LOCAL)
		route->metric = 0; // its table is looked at first
	else if (v6 && route->metric == 0)
		route->metric = METRIC_DEFAULT_V6;
	return true;
}

static void begin(struct cv_rtnetlink_request *request, uint16_t type, uint16_t flags, size_t body)
{
	memset(request, 0, sizeof(*request));
	request->header.nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	request->header.nlmsg_type = type;
	request->header.nlmsg_flags = NLM_F_REQUEST | flags;
}

static void add(struct cv_rtnetlink_request *request, uint16_t type, const void *data, size_t len)
{
	struct rtattr *attr =
		(struct rtattr *)((uint8_t *)request + NLMSG_ALIGN(request->header.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(attr), data, len);
	request->header.nlmsg_len =
		(uint32_t)(NLMSG_ALIGN(request->header.nlmsg_len) + RTA_ALIGN(attr->rta_len));
}

void cv_rtnetlink_dump_routes(struct cv_rtnetlink_request *request, uint32_t sequence)
{
	begin(request, RTM_GETROUTE, NLM_F_DUMP, sizeof(struct rtmsg));
	request->header.nlmsg_seq = sequence;
}

void cv_rtnetlink_set_link(struct cv_rtnetlink_request *request, int interface,
	const uint8_t mac[CV_MAC_LEN], uint32_t mtu)
{
	struct ifinfomsg *link = NLMSG_DATA(&request->header);

	begin(request, RTM_NEWLINK, NLM_F_ACK, sizeof(*link));
	link->ifi_index = interface;
	link->ifi_flags = link->ifi_change = IFF_UP | IFF_NOARP;
	add(request, IFLA_ADDRESS, mac, CV_MAC_LEN);
	add(request, IFLA_MTU, &mtu, sizeof(mtu));
}

void cv_rtnetlink_add_address(struct cv_rtnetlink_request *request, int interface,
	const struct cv_address *address, uint8_t length)
{
	struct ifaddrmsg *header = NLMSG_DATA(&request->header);

	begin(request, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, sizeof(*header));
	header->ifa_family = address->v6 ? AF_INET6 : AF_INET;
	header->ifa_prefixlen = length;
	header->ifa_flags = address->v6 ? IFA_F_NODAD : 0;
	header->ifa_index = (uint32_t)interface;
	add(request, IFA_LOCAL, address->bytes, address_len(address->v6));
	add(request, IFA_ADDRESS, address->bytes, address_len(address->v6));
	if (!address->v6 && length <= 30) {
		uint8_t all[4];

		memcpy(all, address->bytes, sizeof(all));
		for (unsigned bit = length; bit < 32; bit++)
			all[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		add(request, IFA_BROADCAST, all, sizeof(all));
	}
}
