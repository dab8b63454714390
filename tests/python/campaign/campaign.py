# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""One fault after the other, each with its own seed, and what must hold after each."""

import random
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from convoy.errors import ConvoyError

from .faults import FAULTS, HITS_ALL, Result
from .record import Step
from .rig import Rig

BACK_S = 1.0
UNDER_WAY = 256  # packets of the guest, in buffers


def plan(seed: int, number: int, only: Sequence[str] | None = None) -> tuple[str, random.Random]:
    """Return the fault of a number, and its random numbers: the same for the same arguments."""
    rng = random.Random(f"{seed}/{number}")
    return rng.choice(list(only or FAULTS)), rng


def run(folder: Path, seed: int, first: int, only: Sequence[str] | None) -> Iterator[Step]:
    """Yield what came of each fault. After a finding everything is started anew."""
    number = first
    rig: Rig | None = None
    try:
        while True:
            if rig is None:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                rig = Rig(folder, seed)
            name, rng = plan(seed, number, only)
            step = inject(rig, name, number, rng)
            yield step
            number += 1
            if not step.ok:
                rig.close()
                rig = None
    finally:
        if rig is not None:
            rig.close()


def inject(rig: Rig, name: str, number: int, rng: random.Random) -> Step:
    """Inject one fault and check what must hold after it."""
    begin = time.monotonic()
    rig.bystander.carried()
    result, wrong = Result(""), []
    try:
        result = FAULTS[name](rig, rng)
        rig.echo(time.monotonic())
        wrong = check(rig)
    except (AssertionError, ConvoyError, OSError) as error:
        wrong = [f"{type(error).__name__}: {error}".splitlines()[0]]
    carried = rig.bystander.carried()
    if carried.wrong or (carried.lost and name not in HITS_ALL):
        wrong.append(f"bystander: {carried.lost} packets lost, {carried.wrong} wrong")
    if result.back_s is not None and result.back_s > BACK_S:
        wrong.append(f"back after {result.back_s:.2f} s")
    return Step(
        number=number, fault=name, words=result.words, back_s=result.back_s,
        bystander_packets=carried.packets, bystander_lost=carried.lost,
        bystander_gap_s=carried.longest_gap_s, took_s=time.monotonic() - begin,
        wrong=tuple(wrong),
    )  # fmt: skip


def closes(accounting: Mapping[str, int]) -> bool:
    """Return whether every packet is accounted for."""
    came = accounting["received"] + accounting.get("originated", 0)
    went = sum(accounting.get(key, 0) for key in ("sent", "dropped", "absorbed", "held"))
    return came == went


def check(rig: Rig) -> list[str]:
    """Return what does not hold once a fault is over."""
    wrong = []
    rig.bystander.quiet()
    try:
        rig.settle(lambda: closes(rig.node.counts()["accounting"]), "the accounting to close")
        rig.settle(lambda: rig.open_files() <= rig.files, "files of the node to be closed")
        rig.settle(
            lambda: rig.node.counts()["buffers"]["in_use"] <= rig.buffers + UNDER_WAY,
            "packet buffers to be free",
        )
    finally:
        rig.bystander.loud()
    now = rig.left_behind()
    extra = [what for what in dict.fromkeys(now) if now.count(what) > rig.left.count(what)]
    if extra:
        wrong.append(f"left behind: {', '.join(extra[:5])}")
    missing = [what for what in rig.left if what not in now]
    if missing:
        wrong.append(f"missing: {', '.join(missing[:5])}")
    if any(line.startswith("wrong") for line in rig.guest.stdout.text().splitlines()):
        wrong.append("the guest got a packet that no guest sent")
    return wrong
