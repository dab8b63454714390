// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/vpn/sa.h"

#include <netinet/in.h>
#include <sys/random.h>

#include <rte_malloc.h>

#include "packet/checksum.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/udp.h"

bool cv_sa_state_is(
	const struct cv_sa_state *state, const struct cv_sa *sa, const struct cv_sa_key *key)
{
	return state->outbound == sa->outbound && state->spi == sa->spi &&
	       state->key_len == key->len && memcmp(state->key, key->bytes, key->len) == 0 &&
	       memcmp(&state->salt, key->bytes + key->len, CV_GCM_SALT_LEN) == 0;
}

struct cv_sa_state *cv_sa_state_get(const struct cv_sa *sa, const struct cv_sa_key *key,
	const struct cv_sa *running, size_t running_count, int socket)
{
	struct cv_sa_state *state;

	for (size_t i = 0; i < running_count; i++)
		if (cv_sa_state_is(running[i].state, sa, key)) {
			running[i].state->owners++;
			return running[i].state;
		}
	state = rte_zmalloc_socket("vpn", sizeof(*state), RTE_CACHE_LINE_SIZE, socket);
	if (state == NULL)
		return NULL;
	state->owners = 1;
	state->outbound = sa->outbound;
	state->spi = sa->spi;
	state->key_len = key->len;
	memcpy(state->key, key->bytes, key->len);
	memcpy(&state->salt, key->bytes + key->len, CV_GCM_SALT_LEN);
	rte_spinlock_init(&state->lock);
	if (!cv_cipher_make(&state->cipher, key->bytes, key->len, sa->outbound) ||
		getrandom(&state->first_iv, sizeof(state->first_iv), 0) !=
			(ssize_t)sizeof(state->first_iv)) {
		cv_sa_state_put(state);
		return NULL;
	}
	return state;
}

void cv_sa_state_put(struct cv_sa_state *state)
{
	if (state == NULL || --state->owners > 0)
		return;
	rte_free(state->aggfrag);
	explicit_bzero(state, sizeof(*state));
	rte_free(state);
}

static void make_udp(struct cv_sa *sa, uint8_t *at, uint16_t udp_port)
{
	struct cv_udp *udp = (struct cv_udp *)at;

	udp->sport = rte_cpu_to_be_16(udp_port);
	udp->dport = rte_cpu_to_be_16(sa->udp);
}

void cv_sa_header_make(struct cv_sa *sa, uint16_t udp_port)
{
	const uint8_t proto = sa->udp != 0 ? IPPROTO_UDP : IPPROTO_ESP;

	memset(sa->header, 0, sizeof(sa->header));
	sa->plain = !sa->local.v6 && sa->udp == 0 && sa->dscp < 0;
	if (sa->local.v6) {
		struct cv_ipv6 *ip = (struct cv_ipv6 *)sa->header;

		sa->header_len = CV_IPV6_LEN;
		ip->version_class_flow = RTE_BE32(0x60000000);
		ip->next = proto;
		ip->hop_limit = sa->ttl;
		memcpy(ip->src, sa->local.bytes, sizeof(ip->src));
		memcpy(ip->dst, sa->peer.bytes, sizeof(ip->dst));
	} else {
		struct cv_ipv4 *ip = (struct cv_ipv4 *)sa->header;

		sa->header_len = CV_IPV4_LEN;
		ip->version_ihl = 0x45;
		ip->ttl = sa->ttl;
		ip->proto = proto;
		memcpy(&ip->src, sa->local.bytes, sizeof(ip->src));
		memcpy(&ip->dst, sa->peer.bytes, sizeof(ip->dst));
		sa->sum = cv_checksum_fold(cv_checksum_add(0, sa->header, CV_IPV4_LEN));
	}
	if (sa->udp != 0) {
		make_udp(sa, sa->header + sa->header_len, udp_port);
		sa->header_len += CV_UDP_LEN;
	}
}

static bool is_over(uint64_t value, uint64_t limit)
{
	return limit != 0 && value >= limit;
}

bool cv_sa_is_over(const struct cv_sa *sa, bool hard)
{
	const struct cv_sa_limits *limits = &sa->limits;
	const uint64_t packets = __atomic_load_n(&sa->state->packets, __ATOMIC_RELAXED);
	const uint64_t bytes = __atomic_load_n(&sa->state->bytes, __ATOMIC_RELAXED);

	return is_over(packets, hard ? limits->hard_packets : limits->soft_packets) ||
	       is_over(bytes, hard ? limits->hard_bytes : limits->soft_bytes);
}

bool cv_sa_takes(const struct cv_sa *sa, uint64_t packets, uint64_t bytes)
{
	return !is_over(packets, sa->limits.hard_packets) && !is_over(bytes, sa->limits.hard_bytes);
}

uint16_t cv_sa_reserve(const struct cv_sa *sa, const uint16_t *bytes, uint16_t n, uint64_t *first,
	enum cv_sa_refusal *refusal)
{
	struct cv_sa_state *state = sa->state;
	uint64_t sum;
	uint16_t taken = 0;

	*refusal = CV_SA_TAKES;
	rte_spinlock_lock(&state->lock);
	*first = state->sequence + 1;
	sum = state->bytes;
	for (; taken < n; taken++) {
		if (CV_UNLIKELY(is_over(state->packets + taken, sa->limits.hard_packets) ||
				is_over(sum, sa->limits.hard_bytes))) {
			*refusal = CV_SA_EXPIRED;
			break;
		}
		if (CV_UNLIKELY(state->sequence + taken >= cv_sa_last(sa))) {
			*refusal = CV_SA_OVERFLOW;
			break;
		}
		sum += bytes[taken];
	}
	state->sequence += taken;
	__atomic_store_n(&state->packets, state->packets + taken, __ATOMIC_RELAXED);
	__atomic_store_n(&state->bytes, sum, __ATOMIC_RELAXED);
	rte_spinlock_unlock(&state->lock);
	return taken;
}
