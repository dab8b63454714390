# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Aggregation in results and reports: frames, ratios, losses in a row, claims beside the paper."""

import json
from dataclasses import replace

import pytest

from convoy.cli.console import console
from convoy.errors import ConvoyError
from convoy.report import export
from convoy.report.claims import _claim, summary
from convoy.report.html import html
from convoy.report.packets import Delay, Frames, frames_of, loss_periods_of
from convoy.report.papers import drops, in_memory, ratios, saturation, setups_compared
from convoy.report.row import Conditions
from convoy.report.run_data import read
from convoy.report.run_document import document as document_of
from convoy.report.text import markdown, show
from convoy.results.documents import Host
from convoy.results.folder import RunFolder
from convoy.results.memory import Memory
from convoy.results.scenario import Scenario
from convoy.results.simulated import Simulated
from convoy.results.trials import SATURATION, Cost, GoalResult, Point, Search, Trial
from convoy.run import session, simulated
from convoy.run.in_memory import measure

from .results import latency, plan
from .results import result as made_up

HOST = {
    "schema": "convoy.host/2", "started": "2026-01-01T00:00:00+00:00", "cpu": "none",
    "cores": [0, 1], "cores_allowed": [0, 1], "governor": None, "kernel": "6", "root": False,
    "convoy": "0", "commit": None, "devices": {}, "mitigations": {}, "hugepages": False,
    "tester_core": 0, "device_core": 1, "cannot": [], "self_test": None, "remarks": {},
}  # fmt: skip
NATIVE = {"convoys": 1, "options": {"convoy": {"convoys": "native"}}}
SCENARIOS = {
    "paflow-throughput": {"figure": {"y": "Mpps"}},
    "paflow-ratio": {"figure": {"y": "ratio"}, "references": ["paflow-table2-aggregation-ratio"]},
    "paflow-latency": {"figure": {"y": "latency"}},
    "paflow-guest": {"saturation": 2, "search": False},
    "paflow-in-place": {
        "saturation": 2,
        "search": False,
        "sizes": [64, 512],
        "compare": [
            {"setup": "native", "over": "default", "sizes": [64], "target": 6, "paper": "maximum"},
            {"setup": "default", "over": "native"},
        ],
    },
    "paflow-drops": {"figure": {"y": "lost"}, "references": ["paflow-table3-drops"]},
    "paflow-lookup": {"in-memory": ["next-hop", "vring"], "setups": {}, "devices": []},
}


def result(received, by_packets=None, lost=0, p50=1000, runs=()):
    convoys = None
    if by_packets is not None:
        convoys = {
            "received_by_packets": by_packets,
            "received_pkts": sum(n * count for n, count in by_packets),
        }
    total = {
        "offered_pkts": received + lost,
        "received_pkts": received,
        "lost_pkts": lost,
        "loss_bursts_pkts": [list(run) for run in runs],
        "refused_bursts_pkts": [],
        "latency": latency(p50, 9 * p50, [(p50, received)]),
    }
    return made_up(total=total, convoys=convoys)


def trial(scenario, setup, tester, rate=1e6, repeat=0, size="64"):
    point = Point(
        scenario=scenario, setup=setup, device="convoy", functions=(), size=size,
        repeat=repeat,
    )  # fmt: skip
    return Trial(
        point=point, purpose="latency", load=f"{rate / 1e6:g} Mpps", rate_pps=rate, duration_s=0.1,
        verdict="passed", commands=(), result=tester,
    )  # fmt: skip


def results(scenario, setup, rate, repeat=0):
    goal = GoalResult(goal="pdr", rate_pps=rate, lower_pps=rate, upper_pps=None, regular=True)
    point = trial(scenario, setup, made_up(), repeat=repeat).point
    return Search(point=point, outcome="measured", goals=(goal,))


