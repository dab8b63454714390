# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Tables 4 and 5 of the PA-Flow paper beside what the simulator gives for the same networks."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from convoy import reference
from convoy.sim.engine import Engine, ShareDone, run
from convoy.sim.load import open_topology
from convoy.sim.resolve import resolve

Json = dict[str, Any]
TOLERANCE = 0.03

CHANCE = 0.95

DERIVED = (
    "Derived from the very tables shown here, so they test consistency and predict nothing: the "
    "servers' rates and number (10 per firewall), a rate that moves by a twentieth every 0.1 ms, "
    "from 0, the 20 us flush, rates rounded down to whole Mpps, the frame's 46 + 60 n bytes, the "
    "largest plain rate (4.87 Mpps), 0.25 s for Table 4 (all its counts are multiples of 4), one "
    "packet per frame below 1 Mpps and 5 at 4 Mpps (Table 2 gives 2 and 6.1): the closest of some "
    "450 settings of servers, start, rate estimate and duration. Taken from the paper: "
    "the shape, 64 B, 1 ms bursts, 0.1 to 1 ms gaps, Table 2, round robin, no drops."
)


@dataclass(frozen=True)
class Table:
    """One of the paper's tables: its file, and which of our links are which of its columns."""

    topology: str
    title: str
    file: str
    links: dict[str, tuple[str, str]]  # column -> prefixes of the node names at both ends
    duration_s: float  # simulated; counts are per second


TABLES = (
    Table(
        "paper-1",
        "Table 4, topology (I)",
        "paflow-table4-topology1",
        {"A-1": ("firewall", "dpi"), "1-i": ("dpi", "router"), "i-sink": ("router", "sink")},
        0.25,
    ),
    Table(
        "paper-2",
        "Table 5, topology (II)",
        "paflow-table5-topology2",
        {"A-1": ("a", "b"), "1-i": ("b", "c"), "i-sink": ("c", "sink")},
        1.0,
    ),
)


def _short(count: float) -> str:
    return f"{count / 1000:.3g}k" if count >= 1000 else f"{count:.0f}"


@dataclass(frozen=True)
class PaperRow:
    """One cell, total or mean: the paper's and ours. Counts are per link and second."""

    mode: str
    link: str
    what: str
    unit: str
    paper: float
    ours: float
    seeds: tuple[float, ...] = ()  # ours, with other seeds too

    @property
    def deviation(self) -> float:
        """Ours / paper - 1."""
        return self.ours / self.paper - 1

    @property
    def verdict(self) -> str:
        """Whether it is the paper's, or could be: the paper shows one run, of a seed unknown."""
        if abs(self.deviation) <= TOLERANCE:
            return "yes"
        if self.seeds:
            least, most = self.chance
            if least <= self.paper <= most:
                return f"chance {_short(least)}..{_short(most)}"
        return "no"

    @property
    def chance(self) -> tuple[float, float]:
        """The middle 95 % of ours over the seeds (fewer than 40: all of them)."""
        ordered = sorted(self.seeds)
        cut = int(len(ordered) * (1 - CHANCE) / 2)
        return ordered[cut], ordered[-1 - cut]


@dataclass(frozen=True)
class LinkFigures:
    """What a link between two stages carries with aggregation, by seed. The mean of such links."""

    link: str
    mean_bytes: tuple[float, ...]  # of a frame, with all of its headers
    frames_per_packet: tuple[float, ...]


@dataclass(frozen=True)
class Comparison:
    """One table, compared."""

    table: Table
    rows: tuple[PaperRow, ...]
    links: tuple[LinkFigures, ...]
    saved_per_packet: float  # share of packets that the sink's link is spared
    saved_by_cells: float  # the same from frames with and without aggregation
    paper_saved_per_packet: float
    paper_saved_by_cells: float
    notes: tuple[str, ...]
    results: dict[str, Json]  # mode -> result


def compare(
    duration_s: float | None = None,
    seed: int = 1,
    engine: Engine = "auto",
    profile: str | None = None,
    progress: Callable[[str], ShareDone] | None = None,
    more_seeds: int = 0,
) -> list[Comparison]:
    """Run both topologies, with and without aggregation. Raises as convoy.sim.engine.run.

    duration_s: simulated; None: as the paper seems to, 0.25 s for (I) and 1 s for (II).
    more_seeds: with aggregation also for so many seeds after the first; an interrupt ends that.
    """
    comparisons = []
    for table in TABLES:
        simulated_s = table.duration_s if duration_s is None else duration_s
        overrides: dict[str, Any] = {"simulate": {"duration-s": simulated_s, "seed": seed}}
        if profile is not None:
            overrides["aggregation.table.profile"] = profile
        loaded = open_topology(table.topology, overrides)
        results: dict[str, Json] = {}
        notes: tuple[str, ...] = ()
        for mode, aggregated in (("default", False), ("paflow", True)):
            network = resolve(loaded, aggregated)
            notes = network.notes
            on_progress = progress(f"{table.title}, {mode}") if progress else None
            results[mode] = run(network.data, engine, on_progress)
        compared = _compare(table, results, notes)
        on_progress = progress(f"{table.title}, more seeds") if progress and more_seeds else None
        others = [compared]
        for more in range(more_seeds):
            if not all(result["complete"] for result in others[-1].results.values()):
                break
            network = resolve(loaded, True, seed + more + 1)
            again = results | {"paflow": run(network.data, engine)}
            others.append(_compare(table, again, notes))
            if on_progress is not None:
                on_progress((more + 1) / more_seeds, 0)
        comparisons.append(_with_seeds(compared, others))
    return comparisons


