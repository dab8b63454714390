# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A rate counts only after equal output: each fault planted in a real device is caught."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from convoy.dut.base import Function
from convoy.dut.expected import expected, fields
from convoy.dut.functions import balancer, bridge, firewall, macswap, nat, router, stateful
from convoy.dut.probe_packets import STAMP_BYTES, Packet, packets
from convoy.errors import ConvoyError
from convoy.host.folders import dpdk_folder
from convoy.host.private import private_folder
from convoy.host.process import Process
from convoy.host.programs import CHECKOUT, find
from convoy.host.run_queue import thread_times
from convoy.results.trial_result import PacketCounts, TrialResult
from convoy.run.point import Load, specification
from convoy.run.referee import (
    LOW_PPS,
    compare_counts,
    compare_output,
    comparison,
    meanings,
    replayed,
    write_pcap,
)
from convoy.run.replay import read
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

PROGRAM = CHECKOUT / "build/tests/support/faulty-device"
DENIED = 4097
RULES = Function(
    "firewall",
    {"default": "allow", "rules": [{"deny": {"proto": "udp", "dport": DENIED}}]},
)
ROUTES = {"198.19.0.0/16": "02:00:00:00:01:01", "198.19.4.0/22": "02:00:00:00:01:02",
          "198.19.5.7/32": "02:00:00:00:01:03"}  # fmt: skip
ROUTER = Function(
    "router",
    {
        "routes": [f"{p} via 192.0.2.{i} dev right" for i, p in enumerate(ROUTES, 1)],
        "neighbours": {f"192.0.2.{i}": mac for i, mac in enumerate(ROUTES.values(), 1)},
    },
)


@dataclass
class Faulty:
    """The device, and the tester at its ports."""

    process: Process
    tester: ConvoyGen
    folder: Path
    lines_read: int = 1  # lines of its output so far

    def plant(self, fault: str) -> None:
        self.process.say(fault)
        assert self.process.stdout.line(self.lines_read, 60) == fault
        self.lines_read += 1

    def check(self) -> str:
        """Do what is done before a device is measured."""
        chain = meanings((RULES, ROUTER))
        assert chain is not None
        compare_output(self.tester, "stub", comparison(chain), self.folder / "compared.pcap")
        load = Load()
        return compare_counts(
            self.tester,
            "stub",
            lambda pps, s: specification("64", pps, s, load) | {"drain_s": 0.2},
            lambda: thread_times([self.process.pid]),
        )


@pytest.fixture(scope="module")
def faulty() -> Iterator[Faulty]:
    if not PROGRAM.exists() or find("convoy-gen") is None:
        pytest.skip("convoy-gen and the tests' programs are not built: make build")
    if len(CORES) < 2:
        pytest.skip("needs two cores")
    with private_folder() as folder:
        sockets = [folder / "v0", folder / "v1"]
        words = [str(PROGRAM), "--no-huge", "-m", "128", "--no-pci", "--no-telemetry",
                 "--lcores", f"0@{CORES[-1]}",
                 "--file-prefix", f"faulty-{os.getpid()}"]  # fmt: skip
        for i, socket in enumerate(sockets):
            words += ["--vdev", f"net_vhost{i},iface={socket}"]
        words += ["--", str(DENIED), *(f"{prefix}={mac}" for prefix, mac in ROUTES.items())]
        with Process(words, dpdk_folder(folder), takes_input=True) as process:
            assert process.stdout.line(0, 60) == "ready", process.last_words()
            with ConvoyGen([f"vhost-user:{socket}" for socket in sockets], CORES[0]) as tester:
                yield Faulty(process, tester, folder)


