// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What balancer.c is told: services, and who serves them.
#ifndef CV_BALANCER_CONFIG_H
#define CV_BALANCER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/nf.h"
#include "nf/balancer/health.h"
#include "nf/balancer/maglev.h"
#include "nf/balancer/tunnel.h"
#include "packet/ether.h"
#include "packet/prefix.h"

#define CV_SERVICES_MAX 256

enum cv_balancer_mode {
	CV_BALANCER_DSR,
	CV_BALANCER_NAT,
	CV_BALANCER_IPIP,
	CV_BALANCER_GUE,
};

struct cv_service {
	struct cv_address address;
	unsigned proto; // its number; 0: any
	uint16_t port; // 0: any
};

struct cv_backend {
	struct cv_address address;
	const char *dev; // read only
	int out; // the port to it, or -1: as the chain says
	uint32_t weight;
	uint16_t port; // nat: the new one; 0: as it was
	uint8_t mac[CV_MAC_LEN];
	bool drain;
	unsigned index; // in the configuration
};

struct cv_services {
	unsigned count;
	struct cv_service list[CV_SERVICES_MAX];
};

struct cv_backends {
	unsigned count;
	struct cv_backend list[CV_MAGLEV_BACKENDS_MAX];
};

struct cv_balancer_config {
	enum cv_balancer_mode mode;
	uint32_t table_size, seed;
	struct cv_tunnel tunnel;
	struct cv_health_config health;
	bool has_source[2]; // by family
	uint16_t mtu; // 0: that of the ports
	struct cv_services services;
	struct cv_backends backends;
};

extern const struct cv_param cv_balancer_params[];

static inline bool cv_balancer_tunnels(const struct cv_balancer_config *config)
{
	return config->mode == CV_BALANCER_IPIP || config->mode == CV_BALANCER_GUE;
}

// Checks what was read, and sorts backends by address. Returns 0, or -EINVAL with error set.
int cv_balancer_config_check(
	struct cv_balancer_config *config, const struct cv_nf_env *env, struct cv_error *error);

#endif
