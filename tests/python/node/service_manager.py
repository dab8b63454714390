# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A service manager, as systemd is one to a node whose flows it keeps: FDSTORE and LISTEN_FDS."""

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from convoy.host.process import wait_for

SOON_S = 60.0
FDS_MAX = 253  # of one message
# Opens what the manager has as descriptors 3 and on, and becomes the node.
LAUNCH = """
import os, sys
_, manager, names, kept, *command = sys.argv
for i, fd in enumerate(kept.split(",") if kept else ()):
    opened = os.open(f"/proc/{manager}/fd/{fd}", os.O_RDWR)
    os.dup2(opened, 3 + i)
    os.set_inheritable(3 + i, True)
    if opened != 3 + i:
        os.close(opened)
if kept:
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES=names)
    os.environ["LISTEN_FDS"] = str(names.count(":") + 1)
os.execvp(command[0], command)
"""


class ServiceManager:
    """Hears a service, and has its descriptors for the next process of it."""

    def __init__(self, folder: Path) -> None:
        """Listen at a socket in a folder."""
        self.path = folder / "notify"
        self.stored: dict[str, list[int]] = {}  # by FDNAME
        self.heard: list[str] = []
        self._changed = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        """What a service is started with."""
        return {"NOTIFY_SOCKET": str(self.path)}

    def launch(self) -> tuple[str, ...]:
        """Return what to put before a service's command: it gets what was stored."""
        with self._changed:
            pairs = [(name, fd) for name, fds in self.stored.items() for fd in reversed(fds)]
        names = ":".join(name for name, _ in pairs)
        fds = ",".join(str(fd) for _, fd in pairs)
        return (sys.executable, "-S", "-c", LAUNCH, str(os.getpid()), names, fds)

    def _listen(self) -> None:
        while True:
            data, fds, _, _ = socket.recv_fds(self._socket, 4096, FDS_MAX)
            if not data:
                return
            with self._changed:
                self._take(dict(line.split("=", 1) for line in data.decode().splitlines()), fds)
                self.heard.append(data.decode())

    def _take(self, state: dict[str, str], fds: list[int]) -> None:
        if state.get("FDSTOREREMOVE") == "1":
            for fd in self.stored.pop(state["FDNAME"], []):
                os.close(fd)
        if state.get("FDSTORE") != "1":
            return
        known = {os.fstat(fd).st_ino for stored in self.stored.values() for fd in stored}
        for fd in fds:  # one that it has it does not take twice
            if os.fstat(fd).st_ino in known:
                os.close(fd)
            else:
                self.stored.setdefault(state["FDNAME"], []).append(fd)

    def has_heard(self, words: str) -> bool:
        """Return whether a service said that."""
        with self._changed:
            return any(words in text for text in self.heard)

    def settle(self) -> None:
        """Wait until all is read that was said."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as says:
            word = f"X_SETTLED={len(self.heard)}"
            says.sendto(word.encode(), str(self.path))
        wait_for(lambda: self.has_heard(word), SOON_S, "the service manager")

    def close(self) -> None:
        """Forget everything."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as says:
            says.sendto(b"", str(self.path))
        self._thread.join()
        self._socket.close()
        self.path.unlink()
        for fds in self.stored.values():
            for fd in fds:
                os.close(fd)


@contextlib.contextmanager
def service_manager(folder: Path) -> Iterator[ServiceManager]:
    """Be one, in a folder."""
    manager = ServiceManager(folder)
    try:
        yield manager
    finally:
        manager.close()
