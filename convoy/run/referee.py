# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Before a device is measured: it does what it is measured for. A rate of one that does less is
none.

First what comes out is compared, byte for byte, with what the functions mean. Then so much passes
at a low rate that one packet lost in 100,000, or one out of order, shows.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.chain.meaning import Balancer, Firewall, Meaning, Nat, Translator
from convoy.dut.base import Function
from convoy.dut.expected import Fields, expected, fields
from convoy.dut.functions import read
from convoy.dut.probe_packets import STAMP_BYTES, packets
from convoy.errors import ConvoyError, InputError
from convoy.frame.checksum import checksum
from convoy.host.run_queue import ThreadTime, run_queue_delay_ns
from convoy.results.trial_result import TrialResult
from convoy.run.verdict import verdict_of
from convoy.tester.base import Tester

COMPARED_PPS = 20_000.0
COMPARED_PASSES = 6  # of all packets in a trial: what a device remembers of the first shows
COMPARED_TRIES = 10  # a switch's first packets of a flow wait for its slow path
KEPT_MOST = 4096
FLOWS_EACH = 24  # for a backend: that one has none then is a chance of one in 10^9
LOW_S = 1.0
SMOKE_S = 0.1  # of smoke: one packet lost in 10,000 shows
LOW_PPS = (500_000.0, 500_000.0, 300_000.0, 200_000.0)  # until a trial loses nothing
DRAIN_S = 0.2
_PLACES = (
    (6, "destination MAC address"), (12, "source MAC address"), (14, "EtherType"),
    (16, "IPv4 version or type of service"), (18, "IPv4 length"), (20, "IPv4 identification"),
    (22, "IPv4 fragment offset"), (23, "TTL"), (24, "IPv4 protocol"), (26, "IPv4 checksum"),
    (30, "source address"), (34, "destination address"), (36, "source port"),
    (38, "destination port"),
)  # fmt: skip


def meanings(functions: Sequence[Function]) -> tuple[Meaning, ...] | None:
    """Return what the functions mean, or None: one has state, or is our own node's alone."""
    try:
        chain = tuple(read(function) for function in functions)
    except InputError:
        return None
    state = any(isinstance(m, Nat) or (isinstance(m, Firewall) and m.stateful) for m in chain)
    return None if state else chain


def write_pcap(path: Path, frames: Sequence[bytes]) -> None:
    """Write frames as a capture, a microsecond apart."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 0, number, len(frame), len(frame)) + frame)


def _stamp_at(frame: bytes) -> int:
    return (len(frame) - STAMP_BYTES) & ~1


def _masked(frame: bytes, own_source: bool, translated: bool) -> bytes:
    """Return a frame without the tester's stamp, and without what a device may write."""
    at = _stamp_at(frame)
    head = frame[:6] + (bytes(6) if own_source else frame[6:12]) + frame[12:at]
    if translated and head[12:14] == b"\x08\0" and checksum(head[14:34]) == 0:
        # Identification, "don't fragment", and so the checksum, which is right.
        head = head[:18] + bytes(3) + head[21:24] + bytes(2) + head[26:]
    return head + bytes(STAMP_BYTES) + frame[at + STAMP_BYTES :]


def _difference(came: bytes, due: bytes) -> str:
    if len(came) != len(due):
        return f"{len(came)} bytes came out instead of {len(due)}"
    at = next(i for i, (one, other) in enumerate(zip(came, due, strict=True)) if one != other)
    begin = 0
    for end, name in _PLACES:
        if at < end:
            return f"{name} is {came[begin:end].hex()} instead of {due[begin:end].hex()}"
        begin = end
    return f"byte {at} is {came[at]:02x} instead of {due[at]:02x}"


