# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Drives convoy-gen: one process, many trials."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from convoy.errors import ConvoyError, InputError
from convoy.host.priority import prefer
from convoy.host.process import Process, ProcessError
from convoy.host.programs import need
from convoy.host.scope import Scope
from convoy.results.trial_result import SelfTest, TrialResult, read_result
from convoy.tester.base import Tester
from convoy.tester.model import TrialSpec, read_spec

_SELF_TEST_S = 30.0
_MARGIN_S = 60.0  # for building frames and results, on a busy machine


class ConvoyGen(Tester, Scope):
    """A running convoy-gen. Use it with `with`.

    It waits for its ports' peers while others start them, and attaches again where a peer comes
    back: start it first, or last, and restart devices as you like.
    """

    def __init__(
        self,
        ports: Sequence[str],
        core: int | None = None,
        self_test: bool = False,
        reflector_core: int | None = None,
        attach_timeout_s: float = 30.0,
        device_core: int | None = None,
    ) -> None:
        """Start it on ports as convoy-gen --help has them.

        self_test: measure its baseline rate first (a few seconds, two cores must be idle); returns
        when that is done. attach_timeout_s: how long peers may be away, at the start and in a
        trial. device_core: the probe measures the way to it, before and after each trial.
        """
        command = [str(need("convoy-gen")), "--attach-timeout", f"{attach_timeout_s:g}"]
        for port in ports:
            command += ["--port", port]
        if core is not None:
            command += ["--core", str(core)]
        if reflector_core is not None:
            command += ["--reflector-core", str(reflector_core)]
        if device_core is not None:
            command += ["--device-core", str(device_core)]
        if self_test:
            command.append("--self-test")
        self._attach_timeout_s = attach_timeout_s
        self._lines = 0
        self._ready = False
        self._process = Process(command, takes_input=True)
        prefer(self._process.pid)
        self.self_test: SelfTest | None = None
        try:
            if self_test:
                self.self_test = SelfTest.model_validate(self._read(_SELF_TEST_S, "its self-test"))
        except BaseException:
            self._process.stop()
            raise

    @property
    def command(self) -> tuple[str, ...]:
        """What was started."""
        return self._process.command

    @property
    def baseline_pps(self) -> float | None:
        """Return what the self-test received, 64 B frames, one way; None if it was not run."""
        return self.self_test.baseline_pps if self.self_test else None

    @property
    def thread(self) -> int:
        """Return its first thread, which does the trials."""
        return self._process.pid

    def wait_ready(self) -> None:
        """Wait until every port's peer is there. Raises ConvoyError after attach_timeout_s."""
        if not self._ready:
            self._read(self._attach_timeout_s + _MARGIN_S, "its ports' peers")
            self._ready = True

    def trial(self, specification: TrialSpec | Mapping[str, Any]) -> TrialResult:
        """Do one trial; see Tester.trial."""
        spec = read_spec(specification)
        self.wait_ready()
        self._process.say(spec.to_json())
        seconds = spec.duration_s + spec.warmup_s + spec.drain_s
        result = read_result(self._read(seconds + self._attach_timeout_s + _MARGIN_S, "a result"))
        if result.reason_code == "bad_spec":
            raise InputError(result.reason or "")
        return result

    def _read(self, deadline_s: float, what: str) -> dict[str, Any]:
        line = self._process.stdout.line(self._lines, deadline_s)
        if line is None:
            # Its output may end a moment before it does.
            with contextlib.suppress(ProcessError):
                self._process.wait(0 if self._process.stdout.alive() else 5)
            ended = self._process.exit_code is not None
            words = self._process.last_words() if ended else f"no answer within {deadline_s:g} s"
            kind = InputError if self._process.exit_code == 2 else ProcessError
            raise kind(f"waiting for {what}: {words}")
        self._lines += 1
        try:
            value = json.loads(line)
        except ValueError:
            raise ConvoyError(f"convoy-gen: not JSON: {line[:80]}") from None
        return dict(value)

    def _leave(self) -> None:
        self._process.close()
