# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Parameters x seeds, over local processes or a Dask scheduler: same code, same results.

The file of results has one JSON object a line (schema convoy.sim.point/1). A point that is in
the file and complete is not run again: a sweep that was stopped goes on where it was.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.base.files import cut_partial_line
from convoy.errors import ConvoyError, InputError
from convoy.sim.engine import Engine, run
from convoy.sim.load import open_topology
from convoy.sim.resolve import resolve

Json = dict[str, Any]
CONNECT_S = 10.0


@dataclass(frozen=True)
class SweepPoint:
    """One simulation of a sweep."""

    parameters: Mapping[str, Any]
    seed: int
    network: Json

    @property
    def key(self) -> str:
        """What tells whether a result belongs to it: a hash of the network."""
        text = json.dumps(self.network, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def points(
    file: str, parameters: Mapping[str, Sequence[Any]], seeds: Sequence[int]
) -> list[SweepPoint]:
    """Return all points, every topology checked. Raises InputError before anything runs."""
    result = []
    for values in itertools.product(*parameters.values()):
        chosen = dict(zip(parameters, values, strict=True))
        overrides = {k: v for k, v in chosen.items() if k != "aggregation"}
        aggregated = chosen.get("aggregation", True)
        if not isinstance(aggregated, bool):
            raise InputError("--set aggregation: give true, false or both")
        loaded = open_topology(file, overrides)
        for seed in seeds:
            result.append(SweepPoint(chosen, seed, resolve(loaded, aggregated, seed).data))
    return result


def summary(point: SweepPoint, result: Json) -> Json:
    """Return what a sweep keeps of a result: counts without the buckets of histograms."""
    keep = ("name", "kind", "received_packets", "dropped_packets", "sent_packets")
    nodes = []
    for node in result["nodes"]:
        if node["kind"] == "fabric":
            continue
        entry = {k: node[k] for k in (*keep, "busy_share", "mean_wait_s") if k in node}
        if node.get("latency"):
            entry["latency"] = {k: v for k, v in node["latency"].items() if k != "buckets_ps"}
            entry["delivered_packets"] = node["delivered_packets"]
        nodes.append(entry)
    return {
        "schema": "convoy.sim.point/1",
        "key": point.key,
        "parameters": dict(point.parameters),
        "seed": point.seed,
        "complete": result["complete"],
        "engine": result["engine"],
        "original_packets": result["original_packets"],
        "nodes": nodes,
        "links": [
            {k: link[k] for k in ("name", "frames", "packets", "bytes", "dropped_packets", "sizes")}
            for link in result["links"]
        ],
        "run": result["run"],
    }


def run_point(point: SweepPoint, engine: Engine) -> Json:
    """Run one point, wherever this is called: here, or on another machine."""
    return summary(point, run(point.network, engine))


def done(file: Path) -> dict[str, Json]:
    """Return the complete results of a file by key. A line cut short at its end is ignored."""
    if not file.exists():
        return {}
    results = {}
    lines = file.read_text("utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            result = json.loads(line)
            key = result["key"]
        except (ValueError, KeyError, TypeError):
            if number == len(lines):
                break
            raise InputError(f"{file}:{number}: not a result of a sweep; give another --out") from (
                None
            )
        if result["complete"]:
            results[key] = result
    return results


OnResult = Callable[[Json], None]


def sweep(
    todo: Sequence[SweepPoint],
    out: Path,
    engine: Engine = "auto",
    workers: int = 1,
    scheduler: str | None = None,
    on_result: OnResult | None = None,
) -> list[Json]:
    """Run what the file does not have yet; return all results in the order of the points.

    Each result is written when it is there; on_result hears of it. Raises ConvoyError when a
    scheduler cannot be reached, and whatever a point raises.
    """
    have = done(out)
    missing = [point for point in todo if point.key not in have]
    out.parent.mkdir(parents=True, exist_ok=True)
    cut_partial_line(out)
    with out.open("a", encoding="utf-8") as file:
        for result in _run_all(missing, engine, workers, scheduler):
            file.write(json.dumps(result) + "\n")
            file.flush()
            if result["complete"]:
                have[result["key"]] = result
            if on_result is not None:
                on_result(result)
    return [have[point.key] for point in todo if point.key in have]


def _run_all(
    todo: Sequence[SweepPoint], engine: Engine, workers: int, scheduler: str | None
) -> Iterator[Json]:
    if not todo:
        return
    if scheduler is not None:
        yield from _over_dask(todo, engine, scheduler)
        return
    with ProcessPoolExecutor(max_workers=workers) as pool:
        futures: list[Future[Json]] = [pool.submit(run_point, point, engine) for point in todo]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _over_dask(todo: Sequence[SweepPoint], engine: Engine, scheduler: str) -> Iterator[Json]:
    try:
        from dask.distributed import Client
        from dask.distributed import as_completed as completed
    except ImportError:
        raise InputError(
            "--scheduler needs Dask; install it: pip install 'convoy-nfv[distributed]'"
        ) from None
    try:
        client = Client(scheduler, timeout=CONNECT_S)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ConvoyError(
            f"--scheduler {scheduler}: no scheduler answers ({error}); start one with "
            "`dask scheduler` and workers with `dask worker`"
        ) from None
    with client:
        # pure=False: Dask must not take a point for one it has seen.
        futures = client.map(run_point, list(todo), engine=engine, pure=False, retries=2)
        for future in completed(futures):  # type: ignore[no-untyped-call]
            yield future.result()
