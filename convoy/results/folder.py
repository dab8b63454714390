# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run's folder: plan.yaml (what is to be measured), host.json (on what machine), trials.jsonl
and points.jsonl (one line for each trial and each search, in the order of time), memory.jsonl
(what was measured in memory), simulated.jsonl (what was simulated), logs/ (the devices' output).

Lines are appended whole and written through to the disk, so that a run that was killed leaves
everything it had finished; what it was writing is a last line without an end, which is cut off
before the next one is written.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from convoy.base.files import cut_partial_line, write_whole
from convoy.base.problem import printable
from convoy.errors import InputError, first_problem
from convoy.results.applications import ApplicationTrial
from convoy.results.documents import BenchPlan, Host
from convoy.results.memory import Memory
from convoy.results.simulated import Simulated
from convoy.results.trials import Search, Trial

PLAN = "plan.yaml"
HOST = "host.json"
TRIALS = "trials.jsonl"
POINTS = "points.jsonl"
MEMORY = "memory.jsonl"
SIMULATED = "simulated.jsonl"
LOGS = "logs"
SCHEMA_SHOWN = 80  # characters of a foreign schema, in an error

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

_TRIED: TypeAdapter[Trial | ApplicationTrial] = TypeAdapter(
    Annotated[Trial | ApplicationTrial, Field(discriminator="schema_tag")],
    config=ConfigDict(defer_build=True),
)
_SEARCH, _MEMORY = TypeAdapter(Search), TypeAdapter(Memory)
_SIMULATED = TypeAdapter(Simulated)


def _read(path: Path, parse: Callable[[str], Any], model: type[M]) -> M:
    """Return what a file of a run says. Raises InputError, one line."""
    try:
        value = parse(path.read_text("utf-8"))
        if not isinstance(value, dict):
            raise TypeError(f"{type(value).__name__}, not a mapping")
        mine = model.model_fields["schema_tag"].default
        if value.get("schema", mine) != mine:
            raise InputError(f"{path}: {_other_schema(value['schema'], mine)}")
        return model.model_validate(value)
    except ValidationError as error:
        raise InputError(
            f"{path}: {first_problem(error)}; is this a run of this version?"
        ) from None
    except (OSError, ValueError, TypeError, yaml.YAMLError) as error:
        why = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise InputError(f"{path}: {why}; is this a run's folder?") from None


def _other_schema(schema: object, mine: str) -> str:
    """Return that a document is another version's, and what to do about it."""
    shown = printable(str(schema))[:SCHEMA_SHOWN]
    return f"schema: '{shown}': this version reads {mine}; read it with the one that wrote it"


def _why(error: ValidationError, tags: Sequence[str]) -> str:
    """Return why a line cannot be read, and what to do about it. tags: the schemas it may have."""
    first = error.errors(include_url=False)[0]
    context = first.get("ctx", {})
    foreign = context.get("tag") or (first["input"] if first["loc"] == ("schema",) else None)
    # A line of another version is one of the same name.
    names = [tag for tag in tags if str(foreign).startswith(tag.rpartition("/")[0])]
    mine = (names or tags)[0]
    if foreign:
        return _other_schema(foreign, mine)
    if first["type"] == "json_invalid":
        return "no JSON: was the file written to by something else? Without this line it is read"
    if first["type"] == "union_tag_not_found":
        return f"schema: missing; this version reads {mine}"
    # Of one of several models, pydantic names the schema first.
    own = first["loc"][0] if first["loc"] and first["loc"][0] in tags else ""
    return f"{first_problem(error).removeprefix(f'{own}.')}; this version reads {own or mine}"


class RunFolder:
    """Writes and reads a run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def logs(self) -> Path:
        """Return the folder of the programs' output."""
        return self.path / LOGS

    def create(self, plan: BenchPlan) -> None:
        """Make the folder. Raises InputError where it cannot be made or holds trials already."""
        if (self.path / TRIALS).exists():
            raise InputError(f"{self.path}: holds another run's trials; give another folder")
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            write_whole(
                self.path / PLAN, yaml.safe_dump(plan.as_document(), sort_keys=False, width=100)
            )
            (self.path / TRIALS).touch()
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}; give another folder") from None

    def plan(self) -> BenchPlan:
        """Read what was to be measured."""
        return _read(self.path / PLAN, yaml.safe_load, BenchPlan)

    def write_host(self, host: Host) -> None:
        """Write what machine this is."""
        write_whole(self.path / HOST, json.dumps(host.as_document(), indent=2) + "\n")

    def host(self) -> Host:
        """Read it back."""
        return _read(self.path / HOST, json.loads, Host)

    def append(self, line: Trial | ApplicationTrial | Search | Memory | Simulated) -> None:
        """Keep a trial, how a search ended, or what was measured in memory or simulated."""
        names: dict[type[BaseModel], str] = {
            Trial: TRIALS,
            ApplicationTrial: TRIALS,
            Search: POINTS,
            Memory: MEMORY,
            Simulated: SIMULATED,
        }
        path = self.path / names[type(line)]
        with path.open("ab") as file:
            file.write(line.model_dump_json(by_alias=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def repair(self) -> None:
        """Cut off last lines that a crash left without their ends."""
        for path in (self.path / name for name in (TRIALS, POINTS, MEMORY, SIMULATED)):
            cut_partial_line(path)

    def tried(self) -> Iterator[Trial | ApplicationTrial]:
        """Read all trials back, without a last line that was cut short."""
        return self._lines(self.path / TRIALS, _TRIED, Trial, ApplicationTrial)

    def trials(self) -> Iterator[Trial]:
        """Read the testers' trials back."""
        return (one for one in self.tried() if isinstance(one, Trial))

    def applications(self) -> Iterator[ApplicationTrial]:
        """Read the applications' trials back."""
        return (one for one in self.tried() if isinstance(one, ApplicationTrial))

    def searches(self) -> Iterator[Search]:
        """Read back how the searches ended."""
        path = self.path / POINTS
        return self._lines(path, _SEARCH, Search) if path.exists() else iter(())

    def memory(self) -> Iterator[Memory]:
        """Read back what was measured in memory."""
        path = self.path / MEMORY
        return self._lines(path, _MEMORY, Memory) if path.exists() else iter(())

    def simulated(self) -> Iterator[Simulated]:
        """Read back what was simulated."""
        path = self.path / SIMULATED
        return self._lines(path, _SIMULATED, Simulated) if path.exists() else iter(())

    def log(self, name: str, text: str) -> None:
        """Keep a program's output, behind what was kept under that name before."""
        self.logs.mkdir(exist_ok=True)
        safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
        with (self.logs / f"{safe}.log").open("a", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")

    def _lines(self, path: Path, adapter: TypeAdapter[T], *models: type[BaseModel]) -> Iterator[T]:
        try:
            lines = path.read_bytes().splitlines(keepends=True)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; is this a run's folder?") from None
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield adapter.validate_json(line)
            except ValidationError as error:
                tags = [model.model_fields["schema_tag"].default for model in models]
                raise InputError(f"{path}:{number}: {_why(error, tags)}") from None
