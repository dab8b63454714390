# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the supervisor needs of a part that runs, whatever it is."""

from abc import abstractmethod
from typing import Any

from convoy.chain.split import Part
from convoy.host.scope import Scope

Counts = dict[str, Any]


class Running(Scope):
    """A part, from its start until it ends. It is not started again: another one is."""

    def __init__(self, part: Part) -> None:
        """part: what it is."""
        self.part = part

    @property
    @abstractmethod
    def pid(self) -> int:
        """The process id of what forwards."""

    @abstractmethod
    def alive(self) -> bool:
        """Return whether all of its processes run."""

    @abstractmethod
    def counts(self) -> Counts:
        """Return what it has counted, shaped as a node's. Raises ConvoyError: no answer."""

    @abstractmethod
    def stop(self) -> Counts:
        """Let it drain and end; return its final counts. Raises ConvoyError if it gave none."""

    @abstractmethod
    def last_words(self) -> str:
        """Return what it said last, where it has ended."""

    def starts(self) -> bool:
        """Return whether it has not begun to forward, and so gives no counts yet."""
        return False
