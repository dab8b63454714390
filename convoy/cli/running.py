# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The running node that a command is about: --pid, or the only one."""

from typing import Annotated

import typer

from convoy.cli.top import choose
from convoy.host.counts import RunningNode, running_nodes

Pid = Annotated[int | None, typer.Option(help="Process id of convoyd, if several run.")]


def chosen(pid: int | None) -> RunningNode:
    """Return it. Raises InputError."""
    return choose(running_nodes(), pid, "--pid PID")
