# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A real device to measure: dpdk-testpmd between two vhost-user sockets."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from convoy.host.process import Process, wait_for
from convoy.host.programs import find
from cores import CORES


@pytest.fixture(autouse=True)
def _built():
    if find("convoy-gen") is None:
        pytest.skip("convoy-gen is not built: make build")


class Device:
    """dpdk-testpmd, started and killed as often as a test likes."""

    def __init__(self, folder: Path, queues: int, client: bool) -> None:
        self.sockets = [folder / "v0", folder / "v1"]
        self._folder = folder
        self._queues = queues
        self._client = client
        self._process: Process | None = None
        self.environment: dict[str, str] = {}

    def start(self) -> None:
        for socket in self.sockets:
            if not self._client:
                socket.unlink(missing_ok=True)
        core = CORES[0]
        command = ["dpdk-testpmd", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry"]
        command += ["--file-prefix", f"test-{os.getpid()}-{self._folder.name}", "--main-lcore", "1"]
        command += ["--lcores", f"0@{core},1@{core}"]
        for i, socket in enumerate(self.sockets):
            client = ",client=1" if self._client else ""
            command += ["--vdev", f"net_vhost{i},iface={socket},queues={self._queues}{client}"]
        command += ["--", "--forward-mode=io", "--auto-start", "--nb-cores=1"]
        command += [f"--rxq={self._queues}", f"--txq={self._queues}"]
        command += ["--total-num-mbufs=16384", "--stats-period=3600", "--no-lsc-interrupt"]
        environment = {"XDG_RUNTIME_DIR": str(self._folder), **self.environment}
        self._process = Process(command, environment)
        if not self._client:
            wait_for(lambda: self.sockets[1].exists(), 60, "dpdk-testpmd's socket")

    def kill(self) -> None:
        assert self._process is not None
        self._process.signal(9)
        self._process.wait(60)

    def alive(self) -> bool:
        return self._process is not None and self._process.running()

    def close(self) -> None:
        if self._process is not None:
            with self._process:
                pass


def need_testpmd() -> None:
    if shutil.which("dpdk-testpmd") is None:
        pytest.skip("dpdk-testpmd is not installed: make setup")


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Callable[..., Device]]:
    need_testpmd()
    made: list[Device] = []

    def make(queues: int = 1, client: bool = False) -> Device:
        made.append(Device(tmp_path, queues, client))
        return made[-1]

    yield make
    for one in made:
        one.close()
