# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Aggregation profiles: packets per frame by rate, and a node's largest rates, as measured.

A profile is JSON, schema convoy.sim.profile/1:

    {"schema": "convoy.sim.profile/1", "name": "...", "source": "...",
     "points": [{"rate_pps": 1e6, "ratio_percent": 27.2}, ...],   ratio = frames / packets
     "rate_step_pps": 1e6,              optional: rates are rounded down to a multiple first
     "batches": [{"from_pps": 4e6, "packets": 5}, ...],           optional: overrides points
     "max_rate_pps": {"plain": 4.87e6, "aggregated": 12.2e6},     of original packets
     "costs": {...},                    optional: convoy/sim/costs.py; without points it is needed
     "measured": {...}}                 optional: what it was made of, for people
"""

import json
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from convoy.base.problem import known
from convoy.errors import InputError, first_problem
from convoy.sim.costs import Costs


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class RatioPoint(_Strict):
    """A measured aggregation ratio."""

    rate_pps: float = Field(ge=0)
    ratio_percent: float = Field(gt=0, le=100)


class Batch(_Strict):
    """From this rate on, so many packets per frame."""

    from_pps: float = Field(ge=0)
    packets: int = Field(ge=1, le=255)


class MaxRates(_Strict):
    """What a node can take, in original packets per second."""

    plain: float = Field(gt=0)
    aggregated: float = Field(gt=0)


class ProfileFile(_Strict):
    """The document."""

    schema_: str = Field(alias="schema", pattern=r"^convoy\.sim\.profile/1$")
    name: str
    source: str
    points: list[RatioPoint] = []
    rate_step_pps: float | None = Field(None, gt=0)
    batches: list[Batch] = []
    max_rate_pps: MaxRates
    costs: Costs | None = None
    measured: dict[str, Any] = {}


@dataclass(frozen=True)
class Profile:
    """A profile, ready to use: steps are (from_pps, packets per frame), ascending from 0.

    No steps: the ratio by rate was not measured, but costs were.
    """

    name: str
    source: str
    steps: tuple[tuple[int, int], ...]
    plain_pps: float
    aggregated_pps: float
    costs: Costs | None = None


def names() -> list[str]:
    """Return the profiles that come with Convoy."""
    folder = resources.files("convoy.sim").joinpath("profiles")
    return sorted(p.name.removesuffix(".json") for p in folder.iterdir() if p.name != "README.md")


def load(name: str, base: Path) -> Profile:
    """Return a profile by name, or from a file relative to base. Raises InputError."""
    if name in names():
        folder = resources.files("convoy.sim").joinpath("profiles")
        return parse(folder.joinpath(f"{name}.json").read_text("utf-8"), name)
    path = base / name
    if not path.is_file():
        fix = known("profiles", name, names())
        raise InputError(f"profile '{name}': neither a profile nor a file; {fix}")
    return parse(path.read_text("utf-8"), str(path))


def parse(text: str, name: str) -> Profile:
    """Return the profile in a JSON text. Raises InputError naming the field."""
    try:
        data = ProfileFile.model_validate(json.loads(text))
    except json.JSONDecodeError as error:
        raise InputError(f"profile {name}: not JSON: {error}") from None
    except ValidationError as error:
        raise InputError(f"profile {name}: {first_problem(error)}") from None
    if not data.points and data.costs is None:
        raise InputError(f"profile {name}: has neither points nor costs; give one of them")
    rates = [point.rate_pps for point in data.points]
    if rates != sorted(set(rates)):
        raise InputError(f"profile {name}: points: rates must ascend")
    return Profile(
        data.name,
        data.source,
        tuple(_steps(data)) if data.points else (),
        data.max_rate_pps.plain,
        data.max_rate_pps.aggregated,
        data.costs,
    )


def ratio_percent(points: list[RatioPoint], rate_pps: float) -> float:
    """Return the ratio at a rate: linear between points, constant beyond the first and last."""
    if rate_pps <= points[0].rate_pps:
        return points[0].ratio_percent
    for low, high in pairwise(points):
        if rate_pps <= high.rate_pps:
            share = (rate_pps - low.rate_pps) / (high.rate_pps - low.rate_pps)
            return low.ratio_percent + share * (high.ratio_percent - low.ratio_percent)
    return points[-1].ratio_percent


def _packets(points: list[RatioPoint], rate_pps: float) -> int:
    # The tiny term keeps 100 / 25.0 at 4 whatever the interpolation's rounding.
    return max(1, int(100 / ratio_percent(points, rate_pps) + 1e-9))


def _steps(data: ProfileFile) -> list[tuple[int, int]]:
    """Return the step function rate -> floor(100 / ratio)."""
    top = data.points[-1].rate_pps
    step = data.rate_step_pps or max(1.0, top / 1000)
    count = int(top // step) + 1
    at = {int(i * step): _packets(data.points, i * step) for i in range(count + 1)}
    for batch in sorted(data.batches, key=lambda b: b.from_pps):
        at[int(batch.from_pps)] = batch.packets
    steps: list[tuple[int, int]] = []
    for rate in sorted(at):
        if not steps or steps[-1][1] != at[rate]:
            steps.append((rate, at[rate]))
    return steps
