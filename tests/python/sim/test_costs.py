# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Costs measured on a node: fitted, turned into service times, used by a topology."""

import json

import pytest

from convoy.errors import InputError
from convoy.sim import profile
from convoy.sim.costs import Cycles, fit, line
from convoy.sim.engine import run
from convoy.sim.load import loads
from convoy.sim.resolve import resolve

# 200 cycles and 0.1 per byte for a frame; convoys 40 and 8 per packet; at 1 GHz a cycle is 1 ns.
COSTS = fit(
    1e9,
    {64: 206.4, 1500: 350.0},
    {"router": 20.0},
    {n: 40 / n + 8 for n in (1, 2, 8, 22)},
)
AGGREGATING = COSTS.model_copy(update={"aggregating": Cycles(cycles=150)})

TEXT = """\
profile: mine.json
sources:
  users: {cbr: {mpps: 0.1}}
functions:
  rtr: {like: router}
chains:
  all: {from: users, path: [rtr], to: sink}
aggregation: {queue: {burst: 32}}
simulate: {duration-s: 0.001}
"""


def document(**changes):
    costs = COSTS.model_dump()
    return json.dumps(
        {
            "schema": "convoy.sim.profile/1",
            "name": "mine",
            "source": "a test",
            "max_rate_pps": {"plain": 4e6, "aggregated": 9e6},
            "costs": costs,
        }
        | changes
    )


def test_fit_finds_what_the_numbers_were_made_of():
    assert COSTS.port.cycles == pytest.approx(200)
    assert COSTS.port.cycles_per_byte == pytest.approx(0.1)
    assert COSTS.frame.cycles == pytest.approx(40)
    assert COSTS.packet.cycles == pytest.approx(8)


def test_a_line_needs_two_places():
    with pytest.raises(InputError, match="two sizes"):
        line([(64, 200), (64, 210)])


def test_services_and_rates():
    assert COSTS.service("router", convoys=False) == {
        "per_packet_ps": 220_000,
        "per_byte_ps": 100,
    }
    assert COSTS.service("router", convoys=True) == {
        "per_packet_ps": 28_000,
        "per_byte_ps": 100,
        "per_frame_ps": 240_000,
        "per_sent_ps": 0,
        "per_single_ps": 220_000,
    }
    # A packet that leaves in company costs 150: 50 are to send a frame, of a convoy's 240, too.
    service = AGGREGATING.service("router", convoys=True)
    each = [service[f"per_{one}_ps"] for one in ("packet", "frame", "sent", "single")]
    assert each == [28_000, 190_000, 50_000, 170_000]
    assert AGGREGATING.rate_pps("router", 22, 64) == COSTS.rate_pps("router", 22, 64)
    assert COSTS.rate_pps("router", 1, 64) == pytest.approx(1e9 / 226.4)
    assert COSTS.rate_pps("router", 22, 64) == pytest.approx(1e9 / (34.4 + 240 / 22))
    with pytest.raises(InputError, match="the profile has router"):
        COSTS.service("ids", convoys=True)


@pytest.mark.parametrize("aggregated", [False, True])
def test_a_topology_uses_them_and_says_so(tmp_path, aggregated):
    """100 packets that never meet cost the same, whether others would share their frames or not."""
    (tmp_path / "mine.json").write_text(document(costs=AGGREGATING.model_dump()))
    network = resolve(loads(TEXT, tmp_path), aggregated)
    assert any("costs of functions from profile mine: a test" in note for note in network.notes)
    node = run(network.data)["nodes"][0]
    assert node["busy_share"] * 1e6 / node["served_packets"] == pytest.approx(226.4, rel=0.001)


def test_packets_and_frames_that_are_served_together_cost_each(tmp_path):
    """More than two nodes can take: bursts of 32 packets, which become frames of 23 and 9."""
    (tmp_path / "mine.json").write_text(document(costs=AGGREGATING.model_dump()))
    text = TEXT.replace("mpps: 0.1", "mpps: 10").replace("path: [rtr]", "path: [rtr, second]")
    text = text.replace(
        "like: router}",
        "like: router, queue-packets: 99}\n  second: {like: router, queue-packets: 999}",
    )
    first, second = run(resolve(loads(text, tmp_path), True).data)["nodes"][:2]
    assert first["dropped_packets"] > 0
    each = [one["busy_share"] * 1e6 / one["served_packets"] for one in (first, second)]
    assert each == pytest.approx([176.4 + 50 * 2 / 32, 34.4 + (190 + 50) * 2 / 32], rel=0.02)


def test_a_work_of_a_topologys_own_replaces_that_of_frames(tmp_path):
    (tmp_path / "mine.json").write_text(document())
    text = TEXT.replace("burst: 32", "burst: 32, burst-ns: 500")
    service = resolve(loads(text, tmp_path), True).data["nodes"][0]["service"]
    assert service == {
        "kind": "fixed",
        "per_packet_ps": 28_000,
        "per_byte_ps": 100,
        "per_burst_ps": 500_000,
    }


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("like: router", "like: ids"), "the profile has router"),
        (("like: router", "like: router, max-mpps: 3"), "exclude max-mpps"),
        (("profile: mine.json", "profile: paper-table2"), "has no costs"),
        (("queue: {burst: 32}", "table: {}"), "no packets per frame by rate"),
    ],
)
def test_what_does_not_go_together(tmp_path, change, wanted):
    (tmp_path / "mine.json").write_text(document())
    with pytest.raises(InputError, match=wanted):
        resolve(loads(TEXT.replace(*change), tmp_path))


def test_one_profile_serves_tables_and_queues(tmp_path):
    """What bench profile writes: points for aggregation by a table, costs for one by queue."""
    points = [
        {"rate_pps": 100_000, "ratio_percent": 100},
        {"rate_pps": 1_000_000, "ratio_percent": 50},
        {"rate_pps": 4_000_000, "ratio_percent": 10},
    ]
    (tmp_path / "mine.json").write_text(document(points=points))
    by_queue = resolve(loads(TEXT, tmp_path)).data["nodes"][0]
    assert by_queue["aggregation"]["mode"] == "queue"
    assert by_queue["service"]["per_frame_ps"] == 240_000
    text = TEXT.replace("queue: {burst: 32}", "table: {window-ms: 0.1}")
    text = text.replace("{like: router}", "{}").replace("mpps: 0.1", "mpps: 2.5")
    network = resolve(loads(text, tmp_path))
    assert "largest rates from profile mine" in network.notes
    result = run(network.data)
    link = result["links"][0]
    # After the first of ten windows, whose rate is 0: 2.5 Mpps, 30 %, 3 packets.
    assert set(link["sizes"]) == {"64", "236"}
    assert link["sizes"]["236"] == pytest.approx(2250 / 3, abs=2)
    assert result["nodes"][0]["busy_share"] == pytest.approx(2.5 / 9, rel=0.01)


def test_a_profile_needs_points_or_costs():
    with pytest.raises(InputError, match="neither points nor costs"):
        profile.parse(document(costs=None), "mine")


def test_the_measured_profile_that_comes_with_us(tmp_path):
    result = profile.load("node-zen4", tmp_path)
    assert result.costs is not None
    assert {"none", "l2fwd", "router", "firewall"} == set(result.costs.functions)
    assert result.plain_pps == pytest.approx(result.costs.rate_pps("none", 1, 64), rel=1e-3)
    assert "not measured on a node" in result.source
