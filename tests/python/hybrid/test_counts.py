# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What parts count, as one chain's counts; what Open vSwitch prints about its own."""

from pathlib import Path
from typing import Any

import yaml

from convoy.chain.load import loads
from convoy.chain.machine import Machine
from convoy.chain.split import Split, split
from convoy.host.open_vswitch import polled_ports, port_counts
from convoy.hybrid.chain_counts import as_one, summed
from convoy.hybrid.switch_counts import function_counts, rule_counts

DUMPED = """\
OFPST_FLOW reply (OF1.4) (xid=0x2):
 cookie=0x0, duration=5.1s, n_packets=7, n_bytes=420, priority=1,in_port=1 actions=goto_table:1
 cookie=0x0, duration=5.1s, table=1, n_packets=2, n_bytes=120, priority=60000,tcp actions=drop
 cookie=0x0, duration=5.1s, table=1, n_packets=5, n_bytes=300, priority=1 actions=goto_table:2
 cookie=0x0, duration=5.1s, table=2, n_packets=5, n_bytes=300, in_port=1 actions=output:2
"""
POLLED = """\
pmd thread numa_id 0 core_id 1:
  isolated : false
  port: link1             queue-id:  0 (enabled)   pmd usage:  0 %
  port: link2             queue-id:  0 (disabled)  pmd usage:  0 %
"""


def test_rules_are_counted_by_function():
    counts = function_counts(rule_counts(DUMPED), {1: "fw"})
    assert list(counts) == ["fw"]
    assert (counts["fw"]["packets"], counts["fw"]["bytes"]) == (7, 420)
    assert counts["fw"]["drops"] == {"by_rules": 2}
    assert counts["fw"]["busy_cycles"] is None


def test_a_port_is_polled_once_its_peer_is_there():
    assert polled_ports(POLLED) == {"link1"}
    assert polled_ports("") == set()


def test_ports_of_a_bridge_by_number_or_name():
    text = "  port  1: rx pkts=3, bytes=180, drop=0\n           tx pkts=1, bytes=60, drop=2\n"
    assert port_counts(text)["1"] == {
        "rx pkts": 3, "rx bytes": 180, "rx drop": 0, "tx pkts": 1, "tx bytes": 60, "tx drop": 2,
    }  # fmt: skip
    assert port_counts("  port LOCAL: rx pkts=3, bytes=1, drop=0\n") == {}


def of_node(received: int, sent: int, **more: int) -> dict[str, Any]:
    """Return counts of a part: what its port `left` received, and its port `right` sent."""
    ports = {
        name: {"kind": "memif", "rx_packets": rx, "tx_packets": tx, "rx_bytes": 0, "tx_bytes": 0}
        for name, rx, tx in (("left", received, 0), ("right", 0, sent))
    }
    none = {"originated": 0, "dropped": 0, "absorbed": 0, "held": 0, "conserved": True}
    return {
        "ports": {name: {**port, "drops": {}} for name, port in ports.items()},
        "functions": {"b": {"packets": sent, "drops": {"why": 1}, "info": {"rules": [1]}}},
        "workers": [{"core": 1}],
        "accounting": {**none, "received": received, "sent": sent, **more},
    }


def two_parts() -> Split:
    swap = {"l2fwd": {"mode": "swap"}}
    document = {
        "ports": {"left": {"memif": "l"}, "right": {"memif": "r"}},
        "functions": {"a": {**swap, "place": "process"}, "b": swap},
        "chains": {"all": {"from": "left", "to": "right", "path": ["a", "b"]}},
    }
    machine = Machine(nodes={0: 0, 1: 0}, runtime_dir=Path("/run/x"))
    return split(loads(yaml.safe_dump(document), machine, Path("/")), machine, Path("/run/x/1"))


def test_one_chain_with_what_was_lost_between_parts():
    of_a = {
        "functions": {"a": {"packets": 9, "drops": {"why": 2}}},
        "workers": [{"core": 1}],
        "accounting": {"originated": 1, "dropped": 2, "absorbed": 0, "held": 0},
    }
    one = as_one(two_parts(), {"node": of_node(10, 5), "a": of_a})
    assert list(one["ports"]) == ["left", "right"]
    assert {name: each["part"] for name, each in one["functions"].items()} == {
        "a": "a", "b": "node",
    }  # fmt: skip
    assert [worker["part"] for worker in one["workers"]] == ["node", "a"]
    assert one["accounting"] == {
        "received": 10, "originated": 1, "sent": 5, "dropped": 2, "absorbed": 0, "held": 0,
        "lost": 4, "conserved": True,
    }  # fmt: skip
    # More that left than that came is wrong.
    assert not as_one(two_parts(), {"node": of_node(1, 9)})["accounting"]["conserved"]
    # But not where one was killed that had counted what came.
    killed = as_one(two_parts(), {"node": of_node(1, 9)}, complete=False)["accounting"]
    assert killed["conserved"]
    assert killed["lost"] == 0
    assert as_one(two_parts(), {})["accounting"]["conserved"]


def test_counts_go_on_over_lives():
    both = summed(of_node(10, 5), of_node(1, 2, conserved=False))
    assert both["ports"]["left"]["rx_packets"] == 11
    assert both["functions"]["b"] == {"packets": 7, "drops": {"why": 2}, "info": {"rules": [1]}}
    assert both["accounting"]["sent"] == 7
    assert not both["accounting"]["conserved"]
    assert summed({}, of_node(1, 1)) == of_node(1, 1)
    assert summed(of_node(1, 1), {}) == of_node(1, 1)
