# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""sharedDir: a folder for each container, and the folders of a node's ports, which go there.

A node opens its ports when it starts. So a port for containers has a folder of its own,
sharedDir/FOLDER/FILE. The folder of a port that is given to a container is moved into the
container's, with the socket in it, and a link stands in its place: a node that starts again
listens, or connects, where the container is.

    sharedDir/pod0 -> 0958c8871b32/pod0                       the node's way
    sharedDir/0958c8871b32/pod0/pod0.sock                     its socket
    sharedDir/0958c8871b32/0958c8871b32-net1 -> pod0/pod0.sock   the container's way

Containers and nodes may write here. So no path is followed: each folder is opened by itself, and
links in it are not. What is removed is known from records, which only the plugin's user reads.
"""

import contextlib
import errno
import fcntl
import grp
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from convoy.cni.errors import CniError, Code
from convoy.cni.network import Network

RECORDS = ".attachments"
LOCK_DEADLINE_S = 30.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Record:
    """What an attachment is made of."""

    key: str
    container: str
    interface: str
    network: str
    folder: str  # of the container
    socket: str  # its name there
    port: str | None = None  # the folder of the node's port; None: there is no node
    file: str = ""  # its socket's name in it
    listens: bool = True  # the node does
    owner: int = -1  # of the port's folder
    inode: int = -1
    pod: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)  # empty: not complete

    @property
    def config_file(self) -> str:
        """What the container reads, beside its socket."""
        return f"configData-{self.key}.json"


class Folders:
    """sharedDir, for one plugin at a time. Use it with `with`."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._base = -1
        self._records = -1

    def __enter__(self) -> Self:
        """Wait until nobody else changes it. Raises CniError or OSError."""
        self._network.shared.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._base = os.open(self._network.shared, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._lock()
            self._records = self._made(RECORDS, 0o700)
        except BaseException:
            os.close(self._base)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._records)
        os.close(self._base)

    def _lock(self) -> None:
        until = time.monotonic() + LOCK_DEADLINE_S
        while True:
            try:
                return fcntl.flock(self._base, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise CniError(
                        Code.TRY_AGAIN, f"{self._network.shared}: another plugin changes it"
                    ) from None
                time.sleep(0.01)

    def _made(self, name: str, mode: int) -> int:
        """Return a folder, which is made if it is not there."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=self._base)
        return os.open(name, _FOLDER, dir_fd=self._base)

    # Records

    def record(self, key: str) -> Record | None:
        """Return the record of an attachment, if there is one."""
        try:
            file = os.open(f"{key}.json", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._records)
        except FileNotFoundError:
            return None
        with os.fdopen(file, "rb") as opened:
            try:
                return Record(**json.load(opened))
            except (ValueError, TypeError):
                path = self._network.shared / RECORDS / f"{key}.json"
                raise CniError(Code.IO, f"{path}: no record; remove it") from None

    def records(self) -> Iterator[Record]:
        """Return all of this network, however many share the folder."""
        return (one for one in self._all() if one.network == self._network.name)

    def _all(self) -> Iterator[Record]:
        for name in sorted(os.listdir(self._records)):
            match = self.record(name.removesuffix(".json")) if name.endswith(".json") else None
            if match is not None:
                yield match

    def _beside(self, record: Record) -> list[Record]:
        """Return the container's other attachments."""
        return [one for one in self._all() if one.folder == record.folder and one.key != record.key]

    def keep(self, record: Record) -> None:
        """Write a record, whole or not at all."""
        _replace(self._records, f"{record.key}.json", asdict(record), 0o600)

    # A container's folder

    def is_free(self, port: str) -> bool:
        """Tell whether a port's folder is there and no container's."""
        return stat.S_ISDIR(_mode(port, self._base))

    def attach(self, record: Record) -> Record:
        """Lay out a container's folder, and give it the port. The record comes first."""
        if record.socket in [one.socket for one in self._beside(record)]:
            raise CniError(
                Code.OCCUPIED,
                f"{record.socket}: is another interface's of this container",
                "leave out socketfile, or take another network",
            )
        if record.port is not None:
            match = os.stat(record.port, dir_fd=self._base, follow_symlinks=False)
            record = replace(record, owner=match.st_uid, inode=match.st_ino)
        self.keep(record)
        try:
            self._lay_out(record)
        except BaseException:
            self.detach(record)
            raise
        return record

    def _lay_out(self, record: Record) -> None:
        folder = self._made(record.folder, 0o700)
        try:
            self._set_rights(folder, record.owner)
            if record.port is not None:
                os.rename(record.port, record.port, src_dir_fd=self._base, dst_dir_fd=folder)
                os.symlink(f"{record.folder}/{record.port}", record.port, dir_fd=self._base)
                self._join(folder, record)
            if record.pod is not None:
                with contextlib.suppress(FileExistsError):
                    os.symlink(record.folder, record.pod, dir_fd=self._base)
        finally:
            os.close(folder)

    def _join(self, folder: int, record: Record) -> None:
        """Have the container's name for the socket, and the node's, mean the same."""
        if record.listens:
            return os.symlink(f"{record.port}/{record.file}", record.socket, dir_fd=folder)
        port = os.open(str(record.port), _FOLDER, dir_fd=folder)
        try:
            os.symlink(f"../{record.socket}", record.file, dir_fd=port)
        finally:
            os.close(port)

    def _set_rights(self, folder: int, owner: int) -> None:
        """The node's user owns it; others make sockets in it only where the node connects."""
        network = self._network
        group = -1 if network.group is None else _group(network.group)
        mode = (0o750 if network.listens else 0o1770) if network.group else 0
        mode = mode or (0o755 if network.listens else 0o1777)
        os.chown(folder, owner, group)
        os.chmod(folder, mode | stat.S_IMODE(os.fstat(folder).st_mode))

    def tell(self, record: Record, data: Mapping[str, Any]) -> None:
        """Write what the container reads."""
        folder = os.open(record.folder, _FOLDER, dir_fd=self._base)
        try:
            _replace(folder, record.config_file, data, 0o644)
        finally:
            os.close(folder)

    def detach(self, record: Record) -> None:
        """Undo attach(), however far it came."""
        try:
            folder = os.open(record.folder, _FOLDER, dir_fd=self._base)
        except (FileNotFoundError, NotADirectoryError):
            folder = -1
        try:
            if record.port is not None:
                self._put_back(record.port, record, folder)
            for name in (record.socket, record.config_file) if folder >= 0 else ():
                _remove(name, folder)
        finally:
            if folder >= 0:
                os.close(folder)
        _remove(f"{record.key}.json", self._records)
        if not self._beside(record):
            _remove(record.folder, self._base)
            if record.pod is not None and stat.S_ISLNK(_mode(record.pod, self._base)):
                os.unlink(record.pod, dir_fd=self._base)

    def _put_back(self, port: str, record: Record, folder: int) -> None:
        if stat.S_ISLNK(_mode(port, self._base)):
            os.unlink(port, dir_fd=self._base)
        if folder >= 0 and _is_inode(port, folder, record.inode):
            self._clean(port, folder, record.listens)
            try:
                os.rename(port, port, src_dir_fd=folder, dst_dir_fd=self._base)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise  # else somebody made one meanwhile
        if not self.is_free(port):  # the container removed it: the node must start again
            os.mkdir(port, dir_fd=self._base)
            os.chmod(port, 0o755, dir_fd=self._base)
            os.chown(port, record.owner, -1, dir_fd=self._base, follow_symlinks=False)

    def _clean(self, port: str, folder: int, listens: bool) -> None:
        """Remove what a container wrote into a port's folder."""
        opened = os.open(port, _FOLDER, dir_fd=folder)
        try:
            for name in os.listdir(opened):
                if not (listens and stat.S_ISSOCK(_mode(name, opened))):
                    _remove(name, opened)
        finally:
            os.close(opened)

    # What is there

    def problem(self, record: Record) -> str | None:
        """Say what is missing of an attachment, or return None."""
        folder = f"{self._network.shared}/{record.folder}"
        if not stat.S_ISDIR(_mode(record.folder, self._base)):
            return f"{folder}: it is gone"
        opened = os.open(record.folder, _FOLDER, dir_fd=self._base)
        try:
            if not stat.S_ISREG(_mode(record.config_file, opened)):
                return f"{folder}/{record.config_file}: it is gone"
            if record.port is None:
                return None
            wanted = f"{record.folder}/{record.port}"
            if not _leads(record.port, self._base, wanted) or not _is_inode(
                record.port, opened, record.inode
            ):
                return f"{self._network.shared}/{record.port}: does not lead to {wanted}"
            wanted = f"{record.port}/{record.file}"
            if record.listens and not _leads(record.socket, opened, wanted):
                return f"{folder}/{record.socket}: does not lead to {wanted}"
            return None
        finally:
            os.close(opened)


def _mode(name: str, folder: int) -> int:
    """Return what stands there, by itself; 0: nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0


def _is_inode(name: str, folder: int, inode: int) -> bool:
    """Tell whether a folder is the one that was there."""
    try:
        match = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(match.st_mode) and match.st_ino == inode


def _leads(name: str, folder: int, to: str) -> bool:
    try:
        return os.readlink(name, dir_fd=folder) == to
    except OSError:
        return False


def _remove(name: str, folder: int) -> None:
    """Remove whatever stands there, and follow no link."""
    if not stat.S_ISDIR(_mode(name, folder)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        return
    try:
        shutil.rmtree(name, dir_fd=folder)
    except RecursionError:
        raise CniError(Code.IO, f"{name}: folders in folders: remove it by hand") from None


def _replace(folder: int, name: str, data: Mapping[str, Any], mode: int) -> None:
    """Write a file, whole or not at all."""
    new = f".{name}.new"
    _remove(new, folder)
    with os.fdopen(os.open(new, _NEW_FILE, mode, dir_fd=folder), "w", encoding="utf-8") as file:
        os.chmod(file.fileno(), mode)
        json.dump(data, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def _group(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise CniError(
            Code.CONFIG, f"host.vhost.group: {name!r}: there is no such group here"
        ) from None
