# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs of many machines as tables that SQL asks: SQLite in memory, filled from runs' folders.

A table's columns are here once: name, meaning, and where its value is. Lists are text with commas,
missing is NULL. Nothing of a folder is changed, and a query can neither write nor open a file.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.errors import InputError
from convoy.results.applications import ApplicationTrial
from convoy.results.archive import unpacked
from convoy.results.documents import BenchPlan, Cannot, Host
from convoy.results.folder import RunFolder
from convoy.results.simulated import FIGURES, Simulated
from convoy.results.trials import Cost, GoalResult, Point, Search, Trial

ROWS_MOST = 1_000_000
_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


@dataclass(frozen=True)
class Table:
    """A table: what a row is, and its columns after the first one, run."""

    name: str
    says: str
    columns: dict[str, Callable[[Any], Any]]


@dataclass(frozen=True)
class _Whole:
    """A run's own documents."""

    folder: Path
    plan: BenchPlan
    host: Host


@dataclass(frozen=True)
class _Goal:
    point: Point
    goal: GoalResult


@dataclass(frozen=True)
class _Part:
    trial: Trial
    name: str
    cost: Cost

    @property
    def point(self) -> Point:
        return self.trial.point


def _words(words: Iterable[str]) -> str:
    return ", ".join(words)


_POINT: dict[str, Callable[[Point], Any]] = {
    "scenario": lambda p: p.scenario,
    "setup": lambda p: p.setup,
    "device": lambda p: p.device,
    "role": lambda p: p.role,
    "functions": lambda p: _words(p.functions),
    "port_kind": lambda p: p.port_kind,
    "cpu_speed": lambda p: p.cpu_speed,
    "size": lambda p: p.size,
    "repeat": lambda p: p.repeat,
}


def _of_point(get: Callable[[Point], Any]) -> Callable[[Any], Any]:
    return lambda row: get(row.point)


_OF_POINT: dict[str, Callable[[Any], Any]] = {name: _of_point(get) for name, get in _POINT.items()}


def _total(name: str) -> Callable[[Trial], Any]:
    return lambda t: getattr(t.result.total, name) if t.result.total is not None else None


def _latency(name: str) -> Callable[[Trial], Any]:
    def value(trial: Trial) -> Any:
        total = trial.result.total
        return getattr(total.latency, name) if total is not None and total.latency else None

    return value


def _cycles_per_packet(trial: Trial) -> float | None:
    return trial.cost.cycles / trial.cost.packets if trial.cost and trial.cost.packets else None


