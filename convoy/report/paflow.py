# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""PA-Flow's tables beside ours.

A setup with convoys is compared with the setup without them that has the same functions, round by
round: in plan.yaml that is the first one of those functions and that deployment whose devices get
no convoys.
"""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from convoy import reference
from convoy.report.beside import Beside, source
from convoy.report.frames import half_of_lost
from convoy.report.page import Cell, Column, Value
from convoy.report.row import Row
from convoy.report.run_data import Run
from convoy.results.scenario import SetupSpec

RATIO = "paflow-table2-aggregation-ratio"
DROPS = "paflow-table3-drops"


def _measured(run: Run, scenario: str) -> list[Row]:
    return [row for row in run.of(scenario) if row.contends]


def _kind(spec: SetupSpec, device: str) -> tuple[object, ...]:
    """Return what two setups must have in common to be compared."""
    options = dict(spec.options.get(device, {}))
    options.pop("convoys", None)
    return spec.functions, spec.deployment, spec.ports, tuple(options.items()), spec.pacing


def _has_convoys(spec: SetupSpec, device: str) -> bool:
    return spec.options.get(device, {}).get("convoys", "no") != "no"


def pairs(run: Run, scenario: str) -> Iterator[tuple[Row, Row]]:
    """Yield a row with convoys, and that of the same device and frames without."""
    setups = run.scenarios[scenario].setups
    rows = _measured(run, scenario)
    for row in rows:
        spec = setups.get(row.setup)
        if spec is None or not _has_convoys(spec, row.device):
            continue
        for plain in rows:
            other = setups.get(plain.setup)
            same = (plain.name, plain.size) == (row.name, row.size)
            if other is None or not same or _has_convoys(other, row.device):
                continue
            if _kind(spec, row.device) == _kind(other, row.device):
                yield row, plain
                break


def _in_one_phase(row: Row, other: Row, rounds: Iterable[int]) -> list[int]:
    """Return the rounds in which the machine was the same for both: a slow phase says nothing
    beside a fast one."""
    return sorted(i for i in rounds if (i in row.slow) == (i in other.slow))


def gain(row: Row, plain: Row) -> tuple[float, float, float] | None:
    """Return the ratio of two rows' rates: median, least and most of the rounds that have both."""
    both = _in_one_phase(row, plain, row.rounds.keys() & plain.rounds.keys())
    ratios = [row.rounds[i] / plain.rounds[i] for i in both]
    return (statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


def _median_of(rounds: Mapping[int, tuple[float, ...]]) -> dict[int, float]:
    return {repeat: statistics.median(values) for repeat, values in rounds.items()}


def full_speed_gain(row: Row, plain: Row, what: str) -> tuple[float, float, float] | None:
    """Return the ratio of two rows' medians, round by round: median, least, most.

    what: the rows' "full_speed_pps", "per_cpu_s" or "full_speed_cycles".
    """
    one, other = _median_of(getattr(row, what)), _median_of(getattr(plain, what))
    both = _in_one_phase(row, plain, one.keys() & other.keys())
    ratios = [one[i] / other[i] for i in both]
    return (statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


def full_speed(run: Run, scenario: str) -> Beside:
    """What devices take at most, in a second and in a second of CPU time."""
    out = Beside(
        "At full speed: as much as each takes, median and range of all trials",
        ["setup", "device", Column("frame", "bytes"), Column("rate", "Mpps"),
         Column("per CPU second", "M packets"),
         Column("cycles", "per packet", "busy TSC ticks by the device's own counters"),
         Column("busy", "%", "of the trial, by the same counters; less: it waited for the tester"),
         "with / without", "with / without, per CPU second"],
    )  # fmt: skip
    rows = [row for row in run.of(scenario) if row.full_speed_pps]
    plains = {id(row): plain for row, plain in pairs(run, scenario)}
    for row in rows:
        line: list[Value] = [row.setup, row.name, row.size]
        for rounds in (row.full_speed_pps, row.per_cpu_s):
            line.append(_spread([v for values in rounds.values() for v in values], 1e6, 2))
        line.append(_spread([v for values in row.full_speed_cycles.values() for v in values], 1, 0))
        busy = [v for values in row.full_speed_busy.values() for v in values]
        line.append(_spread(busy, 0.01, 0))
        plain = plains.get(id(row))
        for name in ("full_speed_pps", "per_cpu_s"):
            found = plain and full_speed_gain(row, plain, name)
            line.append(times(found) if found else None)
        out.rows.append(line)
    return out


def times(found: tuple[float, float, float]) -> Cell:
    """Return a ratio: median, least and most, where these differ."""
    middle, least, most = found
    spread = f" [{least:.2f} .. {most:.2f}]" if least != most else ""
    return Cell(middle, f"{middle:.2f}{spread}")


def _spread(values: list[float], unit: float, digits: int) -> Cell | None:
    if not values:
        return None
    middle = statistics.median(values)
    shown = [f"{value / unit:.{digits}f}" for value in (middle, min(values), max(values))]
    return Cell(middle, f"{shown[0]} [{shown[1]} .. {shown[2]}]")


def ratios(run: Run, scenario: str) -> Beside:
    """Table 2: frames / packets, by rate."""
    out = Beside(
        "Aggregation ratio: frames / packets, per cent (the paper: after / before aggregation)",
        [Column("rate", "Mpps"), Column("paper, even", "%"), Column("paper, bursts of 32", "%")],
    )
    rows = [r for r in _measured(run, scenario) if any(d.frames for d in r.delays)]
    out.columns += [Column(f"{row.setup}, {row.name}", "%") for row in rows]
    paper = {float(row["rx_rate_pps"]): row for row in reference.table(RATIO)}
    rates = sorted({*paper, *(d.rate_pps for row in rows for d in row.delays)})
    for rate in rates:
        cells: Mapping[str, str] = paper.get(rate, {})
        line: list[Value] = [Cell(rate / 1e6, f"{rate / 1e6:g}")]
        for name in ("non_bursty_percent", "bursty_percent"):
            line.append(
                Cell(float(cells[name]), "", source(dict(cells))) if name in cells else None
            )
        for row in rows:
            found = next((d.frames for d in row.delays if d.rate_pps == rate), None)
            text = f"{found.per_frame:.2f} packets in a frame" if found else ""
            line.append(
                Cell(found.ratio_percent, f"{found.ratio_percent:.1f}", text) if found else None
            )
        out.rows.append(line)
    out.says += _contradicted(rows, paper)
    return out


FAR = 1.5  # times the paper's ratio, or one part in so many of it: it is not reproduced


def _contradicted(rows: Sequence[Row], paper: Mapping[float, Mapping[str, str]]) -> Iterator[str]:
    """Yield where the ratios are far from the paper's: for even traffic, and for its bursts."""
    for row in rows:
        name = "non_bursty_percent" if row.conditions.evenly else "bursty_percent"
        both = [
            (delay.rate_pps, delay.frames.ratio_percent, float(paper[delay.rate_pps][name]))
            for delay in row.delays
            if delay.frames and delay.rate_pps in paper
        ]
        far = [one for one in both if not 1 / FAR <= one[1] / one[2] <= FAR]
        if far:
            each = ", ".join(
                f"{at / 1e6:g} Mpps {here:.1f} % ({there:g} %)" for at, here, there in far
            )
            yield (
                f"{row.setup}, {row.name}: Table 2 is not reproduced at {len(far)} of {len(both)} "
                f"rates, here (in the paper): {each}."
            )


def drops(run: Run, scenario: str) -> Beside:
    """Table 3 and Figure 12: what was lost, and how many in a row."""
    out = Beside(
        "Dropped packets: with convoys over without (the paper), and shares of what was offered",
        [Column("rate", "Mpps"), Column("paper", "PA-Flow / default")],
    )
    rows = [row for row in _measured(run, scenario) if row.delays]
    for row in rows:
        out.columns.append(Column(row.setup, "lost, per cent"))
        out.columns.append(
            Column("in a row", "packets", "half of the lost packets were in runs of up to so many")
        )
    paper = {
        float(row["rx_rate_pps"]): float(row["drops_paflow"]) / float(row["drops_default"])
        for row in reference.table(DROPS)
    }
    for rate in sorted({*paper, *(d.rate_pps for row in rows for d in row.delays)}):
        ratio = paper.get(rate)
        line: list[Value] = [Cell(rate / 1e6, f"{rate / 1e6:g}")]
        line.append(Cell(ratio, f"{ratio:.2f}") if ratio is not None else None)
        for row in rows:
            delay = next((d for d in row.delays if d.rate_pps == rate), None)
            lost = delay.lost_ratio if delay else None
            line.append(Cell(100 * lost, f"{100 * lost:.3g}") if lost is not None else None)
            line.append(half_of_lost(delay.lost_runs) if delay and lost else None)
        out.rows.append(line)
    return out


def memory_table(run: Run, scenario: str) -> Beside | None:
    """Return what was measured in memory for a scenario, cycles per packet."""
    out = Beside(
        "In memory: TSC ticks per packet, median and range",
        ["what", "case", Column("cycles", "per packet"), "range"],
    )
    for one in (one for one in run.memory if one.scenario == scenario):
        for row in one.rows():
            named = {k: v for k, v in row.items() if not isinstance(v, dict)}
            for name, value in row.items():
                if isinstance(value, dict):
                    part = "" if name == "cycles_per_packet" else f", {name.replace('_', ' ')}"
                    case = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in named.items())
                    out.rows.append(
                        [one.what, case + part, Cell(value["median"], f"{value['median']:.1f}"),
                         f"[{value['min']:.1f} .. {value['max']:.1f}]"]
                    )  # fmt: skip
    return out if out.rows else None
