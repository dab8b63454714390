# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What dataplanes that no distribution packages have in common: where they are."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def find(program: str, variable: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the path of a program, or None.

    Looked for in an environment variable, which holds its path or a folder that it is in, and then
    in PATH. A variable that leads nowhere is no reason to take another one: None.
    """
    environment = os.environ if environment is None else environment
    if environment.get(variable):
        place = Path(environment[variable])
        place = place / program if place.is_dir() else place
        return place.absolute() if place.is_file() and os.access(place, os.X_OK) else None
    result = shutil.which(program, path=environment.get("PATH", os.defpath))
    return Path(result) if result else None
