# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Line plots of one look: one set of axes for up to eight lines, small multiples beyond."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

MOST_LINES = 8  # in one set of axes
PANELS_ACROSS = 3
PANEL_HEIGHT = 280
COLORS = (
    "#0b5cad", "#e08e0b", "#2a9d8f", "#b5446e", "#6a4c93", "#7a9e3f", "#1c2733", "#8a94a0",
)  # fmt: skip
DASHES = ("solid", "dash", "dot", "dashdot")
_DASHES_OF_GUIDES = ("dot", "dash", "dashdot", "longdash")
_AXIS = {
    "gridcolor": "#e8edf1", "linecolor": "#5c6b7a", "zeroline": False, "ticks": "outside",
    "tickcolor": "#5c6b7a", "automargin": True, "exponentformat": "SI",
}  # fmt: skip
TEMPLATE = go.layout.Template(
    layout={
        "colorway": COLORS,
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#1c2733"},
        "paper_bgcolor": "#fff",
        "plot_bgcolor": "#fff",
        "margin": {"l": 60, "r": 16, "t": 16, "b": 48},
        # Above the plot: phones keep their width.
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": _AXIS,
        "yaxis": _AXIS,
    }
)


def empty(**layout: Any) -> go.Figure:
    """Return a figure without traces, in the look of all."""
    return go.Figure(layout={"template": TEMPLATE, **layout})


@dataclass
class Line:
    """A line: whose it is (its colour), and of what (its dash, or its panel)."""

    name: str
    x: Sequence[Any]
    y: Sequence[float | None]
    of: str = ""
    extremes: Sequence[Sequence[float]] = ()  # at each point, the values that y is the median of
    style: dict[str, Any] = field(default_factory=dict)  # of plotly's line
    text: Sequence[str] = ()

    def trace(self, label: str, style: dict[str, Any]) -> go.Scatter:
        """Return it as plotly draws it."""
        bars = None
        if self.extremes:
            both = list(zip(self.y, self.extremes, strict=True))
            bars = {
                "array": [max(values) - (y or 0) for y, values in both],
                "arrayminus": [(y or 0) - min(values) for y, values in both],
                "thickness": 1,
            }
        stepped = "shape" in self.style
        return go.Scatter(
            x=list(self.x), y=list(self.y), name=label, error_y=bars, legendgroup=label,
            text=list(self.text) or None, mode="lines" if stepped else "lines+markers",
            line=style | self.style,
        )  # fmt: skip


def draw(
    lines: Sequence[Line],
    x: dict[str, Any],
    y: dict[str, Any],
    names: Sequence[str] = (),
    guides: Sequence[Line] = (),
) -> go.Figure | None:
    """Return the lines as one figure; None: there is none.

    names: who may be in it, in an order that gives everybody the same colour in each figure.
    guides: nobody's, drawn thin and grey in each set of axes, to compare with.
    """
    if not lines:
        return None
    order = list(dict.fromkeys((*names, *(line.name for line in lines))))
    parts = list(dict.fromkeys(line.of for line in lines))
    if len(lines) > MOST_LINES:
        return _small_multiples(lines, x, y, order, parts, guides)
    figure = empty(xaxis=x, yaxis=y, showlegend=True)
    shown = [name for name in order if any(line.name == name for line in lines)]
    for line in lines:
        label = ", ".join(
            text for text, among in ((line.name, shown), (line.of, parts)) if len(among) > 1
        )
        # The colour tells more apart than the dash.
        many, few = (parts, line.of), (order, line.name)
        if len(parts) <= len(shown):
            many, few = few, many
        style = {"color": _pick(COLORS, *many), "dash": _pick(DASHES, *few)}
        figure.add_trace(line.trace(label or line.name, style))
    figure.add_traces([_guide(guide, i) for i, guide in enumerate(guides)])
    return figure


def _guide(guide: Line, number: int) -> go.Scatter:
    dash = _DASHES_OF_GUIDES[number % len(_DASHES_OF_GUIDES)]
    style = {"color": "#8a94a0", "width": 1, "dash": dash}
    return guide.trace(guide.name, style).update(mode="lines")


def _pick(among: Sequence[str], names: list[str], name: str) -> str:
    return among[names.index(name) % len(among)]


def _small_multiples(
    lines: Sequence[Line],
    x: dict[str, Any],
    y: dict[str, Any],
    order: list[str],
    parts: list[str],
    guides: Sequence[Line],
) -> go.Figure:
    """Return a panel for each thing measured, or, where those hold too many, for each device."""
    by_part = max(sum(line.of == part for line in lines) for part in parts) <= MOST_LINES
    panels = parts if by_part else list(dict.fromkeys(line.name for line in lines))
    across = min(PANELS_ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = make_subplots(
        rows=down, cols=across, subplot_titles=panels, shared_xaxes="all", shared_yaxes="all",
        x_title=x.get("title"), y_title=y.get("title"),
        horizontal_spacing=0.03, vertical_spacing=0.3 / (down + 1),
    )  # fmt: skip
    seen: set[str] = set()
    for line in lines:
        at = panels.index(line.of if by_part else line.name)
        label = line.name if by_part else line.of
        color = _pick(COLORS, order, label) if by_part else _pick(COLORS, parts, label)
        trace = line.trace(label, {"color": color}).update(showlegend=label not in seen)
        figure.add_trace(trace, row=at // across + 1, col=at % across + 1)
        seen.add(label)
    for at in range(len(panels) if guides else 0):
        for i, guide in enumerate(guides):
            trace = _guide(guide, i).update(showlegend=at == 0)
            figure.add_trace(trace, row=at // across + 1, col=at % across + 1)
    figure.update_xaxes({key: value for key, value in x.items() if key != "title"})
    figure.update_yaxes({key: value for key, value in y.items() if key != "title"})
    figure.update_layout(
        template=TEMPLATE,
        height=PANEL_HEIGHT * down + 100,
        margin={"t": 90, "l": 70, "b": 60},
        legend={"yref": "container", "y": 1, "yanchor": "top"},
    )
    return figure
