# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench profile: rows of a run and bench-frame's numbers to a profile that sim reads."""

import json
import math
from dataclasses import replace

import pytest

from convoy.cli.bench_profile import profile_of
from convoy.errors import ConvoyError
from convoy.report.packets import Delay, Frames
from convoy.report.row import Row
from convoy.run.in_memory import FrameCost, bench_frame
from convoy.sim import profile

ROW = Row(
    scenario="quick",
    setup="forward",
    device="convoy",
    role="device",
    functions=(),
    cpu_speed=1.0,
    size="64",
    port_kind="vhost-user",
    goals={"pdr": {0: 4e6}},
    mrrs_pps=(),
    saturation_pps={},
    per_cpu_s={},
    saturation_cycles={},
    saturation_busy={},
    lost=(),
    frame_bytes=64.0,
    delays=(),
    node_cycles=(190.0, 210.0, 206.4),
    cycles_source="the node",
    function_cycles=(),
    cpu_shares=(),
    core_shares=(),
    repeats=3,
    trials=3,
    invalid=0,
    irregular=(),
    failed=(),
)
ROWS = [
    ROW,
    replace(ROW, size="1500", node_cycles=(350.0,)),
    replace(ROW, setup="router", functions=("router",), function_cycles=(20.0, 30.0, 10.0)),
    replace(ROW, setup="router", functions=("router",), size="1500", function_cycles=(99.0,)),
    replace(ROW, setup="chain", functions=("firewall", "router"), function_cycles=(70.0,)),
]
FRAMES = [FrameCost(n, 64, 20 / n + 4, 20 / n + 4) for n in (1, 2, 8, 22)]
HOST = {"tsc_hz": 1e9, "cpu": "a CPU"}


def test_rows_to_a_profile():
    made = profile_of(ROWS, HOST, FRAMES, "mine")
    result = profile.parse(json.dumps(made), "mine")
    assert result.costs is not None
    assert result.costs.port.cycles == pytest.approx(200, abs=0.1)
    assert result.costs.functions["router"].cycles == 20
    assert set(result.costs.functions) == {"none", "router"}
    assert result.costs.packet.cycles == pytest.approx(8)
    assert result.plain_pps == pytest.approx(1e9 / 206.4, rel=1e-3)
    assert "a CPU" in result.source


def test_packets_per_frame_by_rate_become_points():
    def at(rate, sizes):
        return Delay(f"{rate:g}", rate, (), (), (), 0.0, Frames(sizes))

    delays = (at(4e6, ((4, 25),)), at(1e6, ((1, 40), (2, 30))), Delay("x", 2e6, (), (), (), 0.0))
    packed = replace(ROW, scenario="paflow-ratio", setup="aggregated, even", delays=delays)
    bursts = replace(packed, setup="aggregated, bursts of 32", delays=(at(1e6, ((16, 2),)),))
    made = profile_of([*ROWS, packed, bursts], HOST, FRAMES, "mine")
    assert made["points"] == [
        {"rate_pps": 1e6, "ratio_percent": 70.0},
        {"rate_pps": 4e6, "ratio_percent": 25.0},
    ]
    assert made["measured"]["packets_per_frame"]["aggregated, bursts of 32"] == {"1e+06": 16.0}
    assert made["costs"] == profile_of(ROWS, HOST, FRAMES, "mine")["costs"]
    steps = profile.parse(json.dumps(made), "mine").steps
    assert (steps[0][1], steps[-1]) == (1, (4_000_000, 4))


def test_too_little_to_make_one():
    with pytest.raises(ConvoyError, match="too few trials"):
        profile_of(ROWS[1:], HOST, FRAMES, "mine")


def test_bench_frame_is_read():
    result = bench_frame(1)
    points = [(one.packets, one.packet_bytes) for one in result]
    assert points == sorted(set(points))
    assert {packets for packets, _ in points} > {1}  # single packets, and convoys
    assert all(math.isfinite(one.walk) and one.walk > 0 for one in result)
    assert all(math.isfinite(one.pack) and one.pack > 0 for one in result)
