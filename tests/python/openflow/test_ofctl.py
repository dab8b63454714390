# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Open vSwitch's ovs-ofctl at a node: what it sets is there, and what cannot be is refused."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from convoy.client import Client
from convoy.host.node import Node
from convoy.host.process import wait_for

from .conftest import BARRIER, ERROR, PASSED, Bytes, Ofctl, message, node_of

NODE = """
ports:
  in: {null: 60}
  out: {null:, convoys: {ip: 192.0.2.1}}
next-hops:
  b: {port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: 7}
  c: {port: out, mac: "02:00:00:00:00:0c", ip: 192.0.2.3, nfi: 8, for: []}
chains: {all: {from: in, to: out}}
workers: {idle: sleep}
openflow: {listen: punix:openflow.sock, entries: 1000}
"""


@pytest.fixture(autouse=True)
def ofctl() -> None:
    if shutil.which("ovs-ofctl") is None:
        pytest.skip("no ovs-ofctl: apt-get install openvswitch-switch")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with node_of(NODE, tmp_path) as one:
        yield one
        counts = one.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0


@pytest.fixture
def ofctl_at(node: Node, tmp_path: Path) -> Ofctl:
    return Ofctl(next(tmp_path.rglob("openflow.sock")))


def test_entries(ofctl_at: Ofctl) -> None:
    for words in (
        "dl_vlan=100,actions=output:2",
        "tun_id=5000,priority=7,cookie=9,actions=set_field:8->tun_id",
        "priority=0,actions=output:1",
        "table=1,dl_vlan=100,actions=write_actions(output:1)",
        "dl_vlan=100,priority=9,actions=output:1",
    ):
        assert ofctl_at("add-flow", words) == ""
    assert ofctl_at.flows() == [
        "dl_vlan=100 actions=output:1",
        "dl_vlan=100 actions=output:2",
        "priority=0 actions=output:1",
        "priority=7,tun_id=0x1388 actions=output:2",
        "priority=9,dl_vlan=100 actions=output:1",
    ]
    assert "active=4" in ofctl_at("dump-tables").splitlines()[2]
    assert "flow_count=1" in ofctl_at("dump-aggregate", "cookie=9/-1")
    assert len(ofctl_at("dump-flows", "table=0,dl_vlan=100").splitlines()) == 3
    assert ofctl_at("mod-flows", "table=0,dl_vlan=100,actions=output:1") == ""
    assert ofctl_at("del-flows", "cookie=9/-1") == ""
    assert ofctl_at.flows() == [
        "dl_vlan=100 actions=output:1",
        "dl_vlan=100 actions=output:1",
        "priority=0 actions=output:1",
        "priority=9,dl_vlan=100 actions=output:1",
    ]
    assert ofctl_at("del-flows", "dl_vlan=100,priority=9", "--strict") == ""
    assert ofctl_at("del-flows", "out_port=1,table=1") == ""
    assert ofctl_at.flows() == ["dl_vlan=100 actions=output:1", "priority=0 actions=output:1"]
    assert ofctl_at("del-flows") == ""
    assert ofctl_at.flows() == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("in_port=1,actions=output:1", "OFPBMC_BAD_FIELD"),
        ("ip,nw_dst=192.0.2.1,actions=output:1", "OFPBMC_BAD_FIELD"),
        ("dl_vlan=1,tun_id=2,actions=output:1", "OFPBMC_BAD_WILDCARDS"),
        ("vlan_tci=0x1000/0x1000,actions=output:1", "OFPBMC_BAD_MASK"),
        ("vlan_tci=0,actions=output:1", "OFPBMC_BAD_VALUE"),
        ("tun_id=0x1000000,actions=output:1", "OFPBMC_BAD_VALUE"),
        ("dl_vlan=1,actions=drop", "OFPBIC_UNSUP_INST"),
        ("dl_vlan=1,actions=goto_table:1", "OFPBIC_UNSUP_INST"),
        ("dl_vlan=1,actions=output:3", "OFPBAC_BAD_OUT_PORT"),
        ("dl_vlan=1,actions=NORMAL", "OFPBAC_BAD_OUT_PORT"),
        ("dl_vlan=1,actions=output:1,output:2", "OFPBAC_TOO_MANY"),
        ("dl_vlan=1,actions=set_field:9->tun_id", "OFPBAC_BAD_SET_ARGUMENT"),
        ("dl_vlan=1,actions=set_field:2->vlan_vid", "OFPBAC_BAD_SET_TYPE"),
        ("dl_vlan=1,actions=pop_vlan,output:1", "OFPBAC_BAD_TYPE"),
        ("dl_vlan=1,idle_timeout=5,actions=output:1", "OFPFMFC_BAD_TIMEOUT"),
        ("table=2,dl_vlan=1,actions=output:1", "OFPFMFC_BAD_TABLE_ID"),
    ],
)
def test_refused(ofctl_at: Ofctl, words: str, error: str) -> None:
    assert error in ofctl_at("add-flow", words)
    assert ofctl_at.flows() == []


