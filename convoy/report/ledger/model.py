# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the ledger of claims (scenarios/claims.yaml) may say: data only.

A predicate compares quantities of one scenario. It is data, not an expression, and its size is
bounded: evaluate.py walks it once.
"""

from typing import Annotated, Any, Literal, cast, get_args

from pydantic import Field, model_validator

from convoy.base.model import Model, Name, one_of

POINTS_MAX = 32
CASES_MAX = 64

Applied = Literal["iperf3-tcp", "iperf3-udp", "http", "ftp"]
Metric = Literal[
    "rate", "line-gbps", "saturation", "per-cpu-second", "cycles", "function-cycles",
    "latency-p50", "latency-p99", "latency-functions", "latency-ports", "lost",
    "frames", "loss-period", "cpu", "core-busy", "in-memory",
    "simulated", "iperf3-tcp", "iperf3-udp", "http", "ftp",
]  # fmt: skip
APPLICATIONS: tuple[str, ...] = get_args(Applied)
PARTS = ("in-memory", "simulated")  # metrics without a device
# What a case or a point of a curve may set.
Coordinate = Literal["setup", "device", "size", "pps", "load", "cpu-speed"]
Coordinates = int | float | str
Bound = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _text(words: str, default: Any = ..., **more: Any) -> Any:
    return Field(default, description=words, **more)


class ProgramFigure(Model):
    """A number of a program that measures in memory (cycles per packet), or of a simulation."""

    what: Literal["next-hop", "frame", "vring", "views", "paper-topologies"] = _text("the program")
    figure: str = _text("which number of a row")
    row: dict[str, int | str] = _text("what the row says besides", default_factory=dict)


class Quantity(Model):
    """What was measured at one point. What is not said, the claim's case or the curve says."""

    metric: Metric = _text("which figure", "rate")
    setup: str | None = _text("a setup of the scenario", None)
    device: str | None = _text("a device", None)
    size: int | str | None = _text("frame size", None)
    pps: Bound | None = _text("a fixed rate, in packets per second", None)
    load: Literal["idle"] | float | None = _text("a load: idle, or a share of PDR", None)
    cpu_speed: float | None = _text("share of the core's time; default: all", None, gt=0, le=1)
    side: str | None = _text(
        "of the metric cycles: one part of a switch with VNFs behind it: switch, VNF 1", None
    )
    part: ProgramFigure | None = _text("of the metrics in-memory and simulated", None)
    plus: "list[Quantity]" = _text("quantities to add to it", default_factory=list, max_length=8)
    per: "Quantity | None" = _text("a quantity to divide it by, after adding", None)

    @model_validator(mode="after")
    def _whole(self) -> "Quantity":
        if (self.metric in PARTS) != (self.part is not None):
            raise ValueError(f"metric: {' or '.join(PARTS)} goes with part; give both or neither")
        if self.side is not None and self.metric != "cycles":
            raise ValueError("side: goes with metric: cycles; leave it out")
        if any(one.inner for one in self.inner):
            raise ValueError("a quantity in a quantity in a quantity; one level is the most")
        return self

    @property
    def inner(self) -> "list[Quantity]":
        """Return the quantities that it is made with."""
        return [*self.plus, *([self.per] if self.per is not None else [])]

    def at(self, point: dict[str, Coordinates]) -> "Quantity":
        """Return it at a point: what it does not say itself, the point says."""
        named = {key.replace("-", "_"): value for key, value in point.items()}
        update: dict[str, Any] = {k: v for k, v in named.items() if getattr(self, k) is None}
        update["plus"] = [one.at(point) for one in self.plus]
        update["per"] = self.per.at(point) if self.per is not None else None
        return self.model_copy(update=update)


class _Bounds(Model):
    least: Bound | None = _text("lower bound", None)
    most: Bound | None = _text("upper bound", None)

    @model_validator(mode="after")
    def _one(self) -> "_Bounds":
        if self.least is None and self.most is None:
            raise ValueError("claims nothing; give least, most or both")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise ValueError(f"least {self.least:g} is above most {self.most:g}; exchange them")
        return self


class Order(Model):
    """Who wins: each quantity is greater than the next, significantly."""

    of: list[Quantity] = _text("quantities, the greatest first", min_length=2, max_length=8)


class Ratio(_Bounds):
    """A quantity divided by another lies within bounds."""

    of: Quantity = _text("the quantity")
    over: Quantity = _text("what it is divided by")


