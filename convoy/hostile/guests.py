# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a guest costs its neighbours on the same worker: honest, silent, or as bad as can be.

One worker carries the tester's packets, the neighbour's, and always has packets for a guest's port
too, of each kind that somebody else shares memory with. Round after round each guest is there for
one trial, with a node of its own; what the neighbour keeps is compared with another trial of the
same round and kind of port.
"""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import cpu_model, this_machine
from convoy.host.node import Node
from convoy.host.process import Process
from convoy.host.programs import need
from convoy.results.hostile import GuestRow, HostileBench, HostileHost, Layout, Trial
from convoy.tester.convoy_gen import ConvoyGen

READY_DEADLINE_S = 30.0
FRAME_BYTES = 64
NOBODY = "nobody"
HONEST = "honest"
SENDING = "sending"


@dataclass(frozen=True)
class Guest:
    """Who is at the port, and what that may cost the neighbours."""

    name: str
    what: str
    reference: str = HONEST
    bound: float | None = 0.9


@dataclass(frozen=True)
class Kind:
    """A kind of port, and who may be at it."""

    port: str
    layout: Layout | None  # of the rings, where there are several
    options: str  # of the port, in the node's description
    program: str  # the guest
    arguments: tuple[str, ...]  # behind its socket and its name
    guests: tuple[Guest, ...]

    @property
    def name(self) -> str:
        """Return it for a person."""
        return self.port if self.layout is None else f"{self.port} {self.layout}"


PEACEFUL = (
    Guest(NOBODY, "no guest is connected", NOBODY, None),
    Guest("silent", "posts no buffers, sends nothing", NOBODY, 0.95),
    Guest(HONEST, "takes all that comes, sends nothing", NOBODY, None),
    Guest(SENDING, "as honest, and sends as fast as the node takes it", NOBODY, None),
)
TINY = Guest("tiny-buffers", "buffers of one byte to receive into")
PACKED = (
    *PEACEFUL,
    Guest("empty-tables", "buffers of 32,767 descriptors without a byte, both ways", SENDING),
    Guest("full-chains", "buffers of 64 descriptors of a byte each, both ways", SENDING),
    TINY,
    Guest("nowhere", "buffers outside of its memory, both ways", SENDING),
)
SPLIT = (
    *PACKED,
    # In a packed ring it would stand the ring still, and cost nothing.
    Guest("long-chains", "buffers of 1,024 descriptors of a byte each, both ways", SENDING),
)
MEMIF = (
    *PEACEFUL,
    Guest("empty-buffers", "descriptors without a byte, both ways; no packet ends", SENDING),
    Guest("full-chains", "packets of 64 descriptors of a byte each, buffers of a byte", SENDING),
    Guest("endless-chains", "the same, but no packet ends", SENDING),
    TINY,
    Guest("nowhere", "packets outside of its memory; takes all that comes", SENDING),
    Guest("wild-indices", "claims more packets than its ring holds; takes all that comes", SENDING),
)
LARGEST = ", max-ring-size: 32768"
KINDS = (
    Kind("vhost-user", "split", LARGEST, "bench-hostile-guest", (), SPLIT),
    Kind("vhost-user", "packed", LARGEST, "bench-hostile-guest", ("packed",), PACKED),
    Kind("memif", None, "", "bench-hostile-memif", (), MEMIF),
)

StepsDone = Callable[[str, int, int], None]


def chosen(ports: Sequence[str], names: Sequence[str]) -> list[tuple[Kind, Guest]]:
    """Return the guests of these names at these ports, and those that they are compared with.

    Nothing given: all.
    """
    known_ports = dict.fromkeys(kind.port for kind in KINDS)
    for port in ports:
        if port not in known_ports:
            raise InputError(f"--port: '{port}' is none of {' '.join(known_ports)}")
    kinds = [kind for kind in KINDS if not ports or kind.port in ports]
    known = dict.fromkeys(guest.name for kind in kinds for guest in kind.guests)
    for name in names:
        if name not in known:
            raise InputError(f"--guest: '{name}' is none of {' '.join(known)}")
    return [(kind, guest) for kind in kinds for guest in _of(kind, names)]


def _of(kind: Kind, names: Sequence[str]) -> list[Guest]:
    """Return a port's guests of these names, if it has any, and their references."""
    named = [guest for guest in kind.guests if not names or guest.name in names]
    wanted = {NOBODY} | {name for guest in named for name in (guest.name, guest.reference)}
    return [guest for guest in kind.guests if guest.name in wanted] if named else []


