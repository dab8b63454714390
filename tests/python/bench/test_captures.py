# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A scenario's captures: what of them is sent, under which name results have them, and mistakes."""

import json
import random
import struct
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_RR
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

from convoy.dut.dummy import Dummy
from convoy.dut.functions import GROWING, firewall, macswap, router
from convoy.errors import ConvoyError, InputError
from convoy.frame.capture import captured
from convoy.host.programs import find
from convoy.report.compare import compare
from convoy.report.html import html
from convoy.report.run_data import read as read_runs
from convoy.report.run_document import document
from convoy.results.database import Database
from convoy.results.documents import Host
from convoy.results.folder import RunFolder
from convoy.results.scenario import Capture
from convoy.results.trial_result import PacketCounts, TrialResult
from convoy.run import scenario as scenarios
from convoy.run.bench import Bench
from convoy.run.order import order
from convoy.run.referee import compare_output, meanings, replayed, write_pcap
from convoy.run.replay import check, read, traffic
from convoy.run.session import wanted

from .test_run import HOST, settings

ETHER = Ether(src="00:11:22:33:44:55", dst="00:aa:bb:cc:dd:ee")
THERE, BACK = IP(src="10.0.0.1", dst="192.0.2.9", ttl=50), IP(src="192.0.2.9", dst="10.0.0.1")
STAMP = 14
SENT = [  # and how long the frame is, without FCS
    (ETHER / THERE / UDP(sport=5000, dport=53) / Raw(b"q" * 40), 82),
    (ETHER / BACK / UDP(sport=53, dport=5000) / Raw(b"a" * 701), 743),
    (ETHER / THERE / UDP(sport=5000, dport=53) / Raw(b"Q" * 1400), 1442),
    (ETHER / Dot1Q(vlan=7) / THERE / TCP(sport=5001, dport=443, flags="S"), 60 + STAMP),
    (ETHER / BACK / TCP(sport=443, dport=5001, flags="PA") / Raw(b"tls" * 33), 153),
    (ETHER / THERE / UDP(sport=5002, dport=9, chksum=0) / Raw(b"none"), 60),
    (ETHER / THERE / ICMP() / Raw(b"ping" * 14), 98),
    (ETHER / IP(src="10.0.0.1", dst="192.0.2.9", proto=50, ttl=1) / Raw(b"e" * 101), 136 + STAMP),
]
LEFT_OUT = [
    ETHER / ARP(),
    ETHER / IPv6() / UDP(),
    ETHER / IP(flags="MF") / UDP() / Raw(b"x" * 64),
    ETHER / IP(options=[IPOption_RR()]) / UDP(),
    ETHER / IP(len=900) / UDP(),
    ETHER / IP(len=24) / UDP(),
    ETHER / IP() / UDP() / Raw(b"x" * 1473),
]
WORDS = "2 not IPv4, 2 malformed, 1 fragments, 1 with IP options, 1 longer than 1514 bytes"
SCENARIO = """\
title: x
from: y
asks: z
devices: [dummy]
setups:
  none: {functions: []}
  router: {functions: [router], convoys: 22}
sizes: [64, {capture: web.pcap}]
noise: false
quick: {sizes: [{capture: web.pcap}, 64], setups: [none]}
"""


def capture(path: Path) -> Path:
    write_pcap(path, [bytes(packet) for packet, _ in SENT] + [bytes(one) for one in LEFT_OUT])
    return path


def rebuilt(frame: bytes) -> bytes:
    """Return a frame after scapy has computed each checksum of its packet again."""
    packet = Ether(frame)
    for layer in (IP, UDP, TCP, ICMP):
        if layer in packet and getattr(packet[layer], "chksum", 0):
            del packet[layer].chksum
    return bytes(packet)


