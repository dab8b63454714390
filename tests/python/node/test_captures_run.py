# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Captures through the examples' chains: no crash, and the books balance."""

import pytest

from convoy.chain.captures import with_captures
from convoy.chain.open import open_file
from convoy.cli.run import run
from convoy.host.machine import this_machine

from .conftest import ROOT, captures, read_capture, write_capture

CAPTURES = captures()
needs_captures = pytest.mark.skipif(
    not CAPTURES, reason="no captures here; set CONVOY_CAPTURES to a folder of pcap files"
)


def through(example, read, write, chain=None):
    plan = open_file(ROOT / f"examples/{example}.yaml", this_machine()).plan
    return run(read, with_captures(plan, read, write, chain)).counts


def check(counts, read_frames: int, written: int):
    books = counts["books"]
    assert books["balanced"]
    assert books["received"] == read_frames
    assert books["held"] == 0
    assert books["sent"] == written
    drops = [
        sum(things["drops"].values())
        for part in ("ports", "functions")
        for things in counts[part].values()
    ]
    assert sum(drops) == books["dropped"]


@needs_captures
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_capture(path, tmp_path):
    counts = through("three-functions", path, tmp_path / "out.pcap")
    frames = read_capture(tmp_path / "out.pcap")
    assert counts["ports"]["outside"]["tx_packets"] == len(frames)
    assert counts["ports"]["outside"]["tx_bytes"] == sum(map(len, frames))
    check(counts, counts["ports"]["inside"]["rx_packets"], len(frames))
    assert counts["functions"]["fw"]["packets"] == counts["books"]["received"] > 0


@needs_captures
@pytest.mark.parametrize(
    ("example", "chain"),
    [
        ("bridge", None),
        ("firewall-router", None),
        ("pipeline", None),
        ("two-tenants", "red"),
        ("vxlan", "tenant"),
    ],
)
def test_example(example, chain, tmp_path):
    path = next((p for p in CAPTURES if p.stem == example), CAPTURES[0])
    counts = through(example, path, tmp_path / "out.pcap", chain)
    check(counts, counts["books"]["received"], len(read_capture(tmp_path / "out.pcap")))


@needs_captures
def test_pipeline_and_inline_do_the_same(tmp_path):
    packets = 0
    for path in CAPTURES[:3]:
        plan = open_file(ROOT / "examples/pipeline.yaml", this_machine()).plan
        outputs = []
        for stages in (plan.data["stages"], inline(plan.data["stages"])):
            write = tmp_path / "out.pcap"
            data = {**plan.data, "stages": stages}
            run(path, with_captures(type(plan)(data), path, write, None))
            outputs.append(read_capture(write))
        assert outputs[0] == outputs[1]
        packets += len(outputs[0])
    assert packets


def inline(stages):
    first, *_, last = stages
    path = [name for stage in stages for name in stage["path"]]
    return [{**first, "path": path, "sink": last["sink"]}]


def test_an_empty_capture(tmp_path):
    read = write_capture(tmp_path / "in.pcap", [])
    check(through("three-functions", read, tmp_path / "out.pcap"), 0, 0)
    assert read_capture(tmp_path / "out.pcap") == []
