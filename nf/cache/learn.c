// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "nf/cache/worker.h"

// What is to be asked and answered alike, beside the name in its case.
struct exchange {
	uint8_t client[16], server[16];
	uint16_t tags[2];
	uint16_t client_port, id, type;
	uint8_t v6, name_len;
	uint32_t unused;
	uint8_t name[256];
};

_Static_assert(offsetof(struct exchange, name) % 8 == 0, "hashed as a whole");

uint64_t cv_cache_exchange_hash(const struct cv_cache_state *state, const struct cv_view *view,
	const struct cv_datagram *datagram, const struct cv_dns_question *question, bool is_answer)
{
	const unsigned len = datagram->v6 ? 16 : 4;
	const uint8_t *src = datagram->ip + (datagram->v6 ? 8 : 12), *dst = src + len;
	struct exchange exchange = {
		.client_port = is_answer ? datagram->udp->dport : datagram->udp->sport,
		.id = question->id,
		.type = question->type,
		.v6 = datagram->v6,
		.name_len = question->name_len,
	};

	memcpy(exchange.client, is_answer ? dst : src, len);
	memcpy(exchange.server, is_answer ? src : dst, len);
	cv_cache_tags(view, exchange.tags);
	memcpy(exchange.name, question->name, question->name_len);
	return cv_flow_hash(&state->secret, &exchange,
		offsetof(struct exchange, name) + RTE_ALIGN_CEIL(question->name_len, 8u));
}

// Puts an answer into the store. begin: of what is behind the question.
static void keep(const struct cv_cache *cache, struct cv_cache_worker *own,
	const struct cv_cache_key *key, const uint8_t *message, const struct cv_dns_answer *answer,
	unsigned begin, unsigned len, uint64_t clock)
{
	const size_t key_len = cv_cache_key_len(key), ttls_len = answer->ttls * sizeof(uint16_t);
	struct cv_cache_answer *to =
		cv_cache_store_put(&own->store, cv_cache_hash(cache->state, key),
			sizeof(*to) + key_len + ttls_len + len - begin, clock);
	uint8_t *body = to->bytes + key_len + ttls_len;
	uint16_t sum;

	to->learned = clock;
	to->ttl = answer->ttl;
	to->key_len = (uint16_t)key_len;
	to->body_len = (uint16_t)(len - begin);
	to->ttls = answer->ttls;
	to->flags = rte_be_to_cpu_16(cv_load_be16(message + 2));
	memcpy(to->records, message + 6, sizeof(to->records));
	memcpy(to->bytes, key, key_len);
	for (unsigned i = 0; i < answer->ttls; i++) {
		const uint16_t at = (uint16_t)(answer->ttl_at[i] - begin);

		memcpy(to->bytes + key_len + i * sizeof(at), &at, sizeof(at));
	}
	memcpy(body, message + begin, len - begin);
	if (answer->soa_at != 0) {
		const rte_be32_t ttl = rte_cpu_to_be_32(answer->soa_ttl);

		memcpy(body + answer->soa_at - begin, &ttl, sizeof(ttl));
	}
	sum = cv_checksum_fold(cv_checksum_add(0, body, to->body_len));
	to->sum = begin & 1 ? rte_bswap16(sum) : sum;
}

static enum cv_dns_refused learn(const struct cv_cache *cache, struct cv_cache_worker *own,
	const struct cv_view *view, const struct cv_datagram *datagram, uint64_t clock)
{
	struct cv_dns_question question;
	struct cv_dns_answer answer;
	struct cv_cache_key key;
	enum cv_dns_refused refused;
	int query_flags;

	if (!cv_dns_read_question(datagram->payload, datagram->len, &question))
		return CV_DNS_MALFORMED;
	// Without a checksum nobody would see that a bit of it is wrong, and many would be told.
	if (datagram->udp->checksum == 0 || !cv_datagram_is_sound(datagram))
		return CV_DNS_BAD_CHECKSUM;
	query_flags = cv_cache_pending_take(&own->pending,
		cv_cache_exchange_hash(cache->state, view, datagram, &question, true),
		(uint32_t)clock, CV_CACHE_PENDING_S * CV_CACHE_SECOND);
	if (query_flags < 0)
		return CV_DNS_UNASKED;
	question.query_flags = (uint8_t)query_flags;
	refused = cv_dns_read_answer(
		datagram->payload, datagram->len, &question, question.query_flags, &answer);
	if (refused != CV_DNS_REFUSED)
		return refused;
	answer.ttl = RTE_MIN(answer.ttl, cache->max_ttl_s);
	cv_cache_make_key(
		&key, view, datagram->ip + (datagram->v6 ? 8 : 12), datagram->v6, &question);
	keep(cache, own, &key, datagram->payload, &answer,
		CV_DNS_HEADER_LEN + question.name_len + 4u, datagram->len, clock);
	return CV_DNS_REFUSED;
}

void cv_cache_learn(const struct cv_cache *cache, struct cv_cache_worker *own,
	const struct cv_view *view, uint64_t clock)
{
	struct cv_datagram datagram;
	enum cv_dns_refused refused;

	if (!cv_datagram_has_port(view, cache->port, true) || !cv_datagram_read(view, &datagram))
		return;
	refused = learn(cache, own, view, &datagram, clock);
	cv_cache_count(
		refused == CV_DNS_REFUSED ? &own->counts.learned : &own->counts.refused[refused],
		1);
}
