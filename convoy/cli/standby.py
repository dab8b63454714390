# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy standby: whether a node is one, or has one, and how far its flows are copied."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client
from convoy.host.counts import RunningNode


@dataclass(frozen=True)
class Copied(Result):
    """What a node says of its standby, or as one."""

    node: RunningNode
    state: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {"schema": "convoy.standby/1", "pid": self.node.pid, **self.state}

    def show(self, out: Console) -> None:
        """One line for each thing that is known."""
        for key, value in self.document().items():
            if key != "schema":
                out.print(f"{key:12} {value}", markup=False, highlight=False)


def command(
    pid: Pid = None,
    as_json: Json = False,
) -> Result:
    """Show whether a node is a standby, or has one, and how far flows are copied."""
    node = chosen(pid)
    with Client(node.control) as client:
        return Copied(node, client.standby())
