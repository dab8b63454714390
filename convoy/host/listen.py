# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Where pages are served: an address of this machine only, or a unix socket."""

import contextlib
import ipaddress
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from convoy.base.problem import shown
from convoy.errors import InputError

BACKLOG = 1024


def address_of(text: str) -> tuple[str, int]:
    """Return the address and port that "127.0.0.1:9103" means. Raises InputError."""
    host, _, port = text.rpartition(":")
    host = {"localhost": "127.0.0.1"}.get(host, host.removeprefix("[").removesuffix("]"))
    try:
        if not ipaddress.ip_address(host).is_loopback:
            raise InputError(
                f"--listen: {shown(text)}: whoever reaches it reads all counters: only a loopback "
                f"address is possible, such as 127.0.0.1:{port}; let a proxy serve others"
            )
        if not (port.isascii() and port.isdigit() and int(port) <= 65535):
            raise ValueError
    except ValueError:
        raise InputError(
            f"--listen: {shown(text)}: write ADDRESS:PORT, such as 127.0.0.1:9103 or [::1]:9103"
        ) from None
    return host, int(port)


@contextlib.contextmanager
def tcp_socket(text: str) -> Iterator[socket.socket]:
    """Give a socket that listens at a loopback address. Raises InputError."""
    host, port = address_of(text)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listens:
        listens.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listens.bind((host, port))
            listens.listen(BACKLOG)
        except OSError as error:
            raise InputError(f"--listen: {shown(text)}: {error.strerror}") from None
        yield listens


@contextlib.contextmanager
def unix_socket(path: Path, mode: int, option: str = "--unix") -> Iterator[socket.socket]:
    """Give a socket that listens at a path, which is gone afterwards. Raises InputError.

    What a killed exporter left there is replaced.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listens:
        try:
            _make_room(path, option)
            before = os.umask(0o177)
            try:
                listens.bind(str(path))
            finally:
                os.umask(before)
            path.chmod(mode)
            listens.listen(BACKLOG)
            made = path.stat().st_ino
        except OSError as error:
            raise InputError(f"{option}: {path}: {error.strerror or error}") from None
        try:
            yield listens
        finally:
            with contextlib.suppress(OSError):
                if path.stat().st_ino == made:
                    path.unlink()


def _make_room(path: Path, option: str) -> None:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise InputError(f"{option}: {path}: is there and no socket; name another path")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asks:
        asks.setblocking(False)
        try:
            asks.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:
            pass  # somebody listens, and has much to do
    raise InputError(f"{option}: {path}: somebody listens there; name another path")


def url_of(listens: socket.socket, path: str) -> str:
    """Return where a client goes."""
    name = listens.getsockname()
    if listens.family == socket.AF_UNIX:
        return f"{name}, path {path}"
    return f"http://{f'[{name[0]}]' if ':' in name[0] else name[0]}:{name[1]}{path}"