def test_others(ofctl_at: Ofctl) -> None:
    assert "n_tables:2, n_buffers:0" in ofctl_at("show")
    assert "2 ports" in ofctl_at("dump-ports")
    assert "1(b): addr:02:00:00:00:00:0b" in ofctl_at("show")
    assert 'table 1 ("in")' in ofctl_at("dump-table-features")
    assert "Manufacturer: Convoy" in ofctl_at("dump-desc")
    assert "OFPBRC_BAD_STAT" in ofctl_at("queue-stats")
    assert ofctl_at("del-groups") == ""
    assert "OFPBRC_BAD_TYPE" in ofctl_at("mod-port", "1", "down")
    assert "bytes from" in ofctl_at("ping")


BOTH = "group_id=1,type=select,bucket=weight:3,output:1,bucket=actions=set_field:8->tun_id"
ONE = "group_id=1,type=select,bucket=output:2"


def test_groups(ofctl_at: Ofctl) -> None:
    def groups() -> list[str]:
        return [line.strip() for line in ofctl_at("dump-groups").splitlines()[1:]]

    assert ofctl_at("add-group", BOTH) == ""
    assert groups() == [
        "group_id=1,type=select,bucket=weight:3,actions=output:1,bucket=actions=output:2"
    ]
    assert ofctl_at("add-flow", "dl_vlan=100,actions=group:1") == ""
    assert ofctl_at("add-flow", "dl_vlan=101,actions=output:1") == ""
    assert ofctl_at.flows() == ["dl_vlan=100 actions=group:1", "dl_vlan=101 actions=output:1"]
    assert "flow_count=1" in ofctl_at("dump-aggregate", "out_group=1")
    assert "ref_count=1,packet_count=18446744073709551615" in ofctl_at("dump-group-stats")
    assert "group_id=1," in ofctl_at("dump-group-stats", "group_id=1")
    assert "group_id" not in ofctl_at("dump-group-stats", "group_id=2")
    features = ofctl_at("dump-group-features")
    assert "Types:  0x2" in features
    assert "max_groups=0x100" in features
    assert ofctl_at("mod-group", ONE) == ""
    assert groups() == ["group_id=1,type=select,bucket=actions=output:2"]
    assert ofctl_at("del-groups", "group_id=1") == ""
    assert groups() == []
    assert ofctl_at.flows() == ["dl_vlan=101 actions=output:1"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("group_id=1,type=all,bucket=output:1", "OFPGMFC_BAD_TYPE"),
        ("group_id=1,type=ff,bucket=watch_port:1,output:1", "OFPGMFC_BAD_TYPE"),
        ("group_id=1,type=select", "OFPGMFC_BAD_BUCKET"),
        ("group_id=1,type=select,bucket=weight:0,output:1", "OFPGMFC_WEIGHT_UNSUPPORTED"),
        ("group_id=1,type=select,bucket=output:1,bucket=output:1", "OFPGMFC_BAD_BUCKET"),
        ("group_id=1,type=select,bucket=output:9", "OFPBAC_BAD_OUT_PORT"),
        ("group_id=1,type=select,bucket=group:2", "OFPGMFC_CHAINING_UNSUPPORTED"),
        ("group_id=1,type=select,bucket=output:1,output:2", "OFPBAC_TOO_MANY"),
    ],
)
def test_groups_refused(ofctl_at: Ofctl, words: str, error: str) -> None:
    assert error in ofctl_at("add-group", words)
    assert "OFPGMFC_UNKNOWN_GROUP" in ofctl_at("mod-group", ONE)
    assert "OFPBAC_BAD_OUT_GROUP" in ofctl_at("add-flow", "dl_vlan=1,actions=group:1")


