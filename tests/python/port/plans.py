# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Small plans: ports joined to each other by chains without functions."""

from collections.abc import Mapping, Sequence
from typing import Any

MEMORY_MB = 256


def joined(
    ports: Mapping[str, Mapping[str, Any]], ways: Sequence[tuple[str, str]], core: int = 0
) -> dict[str, Any]:
    """Return a plan of one worker that carries packets from one port to another, for each way."""
    return {
        "schema": "convoy.plan/1",
        "ports": [{"name": name, **keys} for name, keys in ports.items()],
        "functions": [],
        "chains": [{"name": f"{a}-{b}", "match": {}, "in": a, "out": b} for a, b in ways],
        "stages": [
            {
                "worker": 0,
                "chain": f"{a}-{b}",
                "source": {"port": a, "queue": 0},
                "path": [],
                "sink": {"port": b},
            }
            for a, b in ways
        ],
        "workers": [{"core": core, "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": MEMORY_MB},
    }
