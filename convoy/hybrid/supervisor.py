# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Starts the parts of a chain, starts again what ends, and ends all of it.

A part that ends is started again, after a pause that doubles each time, up to LONGEST_PAUSE_S. A
part that ran for LONG_S begins anew with a short pause. One that gives no answer for SILENT_S is
killed, and so started again. The others go on meanwhile: what they send to it is dropped and
counted.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Self

from convoy.base.files import write_whole
from convoy.chain.split import NODE, Part, Split
from convoy.errors import ConvoyError
from convoy.host.folders import make_private
from convoy.host.process import wait_for
from convoy.host.scope import Scope
from convoy.hybrid.chain_counts import as_one, summed
from convoy.hybrid.guest import GuestPart
from convoy.hybrid.part import (
    NodePart,
    SwitchPart,
    check_here,
    container,
    remove_container,
)
from convoy.hybrid.published import FILE, SCHEMA, RunningChain, folders
from convoy.hybrid.running import Running

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
LONG_S = 60.0
SILENT_S = 15.0
JOIN_DEADLINE_S = 60.0
BOOT_DEADLINE_S = 240.0  # of virtual machines that are emulated
LOCK = "lock"  # held as long as the supervisor lives


@dataclass
class _Supervised:
    """A part over its lives."""

    part: Part
    running: Running | None = None
    began_s: float = 0.0
    answered_s: float = 0.0
    pause_s: float = FIRST_PAUSE_S
    again_at_s: float = 0.0  # when it is to be started again
    restarts: int = 0
    why: str = ""  # it ended last
    before: dict[str, Any] = field(default_factory=dict)  # counts of lives that have ended
    now: dict[str, Any] = field(default_factory=dict)  # counts of this one, as last read

    @property
    def counts(self) -> dict[str, Any]:
        return summed(self.before, self.now)


