# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a switch and the VNF behind it spend, each by its own counters."""

from dataclasses import replace

from convoy.dut.base import Cost as Counted
from convoy.dut.dummy import Dummy, RunningDummy
from convoy.report.document import MISSING
from convoy.report.figures import cpu_by_size, figures
from convoy.report.findings import of_scenario
from convoy.report.html import html
from convoy.report.papers import beside
from convoy.report.run_data import read
from convoy.report.run_document import document
from convoy.results.database import Database
from convoy.results.folder import RunFolder
from convoy.results.scenario import Figure
from convoy.results.trials import Cost
from convoy.run.device_cost import Spent, between

from .test_run import run


def counted(cycles, packets, source="workers"):
    return Counted(cycles, packets, source)


def test_what_was_spent_in_between():
    before = Spent(None, {"switch": counted(100, 10), "VNF 1": counted(50, 5)})
    after = Spent(counted(7, 7), {"switch": counted(400, 30), "VNF 2": counted(9, 9)})
    assert between(before, after) == (
        None,  # it did not count before
        {"switch": Cost(cycles=300, packets=20, source="workers")},
    )
    assert between(Spent(counted(1, 1), {}), after)[0] == Cost(
        cycles=6, packets=6, source="workers"
    )


class Two(RunningDummy):
    """A switch that spends 3 times as much as the VNF behind it."""

    def part_costs(self):
        whole = self.cost()
        return {
            "switch": counted(3 * whole.busy_cycles, 2 * whole.packets),
            "VNF 1": counted(whole.busy_cycles, whole.packets),
        }


class Composed(Dummy):
    """Both."""

    name = "composed"

    def start(self, setup):
        two = Two(self.curve, setup)
        two.notes = ("switch and VNFs share a core: by turns",)
        return two


def test_each_side_is_in_results_report_and_tables(tmp_path):
    run(tmp_path, {"composed": Composed()}, repeats=1)
    trials = [t for t in RunFolder(tmp_path).trials() if t.cost and t.cost.packets]
    assert trials
    for trial in trials:
        switch, vnf = trial.part_costs["switch"], trial.part_costs["VNF 1"]
        assert (switch.cycles, vnf.cycles) == (3 * trial.cost.cycles, trial.cost.cycles)
    row = next(row for row in read([tmp_path]).rows if row.part_cycles)
    switch, vnf = row.part_cycles["switch"], row.part_cycles["VNF 1"]
    assert len(switch) == len(vnf) > 0
    # Of what came through: a curve spends nothing on what it loses.
    assert vnf == row.node_cycles
    page = html(document(read([tmp_path])))
    assert "Each side" in page
    rows = Database([tmp_path]).query("SELECT DISTINCT part FROM parts ORDER BY 1").rows
    assert rows == (("VNF 1",), ("switch",))
    (scenario,) = read([tmp_path]).scenarios
    sentences = [text for text in of_scenario(read([tmp_path]), scenario) if "share" in text]
    assert sentences == ["composed: switch and VNFs share a core: by turns."]


def test_busy_cycles_stand_beside_cpu_time_by_frame_size(tmp_path):
    run(tmp_path, {"a": Dummy()}, repeats=1)
    whole = read([tmp_path])
    (name,) = whole.scenarios
    references = ("niu-table2-clickos-cpu",)
    changed = {"references": references, "figure": Figure(x="size", y="cpu"), "latency": (0.5,)}
    # A curve has no processes, and each poll loop takes its core.
    # Nor is it known whether a core was busy for as short as its trials take.
    rows = tuple(replace(row, cpu_shares=(1.0,), core_shares=()) for row in whole.rows)
    scenario = whole.scenarios[name].model_copy(update=changed)
    whole = replace(whole, scenarios={name: scenario}, rows=rows)
    mine = next(row for row in rows if row.contends and row.size == "64")
    passed = [t for t in RunFolder(tmp_path).trials()
              if (t.point.setup, t.point.size, t.point.role, t.verdict)
              == (mine.setup, "64", "device", "passed") and t.purpose != "mrr"]  # fmt: skip
    most = max(passed, key=lambda trial: trial.received_pps)
    (share,) = mine.busy_shares
    assert share == most.cost.cycles / (most.tsc_hz * most.duration_s)
    assert 0 < share <= 1
    table = next(one for one in beside(whole, name) if one.title.startswith("CPU use"))
    line = next(row for row in table.rows if row[0].written == f"{mine.name}, {mine.setup}")
    assert [cell.written for cell in line[1:6]] == [
        "64", "100", MISSING, f"{100 * share:.0f}",
        f"{100 * mine.delay('50% of PDR').busy_shares[0]:.0f}",
    ]  # fmt: skip
    figure = cpu_by_size(whole, name)
    assert figure is not None
    panels = {note.text for note in figure.layout.annotations} | {t.name for t in figure.data}
    assert any("busy cycles, at PDR" in text for text in panels)
    assert any("CPU time, at PDR" in text for text in panels)
    assert any("busy cycles" in one.caption for one in figures(whole, name))
