# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Stateful functions do the same on every device that has them: packets leave with an address of
the pool, answers come back to who they are for, and nothing else comes in.
"""

import os

import pytest

from convoy.dut.addresses import OUTSIDE
from convoy.dut.base import Device, Setup
from convoy.dut.devices import DEVICES
from convoy.dut.linux import scripts
from convoy.dut.openflow import flows
from convoy.errors import InputError
from convoy.host.private import private_folder
from convoy.host.programs import find
from convoy.results.scenario import SetupSpec
from convoy.run.order import port_kind, setup_of
from convoy.run.remembered import check_translation, fill
from convoy.run.workload import stateful_flows
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

BOTH = ("stateful", "nat")
WITH = [each for each in DEVICES if each.ability.remembers and each.name != "dummy"]
# Beside others a kernel loses packets at any rate: flows are never all set up.
ALONE = [
    pytest.param(each, marks=[pytest.mark.alone] if each.name == "linux" else [], id=each.name)
    for each in WITH
]


def configured(device: Device, folder, functions=BOTH, connections=None) -> Setup:
    spec = SetupSpec(functions=functions, flows=2000, connections=connections)
    return setup_of(device, spec, port_kind(device, spec), CORES[-1:], folder)


@pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces: sudo make check")
@pytest.mark.parametrize("connections", [None, "tcp"])
@pytest.mark.parametrize("device", ALONE)
def test_packets_and_answers_are_translated(device: Device, connections):
    if not device.presence().here:
        pytest.skip(device.presence().missing)
    with private_folder() as private:
        setup = configured(device, private, connections=connections)
        assert device.cannot(setup) == ""
        with device.start(setup) as running:
            ports = [device.tester_port(p, i) for i, p in enumerate((setup.left, setup.right))]
            with ConvoyGen(ports, CORES[0]) as tester:
                running.ready(60)
                for protocol in ("udp", "tcp"):
                    check_translation(tester, str(OUTSIDE), protocol, device.name)
                if connections is None:
                    fill(tester, 2000, device.name)
                # Nobody from outside begins.
                begun = {"rate_pps": 1000, "duration_s": 0.1, "drain_s": 0.2, "paths": ["1>0"],
                         "flows": stateful_flows(100)
                         | {"src_ip": "198.19.0.1", "dst_ip": "203.0.113.7", "src_port": 4096,
                            "dst_port": "40000-40099"}}  # fmt: skip
                total = tester.trial(begun).total
                assert total.sent_pkts == 100
                assert total.received_pkts == 0


@pytest.mark.parametrize(
    "functions",
    [("nat",), ("stateful",), ("nat", "stateful"), ("router", "stateful", "nat")],
    ids=str,
)
def test_what_other_devices_are_not_compared_in_is_refused(functions, tmp_path):
    setup = configured(WITH[0], tmp_path, functions)
    with pytest.raises(InputError, match="a stateful firewall before a nat"):
        flows(setup.functions)
    with pytest.raises(InputError, match="a stateful firewall before a nat"):
        scripts(setup)


@pytest.mark.parametrize(
    "device", [each for each in DEVICES if not each.ability.remembers], ids=lambda each: each.name
)
def test_other_devices_refuse_them(device: Device, tmp_path):
    why = device.cannot(configured(device, tmp_path))
    assert why.startswith(f"{device.name} ")
    why = device.cannot(configured(device, tmp_path, ("stateful",)))
    assert "stateful" in why or "has no" in why
