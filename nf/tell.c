// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/tell.h"

#include <rte_cycles.h>

void cv_teller_start(struct cv_teller *teller, const struct cv_nf_env *env, uint32_t rate)
{
	memcpy(teller->macs, env->macs, env->ports_count * sizeof(*env->macs));
	for (unsigned i = 0; i < env->workers; i++)
		teller->worker[i].errors = cv_token_bucket(rate, rte_get_tsc_hz());
}

// Whether an error about the packet may be sent, and how long it is.
static bool may_tell(const struct cv_view *view, const struct cv_icmp_error *error, uint16_t *len)
{
	const uint8_t *ip = view->data + view->l3;
	const bool v6 = view->proto == CV_PROTO_IPV6;

	if (view->before != 0 || cv_mac_group(view->data) || cv_mac_group(view->data + CV_MAC_LEN))
		return false;
	if (v6 ? !cv_icmpv6_allowed(ip, error) : !cv_icmpv4_allowed(ip))
		return false;
	*len = v6 ? cv_icmpv6_error_len(ip) : cv_icmpv4_error_len(ip);
	return true;
}

void cv_teller_tell(struct cv_teller *teller, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct cv_icmp_error *error, const uint8_t *source)
{
	struct cv_teller_worker *own = &teller->worker[worker->index];
	const uint8_t *ip = view->data + view->l3;
	rte_be32_t v4;
	uint16_t len;
	uint8_t *frame;

	if (!may_tell(view, error, &len) || !cv_token_bucket_take(&own->errors, worker->now))
		return;
	frame = cv_nf_originate(worker, view->l3 + len, view->in, view->in, CV_NF_BY_PORT);
	if (frame == NULL)
		return;
	memcpy(frame, view->data + CV_MAC_LEN, CV_MAC_LEN);
	memcpy(frame + CV_MAC_LEN, teller->macs[view->in], CV_MAC_LEN);
	memcpy(frame + 2 * CV_MAC_LEN, view->data + 2 * CV_MAC_LEN, view->l3 - 2 * CV_MAC_LEN);
	if (view->proto == CV_PROTO_IPV6) {
		cv_icmpv6_error(frame + view->l3, ip, error, source);
	} else {
		memcpy(&v4, source, sizeof(v4));
		cv_icmpv4_error(frame + view->l3, ip, error, v4, 0);
	}
	__atomic_store_n(&own->sent, own->sent + 1, __ATOMIC_RELAXED); // with cv_teller_sent()
}

uint64_t cv_teller_sent(const struct cv_teller *teller)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CV_WORKERS_MAX; i++)
		sum += __atomic_load_n(&teller->worker[i].sent, __ATOMIC_RELAXED);
	return sum;
}
