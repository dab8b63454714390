# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which devices there are."""

from convoy.dut.base import Device
from convoy.dut.bess import Bess
from convoy.dut.convoy import Convoy
from convoy.dut.dummy import Dummy
from convoy.dut.fastclick import FastClick
from convoy.dut.linux import Linux
from convoy.dut.ovs_dpdk import OvsDpdk
from convoy.dut.switch_vnf import BessVnf, ConvoyVnf, OvsDpdkVnf, TestpmdVnf, VppVnf
from convoy.dut.testpmd import Testpmd
from convoy.dut.vm import Vm
from convoy.dut.vpp import Vpp
from convoy.errors import InputError

DEVICES: tuple[Device, ...] = (
    Convoy(),
    Testpmd(),
    OvsDpdk(),
    Linux(),
    Vm(),
    FastClick(),
    Vpp(),
    Bess(),
    ConvoyVnf(),
    TestpmdVnf(),
    OvsDpdkVnf(),
    VppVnf(),
    BessVnf(),
    Dummy(),
)


def device(name: str) -> Device:
    """Return a device by its name. Raises InputError."""
    for each in DEVICES:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in DEVICES)
    raise InputError(f"{name}: no such device; there are {known}")
