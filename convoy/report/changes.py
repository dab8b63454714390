# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What replacing a configuration costs the packets that flow meanwhile, beside not doing it."""

import statistics
from collections.abc import Iterator, Mapping

from convoy.report.document import Cell, Column, Table, Value, spread
from convoy.report.packets import Delay
from convoy.report.row import Row
from convoy.report.run_data import Run

HOW = (
    "Packets of known flows, at a fixed rate. Time to effect: from the request to the node's word "
    "that every worker runs the new configuration. Latency and losses of the same setup without "
    "changes stand beside; brackets have the trials' extremes."
)


def _plain(run: Run, row: Row) -> Row | None:
    """Return what was measured of the same setup without changes."""
    setups = run.scenarios[row.scenario].setups
    alike = setups[row.setup].model_copy(update={"changes": None})
    name = next((name for name, spec in setups.items() if spec == alike), None)
    key = (row.run, row.scenario, name, row.device, row.role, row.cpu_speed, row.size)
    return next((other for other in run.rows if other.key == key), None)


def _pairs(run: Run, scenario: str) -> Iterator[tuple[Row, Delay, Delay | None]]:
    """Yield what was measured during changes, and the same without."""
    for row in run.of(scenario):
        plain = _plain(run, row) if any(delay.changes_ms for delay in row.delays) else None
        for delay in row.delays:
            if delay.changes_ms:
                yield row, delay, plain.delay(delay.load) if plain is not None else None


def _lost(delay: Delay | None) -> Value:
    if delay is None or delay.lost_ratio is None:
        return None
    return Cell(delay.lost_ratio, f"{delay.lost_ratio:.4%}" if delay.lost_ratio else "0")


def _p99(delay: Delay | None) -> Value:
    return spread(delay.p99s_ns, 1e3, 1) if delay is not None else None


def table(run: Run, scenario: str) -> Table:
    """Return a line for each setup and rate with changes."""
    out = Table([
        "setup", "device", "load", "changes",
        Column("to effect", "ms", "of the trials: median [all changes]"),
        Column("p99", "us", "median [all trials]"), Column("without", "us"),
        Column("lost", "", "of all packets of these trials"), Column("without", ""),
    ])  # fmt: skip
    for row, delay, plain in _pairs(run, scenario):
        out.add(
            row.setup, Cell(row.name, row.name, "; ".join(row.notes)), delay.load,
            len(delay.changes_ms), spread(delay.changes_ms, 1.0, 1),
            _p99(delay), _p99(plain), _lost(delay), _lost(plain),
        )  # fmt: skip
    return out


def sentences(run: Run, scenario: str) -> Iterator[str]:
    """Yield a sentence for each setup and rate with changes."""
    for row, delay, plain in _pairs(run, scenario):
        lost = f"{delay.lost_ratio or 0:.4%} of the packets lost"
        nothing = "no packet lost" if not delay.lost_ratio else lost
        beside = ""
        if plain is not None and plain.p99s_ns:
            beside = f" (without: {statistics.median(plain.p99s_ns) / 1e3:.1f} us)"
        yield (
            f"{row.name}, {row.setup}, {delay.load}: {len(delay.changes_ms)} changes, each in "
            f"effect after **{statistics.median(delay.changes_ms):.1f} ms**; {nothing}, p99 "
            f"latency {statistics.median(delay.p99s_ns) / 1e3:.1f} us{beside}."
        )


def as_json(row: Row) -> Mapping[str, list[float]]:
    """Return the time to effect of each change, in milliseconds, by load."""
    return {delay.load: list(delay.changes_ms) for delay in row.delays if delay.changes_ms}
