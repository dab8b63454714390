# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A running node has given up what it does not need, in every thread, and says so."""

import os
import pwd
import re
import tempfile
from pathlib import Path

import pytest

from convoy.client import Client
from convoy.errors import InputError
from convoy.host.node import Node
from convoy.host.programs import find
from convoy.tester.convoy_gen import ConvoyGen

from .conftest import ROOT as CHECKOUT
from .test_node import plan

ROOT = os.getuid() == 0
only_root = pytest.mark.skipif(not ROOT, reason="only root becomes another user: sudo make check")


def statuses(node: Node) -> list[dict[str, str]]:
    """Return what the kernel says of each thread."""
    return [
        dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines())
        for task in Path(f"/proc/{node.process.pid}/task").iterdir()
    ]


def core_limit(node: Node) -> str:
    limits = Path(f"/proc/{node.process.pid}/limits").read_text()
    return "\n".join(line for line in limits.splitlines() if "core file" in line)


def info(node: Node) -> dict[str, int]:
    with Client(node.running.read) as client:
        return client.sandbox()


def test_every_thread_has_given_up_its_rights():
    with Node(plan().data) as node:
        threads = statuses(node)
        assert len(threads) > 3  # its own, DPDK's, the worker's
        for thread in threads:
            assert thread["NoNewPrivs"] == "1", thread["Name"]
            assert thread["Seccomp"] == "2", thread["Name"]
            for key in ("CapEff", "CapPrm", "CapInh", "CapAmb", *(["CapBnd"] if ROOT else [])):
                assert int(thread[key], 16) == 0, (thread["Name"], key)
        # Files of a process that may not be looked into are root's, whoever runs it.
        assert Path(f"/proc/{node.process.pid}/fd").stat().st_uid == 0
        assert re.search(r"Max core file size +0 +0 ", core_limit(node))
        assert node.ready["sandbox"] == {
            "on": True,
            "landlock": node.ready["sandbox"]["landlock"],
            "uid": os.getuid(),
            "capabilities": 0,
            "dumpable": False,
        }
        assert info(node) == node.ready["sandbox"]
        assert node.stop()["accounting"]["conserved"]
        assert node.process.exit_code == 0
        assert node.process.stderr.text() == ""
    assert not Path(node.ready["telemetry"]).parent.exists()


def test_it_can_be_left_off():
    with Node(plan().data, options=["--no-sandbox"]) as node:
        for thread in statuses(node):
            assert (thread["NoNewPrivs"], thread["Seccomp"]) == ("0", "0")
        assert not node.ready["sandbox"]["on"]
        assert node.ready["sandbox"]["dumpable"]
        node.stop()
        assert node.process.stderr.text().splitlines() == [
            "convoyd: note: no sandbox: it keeps all its rights (--no-sandbox)"
        ]


def test_core_dumps_can_be_kept():
    with Node(plan().data, options=["--core-dumps"]) as node:
        assert node.ready["sandbox"]["on"]
        assert node.ready["sandbox"]["dumpable"]
        assert statuses(node)[0]["Seccomp"] == "2"


@only_root
def test_root_becomes_another_user():
    user = pwd.getpwnam("nobody")
    with Node({**plan().data, "run_as": "nobody"}) as node:
        for thread in statuses(node):
            assert thread["Uid"].split() == [str(user.pw_uid)] * 4
            assert thread["Gid"].split() == [str(user.pw_gid)] * 4
            assert int(thread["CapPrm"], 16) == 0
        assert info(node)["uid"] == user.pw_uid
        node.stop()
        assert node.process.exit_code == 0
        assert node.process.stderr.text() == ""
    # What cannot be removed any more is an empty folder.
    left = Path(node.ready["telemetry"]).parent
    assert not left.exists() or not list(left.iterdir())
    left.rmdir()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"run_as": "no such user"}, "there is no such user"),
        ({"run_as": "nobody:no such group"}, "there is no such group"),
        ({"run_as": 1}, "run_as: 1: must be a string"),
    ],
)
def test_a_user_that_is_none_is_refused(change, words):
    with pytest.raises(InputError, match=words), Node({**plan().data, **change}):
        pass


def test_its_files_are_out_of_its_reach_but_peers_are_not():
    """A tester connects, leaves and comes back: all that a port does at run time is allowed."""
    if find("convoy-gen") is None:
        pytest.skip("convoy-gen is not built: make build")
    easy = {"rate_pps": 2000, "duration_s": 0.2, "drain_s": 20, "tolerance": 1}
    with tempfile.TemporaryDirectory(prefix="cv-") as folder:
        made = plan().data
        for port in made["ports"]:
            port.pop("frame_bytes", None)
            port |= {"kind": "vhost-user", "path": f"{folder}/{port['name']}"}
        with Node(made) as node:
            ports = [f"vhost-user:{port['path']}" for port in made["ports"]]
            for _ in range(3):
                with ConvoyGen(ports, attach_timeout_s=60) as tester:
                    assert tester.trial(easy).total.received_pkts > 0
            assert statuses(node)[0]["Seccomp"] == "2"
            assert node.stop()["accounting"]["conserved"]
        assert not list(Path(folder).iterdir())


def test_a_sanitizers_build_still_finds_leaks():
    """Its leak checker looks into every thread at the end, and says so where it may not."""
    convoyd = CHECKOUT / "build-asan/daemon/convoyd"
    if not convoyd.exists():
        pytest.skip("not built: make build-asan")
    with Node(plan().data, convoyd=convoyd) as node:
        assert node.ready["sandbox"]["on"]
        node.stop()
        assert node.process.exit_code == 0
        assert node.process.stderr.text() == ""