LOOKUP = {
    "results": [{"sc_ids": 64, "same_key": {"median": 2.9, "min": 2.8, "max": 3.0},
                 "all_different": {"median": 6.1, "min": 6.0, "max": 6.2}}]
}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    common = {"title": "x", "from": "PA-Flow", "asks": "y", "devices": ["convoy"]}
    common["setups"] = {"default": {}, "native": NATIVE}
    scenarios = {n: Scenario.model_validate({**common, **more}) for n, more in SCENARIOS.items()}
    folder = RunFolder(tmp_path / "run")
    folder.create(plan(2, **scenarios))
    folder.write_host(Host.model_validate(HOST))
    for repeat, (plain, together) in enumerate(((8e6, 40e6), (10e6, 60e6))):
        folder.append(results("paflow-throughput", "default", plain, repeat))
        folder.append(results("paflow-throughput", "native", together, repeat))
    folder.append(trial("paflow-ratio", "native", result(100, [[2, 10], [8, 10]]), 1e6))
    folder.append(trial("paflow-ratio", "native", result(100), 2e6))
    for setup, pps, cpu_ns in (("default", 8e6, 10**8), ("native", 40e6, 10**8 // 2)):
        for more in (-1e6, 0, 1e6):
            taken = trial("paflow-guest", setup, made_up(total={"received_pps": pps + more}))
            changed = {"load": SATURATION, "elapsed_ns": 10**8, "device_cpu_ns": cpu_ns}
            folder.append(taken.model_copy(update=changed))
        lost = trial("paflow-guest", setup, made_up(total={"received_pps": 1.0}))
        folder.append(lost.model_copy(update={"load": SATURATION, "verdict": "invalid"}))
    for setup, pps, cycles in (("default", (8e6, 12e6), 180), ("native", (40e6, 36e6), 45)):
        for repeat, size in ((0, "64"), (1, "64"), (0, "512")):
            got = made_up(total={"received_pps": pps[repeat]}, tester={"tsc_hz": 1_800_000})
            taken = trial("paflow-in-place", setup, got, 1e6, repeat, size)
            cost = Cost(cycles=cycles * 1000, packets=1000, source="workers")
            folder.append(taken.model_copy(update={"load": SATURATION, "cost": cost}))
    for setup, p50 in (("default", 3000), ("native", 2500)):
        folder.append(trial("paflow-latency", setup, result(100, p50=p50)))
    folder.append(trial("paflow-drops", "default", result(90, lost=10, runs=[(1, 2), (8, 1)]), 4e6))
    folder.append(trial("paflow-drops", "native", result(80, lost=20, runs=[(20, 1)]), 4e6))
    for setup in ("default", "native"):
        folder.append(trial("paflow-drops", setup, result(100), 5e6))
    folder.append(
        Memory(scenario="paflow-lookup", what="next-hop", command=("bench",), result=LOOKUP)
    )
    return read([folder.path])


@pytest.mark.parametrize(
    ("received", "by_packets", "sizes"),
    [
        (100, [[2, 10], [8, 10]], ((2, 10), (8, 10))),
        (103, [[2, 10], [8, 10]], ((1, 3), (2, 10), (8, 10))),
        (7, [], ((1, 7),)),
    ],
)
def test_what_came_singly_is_a_frame_too(received, by_packets, sizes):
    frames = frames_of([result(received, by_packets)])
    assert frames == Frames(sizes)
    assert frames.packets == received
    assert frames.ratio_percent == pytest.approx(100 / frames.per_frame)


def test_nobody_looked_is_not_one_packet_in_a_frame():
    assert frames_of([result(100)]) is None


def test_half_of_what_was_lost_is_weighed_by_packets():
    runs = loss_periods_of([result(1, runs=[(1, 9), (10, 1)]), result(1, runs=[(1, 1), (32, 1)])])
    assert runs == ((1, 10), (10, 1), (32, 1))
    delay = Delay("", 0.0, (), (), (), None, loss_periods=runs)
    assert delay.median_loss_period == 32
    assert replace(delay, loss_periods=()).median_loss_period is None


def lines(table):
    return {tuple(cell.written for cell in row) for row in table.rows}


def test_ratio_stands_beside_table_2(run):
    table = ratios(run, "paflow-ratio")
    assert table.columns[3].name == "native, convoy"
    assert ("1", "27.2", "12", "20.0") in lines(table)
    assert ("2", "25.6", "10.5", "–") in lines(table)


def test_a_ratio_far_from_table_2_is_said(run):
    assert ratios(run, "paflow-ratio").notes == []
    slower = [
        replace(row, delays=tuple(replace(delay, rate_pps=1e5) for delay in row.delays[:1]))
        for row in run.rows
    ]
    output = ratios(replace(run, rows=tuple(slower)), "paflow-ratio").notes
    assert output == [
        "native, convoy: Table 2 is not reproduced at 1 of 1 rates, here (in the paper): "
        "0.1 Mpps 20.0 % (48.2 %)."
    ]


def test_a_claim_stands_beside_the_same_end_of_the_link_only(run):
    row = run.rows[0]
    together, library = Conditions(convoys=22, aggregates=True), Conditions(aggregates=True)
    guest = replace(row, device="testpmd", port_kind="virtio-user", conditions=together)
    assert _claim(guest) == "throughput gain PA-Flow-ethdev over DPDK/vhost-user at 64 B"
    assert _claim(replace(guest, conditions=library)) == ""  # packets alone
    # In the switch's place it is another thing than the paper's.
    assert _claim(replace(guest, port_kind="vhost-user", setup="ethdev, views")) == ""
    switch = replace(row, device="ovs-dpdk", port_kind="vhost-user", conditions=library)
    assert _claim(switch) == "throughput gain PA-Flow-vhost over DPDK/vhost-user at 64 B"


def test_drops_stand_beside_table_3(run):
    table = drops(run, "paflow-drops")
    assert ("4", "0.18", "10", "8", "20", "20") in lines(table)
    assert ("5", "0.48", "0", "–", "0", "–") in lines(table)


def test_the_summary_has_every_claim_that_was_measured(run):
    seen = {line[0]: line[2:4] for line in lines(summary(run))}
    assert seen["rate with convoys / without, 64 B"] == ("–", "5.50 [5.00 .. 6.00]")
    assert seen["look-up, same key"] == ("25.4", "2.9")
    assert seen["look-up, all different"] == ("26.3", "6.1")
    assert seen["latency added at 1 Mpps, p50"] == ("–", "-0.5 [-0.5 .. -0.5]")
    assert seen["rates at which more is lost with convoys"] == ("–", "4 Mpps")
    assert seen["at saturation, with / without, 64 B"] == ("–", "5.00")
    assert seen["packets per CPU second, with / without, 64 B"] == ("–", "10.00")
    assert seen["at saturation, native / default, 64 B"] == ("maximum", "4.00 [3.00 .. 5.00]")
    assert seen["at saturation, default / native, 512 B"] == ("–", "0.20")
    assert len(in_memory(run, "paflow-lookup").rows) == 2


def test_setups_are_set_over_others_round_by_round_and_size_by_size(run):
    rows = setups_compared(run, "paflow-in-place").rows
    assert (
        [tuple(cell.written for cell in row) for row in rows]
        == [
            tuple(cell.written for cell in row)
            for row in setups_compared(run, "paflow-in-place").rows
        ]
        == [
            (
                "native",
                "default",
                "convoy",
                "64",
                "4.00 [3.00 .. 5.00]",
                "0.25",
                "6",
                "maximum",
                "native",
            ),
            (
                "default",
                "native",
                "convoy",
                "64",
                "0.27 [0.20 .. 0.33]",
                "4.00",
                "–",
                "–",
                "native",
            ),
            ("default", "native", "convoy", "512", "0.20", "4.00", "–", "–", "native"),
        ]
    )
    (first, *_) = export.document(run)["compared"]
    assert (first["target"], first["rate"]["min"], first["cycles"]["median"]) == (6, 3.0, 0.25)
    assert setups_compared(run, "paflow-guest").rows == []


def test_what_a_packet_costs_at_saturation_is_shown(run):
    (row,) = (
        row for row in lines(saturation(run, "paflow-in-place")) if row[:3:2] == ("native", "512")
    )
    assert row[3:7] == ("40.00", "–", "45", "25")
    rows = export.document(run)["rows"]
    assert [
        r["saturation"]
        for r in rows
        if (r["scenario"], r["setup"], r["size"]) == ("paflow-in-place", "default", "64")
    ] == [
        {"pps": [8e6, 12e6], "per_cpu_s": [], "cycles_per_packet": [180, 180], "busy_share": [1, 1]}
    ]


def test_quick_compares_what_it_measures():
    one = Scenario.model_validate(
        {"title": "x", "from": "y", "asks": "z", "devices": ["convoy"],
         "setups": {"default": {}, "native": NATIVE, "other": {}},
         "compare": [{"setup": "native", "over": "default"}, {"setup": "other", "over": "native"}],
         "quick": {"setups": ["default", "native"]}}
    ).quickly()  # fmt: skip
    assert [(c.setup, c.over) for c in one.compare] == [("native", "default")]


def test_it_is_in_every_format(run, capsys):
    page = html(document_of(run))
    assert "PA-Flow&#39;s claims" in page
    assert "loss period, packets" in page
    assert "look-up, all different" in markdown(document_of(run))
    claims = export.document(run)["claims"]
    assert {"look-up, same key", "latency added at 1 Mpps, p99"} <= {one["what"] for one in claims}
    json.dumps(export.document(run))
    show(document_of(run), console())
    assert "Aggregation ratio" in capsys.readouterr().out


def test_in_memory_is_measured_once(tmp_path, monkeypatch):
    calls = []
    results = {"next-hop": LOOKUP}
    monkeypatch.setattr(
        session, "measure", lambda what: calls.append(what) or results.get(what, {"results": []})
    )
    plan_ = session.wanted(["paflow-lookup"])
    folder = RunFolder(tmp_path)
    folder.create(plan_)
    for _ in range(2):
        session._in_memory(folder, plan_, lambda step: None)
    assert calls == ["next-hop", "frame", "vring", "views"]
    assert [one.rows() for one in folder.memory()] == [LOOKUP["results"], [], [], []]


def test_topologies_are_simulated_once(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(session, "simulate", lambda what: calls.append(what) or {"tables": []})
    plan_ = session.wanted(["sim-topologies"])
    folder = RunFolder(tmp_path)
    folder.create(plan_)
    for _ in range(2):
        session._simulated(folder, plan_, lambda step: None)
    assert calls == ["paper-topologies"]
    assert [one.what for one in folder.simulated()] == ["paper-topologies"]


def test_the_paper_is_simulated_link_by_link(tmp_path, monkeypatch):
    words = ("sim", "paper", "--json", "--duration-s", "0.01", "--more-seeds", "2")
    monkeypatch.setattr(simulated, "COMMANDS", {"x": words})
    one = Simulated(scenario="x", what="x", command=simulated.command("x"),
                    result=simulated.simulate("x"))  # fmt: skip
    rows = one.rows()
    assert [(row["topology"], row["link"]) for row in rows] == [
        (topology, link) for topology in ("paper-1", "paper-2") for link in ("A-1", "1-i", "i-sink")
    ]
    for row in rows:
        assert len(row["mean_bytes"]) == len(row["frames_per_packet"]) == 3
        assert all(0 < value <= 1 for value in row["frames_per_packet"])
    monkeypatch.setitem(simulated.COMMANDS, "x", ("sim", "paper", "--profile", "nothing"))
    with pytest.raises(ConvoyError, match="nothing"):
        simulated.simulate("x")


def test_next_hops_are_measured():
    (row,) = (one for one in measure("next-hop", 1)["results"] if one["sc_ids"] == 4096)
    assert 0 < row["same_key"]["min"] <= row["same_key"]["median"]
