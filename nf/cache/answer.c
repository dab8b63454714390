// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include <rte_memcpy.h>
#include <rte_prefetch.h>

#include "nf/cache/worker.h"

#define GROUP 32 // queries whose look-ups overlap
#define TTL 64
#define TOUCHED 3 // lines of an answer that are asked for ahead

// A query on its way to an answer.
struct lookup {
	struct cv_datagram datagram;
	struct cv_dns_question question;
	uint8_t at; // of the group
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

// A header of 20 bytes around len more, word by word: whoever reads what was just written in other pieces
// waits for it.
static CV_INLINE void put_ipv4(uint8_t *out, const uint8_t *query, uint16_t len)
{
	// Never fragmented, so that it needs no id (RFC 6864): it is short enough.
	const uint32_t first = 0x45 | (uint32_t)rte_cpu_to_be_16(CV_IPV4_LEN + len) << 16;
	const uint32_t fragment = (uint32_t)CV_IPV4_DF << 16, ttl = TTL | IPPROTO_UDP << 8;
	uint32_t src, dst, sum;

	_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "words are composed here");
	memcpy(&src, query + 16, 4);
	memcpy(&dst, query + 12, 4);
	sum = cv_checksum_fold((uint64_t)first + fragment + ttl + src + dst) ^ 0xffff;
	sum = ttl | sum << 16;
	memcpy(out, &first, 4);
	memcpy(out + 4, &fragment, 4);
	memcpy(out + 8, &sum, 4);
	memcpy(out + 12, &src, 4);
	memcpy(out + 16, &dst, 4);
}

static CV_INLINE void put_ipv6(uint8_t *out, const uint8_t *query, uint16_t len)
{
	const uint32_t first = 0x60;
	const uint32_t second =
		rte_cpu_to_be_16(len) | (uint32_t)IPPROTO_UDP << 16 | (uint32_t)TTL << 24;

	memcpy(out, &first, 4);
	memcpy(out + 4, &second, 4);
	memcpy(out + 8, query + 24, 16);
	memcpy(out + 24, query + 8, 16);
}

// The TTLs of a body become less. Returns what that adds to a sum over the message (RFC 1624); odd: the body
// begins at an odd offset. Bytes that change places are a factor of 256.
static CV_INLINE uint64_t age_ttls(
	uint8_t *body, const struct cv_cache_answer *answer, uint32_t seconds, bool odd)
{
	const uint8_t *ttls = answer->bytes + answer->key_len;
	uint64_t sum = 0;

	for (unsigned i = 0; i < answer->ttls; i++) {
		uint32_t before, after;
		uint16_t at;

		memcpy(&at, ttls + i * sizeof(at), sizeof(at));
		memcpy(&before, body + at, sizeof(before));
		after = rte_cpu_to_be_32(rte_be_to_cpu_32(before) - seconds);
		memcpy(body + at, &after, sizeof(after));
		sum += ((uint64_t)after + (uint32_t)~before) << ((at ^ odd) & 1 ? 8 : 0);
	}
	return sum;
}

// The message: the asker's id, question and wish for recursion, and what was learned, whose TTLs are less
// by the seconds that went by. Returns its sum.
static CV_INLINE uint64_t put_message(uint8_t *out, const struct lookup *lookup,
	const struct cv_cache_answer *answer, uint32_t seconds)
{
	const unsigned question_len = lookup->question.name_len + 4u;
	const uint8_t *learned = answer->bytes + answer->key_len + answer->ttls * sizeof(uint16_t);
	const bool rd = lookup->question.query_flags & CV_DNS_WITH_RD;
	const rte_be16_t flags =
		rte_cpu_to_be_16((uint16_t)((answer->flags & ~CV_DNS_RD) | (rd ? CV_DNS_RD : 0)));
	const uint32_t first = lookup->question.id | (uint32_t)flags << 16;
	const uint32_t second = RTE_BE16(1) | (uint32_t)answer->records[0] << 16;
	const uint32_t third = answer->records[1] | (uint32_t)answer->records[2] << 16;
	uint8_t *body = out + CV_DNS_HEADER_LEN + question_len;
	uint64_t sum = (uint64_t)first + second + third + answer->sum;

	memcpy(out, &first, 4);
	memcpy(out + 4, &second, 4);
	memcpy(out + 8, &third, 4);
	rte_memcpy(out + CV_DNS_HEADER_LEN, lookup->question.name, question_len);
	sum = cv_checksum_add(sum, lookup->question.name, question_len);
	rte_memcpy(body, learned, answer->body_len);
	if (seconds > 0)
		sum += age_ttls(body, answer, seconds, question_len & 1);
	return sum;
}

