# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a virtual machine is made of."""

from convoy.host.guest import kernel


def test_the_newest_kernel_is_the_one_of_the_highest_number(tmp_path):
    for version in ("6.1.0-9", "6.1.0-10", "6.1.0-37", "5.10.0-40", "6.12.3-1"):
        for folder in ("boot", "lib/modules"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / f"boot/vmlinuz-{version}-cloud-amd64").touch()
        if version != "6.12.3-1":  # installed without its modules
            (tmp_path / f"lib/modules/{version}-cloud-amd64").mkdir()
    assert kernel(tmp_path).name == "vmlinuz-6.1.0-37-cloud-amd64"
    (tmp_path / "lib/modules/6.1.0-37-cloud-amd64").rmdir()
    assert kernel(tmp_path).name == "vmlinuz-6.1.0-10-cloud-amd64"
