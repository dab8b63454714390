# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Devices: network cards, IOMMU, virtualisation, and the folder that sockets lie in."""

import os
from collections.abc import Iterator
from pathlib import Path

from convoy.host.doctor.finding import Finding
from convoy.host.machine import text


def check(root: Path, runtime_dir: Path) -> Iterator[Finding]:
    """Yield findings about devices."""
    cards = list(_cards(root))
    yield from cards or [
        Finding(
            "network cards",
            "note",
            "none",
            "chains can run between vhost-user sockets, virtual interfaces and captures",
        )
    ]
    yield _iommu(root, bool(cards))
    yield _kvm(root)
    yield _runtime_dir(runtime_dir)


def _cards(root: Path) -> Iterator[Finding]:
    for interface in sorted((root / "sys/class/net").glob("*")):
        device = interface / "device"
        if not device.exists():
            continue
        driver = (device / "driver").resolve().name if (device / "driver").exists() else "?"
        speed = text(interface, "speed")
        node = text(device, "numa_node")
        parts = [f"{interface.name}: {driver}"]
        parts += [f"{speed} Mb/s"] if speed and speed.isdigit() else []
        parts += [f"NUMA node {node}"] if node and node.isdigit() else []
        yield Finding("network card", "ok", ", ".join(parts))


def _iommu(root: Path, needed: bool) -> Finding:
    units = sorted(path.name for path in (root / "sys/class/iommu").glob("*"))
    if units:
        return Finding("IOMMU", "ok", ", ".join(units))
    if not needed:
        return Finding("IOMMU", "ok", "off; nothing here needs it")
    return Finding(
        "IOMMU",
        "note",
        "off",
        "DPDK takes a network card safely only through it (vfio-pci)",
        "kernel command line: intel_iommu=on iommu=pt (AMD: iommu=pt)",
    )


def _kvm(root: Path) -> Finding:
    if (root / "dev/kvm").exists():
        return Finding("KVM", "ok", "/dev/kvm is there; whether guests run: see device vm")
    why = "functions in virtual machines are emulated, far too slow to be compared"
    return Finding("KVM", "note", "none", why, "sudo modprobe kvm_intel || sudo modprobe kvm_amd")


def _runtime_dir(path: Path) -> Finding:
    parent = next(p for p in (path, *path.parents) if p.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        why = "sockets are made there"
        fix = "export XDG_RUNTIME_DIR=/a/folder/of/your/own"
        return Finding("socket folder", "problem", f"{path}: not writable", why, fix)
    return Finding("socket folder", "ok", str(path))
