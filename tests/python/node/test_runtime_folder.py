# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The node keeps DPDK's files in no folder that somebody else could have prepared."""

import signal

import pytest

from convoy.errors import ConvoyError
from convoy.host.node import Node

from .test_node import plan


@pytest.mark.parametrize("kind", ["link", "writable", "file"])
def test_a_folder_that_is_not_its_own_is_refused(tmp_path, kind):
    (tmp_path / "real").mkdir(mode=0o700)
    if kind == "link":
        (tmp_path / "dpdk").symlink_to(tmp_path / "real")
    elif kind == "file":
        (tmp_path / "dpdk").write_text("")
    else:
        (tmp_path / "real").rename(tmp_path / "dpdk")
        (tmp_path / "dpdk").chmod(0o770)
    environment = {"RUNTIME_DIRECTORY": str(tmp_path)}
    with (
        pytest.raises(ConvoyError, match=f"{tmp_path}/dpdk: is not a directory of this user's"),
        Node(plan().data, environment=environment),
    ):
        pass


def test_a_folder_whose_path_is_too_long_is_named(tmp_path):
    folder = tmp_path / ("x" * 80)
    folder.mkdir()
    with (
        pytest.raises(ConvoyError, match="x: sockets there would have paths of"),
        Node(plan().data, environment={"RUNTIME_DIRECTORY": str(folder)}),
    ):
        pass


def test_left_by_a_killed_one(tmp_path):
    """What a killed node left is removed by the next."""
    environment = {"RUNTIME_DIRECTORY": str(tmp_path)}
    with Node(plan().data, environment=environment) as living:
        with Node(plan().data, environment=environment) as killed:
            killed.process.signal(signal.SIGKILL)
            killed.process.wait(60)
        others = [tmp_path / "dpdk/other-1", tmp_path / "dpdk/convoyd-4194305"]  # no such process
        for other in others:
            other.mkdir()
        with Node(plan().data, environment=environment) as following:
            names = {path.name for path in (tmp_path / "dpdk").iterdir()}
            pids = (living.process.pid, following.process.pid)
            assert names == {f"convoyd-{pid}" for pid in pids} | {path.name for path in others}
            assert living.counts()["accounting"]["received"] >= 0
