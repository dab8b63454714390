# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy confirm: a change that waits for it stays."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client
from convoy.host.counts import RunningNode


@dataclass(frozen=True)
class Confirmed(Result):
    """The change stays."""

    node: RunningNode

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {"schema": "convoy.confirmed/1", "pid": self.node.pid}

    def show(self, out: Console) -> None:
        """Say so."""
        out.print(f"convoyd {self.node.pid} keeps what it runs", style="green", markup=False)


def command(
    pid: Pid = None,
    as_json: Json = False,
) -> Result:
    """Keep what `convoy apply --confirm` changed: the node does not go back."""
    node = chosen(pid)
    with Client(node.control) as client:
        client.confirm()
    return Confirmed(node)
