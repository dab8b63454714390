# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What running nodes have counted, over their telemetry sockets."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.host.folders import is_own_folder, is_own_socket
from convoy.host.telemetry import Telemetry, TelemetryError

SCHEMA = "convoy.counts/3"


def read_counts(telemetry: Telemetry) -> dict[str, Any]:
    """Return a node's counts as they are now, shaped as its final ones. Raises TelemetryError."""
    ask = telemetry.read

    def each(part: str) -> dict[str, Any]:
        return {str(name): ask(f"{part},{name}") for name in ask(part)}

    return {
        "schema": SCHEMA,
        "ports": each("/convoy/ports"),
        "next_hops": each("/convoy/next_hops"),
        "functions": each("/convoy/functions"),
        "flows": each("/convoy/flows"),
        "workers": list(each("/convoy/workers").values()),
        "accounting": ask("/convoy/accounting"),
    }


@dataclass(frozen=True)
class RunningNode:
    """A convoyd that somebody started."""

    pid: int
    telemetry: Path


def running_nodes(
    environment: Mapping[str, str] | None = None, uid: int | None = None
) -> list[RunningNode]:
    """Return the nodes of this user that answer, by process id."""
    result = {}
    uid = os.getuid() if uid is None else uid
    for folder in _folders(os.environ if environment is None else environment, uid):
        for path in folder.glob("convoyd-*/dpdk_telemetry.v2"):
            pid = path.parent.name.removeprefix("convoyd-")
            if pid.isdigit() and is_own_socket(path, uid) and _answers(path):
                result[int(pid)] = RunningNode(int(pid), path)
    return [result[pid] for pid in sorted(result)]


def _folders(environment: Mapping[str, str], uid: int) -> list[Path]:
    """Return where DPDK programs of this user keep their sockets (dataplane/port/eal.c)."""
    if uid == 0:
        return [Path(environment.get("RUNTIME_DIRECTORY", "/var/run")) / "dpdk"]
    if environment.get("XDG_RUNTIME_DIR"):
        return [Path(environment["XDG_RUNTIME_DIR"]) / "dpdk"]
    # Anybody may make a folder of that name in /tmp: what it holds must not even be listed.
    return sorted(
        folder / "dpdk"
        for folder in Path(tempfile.gettempdir()).glob("convoyd-*")
        if is_own_folder(folder, uid)
    )


def _answers(path: Path) -> bool:
    try:
        with Telemetry(path):
            return True
    except TelemetryError:
        return False
