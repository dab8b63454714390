# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Ports that receive several packets into a buffer do not where functions make packets longer."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.dut.payload_functions import nat64
from convoy.host.apply import apply
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

TRANSLATORS = ["to-ipv6", "to-ipv4"]  # of which the first makes packets longer
TRANSLATE = {name: {"nat64": nat64().config} for name in TRANSLATORS}
SORT = {"classifier": {"rest": "long", "outputs": {"long": "longer"}}}
PATHS: dict[str, dict[str, Any]] = {
    "straight": {
        "functions": TRANSLATE,
        "chains": {"all": {"from": "left", "to": "right", "path": TRANSLATORS}},
    },
    "behind an output": {
        "functions": TRANSLATE | {"sort": SORT},
        "chains": {
            "all": {"from": "left", "to": "right", "path": ["sort"]},
            "longer": {"to": "right", "path": TRANSLATORS},
        },
    },
}
NO_PATH = {"chains": {"all": {"from": "left", "to": "right"}}}


def plan_of(folder: Path, kind: str, path: dict[str, Any]) -> dict[str, Any]:
    descriptor = path | {
        "ports": {side: {kind: f"{folder}/{side}.sock"} for side in ("left", "right")},
        "workers": {"cores": [CORES[0]], "idle": "sleep"},
    }
    machine = this_machine()
    return make_plan(loads(yaml.safe_dump(descriptor), machine, folder), machine).data


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["vhost-user", "memif"])
@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_copied_out(tmp_path: Path, path: str, kind: str):
    """Nor where the functions come by apply, to ports that received several into one before."""
    ports = [f"{kind}:{tmp_path}/{side}.sock" for side in ("left", "right")]
    traffic = {"rate_pps": 100_000, "duration_s": 0.2, "drain_s": 10, "paths": ["0>1"]}
    came = []
    with (
        Node(plan_of(tmp_path, kind, NO_PATH)) as node,
        ConvoyGen(ports, core=CORES[-1]) as tester,
    ):
        for where in (NO_PATH, PATHS[path]):
            apply(node.running, plan_of(tmp_path, kind, where))
            total = tester.trial(traffic).total
            # Not all: a tester that waits for its core loses some.
            assert total is not None and total.received_pkts > 0
            counts = node.counts()
            came.append(counts["ports"]["left"]["rx_packets"])
    functions = counts["functions"]
    assert [functions[name]["packets"] for name in TRANSLATORS] == [came[1] - came[0]] * 2
    assert [functions[name]["copied_out"] for name in TRANSLATORS] == [0, 0]
