# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run's folder: host.json, and trials.jsonl with every trial as it was, in the order of time.

Nothing is averaged and nothing is left out, spoilt trials included. Lines are appended whole, so
a run that was killed leaves everything it had finished.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from convoy.errors import InputError

SCHEMA: Literal["convoy.bench.trial/1"] = "convoy.bench.trial/1"
TRIALS = "trials.jsonl"
HOST = "host.json"


class Trial(BaseModel):
    """One trial: who was measured, why, and what the tester and the device said."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_tag: Literal["convoy.bench.trial/1"] = SCHEMA
    repeat: int  # from 0
    device: str
    functions: tuple[str, ...]  # types, in the order of the chain
    size: str  # bytes with FCS, or the name of a mix
    purpose: Literal["overload", "search", "latency"]
    rate_pps: float | None  # asked for; None: as much as possible
    verdict: Literal["passed", "failed", "spoilt"]
    commands: tuple[str, ...]  # that started the device
    tester: dict[str, Any]  # its result, raw
    device_waited_ns: int = 0  # that others kept the device off its cores
    device_before: dict[str, Any] | None = None  # what the device counted, by its own names
    device_after: dict[str, Any] | None = None

    @property
    def received_pps(self) -> float | None:
        """Return the rate at which packets came back."""
        value = self.tester.get("total", {}).get("received_pps")
        return float(value) if value is not None else None


class RunFolder:
    """Writes and reads a run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Make the folder. Raises InputError where it cannot be made or holds trials already."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}; give another folder") from None
        if (self.path / TRIALS).exists():
            raise InputError(f"{self.path}: holds another run's trials; give another folder")

    def write_host(self, host: Mapping[str, Any]) -> None:
        """Write what machine this is."""
        (self.path / HOST).write_text(json.dumps(host, indent=2) + "\n", "utf-8")

    def host(self) -> dict[str, Any]:
        """Read it back."""
        try:
            value = json.loads((self.path / HOST).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path / HOST}: {error}; is this a run's folder?") from None
        return dict(value)

    def append(self, trial: Trial) -> None:
        """Keep a trial."""
        with (self.path / TRIALS).open("a", encoding="utf-8") as file:
            file.write(trial.model_dump_json() + "\n")

    def trials(self) -> Iterator[Trial]:
        """Read the trials back. A last line that was cut short by a crash is left out."""
        path = self.path / TRIALS
        try:
            lines = path.read_text("utf-8").splitlines(keepends=True)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; is this a run's folder?") from None
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                return
            try:
                yield Trial.model_validate_json(line)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                field = ".".join(map(str, first["loc"]))
                raise InputError(
                    f"{path}:{number}: {field or 'line'}: {first['msg']}; "
                    "this version reads " + SCHEMA
                ) from None
