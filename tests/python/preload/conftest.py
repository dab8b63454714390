# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""dpdk-testpmd, unmodified, with libconvoy_ethdev.so under it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from convoy.host.process import Process
from convoy.host.programs import find

CORES = sorted(os.sched_getaffinity(0))


@pytest.fixture(autouse=True)
def _built():
    for program in ("convoy-gen", "libconvoy_ethdev.so"):
        if find(program) is None:
            pytest.skip(f"{program} is not built")


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
        assert document["schema"] == "convoy.preload/1"
        return {port["port"]: port for port in document["ports"]}

    def close(self) -> None:
        with self.process:
            pass
        print(self.process.stderr.text())  # pytest shows it where a test failed


@pytest.fixture
def vnf(tmp_path: Path) -> Iterator[Callable[..., Vnf]]:
    if shutil.which("dpdk-testpmd") is None:
        pytest.skip("dpdk-testpmd is not installed")
    made: list[Vnf] = []

    def make(vdevs: Sequence[str], forward: str = "io", options: Sequence[str] = ()) -> Vnf:
        made.append(Vnf(tmp_path, vdevs, forward, list(options)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def veth() -> Iterator[tuple[str, str]]:
    """A pair of network interfaces of our own."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root makes network interfaces")
    pair = (f"cve{os.getpid() % 10**6}a", f"cve{os.getpid() % 10**6}b")
    made = subprocess.run(
        ["ip", "link", "add", pair[0], "type", "veth", "peer", "name", pair[1]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip(f"ip link: {made.stderr.strip()}")
    try:
        for name in pair:
            # Without IPv6 nobody else sends on them.
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        yield pair
    finally:
        subprocess.run(["ip", "link", "del", pair[0]], check=True)
