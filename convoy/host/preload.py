# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Whether one of our libraries can be preloaded under a program, and with which environment."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from convoy.errors import InputError

ABI = 23  # of DPDK's libraries
RELEASE = "22.11"
_TIMEOUT_S = 20


def program_path(program: str) -> Path:
    """Return where a program is. Raises InputError if there is none."""
    found = shutil.which(program)
    if found is None:
        raise InputError(f"{program}: no such program; give its path, or one that is in PATH")
    return Path(found)


def linked_libraries(program: Path) -> frozenset[str]:
    """Return the shared libraries that a program is started with; none: it is static.

    Raises InputError for what is no ELF program, a script say.
    """
    if program.read_bytes()[:4] != b"\x7fELF":
        raise InputError(
            f"{program}: not an ELF program; give the program itself, not a script around it"
        )
    done = subprocess.run(
        ["ldd", program], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    return frozenset(re.findall(r"^\s+(\S+\.so\S*)", done.stdout, re.MULTILINE))


def check_program(program: Path, library: str) -> None:
    """Raise InputError unless the program uses `library` (librte_ethdev, say) of our DPDK."""
    linked = linked_libraries(program)
    if f"{library}.so.{ABI}" in linked:
        return
    others = sorted(name for name in linked if name.startswith(f"{library}.so."))
    if others:
        raise InputError(
            f"{program}: linked with {others[0]}: it must be {library}.so.{ABI} (DPDK {RELEASE})"
        )
    raise InputError(
        f"{program}: not linked with {library}.so.{ABI}: it uses no DPDK {RELEASE}, or has it "
        "inside (linked statically); link it with DPDK's shared libraries"
    )


def preload_environment(library: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the library before all others that are preloaded."""
    others = environment.get("LD_PRELOAD", "")
    value = f"{library}:{others}" if others else str(library)
    if re.search(r"\s", str(library)):
        raise InputError(f"{library}: a path with spaces cannot be preloaded; move the checkout")
    return {**environment, "LD_PRELOAD": value}