@pytest.mark.alone
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("checksum", "a checksum that carries: IPv4 checksum is "),
        ("skipped-rule", "of rule 1: came out, but must be dropped"),
        ("cached", "wrong output, so no rate counts: "),
        ("drop", "it loses "),
        ("reorder", "out of order within their flow"),
        ("duplicate", " twice"),
    ],
)
def test_a_planted_fault_is_caught(faulty: Faulty, fault: str, words: str):
    faulty.plant(fault)
    with pytest.raises(ConvoyError, match="wrong output, so no rate counts") as error:
        faulty.check()
    assert words in str(error.value)
    assert str(error.value).count("\n") == 0


@pytest.mark.alone
def test_a_capture_s_packets_are_compared_byte_for_byte(faulty: Faulty, tmp_path: Path):
    # Longer and longer, of one flow; the last one's TTL ends.
    made = [Packet(size=60 + 29 * i, ttl=64 if i < 49 else 1).frame() for i in range(50)]
    write_pcap(tmp_path / "x.pcap", made)
    chain = meanings((RULES, ROUTER))
    assert chain is not None
    wanted = replayed(chain, "x.pcap", read(tmp_path / "x.pcap").frames)
    assert [due == () for due in wanted.due] == [False] * 49 + [True]
    faulty.plant("none")
    compare_output(faulty.tester, "stub", wanted, faulty.folder / "compared.pcap")
    faulty.plant("cached")
    with pytest.raises(ConvoyError, match=r"packet 50 of x.pcap .*: came out, but must be dropped"):
        compare_output(faulty.tester, "stub", wanted, faulty.folder / "compared.pcap")


@pytest.mark.alone
def test_a_device_that_does_its_work_may_be_measured(faulty: Faulty):
    faulty.plant("none")
    faulty.check()


def test_what_has_state_or_is_known_to_our_node_alone_is_not_compared_here():
    assert meanings((stateful(), nat())) is None
    assert meanings((Function("srv6"),)) is None
    assert meanings(()) == ()


def test_probes_meet_all_rules_and_routes_from_both_sides():
    chain = meanings((firewall(100), router(1000)))
    assert chain is not None
    wanted = comparison(chain)
    assert 100 < len(set(wanted.sent)) <= len(wanted.sent)
    dropped = sum(due == () for due in wanted.due)
    assert 50 < dropped < len(wanted.due) - 50


def test_the_source_address_is_left_out_where_a_device_writes_its_own():
    chain = meanings((bridge(),))
    assert chain is not None
    frame = Packet().frame()
    other = frame[:6] + bytes(6) + frame[12:]
    assert "source MAC address" in comparison(chain).wrong([other.hex()], {})
    assert comparison(chain, own_source=True).wrong([other.hex()], {}) == ""
    assert "bytes came out" in comparison(chain).wrong([frame.hex() + "00"], {})
    assert "nobody sent" in comparison(chain).wrong(["00" * 8], {})


def stamped(number: int, frame: bytes) -> bytes:
    """Return a frame with as much of the tester's stamp as says which packet it was sent as."""
    at = (len(frame) - STAMP_BYTES) & ~1
    return frame[: at + 2] + struct.pack("<I", number) + frame[at + 6 :]


def test_one_missing_packet_is_named(tmp_path: Path):
    chain = meanings((macswap(),))
    assert chain is not None
    wanted = comparison(chain)
    came = [stamped(i, due[0]) for i, due in enumerate(wanted.due) if due]
    with pytest.raises(ConvoyError, match="packets 1 never came out, the first of them 64 bytes"):
        compare_output(Answering(came[1:]), "stub", wanted, tmp_path / "x.pcap")


class Answering:
    """A tester to which the same frames come in each trial."""

    def __init__(self, came):
        self._kept = tuple(frame.hex() for frame in came)

    def trial(self, specification):
        return TrialResult(ok=True, total=PacketCounts(), kept=self._kept)


def _to(chosen):
    """Return what comes out of a balancer, and its comparison. chosen: number of a backend, of a
    packet's.
    """
    chain = meanings((balancer(10),))
    assert chain is not None
    wanted = comparison(chain)
    came = [stamped(i, due[chosen(i) % len(due)]) for i, due in enumerate(wanted.due)]
    return came, wanted


