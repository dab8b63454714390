// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#pragma once

// How far the device's core is from ours: the time that a cache line takes there and back.
//
// Packets between two cores are cache lines between them, and a virtual machine's cores move about:
// behind one level-3 cache now, behind two of them a second later, which makes every hand-over
// several times slower. Nothing that either core does by itself shows that.

#include <stdint.h>

struct gen_probe;

// Starts a thread on `core`, another than the caller's, that sleeps except in
// gen_probe_round_trip. Returns NULL with errno set: EINVAL (no such core, or not ours to use),
// ENOMEM, EAGAIN. gen_probe_stop ends it.
struct gen_probe *gen_probe_start(uint32_t core);

// Ticks of a round trip, the median of a few batches; 0: the thread did not get its core in time.
// `took` is increased by the ticks for which the other core may have been kept from its work.
uint64_t gen_probe_round_trip(struct gen_probe *probe, uint64_t *took);

// NULL is fine.
void gen_probe_stop(struct gen_probe *probe);