class Value(_Bounds):
    """A quantity lies within bounds, in its own unit."""

    of: Quantity = _text("the quantity")


class Curve(Model):
    """Points along which a quantity is followed."""

    along: Coordinate = _text("what changes from point to point")
    points: list[Coordinates] = _text("in order", min_length=2, max_length=POINTS_MAX)


class Monotone(Curve):
    """A quantity rises, or falls, from each point to the next."""

    of: Quantity = _text("the quantity")
    direction: Literal["rises", "falls"] = _text("which")


class From(Curve):
    """A bound is met from one point on, and at no point before it."""

    of: Quantity = _text("the quantity")
    over: Quantity | None = _text("what it is divided by; default: nothing", None)
    at: Coordinates = _text("the first point at which the bound is met")
    least: Bound = _text("the bound")

    @model_validator(mode="after")
    def _there(self) -> "From":
        if self.at not in self.points:
            raise ValueError(f"at: {self.at} is none of the points; add it to points")
        return self


class Crossing(Curve):
    """A quantity is greater than another up to one point, and smaller from another point on."""

    of: Quantity = _text("the quantity that is greater first")
    over: Quantity = _text("the other one")
    between: list[Coordinates] = _text(
        "the last point of the first part, the first of the second", min_length=2, max_length=2
    )

    @model_validator(mode="after")
    def _there(self) -> "Crossing":
        for point in self.between:
            if point not in self.points:
                raise ValueError(f"between: {point} is none of the points; add it to points")
        if self.points.index(self.between[0]) >= self.points.index(self.between[1]):
            raise ValueError("between: the first point is not before the second; exchange them")
        return self


class _OrderIs(Model):
    order: Order


class _RatioIs(Model):
    ratio: Ratio


class _ValueIs(Model):
    value: Value


class _MonotoneIs(Model):
    monotone: Monotone


class _FromIs(Model):
    from_: From = Field(alias="from")


class _CrossingIs(Model):
    crossing: Crossing


_SINGLE: dict[str, type[Model]] = {
    "order": _OrderIs, "ratio": _RatioIs, "value": _ValueIs, "monotone": _MonotoneIs,
    "from": _FromIs, "crossing": _CrossingIs,
}  # fmt: skip


class _AllIs(Model):
    all: list[one_of("predicates", _SINGLE)] = Field(min_length=2, max_length=8)  # type: ignore[valid-type]


Single = Order | Ratio | Value | Monotone | From | Crossing


def _single(box: Model) -> Single:
    """Return what stands under a predicate's only key."""
    return cast("Single", getattr(box, next(iter(type(box).model_fields))))


class Source(Model):
    """Where a claim stands."""

    document: str = _text("one of the ledger's documents")
    section: str = _text("section, table or figure", min_length=1)


class Claim(Model):
    """One claim, and how it is tested."""

    id: Name = _text("a name, for links")
    source: Source = _text("where it stands")
    says: str = _text("the claim, in our own words", min_length=1)
    scenario: str = _text("the scenario that can test it", min_length=1)
    predicate: one_of("predicates", _SINGLE | {"all": _AllIs}) = _text(  # type: ignore[valid-type]
        "what must be true of the results"
    )
    each: dict[Coordinate, list[Coordinates]] = _text(
        "cases: the predicate must hold in each", default_factory=dict
    )
    needs: str = _text("what a test takes that this machine may lack", "")
    caveat: str = _text("what the verdict does not say, whichever it is", "")
    because: str = _text("the reason, where the claim is contradicted here and it is known", "")

    @model_validator(mode="after")
    def _few(self) -> "Claim":
        if len(self.cases) > CASES_MAX:
            raise ValueError(f"each: {len(self.cases)} cases; {CASES_MAX} is the most")
        return self

    @property
    def parts(self) -> list[Single]:
        """Return the predicates, all of which must hold."""
        if isinstance(self.predicate, _AllIs):
            return [_single(box) for box in self.predicate.all]
        return [_single(self.predicate)]

    @property
    def cases(self) -> list[dict[str, Coordinates]]:
        """Return the points at which it must hold."""
        points: list[dict[str, Coordinates]] = [{}]
        for key, values in self.each.items():
            points = [point | {key: value} for point in points for value in values]
            if len(points) > CASES_MAX:
                break
        return points


class Ledger(Model):
    """All claims of all documents."""

    documents: dict[str, str] = _text("titles, by the names that sources use", min_length=1)
    claims: list[Claim] = _text("the claims", min_length=1, max_length=500)
