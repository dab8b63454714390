# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy doctor: what this machine is good for, and how to make it better."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from convoy.cli.console import console, print_json
from convoy.cli.options import Json
from convoy.dut.devices import DEVICES
from convoy.errors import ConvoyError
from convoy.host.doctor import devices, memory, processors, programs, sandbox
from convoy.host.doctor.finding import Finding
from convoy.host.folders import runtime_dir
from convoy.host.machine import ROOT
from convoy.run.application import APPLICATIONS

NAME_WIDTH = 20  # of the longest name
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
    missing = [f"{app.name}: {app.missing()}" for app in APPLICATIONS if app.missing()]
    every = ", ".join(app.name for app in APPLICATIONS)
    yield Finding("applications", "note" if missing else "ok", "; ".join(missing) or every)


def look(
    root: Path = ROOT,
    allowed: set[int] | None = None,
    ask: Callable[..., str | None] = programs.ask,
    devices_here: Callable[[], Iterable[Finding]] = measurable,
) -> Iterator[Finding]:
    """Look at the machine whose /sys and /proc are under root; change nothing."""
    yield from processors.check(root, allowed)
    yield from memory.check(root)
    yield from sandbox.check(root)
    yield from devices.check(root, runtime_dir())
    yield from programs.check(ask)
    yield from devices_here()


def doctor(*args: Any, **options: Any) -> DoctorResult:
    """Look at all of it (see look)."""
    return DoctorResult(tuple(look(*args, **options)))


def render(findings: Iterable[Finding]) -> DoctorResult:
    """Print a line per finding as it comes, below it why it matters and its fix, to be copied."""
    out = console()
    shown = []
    for finding in findings:
        shown.append(finding)
        line = Text(f"{finding.level:<9}", style=STYLES[finding.level])
        line.append(f"{finding.name:<{NAME_WIDTH}}{finding.found}", style="default not bold")
        out.print(line)
        indent = " " * (9 + NAME_WIDTH)
        if finding.why:
            out.print(Text(f"{indent}{finding.why}", style="dim"))
        if finding.fix:
            out.print(Text(f"{indent}fix: {finding.fix}"))
    result = DoctorResult(tuple(shown))
    notes = sum(finding.level == "note" for finding in shown)
    out.print(f"problems: {result.problems}, notes: {notes}")
    return result


def command(
    as_json: Json = False,
) -> None:
    """Look at this machine: each finding with the command that fixes it. Changes nothing."""
    findings = look(allowed=os.sched_getaffinity(0))
    if as_json:
        result = DoctorResult(tuple(findings))
        print_json(result.as_json())
    else:
        result = render(findings)
    if result.problems:
        raise typer.Exit(ConvoyError.exit_code)
