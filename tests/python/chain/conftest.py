# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A descriptor to begin from, and a machine to check it for."""

from pathlib import Path

import pytest

from convoy.chain.machine import Machine

GOOD = """\
ports:
  left: {vhost-user: /tmp/left.sock}
  right: {af_packet: eth1}
functions:
  fw: {firewall: {default: deny, rules: [{allow: {proto: udp, dst: 10.0.0.0/8, dport: 53}}]}}
  rtr: {router: {routes: [10.0.0.0/8 via 192.0.2.1 dev right], neighbours: {192.0.2.1: "MAC"}}}
  br: {bridge: {}}
chains:
  web: {match: {vlan: 10}, from: left, to: right, path: [fw, rtr]}
workers: {cores: [1]}
""".replace("MAC", "02:00:00:00:00:01")


@pytest.fixture
def good() -> str:
    return GOOD


@pytest.fixture
def machine() -> Machine:
    """Four cores on two NUMA nodes, two hardware threads each."""
    return Machine(
        nodes={0: 0, 1: 0, 2: 1, 3: 1},
        runtime_dir=Path("/run/convoy"),
        siblings={0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)},
    )
