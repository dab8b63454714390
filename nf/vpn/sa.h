// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Security associations (RFC 4301 section 4.4.2): what a key and its sequence numbers are, and what one
// configuration says of them. Instances of the function share the first, so that numbers, windows and
// counters go on when it is reconfigured.
#ifndef CV_VPN_SA_H
#define CV_VPN_SA_H

#include <rte_spinlock.h>

#include "nf/vpn/cipher.h"
#include "nf/vpn/replay.h"
#include "packet/prefix.h"

#define CV_VPN_SAS_MAX 4096
#define CV_VPN_SPI_MIN 256 // those below are reserved (RFC 4303 section 2.1)

// A key in use. Workers write it under the lock, a burst's packets at a time; info() reads counters.
struct cv_sa_state {
	struct cv_cipher cipher;
	rte_spinlock_t lock;
	uint32_t salt; // as it lies in memory
	bool outbound;
	uint64_t sequence; // outbound: the last that was used
	// Outbound: IVs count from here. It is drawn by chance, so that a key that is used again after a
	// start, against RFC 4106, hardly ever meets an IV again.
	uint64_t first_iv;
	uint64_t packets, bytes; // of packets inside
	uint64_t replayed, bad_tags;
	struct cv_replay replay; // inbound
	struct cv_aggfrag *aggfrag; // inbound that aggregates or did; NULL: another
	unsigned owners; // instances; the thread that makes and destroys them counts
	uint32_t spi;
	uint8_t key_len;
	uint8_t key[CV_GCM_KEY_MAX]; // to know it again
};

enum cv_sa_df { CV_SA_DF_COPY, CV_SA_DF_SET, CV_SA_DF_CLEAR };

// Packets or bytes; 0: no limit.
struct cv_sa_limits {
	uint64_t soft_packets, hard_packets, soft_bytes, hard_bytes;
};

#define CV_SA_HEADER_MAX 48 // IPv6 and UDP

// An association as a configuration has it.
struct cv_sa {
	struct cv_sa_state *state;
	bool outbound, esn, has_peer, aggregate;
	enum cv_sa_df df; // outbound
	uint8_t ttl; // outbound
	int16_t dscp; // outbound; -1: as inside
	uint16_t window; // inbound
	uint16_t udp; // outbound: the peer's port; 0: not in UDP
	bool plain; // outbound: its header is IPv4's alone, with the DSCP of inside
	uint8_t header_len; // outbound
	uint8_t header[CV_SA_HEADER_MAX]; // of each packet: IP, and UDP
	uint32_t sum; // of the IPv4 header, as far as it is there
	struct cv_sa_limits limits;
	uint32_t spi;
	uint32_t policy; // its place + 1
	struct cv_address local, peer;
};

// What a new association needs.
struct cv_sa_key {
	uint8_t bytes[CV_GCM_KEY_MAX + CV_GCM_SALT_LEN]; // the salt is behind the key
	uint8_t len; // of the key
};

// Whether a state has an association's direction and SPI, and this key.
bool cv_sa_state_is(
	const struct cv_sa_state *state, const struct cv_sa *sa, const struct cv_sa_key *key);

// The state of an association: that of `running`, of so many, which has the same direction, SPI and key, or a
// new one. NULL: no memory, no random numbers, or no cipher.
struct cv_sa_state *cv_sa_state_get(const struct cv_sa *sa, const struct cv_sa_key *key,
	const struct cv_sa *running, size_t running_count, int socket);
void cv_sa_state_put(struct cv_sa_state *state);

// Writes header and sum of an outbound association. udp_port: that it sends from.
void cv_sa_header_make(struct cv_sa *sa, uint16_t udp_port);

// Why an association takes no packet.
enum cv_sa_refusal { CV_SA_TAKES, CV_SA_EXPIRED, CV_SA_OVERFLOW };

// Gives the next sequence number to each of n packets with so many bytes each, from *first on. Returns how
// many get one; *refusal is why the others do not.
uint16_t cv_sa_reserve(const struct cv_sa *sa, const uint16_t *bytes, uint16_t n, uint64_t *first,
	enum cv_sa_refusal *refusal);

// Whether a limit was reached; hard: one at which packets are dropped.
bool cv_sa_is_over(const struct cv_sa *sa, bool hard);

// Whether an association that has had so many packets and bytes takes another.
bool cv_sa_takes(const struct cv_sa *sa, uint64_t packets, uint64_t bytes);

static inline bool cv_sa_is_limited(const struct cv_sa *sa)
{
	return (sa->limits.hard_packets | sa->limits.hard_bytes) != 0;
}

// The highest sequence number that may be used.
static inline uint64_t cv_sa_last(const struct cv_sa *sa)
{
	return sa->esn ? UINT64_MAX : UINT32_MAX;
}

// Bytes that are authenticated beside a packet: SPI and sequence number (RFC 4106 section 5).
static inline uint32_t cv_sa_with_len(const struct cv_sa *sa)
{
	return sa->esn ? 12 : 8;
}

#endif
