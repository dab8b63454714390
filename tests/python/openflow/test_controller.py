# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""An os-ken controller that the node connects to: what it sets stays when it goes."""

from pathlib import Path

from convoy.client import Client
from convoy.host.process import wait_for

from .conftest import NODE, free_port, node_of, osken

EVERYTHING_TO_C = {"command": "ADD", "output": 2, "priority": 1, "cookie": 77}


def test_a_controller_that_goes_and_comes_again(tmp_path: Path) -> None:
    port = free_port()
    text = NODE.format(keys=f'controllers: "tcp:127.0.0.1:{port}", datapath-id: a1')
    with node_of(text, tmp_path) as node, Client(node.running.control) as client:

        def packets(name: str) -> int:
            return int(client.next_hops()[name]["packets"])

        with osken(port) as controller:
            assert controller.await_event("features") == {
                "event": "features",
                "tables": 2,
            }
            assert controller.await_event("ports")["ports"] == {"b": 1, "c": 2}
            controller.await_event("connected")
            wait_for(lambda: packets("b") > 0, 20, "packets to b")
            controller.do("flow", **EVERYTHING_TO_C)
            controller.do("flow", command="ADD", match={"vlan_vid": 5}, nfi=7, flags=1)
            controller.do("flow", command="ADD", match={"tunnel_id": 9}, output=2, table_id=1)
            controller.do("barrier")
            controller.await_event("barrier")
            before = packets("b")
            wait_for(lambda: packets("c") > 100000, 20, "packets to c")
            assert packets("b") - before <= 1024  # what a worker had in its hands
        # Nobody is there: the table stays as it is.
        wait_for(lambda: client.counts()["openflow"]["controllers"] == 0, 20, "it to be gone")
        before, to_b = packets("c"), packets("b")
        wait_for(lambda: packets("c") > before + 100000, 20, "packets to c")
        assert packets("b") == to_b
        with osken(port) as controller:
            controller.await_event("connected")
            controller.do("flows")
            flows = controller.await_event("flows")["flows"]
            unknown = 2**64 - 1
            assert sorted(flows, key=lambda flow: str(flow["match"])) == [
                {"table": 1, "match": {"tunnel_id": 9}, "priority": 32768, "cookie": 0,
                 "packets": unknown, "output": [2]},
                {"table": 0, "match": {"vlan_vid": 0x1005}, "priority": 32768, "cookie": 0,
                 "packets": unknown, "output": [1]},
                {"table": 0, "match": {}, "priority": 1, "cookie": 77, "packets": unknown,
                 "output": [2]},
            ]  # fmt: skip
            controller.do("flow", command="DELETE", table_id=255)
            removed = controller.await_event("removed")
            assert (removed["reason"], removed["match"]) == (2, {"vlan_vid": 0x1005})
            wait_for(lambda: packets("b") > to_b, 20, "packets to b, as in the plan")
        counts = node.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0
    assert counts["openflow"]["connections"] >= 2


def test_roles_timeouts_and_next_hops(tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    both = ", ".join(f'"tcp:127.0.0.1:{port}"' for port in ports)
    text = NODE.format(keys=f"controllers: [{both}], datapath-id: a1")
    with (
        osken(ports[0]) as one,
        osken(ports[1]) as other,
        node_of(text, tmp_path) as node,
        Client(node.running.control) as client,
    ):
        for controller in (one, other):
            controller.await_event("connected")
        one.do("role", role="MASTER", generation=5)
        assert one.await_event("role")["role"] == 2
        other.do("role", role="MASTER", generation=6)
        assert other.await_event("role") == {"event": "role", "role": 2, "generation": 6}
        one.do("flow", **EVERYTHING_TO_C)
        assert one.await_event("error") == {"event": "error", "type": 1, "code": 10}
        one.do("role", role="MASTER", generation=5)
        assert one.await_event("error") == {"event": "error", "type": 11, "code": 0}
        one.do("role", role="EQUAL", generation=0)
        assert one.await_event("role")["role"] == 1
        other.do("flow", **EVERYTHING_TO_C, hard_timeout=1, flags=1)
        for controller in (one, other):
            removed = controller.await_event("removed")
            assert (removed["reason"], removed["cookie"]) == (1, 77)
        one.do("flow", command="ADD", match={"vlan_vid": 5}, output=2, flags=1)
        one.do("barrier")
        one.await_event("barrier")
        client.remove_next_hop("c")
        assert other.await_event("port") == {"event": "port", "reason": 1, "name": "c"}
        assert other.await_event("removed")["match"] == {"vlan_vid": 0x1005}
        next_hop = {"name": "d", "port": "out", "mac": "02:00:00:00:00:0d", "ip": "192.0.2.4"}
        client.put_next_hop({**next_hop, "match": []})
        assert one.await_event("port") == {"event": "port", "reason": 1, "name": "c"}
        assert one.await_event("port") == {"event": "port", "reason": 0, "name": "d"}
        assert node.stop()["accounting"]["conserved"]
