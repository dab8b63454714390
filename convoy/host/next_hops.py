# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A running node's next hops, changed over its telemetry socket while packets flow."""

import json
from collections.abc import Mapping
from typing import Any

from convoy.errors import InputError
from convoy.host.telemetry import Telemetry

REQUEST_MAX_BYTES = 1000  # DPDK 22.11 reads 1024 of a question


def put(telemetry: Telemetry, hop: Mapping[str, Any]) -> None:
    """Add a next hop, or replace that of its name; hop: as in a plan. Raises InputError."""
    text = json.dumps(hop, separators=(",", ":"))
    if len(text) > REQUEST_MAX_BYTES:
        raise InputError(
            f"next hop {hop.get('name')}: {len(text)} bytes, {REQUEST_MAX_BYTES} is the most; "
            "spread its SC-IDs over several next hops"
        )
    _change(telemetry, f"/convoy/next_hop_put,{text}", str(hop.get("name")))


def remove(telemetry: Telemetry, name: str) -> None:
    """Remove a next hop: its packets go where everything else goes. Raises InputError."""
    _change(telemetry, f"/convoy/next_hop_remove,{name}", name)


def _change(telemetry: Telemetry, command: str, name: str) -> None:
    answer = telemetry.ask(command)
    if not isinstance(answer, dict) or "next_hop" not in answer:
        why = answer.get("error") if isinstance(answer, dict) else None
        raise InputError(f"next hop '{name}': {why or 'convoyd did not understand it'}")