def test_packets_are_sent_as_benchmark_traffic_with_their_own_sizes_flows_and_bytes(tmp_path):
    replay = read(capture(tmp_path / "x.pcap"))
    assert [len(frame) for frame in replay.frames] == [length for _, length in SENT]
    assert (replay.contents.packets, replay.contents.flows, replay.contents.filled) == (8, 7, 0)
    assert replay.contents.left_out == WORDS
    assert replay.contents.mean_bytes == round(sum(length + 4 for _, length in SENT) / len(SENT), 1)
    flows = []
    for (before, _), data in zip(SENT, replay.frames, strict=True):
        after = Ether(data)
        assert (after.dst, after.src) == ("02:00:00:00:0c:01", "02:00:00:00:00:01")
        assert rebuilt(data) == data
        # Nothing else differs than what all benchmark traffic has.
        ours, theirs = bytearray(bytes(after[IP])), bytearray(bytes(Ether(bytes(before))[IP]))
        assert ours[:10] == theirs[:10]
        flows.append((after[IP].src, after[IP].dst))
        if UDP in after or TCP in after:
            assert ours[24:26] == theirs[24:26] or TCP in after
            at = 28 if UDP in after else 40
            assert ours[at : len(theirs)] == theirs[at:]
            flows[-1] += (ours[20:24].hex(),)
            assert after[IP].payload.dport == 4096
        else:
            assert ours[20 : len(theirs)] == theirs[20:]
    assert flows[0] == flows[2]
    assert len(set(flows)) == 7
    # The destinations lie apart, so that few flows meet several routes.
    assert len({flow[1].rsplit(".", 1)[0] for flow in flows}) > 2


def test_what_was_not_captured_of_a_packet_is_zeros(tmp_path):
    whole = bytes(SENT[2][0])
    path = tmp_path / "x.pcap"
    write_pcap(path, [whole])
    data = bytearray(path.read_bytes()[: 24 + 16 + 60])
    struct.pack_into("<I", data, 24 + 8, 60)
    path.write_bytes(data)
    replay = read(path)
    assert (len(replay.frames[0]), replay.contents.filled) == (len(whole), 1)
    assert replay.frames[0][42:] == whole[42:60] + bytes(len(whole) - 60)


