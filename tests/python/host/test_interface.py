# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What sysfs says of interfaces."""

from pathlib import Path

import pytest

from convoy.chain.nic import Nic
from convoy.host import interface


@pytest.mark.parametrize(
    ("nic", "place"),
    [
        ("dpdk:0000:41:00.2", "sys/bus/pci/devices/0000:41:00.2"),
        ("af_xdp:ens5v0", "sys/class/net/ens5v0/device"),
        ("ens5v0", "sys/class/net/ens5v0/device"),
    ],
)
def test_a_virtual_function_is_one_that_has_its_card(nic, place, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(interface, "_ROOT", tmp_path)
    assert not interface.is_virtual_function(Nic.read(nic))
    device = tmp_path / place
    device.mkdir(parents=True)
    assert not interface.is_virtual_function(Nic.read(nic))
    (device / "physfn").symlink_to(tmp_path)
    assert interface.is_virtual_function(Nic.read(nic))
