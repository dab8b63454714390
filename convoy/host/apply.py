# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A running node goes over to another plan."""

from collections.abc import Iterator, Mapping
from typing import Any

from convoy.chain.parameters import FILES
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
        return client.apply(plan, _files(plan), dry_run, forget_flows, confirm_s, starts_with)


def _files(plan: Mapping[str, Any]) -> Iterator[str]:
    """Return the files that parameters name, each once."""
    functions = [one for one in plan.get("functions") or () if isinstance(one, dict)]
    named = [
        config[key]
        for config, kind in ((one.get("config"), one.get("type")) for one in functions)
        for key in FILES.get(str(kind), ())
        if isinstance(config, dict) and isinstance(config.get(key), str)
    ]
    return iter(dict.fromkeys(named))
