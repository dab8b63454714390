# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy show: the plan that a node runs now."""

from typing import Annotated

import typer

from convoy.cli.result import Json, PrintedDocument, Result
from convoy.cli.top import choose
from convoy.client import Client
from convoy.host.counts import running_nodes


def command(
    pid: Annotated[int | None, typer.Option(help="Process id of convoyd, if several run.")] = None,
    as_json: Json = False,
) -> Result:
    """Print the plan that a node runs now: `convoy run` and `convoy apply` take it."""
    node = choose(running_nodes(), pid, "--pid PID")
    with Client(node.read) as client:
        return PrintedDocument(client.plan())
