# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A device run with packets: the tester, the device between its ports, one point after another."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal
from zlib import crc32

from convoy.dut.addresses import INSIDE, OUTSIDE, SERVICE
from convoy.dut.base import PortAt, Running, Setup
from convoy.dut.dummy import RunningDummy
from convoy.dut.variants import variant
from convoy.errors import ConvoyError
from convoy.host.cpu_speed import how, slowed
from convoy.host.run_queue import pollers
from convoy.results.folder import RunFolder
from convoy.results.host_state import Figures
from convoy.results.scenario import Capture, Scenario
from convoy.results.trials import Point, Search, Trial
from convoy.run import replay
from convoy.run.changing import Changing, control_core
from convoy.run.order import FORGOTTEN_S, DeviceRun, flows_of
from convoy.run.point import IDLE_PPS, Load, Measurement, Testbed, in_kernel, specification
from convoy.run.referee import (
    LOW_S,
    SMOKE_S,
    compare_counts,
    compare_output,
    comparison,
    meanings,
    replayed,
    write_pcap,
)
from convoy.run.rehearsal import Check
from convoy.run.remembered import check_translation, fill
from convoy.run.run_state import RunState
from convoy.search.goals import LONGEST_S, SMOKE, goals
from convoy.tester.base import Tester
from convoy.tester.convoy_gen import ConvoyGen
from convoy.tester.dummy import DummyTester

READY_DEADLINE_S = 60.0
PROBE_PPS = 20_000.0
PROBE_S = 0.05
PROBES_MAX = 100
LEAST_PKTS = 60  # of a latency trial: at 100 packets/s short enough not to be interrupted
LATENCY_LONGEST_S = 3.0  # a latency trial, however low its rate
PLACE = PortAt("", "")
CHANGED_S = 1.0  # a latency trial, where configurations are replaced meanwhile in some setups

Keep = Callable[[Search, Sequence[Figures]], None]


@dataclass(frozen=True)
class Settings:
    """How a run is made, the same for all devices."""

    tester_core: int
    cores: tuple[int, ...]  # the device's
    hugepages: bool  # for every device, or for none
    profile: str  # of the search: smoke, quick, standard, full
    goals: tuple[str, ...]
    latency_s: float  # of a latency trial
    repetition_share: float = 0.0  # of a run's time, for adaptive repetition

    def cores_of(self, run: DeviceRun) -> tuple[int, ...]:
        """Return the device's cores: the setup's own, where it has such."""
        return run.cores or self.cores


@dataclass(frozen=True)
class Replayed:
    """A capture as the tester replays it, and what is to be said of it."""

    path: Path
    notes: tuple[str, ...]


def _throttled(run: DeviceRun) -> bool:
    return run.cpu_speed != 1.0 and run.port_kind != "dummy"


def _alike(run: DeviceRun, setup: Setup, load: Load) -> str:
    """Return what device runs of several scenarios have in common that are the same to a device."""
    ports = [(port.kind, port.queues, port.slots, port.nic) for port in (setup.left, setup.right)]
    rest = replace(setup, left=PLACE, right=PLACE, folder=Path(), spec=None)
    # A digest: a setup may have a million routes.
    return sha256(repr((run.device.name, ports, rest, load)).encode()).hexdigest()


@contextmanager
def throttle(run: DeviceRun, cores: Sequence[int]) -> Iterator[None]:
    """Slow down the device's cores, where the device run asks for it."""
    with ExitStack() as slow:
        for core in cores if _throttled(run) else ():
            slow.enter_context(slowed(core, run.cpu_speed))
        yield


