# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A progress bar with the time left. It is drawn when told something and never in between: a
thread that refreshes it would run on the cores that are being measured."""

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeft

from convoy.host.scope import Scope


class Bar(Scope):
    """Use it with `with`; on what is no terminal it prints nothing."""

    def __init__(self, out: Console) -> None:
        self._progress = Progress(
            BarColumn(24),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeLeft(compact=True),
            TextColumn("{task.description}", markup=False),
            console=out,
            auto_refresh=False,
            transient=True,
            disable=not out.is_terminal,
            # Steps of a benchmark take seconds: look back over all of them.
            speed_estimate_period=600,
        )
        self._task: TaskID | None = None

    def show(self, what: str, done: int, of: int) -> None:
        """Show what is being done now, after done of so many steps."""
        if self._task is None:
            self._task = self._progress.add_task(what, total=of)
        self._progress.update(self._task, description=what, completed=done, total=of, refresh=True)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def _leave(self) -> None:
        self._progress.stop()


def elapsed(value: float) -> str:
    """Return seconds in words: 40 s, 3 min 07 s, 2 h 05 min."""
    minutes, rest = divmod(round(value), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
