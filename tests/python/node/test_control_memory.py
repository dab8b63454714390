# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What changes need of memory, the next change uses again, whichever thread serves it.

Run with -s it prints the node's memory after each change.
"""

from contextlib import ExitStack
from pathlib import Path

import pytest

from convoy.client import Client
from convoy.host.apply import apply
from convoy.host.node import Node
from convoy.host.programs import find
from cores import CORES
from memory import own_bytes
from port.plans import joined

RULE = "@192.0.2.0/24 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF\n"
RULES = 2000
CHANGES = 16
KNOWN = 8  # changes, after which it has what it needs
MORE_BYTES = 4 << 20


@pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build")
def test_changes_by_many_clients_take_no_more_memory(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text(RULE)
    ports = {name: {"kind": "null"} for name in ("left", "right")}
    plan = joined(ports, [("left", "right")], CORES[0])
    plan["functions"] = [
        {"name": "fw", "type": "firewall", "config": {"default": "allow", "rules_file": str(rules)}}
    ]
    plan["stages"][0]["path"] = ["fw"]
    memory = []
    with Node(plan) as node:
        for i in range(CHANGES):
            with ExitStack() as others:  # so that another thread serves the next one
                for _ in range(i % 8):
                    others.enter_context(Client(Path(node.ready["read"]))).counts()
                for count in (RULES, 1):
                    rules.write_text(RULE * count)
                    apply(node.running, plan)
            memory.append(own_bytes(node.process.pid))
    print("MiB:", *(f"{bytes_ / 2**20:.1f}" for bytes_ in memory))
    assert memory[-1] <= memory[KNOWN] + MORE_BYTES