def test_packets_go_where_groups_say(node: Node, ofctl_at: Ofctl) -> None:
    """All packets are of one flow: whatever the weights, it goes to one of the group's."""
    with Client(node.running.control) as client:

        def packets(name: str) -> int:
            return int(client.next_hops()[name]["packets"])

        wait_for(lambda: packets("b") > 1000, 20, "packets to b")
        assert ofctl_at("add-group", ONE) == ""
        assert ofctl_at("add-flow", "actions=group:1") == ""
        wait_for(lambda: packets("c") > 1000, 20, "packets to c")
        assert ofctl_at("mod-group", ONE.replace("output:2", "output:1")) == ""
        before = (packets("b"), packets("c"))
        wait_for(lambda: packets("b") > before[0] + 1000, 20, "packets to b")
        assert packets("c") == before[1]
        assert ofctl_at("mod-group", BOTH) == ""
        then = packets("b") + packets("c")
        wait_for(lambda: packets("b") + packets("c") > then + 1000, 20, "packets to either")
        client.remove_next_hop("b")
        wait_for(lambda: "output:1" not in ofctl_at("dump-groups"), 20, "its bucket to go")
        assert ofctl_at.flows() == ["actions=group:1"]
        before = (0, packets("c"))
        wait_for(lambda: packets("c") > before[1] + 1000, 20, "packets to c")
        client.remove_next_hop("c")
        wait_for(lambda: ofctl_at.flows() == [], 20, "the entry to go with its group")


def test_a_thousand_at_once(ofctl_at: Ofctl, tmp_path: Path) -> None:
    lines = [f"tun_id={i},actions=output:{1 + i % 2}" for i in range(1000)]
    (tmp_path / "flows").write_text("\n".join(lines))
    assert ofctl_at("add-flows", str(tmp_path / "flows")) == ""
    assert len(ofctl_at.flows()) == 1000
    assert "OFPFMFC_TABLE_FULL" in ofctl_at("add-flow", "tun_id=1000,actions=output:1")
    assert ofctl_at("replace-flows", str(tmp_path / "flows")) == ""
    assert ofctl_at("diff-flows", str(tmp_path / "flows")) == ""


def test_packets_go_where_it_says(node: Node, ofctl_at: Ofctl) -> None:
    with Client(node.running.control) as client:

        def packets(name: str) -> int:
            return int(client.next_hops()[name]["packets"])

        wait_for(lambda: packets("b") > 1000, 20, "packets to b")
        assert ofctl_at("add-flow", "actions=output:2") == ""
        wait_for(lambda: packets("c") > 1000, 20, "packets to c")
        before = packets("b")
        wait_for(lambda: packets("c") > 100000, 20, "packets to c")
        assert packets("b") == before
        assert ofctl_at("del-flows") == ""
        wait_for(lambda: packets("b") > before, 20, "packets to b, as in the plan")
        assert client.counts()["openflow"]["entries"] == 0
        assert ofctl_at("add-flow", "dl_vlan=5,actions=output:2") == ""
        client.remove_next_hop("c")
        wait_for(lambda: ofctl_at.flows() == [], 20, "the entry going with its next hop")


def test_what_it_once_said(ofctl_at: Ofctl, tmp_path: Path) -> None:
    """Its bytes as they were recorded, one command behind the other."""
    recorded = Path(__file__).parents[2] / "fuzz/corpus/openflow/ofctl-add"
    one = Bytes(next(tmp_path.rglob("openflow.sock")))
    one.send(recorded.read_bytes()[1:])
    one.send(message(BARRIER, 99))
    kinds = []
    while not kinds or kinds[-1] != (PASSED, 99):
        kinds.append(one.receive()[:2])
    # 1 is the NFI-ID of no next hop here: that one is refused.
    assert [kind for kind, _ in kinds].count(ERROR) == 1
    assert ofctl_at.flows() == [
        "hard_timeout=9, send_flow_rem check_overlap dl_vlan=100 actions=output:1",
        "priority=0 actions=output:1",
    ]
