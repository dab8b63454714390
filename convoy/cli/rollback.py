# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy rollback: a running node goes back to what it ran before."""

from typing import Annotated

import typer

from convoy.cli.apply import Applied
from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client
from convoy.host.apply import DEADLINE_S


def command(
    to: Annotated[
        int, typer.Argument(help="Number of `convoy history`; default: the one before.", min=0)
    ] = 0,
    pid: Pid = None,
    forget_flows: Annotated[
        bool,
        typer.Option(
            "--forget-flows", help="Also where functions would share flows otherwise than now."
        ),
    ] = False,
    as_json: Json = False,
) -> Result:
    """Make a running node run what it ran before, while packets flow."""
    node = chosen(pid)
    with Client(node.control, DEADLINE_S) as client:
        differences = client.rollback(to, forget_flows)
        return Applied(node, client.plan(), differences, dry_run=False)
