# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node with too little memory for a router's tables says so, and says how much they need."""

import json
import subprocess
from pathlib import Path

import pytest

from convoy.host.programs import need

MANY = "".join(
    f"{1 + (i >> 16)}.{i >> 8 & 255}.{i & 255}.0/24 via 192.0.2.1 dev b\n" for i in range(200_000)
)


@pytest.mark.parametrize(
    ("routes", "memory_mb", "words"),
    [
        ("2001:db8::/32 via 192.0.2.1 dev b\n", 64, "no memory for 1 IPv6 routes"),
        (MANY, 64, "no memory for 200000 IPv4 routes, which need about"),
        (MANY, 512, ""),
    ],
)
def test_memory(tmp_path: Path, routes: str, memory_mb: int, words: str):
    (tmp_path / "routes.txt").write_text(routes)
    config = {
        "routes_file": str(tmp_path / "routes.txt"),
        "neighbours": [{"address": "192.0.2.1", "mac": "02:00:00:00:00:01"}],
    }
    stage = {"worker": 0, "chain": "all", "source": {"port": "a", "queue": 0}, "path": ["rtr"]}
    plan = {
        "schema": "convoy.plan/1",
        "ports": [{"name": "a", "kind": "null"}, {"name": "b", "kind": "null"}],
        "functions": [{"name": "rtr", "type": "router", "config": config}],
        "chains": [{"name": "all", "match": {}, "in": "a", "out": "b"}],
        "stages": [{**stage, "sink": {"port": "b"}}],
        "workers": [{"core": 0, "idle": "sleep"}],
        "eal": {"hugepages": False, "memory_mb": memory_mb},
    }
    done = subprocess.run(
        [need("convoyd"), "--check", "-"],
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (2 if words else 0), done.stderr
    assert words in done.stderr
    if words:
        assert len(done.stderr.splitlines()) == 1
        assert "memory_mb" in done.stderr
