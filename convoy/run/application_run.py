# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A device run with applications: two hosts, the device between them, one client at a time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from convoy.dut.base import Running, Setup
from convoy.errors import ConvoyError
from convoy.host.cpu_time import core_time, cpu_ns
from convoy.host.offload import OFF
from convoy.host.process import Process
from convoy.results.applications import ApplicationPoint, ApplicationTrial
from convoy.run.application import Application, application, prepare
from convoy.run.two_hosts import TwoHosts

CONNECT_S = 60.0  # a guest's interfaces come up one by one
LISTEN_S = 20.0
LONGER_S = 30.0  # that a client may take, over the trial's duration
# A server's own children would outlive us: in a process namespace nothing outlives its first.
ALONE = ("unshare", "--pid", "--fork", "--kill-child")
ATTEMPTS = 2  # where a client fails: a first one may meet what is not up yet


@dataclass(frozen=True)
class ApplicationRun:
    """How applications are measured in a device run."""

    hosts: TwoHosts
    seconds: int  # of each client
    core: int  # the hosts'
    device_core: int
    notes: tuple[str, ...] = ()

    def measure(
        self,
        points: Sequence[ApplicationPoint],
        setup: Setup,
        running: Running,
        keep: Callable[[ApplicationTrial], None],
        folder: Path,
    ) -> None:
        """Measure all points and hand each one's trial to keep. Raises ConvoyError.

        A client that fails costs its point; a device that ended costs the rest.
        """
        self.hosts.join(setup)
        self.hosts.until_connected(CONNECT_S)
        for number, point in enumerate(points):
            app = application(point.application)
            place = folder / f"{app.name}-{number}"
            for attempt in range(ATTEMPTS):
                trial = self._trial(app, point, running, place)
                if not running.alive():
                    raise ConvoyError(f"{point.device}: ended while {app.name} ran")
                if trial.outcome == "measured" or attempt == ATTEMPTS - 1:
                    keep(trial)
                    break

    def _trial(
        self, app: Application, point: ApplicationPoint, running: Running, folder: Path
    ) -> ApplicationTrial:
        prepare(app, folder)
        pinned = ("taskset", "-c", str(self.core))
        server = self.hosts.server.command(*ALONE, *pinned, *app.server(folder))
        client = self.hosts.client.command(
            *pinned, *app.client(folder, self.seconds, point.frame_bytes or 0)
        )
        figures: dict[str, float] = {}
        output, why = "", ""
        before = running.counters()
        pids = running.processes()
        used_ns, cores = cpu_ns(pids), [core_time(c) for c in (self.device_core, self.core)]
        began_ns = time.monotonic_ns()
        try:
            with Process(server, folder=folder, stop_deadline_s=0) as serving:
                try:
                    self.hosts.until_listening(app.port, LISTEN_S)
                    with Process(client, folder=folder) as asking:
                        code = asking.wait(self.seconds + LONGER_S)
                        output = asking.stdout.text()
                        figures = app.read(output, code)
                except ConvoyError as error:
                    more = "" if serving.running() else f"; the server: {serving.last_words()}"
                    raise ConvoyError(f"{error}{more}") from None
        except ConvoyError as error:
            why = str(error)
        elapsed_ns = time.monotonic_ns() - began_ns
        busy = [core_time(c).share_since(was) for c, was in
                zip((self.device_core, self.core), cores, strict=True)]  # fmt: skip
        shared = f"client and server share core {self.core}"
        return ApplicationTrial(
            point=point,
            outcome="failed" if why else "measured",
            why=why,
            duration_s=float(self.seconds),
            figure=app.figure,
            figures=figures,
            commands=tuple(running.command_lines),
            server=server,
            client=client,
            client_output=output,
            notes=(*self.notes, *running.notes, OFF, shared),
            elapsed_ns=elapsed_ns,
            device_cpu_ns=cpu_ns(pids) - used_ns if pids else None,
            core_busy_share=busy[0],
            hosts_busy_share=busy[1],
            device_before=before,
            device_after=running.counters() if running.alive() else None,
            ended_unix_s=round(time.time(), 3),
        )
