# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Applications' trials to rows, tables and sentences: what users of a function feel.

Payload as the client saw it. A round in which a client failed is missing, not zero.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from convoy.report.document import Cell, Column, Table, Value, spread
from convoy.results.applications import ApplicationTrial
from convoy.results.trials import display_name

TITLES = {
    "iperf3-tcp": "iperf3, TCP",
    "iperf3-udp": "iperf3, UDP",
    "http": "HTTP (nginx, wrk)",
    "ftp": "FTP (vsftpd, curl)",
}
BUSY = 0.95  # of the hosts' core: beyond that they have no more to give
IDENTITY = (
    "scenario", "setup", "device", "run", "port_kind", "application", "frame_bytes", "figure",
)  # fmt: skip
UNITS = {"mbps": "Mbit/s", "requests_per_s": "requests/s"}


@dataclass(frozen=True)
class Served:
    """An application behind one device's function: every round."""

    scenario: str
    setup: str
    device: str
    port_kind: str
    application: str
    frame_bytes: int | None
    figure: str  # which figure is compared
    rounds: Mapping[int, Mapping[str, float]]  # by repeat, all figures
    cpu_shares: tuple[float, ...]  # CPU time of the device's processes, of one core
    core_shares: tuple[float, ...]  # of the device's core, whoever used it
    hosts_shares: tuple[float, ...]  # of the core of client and server
    trials: int
    failed: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    run: str = ""  # the run's folder, where a report has several runs of this scenario

    @property
    def name(self) -> str:
        """Return the device as reports write it."""
        return display_name(self.device, run=self.run)

    @property
    def hosts_full(self) -> bool:
        """Return whether client and server had no more to give: its figures are lower bounds."""
        return bool(self.hosts_shares) and statistics.median(self.hosts_shares) > BUSY

    def values(self, name: str) -> list[float]:
        """Return a figure's values, one for each round that has it."""
        return [figures[name] for figures in self.rounds.values() if name in figures]

    def median(self, name: str) -> float | None:
        """Return the median over the rounds."""
        values = self.values(name)
        return statistics.median(values) if values else None

    @property
    def value(self) -> float | None:
        """Return the median of the figure that is compared."""
        return self.median(self.figure)

    @property
    def what(self) -> str:
        """Return the application as people read it."""
        title = TITLES.get(self.application, self.application)
        return f"{title}, {self.frame_bytes} B" if self.frame_bytes else title


def served(trials: Iterable[ApplicationTrial]) -> tuple[Served, ...]:
    """Return a row for everything that was tried, in the order in which it was first met."""
    groups: dict[tuple[Any, ...], list[ApplicationTrial]] = {}
    for trial in trials:
        groups.setdefault(trial.point.key[:-1], []).append(trial)
    return tuple(_row(group) for group in groups.values())


def _row(trials: Sequence[ApplicationTrial]) -> Served:
    point = trials[0].point
    good = [trial for trial in trials if trial.outcome == "measured"]
    return Served(
        point.scenario,
        point.setup,
        point.device,
        point.port_kind,
        point.application,
        point.frame_bytes,
        trials[0].figure,
        {trial.point.repeat: trial.figures for trial in good},
        tuple(
            trial.device_cpu_ns / trial.elapsed_ns
            for trial in good
            if trial.device_cpu_ns is not None and trial.elapsed_ns
        ),
        tuple(t.core_busy_share for t in good if t.core_busy_share is not None),
        tuple(t.hosts_busy_share for t in good if t.hosts_busy_share is not None),
        len(trials),
        tuple(dict.fromkeys(trial.why for trial in trials if trial.outcome == "failed")),
        tuple(dict.fromkeys(note for trial in trials for note in trial.notes)),
    )


HOW = (
    "Real servers and clients on two hosts (network namespaces), the function between them. Client "
    "and server share the tester's core; payload, not frames."
)


