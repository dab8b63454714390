# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run's results beside each of PA-Flow's claims, in one table."""

import math
import statistics
from collections.abc import Iterator, Mapping

from convoy import reference
from convoy.report.document import Cell, Column, Table, Value, spread
from convoy.report.findings import size_name
from convoy.report.gains import bound, compared, gain, pairs, saturation_gain
from convoy.report.packets import Delay
from convoy.report.papers import source
from convoy.report.row import Row
from convoy.report.run_data import Run

SMALL = "64"
KEPT_UP = 0.005  # of the packets lost at most; beyond that, latency is that of a full queue


class _Summary:
    """Collects the lines of the summary."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.claims = {row["claim"]: row for row in reference.table("paflow-claims")}
        self.table = Table(
            ["what", "unit", "paper", "here", Column("from", "", "scenario, setup, device")],
            title="PA-Flow's claims and this run",
        )

    def add(self, what: str, unit: str, here: Value, where: str, claim: str = "") -> None:
        """Add a line; claim: the paper's, by its name in the reference table."""
        row = self.claims.get(claim)
        paper = Cell(float(row["value"]), row["value"], source(row)) if row is not None else None
        self.table.add(what, unit, paper, here, where)

    def _pairs(self, figure: str = "") -> Iterator[tuple[str, Row, Row]]:
        """Yield scenario, a row with convoys and one without; figure: only of those with such."""
        for scenario, plan in self.run.scenarios.items():
            if figure in ("", plan.figure.y):
                for row, plain in pairs(self.run, scenario):
                    yield scenario, row, plain

    def throughput(self) -> None:
        """How many times as fast, at 64 B; and the least at any size."""
        least: dict[tuple[str, str, str], tuple[float, str, str]] = {}
        for scenario, row, plain in self._pairs():
            result = gain(row, plain)
            if result is None:
                continue
            key = (scenario, row.setup, row.name)
            sign = bound(row, plain)
            least[key] = min(least.get(key, (math.inf, "", "")), (result[0], row.size, sign))
            if row.size == SMALL:
                where = f"{scenario}: {row.setup} / {plain.setup}, {row.name}"
                what = "rate with convoys / without, 64 B"
                self.add(what, "x", spread(result, sign=sign), where, _claim(row))
        for (scenario, setup, name), (ratio, size, sign) in least.items():
            if size != SMALL:
                cell, where = Cell(ratio, f"{sign}{ratio:.2f}"), f"{scenario}: {setup}, {name}"
                self.add(f"the least at any size: {size_name(size)}", "x", cell, where)

    def saturation(self) -> None:
        """How much more each takes, in a second and in a second of CPU time."""
        for scenario, row, plain in self._pairs():
            if self.run.scenarios[scenario].compare:
                continue  # it names them itself
            where = f"{scenario}: {row.setup} / {plain.setup}, {row.name}"
            for what, name, claim in (
                ("at saturation, with / without", "saturation_pps", _claim(row)),
                ("packets per CPU second, with / without", "per_cpu_s", ""),
            ):
                result = saturation_gain(row, plain, name)
                if result is not None:
                    self.add(f"{what}, {size_name(row.size)}", "x", spread(result), where, claim)

    def compared(self) -> None:
        """How many times as much setups take as those that the scenario sets them over."""
        for scenario in self.run.scenarios:
            for one in compared(self.run, scenario):
                where = f"{scenario}: {one.setup} / {one.over}, {one.name}"
                what = f"at saturation, {one.setup} / {one.over}, {size_name(one.size)}"
                self.table.add(what, "x", one.paper or None, spread(one.rate), where)

    def latency(self) -> None:
        """The latency that aggregation adds at every fixed rate that both sustained."""
        for scenario, row, plain in self._pairs("latency"):
            where = f"{scenario}: {row.setup} - {plain.setup}, {row.name}"
            for one, other in _same_rates(row, plain):
                if (one.lost_ratio or 0) > KEPT_UP or (other.lost_ratio or 0) > KEPT_UP:
                    continue
                for share in (0.5, 0.99):
                    added = _added_us(one, other, share)
                    if added is not None:
                        what = f"latency added at {one.load}, p{100 * share:g}"
                        self.add(what, "us", added, where)

    def lost(self) -> None:
        """Whether more is ever lost."""
        for scenario, row, plain in self._pairs("lost"):
            more = [
                one.load
                for one, other in _same_rates(row, plain)
                if (one.lost_ratio or 0) > (other.lost_ratio or 0)
            ]
            where = f"{scenario}: {row.setup}, {row.name}"
            what = "rates at which more is lost with convoys"
            self.add(what, "", ", ".join(more) or "none", where)

    def parts(self) -> None:
        """Cycles in memory."""
        for one in self.run.memory:
            for row in one.rows():
                if one.what == "next-hop":
                    where = f"{one.scenario}: {row['sc_ids']} SC-IDs"
                    self.add("look-up, same key", "cycles", row["same_key"]["median"], where,
                             "table lookup same key")  # fmt: skip
                    self.add("look-up, all different", "cycles", row["all_different"]["median"],
                             where, "table lookup all keys different")  # fmt: skip
                if one.what == "views":
                    case = f"{row['working_set']}, buffers {row['buffers']}, pages {row['pages']}"
                    result = row["times"]["median"], row["times"]["min"], row["times"]["max"]
                    what = "router, a buffer each / in convoys"
                    self.add(what, "x", spread(result), f"{one.scenario}: {case}")
            if one.what == "vring":
                split = [row for row in one.rows() if row.get("ring", "split") == "split"]
                self._vring({row["row"]: row["cycles_per_packet"] for row in split}, one.scenario)

    def _vring(self, cycles: Mapping[str, Mapping[str, float]], scenario: str) -> None:
        for what, ours, stock, plain in (
            ("dequeue", "coalesce", "rte_vhost_dequeue", "plain_dequeue"),
            ("enqueue", "scatter", "rte_vhost_enqueue", "plain_enqueue"),
        ):
            if {ours, stock, plain} <= cycles.keys():
                own = cycles[ours]["median"]
                for other, claim in ((stock, f"{what} overhead"), (plain, "")):
                    value = own - cycles[other]["median"]
                    cell, where = Cell(value, f"{value:+.1f}"), f"{scenario}: {ours} - {other}"
                    self.add(f"{what}, cycles more", "cycles/packet", cell, where, claim)