def bench_hostile(
    ports: Sequence[str],
    names: Sequence[str],
    rounds: int,
    trial_s: float,
    cores: tuple[int, int],
    progress: StepsDone,
) -> HostileBench:
    """Measure guests, by port and name; none: all. cores: the node's, the tester's and the guest's.

    progress gets what is being done, how far it is, of how much. Raises InputError, ConvoyError.
    """
    cases = chosen(ports, names)
    trials: list[list[Trial]] = [[] for _ in cases]
    for number in range(rounds):
        result: dict[tuple[str, str], dict[str, Any]] = {}
        for i, (kind, guest) in enumerate(cases):
            what = f"{kind.name}: {guest.name}"
            progress(what, number * len(cases) + i, rounds * len(cases))
            result[kind.name, guest.name] = _measure(kind, guest, trial_s, cores)
        for (kind, guest), of_guest in zip(cases, trials, strict=True):
            reference = result[kind.name, guest.reference]["neighbour_pps"]
            values = result[kind.name, guest.name]
            kept = values["neighbour_pps"] / reference if reference > 0 else 0.0
            of_guest.append(Trial(kept=kept, **values))
    return HostileBench(
        rows=tuple(_row(*case, of) for case, of in zip(cases, trials, strict=True)),
        host=HostileHost(
            cpu=cpu_model(),
            node_core=cores[0],
            tester_core=cores[1],
            frame_bytes=FRAME_BYTES,
            trial_s=trial_s,
        ),
    )


def _row(kind: Kind, guest: Guest, trials: Sequence[Trial]) -> GuestRow:
    return GuestRow(
        port=kind.port,
        layout=kind.layout,
        guest=guest.name,
        what=guest.what,
        reference=guest.reference,
        bound=guest.bound,
        trials=tuple(trials),
    )


def _descriptor(folder: Path, kind: Kind, core: int) -> str:
    """Return the node: the tester's chain, and a guest that there is always something for."""
    return f"""
ports:
  in: {{vhost-user: {folder}/in}}
  out: {{vhost-user: {folder}/out}}
  guest: {{{kind.port}: {folder}/guest{kind.options}}}
  endless: {{null: {FRAME_BYTES - 4}}}
chains:
  neighbour: {{from: in, to: out}}
  to-guest: {{from: endless, to: guest}}
  from-guest: {{from: guest, to: endless}}
workers: {{cores: [{core}], idle: poll}}
"""


def _measure(kind: Kind, guest: Guest, trial_s: float, cores: tuple[int, int]) -> dict[str, Any]:
    """Do one trial with a node, a tester and a guest of its own."""
    node_core, tester_core = cores
    with tempfile.TemporaryDirectory(prefix="convoy-hostile-") as name, ExitStack() as running:
        folder, machine = Path(name), this_machine()
        plan = make_plan(loads(_descriptor(folder, kind, node_core), machine, folder), machine)
        node = running.enter_context(Node(plan.data))
        if guest.name != NOBODY:
            running.enter_context(_start(kind, guest, folder / "guest", tester_core))
        ports = [f"vhost-user:{folder / port}" for port in ("in", "out")]
        tester = running.enter_context(ConvoyGen(ports, core=tester_core))
        specification = {
            "rate_pps": "max",
            "duration_s": trial_s,
            "warmup_s": 0.2,
            "size": FRAME_BYTES,
            "paths": ["0>1"],
            "tolerance": 1,
        }
        result = tester.trial(specification)
        if not result.ok or result.total is None:
            raise ConvoyError(f"{kind.name}: guest {guest.name}: the tester: {result.reason}")
        counts = node.counts()
    device = counts["ports"]["guest"]["device"]
    return {
        "neighbour_pps": result.total.received_pps,
        "longest_poll_iteration_ns": counts["workers"][0]["longest_iteration_ns"],
        "guest_rx_pkts": device["rx_pkts"],
        "guest_rx_errors": device["rx_errors"],
        "guest_tx_pkts": device["tx_pkts"],
        "guest_broken_queues": device["broken_queues"],
    }


def _start(kind: Kind, guest: Guest, socket: Path, core: int) -> Process:
    arguments = [str(socket), guest.name, *kind.arguments]
    process = Process(["taskset", "-c", str(core), need(kind.program), *arguments])
    process.name = kind.program
    try:
        process.wait_line(lambda line: line == "ready", READY_DEADLINE_S, "its rings were in use")
    except BaseException:
        process.stop()
        raise
    return process