def remove_left_behind() -> None:
    """Remove folders of supervisors that were killed; their processes ended with them.

    Process ids say nothing where another container shares the runtime folder: a lock does.
    """
    for pid, folder in folders().items():
        with contextlib.suppress(OSError), (folder / LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(ConvoyError):  # containers go on without us
                for part in RunningChain(pid, folder).read()["parts"]:
                    if part["place"] == "container":
                        remove_container(container(pid, part["name"]))
            shutil.rmtree(folder, ignore_errors=True)


class Supervisor(Scope):
    """A chain in parts. Use it with `with`: at its end all of them are gone."""

    def __init__(
        self,
        split: Split,
        name: str,
        on_line: Callable[[str, str], None] = lambda part, line: None,
        options: Sequence[str] = (),
    ) -> None:
        """Prepare.

        name: the descriptor, as people know it.
        on_line: told of a part and what it says, maybe by another thread.
        options: of the node's convoyd.
        """
        self._split = split
        self._name = name
        self._on_line = on_line
        self._options = tuple(options)
        self._lock: IO[str] | None = None
        self._is_published = True
        self._parts = {part.name: _Supervised(part) for part in split.parts}

    def __enter__(self) -> Self:
        """Start all parts and wait until they are joined. Raises InputError or ConvoyError."""
        check_here(self._split)
        make_private(self._split.folder.parent)
        remove_left_behind()
        make_private(self._split.folder)
        try:
            self._lock = (self._split.folder / LOCK).open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._publish()  # what is to be removed, should we be killed from here on
            for supervised in self._as_started():
                self._start(supervised)
            guests = any(part.place == "vm" for part in self._split.parts)
            deadline_s = BOOT_DEADLINE_S if guests else JOIN_DEADLINE_S
            wait_for(self._joined, deadline_s, "all parts to meet")
            self._publish()
        except BaseException:
            self._leave()
            raise
        return self

    def _as_started(self) -> list[_Supervised]:
        # A guest boots only once somebody is at the other end of its network devices.
        return sorted(self._parts.values(), key=lambda supervised: supervised.part.place == "vm")

    def _start(self, supervised: _Supervised) -> None:
        part = supervised.part

        def on_line(line: str) -> None:
            self._on_line(part.name, line)

        if part.place == "switch":
            running: Running = SwitchPart(part, self._split)
        elif part.place == "vm":
            running = GuestPart(part, self._split, on_line)
        else:
            options = self._options if part.name == NODE else ()
            running = NodePart(part, self._split.folder, on_line, options)
        supervised.running = running
        supervised.began_s = supervised.answered_s = time.monotonic()

    def _joined(self) -> bool:
        """Return whether each link has both of its ends."""
        joined: dict[str, int] = {}
        for supervised in self._parts.values():
            if supervised.running is None or not supervised.running.alive():
                raise ConvoyError(f"part {supervised.part.name} ended: {_words(supervised)}")
            if isinstance(supervised.running, SwitchPart):
                if not supervised.running.joined():
                    return False
                continue
            if supervised.running.starts():
                return False
            for name, port in supervised.running.counts()["ports"].items():
                joined[name] = joined.get(name, 0) + (port["device"].get("link") == "up")
        return all(joined.get(pair.name) == 1 + (not pair.in_switch) for pair in self._split.pairs)

    def step(self) -> None:
        """Look after all parts; call it twice a second or so."""
        for supervised in self._parts.values():
            self._look_after(supervised)
        self._publish()

    def _look_after(self, supervised: _Supervised) -> None:
        now_s = time.monotonic()
        if supervised.running is None:
            if now_s >= supervised.again_at_s:
                self._start_again(supervised)
            return
        if supervised.running.alive():
            self._ask(supervised)
            return
        supervised.why = _words(supervised)
        supervised.running.close()
        supervised.running = None
        supervised.before, supervised.now = supervised.counts, {}
        self._pause(supervised, now_s - supervised.began_s)
        self._on_line(
            supervised.part.name,
            f"ended ({supervised.why}); starts again in {supervised.pause_s:g} s",
        )

    def _ask(self, supervised: _Supervised) -> None:
        """Read its counts, and kill it where it has given none for too long."""
        running = supervised.running
        assert running is not None
        since_s, allowed_s = supervised.answered_s, SILENT_S
        if running.starts():
            since_s, allowed_s = supervised.began_s, BOOT_DEADLINE_S
            supervised.answered_s = time.monotonic()  # it has SILENT_S from when it runs
        try:
            supervised.now = running.counts()
            supervised.answered_s = time.monotonic()
        except ConvoyError:
            if time.monotonic() - since_s > allowed_s and running.alive():
                self._on_line(supervised.part.name, f"gives no answer for {allowed_s:g} s")
                os.kill(running.pid, signal.SIGKILL)

    def _pause(self, supervised: _Supervised, ran_s: float) -> None:
        if ran_s > LONG_S or supervised.restarts == 0:
            supervised.pause_s = FIRST_PAUSE_S
        else:
            supervised.pause_s = min(2 * supervised.pause_s, LONGEST_PAUSE_S)
        supervised.again_at_s = time.monotonic() + supervised.pause_s

    def _start_again(self, supervised: _Supervised) -> None:
        supervised.restarts += 1
        try:
            self._start(supervised)
        except (ConvoyError, OSError) as error:
            supervised.why = str(error)
            self._pause(supervised, 0.0)
            self._on_line(
                supervised.part.name, f"{error}; starts again in {supervised.pause_s:g} s"
            )
            return
        assert supervised.running is not None
        self._on_line(supervised.part.name, f"runs again, process {supervised.running.pid}")

    def counts(self) -> dict[str, Any]:
        """Return what all have counted, as one chain's counts."""
        counts = {name: each.counts for name, each in self._parts.items()}
        complete = not any(each.restarts or each.why for each in self._parts.values())
        return as_one(self._split, counts, complete)

    def state(self) -> list[dict[str, Any]]:
        """Return each part's: what it runs, its process, whether it runs, how often again."""
        return [
            {
                "name": name,
                "place": each.part.place,
                "functions": list(each.part.functions),
                "pid": None if each.running is None else each.running.pid,
                "running": each.running is not None and each.running.alive(),
                "restarts": each.restarts,
                **({"why": each.why} if each.why else {}),
            }
            for name, each in self._parts.items()
        ]

    def stop(self) -> dict[str, Any]:
        """End all parts in the order that packets pass them, the node last; return the counts."""
        for supervised in self._in_order():
            running = supervised.running
            if running is None:
                continue
            try:
                supervised.now = running.stop()
            except ConvoyError as error:
                supervised.why = str(error)
                self._on_line(supervised.part.name, supervised.why)
            running.close()
            supervised.running = None
        return self.counts()

    def _in_order(self) -> list[_Supervised]:
        # What it still has goes to the node, which sends it on.
        first = [each for name, each in self._parts.items() if name != NODE]
        return [*first, self._parts[NODE]]

    def _publish(self) -> None:
        """Write what `convoy top` shows. Packets pass without: that it fails is said once."""
        document = {
            "schema": SCHEMA,
            "pid": os.getpid(),
            "file": self._name,
            "parts": self.state(),
            "counts": self.counts(),
        }
        try:
            write_whole(self._split.folder / FILE, json.dumps(document))
        except OSError as error:
            if self._is_published:
                words = f"{error.strerror}; `convoy top` does not see this chain as it is now"
                self._on_line(str(self._split.folder / FILE), words)
            self._is_published = False
        else:
            self._is_published = True

    def _leave(self) -> None:
        for supervised in self._in_order():
            if supervised.running is not None:
                supervised.running.close()
                supervised.running = None
        shutil.rmtree(self._split.folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()


def _words(supervised: _Supervised) -> str:
    return supervised.running.last_words() if supervised.running is not None else supervised.why