@dataclass(frozen=True)
class Comparison:
    """What is sent, and what may come out."""

    why: tuple[str, ...]
    sent: tuple[bytes, ...]
    due: tuple[tuple[bytes, ...], ...]  # one of these; none: nothing
    own_source: bool = False  # a device writes its own MAC address
    translated: bool = False  # from IPv6, which has no identification and is not fragmented
    backends: int = 0  # of a balancer

    def _index(self, came: bytes) -> int:
        """Return which packet a frame was sent as: its stamp has a number that counts on."""
        (number,) = struct.unpack_from("<I", came, _stamp_at(came) + 2)
        return int(number) % len(self.sent)

    def wrong(self, kept: Sequence[str], chosen: dict[Fields, bytes]) -> str:
        """Return what is wrong with frames that came out, or the empty string.

        chosen: where frames of flows went that came before; those of kept are added.
        """
        for text in kept:
            came = bytes.fromhex(text)
            if len(came) < STAMP_BYTES:
                return f"a frame came out that nobody sent: {came.hex()}"
            index = self._index(came)
            due = self.due[index]
            if not due:
                return f"{self.why[index]}: came out, but must be dropped"
            one = self._masked(came)
            if one not in map(self._masked, due):
                nearest = next((each for each in due if each[:6] == came[:6]), due[0])
                return f"{self.why[index]}: {_difference(one, self._masked(nearest))}"
            flow = fields(self.sent[index])
            if flow is None or not self.backends:
                continue
            if chosen.setdefault(flow, came[:6]) != came[:6]:
                return (
                    f"{self.why[index]}: went to {came[:6].hex(':')}, and a packet of the same "
                    f"flow to {chosen[flow].hex(':')}"
                )
        return ""

    def _masked(self, frame: bytes) -> bytes:
        return _masked(frame, self.own_source, self.translated)

    def missing(self, kept: Sequence[str]) -> set[int]:
        """Return which packets must come out, and did not once."""
        came = {self._index(bytes.fromhex(text)) for text in kept}
        return {i for i, due in enumerate(self.due) if due and i not in came}

    def unspread(self, chosen: Mapping[Fields, bytes]) -> str:
        """Return how few of a balancer's backends have flows, or the empty string: enough."""
        if not self.backends:
            return ""
        flows = {
            fields(sent) for sent, due in zip(self.sent, self.due, strict=True) if len(due) > 1
        }
        met = len({backend for flow, backend in chosen.items() if flow in flows})
        # Each, where even a random choice leaves none without; else half of those it could reach.
        all_met = len(flows) >= FLOWS_EACH * self.backends
        least = self.backends if all_met else min(self.backends, len(flows)) // 2
        few = f"{len(flows)} flows met {met} of {self.backends} backends"
        return few if met < least else ""


def _comparison(
    chain: Sequence[Meaning], why: tuple[str, ...], sent: tuple[bytes, ...], own_source: bool
) -> Comparison:
    balancers = [len(meaning.macs) for meaning in chain if isinstance(meaning, Balancer)]
    return Comparison(
        why,
        sent,
        tuple(expected(chain, frame) for frame in sent),
        own_source,
        any(isinstance(meaning, Translator) for meaning in chain),
        balancers[-1] if balancers else 0,
    )


