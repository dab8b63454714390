# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy history: what a running node ran."""

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from convoy.cli.apply import words_of
from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client, Entry
from convoy.host.counts import RunningNode


@dataclass(frozen=True)
class History(Result):
    """The plans of a node, the newest last."""

    node: RunningNode
    entries: list[Entry]
    state: dict[str, Any] = field(default_factory=dict)  # of its folder; see Client.state

    def document(self) -> dict[str, Any]:
        """See Result."""
        entries = [asdict(entry) for entry in self.entries]
        return {
            "schema": "convoy.history/1",
            "pid": self.node.pid,
            "history": entries,
            "state": self.state,
        }

    def show(self, out: Console) -> None:
        """Print each with what differed from the one before."""
        for entry in self.entries:
            at = datetime.fromtimestamp(entry.at, UTC)
            line = f"{entry.number}  {at:%Y-%m-%d %H:%M:%S} UTC"
            if entry.back_to:
                line += f"  as {entry.back_to} again"
            if entry.confirm_s:
                line += f"  goes back in {entry.confirm_s} s: convoy confirm"
            out.print(line, markup=False)
            for difference in entry.differences:
                out.print(f"   {words_of(difference)}", markup=False)
        if self.state.get("folder") is not None:
            began = "what ran last" if self.state["from"] == "state" else "its descriptor"
            out.print(f"began with {began}; state in {self.state['folder']}", markup=False)
            if self.state["error"]:
                out.print(f"not kept: {self.state['error']}", style="yellow", markup=False)


def command(
    pid: Pid = None,
    as_json: Json = False,
) -> Result:
    """Show what a running node ran, and what `convoy rollback` can go back to."""
    node = chosen(pid)
    with Client(node.read) as client:
        return History(node, client.history(), client.state())
