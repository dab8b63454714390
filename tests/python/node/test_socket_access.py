# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The sockets that a node makes have the mode and the group that the plan gives them."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import this_machine
from convoy.host.node import Node

GROUP = 4242 if os.getuid() == 0 else os.getgid()
PORTS = {
    "vhost-user": {"kind": "vhost-user"},
    "vhost-user by DPDK": {"kind": "vhost-user", "datapath": "dpdk", "trusted": True},
    "memif": {"kind": "memif"},
    "memif by DPDK": {"kind": "memif", "datapath": "dpdk", "trusted": True},
}


def plan(folder, port, **keys):
    text = "ports: {a: {null: 60}, b: {null: }}\nchains: {all: {from: a, to: b}}\n"
    text += "memory: {hugepages: never}\nworkers: {idle: sleep}\n"
    machine = this_machine()
    made = make_plan(loads(text, machine, Path("/nowhere")), machine).data
    if port is not None:
        made["ports"][1] = {"name": "b", "path": str(folder / "s"), **port, **keys}
    return made


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="cv-") as name:  # pytest's are too long for sockets
        yield Path(name)


@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS.keys())
@pytest.mark.parametrize("mode", ["0660", "0600", "666"])
def test_a_port_gives_its_socket_mode_and_group(folder, port, mode):
    keys = {"socket_mode": mode, "socket_group": str(GROUP)}
    before = os.umask(0o022)
    try:
        with Node(plan(folder, port, **keys)) as node:
            result = (folder / "s").stat()
            assert stat.S_ISSOCK(result.st_mode)
            assert stat.S_IMODE(result.st_mode) == int(mode, 8)
            assert result.st_gid == GROUP
            assert "Umask:\t0022" in Path(f"/proc/{node.process.pid}/status").read_text()
    finally:
        os.umask(before)


def test_a_group_alone_leaves_the_mode_to_the_umask(folder):
    before = os.umask(0o027)
    try:
        with Node(plan(folder, PORTS["vhost-user"], socket_group=str(GROUP))):
            result = (folder / "s").stat()
            assert (stat.S_IMODE(result.st_mode), result.st_gid) == (0o750, GROUP)
    finally:
        os.umask(before)


def test_telemetry_in_a_folder_of_its_own(folder):
    wanted = plan(folder, None) | {"telemetry": {"socket_mode": "0660", "socket_group": str(GROUP)}}
    with Node(wanted, environment={"RUNTIME_DIRECTORY": str(folder)}) as node:
        path = Path(node.ready["telemetry"])
        assert path.is_relative_to(folder)
        for each, mode in ((path, 0o660), (path.parent, 0o710), (path.parents[1], 0o710)):
            result = each.stat()
            assert (stat.S_IMODE(result.st_mode), result.st_gid) == (mode, GROUP)


def test_telemetry_in_a_shared_folder_is_refused(folder):
    wanted = plan(folder, None) | {"telemetry": {"socket_mode": "0660"}}
    with pytest.raises(ConvoyError, match="set RUNTIME_DIRECTORY to a folder"), Node(wanted):
        pass


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ("{vhost-user: s, mode: client, socket-mode: '0660'}", "the peer makes the socket"),
        ("{memif: s, role: client, socket-group: kvm}", "the peer makes the socket"),
        ("{vhost-user: s, socket-mode: '0999'}", "socket-mode"),
        ("{vhost-user: s, socket-mode: 0660}", "socket-mode"),
        ("{virtio-user: s, socket-mode: '0660'}", "unknown key"),
    ],
)
def test_a_descriptor_is_refused(port, words):
    text = f"ports: {{a: {{null: 60}}, b: {port}}}\nchains: {{all: {{from: a, to: b}}}}\n"
    with pytest.raises(InputError, match=words):
        loads(text, this_machine(), Path("/nowhere"))


def test_a_descriptor_says_it_in_the_plan():
    text = "ports: {a: {null: 60}, b: {vhost-user: s, socket-mode: '0660', socket-group: kvm}}\n"
    text += "chains: {all: {from: a, to: b}}\ntelemetry: {socket-mode: '0600'}\n"
    machine = this_machine()
    made = make_plan(loads(text, machine, Path("/nowhere")), machine).data
    assert made["ports"][1]["socket_mode"] == "0660"
    assert made["ports"][1]["socket_group"] == "kvm"
    assert made["telemetry"] == {"socket_mode": "0600"}
