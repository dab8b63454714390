# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy activate: a standby forwards from now on, with the flows that it has."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client
from convoy.host.counts import RunningNode
from convoy.host.process import wait_for

DEADLINE_S = 60.0


@dataclass(frozen=True)
class Activated(Result):
    """It forwards."""

    node: RunningNode
    taken_over: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {"schema": "convoy.activated/1", "pid": self.node.pid, **self.taken_over}

    def show(self, out: Console) -> None:
        """Say with how many flows."""
        flows = self.taken_over
        out.print(
            f"convoyd {self.node.pid} forwards: {flows['restored']} flows go on, "
            f"{flows['lost']} were lost, {flows['ms']:.1f} ms",
            style="green",
            markup=False,
        )


def command(
    pid: Pid = None,
    as_json: Json = False,
) -> Result:
    """Have a standby forward from now on, with the flows of the active node.

    Turn packets to it, and see to it that the other node forwards none.
    """
    node = chosen(pid)
    with Client(node.control) as client:
        client.activate()
        wait_for(lambda: client.standby()["role"] == "active", DEADLINE_S, "the node to forward")
        return Activated(node, client.standby()["taken_over"])
