# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Starts devices for a tester on another machine, which ssh joins to our stdin and stdout.

Everything ends when the input ends, or when nothing came for LOST_S: a connection can be lost
without a word. Then the main thread unwinds all its `with` blocks. Should that take too long, the
process ends at once, and what it started with it (convoy/host/process.py).
"""

import os
import queue
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from convoy.base.problem import printable
from convoy.chain.nic import Nic
from convoy.dut.base import Cost, Device, PortAt, Running, Setup
from convoy.dut.devices import device
from convoy.errors import ConvoyError, InputError, first_problem
from convoy.host.interface import Lent, described, is_virtual_function
from convoy.host.private import private_folder
from convoy.host.run_queue import ThreadTime
from convoy.results.scenario import SetupSpec
from convoy.run.device_machine import cores, this_one
from convoy.run.environment import environment
from convoy.run.order import setup_of
from convoy.run.remote import messages
from convoy.run.remote.messages import LOST_S, PING, REQUEST, REQUEST_MAX

END_S = 30.0  # for an orderly end
OUTPUT_MAX = 1 << 17  # characters of a process's output, and of a command: the last, the first
ERROR_MAX = 2000


class _Input(threading.Thread):
    """Reads lines from the tester; interrupts the main thread when there will be no more."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(daemon=True)
        self._descriptor = descriptor
        self.requests: queue.Queue[bytes] = queue.Queue(1)  # one at a time
        self.over = ""  # why there will be no more

    def run(self) -> None:
        """Read until the end, then end everything."""
        self.over = self._read()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(END_S)
        os._exit(1)

    def _read(self) -> str:
        pending = b""
        while True:
            if not select.select([self._descriptor], [], [], LOST_S)[0]:
                return f"nothing came for {LOST_S:g} s"
            read = os.read(self._descriptor, 1 << 16)
            if not read:
                return "the connection has ended"
            *lines, pending = (pending + read).split(b"\n")
            if max(map(len, (*lines, pending))) > REQUEST_MAX:
                return f"a line of more than {REQUEST_MAX} bytes came"
            for line in lines:
                if line == PING.encode():
                    continue
                try:
                    self.requests.put_nowait(line)
                except queue.Full:
                    return "a request came before the answer to the one before"


def _spent(cost: Cost) -> messages.Spent:
    return messages.Spent(busy_cycles=cost.busy_cycles, packets=cost.packets, source=cost.source)


def _times(times: Mapping[int, ThreadTime]) -> tuple[messages.Times, ...]:
    return tuple(
        messages.Times(thread=thread, ran_ns=time.ran_ns, waited_ns=time.run_queue_delay_ns)
        for thread, time in times.items()
    )


def _shortened(text: str) -> str:
    return text if len(text) <= OUTPUT_MAX else f"{text[:OUTPUT_MAX]} … ({len(text)} characters)"


def _core() -> int:
    """Return a core for a device: the tester, if it is this machine after all, has another."""
    allowed = sorted(os.sched_getaffinity(0))
    return cores()[1] if len(allowed) > 1 else allowed[0]