def _with_seeds(compared: Comparison, all_seeds: list[Comparison]) -> Comparison:
    rows = tuple(
        replace(row, seeds=tuple(one.rows[i].ours for one in all_seeds))
        if row.mode == "paflow"
        else row
        for i, row in enumerate(compared.rows)
    )
    links = tuple(
        LinkFigures(
            one.link,
            tuple(value for other in all_seeds for value in other.links[i].mean_bytes),
            tuple(value for other in all_seeds for value in other.links[i].frames_per_packet),
        )
        for i, one in enumerate(compared.links)
    )
    return replace(compared, rows=rows, links=links)


def _mean_link(result: Json, ends: tuple[str, str]) -> Json:
    """Return frames, packets, bytes and sizes of the mean link between two stages, per second."""
    names = [
        (link, link["from"].split(".")[0], link["to"].split(".")[0]) for link in result["links"]
    ]
    links = [link for link, start, end in names if (start, end) == ends]
    scale = 1 / (len(links) * result["simulated_s"])
    sizes: Counter[int] = Counter()
    for link in links:
        for size, frames in link["sizes"].items():
            sizes[int(size)] += frames
    return {
        "frames": scale * sum(link["frames"] for link in links),
        "packets": scale * sum(link["packets"] for link in links),
        "bytes": scale * sum(link["bytes"] for link in links),
        "sizes": {size: scale * frames for size, frames in sorted(sizes.items())},
    }


def _mean_bytes(rows: list[dict[str, str]], ours: Json) -> tuple[float, float] | None:
    """Return the paper's mean size and ours, where the paper's table has it."""
    key = (rows[0]["source"].split()[-1], rows[0]["link"])
    paper = _PAPER_MEANS.get(key)
    return None if paper is None else (paper, ours["bytes"] / ours["frames"])


# "Avg. size [bytes]" of both tables, with aggregation.
_PAPER_MEANS = {
    ("4", "A-1"): 223.17,
    ("4", "1-i"): 276.43,
    ("4", "i-sink"): 897.63,
    ("5", "A-1"): 225.10,
    ("5", "1-i"): 225.01,
    ("5", "i-sink"): 290.39,
}


def _compare(table: Table, results: dict[str, Json], notes: tuple[str, ...]) -> Comparison:
    cells = reference.table(table.file)
    rows: list[PaperRow] = []
    totals: dict[tuple[str, str], tuple[float, float]] = {}
    for mode, result in results.items():
        for link, ends in table.links.items():
            ours = _mean_link(result, ends)
            paper = [c for c in cells if c["mode"] == mode and c["link"] == link]
            for cell in paper:
                low, high = int(cell["size_min"]), int(cell["size_max"])
                count = sum(n for size, n in ours["sizes"].items() if low <= size <= high)
                what = f"{low} B" if low == high else f"{low} to {high} B"
                rows.append(PaperRow(mode, link, what, "frames", float(cell["packets"]), count))
            total = sum(float(cell["packets"]) for cell in paper)
            totals[mode, link] = (total, ours["frames"])
            if len(paper) > 1:
                rows.append(PaperRow(mode, link, "all", "frames", total, ours["frames"]))
            mean = _mean_bytes(paper, ours) if mode == "paflow" else None
            if mean is not None:
                rows.append(PaperRow(mode, link, "mean size", "bytes", *mean))
    carried = {link: _mean_link(results["paflow"], ends) for link, ends in table.links.items()}
    links = tuple(
        LinkFigures(link, (one["bytes"] / one["frames"],), (one["frames"] / one["packets"],))
        for link, one in carried.items()
    )
    sink = carried["i-sink"]
    paper_plain, ours_plain = totals["default", "i-sink"]
    paper_frames, ours_frames = totals["paflow", "i-sink"]
    paper_mean = next(r.paper for r in rows if (r.link, r.what) == ("i-sink", "mean size"))
    return Comparison(
        table,
        tuple(rows),
        links,
        1 - sink["frames"] / sink["packets"],
        1 - ours_frames / ours_plain,
        1 - 60 / (paper_mean - 46),
        1 - paper_frames / paper_plain,
        notes,
        results,
    )
