# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The quick benchmark: our chain, with and without its functions, beside dpdk-testpmd.

All meet the same tester over the same kind of ports on the same core, in turn: A B C, then A B C
again. A device is started afresh for every turn.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from convoy.dut.base import Device, Function, PortAt, Running, Setup
from convoy.dut.convoy import Convoy
from convoy.dut.testpmd import Testpmd
from convoy.errors import ConvoyError
from convoy.results.trials import RunFolder
from convoy.run.point import Measurement, Point, specification
from convoy.run.workload import CHAIN, FIREWALL, L2FWD, ROUTER
from convoy.tester.base import Tester

SIZES = ("64", "128", "256", "512", "1024", "1500", "imix")
READY_DEADLINE_S = 30.0
PROBE_PPS = 20_000.0
PROBE_S = 0.05
PROBES_MAX = 100

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Turn:
    """A device with the functions that it runs."""

    device: Device
    functions: tuple[Function, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """Return the functions' types."""
        return tuple(function.type for function in self.functions)


@dataclass(frozen=True)
class Settings:
    """On what, how much, how often."""

    core: int  # the device's
    hugepages: bool  # for every device, or for none
    sizes: tuple[str, ...] = SIZES
    repeats: int = 3
    trial_s: float = 0.1


def turns() -> tuple[Turn, ...]:
    """Return what is measured, in the order of a round."""
    ours = Convoy()
    paths: tuple[tuple[Function, ...], ...] = ((), (L2FWD,), (ROUTER,), (FIREWALL,), CHAIN)
    return (Turn(Testpmd(), ()), *(Turn(ours, path) for path in paths))


class QuickBench:
    """One run. The tester attaches to the two sockets, which the devices make."""

    def __init__(
        self,
        tester: Tester,
        folder: RunFolder,
        sockets: tuple[Path, Path],
        settings: Settings,
        progress: Progress,
    ) -> None:
        self._tester = tester
        self._folder = folder
        self._left, self._right = (PortAt("vhost-user", str(path)) for path in sockets)
        self._settings = settings
        self._progress = progress
        self._done = 0
        self._guess: dict[tuple[str, tuple[str, ...], str], float] = {}

    def run(self, measured: tuple[Turn, ...]) -> None:
        """Measure everything. Raises ConvoyError where a device does not run."""
        for repeat in range(self._settings.repeats):
            for turn in measured:
                with tempfile.TemporaryDirectory(prefix="convoy-") as private:
                    setup = Setup(
                        turn.functions,
                        self._left,
                        self._right,
                        (self._settings.core,),
                        Path(private),
                        self._settings.hugepages,
                    )
                    self._turn(turn, setup, repeat, len(measured))

    def _turn(self, turn: Turn, setup: Setup, repeat: int, of: int) -> None:
        sizes = self._settings.sizes
        with turn.device.start(setup) as running:
            running.ready(READY_DEADLINE_S)
            self._forwards(turn, running)
            for size in sizes:
                what = f"{turn.device.name}, {setup.path}, {size}"
                self._progress(what, self._done, of * len(sizes) * self._settings.repeats)
                point = Point(repeat, turn.device.name, turn.types, size)
                key = (point.device, point.functions, point.size)
                measurement = Measurement(
                    point, self._tester, running, self._folder, self._settings.trial_s
                )
                found = measurement.search(self._guess.get(key))
                if found.rate_pps is not None:
                    self._guess[key] = found.rate_pps
                self._done += 1

    def _forwards(self, turn: Turn, running: Running) -> None:
        """Send a little until nearly all of it comes back."""
        for _ in range(PROBES_MAX):
            result = self._tester.trial(specification("64", PROBE_PPS, PROBE_S))
            total = result.get("total") or {}
            if result.get("ok") and total["received_pkts"] >= 0.9 * total["offered_pkts"]:
                return
            if not running.alive():
                break
        raise ConvoyError(f"{turn.device.name} ({', '.join(turn.types)}): forwards nothing")