// UDP and what it carries. Its checksum is there, over IPv4 too.
static CV_INLINE void put_udp(uint8_t *out, const struct lookup *lookup,
	const struct cv_cache_answer *answer, uint16_t len, uint32_t seconds)
{
	const struct cv_datagram *datagram = &lookup->datagram;
	const uint32_t ports = datagram->udp->dport | (uint32_t)datagram->udp->sport << 16;
	const rte_be16_t udp_len = rte_cpu_to_be_16(len);
	uint64_t sum = put_message(out + CV_UDP_LEN, lookup, answer, seconds);
	uint32_t second;

	sum += (uint64_t)ports + 2 * (uint64_t)udp_len + RTE_BE16(IPPROTO_UDP);
	sum = datagram->v6 ? cv_checksum_add(sum, datagram->ip + 8, 32)
			   : cv_checksum_add(sum, datagram->ip + 12, 8);
	second = cv_checksum_fold(sum) ^ 0xffff;
	if (second == 0)
		second = 0xffff; // the same, and not "none"
	second = udp_len | second << 16;
	memcpy(out, &ports, 4);
	memcpy(out + 4, &second, 4);
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

	if (message_len > lookup->question.limit || ip_len + len > cache->mtus[view->in] ||
		!cv_datagram_is_sound(datagram))
		return false;
	frame = cv_nf_originate(
		worker, (uint16_t)(view->l3 + ip_len + len), view->in, view->in, CV_NF_BY_PORT);
	if (CV_UNLIKELY(frame == NULL))
		return false;
	memcpy(frame, view->data + CV_MAC_LEN, CV_MAC_LEN);
	memcpy(frame + CV_MAC_LEN, view->data, CV_MAC_LEN);
	memcpy(frame + 2 * CV_MAC_LEN, view->data + 2 * CV_MAC_LEN, 2);
	if (CV_UNLIKELY(view->l3 > CV_ETHER_LEN))
		memcpy(frame + CV_ETHER_LEN, view->data + CV_ETHER_LEN, view->l3 - CV_ETHER_LEN);
	ip = frame + view->l3;
	if (datagram->v6)
		put_ipv6(ip, datagram->ip, len);
	else
		put_ipv4(ip, datagram->ip, len);
	put_udp(ip + ip_len, lookup, answer, len,
		(uint32_t)((clock - answer->learned) / CV_CACHE_SECOND));
	answer->used = 1;
	return true;
}

// Whether a packet to servers' port is a query that a cached answer would be for.
static CV_INLINE bool read_query(
	struct cv_cache_worker *own, const struct cv_view *view, struct lookup *lookup)
{
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
	uint8_t at[GROUP];
	unsigned queries = 0, count = 0, hits = 0;

	for (unsigned i = 0; i < n; i++) {
		verdict[i] = CV_NEXT;
		if (CV_LIKELY(!cv_datagram_has_port(&view[i], cache->port, false)))
			continue;
		rte_prefetch0(view[i].data + RTE_CACHE_LINE_SIZE); // the name goes on there
		at[queries++] = (uint8_t)i;
	}
	for (unsigned i = 0; i < queries; i++) {
		struct lookup *lookup = &lookups[count];
		const struct cv_view *of = &view[at[i]];

		if (!read_query(own, of, lookup))
			continue;
		lookup->at = at[i];
		make_key(&lookup->key, of, lookup->datagram.ip + (lookup->datagram.v6 ? 24 : 16),
			lookup->datagram.v6, &lookup->question);
		count++;
	}
	for (unsigned i = 0; i < count; i++) {
		lookups[i].hash = cv_cache_hash(cache->state, &lookups[i].key);
		rte_prefetch0(cv_cache_bucket(&own->store, lookups[i].hash));
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