def test_the_tester_sends_exactly_what_was_prepared(tmp_path):
    if find("convoy-gen") is None:
        pytest.skip("convoy-gen is not built: make build")
    frames = read(capture(tmp_path / "x.pcap")).frames
    write_pcap(tmp_path / "in.pcap", frames)
    trial = {
        "capture": {"file": str(tmp_path / "in.pcap"), "timing": "rate", "loops": 1},
        "rate_pps": "max", "drain_s": 0,
    }  # fmt: skip
    subprocess.run(
        [find("convoy-gen"), "--port", f"dev:net_pcap0,tx_pcap={tmp_path / 'out.pcap'}"],
        input=json.dumps(trial) + "\n", capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    data = (tmp_path / "out.pcap").read_bytes()
    came = [packet for packet, _ in captured(data, tmp_path)]
    assert len(came) == len(frames)
    for before, after in zip(frames, came, strict=True):
        at = (len(before) - STAMP) & ~1
        assert (after[:at], after[at + STAMP :]) == (before[:at], before[at + STAMP :])


def test_what_functions_drop_is_not_sent_and_said(tmp_path):
    one = Capture(capture=str(capture(tmp_path / "x.pcap")))
    assert traffic(one, meanings((macswap(),)), 1).note == ""
    routed = traffic(one, meanings((router(10),)), 10)
    assert len(routed.sent) == 7  # a TTL has ended
    assert routed.note == "x.pcap: 7 of 8 packets are sent, the functions drop the others"
    assert len(traffic(one, meanings((firewall(3),)), 3).sent) == 4  # of UDP
    assert len(traffic(one, None, 1).sent) == 8
    write_pcap(tmp_path / "tcp.pcap", [bytes(SENT[3][0])])
    with pytest.raises(ConvoyError, match="the functions drop all of its packets"):
        traffic(Capture(capture=str(tmp_path / "tcp.pcap")), meanings((firewall(3),)), 3)


def test_a_packet_that_comes_out_wrong_is_named(tmp_path):
    frames = read(capture(tmp_path / "x.pcap")).frames
    chain = meanings((router(10),))
    wanted_ = replayed(chain, "x.pcap", frames)

    def stamped(number: int, frame: bytes) -> bytes:
        at = (len(frame) - STAMP) & ~1
        stamp = struct.pack("<HI8s", 7, number, b"any time")
        return frame[:at] + stamp + frame[at + STAMP :]

    came = [stamped(8 + i, due[0]) for i, due in enumerate(wanted_.due) if due]

    def answered(kept):
        class Tester:
            def trial(self, specification):
                texts = tuple(frame.hex() for frame in kept)
                return TrialResult(ok=True, total=PacketCounts(), kept=texts)

        compare_output(Tester(), "stub", wanted_, tmp_path / "compared.pcap")

    answered(came)
    for kept, words in (
        ([*came[1:], stamped(0, frames[0])], "packet 1 of x.pcap .82 bytes.: destination MAC"),
        ([*came, stamped(7, frames[7])], "packet 8 of x.pcap .150 bytes.: came out, but must be"),
        (came[:2] + came[3:], "8 packets 1 never came out, the first of them packet 3 of x.pcap"),
        ([b"short"], "that nobody sent"),
    ):
        with pytest.raises(ConvoyError, match=words):
            answered(kept)


def test_no_bytes_do_more_than_be_refused_or_left_out(tmp_path):
    rng = random.Random(1)
    good = capture(tmp_path / "x.pcap").read_bytes()
    for i in range(150):
        data = bytearray(good[: rng.choice([len(good), rng.randrange(len(good))])])
        for _ in range(rng.choice([1, 20, 200])):
            data[rng.randrange(len(data)) if data else 0 :][:1] = b""
            if data:
                data[rng.randrange(len(data))] = rng.choice([0, 255, rng.randrange(256)])
        path = tmp_path / f"{i}.pcap"
        path.write_bytes(data)
        try:
            replay = read(path)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert all(60 <= len(frame) <= 1514 for frame in replay.frames)


WRONG = [
    ("sizes: [64, {capture: web.pcap", "sizes: [64, {capture: none.pcap",
     "8: sizes[1].capture: 'none.pcap': there is no such file", "pcap or pcapng"),
    ("sizes: [64, {capture: web.pcap", "sizes: [64, {capture: x.yaml",
     "8: sizes[1].capture: 'x.yaml': is no capture", "pcap or pcapng"),
    ("sizes: [64, {capture: web.pcap", "sizes: [64, {capture: /dev/zero",
     "8: sizes[1].capture: '/dev/zero': is no file", "pcap or pcapng"),
    ("sizes: [64, {capture: web.pcap", "sizes: [64, {capture: six.pcap",
     "8: sizes[1].capture: 'six.pcap': has no whole IPv4 packets (1 not IPv4)", "some"),
    ("sizes: [64, {capture: web.pcap", "sizes: [64, {captur: web.pcap", "8: sizes[1]: must be",
     "{capture: FILE}"),
    ("sizes: [64, {capture: web.pcap", 'sizes: [64, {capture: web.pcap, name: "64"',
     "8: sizes[1]: '64': ", "name: NAME"),
    ("sizes: [64, {capture: web.pcap}", "sizes: [{capture: web.pcap}, {capture: ./web.pcap}",
     "8: sizes[1]: 'web.pcap': ", "name: NAME"),
    ("sizes: [64, {capture: web.pcap", f"sizes: [64, {{capture: web.pcap, sha256: {'ab' * 32}",
     "8: sizes[1].capture: 'web.pcap': is another file: its sha256 is ", "remove sha256"),
    ("{sizes: [{capture: web.pcap}", "{sizes: [{capture: none.pcap}",
     "10: quick.sizes[0].capture: 'none.pcap': there is no", "pcap"),
    ("[router], convoys: 22", "[nat], flows: 9", "7: setups.router.functions: stateful", "remove"),
    *(("[router], convoys: 22", f"[{name}]", "7: setups.router.functions: a capture's full",
       "remove") for name in GROWING),
    ("[router], convoys: 22", "[router], queues: 2", "7: setups.router.queues: 2: ", "remove"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "where", "fix"), WRONG, ids=lambda text: text[:40])
def test_a_mistake_is_answered_with_its_line(tmp_path, old, new, where, fix):
    capture(tmp_path / "web.pcap")
    write_pcap(tmp_path / "six.pcap", [bytes(LEFT_OUT[1])])
    assert SCENARIO.count(old) == 1
    path = tmp_path / "x.yaml"
    path.write_text(SCENARIO.replace(old, new))
    with pytest.raises(InputError) as error:
        scenarios.load(str(path))
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"{path}:{where}")
    assert fix in line


