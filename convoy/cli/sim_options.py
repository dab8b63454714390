# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the sub-commands of convoy sim share: options, progress, how an interrupt ends."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from convoy.base.files import will_write
from convoy.cli.console import messages
from convoy.errors import InputError
from convoy.sim import engine as engines

Document = dict[str, Any]
INTERRUPTED = 130
ENGINES = ("auto", "feed-forward", "event-heap", "ns3")

EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        help="auto: feed-forward, or event-heap when there is a cycle. Or one of: "
        "feed-forward, event-heap, ns3.",
    ),
]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="Default: the file's.")]


def _report(page: Path | None) -> Path | None:
    if page is not None:
        will_write("--report", page)
    return page


ReportOption = Annotated[
    Path | None,
    typer.Option("--report", help="Also write an HTML page with plots.", callback=_report),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change the file: functions.fw.instances=8. May be repeated."),
]


def engine_of(name: str) -> engines.Engine:
    """Return an engine's name, checked. Raises InputError."""
    if name not in ENGINES:
        raise InputError(f"--engine '{name}': give one of {', '.join(ENGINES)}")
    return name  # type: ignore[return-value]


@contextmanager
def bars() -> Iterator[Callable[[str], engines.ShareDone]]:
    """Progress on a terminal's stderr; nothing elsewhere."""
    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[packets]} packets"),
        TimeRemainingColumn(),
        console=messages(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )

    def bar(title: str) -> engines.ShareDone:
        task = shown.add_task(title, total=1.0, packets="0")
        return lambda share, packets: shown.update(task, completed=share, packets=f"{packets:,}")

    with shown:
        yield bar


def remark(result: Document) -> None:
    """Say where an interrupt made it a partial result."""
    if not result["complete"]:
        messages().print(
            f"interrupted: partial result, {result['simulated_s']:g} of "
            f"{result['duration_s']:g} s simulated",
            style="yellow",
        )


def assignment(text: str) -> tuple[str, Any]:
    """Return the place and the value of PLACE=VALUE. Raises InputError."""
    from convoy.base.yaml_text import parse

    place, equals, value = text.partition("=")
    if not equals or not place:
        raise InputError(f"--set '{text}': write PLACE=VALUE, such as functions.fw.instances=8")
    return place, parse(value.encode(), f"--set {place}").data
