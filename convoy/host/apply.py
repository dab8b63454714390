# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A running node goes over to another plan."""

from collections.abc import Mapping
from typing import Any

from convoy.chain.plan import files_of
from convoy.client import Client, Difference
from convoy.host.counts import RunningNode

DEADLINE_S = 300.0  # tables of a million routes, on a busy machine


def apply(
    node: RunningNode,
    plan: Mapping[str, Any],
    dry_run: bool = False,
    forget_flows: bool = False,
    confirm_s: int = 0,
    starts_with: bool = False,
) -> list[Difference]:
    """Make a node run a plan; return what differs.

    Raises InputError with the node's words: then nothing has changed.
    """
    with Client(node.control, DEADLINE_S) as client:
        return client.apply(plan, files_of(plan), dry_run, forget_flows, confirm_s, starts_with)
