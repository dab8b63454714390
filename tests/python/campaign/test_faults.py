# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Each fault once, on one node after the other: a short campaign."""

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from convoy.host.programs import find

from .campaign import inject
from .faults import FAULTS
from .rig import MACHINE_FAULTS, Rig

SEED = 1
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk: sudo make check"),
    pytest.mark.skipif(
        find("convoyd") is None or not MACHINE_FAULTS.exists(), reason="not built: make build"
    ),
]


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with tempfile.TemporaryDirectory(prefix="cvc") as folder:
        (Path(folder) / "r").mkdir()
        with Rig(Path(folder) / "r", SEED) as rig:
            yield rig


@pytest.mark.parametrize("fault", FAULTS)
def test_all_goes_on_after(fault: str, rig: Rig) -> None:
    step = inject(rig, fault, 0, random.Random(f"{SEED}/{fault}"))
    assert step.ok, step.line()
