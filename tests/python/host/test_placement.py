# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Placements on machines that are not here, as hwloc describes them."""

import os
import shutil

import pytest

from convoy.errors import InputError
from convoy.host.placement import LSTOPO, place, read
from convoy.results.scenario import SetupSpec
from convoy.run import device_machine

pytestmark = pytest.mark.skipif(
    shutil.which(LSTOPO) is None, reason=f"{LSTOPO} is not installed: make setup"
)


@pytest.mark.parametrize(
    ("machine", "functions", "where", "tester", "chosen", "remote"),
    [
        ("numa:2 core:8", 3, "same-node", 0, (1, 2, 3), ()),
        ("numa:2 core:8", 3, "other-node", 0, (1, 8, 2), ()),
        ("numa:2 core:8", 4, "other-server", 0, (1, 2), (1, 2)),
        ("numa:1 core:4", 3, "same-node", 0, (1, 2, 3), ()),
        # Second threads of cores come last: CPUs 0 and 1 are one core here.
        ("numa:1 core:4 pu:2", 3, "same-node", 0, (2, 4, 6), ()),
        ("numa:4 core:2", 2, "other-node", 0, (1, 2), ()),
        ("pack:2 numa:2 core:4", 2, "other-node", 0, (1, 4), ()),
    ],
)
def test_placements(machine, functions, where, tester, chosen, remote):
    result = place(read(machine), functions, where)
    assert (result.tester, result.functions, result.remote) == (tester, chosen, remote)
    assert result.notes == ()


def test_threads_that_share_a_core_are_said():
    result = place(read("numa:1 core:2 pu:2"), 2, "same-node")
    assert result.functions == (2, 1)
    assert "two hardware threads of one core" in result.notes[0]


def test_only_allowed_cpus_are_used():
    assert place(read("numa:2 core:8"), 2, "same-node", {3, 9, 10, 12}).functions == (10, 12)


@pytest.mark.parametrize(
    ("machine", "functions", "where", "words"),
    [
        ("numa:1 core:2", 2, "same-node", "3 CPUs are needed on node 0, there are 2"),
        ("numa:1 core:8", 2, "other-node", "this machine has one NUMA node"),
        ("numa:2 core:2", 6, "other-node", "CPUs are needed on"),
        ("moon:2", 1, "same-node", "topology 'moon:2'"),
    ],
)
def test_what_cannot_be_placed_is_said(machine, functions, where, words):
    with pytest.raises(InputError, match=words):
        place(read(machine), functions, where)


def test_a_setup_says_how_many_cores_it_needs(monkeypatch):
    monkeypatch.setattr(device_machine, "read_topology", lambda: read("numa:1 core:4"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert device_machine.placed(SetupSpec(cores=3)) == (1, 2, 3)
    words = "needs 6 cores beside the tester's: .* 7 CPUs are needed on node 0, there are 4"
    with pytest.raises(InputError, match=words):
        device_machine.placed(SetupSpec(cores=6))


def test_this_machine():
    topology = read()
    numbers = {cpu.number for cpu in topology.cpus}
    assert os.sched_getaffinity(0) <= numbers
    assert topology.nodes
