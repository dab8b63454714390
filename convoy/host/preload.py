# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Whether one of our libraries can be preloaded under a program, and with which environment."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from convoy.errors import InputError
from convoy.host.command import run


def program_path(program: str) -> Path:
    """Return where a program is. Raises InputError if there is none."""
    result = shutil.which(program)
    if result is None:
        raise InputError(f"{program}: no such program; give its path, or one that is in PATH")
    return Path(result)


def linked_libraries(program: Path) -> frozenset[str]:
    """Return the shared libraries that a program is started with; none: it is static.

    Raises InputError for what is no ELF program, a script say.
    """
    if program.read_bytes()[:4] != b"\x7fELF":
        raise InputError(
            f"{program}: not an ELF program; give the program itself, not a script around it"
        )
    return frozenset(re.findall(r"^\s+(\S+\.so\S*)", run(["ldd", program]).stdout, re.MULTILINE))


def check_program(program: Path, library: str, ours: Path) -> None:
    """Raise InputError unless the program uses the same `library` (librte_ethdev, say) as ours."""
    linked = linked_libraries(program)
    wanted = _of(linked_libraries(ours), library)
    others = _of(linked, library)
    if not wanted:
        raise InputError(f"{ours}: not linked with {library}: build it again")
    if wanted == others:
        return
    if others:
        raise InputError(
            f"{program}: linked with {others[0]}: it must be {wanted[0]}, which {ours.name} was "
            "built with"
        )
    raise InputError(
        f"{program}: not linked with {wanted[0]}: it uses no DPDK of that release, or has it "
        "inside (linked statically); link it with DPDK's shared libraries"
    )


def _of(linked: frozenset[str], library: str) -> list[str]:
    """Return the library's names with their ABI, librte_ethdev.so.23 say, among linked ones."""
    return sorted(name for name in linked if name.startswith(f"{library}.so."))


def preload_environment(library: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the library before all others that are preloaded."""
    others = environment.get("LD_PRELOAD", "")
    value = f"{library}:{others}" if others else str(library)
    if re.search(r"\s", str(library)):
        raise InputError(f"{library}: a path with spaces cannot be preloaded; move the checkout")
    return {**environment, "LD_PRELOAD": value}
