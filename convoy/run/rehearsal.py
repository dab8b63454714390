# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What cannot be seen of a device while it is measured is seen before, of one started for it alone.

A policer is measured at a rate that it lets pass: before, it polices at a lower one. What
translates or seals is measured before its opposite, and both together could do nothing: before, the
first of them is alone.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from convoy.chain.meaning import Policer, Translator, Tunnel
from convoy.dut.base import Function
from convoy.dut.functions import policer
from convoy.errors import ConvoyError
from convoy.run.point import Load, specification
from convoy.run.referee import DRAIN_S, Comparison, compare_output, comparison, meanings
from convoy.tester.base import Tester

POLICED_BPS = 20_000_000
OFFERED = 4.0  # times that rate: nftables' bucket holds a second of it beside the burst
FRAME_BYTES = 1024  # with FCS
IP_BYTES = FRAME_BYTES - 4 - 14
POLICED_S = 1.0
# Of the rate. Meters count whole frames, or IP packets; an emulated guest's clock is not ours.
LEAST, MOST = 0.9, 1.1
TRIES = 6  # a device that others keep from its work lets less pass
SEALED_PPS = 2_000.0
SEALED_S = 0.5

# By tester, the name of the device, a place for a file, and 1 where convoys that come are
# disaggregated.
Check = Callable[[Tester, str, Path, int], None]  # raises ConvoyError


@dataclass(frozen=True)
class Rehearsal:
    """What a device does for this alone, and what is then checked."""

    functions: tuple[Function, ...]
    check: Check


def rehearsals(functions: Sequence[Function]) -> tuple[Rehearsal, ...]:
    """Return what is to be seen before functions are measured."""
    chain = meanings(functions)
    if not chain:
        return ()
    result = []
    if any(isinstance(meaning, Policer) for meaning in chain):
        policed = tuple(
            policer(POLICED_BPS) if isinstance(meaning, Policer) else function
            for function, meaning in zip(functions, chain, strict=True)
        )
        result.append(Rehearsal(policed, compare_policed))
    first = (functions[0],)
    if isinstance(chain[0], Translator):
        result.append(Rehearsal(first, partial(_compare_alone, comparison(chain[:1]))))
    elif isinstance(chain[0], Tunnel) and not chain[0].opens:
        result.append(Rehearsal(first, compare_sealed))
    return tuple(result)


def _compare_alone(
    wanted: Comparison, tester: Tester, what: str, file: Path, convoys: int = 0
) -> None:
    compare_output(tester, what, wanted, file, convoys)


def _wrong(what: str, how: str) -> ConvoyError:
    return ConvoyError(f"{what}: wrong output, so no rate counts: {how}")


def compare_policed(tester: Tester, what: str, file: Path, convoys: int = 0) -> None:
    """Send four times the rate that is allowed. When the burst is spent, that rate passes.

    Raises ConvoyError: each time more passes, or much less; or packets are changed.
    """
    pps = OFFERED * POLICED_BPS / (8 * IP_BYTES)
    load = Load(convoys=convoys)
    trial = specification(str(FRAME_BYTES), pps, POLICED_S, load) | {"drain_s": DRAIN_S}
    passed = 0.0
    for _ in range(TRIES):  # the first of them spend the burst
        began = time.monotonic()
        result = tester.trial(trial)
        elapsed_s = time.monotonic() - began
        total = result.total
        if total is None:
            raise _wrong(what, f"a policer was not checked: {result.reason}")
        if total.corrupt_pkts or total.duplicated_pkts or total.reordered_pkts:
            raise _wrong(what, "a policer changes packets, their number or order")
        passed = 8 * IP_BYTES * total.received_pkts / POLICED_BPS  # seconds of the rate
        if LEAST * POLICED_S <= passed <= MOST * elapsed_s:
            return
    bps = passed * POLICED_BPS / POLICED_S
    raise _wrong(what, f"{bps / 1e6:.1f} Mbit/s pass a policer of {POLICED_BPS / 1e6:g} Mbit/s")


def compare_sealed(tester: Tester, what: str, file: Path, convoys: int = 0) -> None:
    """Send packets into a tunnel: as many come out, and none that can be read.

    Raises ConvoyError: they can, or do not come.
    """
    load = Load(convoys=convoys)
    trial = specification("64", SEALED_PPS, SEALED_S, load) | {"drain_s": DRAIN_S}
    came = sent = 0
    for _ in range(TRIES):
        result = tester.trial(trial)
        total, came = result.total, result.foreign_pkts
        if total is None:
            raise _wrong(what, f"a tunnel was not checked: {result.reason}")
        if total.received_pkts:
            raise _wrong(what, f"{total.received_pkts} packets came out of a tunnel unsealed")
        sent = total.sent_pkts
        if 0 < came <= sent:  # fewer, where a tunnel aggregates
            return
    raise _wrong(what, f"{sent} packets came out of a tunnel as {came}")
