# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A scenario's mistakes are answered with line, value and fix before anything is measured."""

import subprocess
import sys

import pytest

from convoy.errors import InputError
from convoy.run import scenario as scenarios

GOOD = """\
title: x
from: y
asks: z
devices: [convoy, ovs-dpdk]
setups:
  a: {functions: [router], options: {convoy: {convoys: native}}}
  b: {functions: [firewall]}
  c: {functions: [firewall, router]}
sizes: [64, 1500]
references: [niu-latency]
compare: [{setup: a, over: b, sizes: [64]}]
applications: {run: [http], setups: [a]}
quick: {setups: [a, b], sizes: [64]}
"""

WRONG = [
    # what is replaced, by what, line and words of the answer
    ("convoy, ovs", "convoi, ovs", "4: devices[0]: 'convoi': there is", "mean 'convoy'?"),
    ("[router], op", "[rooter], op", "6: setups.a.functions[0]: 'rooter': ", "mean 'router'?"),
    ("{convoy: {conv", "{convoi: {conv", "6: setups.a.options.convoi: ", "mean 'convoy'?"),
    ("{convoys: nat", "{convois: nat", "6: setups.a.options.convoy.convois: ", "'convoys'?"),
    ("native", "nativ", "6: setups.a.options.convoy.convoys: 'nativ': ", "mean 'native'?"),
    ("[firewall]}", "[firewall], deployment: pipelin}", "7: setups.b.deployment: 'pipelin': ",
     "mean 'pipeline'?"),
    ("[firewall]}", "[firewall], deplyment: x}", "7: setups.b.deplyment: ", "'deployment'?"),
    ("[firewall]}", "[firewall], devices: [nope]}", "7: setups.b.devices[0]: 'nope': ", "convoy"),
    ("[firewall]}", "[router], entries: 70000}", "7: setups.b.entries: 70000: ", "1 to 65536"),
    ("[firewall]}", "[firewall], pacing: {on-us: 9}}", "7: setups.b.pacing: ", "give both"),
    ("[firewall]}", "[firewall], devices: [convoy], options: {vm: {}}}", "7: setups.b.options.vm: ",
     "add vm to the setup's devices"),
    ("[firewall]}", "[nat]}", "7: setups.b: stateful functions remember flows", "flows: 65536"),
    ("[firewall]}", "[firewall], connections: udp}", "7: setups.b.connections: 'udp': needs a",
     "stateful or nat"),
    ("[firewall]}", "[nat], flows: 9, chains: 2}", "7: setups.b.functions: stateful", "remove"),
    ("[firewall]}", "[l2fwd], changes: {}}", "7: setups.b.changes: only rules and routes",
     "add one"),
    ("[firewall]}", "[firewall], changes: {}, chains: 2}", "7: setups.b.changes: ",
     "remove chains"),
    ("b, sizes: [64]}]", "b, sizes: [64]}]\ntargets: [{setup: d, device: vpp, mpps: 1}]",
     "12: targets[0].setup: 'd': is none", "setups: a, b, c"),
    ("b, sizes: [64]}]", "b, sizes: [64]}]\ntargets: [{setup: a, device: vp, mpps: 1}]",
     "12: targets[0].device: 'vp': there is no", "vpp"),
    ("[niu-latency]", "[nope]", "10: references[0]: 'nope': ", "niu-latency"),
    ("over: b", "over: d", "11: compare[0].over: 'd': is none", "setups: a, b, c"),
    ("sizes: [64]}]", "sizes: [65]}]", "11: compare[0].sizes[0]: 65: ", "sizes: 1500, 64"),
    ("setups: [a]}", "setups: [d]}", "12: applications.setups[0]: 'd': ", "setups: a, b, c"),
    ("setups: [a]}", "setups: [c]}", "12: applications.setups[0]: 'c': ", "give setups of one"),
    ("[a, b], si", "[a, d], si", "13: quick.setups[1]: 'd': ", "setups: a, b, c"),
    ("[a, b], si", "[b], si", "13: quick.setups: lack 'a' of applications.setups", "add it"),
    ("sizes: [64]}\n", "sizes: [64], devices: []}\n", "13: quick: leaves no ", "and devices"),
    ("sizes: [64]}\n", "sizes: [64], rates-pps: [-1]}\n", "13: quick.rates-pps[0]: -1: ", "0"),
    ("sizes: [64]}\n", "sizes: [64], devices: [nope]}\n", "13: quick.devices[0]: 'nope': ", "vpp"),
    ("sizes: [64]}\n", "sizes: [64], applications: {run: [ftp], setups: [c]}}\n",
     "13: quick.applications.setups[0]: 'c': is none of quick.setups", "setups: a, b"),
]  # fmt: skip


def test_the_one_that_the_mistakes_are_made_in_is_right(tmp_path):
    (tmp_path / "x.yaml").write_text(GOOD)
    result = scenarios.load(str(tmp_path / "x.yaml"))
    assert list(result.quickly().setups) == ["a", "b"]


@pytest.mark.parametrize(("old", "new", "where", "fix"), WRONG, ids=lambda text: text[:30])
def test_a_mistake_is_answered_with_its_line(tmp_path, old, new, where, fix):
    path = tmp_path / "x.yaml"
    assert GOOD.count(old) == 1
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError) as error:
        scenarios.load(str(path))
    first = str(error.value).splitlines()[0]
    assert first.startswith(f"{path}:{where}")
    assert fix in first


def test_several_mistakes_are_answered_at_once_and_nothing_is_started(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(GOOD.replace("native", "nativ").replace("over: b", "over: d"))
    run = [sys.executable, "-c", "from convoy.cli.main import main; main()", "bench", "run", path]
    done = subprocess.run(
        [*run, "--output", tmp_path / "run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("x.yaml:") == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", scenarios.names())
def test_every_scenario_that_comes_along_is_right_quick_or_not(name):
    assert scenarios.load(name).quickly().title
