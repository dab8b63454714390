// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/nsh/transport.h"

#include <errno.h>

#include "nf/config.h"
#include "nf/nsh/header.h"
#include "packet/checksum.h"
#include "packet/flow_hash.h"
#include "packet/prefix.h"

#define HOP_LIMIT 64
#define SPORT_MIN 0xc000 // the dynamic ports, as RFC 7348 section 5 has it
#define SPORT_MASK 0x3fff

const struct cv_param cv_nsh_transport_params[] = {
	{"mac", CV_MAC, CV_AT(struct cv_nsh_transport_config, mac)},
	{"dev", CV_TEXT, CV_AT(struct cv_nsh_transport_config, dev)},
	{"vxlan_gpe", CV_MAP, CV_AT(struct cv_nsh_transport_config, vxlan_gpe)},
	{0},
};

struct tunnel {
	struct cv_address src, dst;
	uint32_t vni;
};

static int read_address(
	const struct cv_where *at, const char *key, const json_t *value, void *member)
{
	const char *text = json_string_value(value);

	if (text == NULL || cv_address_parse(text, member) != 0)
		return cv_where_wrong(at, key, value, "must be an IPv4 or IPv6 address");
	return 0;
}

static const struct cv_param tunnel_params[] = {
	{"src", CV_CUSTOM, CV_AT(struct tunnel, src), .required = true, .read = read_address},
	{"dst", CV_CUSTOM, CV_AT(struct tunnel, dst), .required = true, .read = read_address},
	{"vni", CV_INTEGER, CV_AT(struct tunnel, vni), .high = 0xffffff, .required = true},
	{0},
};

static void set_type(struct cv_nsh_transport *transport, rte_be16_t type)
{
	memcpy(transport->bytes + 2 * CV_MAC_LEN, &type, sizeof(type));
	transport->len = CV_ETHER_LEN;
}

static void set_ipv4(struct cv_nsh_transport *transport, const struct tunnel *tunnel)
{
	struct cv_ipv4 *ip = (struct cv_ipv4 *)(transport->bytes + CV_ETHER_LEN);

	set_type(transport, CV_PROTO_IPV4);
	ip->version_ihl = 0x45;
	ip->fragment = CV_IPV4_DF;
	ip->ttl = HOP_LIMIT;
	ip->proto = IPPROTO_UDP;
	memcpy(&ip->src, tunnel->src.bytes, sizeof(ip->src));
	memcpy(&ip->dst, tunnel->dst.bytes, sizeof(ip->dst));
	transport->len += CV_IPV4_LEN;
}

static void set_ipv6(struct cv_nsh_transport *transport, const struct tunnel *tunnel)
{
	struct cv_ipv6 *ip = (struct cv_ipv6 *)(transport->bytes + CV_ETHER_LEN);

	set_type(transport, CV_PROTO_IPV6);
	ip->version_class_flow = RTE_BE32(0x60000000);
	ip->next = IPPROTO_UDP;
	ip->hop_limit = HOP_LIMIT;
	memcpy(ip->src, tunnel->src.bytes, sizeof(ip->src));
	memcpy(ip->dst, tunnel->dst.bytes, sizeof(ip->dst));
	transport->len += CV_IPV6_LEN;
}

// Behind the IP header: the UDP checksum stays zero, also over IPv6 (RFC 6935).
static void set_vxlan_gpe(struct cv_nsh_transport *transport, uint32_t vni)
{
	struct cv_udp *udp = (struct cv_udp *)(transport->bytes + transport->len);
	uint8_t *vxlan = transport->bytes + transport->len + CV_UDP_LEN;

	udp->dport = CV_VXLAN_GPE_PORT;
	vxlan[0] = CV_VXLAN_GPE_FLAGS;
	vxlan[3] = CV_VXLAN_GPE_NSH;
	vxlan[4] = (uint8_t)(vni >> 16);
	vxlan[5] = (uint8_t)(vni >> 8);
	vxlan[6] = (uint8_t)vni;
	transport->len += CV_UDP_LEN + CV_VXLAN_LEN;
}

static int set_tunnel(
	struct cv_nsh_transport *transport, const struct cv_where *at, const json_t *config)
{
	const struct cv_where where = cv_where_key(at, "vxlan_gpe");
	struct tunnel tunnel;

