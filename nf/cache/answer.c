// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_prefetch.h>

#include "nf/cache/worker.h"

#define GROUP 16 // queries whose look-ups overlap
#define TTL 64
#define TOUCHED 4 // lines of an answer that are asked for ahead

// A query on its way to an answer.
struct lookup {
	struct cv_datagram datagram;
	struct cv_dns_question question;
	uint16_t at; // of the burst
	uint64_t hash;
	struct cv_cache_answer *candidate;
	struct cv_cache_key key;
};

static CV_INLINE uint64_t load64(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

// Eight bytes of a name in lower case. Labels' lengths, up to 63, are no letters.
static CV_INLINE uint64_t lower(uint64_t word)
{
	const uint64_t ones = 0x0101010101010101, low = word & 0x7f * ones;
	const uint64_t from_a = low + (0x80 - 'A') * ones, behind_z = low + (0x80 - 'Z' - 1) * ones;

	return word | (from_a & ~behind_z & ~word & 0x80 * ones) >> 2;
}

static CV_INLINE void make_key(struct cv_cache_key *key, const struct cv_view *view,
	const uint8_t *server, bool v6, const struct cv_dns_question *question)
{
	const unsigned len = question->name_len;
	uint64_t word;
	unsigned at;

	memset(key->server, 0, sizeof(key->server));
	memcpy(key->server, server, 4);
	if (v6)
		memcpy(key->server, server, 16);
	cv_cache_tags(view, key->tags);
	key->type = question->type;
	key->query_flags = question->query_flags | (v6 ? CV_CACHE_IPV6 : 0);
	key->name_len = question->name_len;
	for (at = 0; at + 8 <= len; at += 8) {
		word = lower(load64(question->name + at));
		memcpy(key->name + at, &word, sizeof(word));
	}
	if (at < len) { // a message has 12 bytes before its question
		word = lower(load64(question->name + len - 8)) >> 8 * (8 - (len - at));
		memcpy(key->name + at, &word, sizeof(word));
	}
}

void cv_cache_make_key(struct cv_cache_key *key, const struct cv_view *view, const uint8_t *server,
	bool v6, const struct cv_dns_question *question)
{
	make_key(key, view, server, v6, question);
}

static CV_INLINE bool is_same(const struct cv_cache_answer *answer, const struct lookup *lookup)
{
	const size_t len = cv_cache_key_len(&lookup->key);
	const uint8_t *one = answer->bytes, *other = (const uint8_t *)&lookup->key;
	uint64_t differ = answer->key_len ^ len;

	for (size_t at = 0; differ == 0 && at < len; at += 8)
		differ = load64(one + at) ^ load64(other + at);
	return differ == 0;
}

// Headers of an answer of len bytes of UDP at its place, without UDP's checksum.
static CV_INLINE void put_headers(
	uint8_t *out, const struct cv_view *view, const struct cv_datagram *datagram, uint16_t len)
{
	const struct cv_udp udp = {
		.sport = datagram->udp->dport,
		.dport = datagram->udp->sport,
		.len = rte_cpu_to_be_16(len),
	};

	memcpy(out, view->data + CV_MAC_LEN, CV_MAC_LEN);
	memcpy(out + CV_MAC_LEN, view->data, CV_MAC_LEN);
	memcpy(out + 2 * CV_MAC_LEN, view->data + 2 * CV_MAC_LEN, view->l3 - 2 * CV_MAC_LEN);
	out += view->l3;
	if (datagram->v6) {
		struct cv_ipv6 ip = {
			.version_class_flow = RTE_BE32(0x60000000),
			.payload_len = rte_cpu_to_be_16(len),
			.next = IPPROTO_UDP,
			.hop_limit = TTL,
		};

		memcpy(ip.src, datagram->ip + 24, 16);
		memcpy(ip.dst, datagram->ip + 8, 16);
		memcpy(out, &ip, sizeof(ip));
		memcpy(out + sizeof(ip), &udp, sizeof(udp));
	} else {
		// Never fragmented, so that it needs no id (RFC 6864): it is short enough.
		struct cv_ipv4 ip = {
			.version_ihl = 0x45,
			.total_len = rte_cpu_to_be_16(CV_IPV4_LEN + len),
			.fragment = CV_IPV4_DF,
			.ttl = TTL,
			.proto = IPPROTO_UDP,
		};

		memcpy(&ip.src, datagram->ip + 16, 4);
		memcpy(&ip.dst, datagram->ip + 12, 4);
		ip.checksum = cv_checksum((const uint8_t *)&ip, sizeof(ip));
		memcpy(out, &ip, sizeof(ip));
		memcpy(out + sizeof(ip), &udp, sizeof(udp));
	}
}

// The message: the asker's id, question and wish for recursion, and what was learned, whose TTLs are less
// by the seconds that went by.
static CV_INLINE void put_message(uint8_t *out, const struct lookup *lookup,
	const struct cv_cache_answer *answer, uint32_t seconds)
{
	const unsigned question_len = lookup->question.name_len + 4u;
	const uint8_t *ttls = answer->bytes + answer->key_len;
	const bool rd = lookup->question.query_flags & CV_DNS_WITH_RD;
	const rte_be16_t flags =
		rte_cpu_to_be_16((uint16_t)((answer->flags & ~CV_DNS_RD) | (rd ? CV_DNS_RD : 0)));
	uint8_t *body = out + CV_DNS_HEADER_LEN + question_len;

	memcpy(out, &lookup->question.id, 2);
	memcpy(out + 2, &flags, 2);
	memcpy(out + 4, &(rte_be16_t){RTE_BE16(1)}, 2);
	memcpy(out + 6, answer->records, sizeof(answer->records));
	memcpy(out + CV_DNS_HEADER_LEN, lookup->question.name, question_len);
	memcpy(body, ttls + answer->ttls * sizeof(uint16_t), answer->body_len);
	for (unsigned i = 0; i < answer->ttls; i++) {
		rte_be32_t ttl;
		uint16_t at;

		memcpy(&at, ttls + i * sizeof(at), sizeof(at));
		memcpy(&ttl, body + at, sizeof(ttl));
		ttl = rte_cpu_to_be_32(rte_be_to_cpu_32(ttl) - seconds);
		memcpy(body + at, &ttl, sizeof(ttl));
	}
}

static CV_INLINE bool answer_one(const struct cv_cache *cache, struct cv_nf_worker *worker,
	const struct cv_view *view, const struct lookup *lookup, struct cv_cache_answer *answer,
	uint64_t clock)
{
	const struct cv_datagram *datagram = &lookup->datagram;
	const unsigned message_len =
		CV_DNS_HEADER_LEN + lookup->question.name_len + 4u + answer->body_len;
	const unsigned ip_len = datagram->v6 ? CV_IPV6_LEN : CV_IPV4_LEN;
	const uint16_t len = (uint16_t)(CV_UDP_LEN + message_len);
	uint8_t *frame, *ip;
	rte_be16_t sum;

	if (message_len > lookup->question.limit || ip_len + len > cache->mtus[view->in] ||
		!cv_datagram_is_sound(datagram))
		return false;
	frame = cv_nf_originate(
		worker, (uint16_t)(view->l3 + ip_len + len), view->in, view->in, CV_NF_BY_PORT);
	if (CV_UNLIKELY(frame == NULL))
		return false;
	put_headers(frame, view, datagram, len);
	ip = frame + view->l3;
	put_message(ip + ip_len + CV_UDP_LEN, lookup, answer,
		(uint32_t)((clock - answer->learned) / CV_CACHE_SECOND));
	sum = (rte_be16_t)~cv_datagram_sum(ip, datagram->v6, ip + ip_len, len);
	if (sum == 0)
		sum = 0xffff; // the same, and not "none"
	memcpy(ip + ip_len + 6, &sum, sizeof(sum));
	answer->used = 1;
	return true;
}

// A query that a cached answer would be for. False: it is something else.
static CV_INLINE bool is_query(const struct cv_cache *cache, struct cv_cache_worker *own,
	const struct cv_view *view, struct lookup *lookup)
{
	if (CV_LIKELY(!cv_datagram_has_port(view, cache->port, false)))
		return false;
	if (CV_LIKELY(cv_datagram_read(view, &lookup->datagram) &&
		      cv_dns_read_query(
			      lookup->datagram.payload, lookup->datagram.len, &lookup->question)))
		return true;
	cv_cache_count(&own->counts.others, 1);
	return false;
}

// The answer that a lookup found, if it is one and still holds.
static CV_INLINE struct cv_cache_answer *choose(
	struct cv_cache_worker *own, const struct lookup *lookup, uint64_t clock)
{
	if (lookup->candidate == NULL || !is_same(lookup->candidate, lookup))
		return NULL;
	if (CV_LIKELY(cv_cache_holds(lookup->candidate, clock)))
		return lookup->candidate;
	cv_cache_store_forget(&own->store, lookup->candidate);
	cv_cache_count(&own->counts.expired, 1);
	return NULL;
}

// Queries of a group are read, then looked up, then answered: each waits for memory while others do.
static CV_INLINE unsigned answer_group(struct cv_cache *cache, struct cv_cache_worker *own,
	struct cv_nf_worker *worker, struct cv_view *view, uint8_t *verdict, unsigned n)
{
	const uint64_t clock = cv_cache_clock(cache, worker->now);
	struct lookup lookups[GROUP];
	unsigned count = 0, hits = 0;

	for (unsigned i = 0; i < n; i++) {
		struct lookup *lookup = &lookups[count];

		verdict[i] = CV_NEXT;
		if (!is_query(cache, own, &view[i], lookup))
			continue;
		lookup->at = (uint16_t)i;
		make_key(&lookup->key, &view[i],
			lookup->datagram.ip + (lookup->datagram.v6 ? 24 : 16), lookup->datagram.v6,
			&lookup->question);
		lookup->hash = cv_cache_hash(cache->state, &lookup->key);
		rte_prefetch0(cv_cache_bucket(&own->store, lookup->hash));
		count++;
	}
	for (unsigned i = 0; i < count; i++) {
		lookups[i].candidate = cv_cache_store_find(&own->store, lookups[i].hash);
		if (lookups[i].candidate == NULL)
			continue;
		for (unsigned line = 0; line < TOUCHED; line++)
			rte_prefetch0(
				RTE_PTR_ADD(lookups[i].candidate, line * RTE_CACHE_LINE_SIZE));
	}
	for (unsigned i = 0; i < count; i++) {
		const struct lookup *lookup = &lookups[i];
		const struct cv_view *of = &view[lookup->at];
		struct cv_cache_answer *answer = choose(own, lookup, clock);

		if (answer != NULL && answer_one(cache, worker, of, lookup, answer, clock)) {
			verdict[lookup->at] = CV_ABSORBED;
			hits++;
			continue;
		}
		cv_cache_pending_put(&own->pending,
			cv_cache_exchange_hash(
				cache->state, of, &lookup->datagram, &lookup->question, false),
			lookup->question.query_flags, (uint32_t)clock);
	}
	if (hits > 0)
		cv_cache_count(&own->counts.hits, hits);
	if (count > hits)
		cv_cache_count(&own->counts.misses, count - hits);
	return hits;
}

CV_HOT uint16_t cv_cache_answer(struct cv_cache *cache, struct cv_cache_worker *own,
	struct cv_nf_worker *worker, struct cv_view *view, uint8_t *verdict, uint16_t n)
{
	unsigned answered = 0;

	for (unsigned at = 0; at < n; at += GROUP)
		answered += answer_group(cache, own, worker, view + at, verdict + at,
			RTE_MIN(n - at, (unsigned)GROUP));
	return (uint16_t)answered;
}
