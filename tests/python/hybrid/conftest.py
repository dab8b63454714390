# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What tests of chains in parts share."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from convoy.host.container import missing
from convoy.host.programs import find


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """An image with convoyd and its libraries, nothing else."""
    if lacks := missing():
        pytest.skip(lacks)
    convoyd = find("convoyd")
    root, name = tmp_path / "root", f"localhost/convoy-test-{os.getpid()}"
    assert convoyd is not None
    drivers = [
        str(driver)
        for name in ("mempool_ring", "net_virtio", "bus_vdev")
        for driver in Path("/usr/lib").glob(f"*/dpdk/pmds-*/librte_{name}.so*")
    ]
    programs = [str(convoyd), *drivers]
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    files = {word: word for word in listed.split() if word.startswith("/") and word[-1] != ":"}
    files |= {str(driver): str(driver) for driver in drivers} | {str(convoyd): "/usr/bin/convoyd"}
    for ours, theirs in files.items():
        (root / theirs[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ours, root / theirs[1:])
    (root / "tmp").mkdir()
    archive = shutil.make_archive(str(tmp_path / "image"), "tar", root)
    made = subprocess.run(
        ["podman", "import", "-q", archive, name], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"podman makes no images here: {made.stderr.strip()}")
    try:
        yield name
    finally:
        subprocess.run(["podman", "rmi", "--force", name], check=True, capture_output=True)
