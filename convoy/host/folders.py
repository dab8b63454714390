# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Folders for sockets and other things of a run."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from convoy.errors import InputError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def runtime_dir(environment: Mapping[str, str] | None = None, uid: int | None = None) -> Path:
    """Return the folder that sockets lie in (it may not exist yet).

    $RUNTIME_DIRECTORY if that is set (of a systemd service), $XDG_RUNTIME_DIR/convoy if that is,
    /run/convoy for root, else a folder in /tmp of the user's own.
    """
    environment = os.environ if environment is None else environment
    uid = os.getuid() if uid is None else uid
    if environment.get("RUNTIME_DIRECTORY"):
        return Path(environment["RUNTIME_DIRECTORY"])
    base = environment.get("XDG_RUNTIME_DIR")
    if base:
        return Path(base) / "convoy"
    return Path("/run/convoy") if uid == 0 else Path(tempfile.gettempdir()) / f"convoy-{uid}"


def dpdk_folder(folder: Path) -> dict[str, str]:
    """Return the environment in which a DPDK program keeps its files and sockets in a folder.

    Nothing where the folder's name is too long for that: they are then where they always are.
    """
    # dpdk/PREFIX/dpdk_telemetry.v2 must fit into a socket's 107 bytes.
    return {"RUNTIME_DIRECTORY": str(folder)} if len(os.fsencode(folder)) <= 64 else {}


def make_for_sockets(plan: Mapping[str, Any]) -> None:
    """Make the runtime folder, if a plan has sockets in it. Raises InputError."""
    folder = runtime_dir()
    if any(Path(path).parent == folder for path in _socket_paths(plan)):
        make_private(folder)


def _socket_paths(plan: Mapping[str, Any]) -> Iterator[str]:
    """Return the paths of sockets that a plan, which may be anything, names."""
    ports = plan.get("ports") if isinstance(plan, Mapping) else None
    for port in ports if isinstance(ports, list) else ():
        path = port.get("path") if isinstance(port, dict) else None
        if isinstance(path, str):
            yield path
    openflow = plan.get("openflow") if isinstance(plan, Mapping) else None
    targets = openflow.get("listen") if isinstance(openflow, dict) else None
    for target in targets if isinstance(targets, list) else ():
        if isinstance(target, str) and target.startswith("punix:"):
            yield target.removeprefix("punix:")


def make_private(path: Path) -> Path:
    """Make a folder that only this user may enter; one of somebody else's is refused."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        result = path.lstat()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; set XDG_RUNTIME_DIR to a folder of your own"
        ) from None
    if not stat.S_ISDIR(result.st_mode):
        raise InputError(f"{path}: is a link; set XDG_RUNTIME_DIR to a folder of your own")
    if result.st_uid != os.getuid():
        raise InputError(f"{path}: belongs to another user; set XDG_RUNTIME_DIR to your own folder")
    if result.st_mode & _OTHERS_WRITE:
        raise InputError(f"{path}: others may write it; take that from them: chmod go-w {path}")
    return path


def is_own_folder(path: Path, uid: int) -> bool:
    """Return whether a path is a folder of this user's, no link, that no other may write."""
    return _is_own(path, uid, stat.S_ISDIR, _OTHERS_WRITE)


def is_own_socket(path: Path, uid: int) -> bool:
    """Return whether a path is a socket of this user's, no link, in a folder of this user's."""
    return is_own_folder(path.parent, uid) and _is_own(path, uid, stat.S_ISSOCK, 0)


def _is_own(path: Path, uid: int, kind: Callable[[int], bool], forbidden: int) -> bool:
    try:
        result = path.lstat()
    except OSError:
        return False
    return kind(result.st_mode) and result.st_uid == uid and not result.st_mode & forbidden
