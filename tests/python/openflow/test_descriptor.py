# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The `openflow` of a descriptor: what it becomes in a plan, and what is wrong with it."""

from pathlib import Path

import pytest

from convoy.base.problem import DescriptorError
from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import this_machine
from convoy.host.node import Node

from .conftest import node_of

TEXT = """
ports: {in: {null: 60}, out: {null:, convoys: {ip: 192.0.2.1}}}
chains: {all: {from: in, to: out}}
workers: {idle: sleep}
openflow: OPENFLOW
"""


def plan(openflow: str, folder: Path, text: str = TEXT) -> dict[str, object]:
    machine = this_machine()
    return make_plan(loads(text.replace("OPENFLOW", openflow), machine, folder), machine).data


@pytest.mark.parametrize(
    ("openflow", "controllers", "listen"),
    [
        ("{controllers: 'tcp:192.0.2.9'}", ["tcp:192.0.2.9"], []),
        ("{controllers: ['tcp:[2001:db8::1]:6633', 'unix:/run/c.sock']}",
         ["tcp:[2001:db8::1]:6633", "unix:/run/c.sock"], []),
        ("{listen: 'ptcp:'}", [], ["ptcp:"]),
        ("{listen: 'ptcp:6633:[::1]', entries: 5}", [], ["ptcp:6633:[::1]"]),
    ],
)  # fmt: skip
def test_good(tmp_path: Path, openflow: str, controllers: list[str], listen: list[str]) -> None:
    made = plan(openflow, tmp_path)["openflow"]
    assert isinstance(made, dict)
    assert (made["controllers"], made["listen"]) == (controllers, listen)
    with Node(plan(openflow, tmp_path)) as node:  # the node reads it the same way
        assert node.stop()["openflow"]["entries"] == 0


@pytest.mark.parametrize(
    ("openflow", "message"),
    [
        ("{}", "openflow: give it controllers to connect to, or where to listen"),
        ("{controllers: 'tcp:host'}", r"openflow.controllers: 'tcp:host': write tcp:ADDRESS"),
        ("{controllers: 'tcp:192.0.2.9:0'}", r"openflow.controllers: 'tcp:192.0.2.9:0': write tcp"),
        ("{controllers: 'tcp:192.0.2.9:65536'}", "write tcp"),
        ("{controllers: 'tcp:[::1]x'}", "write tcp"),
        ("{controllers: 'ptcp:6653'}", "write tcp"),
        ("{controllers: 'ssl:192.0.2.9'}", "TLS needs private-key, certificate, ca-certificate"),
        ("{controllers: 'ssl:host'}", "write tcp"),
        ("{listen: 'unix:/run/x'}", "write ptcp"),
        ("{listen: 'punix:'}", "write ptcp"),
        ("{listen: 'ptcp:x'}", "write ptcp"),
        ("{listen: 'punix:" + "x" * 120 + "'}", r"listen\[0\].*the socket's path has"),
        ("{listen: 'ptcp:', entries: 0}", "entries: 0"),
        ("{listen: 'ptcp:', datapath-id: '0'}", "datapath-id: 0 is none"),
        ("{listen: 'ptcp:', datapath-id: 'xyz'}", "datapath-id"),
        ("{listen: 'ptcp:', socket-mode: '0660'}", "socket-mode and socket-group are of a socket"),
    ],
)
def test_bad(tmp_path: Path, openflow: str, message: str) -> None:
    with pytest.raises(DescriptorError, match=message):
        plan(openflow, tmp_path)


def test_a_node_without_next_hops(tmp_path: Path) -> None:
    text = TEXT.replace(", convoys: {ip: 192.0.2.1}", "")
    with pytest.raises(DescriptorError, match="openflow: no port sends convoys"):
        plan("{listen: 'ptcp:'}", tmp_path, text)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("controllers", ["tcp:host"], r"openflow.controllers\[0\]: tcp:host: write tcp:ADDRESS"),
        ("listen", ["ptcp:70000"], "ptcp:70000: write tcp"),
        ("listen", ["punix:" + "x" * 200], "write tcp"),
        ("listen", [], "openflow: give it controllers, or where to listen"),
        ("datapath_id", "0", "must be 1 to 16 hexadecimal digits"),
    ],
)
def test_a_bad_plan(tmp_path: Path, key: str, value: object, message: str) -> None:
    data = plan("{listen: 'ptcp:'}", tmp_path)
    assert isinstance(data["openflow"], dict)
    data["openflow"][key] = value
    with pytest.raises(InputError, match=message), Node(data):
        pass


def test_a_socket_that_is_taken(tmp_path: Path) -> None:
    text = TEXT.replace("OPENFLOW", "{listen: 'punix:openflow.sock'}")
    with (
        node_of(text, tmp_path),
        pytest.raises(ConvoyError, match=r"openflow\.sock"),
        node_of(text, tmp_path),
    ):
        pass
    assert not list(tmp_path.rglob("openflow.sock"))