class Agent:
    """Answers one request after another."""

    def __init__(self) -> None:
        self._here = this_one(_core())
        self._kept = ExitStack()  # the interfaces
        self._started = ExitStack()  # the device
        self._running: Running | None = None
        self._lent: Lent | None = None

    def answer(self, request: messages.AnyRequest) -> messages.Message:
        """Do what is asked. Raises ConvoyError."""
        does: dict[type[messages.Request], Callable[[Any], messages.Message]] = {
            messages.Begin: self._begin,
            messages.IsPresent: self._presence,
            messages.Cannot: self._cannot,
            messages.Place: self._place,
            messages.Start: self._start,
            messages.Ready: self._ready,
            messages.Look: self._look,
            messages.Count: self._count,
            messages.Charge: self._charge,
            messages.Stop: self._stop,
        }
        return does[type(request)](request)

    def close(self) -> None:
        """End the device, and give the interfaces back."""
        try:
            self._started.close()
        finally:
            self._kept.close()

    def _begin(self, request: messages.Begin) -> messages.Machine:
        if self._lent is not None:
            raise InputError("the interfaces are prepared already")
        ports = tuple(map(Nic.read, request.ports))
        self._lent = self._kept.enter_context(Lent(ports))
        host = environment().model_copy(update={"nics": {n.name: described(n) for n in ports}})
        return messages.Machine(
            host=host,
            core=self._here.core,
            allowed=self._here.allowed,
            numa_nodes=self._here.numa_nodes,
            hugepages=self._here.hugepages,
            virtual_functions=all(map(is_virtual_function, ports)),
        )

    def _presence(self, request: messages.IsPresent) -> messages.Present:
        presence = device(request.device).presence()
        return messages.Present(
            version=presence.version, missing=presence.missing, remark=presence.remark
        )

    @property
    def _interfaces(self) -> Lent:
        if self._lent is None:
            raise InputError("no interfaces are prepared yet")
        return self._lent

    def _setup(self, one: Device, spec: SetupSpec, cores: tuple[int, ...], folder: Path) -> Setup:
        left, right = (
            PortAt(nic.kind, nic.name, spec.queues, nic=True) for nic in self._interfaces.nics
        )
        setup = setup_of(one, spec, left.kind, cores, folder)
        return replace(setup, left=left, right=right)

    def _cannot(self, request: messages.Cannot) -> messages.Reason:
        one = device(request.device)
        setup = self._setup(one, request.setup, (self._here.core,), Path("none"))
        return messages.Reason(why=one.cannot(setup))

    def _place(self, request: messages.Place) -> messages.Placed:
        try:
            return messages.Placed(cores=self._here.place(request.setup))
        except InputError as error:
            return messages.Placed(cores=(), why=str(error))

    def _start(self, request: messages.Start) -> messages.Started:
        if self._running is not None:
            raise InputError("a device runs already")
        unknown = set(request.cores) - os.sched_getaffinity(0)
        if unknown or not request.cores:
            raise InputError(f"cores {request.cores}: not all of them may be used")
        one = device(request.device)
        with ExitStack() as starting:
            folder = starting.enter_context(private_folder())
            setup = self._setup(one, request.setup, request.cores, folder)
            why = one.cannot(setup)
            if why:
                raise InputError(why)
            setup = replace(setup, hugepages=request.hugepages)
            self._interfaces.give(setup.cores)
            self._running = starting.enter_context(one.start(setup))
            self._started = starting.pop_all()
        return messages.Started(
            commands=tuple(tuple(map(_shortened, command)) for command in self._running.commands),
            notes=self._running.notes,
        )

    @property
    def _device(self) -> Running:
        if self._running is None:
            raise InputError("no device runs")
        return self._running

    def _ready(self, request: messages.Ready) -> messages.Done:
        self._device.ready(request.deadline_s)
        return messages.Done()

    def _look(self, request: messages.Look) -> messages.Seen:
        one = self._device
        core = one.core_time(request.core)
        return messages.Seen(
            alive=one.alive(),
            cpu_ns=one.cpu_ns(),
            core_idle_ns=core.idle_ns,
            core_at_ns=core.at_ns,
            watched=_times(one.thread_times()),
            processes=_times(one.process_times()),
        )

    def _count(self, request: messages.Count) -> messages.Counters:
        return messages.Counters(counters=self._device.counters())

    def _charge(self, request: messages.Charge) -> messages.Costs:
        cost, parts = self._device.cost(), self._device.part_costs()
        return messages.Costs(
            cost=None if cost is None else _spent(cost),
            parts={name: _spent(one) for name, one in parts.items()},
        )

    def _stop(self, request: messages.Stop) -> messages.Stopped:
        one, self._running = self._device, None
        self._started.close()
        reply = {name: text[-OUTPUT_MAX:] for name, text in one.output().items()}
        return messages.Stopped(output=reply)


def _answer(agent: Agent, line: bytes) -> messages.Message:
    try:
        return agent.answer(REQUEST.validate_json(line))
    except ValidationError as error:
        return messages.Refused(error=f"no request: {first_problem(error)}"[:ERROR_MAX], code=2)
    except ConvoyError as error:
        text = printable("; ".join(str(error).splitlines()))[:ERROR_MAX]
        return messages.Refused(error=text, code=2 if isinstance(error, InputError) else 1)


def serve() -> str:
    """Answer until the input ends; then nothing of what was started is left. Return why it ended.

    Only answers go to stdout: whatever else is printed goes to stderr.
    """
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lines = _Input(0)
    agent = Agent()
    try:
        reply = messages.Hello().model_dump_json(by_alias=True).encode()
        lines.start()
        while True:
            out.write(reply + b"\n")
            out.flush()
            reply = _answer(agent, lines.requests.get()).line().encode()
            if len(reply) > messages.ANSWER_MAX:
                what = f"an answer of {len(reply)} bytes is too long"
                reply = messages.Refused(error=what, code=1).line().encode()
    except BrokenPipeError:
        return "the connection has ended"
    except SystemExit:
        if not lines.over:
            raise  # somebody else's signal
        return lines.over
    finally:
        agent.close()
