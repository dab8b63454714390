# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a guest costs its neighbours on the same worker: honest, silent, or as bad as can be.

One worker carries the tester's packets, the neighbour's, and always has packets for a guest's port
too. Round after round each guest is there for one trial, with a node of its own; what the neighbour
keeps is compared with another trial of the same round.
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
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import Process
from convoy.host.programs import need
from convoy.results.hostile import Host, HostileBench, Row, Trial
from convoy.run.environment import cpu_model
from convoy.tester.convoy_gen import ConvoyGen

READY_DEADLINE_S = 30.0
FRAME_BYTES = 64
PORT = "vhost-user"
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


GUESTS = (
    Guest(NOBODY, "no guest is connected", NOBODY, None),
    Guest("silent", "posts no buffers, sends nothing", NOBODY, 0.95),
    Guest(HONEST, "takes all that comes, sends nothing", NOBODY, None),
    Guest(SENDING, "as honest, and sends as fast as the node takes it", NOBODY, None),
    Guest("empty-tables", "buffers of 32,767 descriptors without a byte, both ways", SENDING),
    Guest("long-chains", "buffers of 1,024 descriptors of a byte each, both ways", SENDING),
    Guest("tiny-buffers", "buffers of one byte to receive into"),
    Guest("nowhere", "buffers outside of its memory, both ways", SENDING),
)

Progress = Callable[[str, int, int], None]


def chosen(names: Sequence[str]) -> tuple[Guest, ...]:
    """Return the guests of these names, and those that they are compared with; none: all."""
    known = {guest.name: guest for guest in GUESTS}
    for name in names:
        if name not in known:
            raise InputError(f"--guest: '{name}' is none of {' '.join(known)}")
    wanted = {*names, *(known[name].reference for name in names), NOBODY} if names else {*known}
    return tuple(guest for guest in GUESTS if guest.name in wanted)


def bench_hostile(
    names: Sequence[str],
    rounds: int,
    trial_s: float,
    cores: tuple[int, int],
    progress: Progress,
) -> HostileBench:
    """Measure guests, by name; none: all. cores: the node's, the tester's and the guest's.

    progress is told what is being done, how far it is, of how much. Raises InputError, ConvoyError.
    """
    guests = chosen(names)
    trials: dict[str, list[Trial]] = {guest.name: [] for guest in guests}
    for number in range(rounds):
        found: dict[str, dict[str, Any]] = {}
        for i, guest in enumerate(guests):
            progress(f"{guest.name}", number * len(guests) + i, rounds * len(guests))
            found[guest.name] = _measure(guest, trial_s, cores)
        for guest in guests:
            reference = found[guest.reference]["neighbour_pps"]
            kept = found[guest.name]["neighbour_pps"] / reference if reference > 0 else 0.0
            trials[guest.name].append(Trial(kept=kept, **found[guest.name]))
    return HostileBench(
        rows=tuple(_row(guest, trials[guest.name]) for guest in guests),
        host=Host(
            cpu=cpu_model(),
            node_core=cores[0],
            tester_core=cores[1],
            frame_bytes=FRAME_BYTES,
            trial_s=trial_s,
        ),
    )


def _row(guest: Guest, trials: Sequence[Trial]) -> Row:
    return Row(
        port=PORT,
        guest=guest.name,
        what=guest.what,
        reference=guest.reference,
        bound=guest.bound,
        trials=tuple(trials),
    )


def _descriptor(folder: Path, core: int) -> str:
    """Return the node: the tester's chain, and a guest that there is always something for."""
    return f"""
ports:
  in: {{vhost-user: {folder}/in}}
  out: {{vhost-user: {folder}/out}}
  guest: {{vhost-user: {folder}/guest, max-ring-size: 32768}}
  endless: {{null: {FRAME_BYTES - 4}}}
chains:
  neighbour: {{from: in, to: out}}
  to-guest: {{from: endless, to: guest}}
  from-guest: {{from: guest, to: endless}}
workers: {{cores: [{core}], idle: poll}}
"""


def _measure(guest: Guest, trial_s: float, cores: tuple[int, int]) -> dict[str, Any]:
    """Do one trial with a node, a tester and a guest of its own."""
    node_core, tester_core = cores
    with tempfile.TemporaryDirectory(prefix="convoy-hostile-") as name, ExitStack() as running:
        folder, machine = Path(name), this_machine()
        plan = make_plan(loads(_descriptor(folder, node_core), machine, folder), machine)
        node = running.enter_context(Node(plan.data))
        if guest.name != NOBODY:
            running.enter_context(_start(guest, folder / "guest", tester_core))
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
        if not result["ok"]:
            raise ConvoyError(f"guest {guest.name}: the tester: {result['reason']}")
        counts = node.counts()
    device = counts["ports"]["guest"]["device"]
    return {
        "neighbour_pps": result["total"]["received_pps"],
        "longest_poll_iteration_ns": counts["workers"][0]["longest_iteration_ns"],
        "guest_rx_pkts": device["rx_pkts"],
        "guest_tx_pkts": device["tx_pkts"],
    }


def _start(guest: Guest, socket: Path, core: int) -> Process:
    program = need("bench-hostile-guest")
    process = Process(["taskset", "-c", str(core), program, str(socket), guest.name])
    process.name = "bench-hostile-guest"
    try:
        process.wait_line(lambda line: line == "ready", READY_DEADLINE_S, "its rings were in use")
    except BaseException:
        process.stop()
        raise
    return process
