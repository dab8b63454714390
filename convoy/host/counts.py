# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The running nodes of a user, by their control sockets."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from convoy.client import Client, ClientError
from convoy.host.folders import is_own_folder, is_own_socket

SCHEMA = "convoy.counts/3"
SERVICES = Path("/run/convoy")  # a folder for each, which belongs to the user that it runs as


@dataclass(frozen=True)
class RunningNode:
    """A convoyd that somebody started."""

    pid: int
    control: Path  # the socket that it is changed by

    @property
    def read(self) -> Path:
        """The socket that it is only read by."""
        return self.control.with_name("read.sock")


def running_nodes(
    environment: Mapping[str, str] | None = None, uid: int | None = None
) -> list[RunningNode]:
    """Return the nodes of this user that answer, by process id."""
    result = {}
    uid = os.getuid() if uid is None else uid
    for folder in _folders(os.environ if environment is None else environment, uid):
        for path in folder.glob("convoyd-*/control.sock"):
            pid = path.parent.name.removeprefix("convoyd-")
            if pid.isdigit() and _is_known(path, uid) and _answers(path):
                result[int(pid)] = RunningNode(int(pid), path)
    return [result[pid] for pid in sorted(result)]


def _is_known(path: Path, uid: int) -> bool:
    """Return whether a socket is this user's; services, of other users, are root's to ask."""
    if uid == 0 and SERVICES in path.parents:
        return is_own_socket(path, path.parents[2].lstat().st_uid)
    return is_own_socket(path, uid)


def _folders(environment: Mapping[str, str], uid: int) -> list[Path]:
    """Return where DPDK programs of this user keep their sockets (dataplane/port/eal.c)."""
    if environment.get("RUNTIME_DIRECTORY"):
        return [Path(environment["RUNTIME_DIRECTORY"]) / "dpdk"]
    if uid == 0:
        return [Path("/var/run/dpdk"), *SERVICES.glob("*/dpdk")]
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
        with Client(path):
            return True
    except ClientError:
        return False
