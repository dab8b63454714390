# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A Linux kernel's first file system, made of files of this machine: a cpio archive ("newc").

Written here rather than by cpio(1), because device nodes in an archive need no root, and files
none that they are copied from.
"""

import os
import re
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from convoy.errors import ConvoyError, InputError
from convoy.host.command import run

_BLOCK = 512


class Initramfs:
    """Collects files; archive() returns them."""

    def __init__(self) -> None:
        # Without a root folder in it, that is the kernel's, which anybody may write to.
        root = (stat.S_IFDIR | 0o755, b"", (0, 0))
        self._entries: dict[str, tuple[int, bytes, tuple[int, int]]] = {".": root}

    def folder(self, path: str) -> None:
        """Add a folder, with those that it is in."""
        parts = path.strip("/").split("/")
        for end in range(1, len(parts) + 1):
            self._entries.setdefault("/".join(parts[:end]), (stat.S_IFDIR | 0o755, b"", (0, 0)))

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Add a file."""
        name = path.strip("/")
        if "/" in name:
            self.folder(name.rpartition("/")[0])
        self._entries[name] = (stat.S_IFREG | mode, content, (0, 0))

    def link(self, path: str, target: str) -> None:
        """Add a symbolic link."""
        self.folder(path.strip("/").rpartition("/")[0])
        self._entries[path.strip("/")] = (stat.S_IFLNK | 0o777, target.encode(), (0, 0))

    def console(self) -> None:
        """Add /dev/console, which the kernel opens for the first process."""
        self.folder("dev")
        self._entries["dev/console"] = (stat.S_IFCHR | 0o600, b"", (5, 1))

    def program(self, name: str) -> None:
        """Add a program of this machine, and the libraries that it needs. Raises InputError."""
        result = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/bin")
        if result is None:
            raise InputError(f"{name}: not found in PATH; install it")
        self.copy(Path(result), f"bin/{Path(result).name}")
        self.libraries(Path(result))

    def copy(self, source: Path, path: str) -> None:
        """Add a copy of a file. Raises InputError where it cannot be read."""
        try:
            mode = 0o755 if os.access(source, os.X_OK) else 0o644
            self.file(path, source.read_bytes(), mode)
        except OSError as error:
            raise InputError(f"{source}: {error.strerror}") from None

    def mirror(self, path: Path) -> None:
        """Add a file where it is here; links on the way to it stay links: it is there once."""
        real = path.resolve()
        if str(real).strip("/") not in self._entries:
            self.copy(real, str(real))
        if path != real:
            self.link(str(path), str(real))

    def libraries(self, binary: Path) -> None:
        """Add the shared libraries that a program or a library needs, where it looks for them."""
        for path in re.findall(r"(/\S+) \(0x", run(["ldd", binary]).stdout):  # none: it is static
            self.mirror(Path(path))

    def archive(self) -> bytes:
        """Return the archive; kernels take several of them, one behind the other."""
        parts = [
            _entry(name, number, *entry)
            for number, (name, entry) in enumerate(self._entries.items(), 1)
        ]
        whole = b"".join(parts) + _entry("TRAILER!!!", 0, 0, b"", (0, 0))
        return whole + bytes(-len(whole) % _BLOCK)


def _entry(name: str, number: int, mode: int, content: bytes, device: tuple[int, int]) -> bytes:
    path = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    head += bytes(-len(head) % 4)
    return head + content + bytes(-len(content) % 4)


def module_files(modules: Path, names: Sequence[str]) -> list[Path]:
    """Return the files of kernel modules and of what they need, in the order of loading.

    modules: /lib/modules/VERSION. What is built into the kernel is left out. Raises ConvoyError.
    """
    try:
        lines = (modules / "modules.dep").read_text().splitlines()
        builtin = (modules / "modules.builtin").read_text().splitlines()
    except OSError as error:
        raise ConvoyError(f"{error.filename}: {error.strerror}") from None
    needs = {path: rest.split() for path, _, rest in (line.partition(":") for line in lines)}
    by_name = {Path(path).name.split(".")[0].replace("-", "_"): path for path in needs}
    has = {Path(path).name.split(".")[0].replace("-", "_") for path in builtin}
    order: list[str] = []
    for name in names:
        if name in has:
            continue
        if name not in by_name:
            raise ConvoyError(f"{modules}: no module {name}")
        path = by_name[name]
        order += [each for each in (*reversed(needs[path]), path) if each not in order]
    return [modules / path for path in order]
