// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/trial/account.h"

#include <stdlib.h>

#define WINDOW GEN_ACCOUNT_WINDOW

// One hour of latency at 3 digits; loss runs are exact up to 2,047.
#define LATENCY_MAX_NS 3600000000000ull
#define RUN_MAX UINT32_MAX

struct gen_account *gen_account_create(const uint32_t *flow_of, uint32_t period)
{
	struct gen_account *account = calloc(1, sizeof(*account));

	if (account == NULL)
		return NULL;
	account->latency = cv_histogram_create(3, LATENCY_MAX_NS);
	account->bursts = cv_histogram_create(3, RUN_MAX);
	account->flow_of = flow_of;
	account->period = period;
	if (account->latency == NULL || account->bursts == NULL) {
		gen_account_destroy(account);
		return NULL;
	}
	return account;
}

void gen_account_destroy(struct gen_account *account)
{
	if (account == NULL)
		return;
	free(account->latency);
	free(account->bursts);
	free(account);
}

static bool is_missing(const struct gen_account *account, uint32_t seq)
{
	return account->bits[seq % WINDOW / 64] >> (seq % 64) & 1;
}

static void mark(struct gen_account *account, uint32_t seq)
{
	account->bits[seq % WINDOW / 64] |= 1ull << (seq % 64);
	account->missing++;
}

static void unmark(struct gen_account *account, uint32_t seq)
{
	account->bits[seq % WINDOW / 64] &= ~(1ull << (seq % 64));
	account->missing--;
}

static void end_run(struct gen_account *account)
{
	if (account->run > 0)
		cv_histogram_record(account->bursts, account->run);
	account->run = 0;
}

// Losses become final in order of their numbers, so runs are found by counting on.
static void lose(struct gen_account *account, uint32_t seq)
{
	if (account->run > 0 && seq != account->run_next)
		end_run(account);
	account->run++;
	account->run_next = seq + 1;
	account->lost++;
}

// The window moves on over `next`: what leaves it missing is lost.
static void advance(struct gen_account *account)
{
	const uint32_t seq = account->next;

	if (account->missing > 0 && seq >= WINDOW && is_missing(account, seq - WINDOW)) {
		unmark(account, seq - WINDOW);
		lose(account, seq - WINDOW);
	}
	account->next++;
}

static uint32_t flow(const struct gen_account *account, uint32_t seq)
{
	const uint32_t at = seq % account->period;

	return account->flow_of != NULL ? account->flow_of[at] : at;
}

// Was a later packet of the same flow received before this one? Looks from the newest down: the
// newest of all was received, so with few flows the answer is near.
static bool overtaken(const struct gen_account *account, uint32_t seq)
{
	const uint32_t step = account->flow_of != NULL ? 1 : account->period;
	const uint32_t mine = flow(account, seq);
	const uint32_t newest = account->next - 1;
	uint32_t later = newest - (newest - seq) % step;

	for (; later > seq; later -= step)
		if (flow(account, later) == mine && !is_missing(account, later))
			return true;
	return false;
}

bool gen_account_gap(struct gen_account *account, uint32_t seq)
{
	if (seq >= account->next) {
		while (account->next < seq) {
			const uint32_t hole = account->next;

			advance(account);
			mark(account, hole);
		}
		advance(account);
		account->received++;
		return true;
	}
	if (account->next - seq > WINDOW) {
		account->stale++;
		return false;
	}
	if (!is_missing(account, seq)) {
		account->duplicated++;
		return false;
	}
	account->received++;
	if (overtaken(account, seq))
		account->reordered++;
	unmark(account, seq);
	return true;
}

void gen_account_close(struct gen_account *account, uint32_t end)
{
	while (account->next < end) {
		const uint32_t hole = account->next;

		advance(account);
		mark(account, hole);
	}
	const uint32_t first = end > WINDOW ? end - WINDOW : 0;
	for (uint32_t seq = first; seq < end && account->missing > 0; seq++) {
		if (is_missing(account, seq)) {
			unmark(account, seq);
			lose(account, seq);
		}
	}
	end_run(account);
}
