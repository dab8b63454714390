# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Metrics as text: OpenMetrics 1.0, and the older format of Prometheus.

prometheus_client writes them too, but takes ten times as long as a scrape of 1,000 functions may:
it makes an object of each sample. Here a sample is a line as soon as it is added.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

_UNITS = ("bytes", "cycles", "flows", "frames", "hertz", "packets", "ports", "ratio", "seconds")


class Kind(StrEnum):
    """What a metric's number is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Format(StrEnum):
    """How metrics are written, by its content type."""

    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    TEXT = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric family: its samples differ in their labels."""

    kind: Kind
    name: str  # without _total or _info
    help: str
    labels: tuple[str, ...] = ()

    @cached_property
    def sample(self) -> str:
        """The name that its samples have."""
        suffix = {Kind.COUNTER: "_total", Kind.INFO: "_info"}.get(self.kind, "")
        return self.name + suffix

    def head(self, format: Format) -> str:
        """Return the lines before its samples."""
        if format == Format.TEXT:
            kind = Kind.GAUGE if self.kind == Kind.INFO else self.kind
            return f"# HELP {self.sample} {self.help}\n# TYPE {self.sample} {kind}\n"
        unit = self.name.rpartition("_")[2]
        has_unit = unit in _UNITS and self.kind != Kind.INFO
        return (
            f"# TYPE {self.name} {self.kind}\n"
            + (f"# UNIT {self.name} {unit}\n" if has_unit else "")
            + f"# HELP {self.name} {self.help}\n"
        )


def label(name: str, value: str) -> str:
    """Return a label as it is written. Several are joined with commas."""
    value = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f'{name}="{value}"'


class Buckets:
    """The bounds of a histogram's buckets, as values and as they are written."""

    def __init__(self, *bounds: int, unit: float = 1) -> None:
        """unit: how many of the values are one of the metric's unit."""
        self.bounds = [(bound, f'"{bound / unit}"}} ') for bound in bounds]


# 256 ns, 1.024 us, ... 67 ms: a node counts by powers of two from 64 ns.
LATENCY = Buckets(*(1 << bits for bits in range(8, 27, 2)), unit=1e9)


class Page:
    """What one scrape gets."""

    def __init__(self) -> None:
        self._lines: dict[Metric, list[str]] = {}
        self._encoded: dict[Format, bytes] = {}

    def add(self, metric: Metric, value: float, labels: str = "") -> None:
        """Add a sample; labels: as label() returns them."""
        line = f"{metric.sample}{{{labels}}} {value}" if labels else f"{metric.sample} {value}"
        self._lines.setdefault(metric, []).append(line)

    def add_histogram(
        self,
        metric: Metric,
        counts: Mapping[int, int],
        buckets: "Buckets",
        labels: str,
        values: float | None = None,
    ) -> None:
        """Add a distribution: how often each value was, in buckets up to and with each bound.

        values: their sum, where counts are of bounds.
        """
        lines = self._lines.setdefault(metric, [])
        ordered = sorted(counts.items())
        start = f"{metric.name}_bucket{{{labels},le="
        at = below = 0
        for bound, le in buckets.bounds:
            while at < len(ordered) and ordered[at][0] <= bound:
                below += ordered[at][1]
                at += 1
            lines.append(f"{start}{le}{below}")
        total = sum(counts.values())
        if values is None:
            values = sum(value * count for value, count in ordered)
        lines.append(
            f'{start}"+Inf"}} {total}\n'
            f"{metric.name}_count{{{labels}}} {total}\n{metric.name}_sum{{{labels}}} {values}"
        )

    def add_latency(self, metric: Metric, latency: Mapping[str, Any], labels: str) -> None:
        """Add how long packets took, as a node counts it, in seconds."""
        counts = {int(bound): packets for bound, packets in latency["up_to_ns"].items()}
        self.add_histogram(metric, counts, LATENCY, labels, latency["ns"] / 1e9)

    def text(self, format: Format = Format.OPENMETRICS) -> str:
        """Return it whole; nothing is added afterwards."""
        pieces = []
        for metric, lines in self._lines.items():
            pieces.append(metric.head(format) + "\n".join(lines) + "\n")
        if format == Format.OPENMETRICS:
            pieces.append("# EOF\n")
        return "".join(pieces)

    def encoded(self, format: Format) -> bytes:
        """Return it as it is sent; who asks again gets the same bytes."""
        if format not in self._encoded:
            self._encoded[format] = self.text(format).encode()
        return self._encoded[format]