def comparison(chain: Sequence[Meaning], own_source: bool = False) -> Comparison:
    """Return the comparison for a chain of functions that remember nothing."""
    chosen = packets(chain)[: KEPT_MOST // 2]
    sent = tuple(packet.frame() for packet in chosen)
    return _comparison(chain, tuple(packet.why for packet in chosen), sent, own_source)


def replayed(
    chain: Sequence[Meaning], name: str, frames: Sequence[bytes], own_source: bool = False
) -> Comparison:
    """Return the comparison for a capture's frames, or for the first ones of many."""
    sent = tuple(frames[: KEPT_MOST // 2])
    why = tuple(f"packet {i} of {name} ({len(frame)} bytes)" for i, frame in enumerate(sent, 1))
    return _comparison(chain, why, sent, own_source)


def compare_output(
    tester: Tester, what: str, wanted: Comparison, file: Path, convoys: int = 0
) -> None:
    """Compare what comes out of a device, byte for byte. file: a place for the capture.

    convoys: 1 takes those apart that come.

    Raises ConvoyError: a packet is wrong, came where it must not, or did not come.
    """
    write_pcap(file, wanted.sent)
    passes = max(1, min(COMPARED_PASSES, KEPT_MOST // len(wanted.sent)))
    missing = set(range(len(wanted.sent)))
    chosen: dict[Fields, bytes] = {}
    for _ in range(COMPARED_TRIES):
        result = tester.trial(
            {
                "capture": {"file": str(file), "timing": "rate", "loops": passes},
                "rate_pps": COMPARED_PPS,
                "duration_s": 2 * passes * len(wanted.sent) / COMPARED_PPS,
                "drain_s": DRAIN_S,
                "tolerance": 1,
                "keep": KEPT_MOST,
                **({"convoys": convoys} if convoys else {}),
            }
        )
        if result.kept is None or result.total is None:
            raise ConvoyError(f"{what}: its output was not compared: {result.reason}")
        wrong = wanted.wrong(result.kept, chosen)
        if not wrong and result.total.corrupt_pkts:
            wrong = f"{result.total.corrupt_pkts} packets came out with other bytes"
        if not wrong and result.total.duplicated_pkts:
            wrong = f"{result.total.duplicated_pkts} packets came out twice"
        if wrong:
            raise ConvoyError(f"{what}: wrong output, so no rate counts: {wrong}")
        missing &= wanted.missing(result.kept)
        if not missing and (few := wanted.unspread(chosen)):
            raise ConvoyError(f"{what}: wrong output, so no rate counts: {few}")
        if not missing:
            return
    first = wanted.why[min(missing)]
    raise ConvoyError(
        f"{what}: wrong output, so no rate counts: of {len(wanted.sent)} packets {len(missing)} "
        f"never came out, the first of them {first}"
    )


def _misdeeds(result: TrialResult, in_order: bool) -> str:
    """Return what happened to packets that no load explains."""
    total = result.total
    if total is None:
        return ""
    counts: Mapping[str, int] = {
        "out of order within their flow": total.reordered_pkts if in_order else 0,
        "twice": total.duplicated_pkts,
        "with other bytes": total.corrupt_pkts,
        "at another port": total.misrouted_pkts,
    }
    return ", ".join(f"{count} {how}" for how, count in counts.items() if count)


def _single_losses(result: TrialResult) -> int:
    """Return how many packets were lost alone: who is kept from its work loses several in a row."""
    runs = result.total.loss_bursts_pkts if result.total is not None else ()
    return sum(count for length, count in runs if length == 1)


def compare_counts(
    tester: Tester,
    what: str,
    traffic: Callable[[float, float], Mapping[str, Any]],
    times: Callable[[], Mapping[int, ThreadTime]] | None = None,
    seconds: float = LOW_S,
    in_order: bool = True,
) -> str:
    """Send many packets at a low rate: all must come back, once and in order.

    traffic: the trial of a rate and a duration. times: of the threads with the device's poll
    loops; None: the kernel's threads forward, which others interrupt at any time, so losses tell
    nothing. seconds: of each trial. in_order: a flow's packets must keep their order.
    Returns what must be said of the device, mostly nothing. Raises ConvoyError: packets are lost in
    each trial, one by one or though nobody kept the device from its work.
    """
    verdicts = []
    lost = ""
    for rate in LOW_PPS if times else LOW_PPS[-1:]:
        before = times() if times else {}
        result = tester.trial(traffic(rate, seconds))
        waited = run_queue_delay_ns(before, times() if times else {})
        wrong = _misdeeds(result, in_order)
        if wrong:
            raise ConvoyError(f"{what}: wrong output, so no rate counts: packets came {wrong}")
        verdicts.append("failed" if _single_losses(result) else verdict_of(result, waited, 0.0))
        if verdicts[-1] == "passed" or times is None:
            return ""
        if result.total is not None:
            lost = f"{result.total.lost_pkts} of {result.total.sent_pkts} packets"
            lost += f" at {rate / 1e3:g} kpps"
    if set(verdicts) == {"failed"}:
        raise ConvoyError(f"{what}: wrong output, so no rate counts: it loses {lost}")
    return f"may lose packets at low rates ({lost}): others had its core, or the tester's"
