# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The page of what aggregation saves on the paper's topologies."""

from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go

from convoy.base.files import write_whole
from convoy.report.document import Column, Document, Figure, Table
from convoy.report.html import html
from convoy.report.plots import empty
from convoy.sim.saved import TOPOLOGIES, Way


def _name(way: Way) -> str:
    how = "unaggregated" if way.wait_us is None else f"aggregated, at most {way.wait_us:g} µs"
    return f"{way.node}, {how}"


def saved_figure(ways: Sequence[Way]) -> go.Figure:
    """Bytes on links for each packet, side by side for the topologies."""
    figure = empty()
    for name in dict.fromkeys(map(_name, ways)):
        mine = {way.topology: way.bytes_per_packet for way in ways if _name(way) == name}
        figure.add_bar(x=list(TOPOLOGIES), y=[mine.get(t) for t in TOPOLOGIES], name=name)
    figure.update_layout(
        barmode="group", xaxis_title="topology", yaxis_title="bytes on the wire for each packet"
    )
    return figure


def write_saved(ways: Sequence[Way], load: float, path: Path) -> None:
    """Write the page."""
    page = Document("What aggregation saves", "convoy sim saved")
    page.text(f"PA-Flow's topologies (I) and (II) at {load:g} times the paper's rates.")
    page.add(Figure(saved_figure(ways), "Bytes on the wire for each packet and link"))
    table = Table(
        ["topology", "node", "frames at the sink", "packets at the sink",
         Column("bytes", "B/packet"), "busy cores", Column("CPU", "ns/packet"),
         Column("median", "µs"), Column("p99", "µs"), "dropped packets"],
        title="Every way",
    )  # fmt: skip
    for way in ways:
        table.add(
            way.topology,
            _name(way),
            way.frames_at_sink,
            way.packets_at_sink,
            way.bytes_per_packet,
            way.busy_cores,
            way.cpu_ns,
            None if way.p50_s is None else way.p50_s * 1e6,
            None if way.p99_s is None else way.p99_s * 1e6,
            way.dropped_packets,
        )
    page.add(table)
    write_whole(path, html(page))
