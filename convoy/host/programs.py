# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Where Convoy's own programs are."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from convoy.errors import InputError

CHECKOUT = Path(__file__).resolve().parents[2]
_INSTALLED = Path(__file__).resolve().parents[1] / "scenarios"  # where the package has its copy
SCENARIOS = _INSTALLED if _INSTALLED.is_dir() else CHECKOUT / "scenarios"
LEDGER = SCENARIOS / "claims.yaml"  # no scenario, but what these test
_FOLDERS = {  # of a build
    "bench-crossing": "tests/bench",
    "bench-frame": "tests/bench",
    "bench-hostile-guest": "tests/bench",
    "bench-hostile-memif": "tests/bench",
    "bench-latency": "tests/bench",
    "bench-next-hop": "tests/bench",
    "bench-nf": "tests/bench",
    "bench-views": "tests/bench",
    "bench-vring": "tests/bench",
    "convoyd": "daemon",
    "convoy-gen": "gen",
    "convoy-sim": "sim",
    "libconvoy_ethdev.so": "preload/ethdev",
    "libconvoy_vhost.so": "preload/vhost",
}
_PACKAGES = {  # of Debian, by that folder
    "daemon": "convoy-nfv",
    "gen": "convoy-tester",
    "preload/ethdev": "convoy-preload",
    "preload/vhost": "convoy-preload",
    "sim": "convoy-sim",
    "tests/bench": "convoy-tester",
}


def find(program: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the path of one of our programs, or None.

    Looked for in CONVOY_BIN (a folder), then in this checkout's build/, then beside this package
    (where Debian's packages have what nobody types), then in PATH.
    """
    environment = os.environ if environment is None else environment
    places = []
    if environment.get("CONVOY_BIN"):
        places.append(Path(environment["CONVOY_BIN"]) / program)
    places.append(CHECKOUT / "build" / _FOLDERS.get(program, "") / program)
    places.append(CHECKOUT / program)
    # A library is read: Debian's packages take a library's right to be run away.
    right = os.R_OK if program.endswith(".so") else os.X_OK
    for place in places:
        if place.is_file() and os.access(place, right):
            return place
    result = shutil.which(program, path=environment.get("PATH", os.defpath))
    return Path(result) if result else None


def need(program: str) -> Path:
    """Return the path of one of our programs. Raises InputError with the fix."""
    path = find(program)
    if path is None:
        package = _PACKAGES.get(_FOLDERS.get(program, ""), "convoy-nfv")
        raise InputError(
            f"{program}: not found in CONVOY_BIN, {CHECKOUT / 'build'} or PATH; "
            f"run `make build` in a checkout, install Convoy's Debian package {package}, or set "
            "CONVOY_BIN to the folder it is in"
        )
    return path
