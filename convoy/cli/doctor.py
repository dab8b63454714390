# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy doctor: what this machine is good for, and how to make it better."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from convoy.cli.result import Json, Result
from convoy.dut.devices import DEVICES
from convoy.errors import ConvoyError
from convoy.host import container
from convoy.host.doctor import devices, memory, processors, programs, sandbox
from convoy.host.doctor.finding import Finding
from convoy.host.folders import runtime_dir
from convoy.host.machine import ROOT
from convoy.run.application import APPLICATIONS

NAME_WIDTH = 20  # of the longest name
STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


class Diagnosis(Result):
    """All findings, in the order in which they are shown, each shown as it comes."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._coming = iter(findings)
        self._findings: list[Finding] = []

    def __iter__(self) -> Iterator[Finding]:
        yield from self._findings
        for finding in self._coming:
            self._findings.append(finding)
            yield finding

    def of_level(self, level: str) -> int:
        """Return how many there are."""
        return sum(finding.level == level for finding in self)

    @property
    def exit_code(self) -> int:
        """1 where there is a problem."""
        return ConvoyError.exit_code if self.of_level("problem") else 0

    def document(self) -> dict[str, Any]:
        """See Result."""
        findings = [finding.as_json() for finding in self]
        return {"schema": "convoy.doctor/2", "ok": not self.exit_code, "findings": findings}

    def show(self, out: Console) -> None:
        """Print a line per finding, below it why it matters and its fix, to be copied."""
        for finding in self:
            line = Text(f"{finding.level:<9}", style=STYLES[finding.level])
            line.append(f"{finding.name:<{NAME_WIDTH}}{finding.state}", style="default not bold")
            out.print(line)
            indent = " " * (9 + NAME_WIDTH)
            if finding.why:
                out.print(Text(f"{indent}{finding.why}", style="dim"))
            if finding.fix:
                out.print(Text(f"{indent}fix: {finding.fix}"))
        out.print(f"problems: {self.of_level('problem')}, notes: {self.of_level('note')}")


def measurable() -> Iterator[Finding]:
    """Yield what can be measured here, devices and applications, and how to get the others."""
    for device in DEVICES:
        if device.name == "dummy":
            continue  # it is always here, and nothing to look for
        presence = device.presence()
        name = f"device {device.name}"
        if not presence.here:
            yield Finding(name, "note", presence.missing)
        elif presence.remark:
            yield Finding(name, "note", presence.version, presence.remark)
        else:
            yield Finding(name, "ok", presence.version)
    lacks = container.missing()
    why = "functions in OCI containers (container: oci) are not measured" if lacks else ""
    yield Finding("OCI containers", "note" if lacks else "ok", lacks or container.made_by(), why)
    missing = [f"{app.name}: {app.missing()}" for app in APPLICATIONS if app.missing()]
    every = ", ".join(app.name for app in APPLICATIONS)
    yield Finding("applications", "note" if missing else "ok", "; ".join(missing) or every)


def diagnose(
    root: Path = ROOT,
    allowed: set[int] | None = None,
    query: Callable[..., str | None] = programs.query,
    devices_here: Callable[[], Iterable[Finding]] = measurable,
) -> Diagnosis:
    """Check the machine whose /sys and /proc are under root; change nothing."""
    return Diagnosis(
        itertools.chain.from_iterable(
            probe()
            for probe in (
                partial(processors.check, root, allowed),
                partial(memory.check, root),
                partial(sandbox.check, root),
                partial(devices.check, root, runtime_dir()),
                partial(programs.check, query),
                devices_here,
            )
        )
    )


def command(as_json: Json = False) -> Result:
    """Look at this machine: each finding with the command that fixes it. Changes nothing."""
    return diagnose(allowed=os.sched_getaffinity(0))
