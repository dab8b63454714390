# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the kernel has for a node to give up rights with (docs/running.md)."""

from collections.abc import Iterator
from pathlib import Path

from convoy.host.doctor.finding import Finding
from convoy.host.machine import text


def check(root: Path) -> Iterator[Finding]:
    """Yield findings about the kernel's means."""
    # Not there where securityfs is not mounted: then the node's ready event says it.
    modules = text(root, "sys/kernel/security/lsm")
    if modules is None:
        return
    names = modules.strip().split(",")
    if "landlock" in names:
        yield Finding("Landlock", "ok", "on")
        return
    yield Finding(
        "Landlock",
        "note",
        "off",
        "a node that was broken into could read and write all files of its user",
        f"boot with lsm={','.join(['landlock', *names])}",
    )
