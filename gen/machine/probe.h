// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What the machine is like at the moment: how far the device's core is from ours, and how much
// either gets done.
//
// Packets between two cores are cache lines between them, and a virtual machine's cores move about:
// behind one level-3 cache now, behind two of them a second later, which makes every hand-over
// several times slower. Or somebody else works on the other hardware thread of one of them; or they
// are the two threads of one core themselves.
#ifndef GEN_MACHINE_PROBE_H
#define GEN_MACHINE_PROBE_H

#include <stdint.h>

struct gen_probe;

// Starts a thread on `core`, another than the caller's, that sleeps except in
// gen_probe_run. Returns NULL with errno set: EINVAL (no such core, or not ours to use),
// ENOMEM, EAGAIN. gen_probe_stop ends it.
struct gen_probe *gen_probe_start(uint32_t core);

// In ticks.
struct gen_probe_result {
	uint64_t round_trip; // core to core, of a cache line; the median of a few batches
	// SMT contention: a fixed piece of work in registers, on both cores at the same time; the
	// medians of a few pieces.
	uint64_t our_work, device_work;
};

// All 0: the thread did not get its core in time. `took` is increased by the ticks for which the
// other core may have been kept from its work.
struct gen_probe_result gen_probe_run(struct gen_probe *probe, uint64_t *took);

// NULL is fine.
void gen_probe_stop(struct gen_probe *probe);

#endif