RUNS = Table(
    "runs",
    "a folder: what was to be measured, and on what machine",
    {
        "folder": lambda w: str(w.folder),
        "started": lambda w: w.host.started,
        "cpu": lambda w: w.host.cpu,
        "kernel": lambda w: w.host.kernel,
        "governor": lambda w: w.host.governor,
        "cores": lambda w: len(w.host.cores_allowed) or None,
        "tester_core": lambda w: w.host.tester_core,
        "device_core": lambda w: w.host.device_core,
        "hugepages": lambda w: w.host.hugepages,
        "convoy": lambda w: w.host.convoy,
        "commit_id": lambda w: w.host.commit,
        "baseline_pps": lambda w: w.host.baseline_pps,
        "search": lambda w: w.plan.profile,
        "quick": lambda w: w.plan.quick,
        "repeats": lambda w: w.plan.repeats,
    },
)
VERSIONS = Table(
    "versions",
    "a device's version on a run's machine; NULL: not installed",
    {"device": lambda v: v[0], "version": lambda v: v[1]},
)
EXCLUDED = Table(
    "excluded",
    "what a run could not measure, and why",
    {
        "scenario": lambda c: c.scenario,
        "setup": lambda c: c.setup or None,
        "device": lambda c: c.device or None,
        "why": lambda c: c.why,
    },
)
CAPTURES = Table(
    "captures",
    "a capture that a scenario's points replay; size is its name there",
    {
        "scenario": lambda c: c[0],
        "size": lambda c: str(c[1]),
        "file": lambda c: c[1].capture,
        "sha256": lambda c: c[1].sha256,
        "packets": lambda c: c[1].contents.packets if c[1].contents else None,
        "flows": lambda c: c[1].contents.flows if c[1].contents else None,
        "mean_frame_bytes": lambda c: c[1].contents.mean_bytes if c[1].contents else None,
        "left_out": lambda c: (c[1].contents.left_out or None) if c[1].contents else None,
    },
)
POINTS = Table(
    "points",
    "a device at a setup and frame size, in one round: how its search ended",
    {
        **_OF_POINT,
        "outcome": lambda s: s.outcome,
        "why": lambda s: s.why or None,
        "ndr_pps": lambda s: s.rate("ndr"),
        "pdr_pps": lambda s: s.rate("pdr"),
        "mrr_pps": lambda s: s.mrr_pps,
        "trials": lambda s: s.trials,
        "invalid": lambda s: s.invalid,
        "seconds": lambda s: s.seconds,
    },
)
GOALS = Table(
    "goals",
    "a rate that was searched, with its bounds",
    {
        **_OF_POINT,
        "goal": lambda g: g.goal.goal,
        "rate_pps": lambda g: g.goal.rate_pps,
        "lower_pps": lambda g: g.goal.lower_pps,
        "upper_pps": lambda g: g.goal.upper_pps,
        "regular": lambda g: g.goal.regular,
        "lower_bound": lambda g: g.goal.lower_bound,
        "remark": lambda g: g.goal.remark or None,
    },
)
TRIALS = Table(
    "trials",
    "a trial of the tester, valid or not",
    {
        **_OF_POINT,
        "purpose": lambda t: t.purpose,
        "load": lambda t: t.load or None,
        "rate_pps": lambda t: t.rate_pps,
        "duration_s": lambda t: t.duration_s,
        "verdict": lambda t: t.verdict,
        "reason": lambda t: t.result.reason,
        **{
            name: _total(name)
            for name in (
                "offered_pkts",
                "sent_pkts",
                "received_pkts",
                "lost_pkts",
                "loss_ratio",
                "reordered_pkts",
                "duplicated_pkts",
                "corrupt_pkts",
                "mean_frame_bytes",
                "sent_pps",
            )
        },
        "received_pps": lambda t: t.received_pps,  # as reports have it, not as the tester
        **{name: _latency(name) for name in ("min_ns", "mean_ns", "p50_ns", "p99_ns", "p99_9_ns")},
        "cycles": lambda t: t.cost.cycles if t.cost else None,
        "cycles_per_packet": _cycles_per_packet,
        "counted_by": lambda t: t.cost.source if t.cost else None,
        "device_cpu_ns": lambda t: t.device_cpu_ns,
        "core_busy_share": lambda t: t.core_busy_share,
        "changes": lambda t: None if t.changes_ns is None else len(t.changes_ns),
        "notes": lambda t: "; ".join(t.notes) or None,
        "ended_unix_s": lambda t: t.ended_unix_s,
    },
)
PARTS = Table(
    "parts",
    "what a switch, or a VNF behind it, spent in a trial",
    {
        **_OF_POINT,
        "load": lambda p: p.trial.load or None,
        "verdict": lambda p: p.trial.verdict,
        "received_pkts": lambda p: _total("received_pkts")(p.trial),
        "part": lambda p: p.name,
        "cycles": lambda p: p.cost.cycles,
        "packets": lambda p: p.cost.packets,
        "counted_by": lambda p: p.cost.source,
    },
)
APPLICATIONS = Table(
    "applications",
    "a client and a server behind a device; figure is what is compared",
    {
        "scenario": lambda a: a.point.scenario,
        "setup": lambda a: a.point.setup,
        "device": lambda a: a.point.device,
        "application": lambda a: a.point.application,
        "frame_bytes": lambda a: a.point.frame_bytes,
        "repeat": lambda a: a.point.repeat,
        "outcome": lambda a: a.outcome,
        "why": lambda a: a.why or None,
        "figure": lambda a: a.figure,
        "value": lambda a: a.figures.get(a.figure),
    },
)
MEMORY = Table(
    "memory",
    "what a part costs in memory, without a device and a tester: cycles per packet",
    {
        "scenario": lambda m: m[0].scenario,
        "what": lambda m: m[0].what,
        "variant": lambda m: m[1],
        "figure": lambda m: m[2],
        "median": lambda m: m[3]["median"],
        "least": lambda m: m[3]["min"],
        "most": lambda m: m[3]["max"],
    },
)
SIMULATED = Table(
    "simulated",
    "a figure of a simulated link, with one seed",
    {
        "scenario": lambda s: s[0].scenario,
        "what": lambda s: s[0].what,
        "topology": lambda s: s[1]["topology"],
        "link": lambda s: s[1]["link"],
        "figure": lambda s: s[2],
        "seed": lambda s: s[3],
        "value": lambda s: s[4],
    },
)
TABLES = (
    RUNS, VERSIONS, EXCLUDED, CAPTURES, POINTS, GOALS, TRIALS, PARTS, APPLICATIONS, MEMORY,
    SIMULATED,
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What a query gave."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def _goals(searches: Sequence[Search]) -> Iterable[_Goal]:
    return (_Goal(search.point, goal) for search in searches for goal in search.goals)


def _simulated(some: Iterable[Simulated]) -> Iterable[tuple[Simulated, Any, str, int, float]]:
    for one in some:
        for row in one.rows():
            for name, values in row.items():
                for seed, value in enumerate(values) if name in FIGURES else ():
                    yield one, row, name, seed, value


class Database:
    """Runs, for queries. A folder is read whole; a run is named after it."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Read them, and archives of them. Raises InputError for what is neither."""
        self._sql = sqlite3.connect(":memory:", isolation_level=None)
        for table in TABLES:
            self._sql.execute(f"CREATE TABLE {table.name} (run, {', '.join(table.columns)})")
        names: list[str] = []
        with unpacked(folders) as places:
            for path, place in places.items():
                name = path.resolve().name
                same = sum(each == name or each.startswith(f"{name} (") for each in names)
                names.append(f"{name} ({same + 1})" if same else name)
                self._read(names[-1], path, RunFolder(place))
        self._sql.set_authorizer(self._may)

    def _read(self, run: str, path: Path, folder: RunFolder) -> None:
        plan, host = folder.plan(), folder.host()
        searches, tried = list(folder.searches()), list(folder.tried())
        excluded: Sequence[Cannot] = host.cannot
        self._insert(run, RUNS, [_Whole(path, plan, host)])
        self._insert(run, VERSIONS, host.devices.items())
        self._insert(run, EXCLUDED, excluded)
        captures = ((n, c) for n, one in plan.scenarios.items() for c in one.captures)
        self._insert(run, CAPTURES, captures)
        self._insert(run, POINTS, searches)
        self._insert(run, GOALS, _goals(searches))
        trials = [one for one in tried if isinstance(one, Trial)]
        self._insert(run, TRIALS, trials)
        self._insert(run, PARTS, (_Part(t, *one) for t in trials for one in t.part_costs.items()))
        served = (one for one in tried if isinstance(one, ApplicationTrial))
        self._insert(run, APPLICATIONS, served)
        self._insert(run, MEMORY, ((m, *one) for m in folder.memory() for one in m.figures()))
        self._insert(run, SIMULATED, _simulated(folder.simulated()))

    def _insert(self, run: str, table: Table, things: Iterable[Any]) -> None:
        places = ", ".join("?" * (1 + len(table.columns)))
        values = ((run, *(get(thing) for get in table.columns.values())) for thing in things)
        self._sql.executemany(f"INSERT INTO {table.name} VALUES ({places})", values)

    @staticmethod
    def _may(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        loads = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
        return sqlite3.SQLITE_OK if action in _ALLOWED and not loads else sqlite3.SQLITE_DENY

    def query(self, sql: str) -> Answer:
        """Run one SELECT. Raises InputError, one line, for everything else."""
        try:
            cursor = self._sql.execute(sql)
            rows = cursor.fetchmany(ROWS_MOST + 1)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            why = " ".join(str(error).split())
            if "not authorized" in why or "prohibited" in why:
                why = "only SELECT is possible: results are read"
            raise InputError(f"SQL: {why}; `convoy results query --help` has the tables") from None
        if cursor.description is None:
            raise InputError("SQL: empty; `convoy results query --help` has examples")
        if len(rows) > ROWS_MOST:
            raise InputError(f"SQL: gives more than {ROWS_MOST:,} rows; add a LIMIT")
        return Answer(tuple(column[0] for column in cursor.description), tuple(rows))
