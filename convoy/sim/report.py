# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Pages with plots: what travels on each link, how long, how loaded."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from convoy.base.files import write_whole
from convoy.report.document import Cell, Column, Document, Figure, Table
from convoy.report.html import html
from convoy.report.plots import empty
from convoy.sim.paper import DERIVED, Comparison

Json = dict[str, Any]
SIZES_SHOWN = 24
HOPS_SHOWN = 12


def _hop(link: Json) -> str:
    """Return between which functions, whatever the instance, a link is."""
    return f"{link['from'].split('.')[0]} → {link['to'].split('.')[0]}"


def sizes_figure(links: Sequence[Json]) -> go.Figure:
    """Frames by size, side by side for the hops: all links between the same two functions.

    Sizes are shown as they are where there are few, else in steps of 64 bytes.
    """
    step = 1 if len({size for link in links for size in link["sizes"]}) <= SIZES_SHOWN else 64
    hops: dict[str, Counter[int]] = {}
    for link in links:
        sizes = hops.setdefault(_hop(link), Counter())
        for size, frames in link["sizes"].items():
            sizes[int(size) // step * step] += frames
    order = sorted({size for sizes in hops.values() for size in sizes})
    figure = empty()
    for hop in list(hops)[:HOPS_SHOWN]:
        figure.add_bar(
            x=[str(size) if step == 1 else f"{size}–{size + step - 1}" for size in order],
            y=[hops[hop].get(size) for size in order],
            name=hop,
        )
    figure.update_layout(
        barmode="group",
        xaxis={"title": "frame size, bytes", "type": "category"},
        yaxis={"title": "frames", "type": "log", "dtick": 1},
    )
    return figure


def hops_figure(result: Json) -> go.Figure:
    """Frames and packets by stage: what each stage's links carry together."""
    frames: Counter[str] = Counter()
    packets: Counter[str] = Counter()
    for link in result["links"]:
        frames[_hop(link)] += link["frames"]
        packets[_hop(link)] += link["packets"]
    figure = empty()
    figure.add_bar(x=list(packets), y=list(packets.values()), name="original packets")
    figure.add_bar(x=list(frames), y=list(frames.values()), name="frames")
    figure.update_layout(yaxis_title=f"in {result['simulated_s']:g} s", xaxis_title="hop")
    return figure


def latency_figure(result: Json) -> go.Figure | None:
    """Share of packets slower than a time, one line for each sink; None where nothing came."""
    figure = empty()
    for node in result["nodes"]:
        if not node.get("latency"):
            continue
        total = node["delivered_packets"]
        slower, x, y = total, [], []
        for low, count in node["latency"]["buckets_ps"]:
            x.append(low / 1e6)
            y.append(slower / total)
            slower -= count
        figure.add_scatter(x=x, y=y, name=node["name"], line_shape="hv")
    if not figure.data:
        return None
    figure.update_layout(
        xaxis_title="latency, µs",
        yaxis_title="share of packets at least as slow",
        xaxis_type="log",
        yaxis={"type": "log", "dtick": 1, "exponentformat": "power"},
    )
    return figure


def load_figure(result: Json) -> go.Figure:
    """How busy each function is."""
    nodes = [node for node in result["nodes"] if node["kind"] == "function"]
    figure = empty()
    figure.add_bar(x=[n["name"] for n in nodes], y=[100 * n["busy_share"] for n in nodes])
    figure.update_layout(yaxis_title="busy, %", yaxis_range=[0, 105])
    return figure


def add_result(page: Document, result: Json) -> None:
    """Add a result's plots and tables to a page."""
    if not result["complete"]:
        page.text(
            f"**Partial**: interrupted after {result['simulated_s']:g} of "
            f"{result['duration_s']:g} s."
        )
    run = result["run"]
    page.text(
        f"{result['original_packets']:,} original packets in {result['simulated_s']:g} s "
        f"simulated; seed {result['seed']}, engine {result['engine']}, "
        f"{run['cpu_s']:.3g} CPU seconds."
    )
    page.add(Figure(sizes_figure(result["links"]), "Frames by size, hop by hop"))
    page.add(Figure(hops_figure(result), "Packets and frames, hop by hop"))
    latency = latency_figure(result)
    if latency is not None:
        page.add(Figure(latency, "Latency from source to sink"))
    page.add(Figure(load_figure(result), "Load of each function"))
    links = Table(
        ["link", "frames", "original packets", Column("mean size", "bytes"), "dropped frames"],
        title="Links",
    )
    for link in result["links"]:
        mean = link["bytes"] / link["frames"] if link["frames"] else None
        links.add(link["name"], link["frames"], link["packets"], mean, link["dropped_frames"])
    page.add(links)


def write_run(result: Json, notes: Sequence[str], path: Path) -> None:
    """Write the page of one simulation."""
    page = Document(result["name"], "Simulated by convoy sim run")
    add_result(page, result)
    for note in notes:
        page.text(f"Note: {note}")
    write_whole(path, html(page))


def write_paper(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write the page of the comparison with the paper's tables."""
    page = Document("PA-Flow's tables, simulated", "convoy sim paper")
    page.text(DERIVED)
    for comparison in comparisons:
        page.text(f"## {comparison.table.title}")
        table = Table(
            ["mode", "link", "what", "paper", "simulated", Column("deviation", "%"), "within 3 %"]
        )
        for row in comparison.rows:
            table.add(
                row.mode,
                row.link,
                row.what,
                row.paper,
                Cell(row.ours, f"{row.ours:,.2f}" if row.unit == "bytes" else ""),
                Cell(100 * row.deviation, f"{100 * row.deviation:+.1f}"),
                row.verdict,
            )
        page.add(table)
        page.text(
            "Fewer packets on the sink's link, per original packet: "
            f"{100 * comparison.saved_per_packet:.1f} % (paper "
            f"{100 * comparison.paper_saved_per_packet:.1f} %); by the table's cells: "
            f"{100 * comparison.saved_by_cells:.1f} % (paper "
            f"{100 * comparison.paper_saved_by_cells:.1f} %)."
        )
        for mode, result in comparison.results.items():
            page.text(f"### {comparison.table.title}, {mode}")
            add_result(page, result)
    write_whole(path, html(page))