def test_without_its_folder_of_captures_a_scenario_says_what_it_needs(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(SCENARIO + "needs: {folder: captures}\n")
    one = scenarios.load(str(path))
    assert [str(size) for size in one.sizes] == ["64", "web.pcap"]
    (cannot,) = order({"x": one}, {"dummy": Dummy()}, 1, 2, 1).cannot
    assert "needs captures in captures: no such folder" in cannot.why
    capture(tmp_path / "web.pcap")
    (tmp_path / "captures").mkdir()
    assert scenarios.load(str(path)).pending == ""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    """Three runs with a capture of one name, which is another file in the last one."""
    folder = tmp_path_factory.mktemp("captures")
    (folder / "x.yaml").write_text(SCENARIO)
    made = []
    for number in range(3):
        write_pcap(folder / "web.pcap", [bytes(packet) for packet, _ in SENT[number // 2 :]])
        plan = wanted([str(folder / "x.yaml")], quick=True, repeats=1)
        run = RunFolder(folder / str(number))
        run.create(plan)
        run.write_host(Host.model_validate(HOST))
        device_runs = order(plan.scenarios, {"dummy": Dummy()}, 1, 2, 1).device_runs
        Bench(run, plan.scenarios, settings(), lambda step: None).run(device_runs)
        made.append(run.path)
    return made


def test_results_have_the_capture_by_its_name_with_what_is_in_it(runs):
    digest = read(runs[0].parent / "web.pcap").sha256
    assert len(digest) == 64
    answer = Database(runs[2:]).query(
        "SELECT DISTINCT c.size, c.sha256, packets, flows, mean_frame_bytes, left_out "
        "FROM captures c JOIN points p USING (scenario, size) WHERE pdr_pps > 0"
    )
    assert answer.rows == (("web.pcap", digest, 7, 7, 392.6, None),)
    run = read_runs(runs[2:])
    (row, *_) = (row for row in run.rows if row.size == "web.pcap" and row.setup == "none")
    assert row.conditions.capture == digest
    assert row.frame_bytes == pytest.approx(392.6, abs=0.1)
    text = html(document(run))
    assert "web.pcap" in text and digest in text and digest[:12] in text


def test_runs_of_another_file_of_that_name_are_not_compared(runs):
    first, same, other = (read_runs([run]) for run in runs)
    names = [point["size"] for point in compare(first, same)["points"]]
    assert names == ["web.pcap", "64"]
    result = compare(first, other)
    assert [point["size"] for point in result["points"]] == ["64"]
    assert "Not compared, for it is not the same file in both runs: web.pcap." in result["summary"]


def test_a_run_goes_on_with_the_same_file_only(runs):
    plan = RunFolder(runs[2]).plan()
    check(plan.scenarios["x"])
    old = RunFolder(runs[0]).plan()
    with pytest.raises(InputError, match="is another file: its sha256 is"):
        check(old.scenarios["x"])
