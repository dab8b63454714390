# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What machine a run was made on: the facts that its numbers depend on."""

import os
import platform
from pathlib import Path

from convoy import __version__
from convoy.base.clock import timestamp
from convoy.host.command import CommandError, output
from convoy.host.machine import ROOT, cpu_model, hugepages, online, text
from convoy.host.programs import CHECKOUT
from convoy.results.documents import Host


def commit() -> str | None:
    """Return the checkout's commit, with + where files differ from it; None outside of one."""
    describe = ("describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*")
    try:
        return output(["git", "-C", CHECKOUT, *describe]).strip() or None
    except CommandError:
        return None


def environment(root: Path = ROOT) -> Host:
    """Return the facts."""
    vulnerabilities = root / "sys/devices/system/cpu/vulnerabilities"
    return Host(
        started=timestamp(),
        cpu=cpu_model(root),
        cores=online(root),
        cores_allowed=tuple(sorted(os.sched_getaffinity(0))),
        governor=text(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        kernel=platform.release(),
        hugepages_free_mb=max((pages.free_mb for pages in hugepages(root)), default=0),
        mitigations={
            path.name: text(root, str(path.relative_to(root)))
            for path in sorted(vulnerabilities.glob("*"))
        },
        root=os.geteuid() == 0,
        convoy=__version__,
        commit=commit(),
    )
