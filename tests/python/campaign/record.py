# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a campaign found: a table for people, and the same as JSON."""

import datetime
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from convoy.host.machine import cpu_model
from convoy.host.programs import CHECKOUT

SCHEMA = "convoy.campaign/1"


@dataclass(frozen=True)
class Step:
    """One fault and what came of it."""

    number: int
    fault: str
    words: str
    back_s: float | None  # until what was hit worked again
    bystander_packets: int  # carried between its neighbours, meanwhile
    bystander_lost: int
    bystander_gap_s: float  # the longest time without one of them
    took_s: float
    wrong: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether all held that must hold."""
        return not self.wrong

    def line(self) -> str:
        """Return it for a terminal."""
        back = "" if self.back_s is None else f", back in {self.back_s * 1e3:.0f} ms"
        verdict = "ok" if self.ok else f"WRONG: {'; '.join(self.wrong)}"
        return f"{self.number:4d} {self.fault}: {self.words or 'not done'}{back}: {verdict}"


def environment(seed: int, hours: float) -> dict[str, object]:
    """Return what is to be said of a run."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=CHECKOUT, capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    return {
        "schema": SCHEMA, "seed": seed, "hours": hours, "commit": commit,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": cpu_model(), "kernel": platform.release(),
        "cores": len(os.sched_getaffinity(0)),
    }  # fmt: skip


def as_json(about: Mapping[str, object], steps: Sequence[Step]) -> str:
    """Return all of it, a fault a line; times to the microsecond."""
    lines = ",\n".join(json.dumps(_rounded(asdict(step))) for step in steps)
    return f'{json.dumps(dict(about))[:-1]}, "steps": [\n{lines}\n]}}\n'


def _rounded(step: dict[str, object]) -> dict[str, object]:
    return {key: round(one, 6) if isinstance(one, float) else one for key, one in step.items()}


def as_markdown(about: Mapping[str, object], steps: Sequence[Step]) -> str:
    """Return a row for each kind of fault, and a line for each finding."""
    rows = [
        f"Seed {about['seed']}, commit {about['commit']}, {about['date']}, {about['cores']} cores: "
        f"{len(steps)} faults, {sum(not step.ok for step in steps)} findings.",
        "",
        "| fault | times | back, median .. longest | bystander: packets, lost | "
        "longest gap | findings |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for fault in sorted({step.fault for step in steps}):
        rows.append(_row(fault, [step for step in steps if step.fault == fault]))
    failed = [step for step in steps if not step.ok]
    if failed:
        rows += [
            "",
            *(f"* {step.number}, `{step.fault}`: {'; '.join(step.wrong)}" for step in failed),
        ]
    return "\n".join(rows) + "\n"


def _row(fault: str, steps: Sequence[Step]) -> str:
    backs = [step.back_s * 1e3 for step in steps if step.back_s is not None]
    back = f"{statistics.median(backs):.0f} .. {max(backs):.0f} ms" if backs else "-"
    packets = sum(step.bystander_packets for step in steps)
    lost = sum(step.bystander_lost for step in steps)
    gap = max(step.bystander_gap_s for step in steps) * 1e3
    wrong = sum(not step.ok for step in steps) or "-"
    return f"| `{fault}` | {len(steps)} | {back} | {packets:,}, {lost} | {gap:.0f} ms | {wrong} |"