def test_a_balancer_may_choose_any_backend_for_a_flow(tmp_path: Path):
    came, wanted = _to(lambda i: i % 7 + i % 4)
    flows = {}  # a flow's first choice is kept
    came = [flows.setdefault(fields(sent), frame[:6]) + frame[6:]
            for sent, frame in zip(wanted.sent, came, strict=True)]  # fmt: skip
    compare_output(Answering(came), "stub", wanted, tmp_path / "x.pcap")


def test_a_flow_that_a_balancer_splits_is_found(tmp_path: Path):
    came, wanted = _to(lambda i: i)
    with pytest.raises(ConvoyError, match="and a packet of the same flow to 02:00:00:01:00:0"):
        compare_output(Answering(came), "stub", wanted, tmp_path / "x.pcap")


def test_backends_that_nobody_has_and_backends_without_flows_are_found(tmp_path: Path):
    came, wanted = _to(lambda i: 0)
    with pytest.raises(ConvoyError, match="513 flows met 1 of 10 backends"):
        compare_output(Answering(came), "stub", wanted, tmp_path / "x.pcap")
    at = next(i for i, due in enumerate(wanted.due) if len(due) > 1)
    came[at] = bytes(6) + came[at][6:]
    with pytest.raises(ConvoyError, match="destination MAC address is 000000000000"):
        compare_output(Answering(came), "stub", wanted, tmp_path / "x.pcap")


@pytest.mark.parametrize(
    ("lost", "watched", "words"),
    [([0], True, ""), ([3, 0], True, ""), ([3] * len(LOW_PPS), False, "")],
)
def test_losses_count_where_nothing_explains_them(lost, watched, words):
    assert _counts(lost, watched) == words


def test_losses_in_each_trial_are_the_device_s():
    with pytest.raises(ConvoyError, match="it loses 3 of 1000 packets at 200 kpps"):
        _counts([3] * len(LOW_PPS), True)
    with pytest.raises(ConvoyError, match="it loses"):
        _counts([3] * len(LOW_PPS), True, ok=False, runs=((1, 3),))
    words = _counts([3] * len(LOW_PPS), True, ok=False, runs=((3, 1),))
    assert "may lose packets at low rates" in words


def test_who_may_reorder_is_asked_for_all_else():
    total = PacketCounts(sent_pkts=1000, loss_ratio=0.0, reordered_pkts=7)
    copied = total.model_copy(update={"duplicated_pkts": 1})

    class Tester:
        def __init__(self, total):
            self.total = total

        def trial(self, specification):
            return TrialResult(ok=True, total=self.total)

    def compared(total, in_order):
        return compare_counts(Tester(total), "stub", lambda pps, s: {}, in_order=in_order)

    assert compared(total, False) == ""
    with pytest.raises(ConvoyError, match="7 out of order within their flow"):
        compared(total, True)
    with pytest.raises(ConvoyError, match="packets came 1 twice"):
        compared(copied, False)


def _counts(lost, watched, ok=True, runs=()):
    left = list(lost)

    class Tester:
        def trial(self, specification):
            now = left.pop(0)
            total = PacketCounts(
                sent_pkts=1000, lost_pkts=now, loss_ratio=now / 1000, loss_bursts_pkts=runs
            )
            return TrialResult(ok=ok, total=total)

    times = (lambda: thread_times([os.getpid()])) if watched else None
    return compare_counts(Tester(), "stub", lambda pps, s: {}, times)


def test_a_capture_is_written_as_the_tester_reads_it(tmp_path: Path):
    from convoy.frame.capture import read_packets

    frames = [packet.frame() for packet in packets(())]
    write_pcap(tmp_path / "x.pcap", frames)
    assert read_packets(tmp_path / "x.pcap") == frames
    assert expected((), frames[0]) == (frames[0],)
