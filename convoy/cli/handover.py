# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy handover: a new process takes over from a running node."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.host.handover import HandedOver, hand_over


@dataclass(frozen=True)
class Done(Result):
    """Another process forwards now."""

    handed_over: HandedOver

    def document(self) -> dict[str, Any]:
        """See Result."""
        it = self.handed_over
        return {
            "schema": "convoy.handover/1",
            "pid_before": it.before.pid,
            "pid": it.after.pid,
            "version_before": it.version_before,
            "version": it.version_after,
            "gap_us": it.gap_us,
            "held_pkts": it.held_pkts,
        }

    def show(self, out: Console) -> None:
        """Say so, and what it cost."""
        it = self.handed_over
        version = it.version_after
        if it.version_before != version:
            version = f"{it.version_before} -> {version}"
        out.print(
            f"convoyd {it.before.pid} handed over to {it.after.pid} (Convoy {version}): "
            f"no packet moved for {it.gap_us:.0f} us",
            style="green",
            markup=False,
        )
        if it.held_pkts:
            out.print(f"{it.held_pkts} packets that functions kept are lost", markup=False)


def command(
    pid: Pid = None,
    convoyd: Annotated[
        Path | None,
        typer.Option(help="The program to start; else the one that is installed.", exists=True),
    ] = None,
    forget_flows: Annotated[
        bool,
        typer.Option("--forget-flows", help="Also where functions keep what does not go along."),
    ] = False,
    as_json: Json = False,
) -> Result:
    """Replace a running node by a new process, while packets flow and peers stay connected."""
    node = chosen(pid)
    program = None if convoyd is None else convoyd.absolute()
    return Done(hand_over(node, program, forget_flows))
