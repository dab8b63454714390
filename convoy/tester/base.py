# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a search or a benchmark needs of a tester: one method."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from convoy.results.trial_result import TrialResult
from convoy.tester.model import TrialSpec


class Tester(ABC):
    """Does trials. What a result holds is in convoy.results.trial_result and docs/tester.md."""

    @property
    @abstractmethod
    def baseline_pps(self) -> float | None:
        """Return the rate it reaches against a device that costs nothing; None if unknown."""

    @property
    def thread(self) -> int | None:
        """Return the thread that does trials, by its id; None: no time passes in them."""
        return None

    @abstractmethod
    def trial(self, specification: TrialSpec | Mapping[str, Any]) -> TrialResult:
        """Do one trial and return its result (schema convoy.trial/2).

        A trial that says nothing about the device has ok = false and a reason. Raises InputError
        for a specification that makes no sense, ConvoyError where the tester itself failed.
        """