class PacketRun:
    """Measures all points of a device run that are left."""

    def __init__(
        self,
        run: DeviceRun,
        settings: Settings,
        state: RunState,
        folder: RunFolder,
        baseline_pps: float | None,
        keep: Keep,
    ) -> None:
        """keep: called with how each point ended, and the host's states that count against it."""
        self._run, self._settings, self._state = run, settings, state
        self._folder, self._baseline_pps, self._keep = folder, baseline_pps, keep
        self._scenario: Scenario = state.scenarios[run.scenario]
        self._cores = settings.cores_of(run)
        self._compared: tuple[str, ...] = ()
        self._changed: tuple[str, ...] = ()
        spec, scenario = run.spec, self._scenario
        pacing = spec.pacing or scenario.pacing
        self._load = Load(
            spec.flows or scenario.flows,
            spec.entries,
            spec.convoys,
            pacing.as_trial() if pacing is not None else None,
            spec.chains,
            flows_of(spec) is not None,
            spec.connections,
            FORGOTTEN_S if spec.connections else None,
            str(SERVICE) if "balancer" in spec.functions else None,
        )

    def measure(self, setups: Sequence[Setup], running: Running) -> None:
        """Measure. Raises ConvoyError where the device forwards nothing, or ends."""
        with self._tester(setups, running) as tester:
            running.ready(READY_DEADLINE_S)
            polled = self._wait_forwarding(tester, running)
            if not isinstance(running, RunningDummy):
                self._referee(tester, running, setups[0])
            replays = self._replays(tester, running, setups[0])
            if self._load.stateful and not isinstance(running, RunningDummy):
                self._translates(tester)
                if self._load.connections is None:
                    fill(tester, self._load.flows, self._run.what)
            with throttle(self._run, self._cores), self._changing(setups[0], running) as changing:
                bed = Testbed(
                    tester, running, self._folder, self._cores[0], self._state.host, polled,
                    changing,
                )  # fmt: skip
                for point in self._state.points(self._run):
                    self._point(point, bed, replays.get(point.size))

    def rehearse(self, setup: Setup, check: Check, running: Running) -> None:
        """See what cannot be seen while it is measured. Raises ConvoyError."""
        with self._tester((setup,), running) as tester:
            running.ready(READY_DEADLINE_S)
            file = setup.folder / "rehearsed.pcap"
            check(tester, self._run.what, file, min(1, self._load.convoys))

    def _changing(self, setup: Setup, running: Running) -> AbstractContextManager[Changing | None]:
        changes, settings = self._run.spec.changes, self._settings
        if changes is None:
            return nullcontext()
        cores = self._cores
        core = control_core(os.sched_getaffinity(0), settings.tester_core, cores)
        where = "which is the worker's, too" if core in cores else "which nobody else uses"
        self._changed = (f"changes are made on core {core}, {where}",)
        other = replace(setup, functions=variant(setup.functions, changes.replace))
        return Changing(running.changer((setup, other)), changes.every_ms / 1e3, core)

    def _tester(self, setups: Sequence[Setup], running: Running) -> AbstractContextManager[Tester]:
        run = self._run
        if isinstance(running, RunningDummy):
            seed = crc32(f"{run.name} {run.repeat}".encode())
            return nullcontext(DummyTester(running, seed=seed))
        ends = enumerate(port for setup in setups for port in (setup.left, setup.right))
        ports = [run.device.tester_port(port, index) for index, port in ends]
        probed = None if running.elsewhere else self._cores[0]
        return ConvoyGen(ports, self._settings.tester_core, device_core=probed)

    def _wait_forwarding(self, tester: Tester, running: Running) -> tuple[int, ...]:
        """Send a little until nearly all of it comes back. Returns the threads that polled."""
        reason = ""
        probe = specification("64", PROBE_PPS, PROBE_S, self._load.plain())
        for _ in range(PROBES_MAX):
            before = running.thread_times()
            result = tester.trial(probe)
            total = result.total
            if result.ok and total and total.received_pkts >= 0.9 * total.offered_pkts:
                return pollers(before, running.thread_times())
            reason = result.reason or ""
            if not running.alive():
                break
        why = f" ({reason})" if reason else ""
        raise ConvoyError(f"{self._run.what}: forwards nothing{why}")

    def _translates(self, tester: Tester) -> None:
        """Check packets that come out, and the answers to them, before any rate is measured."""
        pool = OUTSIDE if "nat" in self._run.spec.functions else INSIDE
        for protocol in dict.fromkeys(("udp", self._load.connections or "udp")):
            check_translation(tester, str(pool), protocol, self._run.what)

    def _referee(self, tester: Tester, running: Running, setup: Setup) -> None:
        """Compare what comes out with what must, before any rate. Raises ConvoyError."""
        run, load = self._run, self._load
        chain = meanings(setup.functions)
        if chain is None or load.stateful:
            return  # our own node's alone, or checked by _translates()
        own_source = run.port_kind in run.device.own_source_on
        wanted = comparison(chain, own_source)
        convoys = min(1, load.convoys)
        compare_output(tester, run.what, wanted, setup.folder / "compared.pcap", convoys)
        # Nothing is compared with what is emulated, or slowed down on purpose.
        if run.repeat > 0 or run.remark or _throttled(run):
            return
        plain = replace(load, pacing=None, convoys=convoys)
        kernel = running.in_kernel or in_kernel(run.port_kind)
        known, alike = self._state.counted, _alike(run, setup, plain)
        if alike not in known:
            known[alike] = compare_counts(
                tester,
                run.what,
                lambda pps, s: specification("64", pps, s, plain),
                None if kernel else running.process_times,
                SMOKE_S if self._settings.profile == SMOKE else LOW_S,
                run.device.keeps_order(setup),
            )
        self._compared = (known[alike],) if known[alike] else ()

    def _replays(self, tester: Tester, running: Running, setup: Setup) -> dict[str, Replayed]:
        """Return the captures that are sizes of points, by name, after _replay().

        A point whose capture comes out wrong ends here: the device may do well with others.
        """
        sizes = {str(capture): capture for capture in self._scenario.captures}
        result: dict[str, Replayed] = {}
        for point in self._state.points(self._run):
            if point.size in sizes:
                path = setup.folder / f"replayed{len(result)}.pcap"
                try:
                    result[point.size] = self._replay(
                        tester, running, setup, sizes[point.size], path
                    )
                except ConvoyError as error:
                    self._keep(Search(point=point, outcome="failed", why=str(error)), ())
        return result

    def _replay(
        self, tester: Tester, running: Running, setup: Setup, capture: Capture, path: Path
    ) -> Replayed:
        """Write what of a capture the functions let pass, for the tester.

        What comes out is compared with what must, as _referee() does. Raises ConvoyError.
        """
        run, chain, notes = self._run, meanings(setup.functions), list[str]()
        traffic = replay.traffic(capture, chain, run.spec.entries)
        if chain is None:
            notes.append(f"{capture} is not compared: these functions are our node's alone")
        elif not isinstance(running, RunningDummy):
            own_source = run.port_kind in run.device.own_source_on
            wanted = replayed(chain, str(capture), traffic.frames, own_source)
            convoys = min(1, self._load.convoys)
            compare_output(tester, run.what, wanted, setup.folder / "compared.pcap", convoys)
            if len(wanted.sent) < len(traffic.frames):
                notes.append(f"of {capture} the first {len(wanted.sent):,} packets are compared")
        write_pcap(path, traffic.sent)
        return Replayed(path, (*filter(None, [traffic.note]), *notes))

    def _notes(self, running: Running) -> tuple[str, ...]:
        run = self._run
        remark = (run.remark,) if run.remark else ()
        if not _throttled(run):
            return (*remark, *running.notes, *self._compared, *self._changed)
        return (
            *remark,
            *running.notes,
            *self._compared,
            f"CPU speed {run.cpu_speed:.0%}, {how(self._cores[0])}",
        )

    def _point(self, point: Point, bed: Testbed, of: Replayed | None) -> None:
        """Measure a point. of: the capture that is its size."""
        scenario, settings, load = self._scenario, self._settings, self._load
        notes, earlier = self._notes(bed.running), self._state.take_earlier(point)
        if of is not None:
            load, notes = replace(load, capture=str(of.path)), (*notes, *of.notes)
        measurement = Measurement(point, bed, load, notes, earlier, self._baseline_pps)
        search = Search(point=point, outcome="measured")
        if scenario.search:
            search = measurement.search(
                goals(settings.goals, settings.profile),
                self._state.guess_pps(point),
                LONGEST_S[settings.profile],
            )
            rate = search.rate("pdr") or search.rate("ndr")
            for at in scenario.latency if rate else ():
                if at == "idle":
                    self._latency(measurement, IDLE_PPS, "idle")
                else:
                    self._latency(measurement, float(at) * (rate or 0), f"{at:.0%} of PDR")
        purpose: Literal["latency", "rate"] = "rate" if scenario.figure.y == "ratio" else "latency"
        for fixed in scenario.rates_pps:
            last = self._latency(measurement, fixed, _rate_name(fixed), purpose)
            if last.verdict == "invalid" and last.load_not_reached:
                break  # higher ones cannot be offered either
        changed: dict[str, object] = {}
        if scenario.saturation:
            changed["mrr_pps"] = measurement.saturation(scenario.saturation, settings.latency_s)
        changed |= {
            "trials": measurement.trials,
            "invalid": measurement.invalid,
            "load_not_reached": measurement.load_not_reached,
        }
        self._keep(search.model_copy(update=changed), measurement.figures)

    def _latency(
        self,
        measurement: Measurement,
        rate_pps: float,
        load: str,
        purpose: Literal["latency", "rate"] = "latency",
    ) -> Trial:
        longer = min(LEAST_PKTS / rate_pps, LATENCY_LONGEST_S)
        if self._scenario.changed:
            longer = max(longer, CHANGED_S)
        return measurement.at(rate_pps, load, max(self._settings.latency_s, longer), purpose)


def _rate_name(rate_pps: float) -> str:
    if rate_pps >= 1e6:
        return f"{rate_pps / 1e6:g} Mpps"
    return f"{rate_pps / 1e3:g} kpps" if rate_pps >= 1e3 else f"{rate_pps:g} pps"
