// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "from_guest.h"

#include "flow.h"
#include "ipv4.h"
#include "ipv6.h"
#include "udp.h"

// The shortest frame that can be a convoy: IPv4, one packet that is nothing but its header.
#define SHORTEST                                                                 \
	(CV_ETHER_LEN + 20 + CV_UDP_LEN + CV_CONVOY_LEN + CV_CONVOY_PREFIX_LEN + \
		CV_CONVOY_PACKET_MIN)

// By its outermost headers.
static CV_INLINE bool looks_like_convoy(
	const struct cv_from_guest *from, const struct cv_view *view)
{
	const uint8_t *l3 = view->data + view->l3;
	unsigned udp = view->l3 + CV_IPV4_LEN;

	if (CV_LIKELY(view->len < SHORTEST))
		return false;
	if (view->proto == CV_PROTO_IPV6)
		udp = view->l3 + CV_IPV6_LEN;
	else if (view->proto != CV_PROTO_IPV4 || l3[0] != 0x45)
		return false;
	return udp + CV_UDP_LEN <= view->len &&
	       l3[view->proto == CV_PROTO_IPV4 ? 9 : 6] == CV_IPPROTO_UDP &&
	       cv_load_be16(view->data + udp + 2) == from->port;
}

static CV_INLINE bool has_convoy(
	const struct cv_from_guest *from, const struct cv_view *views, unsigned count)
{
	bool found = false;

	for (unsigned i = 0; i < count; i++)
		found |= looks_like_convoy(from, &views[i]);
	return found;
}

static void drop_spares(struct cv_from_guest *from)
{
	rte_pktmbuf_free_bulk(from->spare, from->spares);
	from->spares = 0;
}

// Buffers for n frames: those that are not used this time are kept for the next, since n packets
// need a few only. Returns for how many there are.
static CV_INLINE uint16_t get_spares(
	struct cv_from_guest *from, struct rte_mempool *pool, uint16_t n)
{
	if (CV_UNLIKELY(pool != from->pool))
		drop_spares(from);
	from->pool = pool;
	if (from->spares < n &&
		rte_pktmbuf_alloc_bulk(pool, from->spare + from->spares, n - from->spares) == 0)
		from->spares = n;
	return RTE_MIN(from->spares, n);
}

// A gathered buffer becomes a convoy; one packet alone stays what it is.
static CV_INLINE void finish(struct cv_from_guest *from, struct rte_mbuf *mbuf,
	const struct cv_vring_bin *bin, const struct cv_view *first)
{
	const struct cv_outer *outer = from->outer;
	uint32_t len = bin->len;

	if (bin->packets == 1) {
		mbuf->data_off += CV_CONVOY_PREFIX_LEN;
		len -= CV_CONVOY_PREFIX_LEN;
	} else {
		mbuf->data_off -= outer->len;
		len += outer->len;
		cv_outer_write(outer, bin->data - outer->len, (uint8_t)bin->packets, bin->len,
			rte_cpu_to_be_16((uint16_t)(CV_CONVOY_SPORT_MIN +
						    (cv_flow_hash(first) & CV_CONVOY_SPORT_MASK))));
		from->convoys++;
	}
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = len;
}

static void wait(struct cv_from_guest *from, struct rte_mbuf *mbuf)
{
	from->waiting[from->count++] = mbuf;
}

// All packets of a buffer, each as a frame of its own.
static void sort_out(struct cv_from_guest *from, struct rte_mbuf *mbuf,
	const struct cv_vring_bin *bin, const struct cv_view *views)
{
	for (unsigned i = 0; i < bin->packets; i++) {
		struct rte_mbuf *one = rte_pktmbuf_alloc(mbuf->pool);
		char *to = one != NULL ? rte_pktmbuf_append(one, views[i].len) : NULL;

		if (to == NULL) {
			rte_pktmbuf_free(one);
			from->lost++;
			continue;
		}
		memcpy(to, views[i].data, views[i].len);
		wait(from, one);
	}
	rte_pktmbuf_free(mbuf);
}

static uint16_t give_waiting(struct cv_from_guest *from, struct rte_mbuf **frames, uint16_t n)
{
	n = RTE_MIN(n, from->count);
	memcpy(frames, from->waiting + from->first, n * sizeof(*frames));
	from->first += n;
	from->count -= n;
	if (from->count == 0)
		from->first = 0;
	return n;
}

CV_HOT uint16_t cv_from_guest_take(struct cv_from_guest *from, struct cv_vring *vring,
	struct rte_mempool *pool, struct rte_mbuf **frames, uint16_t n)
{
	const struct cv_outer *outer = from->outer;
	struct cv_vring_bin bins[CV_FROM_BURST];
	struct cv_view views[CV_FROM_VIEWS];
	unsigned count, first = 0;
	uint16_t used;
	bool apart;

	if (CV_UNLIKELY(from->count > 0)) {
		n = give_waiting(from, frames, n);
		from->frames += n;
		return n;
	}
	used = cv_vring_ready(vring);
	if (used == 0)
		return 0;
	// The packed ring does not say how many there are.
	used = get_spares(from, pool, vring->is_packed ? n : RTE_MIN(n, used));
	for (uint16_t i = 0; i < used; i++) {
		struct rte_mbuf *mbuf = from->spare[from->spares - 1 - i];

		bins[i].data = rte_pktmbuf_mtod(mbuf, uint8_t *);
		bins[i].room = rte_pktmbuf_tailroom(mbuf);
		// Not even two fit where nothing is to be gathered.
		bins[i].gather =
			outer->len > 0 && !from->apart
				? RTE_MIN(bins[i].room, (uint32_t)outer->frame_max - outer->len)
				: 0;
	}
	count = cv_vring_gather(vring, views, CV_FROM_VIEWS, bins, &used);
	apart = outer->len > 0 && has_convoy(from, views, count);
	for (uint16_t i = 0; i < used; first += bins[i++].packets) {
		struct rte_mbuf *mbuf = from->spare[--from->spares];

		frames[i] = mbuf;
		if (CV_LIKELY(!apart || from->apart))
			finish(from, mbuf, &bins[i], &views[first]);
		else
			sort_out(from, mbuf, &bins[i], &views[first]);
	}
	if (CV_UNLIKELY(apart && !from->apart))
		used = give_waiting(from, frames, n);
	from->apart = apart;
	from->frames += used;
	return used;
}

void cv_from_guest_drop(struct cv_from_guest *from)
{
	drop_spares(from);
	from->lost += from->count;
	rte_pktmbuf_free_bulk(from->waiting + from->first, from->count);
	from->first = from->count = 0;
	from->apart = false;
}