def _claim(row: Row) -> str:
    """Return which of the paper's claims a row is comparable with: the same end of the link.

    PA-Flow-vhost is under the switch; PA-Flow-ethdev is in the guest, and says nothing about
    testpmd in the switch's place.
    """
    kind = ""
    if row.device == "ovs-dpdk" and row.conditions.aggregates:
        kind = "vhost"
    elif row.port_kind == "virtio-user" and row.conditions.convoys > 1:
        kind = "ethdev"
    return kind and f"throughput gain PA-Flow-{kind} over DPDK/vhost-user at 64 B"


def _same_rates(row: Row, plain: Row) -> Iterator[tuple[Delay, Delay]]:
    for one in row.delays:
        other = plain.delay(one.load)
        if other is not None:
            yield one, other


def _added_us(one: Delay, other: Delay, share: float) -> Value:
    """Return how much later, with the range that the repeats leave it in."""
    values = (one.p50s_ns, other.p50s_ns) if share == 0.5 else (one.p99s_ns, other.p99s_ns)
    if not values[0] or not values[1]:
        return None
    added = (statistics.median(values[0]) - statistics.median(values[1])) / 1e3
    low = (min(values[0]) - max(values[1])) / 1e3
    high = (max(values[0]) - min(values[1])) / 1e3
    return Cell(added, f"{added:+.1f} [{low:+.1f} .. {high:+.1f}]")


def summary(run: Run) -> Table | None:
    """Return the paper's claims beside this run; None: it has no scenario of PA-Flow's."""
    if not any(one.source.startswith("PA-Flow") for one in run.scenarios.values()):
        return None
    made = _Summary(run)
    made.throughput()
    made.saturation()
    made.compared()
    made.latency()
    made.lost()
    made.parts()
    return made.table if made.table.rows else None
