# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""dpdk-testpmd, unmodified, with libconvoy_ethdev.so under it."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from convoy.host.process import Process
from convoy.host.programs import find
from cores import CORES


@pytest.fixture(autouse=True)
def _built():
    for program in ("convoy-gen", "libconvoy_ethdev.so"):
        if find(program) is None:
            pytest.skip(f"{program} is not built: make build")


class Vnf:
    """A program with convoys under it."""

    def __init__(self, folder: Path, vdevs: Sequence[str], forward: str, options: list[str]):
        self._counts = folder / "counts.json"
        command = [shutil.which("convoy") or str(Path(sys.executable).parent / "convoy")]
        command += ["preload", "ethdev", "--counts", str(self._counts), *options, "--"]
        command += ["dpdk-testpmd", "--no-huge", "-m", "256", "--no-pci", "--main-lcore", "1"]
        command += ["--file-prefix", "test"]
        command += ["--lcores", f"0@{CORES[0]},1@{CORES[0]}"]
        for vdev in vdevs:
            command += ["--vdev", vdev]
        command += ["--", f"--forward-mode={forward}", "--auto-start", "--nb-cores=1"]
        command += [
            "--total-num-mbufs=8192",
            "--rxd=1024",
            "--txd=1024",
            "--stats-period=3600",
            "--no-lsc-interrupt",
        ]
        self.process = Process(command, {"RUNTIME_DIRECTORY": str(folder)})

    def stop(self) -> dict[str, Any]:
        """End the program and return what the library counted, by port."""
        self.process.signal(2)
        self.process.wait(30)
        document = json.loads(self._counts.read_text())
        assert document["schema"] == "convoy.preload/2"
        return {port["port"]: port for port in document["ports"]}

    def close(self) -> None:
        with self.process:
            pass
        print(self.process.stderr.text())  # pytest shows it where a test failed


@pytest.fixture
def vnf(tmp_path: Path) -> Iterator[Callable[..., Vnf]]:
    if shutil.which("dpdk-testpmd") is None:
        pytest.skip("dpdk-testpmd is not installed: make setup")
    made: list[Vnf] = []

    def make(vdevs: Sequence[str], forward: str = "io", options: Sequence[str] = ()) -> Vnf:
        made.append(Vnf(tmp_path, vdevs, forward, list(options)))
        return made[-1]

    yield make
    for one in made:
        one.close()
