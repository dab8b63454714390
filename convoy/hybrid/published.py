# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The chains in parts that run here, as their supervisors publish them: a file, twice a second."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.errors import ConvoyError
from convoy.host.folders import runtime_dir

SCHEMA = "convoy.parts/1"
FILE = "parts.json"
PREFIX = "split-"


@dataclass(frozen=True)
class RunningChain:
    """A chain in parts that somebody started: `convoy run`, and what it supervises."""

    pid: int  # of `convoy run`
    folder: Path

    def read(self) -> dict[str, Any]:
        """Return what was published last. Raises ConvoyError: it has ended."""
        try:
            document = json.loads((self.folder / FILE).read_text("utf-8"))
        except (OSError, ValueError):
            raise ConvoyError(f"the chain of process {self.pid} has ended") from None
        if document.get("schema") != SCHEMA:
            raise ConvoyError(
                f"process {self.pid} publishes {document.get('schema')}; this program reads "
                f"{SCHEMA}: use the one that started the chain"
            )
        return dict(document)

    def pids(self) -> set[int]:
        """Return the processes of its parts, and its own."""
        return {self.pid, *(part["pid"] for part in self.read()["parts"] if part["pid"])}


def folder_of(pid: int) -> Path:
    """Return the folder of a supervisor's sockets and files."""
    return runtime_dir() / f"{PREFIX}{pid}"


def folders() -> dict[int, Path]:
    """Return the folders that are there, by their supervisors' process ids."""
    by_pid = {path.name.removeprefix(PREFIX): path for path in runtime_dir().glob(f"{PREFIX}*")}
    return {int(pid): path for pid, path in sorted(by_pid.items()) if pid.isdigit()}


def running_chains() -> list[RunningChain]:
    """Return the chains in parts that run here, by process id."""
    return [
        RunningChain(pid, path)
        for pid, path in folders().items()
        if Path(f"/proc/{pid}").exists() and (path / FILE).exists()
    ]
