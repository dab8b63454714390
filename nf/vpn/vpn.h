// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the parts of the function vpn share: an instance, and its verdicts.
#ifndef CV_VPN_H
#define CV_VPN_H

#include "nf/firewall/choice.h"
#include "nf/tell.h"
#include "nf/vpn/sa.h"

#define CV_VPN_POLICIES_MAX 4096
#define CV_VPN_LOCALS_MAX 16 // addresses of the node that tunnels end at
#define CV_ESP_LEN 16 // SPI, sequence number, IV
#define CV_ESP_TRAILER_LEN 2 // padding's length, next header
#define CV_ESP_ALIGN 4

enum cv_vpn_drop {
	CV_VPN_BAD_HEADER,
	CV_VPN_DISCARDED,
	CV_VPN_UNPROTECTED,
	CV_VPN_NO_SA,
	CV_VPN_TTL_EXPIRED,
	CV_VPN_TOO_BIG,
	CV_VPN_NO_ROOM,
	CV_VPN_EXPIRED,
	CV_VPN_SEQUENCE_OVERFLOW,
	CV_VPN_FRAGMENT,
	CV_VPN_BAD_ESP,
	CV_VPN_REPLAYED,
	CV_VPN_BAD_TAG,
	CV_VPN_WRONG_POLICY,
	CV_VPN_CONGESTED,
	CV_VPN_UNKNOWN_SUBTYPE,
	CV_VPN_BAD_BLOCK,
	CV_VPN_OUT_OF_SEQUENCE,
};

enum cv_vpn_action { CV_VPN_PROTECT, CV_VPN_BYPASS, CV_VPN_DISCARD };

struct cv_vpn_policy {
	enum cv_vpn_action action;
	const struct cv_sa *out; // CV_VPN_PROTECT: that packets go out by; NULL: none
	char *name; // NULL: none
};

// Inbound associations by SPI, at most a quarter full.
struct cv_spi_table {
	uint32_t mask;
	struct cv_spi_place {
		uint32_t spi; // 0: free
		uint32_t sa;
	} * place;
};

struct cv_vpn {
	bool is_outside[CV_PORTS_MAX];
	uint16_t mtu; // the longest packet outside; 0: the least of the ports'
	uint16_t udp_port;
	uint32_t icmp_rate;
	struct cv_choice outbound, inbound; // the second with sources and destinations exchanged
	struct cv_vpn_policy *policy; // by rule + 1; 0: the default
	size_t policies;
	struct cv_sa *sa;
	size_t sas;
	bool has_plain; // an association out that does not aggregate
	struct cv_spi_table spis;
	struct cv_address local[CV_VPN_LOCALS_MAX]; // of inbound associations, each once
	unsigned locals;
	struct cv_teller teller;
};

// The inbound association of an SPI, or NULL.
static CV_INLINE const struct cv_sa *cv_vpn_find(const struct cv_vpn *vpn, uint32_t spi)
{
	const struct cv_spi_place *place;

	for (uint32_t at = spi * UINT32_C(0x9e3779b1) >> 16;; at++) {
		place = &vpn->spis.place[at & vpn->spis.mask];
		if (place->spi == 0) // 0 itself is never in use
			return NULL;
		if (CV_LIKELY(place->spi == spi))
			return &vpn->sa[place->sa];
	}
}

// Reads the associations of a file that only its owner may read, one a line (sa_file.c), and gets their
// states. Returns 0, or a negative errno with error set.
int cv_vpn_read_sas(struct cv_vpn *vpn, const char *path, const struct cv_vpn *running,
	const struct cv_nf_env *env, struct cv_error *error);

// A burst of packets from inside, or from outside. As a function's process().
uint16_t cv_vpn_seal(struct cv_vpn *vpn, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n);
uint16_t cv_vpn_open(struct cv_vpn *vpn, struct cv_nf_worker *worker, struct cv_view *view,
	uint8_t *verdict, uint16_t n);

#endif