	if (cv_params_read(&where, config, tunnel_params, &tunnel) != 0)
		return -EINVAL;
	if (tunnel.src.v6 != tunnel.dst.v6)
		return cv_where_error(&where, "src and dst must both be IPv4 or both be IPv6");
	transport->version = tunnel.src.v6 ? 6 : 4;
	if (tunnel.src.v6)
		set_ipv6(transport, &tunnel);
	else
		set_ipv4(transport, &tunnel);
	set_vxlan_gpe(transport, tunnel.vni);
	return 0;
}

int cv_nsh_transport_set(struct cv_nsh_transport *transport, const struct cv_where *at,
	const struct cv_nsh_transport_config *config, const struct cv_nf_env *env)
{
	static const uint8_t none[CV_MAC_LEN];

	*transport = (struct cv_nsh_transport){.out = -1};
	if (memcmp(config->mac, none, CV_MAC_LEN) == 0)
		return cv_where_error(at, "mac: is missing; give that of the next hop");
	if (config->dev != NULL) {
		transport->out = cv_nf_env_port(env, config->dev);
		if (transport->out < 0)
			return cv_config_no_port_at(at, "dev", config->dev, env);
	}
	memcpy(transport->bytes, config->mac, CV_MAC_LEN);
	if (config->vxlan_gpe != NULL)
		return set_tunnel(transport, at, config->vxlan_gpe);
	set_type(transport, CV_PROTO_NSH);
	return 0;
}

// What the packet inside is known by: its addresses and ports, if it is IP.
static uint32_t flow_of(const struct cv_view *view, unsigned at)
{
	const uint8_t *nsh = view->data + at;
	const unsigned inside = at + (nsh[1] & 63) * 4u;
	struct cv_view inner = *view;

	if (nsh[3] == CV_NSH_ETHERNET) {
		cv_view_set(&inner, view->data + inside, (uint16_t)(view->len - inside));
	} else if (inside <= UINT8_MAX) {
		inner.l3 = (uint8_t)inside;
		inner.proto = nsh[3] == CV_NSH_IPV4   ? CV_PROTO_IPV4
			      : nsh[3] == CV_NSH_IPV6 ? CV_PROTO_IPV6
						      : CV_PROTO_NSH;
	}
	return cv_flow_hash(&inner);
}

static void write_macs(const struct cv_nsh_transport *transport, struct cv_view *view,
	const uint8_t (*macs)[CV_MAC_LEN])
{
	if (transport->out >= 0)
		view->out = (uint8_t)transport->out;
	memcpy(view->data, transport->bytes, CV_MAC_LEN);
	memcpy(view->data + CV_MAC_LEN, macs[view->out], CV_MAC_LEN);
}

void cv_nsh_transport_write(const struct cv_nsh_transport *transport, struct cv_view *view,
	const uint8_t (*macs)[CV_MAC_LEN])
{
	const uint16_t ip_len = view->len - CV_ETHER_LEN;
	uint8_t *ip = view->data + CV_ETHER_LEN;
	struct cv_udp *udp;

	memcpy(view->data, transport->bytes, transport->len);
	write_macs(transport, view, macs);
	if (transport->version != 0) {
		udp = (struct cv_udp *)(view->data + transport->len - CV_VXLAN_LEN - CV_UDP_LEN);
		udp->len = rte_cpu_to_be_16((uint16_t)(view->data + view->len - (uint8_t *)udp));
		udp->sport = rte_cpu_to_be_16(
			(uint16_t)(SPORT_MIN | (flow_of(view, transport->len) & SPORT_MASK)));
	}
	if (transport->version == 6) {
		((struct cv_ipv6 *)ip)->payload_len = rte_cpu_to_be_16(ip_len - CV_IPV6_LEN);
	} else if (transport->version == 4) {
		((struct cv_ipv4 *)ip)->total_len = rte_cpu_to_be_16(ip_len);
		((struct cv_ipv4 *)ip)->checksum = cv_checksum(ip, CV_IPV4_LEN);
	}
	cv_view_parse(view);
}

bool cv_nsh_transport_replace(const struct cv_nsh_transport *transport, struct cv_nf_worker *worker,
	struct cv_view *view, unsigned at, const uint8_t (*macs)[CV_MAC_LEN])
{
	if (transport->version == 0 && view->proto == CV_PROTO_NSH) {
		write_macs(transport, view, macs);
		return true;
	}
	if (transport->len > at &&
		cv_nf_prepend(worker, view, (uint16_t)(transport->len - at)) == NULL)
		return false;
	if (transport->len < at && !cv_nf_adj(worker, view, (uint16_t)(at - transport->len)))
		return false;
	cv_nsh_transport_write(transport, view, macs);
	return true;
}
