# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A bare Debian in a folder, that never saw this project."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

from convoy.host.scope import Scope

MIRROR = "http://deb.debian.org/debian"


class Root(Scope):
    """Made by mmdebstrap, entered by chroot; with a repository of packages. Use it with `with`."""

    def __init__(self, path: Path, release: str, repository: Path) -> None:
        self.path = path
        self._release = release
        self._repository = repository
        self._mounted: list[Path] = []

    def __enter__(self) -> Self:
        """Make it."""
        try:
            self._make()
        except BaseException:
            self._leave()
            raise
        return self

    def _make(self) -> None:
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", self._release,
             self.path, MIRROR],
            check=True, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        to = self.path / "repository"
        to.mkdir()
        for file in [*self._repository.glob("*.deb"), self._repository / "Packages"]:
            shutil.copy(file, to)
        source = self.path / "etc/apt/sources.list.d/convoy.list"
        source.write_text("deb [trusted=yes] file:/repository ./\n")
        for kind, name in (("proc", "proc"), ("sysfs", "sys"), ("tmpfs", "dev/shm")):
            at = self.path / name
            at.mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", kind, kind, at], check=True)
            self._mounted.append(at)
        self.run("apt-get update -qq")

    def run(self, command: str, code: int = 0, timeout: float = 600) -> str:
        """Return what a shell's command printed, errors included."""
        done = subprocess.run(
            ["chroot", self.path, "/bin/sh", "-ec", command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
            check=False, stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
                 "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout[-3000:]}"
        return done.stdout

    def install(self, *packages: str) -> None:
        """Install packages and what they need, and nothing else."""
        self.run(f"apt-get install -y -qq --no-install-recommends {' '.join(packages)}")

    def _leave(self) -> None:
        for at in reversed(self._mounted):
            subprocess.run(["umount", at], check=True)
        shutil.rmtree(self.path, ignore_errors=True)
