# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy doctor: what this machine is good for, and how to make it better."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from convoy.cli.console import console, print_json
from convoy.dut.devices import DEVICES
from convoy.errors import ConvoyError
from convoy.host.doctor import devices, memory, processors, programs
from convoy.host.doctor.finding import Finding
from convoy.host.folders import runtime_dir
from convoy.host.machine import ROOT

STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


@dataclass(frozen=True)
class DoctorResult:
    """All findings, in the order in which they are shown."""

    findings: tuple[Finding, ...]

    @property
    def problems(self) -> int:
        """How many of them are problems."""
        return sum(finding.level == "problem" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return the document that --json prints."""
        return {
            "schema": "convoy.doctor/1",
            "ok": self.problems == 0,
            "findings": [finding.as_json() for finding in self.findings],
        }


def measurable() -> Iterator[Finding]:
    """Yield which devices can be measured here, and how to get those that cannot."""
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


def doctor(
    root: Path = ROOT,
    allowed: set[int] | None = None,
    ask: Callable[..., str | None] = programs.ask,
    devices_here: Callable[[], Iterable[Finding]] = measurable,
) -> DoctorResult:
    """Look at the machine whose /sys and /proc are under root; change nothing."""
    return DoctorResult(
        (
            *processors.check(root, allowed),
            *memory.check(root),
            *devices.check(root, runtime_dir()),
            *programs.check(ask),
            *devices_here(),
        )
    )


def render(result: DoctorResult) -> None:
    """Print a line per finding, and under it why it matters and its fix, ready to be copied."""
    out = console()
    width = max(len(finding.name) for finding in result.findings) + 2
    for finding in result.findings:
        line = Text(f"{finding.level:<9}", style=STYLES[finding.level])
        line.append(f"{finding.name:<{width}}{finding.found}", style="default not bold")
        out.print(line)
        indent = " " * (9 + width)
        if finding.why:
            out.print(Text(f"{indent}{finding.why}", style="dim"))
        if finding.fix:
            out.print(Text(f"{indent}fix: {finding.fix}"))
    notes = sum(finding.level == "note" for finding in result.findings)
    out.print(f"problems: {result.problems}, notes: {notes}")


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Look at this machine: each finding with the command that fixes it. Changes nothing."""
    result = doctor(allowed=os.sched_getaffinity(0))
    print_json(result.as_json()) if as_json else render(result)
    if result.problems:
        raise typer.Exit(ConvoyError.exit_code)