def table(rows: Iterable[Served]) -> Table:
    """Return a line for each application behind each function."""
    out = Table([
        "function", "device", Column("application", "", "server and client, on hover"),
        Column("frame", "bytes", "with FCS; else as it likes"),
        Column("payload", "Mbit/s", "as the client saw it: median [all rounds]"),
        Column("requests", "per second"), Column("p50", "us", "of a request"),
        Column("lost", "", "of what iperf3 sent by UDP"),
        Column("core", "busy", "of the device's core, whoever used it"),
        Column("hosts", "busy", "of the core that client and server share"),
        Column("rounds", "(failed)", page_only=True),
    ])  # fmt: skip
    for row in rows:
        delay, lost = row.median("p50_ns"), row.median("lost_ratio")
        failed = row.trials - len(row.rounds)
        speeds = row.values("mbps")
        out.add(
            row.setup,
            Cell(row.name, row.name, "; ".join(row.notes)),
            Cell(row.application, row.application, TITLES.get(row.application, "")),
            row.frame_bytes,
            spread(speeds, digits=1 if speeds and max(speeds) < 100 else 0),
            spread(row.values("requests_per_s"), digits=0),
            None if delay is None else Cell(delay / 1e3, f"{delay / 1e3:.0f}"),
            None if lost is None else Cell(lost, f"{lost:.1%}"),
            _share(row.core_shares),
            _share(row.hosts_shares),
            Cell(row.trials, f"{row.trials} ({failed})" if failed else f"{row.trials}"),
        )
    return out


def _share(values: Sequence[float]) -> Value:
    return Cell(statistics.median(values), f"{statistics.median(values):.0%}") if values else None


def sentences(rows: Sequence[Served]) -> list[str]:
    """Return what the rows say: each application's devices, the fastest first; who failed."""
    groups: dict[tuple[str, str, int | None], list[Served]] = {}
    for row in rows:
        groups.setdefault((row.setup, row.application, row.frame_bytes), []).append(row)
    lines = []
    seen: set[tuple[str, str]] = set()
    for (setup, application, _), group in groups.items():
        known = sorted((r for r in group if r.value), key=lambda row: -(row.value or 0))
        if not known or (setup, application) in seen:
            continue
        seen.add((setup, application))  # a sentence at the smallest frames is enough
        each = []
        for row in known:
            low, high = min(row.values(row.figure)), max(row.values(row.figure))
            digits = 0 if (row.value or 0) >= 100 else 1
            spread = f" [{low:.{digits}f} .. {high:.{digits}f}]" if len(row.rounds) > 1 else ""
            each.append(f"{row.name} {row.value:.{digits}f}{spread}")
        unit = UNITS.get(known[0].figure, known[0].figure)
        lines.append(f"{known[0].what} behind {setup}: {', '.join(each)} {unit}.")
    full = dict.fromkeys(row.name for row in rows if max(row.hosts_shares, default=0) > BUSY)
    if full:
        lines.append(
            f"Client and server share one core, and kept it busier than {BUSY:.0%} behind "
            f"{', '.join(full)}: there the hosts may be what was measured, not the function."
        )
    for row in rows:
        for why in row.failed[:1]:
            lines.append(f"**{row.what} behind {row.name}'s {row.setup} failed**: {why}")
    return lines


def as_json(row: Served) -> dict[str, Any]:
    """Return a row as JSON documents take it."""
    return {
        **{name: getattr(row, name) for name in IDENTITY},
        "rounds": [{"repeat": repeat, **figures} for repeat, figures in row.rounds.items()],
        "median": {
            name: row.median(name) for name in dict.fromkeys(n for f in row.rounds.values()
                                                             for n in f)
        },
        "device_cpu_share": statistics.median(row.cpu_shares) if row.cpu_shares else None,
        "trials": row.trials,
        "failed": list(row.failed),
        "notes": list(row.notes),
    }  # fmt: skip
