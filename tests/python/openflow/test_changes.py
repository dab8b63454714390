# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Controllers beside everything else that changes a node: next hops, plans, readers."""

import threading
from pathlib import Path

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.client import Client
from convoy.host.machine import this_machine
from convoy.host.process import wait_for

from .conftest import ADD, DELETE, Bytes, flow_mod, node_of

NODE = """
ports: {in: {null: 60}, out: {null:, convoys: {ip: 192.0.2.1}, mtu: 9000}}
next-hops:
  b: {port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: 1}
  c: {port: out, mac: "02:00:00:00:00:0c", ip: 192.0.2.3, nfi: 2, for: []}
chains: {all: {from: in, to: out}}
workers: {idle: sleep}
openflow: {listen: punix:openflow.sock}
"""
HOP = {"port": "out", "mac": "02:00:00:00:00:0d", "ip": "192.0.2.4"}


def plan(text: str, folder: Path) -> dict[str, object]:
    machine = this_machine()
    return make_plan(loads(text, machine, folder), machine).data


def test_entries_stay_when_a_plan_is_applied(tmp_path: Path) -> None:
    with node_of(NODE, tmp_path) as node, Client(node.running.control, 60) as client:
        controller = Bytes(next(tmp_path.rglob("openflow.sock")))

        def packets(name: str) -> int:
            return int(client.next_hops()[name]["packets"])

        def only(name: str, other: str) -> None:
            """Wait until packets go to one next hop and not to the other."""
            before = packets(name)
            wait_for(lambda: packets(name) > before + 2000, 20, f"packets to {name}")
            before, still = packets(name), packets(other)
            wait_for(lambda: packets(name) > before + 100000, 20, f"packets to {name}")
            assert packets(other) == still

        only("b", "c")
        controller.send(flow_mod(ADD, 2))
        controller.barrier()
        only("c", "b")
        client.apply(plan(NODE.replace("nfi: 2", "nfi: 2, mtu: 4000"), tmp_path))
        assert client.next_hops()["c"]["mtu"] == 4000
        only("c", "b")
        # Another next hop gets the number of one that is gone: it does not get its entries.
        text = NODE.replace("  c:", "  d:").replace("0c", "0d")
        client.apply(plan(text, tmp_path))
        only("b", "d")
        wait_for(lambda: client.counts()["openflow"]["entries"] == 0, 20, "the entry going")
        client.rollback()
        only("b", "c")
        controller.send(flow_mod(ADD, 2))
        controller.barrier()
        only("c", "b")
        counts = node.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0


def test_everything_at_once(tmp_path: Path) -> None:
    with node_of(NODE, tmp_path) as node, Client(node.running.control, 60) as client:
        path = next(tmp_path.rglob("openflow.sock"))
        ends = threading.Event()
        rounds = [0, 0]

        def flood(number: int) -> None:
            controller = Bytes(path)
            vnis = range(1000 * number, 1000 * number + 1000)
            while not ends.is_set():
                controller.send(b"".join(flow_mod(ADD, 1 + vni % 2, vni=vni) for vni in vnis))
                controller.send(flow_mod(ADD, 1 + rounds[number] % 2, priority=number))
                controller.barrier()
                controller.send(flow_mod(DELETE, table=number * 255))
                controller.barrier()
                rounds[number] += 1
            controller.close()

        threads = [threading.Thread(target=flood, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        try:
            for turn in range(30):
                client.put_next_hop(
                    {**HOP, "name": "d", "mtu": 1000 + turn, "match": [{"vlan": 7}]}
                )
                mtu = 2000 + turn
                client.apply(plan(NODE.replace("nfi: 1", f"nfi: 1, mtu: {mtu}"), tmp_path))
                assert client.next_hops()["b"]["mtu"] == mtu
                assert "d" not in client.next_hops()
        finally:
            ends.set()
            for thread in threads:
                thread.join()
        assert min(rounds) > 0
        assert client.counts()["openflow"]["refused"] == 0
        counts = node.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0
