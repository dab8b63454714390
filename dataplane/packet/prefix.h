// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// IPv4 and IPv6 addresses and prefixes as people write them.
#ifndef CV_PREFIX_H
#define CV_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#define CV_PREFIX_TEXT 50 // bytes of the longest prefix as text, and its end

struct cv_address {
	uint8_t bytes[16]; // network order; IPv4 uses the first 4, the others are 0
	bool v6;
};

struct cv_prefix {
	struct cv_address address;
	uint8_t length; // bits, to 32 or 128
};

// Reads "192.0.2.1" or "2001:db8::1". Returns 0, or -EINVAL.
int cv_address_parse(const char *text, struct cv_address *address);

// Reads "10.0.0.0/8", "2001:db8::/32", or an address alone: all of its bits. Returns 0, -EINVAL:
// not a prefix, or -EDOM: bits behind the length are set (the prefix is as written, with them).
int cv_prefix_parse(const char *text, struct cv_prefix *prefix);

// Clears the bits behind the length.
void cv_prefix_mask(struct cv_prefix *prefix);

// True if the address is of the prefix's family and inside it.
bool cv_prefix_has(const struct cv_prefix *prefix, const struct cv_address *address);

// Orders as strcmp does: IPv4 before IPv6, then by address, and a prefix by length at last.
int cv_address_compare(const struct cv_address *a, const struct cv_address *b);
int cv_prefix_compare(const struct cv_prefix *a, const struct cv_prefix *b);

// Writes the prefix as it is read, always with its length. Returns text.
char *cv_prefix_text(const struct cv_prefix *prefix, char text[CV_PREFIX_TEXT]);

// Writes an address as it is read. Returns text.
char *cv_address_text(const struct cv_address *address, char text[CV_PREFIX_TEXT]);

#endif
